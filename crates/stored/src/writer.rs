//! Writing values.

use crate::Stored;

/// The most types of a row within each other: a list that a type makes of boxes of itself is no longer than this. What is deeper is
/// refused, because nobody could read it without a stack of any depth.
pub(crate) const DEPTH_MAX: u32 = 100;

/// Takes the bytes of a value.
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
    depth: u32,
    /// The reason for which the value cannot be stored, if it cannot.
    refused: Option<String>,
}

impl<'o> Writer<'o> {
    /// Appends to `out` what `write` writes.
    ///
    /// # Errors
    ///
    /// The reason for which it cannot be stored. Some bytes may have been appended then.
    #[inline]
    pub fn write(out: &'o mut Vec<u8>, write: impl FnOnce(&mut Self)) -> Result<(), String> {
        let mut writer = Self { out, depth: 0, refused: None };
        write(&mut writer);
        match writer.refused {
            None => Ok(()),
            Some(reason) => Err(reason),
        }
    }

    /// Says that the value cannot be stored. A transaction that writes it rolls back.
    #[cold]
    pub fn refuse(&mut self, reason: impl Into<String>) {
        self.refused.get_or_insert(reason.into());
    }

    /// All that was written so far, behind what was there before. For what frames parts of a value, once they are written.
    #[inline]
    pub fn written(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Writes bytes as they are, without their number.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Writes one byte.
    #[inline]
    pub fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    /// Writes a number: seven bits a byte, the lowest first; the highest bit says that more follow.
    #[inline]
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.out.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.out.push(number as u8);
    }

    /// As [`number`](Self::number).
    #[inline]
    pub fn wide_number(&mut self, mut number: u128) {
        while number >= 0x80 {
            self.out.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.out.push(number as u8);
    }

    /// Writes the parts of a type that may contain itself.
    #[inline]
    pub fn nested(&mut self, write: impl FnOnce(&mut Self)) {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            self.refuse(format!("it is nested more than {DEPTH_MAX} times"));
        } else {
            write(self);
        }
        self.depth -= 1;
    }

    /// Writes an element of a list, of at least one byte: then a list has no more elements than bytes.
    #[inline]
    pub fn element(&mut self, write: impl FnOnce(&mut Self)) {
        let before = self.out.len();
        write(self);
        if self.out.len() == before {
            self.out.push(0);
        }
    }

    /// Writes a value of a stored type.
    #[inline]
    pub fn put<T: Stored>(&mut self, value: &T) {
        value.put(self);
    }
}
