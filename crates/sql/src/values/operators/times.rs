//! Arithmetic of dates, times and spans.

use super::numbers::{float, wrong_operands};
use crate::error::SqlError;
use crate::values::calendar::{
    DAY, Day, END_OF_TIMESTAMPS, FIRST_DAY, INFINITE_DATE, INFINITE_TIMESTAMP, NEGATIVE_INFINITE_DATE,
    NEGATIVE_INFINITE_TIMESTAMP, is_date,
};
use crate::values::casts::midnight;
use crate::values::interval::out_of_range;
use crate::values::numeric::division_by_zero;
use crate::values::{Datum, Interval};

fn is_infinite(moment: i64) -> bool {
    matches!(moment, INFINITE_TIMESTAMP | NEGATIVE_INFINITE_TIMESTAMP)
}

fn is_infinite_date(days: i32) -> bool {
    matches!(days, INFINITE_DATE | NEGATIVE_INFINITE_DATE)
}

fn timestamp_out_of_range() -> SqlError {
    SqlError::new("22008", "timestamp out of range")
}

/// A timestamp in the range of timestamps.
fn in_range(moment: Option<i64>) -> Result<i64, SqlError> {
    moment
        .filter(|moment| (i64::from(FIRST_DAY) * DAY..END_OF_TIMESTAMPS).contains(moment))
        .ok_or_else(timestamp_out_of_range)
}

/// The timestamp that is a span later: first its months, then its days, then its time.
fn add_interval(moment: i64, interval: Interval) -> Result<i64, SqlError> {
    if is_infinite(moment) {
        return Ok(moment);
    }
    let (mut day, time) = (moment.div_euclid(DAY), moment.rem_euclid(DAY));
    if interval.months != 0 {
        day = Day::of_number(day).add_months(i64::from(interval.months)).number();
    }
    day += i64::from(interval.days);
    let midnight = day.checked_mul(DAY);
    in_range(midnight.and_then(|midnight| midnight.checked_add(time)?.checked_add(interval.microseconds)))
}

/// The span between two timestamps, in days and time.
pub(crate) fn between(left: i64, right: i64) -> Result<Interval, SqlError> {
    if is_infinite(left) || is_infinite(right) {
        return Err(SqlError::new("22008", "cannot subtract infinite timestamps"));
    }
    let microseconds = left.checked_sub(right).ok_or_else(out_of_range)?;
    Interval { microseconds, ..Interval::default() }.justify_hours()
}

fn date_plus(days: i32, count: i64) -> Result<Datum, SqlError> {
    if is_infinite_date(days) {
        return Ok(Datum::Date(days));
    }
    i32::try_from(i64::from(days) + count)
        .ok()
        .filter(|sum| is_date(*sum) && !is_infinite_date(*sum))
        .map(Datum::Date)
        .ok_or_else(|| SqlError::new("22008", "date out of range"))
}

pub(super) fn add_days(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    match (left, right) {
        (Datum::Date(days), Datum::Int4(count)) | (Datum::Int4(count), Datum::Date(days)) => {
            date_plus(*days, i64::from(*count))
        }
        _ => Err(wrong_operands()),
    }
}

pub(super) fn subtract_days(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    match (left, right) {
        (Datum::Date(days), Datum::Int4(count)) => date_plus(*days, -i64::from(*count)),
        (Datum::Date(left), Datum::Date(right)) => {
            if is_infinite_date(*left) || is_infinite_date(*right) {
                return Err(SqlError::new("22008", "cannot subtract infinite dates"));
            }
            // The range of dates spans fewer than 2³² days, as PostgreSQL's subtraction wraps.
            Ok(Datum::Int4(left.wrapping_sub(*right)))
        }
        _ => Err(wrong_operands()),
    }
}

/// A moment and a span, in either order; the moment's type is that of the result.
pub(super) fn add_span(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    match (left, right) {
        (Datum::Interval(left), Datum::Interval(right)) => left.plus(*right).map(Datum::Interval),
        (moment, Datum::Interval(interval)) | (Datum::Interval(interval), moment) => shift(moment, *interval),
        _ => Err(wrong_operands()),
    }
}

pub(super) fn subtract_span(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    match (left, right) {
        (Datum::Interval(left), Datum::Interval(right)) => left.minus(*right).map(Datum::Interval),
        (moment, Datum::Interval(interval)) => shift(moment, interval.negated()?),
        _ => Err(wrong_operands()),
    }
}

fn shift(moment: &Datum, interval: Interval) -> Result<Datum, SqlError> {
    match moment {
        Datum::Timestamp(moment) => add_interval(*moment, interval).map(Datum::Timestamp),
        Datum::TimestampTz(moment) => add_interval(*moment, interval).map(Datum::TimestampTz),
        Datum::Date(days) => add_interval(midnight(*days)?, interval).map(Datum::Timestamp),
        Datum::Time(time) => Ok(Datum::Time((time + interval.microseconds % DAY).rem_euclid(DAY))),
        _ => Err(wrong_operands()),
    }
}

pub(super) fn subtract_moments(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    match (left, right) {
        (Datum::Timestamp(left), Datum::Timestamp(right))
        | (Datum::TimestampTz(left), Datum::TimestampTz(right)) => {
            between(*left, *right).map(Datum::Interval)
        }
        (Datum::Time(left), Datum::Time(right)) => {
            Ok(Datum::Interval(Interval { microseconds: left - right, ..Interval::default() }))
        }
        _ => Err(wrong_operands()),
    }
}

pub(super) fn add_date_and_time(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    match (left, right) {
        (Datum::Date(days), Datum::Time(time)) | (Datum::Time(time), Datum::Date(days)) => {
            let midnight = midnight(*days)?;
            if is_infinite(midnight) {
                return Ok(Datum::Timestamp(midnight));
            }
            in_range(midnight.checked_add(*time)).map(Datum::Timestamp)
        }
        _ => Err(wrong_operands()),
    }
}

pub(super) fn multiply_span(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    match (left, right) {
        (Datum::Interval(interval), factor) | (factor, Datum::Interval(interval)) => {
            interval.multiply(float(factor)?).map(Datum::Interval)
        }
        _ => Err(wrong_operands()),
    }
}

pub(super) fn divide_span(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    let (Datum::Interval(interval), divisor) = (left, float(right)?) else { return Err(wrong_operands()) };
    if divisor == 0.0 {
        return Err(division_by_zero());
    }
    interval.divide(divisor).map(Datum::Interval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Type;

    fn value(text: &str, ty: Type) -> Datum {
        Datum::parse(text, ty).unwrap()
    }

    #[test]
    fn months_are_added_before_days() {
        let sum =
            add_span(&value("2024-01-31", Type::Timestamp), &value("1 month 1 day", Type::Interval)).unwrap();
        assert_eq!(sum.to_text(Type::Timestamp), "2024-03-01 00:00:00");
        let difference =
            subtract_span(&value("2024-03-31", Type::Date), &value("1 month", Type::Interval)).unwrap();
        assert_eq!(difference.to_text(Type::Timestamp), "2024-02-29 00:00:00");
    }

    #[test]
    fn differences_are_days_and_time() {
        let (left, right) =
            (value("2024-03-01 01:00", Type::Timestamp), value("2024-02-28 02:00", Type::Timestamp));
        assert_eq!(subtract_moments(&left, &right).unwrap().to_text(Type::Interval), "1 day 23:00:00");
        let infinite = value("infinity", Type::Timestamp);
        assert_eq!(subtract_moments(&infinite, &right).unwrap_err().code, "22008");
    }

    #[test]
    fn what_leaves_the_calendar_is_refused() {
        let last = value("5874897-12-31", Type::Date);
        assert_eq!(add_days(&last, &Datum::Int4(1)).unwrap_err().code, "22008");
        assert_eq!(
            add_days(&value("infinity", Type::Date), &Datum::Int4(1)),
            Ok(value("infinity", Type::Date))
        );
        let span = value("300000 years", Type::Interval);
        assert_eq!(add_span(&value("2024-01-01", Type::Timestamp), &span).unwrap_err().code, "22008");
        assert_eq!(divide_span(&span, &Datum::Float8(0.0)).unwrap_err().code, "22012");
    }
}
