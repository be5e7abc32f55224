//! Arithmetic of numbers.

use crate::error::SqlError;
use crate::values::casts::{float4, integer, out_of_range};
use crate::values::numeric::division_by_zero;
use crate::values::{Datum, Numeric, Type};

/// The error of operands of types that the operator is not for; the resolution rules it out.
pub(super) fn wrong_operands() -> SqlError {
    SqlError::new("XX000", "operands of types that the operator is not for")
}

fn integers(left: &Datum, right: &Datum) -> Result<(i64, i64), SqlError> {
    left.as_integer().zip(right.as_integer()).ok_or_else(wrong_operands)
}

/// Defines the functions of an operator for each integer type, by that of 64 bits.
macro_rules! integer_functions {
    ($($compute:ident: $int2:ident $int4:ident $int8:ident;)*) => {$(
        pub(super) fn $int2(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
            let (left, right) = integers(left, right)?;
            integer($compute(left, right, Type::Int2)?, Type::Int2)
        }

        pub(super) fn $int4(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
            let (left, right) = integers(left, right)?;
            integer($compute(left, right, Type::Int4)?, Type::Int4)
        }

        pub(super) fn $int8(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
            let (left, right) = integers(left, right)?;
            Ok(Datum::Int8($compute(left, right, Type::Int8)?))
        }
    )*};
}

integer_functions! {
    add: add_int2 add_int4 add_int8;
    subtract: subtract_int2 subtract_int4 subtract_int8;
    multiply: multiply_int2 multiply_int4 multiply_int8;
    divide: divide_int2 divide_int4 divide_int8;
    remainder: remainder_int2 remainder_int4 remainder_int8;
    and: and_int2 and_int4 and_int8;
    or: or_int2 or_int4 or_int8;
    xor: xor_int2 xor_int4 xor_int8;
    shift_left: shift_left_int2 shift_left_int4 shift_left_int8;
    shift_right: shift_right_int2 shift_right_int4 shift_right_int8;
}

fn add(left: i64, right: i64, ty: Type) -> Result<i64, SqlError> {
    left.checked_add(right).ok_or_else(|| out_of_range(ty))
}

fn subtract(left: i64, right: i64, ty: Type) -> Result<i64, SqlError> {
    left.checked_sub(right).ok_or_else(|| out_of_range(ty))
}

fn multiply(left: i64, right: i64, ty: Type) -> Result<i64, SqlError> {
    left.checked_mul(right).ok_or_else(|| out_of_range(ty))
}

fn divide(left: i64, right: i64, ty: Type) -> Result<i64, SqlError> {
    if right == 0 {
        return Err(division_by_zero());
    }
    left.checked_div(right).ok_or_else(|| out_of_range(ty))
}

fn remainder(left: i64, right: i64, _: Type) -> Result<i64, SqlError> {
    if right == 0 {
        return Err(division_by_zero());
    }
    // The remainder of the least number by -1 is 0, although their quotient overflows.
    Ok(left.wrapping_rem(right))
}

fn and(left: i64, right: i64, _: Type) -> Result<i64, SqlError> {
    Ok(left & right)
}

fn or(left: i64, right: i64, _: Type) -> Result<i64, SqlError> {
    Ok(left | right)
}

fn xor(left: i64, right: i64, _: Type) -> Result<i64, SqlError> {
    Ok(left ^ right)
}

// Shifts are those of the processor: by the number modulo the width, which for 16 bits is 32.
fn shift_left(left: i64, right: i64, ty: Type) -> Result<i64, SqlError> {
    Ok(match ty {
        Type::Int2 => i64::from((left as i32).wrapping_shl(right as u32) as i16),
        Type::Int4 => i64::from((left as i32).wrapping_shl(right as u32)),
        _ => left.wrapping_shl(right as u32),
    })
}

fn shift_right(left: i64, right: i64, ty: Type) -> Result<i64, SqlError> {
    Ok(match ty {
        Type::Int2 | Type::Int4 => i64::from((left as i32).wrapping_shr(right as u32)),
        _ => left.wrapping_shr(right as u32),
    })
}

fn numerics<'d>(left: &'d Datum, right: &'d Datum) -> Result<(&'d Numeric, &'d Numeric), SqlError> {
    match (left, right) {
        (Datum::Numeric(left), Datum::Numeric(right)) => Ok((left, right)),
        _ => Err(wrong_operands()),
    }
}

macro_rules! numeric_functions {
    ($($name:ident: $method:ident;)*) => {$(
        pub(super) fn $name(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
            let (left, right) = numerics(left, right)?;
            left.$method(right).map(Datum::numeric)
        }
    )*};
}

numeric_functions! {
    add_numeric: add;
    subtract_numeric: subtract;
    multiply_numeric: multiply;
    divide_numeric: divide;
    remainder_numeric: remainder;
    power_numeric: power;
}

/// The float of an operand of either width.
pub(super) fn float(datum: &Datum) -> Result<f64, SqlError> {
    match datum {
        Datum::Float4(float) => Ok(f64::from(*float)),
        Datum::Float8(float) => Ok(*float),
        _ => Err(wrong_operands()),
    }
}

/// Refuses an infinite result of finite operands, and zero where it stands for something smaller than all floats.
fn checked(result: f64, operands_are_finite: bool, may_be_zero: bool) -> Result<f64, SqlError> {
    if result.is_infinite() && operands_are_finite {
        return Err(SqlError::new("22003", "value out of range: overflow"));
    }
    if result == 0.0 && !may_be_zero {
        return Err(SqlError::new("22003", "value out of range: underflow"));
    }
    Ok(result)
}

fn compute_add(left: f64, right: f64) -> Result<f64, SqlError> {
    checked(left + right, left.is_finite() && right.is_finite(), true)
}

fn compute_subtract(left: f64, right: f64) -> Result<f64, SqlError> {
    checked(left - right, left.is_finite() && right.is_finite(), true)
}

fn compute_multiply(left: f64, right: f64) -> Result<f64, SqlError> {
    checked(left * right, left.is_finite() && right.is_finite(), left == 0.0 || right == 0.0)
}

fn compute_divide(left: f64, right: f64) -> Result<f64, SqlError> {
    if right == 0.0 && !left.is_nan() {
        return Err(division_by_zero());
    }
    checked(left / right, left.is_finite(), left == 0.0 || right.is_infinite())
}

macro_rules! float_functions {
    ($($compute:ident: $float4:ident $float8:ident;)*) => {$(
        pub(super) fn $float4(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
            float4($compute(float(left)?, float(right)?)?)
        }

        pub(super) fn $float8(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
            $compute(float(left)?, float(right)?).map(Datum::Float8)
        }
    )*};
}

float_functions! {
    compute_add: add_float4 add_float8;
    compute_subtract: subtract_float4 subtract_float8;
    compute_multiply: multiply_float4 multiply_float8;
    compute_divide: divide_float4 divide_float8;
}

/// A power of floats.
pub(crate) fn power(base: f64, exponent: f64) -> Result<f64, SqlError> {
    if base.is_nan() || exponent.is_nan() {
        return Ok(if exponent == 0.0 || base == 1.0 { 1.0 } else { f64::NAN });
    }
    if base == 0.0 && exponent < 0.0 {
        return Err(SqlError::new("2201F", "zero raised to a negative power is undefined"));
    }
    if base < 0.0 && exponent.is_finite() && exponent.floor() != exponent {
        return Err(SqlError::new(
            "2201F",
            "a negative number raised to a non-integer power yields a complex result",
        ));
    }
    checked(
        base.powf(exponent),
        base.is_finite() && exponent.is_finite(),
        base == 0.0 || !base.is_finite() || !exponent.is_finite(),
    )
}

pub(super) fn power_float8(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    power(float(left)?, float(right)?).map(Datum::Float8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_overflow_with_the_name_of_their_type() {
        let error = add_int4(&Datum::Int4(i32::MAX), &Datum::Int4(1)).unwrap_err();
        assert_eq!((error.code, &*error.message), ("22003", "integer out of range"));
        assert_eq!(multiply_int8(&Datum::Int8(i64::MAX), &Datum::Int4(2)).unwrap_err().code, "22003");
        assert_eq!(divide_int8(&Datum::Int8(i64::MIN), &Datum::Int2(-1)).unwrap_err().code, "22003");
        assert_eq!(remainder_int8(&Datum::Int8(i64::MIN), &Datum::Int8(-1)), Ok(Datum::Int8(0)));
        assert_eq!(divide_int4(&Datum::Int4(1), &Datum::Int4(0)).unwrap_err().code, "22012");
        assert_eq!(divide_int4(&Datum::Int4(-7), &Datum::Int4(2)), Ok(Datum::Int4(-3)));
    }

    #[test]
    fn floats_overflow_and_vanish_with_errors() {
        let (large, small) = (Datum::Float8(1e300), Datum::Float8(1e-300));
        assert_eq!(multiply_float8(&large, &large).unwrap_err().code, "22003");
        assert_eq!(multiply_float8(&small, &small).unwrap_err().code, "22003");
        assert_eq!(divide_float8(&large, &Datum::Float8(0.0)).unwrap_err().code, "22012");
        assert_eq!(add_float4(&Datum::Float4(3e38), &Datum::Float4(3e38)).unwrap_err().code, "22003");
    }

    #[test]
    fn shifts_are_by_the_number_modulo_the_width() {
        assert_eq!(shift_left_int4(&Datum::Int4(1), &Datum::Int4(33)), Ok(Datum::Int4(2)));
        assert_eq!(shift_left_int2(&Datum::Int2(1), &Datum::Int4(15)), Ok(Datum::Int2(i16::MIN)));
        assert_eq!(shift_right_int8(&Datum::Int8(-8), &Datum::Int4(1)), Ok(Datum::Int8(-4)));
    }
}
