//! Roots, exponentials, logarithms and powers of numbers.
//!
//! They are computed with whole numbers of `10^-p`, where `p` exceeds the digits wanted by [`GUARD`]; the result is rounded once. Scales
//! of results are chosen as PostgreSQL does, from estimates of their sizes.

use super::arithmetic::{divide_rounded, division_by_zero, first_digit, rescale};
use super::number::{
    DISPLAY_SCALE_MAX, Form, Numeric, SIGNIFICANT_DIGITS_MIN, decimal_length, overflow, power_of_ten,
};
use crate::error::SqlError;
use num_bigint::{BigInt, Sign};
use num_traits::{One, Signed, ToPrimitive, Zero};
use std::f64::consts::LOG10_E;

/// The digits that are computed beyond those wanted.
const GUARD: u32 = 12;
/// Beyond this, an exponent overflows or vanishes without a computation.
const EXPONENT_MAX: f64 = 6_000.0;

/// The error of a value that a function does not have.
fn refused(code: &'static str, message: &'static str) -> SqlError {
    SqlError::new(code, message)
}

/// The error of a power that is no real number.
fn complex_power() -> SqlError {
    refused("2201F", "a negative number raised to a non-integer power yields a complex result")
}

/// A scale for the result, of at least 16 significant digits if its first digit is of the weight, and no less than another scale.
fn result_scale(weight: i64, least: u32) -> u32 {
    (SIGNIFICANT_DIGITS_MIN - weight).max(i64::from(least)).clamp(0, DISPLAY_SCALE_MAX) as u32
}

/// The natural logarithm of a fixed-point number near 1, by the series of the inverse hyperbolic tangent.
fn series_of_logarithm(value: &BigInt, unit: &BigInt) -> BigInt {
    let ratio = (value - unit) * unit / (value + unit);
    let square = &ratio * &ratio / unit;
    let (mut power, mut sum, mut divisor) = (ratio.clone(), ratio, 1_u32);
    while !power.is_zero() {
        power = power * &square / unit;
        divisor += 2;
        sum += &power / divisor;
    }
    sum * 2
}

/// The natural logarithm of `digits * 10^-scale`, which is positive, as a whole number of `10^-precision`.
fn logarithm(digits: &BigInt, scale: u32, precision: u32) -> BigInt {
    let places = precision + GUARD;
    let unit = power_of_ten(places);
    // The number is value * 10^shift with a value between 0.1 and 1, then between 0.5 and 1 by doubling.
    let length = decimal_length(digits) as u32;
    let mut value = rescale(digits, length, places);
    let mut shift = i64::from(length) - i64::from(scale);
    if &value * 10 < &unit * 2 && shift == 1 {
        // Numbers just above 1 lose no digits to the logarithm of 10.
        value *= 10;
        shift = 0;
    }
    let mut doublings = 0;
    while &value * 3 < &unit * 2 {
        value *= 2;
        doublings += 1;
    }
    let mut sum = series_of_logarithm(&value, &unit);
    if doublings > 0 || shift != 0 {
        let two = series_of_logarithm(&(&unit * 2), &unit);
        let ten = &two * 3 + series_of_logarithm(&(&unit * 5 / 4), &unit);
        sum += ten * shift - two * doublings;
    }
    rescale(&sum, places, precision)
}

/// `e` to a power of `digits * 10^-scale`, as a whole number of `10^-precision`.
fn exponential(digits: &BigInt, scale: u32, precision: u32, size: f64) -> BigInt {
    // Squarings double the relative error, and a large result has more digits before the point.
    let places = precision + GUARD + 20 + size.max(0.0) as u32;
    let unit = power_of_ten(places);
    let mut value = rescale(digits, scale, places);
    let mut squarings = 0;
    while value.magnitude() * 64_u8 > *unit.magnitude() {
        value /= 2;
        squarings += 1;
    }
    let (mut term, mut sum, mut divisor) = (unit.clone(), unit.clone(), 0_u32);
    while !term.is_zero() {
        divisor += 1;
        term = term * &value / &unit / divisor;
        sum += &term;
    }
    for _ in 0..squarings {
        sum = &sum * &sum / &unit;
    }
    rescale(&sum, places, precision)
}

/// The weight of the first decimal digit of the logarithm of a number (`estimate_ln_dweight`).
fn logarithm_weight(digits: &BigInt, scale: u32) -> i64 {
    let unit = power_of_ten(scale);
    if digits * 10 >= &unit * 9 && digits * 10 <= &unit * 11 {
        let difference = digits - &unit;
        if difference.is_zero() {
            return 0;
        }
        let (weight, first) = first_digit(&difference, scale);
        return weight * 4 + i64::from(first.max(1).ilog10());
    }
    approximate_logarithm(digits, scale).abs().log10() as i64
}

/// The natural logarithm of a number, to the digits of a float.
fn approximate_logarithm(digits: &BigInt, scale: u32) -> f64 {
    let length = decimal_length(digits);
    let cut = length.saturating_sub(17) as u32;
    let leading = (digits.magnitude() / power_of_ten(cut).magnitude()).to_f64().unwrap_or(1.0);
    leading.ln() + (f64::from(cut) - f64::from(scale)) * std::f64::consts::LN_10
}

impl Numeric {
    /// The square root.
    ///
    /// # Errors
    ///
    /// If it is negative (2201F).
    pub fn square_root(&self) -> Result<Self, SqlError> {
        if self.is_negative() {
            return Err(refused("2201F", "cannot take square root of a negative number"));
        }
        let Form::Finite { digits, scale } = &self.form else { return Ok(self.clone()) };
        let (weight, _) = first_digit(digits, *scale);
        self.square_root_to(result_scale((weight + 1) * 2 - 1, *scale))
    }

    /// The square root at a scale; it must not be negative.
    pub(crate) fn square_root_to(&self, wanted: u32) -> Result<Self, SqlError> {
        let Form::Finite { digits, scale } = &self.form else { return Ok(self.clone()) };
        if digits.is_negative() {
            return Err(refused("2201F", "cannot take square root of a negative number"));
        }
        // One digit more than wanted decides the rounding: the root is not above it by a half without being above it at all.
        let places = wanted + 1 + scale.div_ceil(2);
        let root = rescale(digits, *scale, 2 * places).sqrt();
        Self::checked(rescale(&root, places, wanted), wanted)
    }

    /// `e` to its power.
    ///
    /// # Errors
    ///
    /// If that has too many digits (22003).
    pub fn exponential(&self) -> Result<Self, SqlError> {
        let (digits, scale) = match &self.form {
            Form::Finite { digits, scale } => (digits, *scale),
            Form::NegativeInfinity => return Ok(Self::from(0)),
            _ => return Ok(self.clone()),
        };
        let size = self.to_f64() * LOG10_E;
        let wanted = result_scale(size.clamp(-2_000.0, 2_000.0) as i64, scale);
        Self::exponential_to(digits, scale, wanted)
    }

    fn exponential_to(digits: &BigInt, scale: u32, wanted: u32) -> Result<Self, SqlError> {
        let value = Self::finite(digits.clone(), scale).to_f64();
        if value.abs() >= EXPONENT_MAX {
            return if value > 0.0 { Err(overflow()) } else { Ok(Self::finite(BigInt::zero(), wanted)) };
        }
        Self::checked(exponential(digits, scale, wanted, value * LOG10_E), wanted)
    }

    /// The natural logarithm.
    ///
    /// # Errors
    ///
    /// If it is not positive (2201E).
    pub fn natural_logarithm(&self) -> Result<Self, SqlError> {
        let Some((digits, scale)) = self.of_logarithm()? else { return Ok(self.clone()) };
        let wanted = result_scale(logarithm_weight(digits, scale), scale);
        Self::checked(logarithm(digits, scale, wanted), wanted)
    }

    /// The logarithm to a base.
    ///
    /// # Errors
    ///
    /// If it or the base is not positive (2201E), or the base is 1 (22012).
    pub fn logarithm(&self, base: &Self) -> Result<Self, SqlError> {
        if self.is_nan() || base.is_nan() {
            return Ok(Self::nan());
        }
        let (base_parts, parts) = (base.of_logarithm()?, self.of_logarithm()?);
        let (Some((of_base, base_scale)), Some((digits, scale))) = (base_parts, parts) else {
            return Ok(match (base_parts, parts) {
                (None, None) => Self::nan(),
                (None, Some(_)) => Self::from(0),
                _ => Self::infinity(false),
            });
        };
        let (base_weight, weight) = (logarithm_weight(of_base, base_scale), logarithm_weight(digits, scale));
        let result_weight = weight - base_weight;
        let wanted = result_scale(result_weight, scale.max(base_scale));
        let precision = |weight: i64| (i64::from(wanted) + result_weight - weight + 8).max(0) as u32 + 8;
        let of_number = logarithm(digits, scale, precision(weight));
        let of_base = logarithm(of_base, base_scale, precision(base_weight));
        if of_base.is_zero() {
            return Err(division_by_zero());
        }
        Self::quotient((&of_number, precision(weight)), (&of_base, precision(base_weight)), wanted)
    }

    /// Its parts if it has a logarithm that must be computed; none for NaN and infinity.
    fn of_logarithm(&self) -> Result<Option<(&BigInt, u32)>, SqlError> {
        if self.is_negative() {
            return Err(refused("2201E", "cannot take logarithm of a negative number"));
        }
        match &self.form {
            Form::Finite { digits, .. } if digits.is_zero() => {
                Err(refused("2201E", "cannot take logarithm of zero"))
            }
            Form::Finite { digits, scale } => Ok(Some((digits, *scale))),
            _ => Ok(None),
        }
    }

    /// The power.
    ///
    /// # Errors
    ///
    /// If it is zero and the exponent negative, or it is negative and the exponent not whole (2201F), or the power has too many digits
    /// (22003).
    pub fn power(&self, exponent: &Self) -> Result<Self, SqlError> {
        let is_one = *self == Self::from(1);
        if self.is_nan() || exponent.is_nan() {
            return Ok(if is_one || exponent.is_zero() { Self::from(1) } else { Self::nan() });
        }
        if self.is_zero() && exponent.is_negative() {
            return Err(refused("2201F", "zero raised to a negative power is undefined"));
        }
        let (Form::Finite { digits, scale }, Form::Finite { digits: of_exponent, scale: exponent_scale }) =
            (&self.form, &exponent.form)
        else {
            if self.is_negative() && exponent.is_finite() && exponent.trimmed().scale() != 0 {
                return Err(complex_power());
            }
            return Ok(self.infinite_power(exponent));
        };
        let whole = exponent.trimmed();
        let is_whole = whole.scale() == 0;
        if let (true, Some(whole)) = (is_whole, whole.to_i64().and_then(|whole| i32::try_from(whole).ok())) {
            return self.whole_power(whole);
        }
        if digits.is_negative() && !is_whole {
            return Err(complex_power());
        }
        if digits.is_zero() {
            return Ok(Self::finite(BigInt::zero(), SIGNIFICANT_DIGITS_MIN as u32));
        }
        let base = digits.abs();
        // The size is estimated with as few digits as PostgreSQL takes, because the scale of the result shows it.
        let estimated = (8 - logarithm_weight(&base, *scale)).clamp(0, DISPLAY_SCALE_MAX) as u32;
        let estimate = logarithm(&base, *scale, estimated) * of_exponent;
        let size =
            Self::finite(divide_rounded(&estimate, &power_of_ten(*exponent_scale)), estimated).to_f64();
        if size.abs() > EXPONENT_MAX * 1.003 {
            return if size > 0.0 { Err(overflow()) } else { Ok(Self::finite(BigInt::zero(), 1_000)) };
        }
        let weight = (size * LOG10_E) as i64;
        let wanted = result_scale(weight, (*scale).max(*exponent_scale));
        let places =
            ((i64::from(wanted) + weight).max(0) - logarithm_weight(&base, *scale) + 16).max(0) as u32;
        let product = logarithm(&base, *scale, places) * of_exponent;
        let power = Self::exponential_to(&product, places + exponent_scale, wanted)?;
        let is_odd = is_whole && (of_exponent / power_of_ten(*exponent_scale)).bit(0);
        Ok(if digits.is_negative() && is_odd { power.negated() } else { power })
    }

    /// A power where the base or the exponent is infinite.
    fn infinite_power(&self, exponent: &Self) -> Self {
        let one = Self::from(1);
        if *self == one || exponent.is_zero() {
            return one;
        }
        if !exponent.is_finite() {
            let magnitude = self.absolute();
            return if magnitude == one {
                one
            } else if (magnitude > one) == exponent.is_negative() {
                Self::from(0)
            } else {
                Self::infinity(false)
            };
        }
        if exponent.is_negative() {
            return Self::from(0);
        }
        let is_odd = exponent.trimmed().to_i128().is_some_and(|whole| whole & 1 == 1);
        Self::infinity(self.is_negative() && is_odd)
    }

    /// A power with a whole exponent (`power_var_int`).
    fn whole_power(&self, exponent: i32) -> Result<Self, SqlError> {
        let Form::Finite { digits, scale } = &self.form else { return Ok(self.clone()) };
        let size = if digits.is_zero() {
            0.0
        } else {
            f64::from(exponent) * approximate_logarithm(&digits.abs(), *scale) * LOG10_E
        };
        if size > 131_072.0 {
            return Err(overflow());
        }
        let wanted = result_scale(0, *scale);
        if size + 1.0 < -f64::from(wanted) {
            return Ok(Self::finite(BigInt::zero(), wanted));
        }
        if exponent == 0 {
            return Ok(Self::finite(power_of_ten(wanted), wanted));
        }
        if exponent == 1 {
            return Self::checked(rescale(digits, *scale, wanted), wanted);
        }
        if digits.is_zero() {
            return Ok(Self::finite(BigInt::zero(), wanted));
        }
        // Powers by squaring, of numbers that are shortened to the digits that the result needs and some more.
        let room = (i64::from(wanted) + size.ceil() as i64).max(0) as u64 + 16 + u64::from(GUARD);
        let shorten = |(digits, scale): (BigInt, i64)| {
            let excess = decimal_length(&digits).saturating_sub(room);
            if excess == 0 {
                (digits, scale)
            } else {
                (digits / power_of_ten(excess as u32), scale - excess as i64)
            }
        };
        let multiply =
            |left: &(BigInt, i64), right: &(BigInt, i64)| shorten((&left.0 * &right.0, left.1 + right.1));
        let (mut result, mut square) = ((BigInt::one(), 0_i64), (digits.clone(), i64::from(*scale)));
        let mut left = exponent.unsigned_abs();
        while left > 0 {
            if left & 1 == 1 {
                result = multiply(&result, &square);
            }
            left >>= 1;
            if left > 0 {
                square = multiply(&square, &square);
            }
        }
        let (power, power_scale) = result;
        // The power is power * 10^-power_scale, or one divided by it.
        if exponent > 0 {
            let shift = i64::from(wanted) - power_scale;
            let unit = power_of_ten(shift.unsigned_abs() as u32);
            return Self::checked(
                if shift >= 0 { power * unit } else { divide_rounded(&power, &unit) },
                wanted,
            );
        }
        let shift = i64::from(wanted) + power_scale;
        if shift < 0 {
            return Ok(Self::finite(BigInt::zero(), wanted));
        }
        let one = power_of_ten(shift as u32);
        debug_assert!(power.sign() != Sign::NoSign);
        Self::checked(divide_rounded(&one, &power), wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Numeric {
        text.parse().unwrap()
    }

    #[test]
    fn digits_and_scales_are_those_of_postgresql() {
        assert_eq!(number("2").square_root().unwrap().to_string(), "1.414213562373095");
        assert_eq!(number("1").exponential().unwrap().to_string(), "2.7182818284590452");
        assert_eq!(number("2").natural_logarithm().unwrap().to_string(), "0.6931471805599453");
        assert_eq!(number("100").logarithm(&number("10")).unwrap().to_string(), "2.0000000000000000");
        assert_eq!(number("2").power(&number("0.5")).unwrap().to_string(), "1.4142135623730950");
        assert_eq!(number("2").power(&number("10")).unwrap().to_string(), "1024.0000000000000000");
        assert_eq!(number("2").power(&number("-3")).unwrap().to_string(), "0.1250000000000000");
    }

    #[test]
    fn values_outside_a_function_are_refused() {
        assert_eq!(number("-1").square_root().unwrap_err().code, "2201F");
        assert_eq!(number("0").natural_logarithm().unwrap_err().code, "2201E");
        assert_eq!(number("0").power(&number("-1")).unwrap_err().code, "2201F");
        assert_eq!(number("-8").power(&number("0.5")).unwrap_err().code, "2201F");
        assert_eq!(number("10").power(&number("200000")).unwrap_err().code, "22003");
        assert_eq!(number("7000").exponential().unwrap_err().code, "22003");
    }
}
