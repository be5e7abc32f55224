//! Spans of time read from text: `1 day 02:03:04`, `2 weeks ago`, `P1Y2M3DT4H5M6S`.

use super::calendar::{DAY, HOUR, MINUTE, SECOND};
use super::interval::Interval;
use crate::error::SqlError;

/// A unit of a span, in months, days and microseconds.
#[derive(Clone, Copy, PartialEq)]
struct Unit {
    months: f64,
    days: f64,
    microseconds: f64,
}

const fn months(months: f64) -> Unit {
    Unit { months, days: 0.0, microseconds: 0.0 }
}

const fn days(days: f64) -> Unit {
    Unit { months: 0.0, days, microseconds: 0.0 }
}

const fn time(microseconds: i64) -> Unit {
    Unit { months: 0.0, days: 0.0, microseconds: microseconds as f64 }
}

/// The unit of a name.
fn unit(name: &str) -> Option<Unit> {
    Some(match name {
        "microsecond" | "microseconds" | "us" | "usec" | "usecs" | "useconds" => time(1),
        "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" | "mseconds" => time(1_000),
        "second" | "seconds" | "s" | "sec" | "secs" => time(SECOND),
        "minute" | "minutes" | "m" | "min" | "mins" => time(MINUTE),
        "hour" | "hours" | "h" | "hr" | "hrs" => time(HOUR),
        "day" | "days" | "d" => days(1.0),
        "week" | "weeks" | "w" => days(7.0),
        "month" | "months" | "mon" | "mons" => months(1.0),
        "quarter" | "qtr" => months(3.0),
        "year" | "years" | "y" | "yr" | "yrs" => months(12.0),
        "decade" | "decades" | "dec" | "decs" => months(120.0),
        "century" | "centuries" | "c" | "cent" => months(1_200.0),
        "millennium" | "millennia" | "mil" | "mils" => months(12_000.0),
        _ => return None,
    })
}

/// The interval, as far as it is read.
#[derive(Default)]
struct Sum {
    months: f64,
    days: f64,
    microseconds: f64,
}

impl Sum {
    /// Adds a number of units. The fraction of a month is some days, and that of a day some time.
    fn add(&mut self, number: f64, unit: Unit) {
        let months = number * unit.months;
        // Fractions of years are whole months, rounded; those of months are days.
        let whole = if unit.months >= 12.0 { months.round_ties_even() } else { months.trunc() };
        let rest = if unit.months >= 12.0 { 0.0 } else { months - months.trunc() };
        self.months += whole;
        let days = number * unit.days + rest * 30.0;
        // A binary fraction of a month must not lose a day.
        let days = (days * 1e9).round() / 1e9;
        self.days += days.trunc();
        self.microseconds += (days - days.trunc()) * DAY as f64 + number * unit.microseconds;
    }

    fn interval(self) -> Option<Interval> {
        let fits = |value: f64| (value.abs() <= f64::from(i32::MAX)).then_some(value as i32);
        let microseconds = self.microseconds.round_ties_even();
        if microseconds.abs() >= 9.223_372_036_854_775e18 {
            return None;
        }
        Some(Interval {
            months: fits(self.months)?,
            days: fits(self.days)?,
            microseconds: microseconds as i64,
        })
    }
}

/// Splits a number from the front of a text.
fn number(text: &str) -> Option<(f64, &str)> {
    let after_sign = text.strip_prefix(['+', '-']).unwrap_or(text);
    let length =
        after_sign.find(|next: char| !next.is_ascii_digit() && next != '.').unwrap_or(after_sign.len());
    let end = text.len() - after_sign.len() + length;
    if length == 0 || length > 40 {
        return None;
    }
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Reads `1:02`, `1:02:03` or `1:02:03.5`, without a sign, as microseconds.
fn clock(text: &str) -> Option<Result<f64, ()>> {
    let parts: Vec<&str> = text.split(':').collect();
    let whole = |part: &str| {
        (part.len() <= 12 && !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| part.parse::<f64>().ok())
            .flatten()
    };
    let (hours, minutes, seconds) = match parts[..] {
        // Minutes and seconds, if the latter have a fraction.
        [minutes, seconds] if seconds.contains('.') => (0.0, whole(minutes)?, number(seconds)?),
        [hours, minutes] => (whole(hours)?, whole(minutes)?, (0.0, "")),
        [hours, minutes, seconds] => (whole(hours)?, whole(minutes)?, number(seconds)?),
        _ => return None,
    };
    if !seconds.1.is_empty() || seconds.0 < 0.0 {
        return None;
    }
    if minutes > 59.0 || seconds.0 > 60.0 {
        return Some(Err(()));
    }
    Some(Ok(hours * HOUR as f64 + minutes * MINUTE as f64 + (seconds.0 * SECOND as f64).round_ties_even()))
}

/// Reads the form of ISO 8601, after its `P`.
fn designated(text: &str, sum: &mut Sum) -> Option<()> {
    let (mut rest, mut is_time) = (text, false);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(['T', 't']) {
            if is_time || after.is_empty() {
                return None;
            }
            (rest, is_time) = (after, true);
            continue;
        }
        let (count, after) = number(rest)?;
        let designator = after.chars().next()?;
        sum.add(
            count,
            match (designator.to_ascii_uppercase(), is_time) {
                ('Y', false) => months(12.0),
                ('M', false) => months(1.0),
                ('W', false) => days(7.0),
                ('D', false) => days(1.0),
                ('H', true) => time(HOUR),
                ('M', true) => time(MINUTE),
                ('S', true) => time(SECOND),
                _ => return None,
            },
        );
        rest = &after[designator.len_utf8()..];
    }
    Some(())
}

/// Reads a span.
pub(crate) fn parse_interval(text: &str) -> Result<Interval, SqlError> {
    let invalid = || SqlError::new("22007", format!("invalid input syntax for type interval: \"{text}\""));
    let out_of_range = || SqlError::new("22015", format!("interval field value out of range: \"{text}\""));
    let mut sum = Sum::default();
    let trimmed = text.trim_ascii();
    if let Some(rest) = trimmed.strip_prefix(['P', 'p']).filter(|rest| !rest.is_empty()) {
        designated(rest, &mut sum).ok_or_else(invalid)?;
        return sum.interval().ok_or_else(out_of_range);
    }
    let lower = trimmed.to_ascii_lowercase();
    let lower = lower.strip_prefix('@').unwrap_or(&lower);
    // Words and numbers, which may stand together as in `3h`.
    let mut words: Vec<&str> = Vec::new();
    for part in lower.split_ascii_whitespace() {
        let end = if part.starts_with(|next: char| next.is_ascii_alphabetic()) {
            part.len()
        } else {
            part.find(|next: char| next.is_ascii_alphabetic()).unwrap_or(part.len())
        };
        words.push(&part[..end]);
        if end < part.len() {
            words.push(&part[end..]);
        }
    }
    let is_ago = words.last() == Some(&"ago");
    if is_ago {
        words.pop();
    }
    if words.is_empty() {
        return Err(invalid());
    }
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
        let sign = if word.starts_with('-') { -1.0 } else { 1.0 };
        if unsigned.contains(':') {
            let time = clock(unsigned).ok_or_else(invalid)?.map_err(|()| out_of_range())?;
            sum.microseconds += sign * time;
            continue;
        }
        if let Some((years, of_year)) = unsigned.split_once('-') {
            let part = |digits: &str| {
                (!digits.is_empty() && digits.len() < 9)
                    .then(|| digits.parse::<u32>().ok())
                    .flatten()
                    .ok_or_else(invalid)
            };
            let (years, of_year) = (part(years)?, part(of_year)?);
            if of_year > 11 {
                return Err(out_of_range());
            }
            sum.months += sign * (f64::from(years) * 12.0 + f64::from(of_year));
            continue;
        }
        let (count, rest) = number(word).ok_or_else(invalid)?;
        if !rest.is_empty() {
            return Err(invalid());
        }
        let unit = match words.next() {
            Some(name) => {
                let known = unit(name);
                // `1 02:03:04` is a day and a time.
                if known.is_none() && name.contains(':') {
                    let time = name.strip_prefix(['+', '-']).unwrap_or(name);
                    let time = clock(time).ok_or_else(invalid)?.map_err(|()| out_of_range())?;
                    sum.microseconds += if name.starts_with('-') || sign < 0.0 { -time } else { time };
                    Unit { months: 0.0, days: 1.0, microseconds: 0.0 }
                } else {
                    known.ok_or_else(invalid)?
                }
            }
            None => time(SECOND),
        };
        sum.add(count, unit);
    }
    let interval = sum.interval().ok_or_else(out_of_range)?;
    if is_ago { interval.negated().map_err(|_| out_of_range()) } else { Ok(interval) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_in_all_forms() {
        for (text, shown) in [
            ("1 day", "1 day"),
            ("1 year 2 mons 3 days 04:05:06.5", "1 year 2 mons 3 days 04:05:06.5"),
            ("P1Y2M3DT4H5M6S", "1 year 2 mons 3 days 04:05:06"),
            ("2 weeks ago", "-14 days"),
            ("1.5 days", "1 day 12:00:00"),
            ("1.5 months", "1 mon 15 days"),
            ("-1 day +02:03", "-1 days +02:03:00"),
            ("3h 20min", "03:20:00"),
            ("1-2", "1 year 2 mons"),
            ("1 02:03:04", "1 day 02:03:04"),
            ("90", "00:01:30"),
            ("500 ms", "00:00:00.5"),
            ("0.5 year", "6 mons"),
        ] {
            assert_eq!(parse_interval(text).unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for text in ["", "day", "1 lightyear", "1:2:3:4", "P", "P1", "P1X", "ago", "é"] {
            assert_eq!(parse_interval(text).unwrap_err().code, "22007", "{text}");
        }
        assert_eq!(parse_interval("99999999999 years").unwrap_err().code, "22015");
        assert_eq!(parse_interval("00:61").unwrap_err().code, "22015");
    }
}
