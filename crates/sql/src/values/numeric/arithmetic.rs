//! Addition, multiplication, division and rounding of numbers.

use super::number::{
    DISPLAY_SCALE_MAX, Form, Numeric, SCALE_MAX, SIGNIFICANT_DIGITS_MIN, decimal_length, overflow,
    power_of_ten,
};
use crate::error::SqlError;
use num_bigint::{BigInt, Sign};
use num_traits::{Signed, ToPrimitive, Zero};

/// The error of a division by zero.
pub(crate) fn division_by_zero() -> SqlError {
    SqlError::new("22012", "division by zero")
}

/// Divides whole numbers and rounds half away from zero.
pub(super) fn divide_rounded(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let (quotient, remainder) = (dividend / divisor, dividend % divisor);
    if remainder.magnitude() * 2_u8 < *divisor.magnitude() {
        return quotient;
    }
    if (dividend.sign() == Sign::Minus) == (divisor.sign() == Sign::Minus) {
        quotient + 1
    } else {
        quotient - 1
    }
}

/// The digits at another scale, rounded half away from zero.
pub(super) fn rescale(digits: &BigInt, from: u32, to: u32) -> BigInt {
    if to >= from {
        digits * power_of_ten(to - from)
    } else {
        divide_rounded(digits, &power_of_ten(from - to))
    }
}

/// The weight and the value of the first digit in base 10,000, as PostgreSQL keeps them.
pub(super) fn first_digit(digits: &BigInt, scale: u32) -> (i64, u32) {
    let length = decimal_length(digits) as i64;
    if length == 0 {
        return (0, 0);
    }
    let exponent = length - 1 - i64::from(scale);
    let weight = exponent.div_euclid(4);
    let wanted = exponent - 4 * weight + 1;
    let first = if wanted <= length {
        (digits.magnitude() / power_of_ten((length - wanted) as u32).magnitude()).to_u32()
    } else {
        (digits.magnitude() * power_of_ten((wanted - length) as u32).magnitude()).to_u32()
    };
    (weight, first.unwrap_or(0))
}

/// The scale of a quotient (`select_div_scale`): at least 16 significant digits, and no fewer behind the point than the operands have.
fn quotient_scale(left: (&BigInt, u32), right: (&BigInt, u32)) -> u32 {
    let (of_left, of_right) = (first_digit(left.0, left.1), first_digit(right.0, right.1));
    let weight = of_left.0 - of_right.0 - i64::from(of_left.1 <= of_right.1);
    let scale = SIGNIFICANT_DIGITS_MIN - weight * 4;
    scale.max(i64::from(left.1)).max(i64::from(right.1)).clamp(0, DISPLAY_SCALE_MAX) as u32
}

impl Numeric {
    /// The sum.
    ///
    /// # Errors
    ///
    /// If it has too many digits (22003).
    pub fn add(&self, other: &Self) -> Result<Self, SqlError> {
        match (&self.form, &other.form) {
            (
                Form::Finite { digits: left, scale: of_left },
                Form::Finite { digits: right, scale: of_right },
            ) => {
                if of_left == of_right {
                    return Self::checked(left + right, *of_left);
                }
                let scale = *of_left.max(of_right);
                Self::checked(rescale(left, *of_left, scale) + rescale(right, *of_right, scale), scale)
            }
            (Form::NaN, _) | (_, Form::NaN) => Ok(Self::nan()),
            (Form::Infinity, Form::NegativeInfinity) | (Form::NegativeInfinity, Form::Infinity) => {
                Ok(Self::nan())
            }
            (Form::Finite { .. }, _) => Ok(other.clone()),
            _ => Ok(self.clone()),
        }
    }

    /// The difference.
    ///
    /// # Errors
    ///
    /// If it has too many digits (22003).
    pub fn subtract(&self, other: &Self) -> Result<Self, SqlError> {
        self.add(&other.negated())
    }

    /// The number of the other sign.
    #[must_use]
    pub fn negated(&self) -> Self {
        match &self.form {
            Form::Finite { digits, scale } => Self::finite(-digits, *scale),
            Form::Infinity => Self::infinity(true),
            Form::NegativeInfinity => Self::infinity(false),
            Form::NaN => Self::nan(),
        }
    }

    /// The number without its sign.
    #[must_use]
    pub fn absolute(&self) -> Self {
        if self.is_negative() { self.negated() } else { self.clone() }
    }

    /// -1, 0 or 1 by the sign; NaN for NaN.
    #[must_use]
    pub fn sign(&self) -> Self {
        match &self.form {
            Form::NaN => Self::nan(),
            _ if self.is_zero() => Self::from(0),
            _ => Self::from(if self.is_negative() { -1 } else { 1 }),
        }
    }

    /// The product: as many digits behind the point as both have.
    ///
    /// # Errors
    ///
    /// If it has too many digits before the point (22003).
    pub fn multiply(&self, other: &Self) -> Result<Self, SqlError> {
        match (&self.form, &other.form) {
            (
                Form::Finite { digits: left, scale: of_left },
                Form::Finite { digits: right, scale: of_right },
            ) => {
                let scale = of_left + of_right;
                let product = left * right;
                if scale > SCALE_MAX {
                    return Self::checked(rescale(&product, scale, SCALE_MAX), SCALE_MAX);
                }
                Self::checked(product, scale)
            }
            (Form::NaN, _) | (_, Form::NaN) => Ok(Self::nan()),
            _ if self.is_zero() || other.is_zero() => Ok(Self::nan()),
            _ => Ok(Self::infinity(self.is_negative() != other.is_negative())),
        }
    }

    /// The quotient, with at least 16 significant digits.
    ///
    /// # Errors
    ///
    /// If the divisor is zero (22012), or the quotient has too many digits (22003).
    pub fn divide(&self, other: &Self) -> Result<Self, SqlError> {
        match (&self.form, &other.form) {
            (Form::NaN, _) | (_, Form::NaN) => Ok(Self::nan()),
            _ if other.is_zero() => Err(division_by_zero()),
            (
                Form::Finite { digits: left, scale: of_left },
                Form::Finite { digits: right, scale: of_right },
            ) => {
                let scale = quotient_scale((left, *of_left), (right, *of_right));
                Self::quotient((left, *of_left), (right, *of_right), scale)
            }
            (Form::Finite { .. }, _) => Ok(Self::from(0)),
            (_, Form::Finite { .. }) => Ok(Self::infinity(self.is_negative() != other.is_negative())),
            _ => Ok(Self::nan()),
        }
    }

    /// The quotient of numbers of these digits and scales, rounded to a scale.
    pub(super) fn quotient(
        left: (&BigInt, u32),
        right: (&BigInt, u32),
        scale: u32,
    ) -> Result<Self, SqlError> {
        // left / 10^of_left / (right / 10^of_right) * 10^scale
        let (up, down) = (right.1 + scale, left.1);
        let quotient = if up >= down {
            divide_rounded(&(left.0 * power_of_ten(up - down)), right.0)
        } else {
            divide_rounded(left.0, &(right.0 * power_of_ten(down - up)))
        };
        Self::checked(quotient, scale)
    }

    /// The quotient without its fraction.
    ///
    /// # Errors
    ///
    /// If the divisor is zero (22012).
    pub fn divide_whole(&self, other: &Self) -> Result<Self, SqlError> {
        let (Form::Finite { digits: left, scale: of_left }, Form::Finite { digits: right, scale: of_right }) =
            (&self.form, &other.form)
        else {
            return self.divide(other);
        };
        if right.is_zero() {
            return Err(division_by_zero());
        }
        let scale = *of_left.max(of_right);
        Self::checked(rescale(left, *of_left, scale) / rescale(right, *of_right, scale), 0)
    }

    /// The remainder of a division whose quotient is whole; it has the sign of the dividend.
    ///
    /// # Errors
    ///
    /// If the divisor is zero (22012).
    pub fn remainder(&self, other: &Self) -> Result<Self, SqlError> {
        match (&self.form, &other.form) {
            (Form::NaN, _) | (_, Form::NaN) => Ok(Self::nan()),
            (Form::Infinity | Form::NegativeInfinity, _) if !other.is_zero() => Ok(Self::nan()),
            _ if other.is_zero() => Err(division_by_zero()),
            (
                Form::Finite { digits: left, scale: of_left },
                Form::Finite { digits: right, scale: of_right },
            ) => {
                let scale = *of_left.max(of_right);
                Self::checked(rescale(left, *of_left, scale) % rescale(right, *of_right, scale), scale)
            }
            _ => Ok(self.clone()),
        }
    }

    /// The number with this many digits behind the point, rounded half away from zero; before the point if there are fewer than none.
    ///
    /// # Errors
    ///
    /// If it has too many digits then (22003).
    pub fn round(&self, scale: i32) -> Result<Self, SqlError> {
        self.shortened(scale, divide_rounded)
    }

    /// The number with this many digits behind the point, cut off; before the point if there are fewer than none.
    ///
    /// # Errors
    ///
    /// If it has too many digits then (22003).
    pub fn truncate(&self, scale: i32) -> Result<Self, SqlError> {
        self.shortened(scale, |digits, unit| digits / unit)
    }

    /// The least whole number that is not less.
    ///
    /// # Errors
    ///
    /// If it has too many digits (22003).
    pub fn ceiling(&self) -> Result<Self, SqlError> {
        self.shortened(0, |digits, unit| {
            let whole = digits / unit;
            if digits.is_positive() && !(digits % unit).is_zero() { whole + 1 } else { whole }
        })
    }

    /// The greatest whole number that is not greater.
    ///
    /// # Errors
    ///
    /// If it has too many digits (22003).
    pub fn floor(&self) -> Result<Self, SqlError> {
        Ok(self.negated().ceiling()?.negated())
    }

    /// The number at another scale; `divide` shortens its digits by a power of ten.
    fn shortened(&self, wanted: i32, divide: impl Fn(&BigInt, &BigInt) -> BigInt) -> Result<Self, SqlError> {
        let Form::Finite { digits, scale } = &self.form else { return Ok(self.clone()) };
        let wanted = wanted.clamp(-(DISPLAY_SCALE_MAX as i32 * 2), DISPLAY_SCALE_MAX as i32 * 2);
        let to = wanted.max(0) as u32;
        if wanted >= 0 && to >= *scale {
            return Self::checked(rescale(digits, *scale, to), to);
        }
        let cut = (*scale as i32 - wanted) as u32;
        let short = divide(digits, &power_of_ten(cut));
        Self::checked(short * power_of_ten(wanted.min(0).unsigned_abs()), to)
    }

    /// The number with a scale, rounded; what `numeric(precision, scale)` keeps.
    ///
    /// # Errors
    ///
    /// If it has more digits before the point than there is room for (22003).
    pub fn fit(&self, precision: u32, scale: i32) -> Result<Self, SqlError> {
        let refused = |reason: String| Err(SqlError::new("22003", "numeric field overflow").detail(reason));
        let Form::Finite { .. } = &self.form else {
            if self.is_nan() {
                return Ok(self.clone());
            }
            return refused(format!(
                "A field with precision {precision}, scale {scale} cannot hold an infinite value."
            ));
        };
        let rounded = self.round(scale)?;
        let room = precision as i64 - i64::from(scale);
        let Form::Finite { digits, scale: rounded_scale } = &rounded.form else { return Err(overflow()) };
        if decimal_length(digits) as i64 - i64::from(*rounded_scale) > room && !digits.is_zero() {
            let limit = if room == 0 { "1".to_owned() } else { format!("10^{room}") };
            return refused(format!(
                "A field with precision {precision}, scale {scale} must round to an absolute value less than {limit}."
            ));
        }
        Ok(rounded)
    }

    /// The number without zeros at its end behind the point.
    #[must_use]
    pub fn trimmed(&self) -> Self {
        match self.normalized() {
            None => self.clone(),
            Some((digits, scale)) => match u32::try_from(scale) {
                Ok(scale) => Self::finite(digits, scale),
                Err(_) => Self::finite(digits * power_of_ten(scale.unsigned_abs() as u32), 0),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Numeric {
        text.parse().unwrap()
    }

    #[test]
    fn scales_of_results_are_those_of_postgresql() {
        assert_eq!(number("1.10").add(&number("2")).unwrap().to_string(), "3.10");
        assert_eq!(number("1.10").multiply(&number("2.0")).unwrap().to_string(), "2.200");
        assert_eq!(number("1").divide(&number("3")).unwrap().to_string(), "0.33333333333333333333");
        assert_eq!(number("10").divide(&number("4")).unwrap().to_string(), "2.5000000000000000");
        assert_eq!(number("1e20").divide(&number("3")).unwrap().to_string(), "33333333333333333333");
        assert_eq!(number("7.5").remainder(&number("-2")).unwrap().to_string(), "1.5");
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (text, scale, rounded) in [
            ("2.5", 0, "3"),
            ("-2.5", 0, "-3"),
            ("2.45", 1, "2.5"),
            ("155", -1, "160"),
            ("44", -2, "0"),
            ("1", 3, "1.000"),
        ] {
            assert_eq!(number(text).round(scale).unwrap().to_string(), rounded, "{text}");
        }
        assert_eq!(number("-1.5").ceiling().unwrap().to_string(), "-1");
        assert_eq!(number("-1.5").floor().unwrap().to_string(), "-2");
    }

    #[test]
    fn a_number_that_does_not_fit_its_column_is_refused() {
        assert_eq!(number("123.455").fit(5, 2).unwrap().to_string(), "123.46");
        let refused = number("999.995").fit(5, 2).unwrap_err();
        assert_eq!(refused.code, "22003");
        assert!(refused.detail.as_deref().unwrap().ends_with("less than 10^3."));
        assert!(number("0.1").fit(1, 1).is_ok() && number("1").fit(1, 1).is_err());
    }

    #[test]
    fn division_by_zero_is_an_error() {
        assert_eq!(number("1").divide(&number("0.0")).unwrap_err().code, "22012");
        assert_eq!(number("1").remainder(&number("0")).unwrap_err().code, "22012");
    }
}
