//! Reading values.

use crate::writer::DEPTH_MAX;
use std::borrow::Cow;
use std::fmt;

/// Bytes that are no value of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(Cow<'static, str>);

impl Malformed {
    /// Bytes with this fault.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

const CUT_OFF: Malformed = Malformed(Cow::Borrowed("it is cut off"));

/// The bytes of a value, of which parts are read one after the other.
#[derive(Debug)]
pub struct Reader<'b> {
    rest: &'b [u8],
    depth: u32,
}

/// Takes a number of a type: seven bits a byte, the lowest first, and none that are not needed.
macro_rules! take_number {
    ($reader:expr, $number:ty) => {{
        let mut number = 0;
        for shift in (0..<$number>::BITS).step_by(7) {
            let byte = $reader.byte()?;
            let bits = <$number>::from(byte & 0x7f);
            if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Malformed::new("a number is too long"))
    }};
}

impl<'b> Reader<'b> {
    /// Reads a value that has all of the bytes.
    ///
    /// # Errors
    ///
    /// Those of `get`; [`Malformed`] if bytes are left.
    pub fn read<T>(
        bytes: &'b [u8],
        get: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        let mut reader = Self { rest: bytes, depth: 0 };
        let value = get(&mut reader)?;
        match reader.rest.len() {
            0 => Ok(value),
            left => Err(Malformed::new(format!("{left} bytes too many"))),
        }
    }

    /// The bytes that are left.
    #[inline]
    pub fn rest(&self) -> &'b [u8] {
        self.rest
    }

    /// Takes bytes as they are.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if there are not so many.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'b [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes so many bytes.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take).
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Takes one byte.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take).
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    /// Takes a number.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if it is cut off, or has more than 64 bits.
    #[inline]
    pub fn number(&mut self) -> Result<u64, Malformed> {
        take_number!(self, u64)
    }

    /// As [`number`](Self::number), with up to 128 bits.
    ///
    /// # Errors
    ///
    /// As [`number`](Self::number).
    pub fn wide_number(&mut self) -> Result<u128, Malformed> {
        take_number!(self, u128)
    }

    /// Takes a number of elements or bytes that follow, of which there cannot be more than bytes.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if there cannot be so many.
    #[inline]
    pub fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.number()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.rest.len() => Ok(count),
            _ => Err(CUT_OFF),
        }
    }

    /// Reads the parts of a type that may contain itself.
    ///
    /// # Errors
    ///
    /// Those of `read`; [`Malformed`] if it is nested too deeply.
    #[inline]
    pub fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        if self.depth >= DEPTH_MAX {
            return Err(Malformed::new("it is nested too deeply"));
        }
        self.depth += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Reads an element of a list, as [`Writer::element`](crate::Writer::element) writes it.
    ///
    /// # Errors
    ///
    /// Those of `read`; [`Malformed`] if the element has no byte.
    #[inline]
    pub fn element<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        let before = self.rest.len();
        let value = read(self)?;
        if self.rest.len() == before && self.byte()? != 0 {
            return Err(Malformed::new("an empty element is not empty"));
        }
        Ok(value)
    }
}
