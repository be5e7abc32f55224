//! The text of numbers.

use super::number::{Form, Numeric, SCALE_MAX, WHOLE_DIGITS_MAX, overflow, power_of_ten};
use crate::error::SqlError;
use num_bigint::{BigInt, Sign};
use std::fmt;
use std::str::FromStr;

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.form {
            Form::NaN => f.write_str("NaN"),
            Form::Infinity => f.write_str("Infinity"),
            Form::NegativeInfinity => f.write_str("-Infinity"),
            Form::Finite { digits, scale: 0 } => write!(f, "{digits}"),
            Form::Finite { digits, scale } => {
                let scale = *scale as usize;
                let text = digits.magnitude().to_str_radix(10);
                if digits.sign() == Sign::Minus {
                    f.write_str("-")?;
                }
                match text.len().checked_sub(scale) {
                    None | Some(0) => write!(f, "0.{text:0>scale$}"),
                    Some(whole) => write!(f, "{}.{}", &text[..whole], &text[whole..]),
                }
            }
        }
    }
}

/// The parts of a number's text.
struct Parts<'t> {
    is_negative: bool,
    whole: &'t str,
    fraction: &'t str,
    exponent: Option<i64>,
}

/// Splits a number's text, which has no blanks around it. None if it is none.
fn parts(text: &str) -> Option<Parts<'_>> {
    let (is_negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let exponent = match rest.strip_prefix(['e', 'E']) {
        None if rest.is_empty() => None,
        None => return None,
        Some(exponent) => {
            let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if unsigned.is_empty() || digits(unsigned) != unsigned.len() {
                return None;
            }
            // An exponent that does not fit is beyond all limits: 10 digits are.
            let value = if unsigned.len() > 12 { 1_000_000_000_000 } else { unsigned.parse::<i64>().ok()? };
            Some(if exponent.starts_with('-') { -value } else { value })
        }
    };
    Some(Parts { is_negative, whole, fraction, exponent })
}

impl FromStr for Numeric {
    type Err = SqlError;

    fn from_str(text: &str) -> Result<Self, SqlError> {
        let invalid = || SqlError::new("22P02", format!("invalid input syntax for type numeric: \"{text}\""));
        let trimmed = text.trim_matches(|blank: char| blank.is_ascii_whitespace() || blank == '\x0b');
        let Some(Parts { is_negative, whole, fraction, exponent }) = parts(trimmed) else {
            let (is_negative, name) = match trimmed.strip_prefix('-') {
                Some(name) => (true, name),
                None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
            };
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            return if is("infinity") || is("inf") {
                Ok(Self::infinity(is_negative))
            } else if trimmed.eq_ignore_ascii_case("nan") {
                Ok(Self::nan())
            } else {
                Err(invalid())
            };
        };
        let exponent = exponent.unwrap_or(0);
        let scale = fraction.len() as i64 - exponent;
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_start_matches('0');
        if significant.is_empty() {
            return if scale > i64::from(SCALE_MAX) {
                Err(overflow())
            } else {
                Ok(Self::finite(BigInt::ZERO, scale.max(0) as u32))
            };
        }
        // Checked before the digits are read, so that `1e1000000` costs nothing.
        if scale > i64::from(SCALE_MAX) || significant.len() as i64 - scale > WHOLE_DIGITS_MAX as i64 {
            return Err(overflow());
        }
        let value = match significant.parse::<u64>() {
            Ok(small) => BigInt::from(small),
            Err(_) => BigInt::parse_bytes(significant.as_bytes(), 10).ok_or_else(invalid)?,
        };
        let value = if is_negative { -value } else { value };
        match u32::try_from(scale) {
            Ok(scale) => Self::checked(value, scale),
            Err(_) => Self::checked(value * power_of_ten(scale.unsigned_abs() as u32), 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_as_it_was_read() {
        for (text, shown) in [
            ("1.10", "1.10"),
            ("-0.0010", "-0.0010"),
            (" +12. ", "12"),
            (".5", "0.5"),
            ("1.5e3", "1500"),
            ("1.50e1", "15.0"),
            ("12e-3", "0.012"),
            ("-0.00", "0.00"),
            ("nan", "NaN"),
            ("-inf", "-Infinity"),
        ] {
            assert_eq!(text.parse::<Numeric>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_number_is_refused_and_what_is_too_long_overflows() {
        for text in ["", "-", ".", "1e", "1 2", "0x10", "1_000", "-nan", "e5", "1.2.3"] {
            assert_eq!(text.parse::<Numeric>().unwrap_err().code, "22P02", "{text}");
        }
        for text in ["1e131072", "1e999999999999999999999", "1e-16384", "0e-16384"] {
            assert_eq!(text.parse::<Numeric>().unwrap_err().code, "22003", "{text}");
        }
    }
}
