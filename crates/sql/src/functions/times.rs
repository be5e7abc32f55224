//! Functions of dates and times: the clock, and dates made of their fields.

use super::environment::Environment;
use super::function::{Function, float, function, integer, wrong_arguments};
use crate::error::SqlError;
use crate::values::calendar::{
    DAY, DAYS_FROM_UNIX, Day, HOUR, MINUTE, SECOND, days_of_month, is_date, is_timestamp,
};
use crate::values::casts::date_of;
use crate::values::{Datum, Interval as Span, Type, between};
use Type::{Bool, Date, Float8, Int4, Interval, Time, Timestamp, TimestampTz};

pub(super) const FUNCTIONS: &[Function] = &[
    function("now", &[], TimestampTz, |_, environment| Ok(Datum::TimestampTz(environment.now))).stable(),
    function("transaction_timestamp", &[], TimestampTz, |_, environment| {
        Ok(Datum::TimestampTz(environment.now))
    })
    .stable(),
    function("current_timestamp", &[], TimestampTz, |_, environment| Ok(Datum::TimestampTz(environment.now)))
        .stable(),
    function("current_timestamp", &[Int4], TimestampTz, |arguments, environment| {
        Ok(Datum::TimestampTz(rounded(environment.now, arguments)?))
    })
    .stable(),
    function("localtimestamp", &[], Timestamp, |_, environment| Ok(Datum::Timestamp(environment.now)))
        .stable(),
    function("localtimestamp", &[Int4], Timestamp, |arguments, environment| {
        Ok(Datum::Timestamp(rounded(environment.now, arguments)?))
    })
    .stable(),
    function("current_date", &[], Date, |_, environment| Ok(Datum::Date(date_of(environment.now)))).stable(),
    function("localtime", &[], Time, |_, environment| Ok(Datum::Time(environment.now.rem_euclid(DAY))))
        .stable(),
    function("statement_timestamp", &[], TimestampTz, |_, environment| {
        Ok(Datum::TimestampTz(environment.statement_time))
    })
    .stable(),
    function("clock_timestamp", &[], TimestampTz, |_, environment| {
        Ok(Datum::TimestampTz(environment.settings.clock()))
    })
    .volatile(),
    function("to_timestamp", &[Float8], TimestampTz, |arguments, _| from_seconds(float(arguments, 0)?)),
    function("make_date", &[Int4, Int4, Int4], Date, |arguments, _| {
        make_day(arguments).map(|days| Datum::Date(days as i32))
    }),
    function("make_time", &[Int4, Int4, Float8], Time, |arguments, _| {
        make_time(arguments, 0).map(Datum::Time)
    }),
    function("make_timestamp", &[Int4, Int4, Int4, Int4, Int4, Float8], Timestamp, |arguments, _| {
        let (day, time) = (make_day(arguments)?, make_time(arguments, 3)?);
        let moment = day.checked_mul(DAY).and_then(|midnight| midnight.checked_add(time));
        moment
            .filter(|moment| is_timestamp(*moment))
            .map(Datum::Timestamp)
            .ok_or_else(|| out_of_range("timestamp"))
    }),
    function("make_interval", &[], Interval, |arguments, _| make_interval(arguments)),
    function("make_interval", &[Int4], Interval, |arguments, _| make_interval(arguments)),
    function("make_interval", &[Int4, Int4], Interval, |arguments, _| make_interval(arguments)),
    function("make_interval", &[Int4, Int4, Int4], Interval, |arguments, _| make_interval(arguments)),
    function("make_interval", &[Int4, Int4, Int4, Int4], Interval, |arguments, _| make_interval(arguments)),
    function("make_interval", &[Int4, Int4, Int4, Int4, Int4], Interval, |arguments, _| {
        make_interval(arguments)
    }),
    function("make_interval", &[Int4, Int4, Int4, Int4, Int4, Int4], Interval, |arguments, _| {
        make_interval(arguments)
    }),
    function("make_interval", &[Int4, Int4, Int4, Int4, Int4, Int4, Float8], Interval, |arguments, _| {
        make_interval(arguments)
    }),
    function("age", &[Timestamp, Timestamp], Interval, |arguments, _| {
        age(moment(arguments, 0)?, moment(arguments, 1)?)
    }),
    function("age", &[TimestampTz, TimestampTz], Interval, |arguments, _| {
        age(moment(arguments, 0)?, moment(arguments, 1)?)
    }),
    function("age", &[Timestamp], Interval, |arguments, environment| {
        age(today(environment), moment(arguments, 0)?)
    })
    .stable(),
    function("age", &[TimestampTz], Interval, |arguments, environment| {
        age(today(environment), moment(arguments, 0)?)
    })
    .stable(),
    function("isfinite", &[Date], Bool, |arguments, _| {
        Ok(Datum::Bool(!matches!(arguments[0], Datum::Date(i32::MIN | i32::MAX))))
    }),
    function("isfinite", &[Timestamp], Bool, |arguments, _| is_finite(arguments)),
    function("isfinite", &[TimestampTz], Bool, |arguments, _| is_finite(arguments)),
    function("isfinite", &[Interval], Bool, |_, _| Ok(Datum::Bool(true))),
    function("justify_days", &[Interval], Interval, |arguments, _| justified(arguments, Span::justify_days)),
    function("justify_hours", &[Interval], Interval, |arguments, _| {
        justified(arguments, Span::justify_hours)
    }),
    function("justify_interval", &[Interval], Interval, |arguments, _| justified(arguments, Span::justify)),
];

fn out_of_range(name: &str) -> SqlError {
    SqlError::new("22008", format!("{name} out of range"))
}

/// The microseconds of an argument that is a timestamp of either kind.
pub(super) fn moment(arguments: &[Datum], place: usize) -> Result<i64, SqlError> {
    match arguments.get(place) {
        Some(Datum::Timestamp(moment) | Datum::TimestampTz(moment)) => Ok(*moment),
        _ => Err(wrong_arguments()),
    }
}

fn is_finite(arguments: &[Datum]) -> Result<Datum, SqlError> {
    Ok(Datum::Bool(!matches!(moment(arguments, 0)?, i64::MIN | i64::MAX)))
}

fn justified(
    arguments: &[Datum],
    justify: impl Fn(Span) -> Result<Span, SqlError>,
) -> Result<Datum, SqlError> {
    match arguments.first() {
        Some(Datum::Interval(span)) => justify(*span).map(Datum::Interval),
        _ => Err(wrong_arguments()),
    }
}

/// The midnight before the transaction's start.
fn today(environment: &Environment<'_>) -> i64 {
    environment.now.div_euclid(DAY) * DAY
}

/// A time with the digits of the fraction that an argument says.
fn rounded(moment: i64, arguments: &[Datum]) -> Result<i64, SqlError> {
    let precision = integer(arguments, 0)?.clamp(0, 6) as i32;
    let datum = crate::values::apply_modifier(Datum::Timestamp(moment), Timestamp, precision)?;
    match datum {
        Datum::Timestamp(moment) => Ok(moment),
        _ => Ok(moment),
    }
}

/// The moment of seconds since 1970.
fn from_seconds(seconds: f64) -> Result<Datum, SqlError> {
    if seconds.is_nan() {
        return Err(SqlError::new("22008", "timestamp cannot be NaN"));
    }
    if seconds.is_infinite() {
        return Ok(Datum::TimestampTz(if seconds > 0.0 { i64::MAX } else { i64::MIN }));
    }
    let since = seconds - (DAYS_FROM_UNIX * 86_400) as f64;
    let microseconds = (since * SECOND as f64).round_ties_even();
    let moment = microseconds as i64;
    if !(-2.2e17..9.3e18).contains(&microseconds) || !is_timestamp(moment) {
        return Err(SqlError::new("22008", format!("timestamp out of range: \"{seconds}\"")));
    }
    Ok(Datum::TimestampTz(moment))
}

fn make_day(arguments: &[Datum]) -> Result<i64, SqlError> {
    let fields = [integer(arguments, 0)?, integer(arguments, 1)?, integer(arguments, 2)?];
    let [year, month, day] = fields;
    let shown = || format!("{year}-{month:02}-{day:02}");
    // A negative year is one before Christ; there is no year 0.
    let calendar_year = if year < 0 { year + 1 } else { year };
    let is_valid = year != 0
        && (1..=12).contains(&month)
        && (1..=i64::from(days_of_month(calendar_year, month as u32))).contains(&day);
    if !is_valid {
        return Err(SqlError::new("22008", format!("date field value out of range: {}", shown())));
    }
    let number = Day { year: calendar_year, month: month as u32, day: day as u32 }.number();
    match i32::try_from(number) {
        Ok(days) if is_date(days) => Ok(number),
        _ => Err(SqlError::new("22008", format!("date out of range: {}", shown()))),
    }
}

fn make_time(arguments: &[Datum], first: usize) -> Result<i64, SqlError> {
    let (hour, minute, second) =
        (integer(arguments, first)?, integer(arguments, first + 1)?, float(arguments, first + 2)?);
    let is_valid = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&second);
    let time = if is_valid {
        hour * HOUR + minute * MINUTE + (second * SECOND as f64).round_ties_even() as i64
    } else {
        -1
    };
    if !(0..=DAY).contains(&time) {
        let message = format!("time field value out of range: {hour}:{minute:02}:{second:02}");
        return Err(SqlError::new("22008", message));
    }
    Ok(time)
}

/// Years, months, weeks, days, hours, minutes and seconds; those left out are none.
fn make_interval(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let field = |place: usize| if place < arguments.len() { integer(arguments, place) } else { Ok(0) };
    let seconds = if arguments.len() > 6 { float(arguments, 6)? } else { 0.0 };
    let microseconds = (seconds * SECOND as f64).round_ties_even();
    let narrow = |wide: i64| i32::try_from(wide).map_err(|_| out_of_range("interval"));
    if !microseconds.is_finite() || microseconds.abs() > 9e18 {
        return Err(out_of_range("interval"));
    }
    Ok(Datum::Interval(Span {
        months: narrow(field(0)? * 12 + field(1)?)?,
        days: narrow(field(2)? * 7 + field(3)?)?,
        microseconds: (field(4)? * HOUR + field(5)? * MINUTE)
            .checked_add(microseconds as i64)
            .ok_or_else(|| out_of_range("interval"))?,
    }))
}

/// The span between two moments in years, months, days and time, as a calendar shows it.
fn age(later: i64, earlier: i64) -> Result<Datum, SqlError> {
    if matches!(later, i64::MIN | i64::MAX) || matches!(earlier, i64::MIN | i64::MAX) {
        // Not a span: the error is that of a subtraction.
        return between(later, earlier).map(Datum::Interval);
    }
    let is_reversed = later < earlier;
    let (greater, less) = if is_reversed { (earlier, later) } else { (later, earlier) };
    let (to, from) = (Day::of_number(greater.div_euclid(DAY)), Day::of_number(less.div_euclid(DAY)));
    let mut time = greater.rem_euclid(DAY) - less.rem_euclid(DAY);
    let mut days = i64::from(to.day) - i64::from(from.day);
    let mut months = (to.year - from.year) * 12 + i64::from(to.month) - i64::from(from.month);
    if time < 0 {
        (time, days) = (time + DAY, days - 1);
    }
    // Days are borrowed from the month of the earlier moment.
    while days < 0 {
        days += i64::from(days_of_month(from.year, from.month));
        months -= 1;
    }
    let sign = if is_reversed { -1 } else { 1 };
    Ok(Datum::Interval(Span {
        months: (sign * months) as i32,
        days: (sign * days) as i32,
        microseconds: sign * time,
    }))
}
