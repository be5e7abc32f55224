//! The type of decimal numbers: its limits, its order, and its stored form.
//!
//! A number is a whole number of `10^-scale`. The scale is a part of the value that is shown and not of the value that is compared:
//! `1.10` is shown with both digits, equals `1.1`, and hashes as it. Limits and rules of scales are PostgreSQL's (`numeric.c`): at most
//! 131,072 digits before the point and 16,383 behind it.

use crate::error::SqlError;
use hotrow::Stored;
use num_bigint::{BigInt, Sign};
use num_traits::{ToPrimitive, Zero};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// The most digits behind the point.
pub(crate) const SCALE_MAX: u32 = 16_383;
/// The most digits before the point.
pub(super) const WHOLE_DIGITS_MAX: u64 = 131_072;
/// The least number of significant digits of a quotient, a root and their like.
pub(super) const SIGNIFICANT_DIGITS_MIN: i64 = 16;
/// The most digits behind the point that PostgreSQL chooses itself.
pub(super) const DISPLAY_SCALE_MAX: i64 = 1_000;

/// A decimal number of any length, an infinity, or NaN.
#[derive(Debug, Clone, Stored)]
#[stored(as = "Vec<u8>")]
pub struct Numeric {
    pub(super) form: Form,
}

#[derive(Debug, Clone)]
pub(super) enum Form {
    NegativeInfinity,
    /// `digits` times `10^-scale`; the scale is at most [`SCALE_MAX`].
    Finite {
        digits: BigInt,
        scale: u32,
    },
    Infinity,
    NaN,
}

/// The power of ten.
pub(super) fn power_of_ten(exponent: u32) -> BigInt {
    match 10_u64.checked_pow(exponent) {
        Some(power) => BigInt::from(power),
        None => BigInt::from(10_u8).pow(exponent),
    }
}

/// The number of decimal digits of a whole number; 0 for zero.
pub(super) fn decimal_length(digits: &BigInt) -> u64 {
    match digits.magnitude().to_u64() {
        Some(0) => 0,
        Some(small) => u64::from(small.ilog10()) + 1,
        None => digits.magnitude().to_str_radix(10).len() as u64,
    }
}

/// The error of a number that has too many digits.
pub(super) fn overflow() -> SqlError {
    SqlError::new("22003", "value overflows numeric format")
}

impl Numeric {
    /// Not a number: greater than all others, and equal to itself.
    pub fn nan() -> Self {
        Self { form: Form::NaN }
    }

    /// Infinity, or the negative one.
    pub fn infinity(is_negative: bool) -> Self {
        Self { form: if is_negative { Form::NegativeInfinity } else { Form::Infinity } }
    }

    /// The number `digits * 10^-scale`, without a check of its limits.
    pub(super) fn finite(digits: BigInt, scale: u32) -> Self {
        Self { form: Form::Finite { digits, scale } }
    }

    /// The number `digits * 10^-scale`.
    ///
    /// # Errors
    ///
    /// If it has too many digits (22003).
    pub(super) fn checked(digits: BigInt, scale: u32) -> Result<Self, SqlError> {
        // Three bits and a third for each digit: most numbers need no look at their digits.
        let is_small = digits.bits() < (WHOLE_DIGITS_MAX + u64::from(scale)) * 3;
        if scale > SCALE_MAX || (!is_small && decimal_length(&digits) > WHOLE_DIGITS_MAX + u64::from(scale)) {
            return Err(overflow());
        }
        Ok(Self::finite(digits, scale))
    }

    /// True if it is NaN.
    pub fn is_nan(&self) -> bool {
        matches!(self.form, Form::NaN)
    }

    /// True if it is neither infinite nor NaN.
    pub fn is_finite(&self) -> bool {
        matches!(self.form, Form::Finite { .. })
    }

    /// True if it is zero.
    pub fn is_zero(&self) -> bool {
        matches!(&self.form, Form::Finite { digits, .. } if digits.is_zero())
    }

    /// True if it is below zero.
    pub fn is_negative(&self) -> bool {
        match &self.form {
            Form::NegativeInfinity => true,
            Form::Finite { digits, .. } => digits.sign() == Sign::Minus,
            Form::Infinity | Form::NaN => false,
        }
    }

    /// The number of digits behind the point that are shown; 0 for NaN and the infinities.
    pub fn scale(&self) -> u32 {
        match self.form {
            Form::Finite { scale, .. } => scale,
            _ => 0,
        }
    }

    /// The digits without trailing zeros, and their scale, which may be negative; none if it is not finite.
    pub(super) fn normalized(&self) -> Option<(BigInt, i64)> {
        let Form::Finite { digits, scale } = &self.form else { return None };
        if digits.is_zero() {
            return Some((BigInt::zero(), 0));
        }
        let (mut digits, mut scale) = (digits.clone(), i64::from(*scale));
        if let Some(mut small) = digits.to_i64() {
            while small % 10 == 0 {
                (small, scale) = (small / 10, scale - 1);
            }
            return Some((BigInt::from(small), scale));
        }
        let text = digits.magnitude().to_str_radix(10);
        let zeros = text.len() - text.trim_end_matches('0').len();
        if zeros > 0 {
            digits /= power_of_ten(zeros as u32);
            scale -= zeros as i64;
        }
        Some((digits, scale))
    }

    /// Its sign, its significant digits without trailing zeros, and the power of ten that a point before the first digit stands for:
    /// 0.0123 is `123` and -1. None if it is zero or not finite.
    pub(crate) fn significant(&self) -> Option<(bool, String, i64)> {
        let (digits, scale) = self.normalized()?;
        if digits.is_zero() {
            return None;
        }
        let text = digits.magnitude().to_str_radix(10);
        let exponent = text.len() as i64 - scale;
        Some((digits.sign() == Sign::Minus, text, exponent))
    }

    /// The number that [`significant`](Self::significant) has given: none if the parts are those of no number.
    pub(crate) fn of_significant(is_negative: bool, digits: &str, exponent: i64) -> Option<Self> {
        let whole = BigInt::parse_bytes(digits.as_bytes(), 10)?;
        let whole = if is_negative { -whole } else { whole };
        let scale = digits.len() as i64 - exponent;
        if scale > i64::from(SCALE_MAX) || exponent > WHOLE_DIGITS_MAX as i64 {
            return None;
        }
        Some(match u32::try_from(scale) {
            Ok(scale) => Self::finite(whole, scale),
            Err(_) => Self::finite(whole * power_of_ten(scale.unsigned_abs() as u32), 0),
        })
    }

    /// A rank among the kinds of numbers, by which they are ordered.
    fn rank(&self) -> u8 {
        match self.form {
            Form::NegativeInfinity => 0,
            Form::Finite { .. } => 1,
            Form::Infinity => 2,
            Form::NaN => 3,
        }
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.form, &other.form) {
            (
                Form::Finite { digits: left, scale: of_left },
                Form::Finite { digits: right, scale: of_right },
            ) => {
                if of_left == of_right || left.sign() != right.sign() {
                    left.cmp(right)
                } else if of_left < of_right {
                    (left * power_of_ten(of_right - of_left)).cmp(right)
                } else {
                    left.cmp(&(right * power_of_ten(of_left - of_right)))
                }
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl Hash for Numeric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rank().hash(state);
        self.normalized().hash(state);
    }
}

impl From<i64> for Numeric {
    fn from(whole: i64) -> Self {
        Self::finite(BigInt::from(whole), 0)
    }
}

// Stored are two bytes for the scale, or for what is no number, and the digits as a whole number in two's complement.
const STORED_NAN: u16 = u16::MAX;
const STORED_INFINITY: u16 = u16::MAX - 1;
const STORED_NEGATIVE_INFINITY: u16 = u16::MAX - 2;

impl From<&Numeric> for Vec<u8> {
    fn from(number: &Numeric) -> Self {
        let (scale, digits) = match &number.form {
            Form::NaN => (STORED_NAN, None),
            Form::Infinity => (STORED_INFINITY, None),
            Form::NegativeInfinity => (STORED_NEGATIVE_INFINITY, None),
            Form::Finite { digits, scale } => (*scale as u16, Some(digits)),
        };
        let mut bytes = scale.to_le_bytes().to_vec();
        bytes.extend(digits.map(BigInt::to_signed_bytes_le).unwrap_or_default());
        bytes
    }
}

impl TryFrom<Vec<u8>> for Numeric {
    type Error = &'static str;

    fn try_from(bytes: Vec<u8>) -> Result<Self, Self::Error> {
        let Some((scale, digits)) = bytes.split_first_chunk() else { return Err("a number without a scale") };
        match u16::from_le_bytes(*scale) {
            STORED_NAN => Ok(Self::nan()),
            STORED_INFINITY => Ok(Self::infinity(false)),
            STORED_NEGATIVE_INFINITY => Ok(Self::infinity(true)),
            scale => Self::checked(BigInt::from_signed_bytes_le(digits), u32::from(scale))
                .map_err(|_| "a number with too many digits"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::{DefaultHasher, Hasher};

    fn number(text: &str) -> Numeric {
        text.parse().unwrap()
    }

    #[test]
    fn equal_numbers_of_different_scales_are_equal_and_hash_alike() {
        let hash = |number: &Numeric| {
            let mut hasher = DefaultHasher::new();
            number.hash(&mut hasher);
            hasher.finish()
        };
        for (left, right) in
            [("1.0", "1.00"), ("0", "-0.000"), ("1e30", "1000000000000000000000000000000.00")]
        {
            assert_eq!(number(left), number(right));
            assert_eq!(hash(&number(left)), hash(&number(right)));
        }
        assert_ne!(number("1.0"), number("1.01"));
    }

    #[test]
    fn numbers_are_ordered_with_nan_as_the_greatest() {
        let ordered =
            ["-Infinity", "-1e40", "-1.5", "-1", "0", "1e-40", "1", "1.01", "1e40", "Infinity", "NaN"];
        for pair in ordered.windows(2) {
            assert!(number(pair[0]) < number(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn what_is_stored_is_read_again_with_its_scale() {
        for text in ["0", "0.000", "-12.50", "123456789012345678901234567890.123", "NaN", "-Infinity"] {
            let stored = Vec::from(&number(text));
            assert_eq!(Numeric::try_from(stored).unwrap().to_string(), text);
        }
        assert!(Numeric::try_from(vec![1]).is_err());
    }
}
