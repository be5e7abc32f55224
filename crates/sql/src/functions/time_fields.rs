//! Fields of dates and times: `extract`, `date_part` and `date_trunc`.

use super::function::{Function, function, text, wrong_arguments};
use crate::error::SqlError;
use crate::values::calendar::{
    DAY, DAYS_FROM_UNIX, Day, FIRST_DAY, HOUR, MINUTE, SECOND, is_timestamp, weekday,
};
use crate::values::{Datum, Interval as Span, Numeric, Type};
use Type::{Date, Float8, Interval, Numeric as Decimal, Text, Time, Timestamp, TimestampTz};

pub(super) const FUNCTIONS: &[Function] = &[
    function("extract", &[Text, Date], Decimal, |arguments, _| extract(arguments)),
    function("extract", &[Text, Time], Decimal, |arguments, _| extract(arguments)),
    function("extract", &[Text, Timestamp], Decimal, |arguments, _| extract(arguments)),
    function("extract", &[Text, TimestampTz], Decimal, |arguments, _| extract(arguments)),
    function("extract", &[Text, Interval], Decimal, |arguments, _| extract(arguments)),
    function("date_part", &[Text, Date], Float8, |arguments, _| date_part(arguments)),
    function("date_part", &[Text, Time], Float8, |arguments, _| date_part(arguments)),
    function("date_part", &[Text, Timestamp], Float8, |arguments, _| date_part(arguments)),
    function("date_part", &[Text, TimestampTz], Float8, |arguments, _| date_part(arguments)),
    function("date_part", &[Text, Interval], Float8, |arguments, _| date_part(arguments)),
    function("date_trunc", &[Text, Timestamp], Timestamp, |arguments, _| truncate(arguments)),
    function("date_trunc", &[Text, TimestampTz], TimestampTz, |arguments, _| truncate(arguments)).stable(),
    function("date_trunc", &[Text, TimestampTz, Text], TimestampTz, |arguments, _| {
        let zone = text(arguments, 2)?;
        if !matches!(zone.to_ascii_uppercase().as_str(), "UTC" | "GMT" | "Z" | "ETC/UTC") {
            return Err(SqlError::new("22023", format!("time zone \"{zone}\" not recognized")));
        }
        truncate(arguments)
    })
    .stable(),
    function("date_trunc", &[Text, Interval], Interval, |arguments, _| truncate(arguments)),
];

/// A field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Julian,
    IsoYear,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Epoch,
    Timezone,
    TimezoneHour,
    TimezoneMinute,
}

/// The field of a name.
fn field(name: &str) -> Option<Field> {
    Some(match name.to_ascii_lowercase().as_str() {
        "microseconds" | "microsecond" | "us" | "usec" | "usecs" | "usecond" | "useconds" => {
            Field::Microseconds
        }
        "milliseconds" | "millisecond" | "ms" | "msec" | "msecs" | "msecond" | "mseconds" => {
            Field::Milliseconds
        }
        "second" | "seconds" | "s" | "sec" | "secs" => Field::Second,
        "minute" | "minutes" | "m" | "min" | "mins" => Field::Minute,
        "hour" | "hours" | "h" | "hr" | "hrs" => Field::Hour,
        "day" | "days" | "d" => Field::Day,
        "week" | "weeks" | "w" => Field::Week,
        "month" | "months" | "mon" | "mons" => Field::Month,
        "quarter" | "qtr" => Field::Quarter,
        "year" | "years" | "y" | "yr" | "yrs" => Field::Year,
        "decade" | "decades" | "dec" | "decs" => Field::Decade,
        "century" | "centuries" | "c" | "cent" => Field::Century,
        "millennium" | "millennia" | "mil" | "mils" => Field::Millennium,
        "julian" | "jd" | "j" => Field::Julian,
        "isoyear" => Field::IsoYear,
        "dow" => Field::DayOfWeek,
        "isodow" => Field::IsoDayOfWeek,
        "doy" => Field::DayOfYear,
        "epoch" => Field::Epoch,
        "timezone" => Field::Timezone,
        "timezone_hour" | "timezone_h" => Field::TimezoneHour,
        "timezone_minute" | "timezone_m" => Field::TimezoneMinute,
        _ => return None,
    })
}

/// The field that an argument names, among those that are `wanted`.
fn named(arguments: &[Datum], wanted: impl Fn(Field) -> bool) -> Result<(Field, &str, Type), SqlError> {
    let name = text(arguments, 0)?;
    let ty = match arguments.get(1) {
        Some(Datum::Date(_)) => Date,
        Some(Datum::Time(_)) => Time,
        Some(Datum::Timestamp(_)) => Timestamp,
        Some(Datum::TimestampTz(_)) => TimestampTz,
        Some(Datum::Interval(_)) => Interval,
        _ => return Err(wrong_arguments()),
    };
    let unknown = || {
        let name = name.to_ascii_lowercase();
        SqlError::new("22023", format!("unit \"{name}\" not recognized for type {}", ty.name()))
    };
    field(name).filter(|field| wanted(*field)).map(|field| (field, name, ty)).ok_or_else(unknown)
}

fn unsupported(name: &str, ty: Type) -> SqlError {
    let name = name.to_ascii_lowercase();
    SqlError::new("0A000", format!("unit \"{name}\" not supported for type {}", ty.name()))
}

/// A year as people count it: there is no year 0.
fn year_of_era(year: i64) -> i64 {
    if year > 0 { year } else { year - 1 }
}

/// The number of periods of so many years that have begun by a year, counted from 1 on and before Christ from -1 down.
fn period(year: i64, length: i64) -> i64 {
    if year > 0 { (year + length - 1) / length } else { -((length - 1 - (year - 1)) / length) }
}

/// A field of a day; none if it is none of a day.
fn of_day(day: Day, number: i64, field: Field) -> Option<i64> {
    Some(match field {
        Field::Day => i64::from(day.day),
        Field::Week => day.week().1,
        Field::Month => i64::from(day.month),
        Field::Quarter => i64::from(day.month - 1) / 3 + 1,
        Field::Year => year_of_era(day.year),
        Field::Decade => day.year.div_euclid(10),
        Field::Century => period(day.year, 100),
        Field::Millennium => period(day.year, 1_000),
        Field::Julian => number - i64::from(FIRST_DAY),
        Field::IsoYear => year_of_era(day.week().0),
        Field::DayOfWeek => weekday(number),
        Field::IsoDayOfWeek => (weekday(number) + 6) % 7 + 1,
        Field::DayOfYear => day.of_year(),
        _ => return None,
    })
}

/// A field of a time of day; none if it is none of a time.
fn of_time(time: i64, field: Field) -> Option<Numeric> {
    Some(match field {
        Field::Microseconds => Numeric::from(time % MINUTE),
        Field::Milliseconds => Numeric::of_i128(i128::from(time % MINUTE), 3),
        Field::Second => Numeric::of_i128(i128::from(time % MINUTE), 6),
        Field::Minute => Numeric::from(time % HOUR / MINUTE),
        Field::Hour => Numeric::from(time / HOUR),
        _ => return None,
    })
}

/// A field of a moment.
fn of_moment(moment: i64, field: Field, name: &str, ty: Type) -> Result<Numeric, SqlError> {
    let (number, time) = (moment.div_euclid(DAY), moment.rem_euclid(DAY));
    if field == Field::Julian {
        let fraction = Numeric::from(time).divide(&Numeric::from(DAY))?;
        return Numeric::from(number - i64::from(FIRST_DAY)).add(&fraction);
    }
    if let Some(value) = of_day(Day::of_number(number), number, field) {
        return Ok(Numeric::from(value));
    }
    if let Some(value) = of_time(time, field) {
        return Ok(value);
    }
    match field {
        Field::Epoch => Ok(Numeric::of_i128(i128::from(moment) + i128::from(DAYS_FROM_UNIX * DAY), 6)),
        Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute if ty == TimestampTz => {
            Ok(Numeric::from(0))
        }
        _ => Err(unsupported(name, ty)),
    }
}

/// A field of a moment that never comes, or has never been: those that grow without bound are infinite, the others are null.
fn of_infinity(is_negative: bool, field: Field) -> Datum {
    match field {
        Field::Year
        | Field::Decade
        | Field::Century
        | Field::Millennium
        | Field::Julian
        | Field::IsoYear
        | Field::Epoch => Datum::numeric(Numeric::infinity(is_negative)),
        _ => Datum::Null,
    }
}

fn of_span(span: Span, field: Field, name: &str) -> Result<Numeric, SqlError> {
    let (years, months) = (i64::from(span.months / 12), i64::from(span.months % 12));
    Ok(match field {
        Field::Day => Numeric::from(i64::from(span.days)),
        Field::Month => Numeric::from(months),
        Field::Quarter => Numeric::from(months / 3 + 1),
        Field::Year => Numeric::from(years),
        Field::Decade => Numeric::from(years / 10),
        Field::Century => Numeric::from(years / 100),
        Field::Millennium => Numeric::from(years / 1_000),
        Field::Epoch => {
            // A year is 365.25 days here, and what is left over of it months of 30 days.
            let days = i128::from(years) * 1_461 + 4 * (i128::from(months) * 30 + i128::from(span.days));
            Numeric::of_i128(days * i128::from(DAY) / 4 + i128::from(span.microseconds), 6)
        }
        field => of_time(span.microseconds, field).ok_or_else(|| unsupported(name, Interval))?,
    })
}

fn extract(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let (field, name, ty) = named(arguments, |_| true)?;
    let number = match &arguments[1] {
        Datum::Timestamp(moment @ (i64::MIN | i64::MAX))
        | Datum::TimestampTz(moment @ (i64::MIN | i64::MAX)) => {
            return Ok(of_infinity(*moment < 0, field));
        }
        Datum::Timestamp(moment) | Datum::TimestampTz(moment) => of_moment(*moment, field, name, ty)?,
        Datum::Date(days) => {
            let number = i64::from(*days);
            let is_infinite = matches!(*days, i32::MIN | i32::MAX);
            let day = Day::of_number(if is_infinite { 0 } else { number });
            let value = match field {
                Field::Epoch => (number + DAYS_FROM_UNIX) * 86_400,
                field => of_day(day, number, field).ok_or_else(|| unsupported(name, ty))?,
            };
            if is_infinite {
                return Ok(of_infinity(*days < 0, field));
            }
            Numeric::from(value)
        }
        Datum::Time(time) => match field {
            Field::Epoch => Numeric::of_i128(i128::from(*time), 6),
            field => of_time(*time, field).ok_or_else(|| unsupported(name, ty))?,
        },
        Datum::Interval(span) => of_span(*span, field, name)?,
        _ => return Err(wrong_arguments()),
    };
    Ok(Datum::numeric(number))
}

fn date_part(arguments: &[Datum]) -> Result<Datum, SqlError> {
    // A date has the fields of its midnight here.
    let part = match arguments {
        [name, Datum::Date(days)] => {
            extract(&[name.clone(), Datum::Timestamp(crate::values::casts::midnight(*days)?)])?
        }
        arguments => extract(arguments)?,
    };
    Ok(match part {
        Datum::Numeric(number) => Datum::Float8(number.to_f64()),
        other => other,
    })
}

/// The start of the period of a field that a year is in.
fn first_year(year: i64, field: Field) -> i64 {
    let start = |length: i64| (year - 1).div_euclid(length) * length + 1;
    match field {
        Field::Decade => year.div_euclid(10) * 10,
        Field::Century => start(100),
        Field::Millennium => start(1_000),
        _ => year,
    }
}

fn truncate_moment(moment: i64, field: Field) -> Option<i64> {
    let (number, time) = (moment.div_euclid(DAY), moment.rem_euclid(DAY));
    let unit = match field {
        Field::Microseconds => 1,
        Field::Milliseconds => 1_000,
        Field::Second => SECOND,
        Field::Minute => MINUTE,
        Field::Hour => HOUR,
        _ => {
            let day = Day::of_number(number);
            let first = match field {
                Field::Day => number,
                Field::Week => number - (weekday(number) + 6) % 7,
                Field::Month => Day { day: 1, ..day }.number(),
                Field::Quarter => Day { month: (day.month - 1) / 3 * 3 + 1, day: 1, ..day }.number(),
                Field::Year | Field::Decade | Field::Century | Field::Millennium => {
                    Day { year: first_year(day.year, field), month: 1, day: 1 }.number()
                }
                _ => return None,
            };
            return Some(first * DAY);
        }
    };
    Some(number * DAY + time / unit * unit)
}

fn truncate_span(span: Span, field: Field) -> Option<Span> {
    let whole = |months: i32| Span { months: span.months / months * months, days: 0, microseconds: 0 };
    let with_time = |unit: i64| Span { microseconds: span.microseconds / unit * unit, ..span };
    Some(match field {
        Field::Microseconds => span,
        Field::Milliseconds => with_time(1_000),
        Field::Second => with_time(SECOND),
        Field::Minute => with_time(MINUTE),
        Field::Hour => with_time(HOUR),
        Field::Day => Span { microseconds: 0, ..span },
        Field::Month => whole(1),
        Field::Quarter => whole(3),
        Field::Year => whole(12),
        Field::Decade => whole(120),
        Field::Century => whole(1_200),
        Field::Millennium => whole(12_000),
        _ => return None,
    })
}

fn truncate(arguments: &[Datum]) -> Result<Datum, SqlError> {
    match arguments[1] {
        Datum::Timestamp(i64::MIN | i64::MAX) | Datum::TimestampTz(i64::MIN | i64::MAX) => {
            return Ok(arguments[1].clone());
        }
        _ => {}
    }
    // Fields that are no periods are not even known here.
    let (field, name, ty) = named(arguments, |field| !(Field::Julian..=Field::Epoch).contains(&field))?;
    let of_moment = |moment: i64| {
        let truncated = truncate_moment(moment, field).ok_or_else(|| unsupported(name, ty))?;
        if is_timestamp(truncated) {
            Ok(truncated)
        } else {
            Err(SqlError::new("22008", "timestamp out of range"))
        }
    };
    Ok(match &arguments[1] {
        Datum::Timestamp(moment) => Datum::Timestamp(of_moment(*moment)?),
        Datum::TimestampTz(moment) => Datum::TimestampTz(of_moment(*moment)?),
        Datum::Interval(span) => {
            let refused = || {
                let error = unsupported(name, ty);
                if field == Field::Week {
                    error.detail("Months usually have fractional weeks.")
                } else {
                    error
                }
            };
            Datum::Interval(truncate_span(*span, field).ok_or_else(refused)?)
        }
        _ => return Err(wrong_arguments()),
    })
}
