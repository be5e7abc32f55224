//! Functions of numbers.

use super::function::{Function, float, function, integer as integer_of, wrong_arguments};
use crate::error::SqlError;
use crate::values::casts::{integer, out_of_range};
use crate::values::{
    Datum, Numeric, Operator, PrefixOperation, PrefixOperator, Type, binary_operator, power,
};
use Type::{Float4, Float8, Int2, Int4, Int8, Numeric as Decimal};

pub(super) const FUNCTIONS: &[Function] = &[
    function("abs", &[Float4], Float4, |arguments, _| absolute(&arguments[0], Float4)),
    function("abs", &[Float8], Float8, |arguments, _| absolute(&arguments[0], Float8)),
    function("abs", &[Int2], Int2, |arguments, _| absolute(&arguments[0], Int2)),
    function("abs", &[Int4], Int4, |arguments, _| absolute(&arguments[0], Int4)),
    function("abs", &[Int8], Int8, |arguments, _| absolute(&arguments[0], Int8)),
    function("abs", &[Decimal], Decimal, |arguments, _| absolute(&arguments[0], Decimal)),
    function("ceil", &[Float8], Float8, |arguments, _| of_float(arguments, f64::ceil)),
    function("ceil", &[Decimal], Decimal, |arguments, _| of_decimal(arguments, Numeric::ceiling)),
    function("ceiling", &[Float8], Float8, |arguments, _| of_float(arguments, f64::ceil)),
    function("ceiling", &[Decimal], Decimal, |arguments, _| of_decimal(arguments, Numeric::ceiling)),
    function("floor", &[Float8], Float8, |arguments, _| of_float(arguments, f64::floor)),
    function("floor", &[Decimal], Decimal, |arguments, _| of_decimal(arguments, Numeric::floor)),
    function("round", &[Float8], Float8, |arguments, _| of_float(arguments, f64::round_ties_even)),
    function("round", &[Decimal], Decimal, |arguments, _| of_decimal(arguments, |number| number.round(0))),
    function("round", &[Decimal, Int4], Decimal, |arguments, _| scaled(arguments, Numeric::round)),
    function("trunc", &[Float8], Float8, |arguments, _| of_float(arguments, f64::trunc)),
    function("trunc", &[Decimal], Decimal, |arguments, _| of_decimal(arguments, |number| number.truncate(0))),
    function("trunc", &[Decimal, Int4], Decimal, |arguments, _| scaled(arguments, Numeric::truncate)),
    function("sign", &[Float8], Float8, |arguments, _| {
        of_float(arguments, |value| {
            if value > 0.0 {
                1.0
            } else if value < 0.0 {
                -1.0
            } else {
                0.0
            }
        })
    }),
    function("sign", &[Decimal], Decimal, |arguments, _| of_decimal(arguments, |number| Ok(number.sign()))),
    function("sqrt", &[Float8], Float8, |arguments, _| {
        let value = float(arguments, 0)?;
        if value < 0.0 {
            return Err(SqlError::new("2201F", "cannot take square root of a negative number"));
        }
        Ok(Datum::Float8(value.sqrt()))
    }),
    function("sqrt", &[Decimal], Decimal, |arguments, _| of_decimal(arguments, Numeric::square_root)),
    function("cbrt", &[Float8], Float8, |arguments, _| of_float(arguments, f64::cbrt)),
    function("exp", &[Float8], Float8, |arguments, _| {
        let value = float(arguments, 0)?;
        in_range(value.exp(), value.is_finite(), value.is_infinite())
    }),
    function("exp", &[Decimal], Decimal, |arguments, _| of_decimal(arguments, Numeric::exponential)),
    function("ln", &[Float8], Float8, |arguments, _| logarithm(arguments, f64::ln)),
    function("ln", &[Decimal], Decimal, |arguments, _| of_decimal(arguments, Numeric::natural_logarithm)),
    function("log", &[Float8], Float8, |arguments, _| logarithm(arguments, f64::log10)),
    function("log", &[Decimal], Decimal, |arguments, _| of_decimal(arguments, decimal_logarithm)),
    function("log", &[Decimal, Decimal], Decimal, |arguments, _| {
        decimal(arguments, 1)?.logarithm(decimal(arguments, 0)?).map(Datum::numeric)
    }),
    function("log10", &[Float8], Float8, |arguments, _| logarithm(arguments, f64::log10)),
    function("log10", &[Decimal], Decimal, |arguments, _| of_decimal(arguments, decimal_logarithm)),
    function("pow", &[Float8, Float8], Float8, float_power),
    function("pow", &[Decimal, Decimal], Decimal, decimal_power),
    function("power", &[Float8, Float8], Float8, float_power),
    function("power", &[Decimal, Decimal], Decimal, decimal_power),
    function("mod", &[Int2, Int2], Int2, |arguments, _| remainder(arguments)),
    function("mod", &[Int4, Int4], Int4, |arguments, _| remainder(arguments)),
    function("mod", &[Int8, Int8], Int8, |arguments, _| remainder(arguments)),
    function("mod", &[Decimal, Decimal], Decimal, |arguments, _| remainder(arguments)),
    function("div", &[Decimal, Decimal], Decimal, |arguments, _| {
        decimal(arguments, 0)?.divide_whole(decimal(arguments, 1)?).map(Datum::numeric)
    }),
    function("gcd", &[Int4, Int4], Int4, |arguments, _| divisor(arguments, Int4)),
    function("gcd", &[Int8, Int8], Int8, |arguments, _| divisor(arguments, Int8)),
    function("lcm", &[Int4, Int4], Int4, |arguments, _| multiple(arguments, Int4)),
    function("lcm", &[Int8, Int8], Int8, |arguments, _| multiple(arguments, Int8)),
    function("factorial", &[Int8], Decimal, |arguments, _| factorial(integer_of(arguments, 0)?)),
    function("scale", &[Decimal], Int4, |arguments, _| {
        let number = decimal(arguments, 0)?;
        Ok(if number.is_finite() { Datum::Int4(number.scale() as i32) } else { Datum::Null })
    }),
    function("min_scale", &[Decimal], Int4, |arguments, _| {
        let number = decimal(arguments, 0)?;
        Ok(if number.is_finite() { Datum::Int4(number.trimmed().scale() as i32) } else { Datum::Null })
    }),
    function("trim_scale", &[Decimal], Decimal, |arguments, _| {
        of_decimal(arguments, |number| Ok(number.trimmed()))
    }),
    function("pi", &[], Float8, |_, _| Ok(Datum::Float8(std::f64::consts::PI))),
    function("degrees", &[Float8], Float8, |arguments, _| {
        of_float(arguments, |value| value / (std::f64::consts::PI / 180.0))
    }),
    function("radians", &[Float8], Float8, |arguments, _| {
        of_float(arguments, |value| value * (std::f64::consts::PI / 180.0))
    }),
    function("sin", &[Float8], Float8, |arguments, _| angle(arguments, f64::sin)),
    function("cos", &[Float8], Float8, |arguments, _| angle(arguments, f64::cos)),
    function("tan", &[Float8], Float8, |arguments, _| angle(arguments, f64::tan)),
    function("asin", &[Float8], Float8, |arguments, _| of_sine(arguments, f64::asin)),
    function("acos", &[Float8], Float8, |arguments, _| of_sine(arguments, f64::acos)),
    function("atan", &[Float8], Float8, |arguments, _| of_float(arguments, f64::atan)),
    function("atan2", &[Float8, Float8], Float8, |arguments, _| {
        Ok(Datum::Float8(float(arguments, 0)?.atan2(float(arguments, 1)?)))
    }),
];

/// The `numeric` of an argument.
fn decimal(arguments: &[Datum], place: usize) -> Result<&Numeric, SqlError> {
    match arguments.get(place) {
        Some(Datum::Numeric(number)) => Ok(number),
        _ => Err(wrong_arguments()),
    }
}

fn absolute(value: &Datum, ty: Type) -> Result<Datum, SqlError> {
    PrefixOperation { operator: PrefixOperator::Absolute, ty }.apply(value)
}

fn of_float(arguments: &[Datum], compute: impl Fn(f64) -> f64) -> Result<Datum, SqlError> {
    Ok(Datum::Float8(compute(float(arguments, 0)?)))
}

fn of_decimal(
    arguments: &[Datum],
    compute: impl Fn(&Numeric) -> Result<Numeric, SqlError>,
) -> Result<Datum, SqlError> {
    compute(decimal(arguments, 0)?).map(Datum::numeric)
}

fn scaled(
    arguments: &[Datum],
    compute: impl Fn(&Numeric, i32) -> Result<Numeric, SqlError>,
) -> Result<Datum, SqlError> {
    let scale = integer_of(arguments, 1)? as i32;
    compute(decimal(arguments, 0)?, scale).map(Datum::numeric)
}

fn decimal_logarithm(number: &Numeric) -> Result<Numeric, SqlError> {
    number.logarithm(&Numeric::from(10))
}

/// Refuses a result that is infinite, or zero, where the exact one is neither.
fn in_range(result: f64, is_bounded: bool, may_be_zero: bool) -> Result<Datum, SqlError> {
    if result.is_infinite() && is_bounded {
        return Err(SqlError::new("22003", "value out of range: overflow"));
    }
    if result == 0.0 && !may_be_zero {
        return Err(SqlError::new("22003", "value out of range: underflow"));
    }
    Ok(Datum::Float8(result))
}

fn logarithm(arguments: &[Datum], compute: fn(f64) -> f64) -> Result<Datum, SqlError> {
    let value = float(arguments, 0)?;
    if value == 0.0 {
        return Err(SqlError::new("2201E", "cannot take logarithm of zero"));
    }
    if value < 0.0 {
        return Err(SqlError::new("2201E", "cannot take logarithm of a negative number"));
    }
    Ok(Datum::Float8(compute(value)))
}

fn angle(arguments: &[Datum], compute: fn(f64) -> f64) -> Result<Datum, SqlError> {
    let value = float(arguments, 0)?;
    if value.is_infinite() {
        return Err(SqlError::new("22003", "input is out of range"));
    }
    Ok(Datum::Float8(compute(value)))
}

fn of_sine(arguments: &[Datum], compute: fn(f64) -> f64) -> Result<Datum, SqlError> {
    let value = float(arguments, 0)?;
    if value.abs() > 1.0 {
        return Err(SqlError::new("22003", "input is out of range"));
    }
    Ok(Datum::Float8(compute(value)))
}

fn float_power(arguments: &[Datum], _: &super::Environment<'_>) -> Result<Datum, SqlError> {
    power(float(arguments, 0)?, float(arguments, 1)?).map(Datum::Float8)
}

fn decimal_power(arguments: &[Datum], _: &super::Environment<'_>) -> Result<Datum, SqlError> {
    decimal(arguments, 0)?.power(decimal(arguments, 1)?).map(Datum::numeric)
}

fn remainder(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let [left, right] = arguments else { return Err(wrong_arguments()) };
    binary_operator(Operator::Remainder, left, right)
}

fn greatest_divisor(mut left: u64, mut right: u64) -> u64 {
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}

fn divisor(arguments: &[Datum], ty: Type) -> Result<Datum, SqlError> {
    let (left, right) = (integer_of(arguments, 0)?, integer_of(arguments, 1)?);
    let divisor = greatest_divisor(left.unsigned_abs(), right.unsigned_abs());
    integer(i64::try_from(divisor).map_err(|_| out_of_range(ty))?, ty)
}

fn multiple(arguments: &[Datum], ty: Type) -> Result<Datum, SqlError> {
    let (left, right) = (integer_of(arguments, 0)?, integer_of(arguments, 1)?);
    let divisor = greatest_divisor(left.unsigned_abs(), right.unsigned_abs());
    if divisor == 0 {
        return integer(0, ty);
    }
    let multiple = (left.unsigned_abs() / divisor).checked_mul(right.unsigned_abs());
    integer(multiple.and_then(|multiple| i64::try_from(multiple).ok()).ok_or_else(|| out_of_range(ty))?, ty)
}

fn factorial(number: i64) -> Result<Datum, SqlError> {
    if number < 0 {
        return Err(SqlError::new("22003", "factorial of a negative number is undefined"));
    }
    // The factorial of this is the last that has no more digits than a number may have.
    if number > 32_177 {
        return Err(SqlError::new("22003", "value overflows numeric format"));
    }
    let mut product = Numeric::from(1);
    for factor in 2..=number {
        product = product.multiply(&Numeric::from(factor))?;
    }
    Ok(Datum::numeric(product))
}
