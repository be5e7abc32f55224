//! Dates and times read from text.
//!
//! Read are the forms of ISO 8601 and those of PostgreSQL's style `ISO, MDY`: `2026-11-05`, `20261105`, `11/5/2026`, `Nov 5 2026`, each
//! with a time, an offset and an era. Names of time zones besides UTC, and the words that depend on the present (`now`, `today`), are not.

use super::calendar::{
    DAY, DAYS_FROM_UNIX, Day, END_OF_DATES, END_OF_TIMESTAMPS, FIRST_DAY, HOUR, INFINITE_DATE,
    INFINITE_TIMESTAMP, MINUTE, NEGATIVE_INFINITE_DATE, NEGATIVE_INFINITE_TIMESTAMP, SECOND, WEEKDAYS,
};
use super::time_scanner::{Flaw, Scanner, month, number, position_of_name, read_offset};
use crate::error::SqlError;

/// A word that stands for a moment.
#[derive(Clone, Copy)]
enum Word {
    Infinity,
    NegativeInfinity,
    Epoch,
}

/// The fields of a text.
#[derive(Default)]
struct Fields<'t> {
    word: Option<Word>,
    day: Option<Day>,
    /// The month that is written as a word, and the numbers around it.
    month: Option<u32>,
    numbers: Vec<&'t str>,
    /// Microseconds since midnight.
    time: Option<i64>,
    /// Seconds east of Greenwich.
    offset: Option<i64>,
    is_before_christ: bool,
    is_afternoon: Option<bool>,
    /// True if a year was written with two digits at most.
    has_short_year: bool,
}

impl<'t> Fields<'t> {
    fn read(text: &'t str) -> Result<Self, Flaw> {
        let mut fields = Self::default();
        let mut scanner = Scanner { rest: text };
        loop {
            scanner.take(|next| next.is_ascii_whitespace() || next == ',');
            match scanner.next() {
                None => break,
                Some('0'..='9') => fields.read_digits(&mut scanner)?,
                Some('+' | '-')
                    if (fields.time.is_some() || fields.day.is_some()) && fields.offset.is_none() =>
                {
                    fields.offset = Some(read_offset(&mut scanner)?);
                }
                Some('-') if scanner.rest.eq_ignore_ascii_case("-infinity") => {
                    fields.word = Some(Word::NegativeInfinity);
                    scanner.rest = "";
                }
                Some(next) if next.is_ascii_alphabetic() => fields.read_word(&mut scanner)?,
                Some(_) => return Err(Flaw::Syntax),
            }
        }
        fields.finish()?;
        Ok(fields)
    }

    fn read_digits(&mut self, scanner: &mut Scanner<'t>) -> Result<(), Flaw> {
        let first = scanner.digits();
        match scanner.next() {
            Some(':') if self.time.is_none() => {
                let mut parts = [number(first)?, 0, 0];
                for part in &mut parts[1..] {
                    if scanner.skip(':') {
                        *part = number(scanner.digits())?;
                    }
                }
                let fraction = scanner.fraction()?;
                self.set_time(parts, fraction)
            }
            Some(separator @ ('-' | '/' | '.'))
                if self.day.is_none()
                    && self.month.is_none()
                    && scanner.rest[1..].starts_with(|next: char| next.is_ascii_alphanumeric()) =>
            {
                scanner.skip(separator);
                let second = scanner.take(|next| next.is_ascii_alphanumeric());
                if !scanner.skip(separator) {
                    return Err(Flaw::Syntax);
                }
                self.set_date(first, second, scanner.digits())
            }
            _ if self.day.is_none() && self.month.is_none() && matches!(first.len(), 6 | 8) => {
                let (year, rest) = first.split_at(first.len() - 4);
                self.has_short_year = year.len() == 2;
                self.day = Some(Day {
                    year: number(year)?,
                    month: number(&rest[..2])? as u32,
                    day: number(&rest[2..])? as u32,
                });
                Ok(())
            }
            _ if self.day.is_some() && self.time.is_none() && matches!(first.len(), 4 | 6) => {
                let part = |at: usize| first.get(at..at + 2).map_or(Ok(0), number);
                let parts = [part(0)?, part(2)?, part(4)?];
                let fraction = scanner.fraction()?;
                self.set_time(parts, fraction)
            }
            _ if self.numbers.len() < 2 && self.day.is_none() => {
                self.numbers.push(first);
                // `8-Jan-1999` is a date, `Jan-8-1999` too.
                scanner.skip('-');
                Ok(())
            }
            _ => Err(Flaw::Syntax),
        }
    }

    fn set_time(&mut self, [hours, minutes, seconds]: [i64; 3], fraction: i64) -> Result<(), Flaw> {
        let time = hours.min(99) * HOUR + minutes.min(99) * MINUTE + seconds.min(99) * SECOND + fraction;
        if minutes > 59 || seconds > 60 || time > DAY {
            return Err(Flaw::Field);
        }
        self.time = Some(time);
        Ok(())
    }

    /// Takes a date of three parts: year, month and day if the year is first, and else month, day and year.
    fn set_date(&mut self, first: &str, second: &str, third: &str) -> Result<(), Flaw> {
        let by_name = month(second);
        let (year, month, day) = match by_name {
            Some(month) if first.len() > 2 => (first, i64::from(month), number(third)?),
            Some(month) => (third, i64::from(month), number(first)?),
            None if first.len() > 2 => (first, number(second)?, number(third)?),
            None => (third, number(first)?, number(second)?),
        };
        self.has_short_year = year.len() <= 2;
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return Err(Flaw::Order);
        }
        self.day = Some(Day { year: number(year)?, month: month as u32, day: day as u32 });
        Ok(())
    }

    fn read_word(&mut self, scanner: &mut Scanner<'t>) -> Result<(), Flaw> {
        let word = scanner.take(|next| next.is_ascii_alphabetic() || matches!(next, '/' | '_'));
        let is = |other: &str| word.eq_ignore_ascii_case(other);
        if is("t") && self.day.is_some() && self.time.is_none() {
            return if scanner.next().is_some_and(|next| next.is_ascii_digit()) {
                Ok(())
            } else {
                Err(Flaw::Syntax)
            };
        }
        if is("bc") || is("ad") {
            self.is_before_christ = is("bc");
        } else if (is("am") || is("pm")) && self.time.is_some() && self.is_afternoon.is_none() {
            self.is_afternoon = Some(is("pm"));
        } else if is("z") || is("zulu") || is("utc") || is("gmt") || is("ut") || is("etc/utc") {
            if self.offset.is_some() {
                return Err(Flaw::Syntax);
            }
            self.offset = Some(0);
        } else if is("infinity") {
            self.word = Some(Word::Infinity);
        } else if is("epoch") {
            self.word = Some(Word::Epoch);
        } else if let Some(month) = month(word) {
            if self.month.replace(month).is_some() {
                return Err(Flaw::Syntax);
            }
            scanner.skip('-');
        } else if word.contains('/') && self.time.is_some() {
            return Err(Flaw::Zone(word.to_lowercase()));
        } else if position_of_name(&WEEKDAYS, word).is_none() {
            return Err(Flaw::Syntax);
        }
        Ok(())
    }

    /// Makes one day of its parts, and checks what depends on several fields.
    fn finish(&mut self) -> Result<(), Flaw> {
        let has_other =
            self.day.is_some() || self.month.is_some() || self.time.is_some() || !self.numbers.is_empty();
        if self.word.is_some() {
            return if has_other { Err(Flaw::Syntax) } else { Ok(()) };
        }
        if let Some(month) = self.month {
            let [first, second] = self.numbers[..] else { return Err(Flaw::Syntax) };
            let (day, year) = if first.len() > 2 { (second, first) } else { (first, second) };
            self.has_short_year = year.len() <= 2;
            self.day = Some(Day { year: number(year)?, month, day: number(day)? as u32 });
        } else if !self.numbers.is_empty() {
            return Err(Flaw::Syntax);
        }
        if let Some(day) = &mut self.day {
            if self.is_before_christ {
                if day.year == 0 {
                    return Err(Flaw::Field);
                }
                day.year = 1 - day.year;
            } else if self.has_short_year {
                day.year += if day.year < 70 { 2_000 } else { 1_900 };
            } else if day.year == 0 {
                return Err(Flaw::Field);
            }
            if !(1..=12).contains(&day.month) || !(1..=31).contains(&day.day) {
                return Err(Flaw::Order);
            }
            if !day.exists() {
                return Err(Flaw::Field);
            }
        }
        if let (Some(is_afternoon), Some(time)) = (self.is_afternoon, &mut self.time) {
            let hours = *time / HOUR;
            if hours > 12 {
                return Err(Flaw::Field);
            }
            *time += match (is_afternoon, hours) {
                (true, 0..=11) => 12 * HOUR,
                (false, 12) => -12 * HOUR,
                _ => 0,
            };
        }
        Ok(())
    }
}

/// Reads a date: days since 2000-01-01.
pub(crate) fn parse_date(text: &str) -> Result<i32, SqlError> {
    let fields = Fields::read(text).map_err(|flaw| flaw.error(text, "date"))?;
    let number = match (fields.word, fields.day) {
        (Some(Word::Infinity), _) => return Ok(INFINITE_DATE),
        (Some(Word::NegativeInfinity), _) => return Ok(NEGATIVE_INFINITE_DATE),
        (Some(Word::Epoch), _) => -DAYS_FROM_UNIX,
        (None, Some(day)) => day.number(),
        (None, None) => return Err(Flaw::Syntax.error(text, "date")),
    };
    match i32::try_from(number) {
        Ok(number) if (FIRST_DAY..END_OF_DATES).contains(&number) => Ok(number),
        _ => Err(SqlError::new("22008", format!("date out of range: \"{text}\""))),
    }
}

/// Reads a timestamp: microseconds since 2000-01-01. An offset counts only for one with a time zone.
pub(crate) fn parse_timestamp(text: &str, has_zone: bool) -> Result<i64, SqlError> {
    let name = if has_zone { "timestamp with time zone" } else { "timestamp" };
    let fields = Fields::read(text).map_err(|flaw| flaw.error(text, name))?;
    let day = match (fields.word, fields.day) {
        (Some(Word::Infinity), _) => return Ok(INFINITE_TIMESTAMP),
        (Some(Word::NegativeInfinity), _) => return Ok(NEGATIVE_INFINITE_TIMESTAMP),
        (Some(Word::Epoch), _) => -DAYS_FROM_UNIX,
        (None, Some(day)) => day.number(),
        (None, None) => return Err(Flaw::Syntax.error(text, name)),
    };
    let offset = if has_zone { fields.offset.unwrap_or(0) * SECOND } else { 0 };
    let moment = i128::from(day) * i128::from(DAY) + i128::from(fields.time.unwrap_or(0) - offset);
    match i64::try_from(moment) {
        Ok(moment) if (i64::from(FIRST_DAY) * DAY..END_OF_TIMESTAMPS).contains(&moment) => Ok(moment),
        _ => Err(SqlError::new("22008", format!("timestamp out of range: \"{text}\""))),
    }
}

/// Reads a time of day: microseconds since midnight.
pub(crate) fn parse_time(text: &str) -> Result<i64, SqlError> {
    let trimmed = text.trim_ascii();
    let fields = match trimmed.len() {
        // Digits alone are a time here.
        4 | 6 if trimmed.bytes().all(|byte| byte.is_ascii_digit()) => {
            let with_colons: Vec<&str> =
                (0..trimmed.len()).step_by(2).map(|at| &trimmed[at..at + 2]).collect();
            let with_colons = with_colons.join(":");
            Fields::read(&with_colons).map(|fields| fields.time)
        }
        _ => Fields::read(text).map(|fields| fields.time),
    };
    let time = fields.map_err(|flaw| flaw.error(text, "time"))?;
    time.ok_or_else(|| Flaw::Syntax.error(text, "time"))
}

#[cfg(test)]
mod tests {
    use super::super::time_text::{write_date, write_timestamp};
    use super::*;

    fn timestamp(text: &str, has_zone: bool) -> String {
        let mut out = Vec::new();
        write_timestamp(parse_timestamp(text, has_zone).unwrap(), has_zone, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_moment_has_many_forms() {
        for text in [
            "2024-03-05 06:07:08.25",
            "2024-03-05T06:07:08.25",
            "20240305 060708.25",
            "3/5/2024 6:07:08.25 AM",
            "Mar 5 2024 06:07:08.25",
            "5 March 2024, 06:07:08.25",
            "5-Mar-2024 06:07:08.25",
            "Tue Mar 05 06:07:08.25 2024",
        ] {
            assert_eq!(timestamp(text, false), "2024-03-05 06:07:08.25", "{text}");
        }
        for text in [
            "2024-03-05 06:07:08Z",
            "2024-03-05 08:07:08+02",
            "2024-03-05 00:37:08-05:30",
            "2024-03-05T06:07:08+0000",
        ] {
            assert_eq!(timestamp(text, true), "2024-03-05 06:07:08+00", "{text}");
        }
        assert_eq!(timestamp("2024-03-05 23:59:59.9999999", false), "2024-03-06 00:00:00");
        assert_eq!(timestamp("0044-03-15 12:00 BC", false), "0044-03-15 12:00:00 BC");
    }

    #[test]
    fn dates_and_times_are_read() {
        let date = |text: &str| {
            let mut out = Vec::new();
            write_date(parse_date(text).unwrap(), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(date("2024-1-5"), "2024-01-05");
        assert_eq!(date("1/5/69"), "2069-01-05");
        assert_eq!(date("epoch"), "1970-01-01");
        assert_eq!(date("-infinity"), "-infinity");
        assert_eq!(parse_time("12:30").unwrap(), 12 * HOUR + 30 * MINUTE);
        assert_eq!(parse_time("123045").unwrap(), 12 * HOUR + 30 * MINUTE + 45 * SECOND);
    }

    #[test]
    fn errors_tell_what_is_wrong() {
        for (text, code) in [
            ("nonsense", "22007"),
            ("", "22007"),
            ("2024-13-01", "22008"),
            ("2024-02-30", "22008"),
            ("0000-01-01", "22008"),
            ("5874898-01-01", "22008"),
            ("2024-01-01-01-01", "22007"),
            ("é", "22007"),
        ] {
            assert_eq!(parse_date(text).unwrap_err().code, code, "{text}");
        }
        assert_eq!(parse_timestamp("2024-01-01 25:00", false).unwrap_err().code, "22008");
        assert_eq!(parse_timestamp("294277-01-01", false).unwrap_err().code, "22008");
        assert_eq!(parse_timestamp("2024-01-01 00:00+16", true).unwrap_err().code, "22009");
    }
}
