//! Numbers from and to machine numbers, and in the binary form of the protocol.

use super::arithmetic::{divide_rounded, first_digit};
use super::number::{Form, Numeric, SCALE_MAX, power_of_ten};
use crate::error::SqlError;
use num_bigint::{BigInt, Sign};
use num_traits::ToPrimitive;

const BINARY_POSITIVE: u16 = 0x0000;
const BINARY_NEGATIVE: u16 = 0x4000;
const BINARY_NAN: u16 = 0xC000;
const BINARY_INFINITY: u16 = 0xD000;
const BINARY_NEGATIVE_INFINITY: u16 = 0xF000;

impl Numeric {
    /// The number of a float, to 15 significant digits.
    pub fn of_f64(float: f64) -> Self {
        Self::of_float(float, 14)
    }

    /// The number of a float, to 6 significant digits.
    pub fn of_f32(float: f32) -> Self {
        Self::of_float(f64::from(float), 5)
    }

    fn of_float(float: f64, decimals: usize) -> Self {
        if float.is_nan() {
            return Self::nan();
        }
        if float.is_infinite() {
            return Self::infinity(float < 0.0);
        }
        let text = format!("{float:.decimals$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
        format!("{mantissa}e{exponent}").parse().unwrap_or_else(|_| Self::nan())
    }

    /// The nearest float; infinite if it is too large.
    pub fn to_f64(&self) -> f64 {
        match &self.form {
            Form::NaN => f64::NAN,
            Form::Infinity => f64::INFINITY,
            Form::NegativeInfinity => f64::NEG_INFINITY,
            Form::Finite { digits, scale } => match digits.to_i64() {
                // Both are exact, so that their quotient is rounded once.
                Some(small) if small.unsigned_abs() < 1 << 53 && *scale <= 22 => {
                    small as f64 / 10_f64.powi(*scale as i32)
                }
                _ => format!("{digits}e-{scale}").parse().unwrap_or(f64::NAN),
            },
        }
    }

    /// The nearest whole number, halves away from zero; none if it does not fit.
    pub fn to_i64(&self) -> Option<i64> {
        self.to_i128().and_then(|wide| i64::try_from(wide).ok())
    }

    /// The nearest whole number, halves away from zero; none if it does not fit.
    pub fn to_i128(&self) -> Option<i128> {
        match &self.form {
            Form::Finite { digits, scale: 0 } => digits.to_i128(),
            Form::Finite { digits, scale } => divide_rounded(digits, &power_of_ten(*scale)).to_i128(),
            _ => None,
        }
    }

    /// The number of a wide whole number of `10^-scale`.
    pub(crate) fn of_i128(digits: i128, scale: u32) -> Self {
        Self::finite(BigInt::from(digits), scale)
    }

    /// Writes it as `numeric_send` does: groups of four digits, and where the point is.
    pub fn write_binary(&self, out: &mut Vec<u8>) {
        let mut header = |groups: usize, weight: i64, sign: u16, scale: u32| {
            out.extend((groups as u16).to_be_bytes());
            out.extend((weight as i16).to_be_bytes());
            out.extend(sign.to_be_bytes());
            out.extend((scale as u16).to_be_bytes());
        };
        let (digits, scale) = match &self.form {
            Form::NaN => return header(0, 0, BINARY_NAN, 0),
            // The scale of infinities is what PostgreSQL happens to send.
            Form::Infinity => return header(0, 0, BINARY_INFINITY, 32),
            Form::NegativeInfinity => return header(0, 0, BINARY_NEGATIVE_INFINITY, 32),
            Form::Finite { digits, scale } => (digits, *scale),
        };
        // Groups begin at the point, so the fraction is filled up to a multiple of four digits.
        let filled = digits.magnitude() * power_of_ten((4 - scale % 4) % 4).magnitude();
        let text = filled.to_str_radix(10);
        let text = format!("{}{text}", &"000"[..(4 - text.len() % 4) % 4]);
        let groups: Vec<u16> = text
            .as_bytes()
            .chunks(4)
            .map(|group| group.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0')))
            .collect();
        let end = groups.iter().rposition(|group| *group != 0).map_or(0, |last| last + 1);
        let start = groups[..end].iter().position(|group| *group != 0).unwrap_or(0);
        let (weight, _) = first_digit(digits, scale);
        let sign = if digits.sign() == Sign::Minus { BINARY_NEGATIVE } else { BINARY_POSITIVE };
        header(end - start, weight, sign, scale);
        out.extend(groups[start..end].iter().flat_map(|group| group.to_be_bytes()));
    }

    /// Reads what [`write_binary`](Self::write_binary) has written, as `numeric_recv` does.
    ///
    /// # Errors
    ///
    /// If the bytes are not those of a number (22P03).
    pub fn from_binary(bytes: &[u8]) -> Result<Self, SqlError> {
        let malformed = |what: &'static str| SqlError::new("22P03", what);
        let (words, rest) = bytes.as_chunks::<2>();
        let words: Vec<u16> = words.iter().map(|word| u16::from_be_bytes(*word)).collect();
        let Some((&[count, weight, sign, scale], groups)) = words.split_first_chunk() else {
            return Err(SqlError::new("08P01", "insufficient data left in message"));
        };
        if groups.len() < usize::from(count) {
            return Err(SqlError::new("08P01", "insufficient data left in message"));
        }
        if groups.len() > usize::from(count) || !rest.is_empty() {
            return Err(malformed("incorrect binary data format"));
        }
        let is_negative = match sign {
            BINARY_POSITIVE => false,
            BINARY_NEGATIVE => true,
            BINARY_NAN => return Ok(Self::nan()),
            BINARY_INFINITY => return Ok(Self::infinity(false)),
            BINARY_NEGATIVE_INFINITY => return Ok(Self::infinity(true)),
            _ => return Err(malformed("invalid sign in external \"numeric\" value")),
        };
        if u32::from(scale) > SCALE_MAX {
            return Err(malformed("invalid scale in external \"numeric\" value"));
        }
        let mut text = String::with_capacity(groups.len() * 4);
        for group in groups {
            if *group > 9_999 {
                return Err(malformed("invalid digit in external \"numeric\" value"));
            }
            text.push_str(&format!("{group:04}"));
        }
        let whole = BigInt::parse_bytes(text.as_bytes(), 10).unwrap_or_default();
        let whole = if is_negative { -whole } else { whole };
        // The groups stand for whole * 10^shift; digits beyond the scale are cut off, as PostgreSQL does.
        let shift = (i64::from(weight as i16) + 1 - i64::from(count)) * 4 + i64::from(scale);
        let digits = if shift >= 0 {
            whole * power_of_ten(shift as u32)
        } else {
            whole / power_of_ten(shift.unsigned_abs() as u32)
        };
        Self::checked(digits, u32::from(scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_form_is_read_as_it_was_written() {
        for text in [
            "0",
            "0.00",
            "1",
            "-1.5",
            "12345.6789",
            "0.00012",
            "10000",
            "100000000.0001",
            "NaN",
            "Infinity",
            "1e100",
        ] {
            let number: Numeric = text.parse().unwrap();
            let mut bytes = Vec::new();
            number.write_binary(&mut bytes);
            assert_eq!(Numeric::from_binary(&bytes).unwrap().to_string(), number.to_string());
        }
        let mut bytes = Vec::new();
        "-12345.670".parse::<Numeric>().unwrap().write_binary(&mut bytes);
        assert_eq!(bytes, [0, 3, 0, 1, 0x40, 0, 0, 3, 0, 1, 0x09, 0x29, 0x1A, 0x2C]);
    }

    #[test]
    fn malformed_bytes_are_refused() {
        assert_eq!(Numeric::from_binary(&[0, 1]).unwrap_err().code, "08P01");
        assert_eq!(Numeric::from_binary(&[0, 1, 0, 0, 0, 0, 0, 0]).unwrap_err().code, "08P01");
        assert_eq!(Numeric::from_binary(&[0, 1, 0, 0, 0, 0, 0, 0, 0x27, 0x10]).unwrap_err().code, "22P03");
        assert_eq!(Numeric::from_binary(&[0, 0, 0, 0, 1, 0, 0, 0]).unwrap_err().code, "22P03");
    }

    #[test]
    fn floats_keep_fifteen_digits() {
        assert_eq!(Numeric::of_f64(0.1).to_string(), "0.1");
        assert_eq!(Numeric::of_f64(1e20).to_string(), "100000000000000000000");
        assert_eq!(Numeric::of_f64(1.0 / 3.0).to_string(), "0.333333333333333");
        assert_eq!(Numeric::of_f32(1.1).to_string(), "1.1");
        assert_eq!("123456789.123456789".parse::<Numeric>().unwrap().to_f64(), 123_456_789.123_456_79);
        assert_eq!("-2.5".parse::<Numeric>().unwrap().to_i64(), Some(-3));
    }
}
