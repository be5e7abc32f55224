//! `interval`: months, days and microseconds.

use super::calendar::{DAY, HOUR, MINUTE, SECOND};
use crate::error::SqlError;
use hotrow::Stored;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A span of time. Months and days are kept apart, because they are of no fixed length; a month counts as 30 days and a day as 24 hours
/// where spans are compared.
#[derive(Debug, Clone, Copy, Default, Stored)]
pub struct Interval {
    /// Months, 12 for each year.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub microseconds: i64,
}

/// The error of a span that is too long.
pub(crate) fn out_of_range() -> SqlError {
    SqlError::new("22008", "interval out of range")
}

impl Interval {
    /// The length in microseconds, by which spans are compared.
    pub fn length(self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * i128::from(DAY)
            + i128::from(self.microseconds)
    }

    /// The span of the other direction.
    ///
    /// # Errors
    ///
    /// If it is out of range (22008).
    pub fn negated(self) -> Result<Self, SqlError> {
        Interval::default().minus(self)
    }

    /// The sum of both.
    ///
    /// # Errors
    ///
    /// If it is out of range (22008).
    pub fn plus(self, other: Self) -> Result<Self, SqlError> {
        self.combine(other, i32::checked_add, i64::checked_add)
    }

    /// The difference of both.
    ///
    /// # Errors
    ///
    /// If it is out of range (22008).
    pub fn minus(self, other: Self) -> Result<Self, SqlError> {
        self.combine(other, i32::checked_sub, i64::checked_sub)
    }

    fn combine(
        self,
        other: Self,
        whole: fn(i32, i32) -> Option<i32>,
        long: fn(i64, i64) -> Option<i64>,
    ) -> Result<Self, SqlError> {
        let sum = || {
            Some(Self {
                months: whole(self.months, other.months)?,
                days: whole(self.days, other.days)?,
                microseconds: long(self.microseconds, other.microseconds)?,
            })
        };
        sum().ok_or_else(out_of_range)
    }

    /// The span that is this many times as long. Fractions of months go over to days, and those of days to the time.
    ///
    /// # Errors
    ///
    /// If it is out of range (22008).
    pub fn multiply(self, factor: f64) -> Result<Self, SqlError> {
        self.scale(|value| value * factor)
    }

    fn scale(self, scale: impl Fn(f64) -> f64) -> Result<Self, SqlError> {
        let fits = |value: f64| value.is_finite() && value.abs() <= f64::from(i32::MAX);
        let (months, days) = (scale(f64::from(self.months)), scale(f64::from(self.days)));
        if !fits(months) || !fits(days) {
            return Err(out_of_range());
        }
        let round = |value: f64| (value * SECOND as f64).round_ties_even() / SECOND as f64;
        let mut month_days = round((months - months.trunc()) * 30.0);
        let mut seconds = round((days - days.trunc() + month_days - month_days.trunc()) * 86_400.0);
        // Rounding may fill a whole day.
        if seconds.abs() >= 86_400.0 {
            month_days += (seconds / 86_400.0).trunc();
            seconds -= (seconds / 86_400.0).trunc() * 86_400.0;
        }
        let all_days = days.trunc() + month_days.trunc();
        let microseconds = (scale(self.microseconds as f64) + seconds * SECOND as f64).round_ties_even();
        if !fits(all_days) || microseconds.is_nan() || microseconds.abs() >= 9.223_372_036_854_775e18 {
            return Err(out_of_range());
        }
        Ok(Self { months: months.trunc() as i32, days: all_days as i32, microseconds: microseconds as i64 })
    }

    /// The part of the span. Fractions of months go over to days, and those of days to the time.
    ///
    /// # Errors
    ///
    /// If it is out of range (22008). The divisor must not be zero.
    pub fn divide(self, divisor: f64) -> Result<Self, SqlError> {
        self.scale(|value| value / divisor)
    }

    /// The span with each 30 days as a month.
    ///
    /// # Errors
    ///
    /// If it is out of range (22008).
    pub fn justify_days(self) -> Result<Self, SqlError> {
        let mut months = i64::from(self.months) + i64::from(self.days / 30);
        let mut days = self.days % 30;
        if months > 0 && days < 0 {
            (months, days) = (months - 1, days + 30);
        } else if months < 0 && days > 0 {
            (months, days) = (months + 1, days - 30);
        }
        let months = i32::try_from(months).map_err(|_| out_of_range())?;
        Ok(Self { months, days, microseconds: self.microseconds })
    }

    /// The span with each 24 hours as a day, each 30 days as a month, and all parts of the same sign.
    ///
    /// # Errors
    ///
    /// If it is out of range (22008).
    pub fn justify(self) -> Result<Self, SqlError> {
        let days = i64::from(self.days) + self.microseconds / DAY;
        let (mut months, mut days) = (i64::from(self.months) + days / 30, days % 30);
        let mut microseconds = self.microseconds % DAY;
        let sign_of_rest = if days == 0 { microseconds.signum() } else { days.signum() };
        if months > 0 && sign_of_rest < 0 {
            (months, days) = (months - 1, days + 30);
        } else if months < 0 && sign_of_rest > 0 {
            (months, days) = (months + 1, days - 30);
        }
        if days > 0 && microseconds < 0 {
            (days, microseconds) = (days - 1, microseconds + DAY);
        } else if days < 0 && microseconds > 0 {
            (days, microseconds) = (days + 1, microseconds - DAY);
        }
        let months = i32::try_from(months).map_err(|_| out_of_range())?;
        Ok(Self { months, days: days as i32, microseconds })
    }

    /// The span with each 24 hours as a day.
    ///
    /// # Errors
    ///
    /// If it is out of range (22008).
    pub fn justify_hours(self) -> Result<Self, SqlError> {
        let mut days = i64::from(self.days) + self.microseconds / DAY;
        let mut microseconds = self.microseconds % DAY;
        if days > 0 && microseconds < 0 {
            (days, microseconds) = (days - 1, microseconds + DAY);
        } else if days < 0 && microseconds > 0 {
            (days, microseconds) = (days + 1, microseconds - DAY);
        }
        let days = i32::try_from(days).map_err(|_| out_of_range())?;
        Ok(Self { months: self.months, days, microseconds })
    }
}

impl PartialEq for Interval {
    fn eq(&self, other: &Self) -> bool {
        self.length() == other.length()
    }
}

impl Eq for Interval {}

impl PartialOrd for Interval {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Interval {
    fn cmp(&self, other: &Self) -> Ordering {
        self.length().cmp(&other.length())
    }
}

impl Hash for Interval {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.length().hash(state);
    }
}

impl fmt::Display for Interval {
    /// Shows it as PostgreSQL does with its style `postgres`: `1 year 2 mons 3 days 04:05:06`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut is_first, mut was_negative) = (true, false);
        for (count, unit) in [(self.months / 12, "year"), (self.months % 12, "mon"), (self.days, "day")] {
            if count != 0 {
                let blank = if is_first { "" } else { " " };
                let plus = if was_negative && count > 0 { "+" } else { "" };
                let plural = if count == 1 { "" } else { "s" };
                write!(f, "{blank}{plus}{count} {unit}{plural}")?;
                (is_first, was_negative) = (false, count < 0);
            }
        }
        if self.microseconds != 0 || is_first {
            let sign = if self.microseconds < 0 {
                "-"
            } else if was_negative {
                "+"
            } else {
                ""
            };
            let blank = if is_first { "" } else { " " };
            let time = self.microseconds.unsigned_abs();
            let (hours, rest) = (time / HOUR as u64, time % HOUR as u64);
            let (minutes, rest) = (rest / MINUTE as u64, rest % MINUTE as u64);
            let (seconds, fraction) = (rest / SECOND as u64, rest % SECOND as u64);
            write!(f, "{blank}{sign}{hours:02}:{minutes:02}:{seconds:02}")?;
            if fraction != 0 {
                write!(f, ".{}", format!("{fraction:06}").trim_end_matches('0'))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_shown_as_postgresql_shows_them() {
        for (months, days, microseconds, text) in [
            (0, 0, 0, "00:00:00"),
            (14, 3, 4 * HOUR + 5 * MINUTE + 6 * SECOND, "1 year 2 mons 3 days 04:05:06"),
            (-1, 1, -SECOND / 2, "-1 mons +1 day -00:00:00.5"),
            (0, -1, HOUR, "-1 days +01:00:00"),
            (12, 0, 0, "1 year"),
        ] {
            assert_eq!(Interval { months, days, microseconds }.to_string(), text);
        }
    }

    #[test]
    fn a_month_equals_thirty_days() {
        let (month, days) =
            (Interval { months: 1, ..Interval::default() }, Interval { days: 30, ..Interval::default() });
        assert_eq!(month, days);
        assert!(days < Interval { days: 30, microseconds: 1, months: 0 });
        assert!(Interval { months: i32::MIN, ..Interval::default() }.negated().is_err());
    }
}
