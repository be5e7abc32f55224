//! `to_char`, `to_date` and `to_timestamp`: dates and times by patterns such as `YYYY-MM-DD HH24:MI:SS`.

use crate::error::SqlError;
use crate::values::calendar::{
    DAY, Day, FIRST_DAY, HOUR, MINUTE, MONTHS, SECOND, WEEKDAYS, days_of_month, is_timestamp, weekday,
};
use crate::values::{BYTES_MAX, Datum, Interval, too_long};
use std::fmt::Write;

/// The parts of patterns, the longest first where one begins another.
const KEYS: [&str; 62] = [
    "SSSSS", "Y,YYY", "MONTH", "Month", "month", "HH24", "HH12", "SSSS", "YYYY", "IYYY", "YYY", "IYY", "MON",
    "Mon", "mon", "DAY", "Day", "day", "DDD", "TZH", "TZM", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "A.M.",
    "P.M.", "a.m.", "p.m.", "B.C.", "A.D.", "b.c.", "a.d.", "HH", "MI", "SS", "MS", "US", "YY", "IY", "MM",
    "DD", "DY", "Dy", "dy", "ID", "IW", "WW", "AM", "PM", "am", "pm", "BC", "AD", "bc", "ad", "CC", "RM",
    "TZ", "OF",
];
/// The parts of one letter.
const LETTERS: [char; 6] = ['Y', 'I', 'D', 'W', 'Q', 'J'];

/// A part of a pattern.
enum Part<'p> {
    Key { name: &'p str, fills: bool, ordinal: Option<&'p str> },
    Literal(&'p str),
}

/// Splits a pattern into its parts.
fn parts(pattern: &str) -> Vec<Part<'_>> {
    let (mut parts, mut rest) = (Vec::new(), pattern);
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            let end = rest[1..].find('"').map_or(rest.len(), |end| end + 1);
            parts.push(Part::Literal(&rest[1..end]));
            rest = rest.get(end + 1..).unwrap_or_default();
            continue;
        }
        let (fills, after) = match rest.get(..2) {
            Some("FM" | "fm") => (false, &rest[2..]),
            _ => (true, rest),
        };
        let length = KEYS
            .iter()
            .find(|key| after.get(..key.len()).is_some_and(|start| matches_key(start, key)))
            .map(|key| key.len())
            .or_else(|| {
                after.starts_with(|next: char| LETTERS.contains(&next.to_ascii_uppercase())).then_some(1)
            });
        let Some(length) = length else {
            if fills {
                parts.push(Part::Literal(&rest[..first.len_utf8()]));
                rest = &rest[first.len_utf8()..];
            } else {
                // A mode without a part changes nothing.
                rest = after;
            }
            continue;
        };
        let (name, mut after) = after.split_at(length);
        let ordinal = after.get(..2).filter(|mark| mark.eq_ignore_ascii_case("th"));
        if ordinal.is_some() {
            after = &after[2..];
        }
        parts.push(Part::Key { name, fills, ordinal });
        rest = after;
    }
    parts
}

/// True if a text is a part: numbers in any case, words in the case that the part has.
fn matches_key(start: &str, key: &str) -> bool {
    let is_word = matches!(
        key.to_ascii_uppercase().as_str(),
        "MONTH" | "MON" | "DAY" | "DY" | "AM" | "PM" | "A.M." | "P.M." | "BC" | "AD" | "B.C." | "A.D."
    );
    if is_word { start == key } else { start.eq_ignore_ascii_case(key) }
}

/// A word in the case of a part.
fn in_case(word: &str, key: &str) -> String {
    let mut letters = key.chars().filter(|letter| letter.is_ascii_alphabetic());
    match (
        letters.next().is_some_and(|first| first.is_uppercase()),
        letters.next().is_some_and(|next| next.is_uppercase()),
    ) {
        (true, true) => word.to_uppercase(),
        (false, _) => word.to_lowercase(),
        _ => word.to_owned(),
    }
}

fn ordinal_mark(number: i64) -> &'static str {
    match (number.abs() % 100, number.abs() % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

const ROMAN_MONTHS: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// The fields that patterns show.
struct Fields {
    /// Of a span its whole years, else the year of the calendar.
    year: i64,
    /// Of a span the months beyond its years.
    month: i64,
    day: i64,
    /// Microseconds since midnight; of a span, its whole time.
    time: i64,
    /// The day of the calendar and its number; none for a span.
    calendar: Option<(Day, i64)>,
    has_zone: bool,
}

/// A year as people count it, without its era.
fn shown_year(year: i64) -> i64 {
    if year > 0 { year } else { 1 - year }
}

impl Fields {
    /// The number of a part and its width; none if the part is no number, or none of a span.
    fn number(&self, key: &str) -> Option<(i64, usize)> {
        let hour = self.time / HOUR;
        let year = if self.calendar.is_some() { shown_year(self.year) } else { self.year };
        let fraction = self.time % SECOND;
        Some(match key {
            "YYYY" => (year, 4),
            "YYY" => (year % 1_000, 3),
            "YY" => (year % 100, 2),
            "Y" => (year % 10, 1),
            "MM" => (self.month, 2),
            "DD" => (self.day, 2),
            "DDD" => match self.calendar {
                Some((day, _)) => (day.of_year(), 3),
                None => ((self.year * 12 + self.month) * 30 + self.day, 3),
            },
            "W" => ((self.day - 1) / 7 + 1, 1),
            "Q" => ((self.month - 1) / 3 + 1, 1),
            "CC" if self.calendar.is_none() => (self.year / 100, 2),
            "CC" => (if self.year > 0 { (self.year - 1) / 100 + 1 } else { self.year / 100 - 1 }, 2),
            "HH24" => (hour, 2),
            "HH12" | "HH" => (if hour % 12 == 0 { 12 } else { hour % 12 }, 2),
            "MI" => (self.time % HOUR / MINUTE, 2),
            "SS" => (self.time % MINUTE / SECOND, 2),
            "SSSS" | "SSSSS" => (self.time / SECOND, 1),
            "MS" | "FF3" => (fraction / 1_000, 3),
            "US" | "FF6" => (fraction, 6),
            "FF1" => (fraction / 100_000, 1),
            "FF2" => (fraction / 10_000, 2),
            "FF4" => (fraction / 100, 4),
            "FF5" => (fraction / 10, 5),
            key => return self.calendar.and_then(|(day, number)| of_calendar(day, number, key)),
        })
    }

    fn write(
        &self,
        name: &str,
        fills: bool,
        ordinal: Option<&str>,
        out: &mut String,
    ) -> Result<(), SqlError> {
        let upper = name.to_ascii_uppercase();
        // Writing to a string cannot fail.
        if let Some((number, width)) = self.number(&upper) {
            // A minus takes no place of a digit.
            let width = if number < 0 && upper != "DD" { width + 1 } else { width };
            let is_fraction =
                matches!(upper.as_str(), "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6");
            let _ =
                if fills || is_fraction { write!(out, "{number:0width$}") } else { write!(out, "{number}") };
            if let Some(mark) = ordinal {
                let ordinal = ordinal_mark(number);
                out.push_str(&if mark == "TH" { ordinal.to_uppercase() } else { ordinal.to_owned() });
            }
            return Ok(());
        }
        let padded = |word: String, width: usize| if fills { format!("{word:width$}") } else { word };
        let hour_of_day = (self.time / HOUR).rem_euclid(24);
        let year = if self.calendar.is_some() { shown_year(self.year) } else { self.year };
        out.push_str(&match (upper.as_str(), self.calendar) {
            ("Y,YYY", _) => format!("{},{:03}", year / 1_000, year % 1_000),
            ("AM" | "PM", _) => in_case(if hour_of_day >= 12 { "PM" } else { "AM" }, name),
            ("A.M." | "P.M.", _) => in_case(if hour_of_day >= 12 { "P.M." } else { "A.M." }, name),
            ("RM", _) => match usize::try_from(self.month - 1).ok().and_then(|month| ROMAN_MONTHS.get(month))
            {
                Some(month) => padded(in_case(month, name), 4),
                None => String::new(),
            },
            (_, None) => {
                return Err(SqlError::new("22007", "invalid format specification for an interval value")
                    .hint("Intervals are not tied to specific calendar dates."));
            }
            (upper, Some((day, number))) => {
                let month = MONTHS[day.month.clamp(1, 12) as usize - 1];
                let weekday = WEEKDAYS[weekday(number) as usize];
                match upper {
                    "MONTH" => padded(in_case(month, name), 9),
                    "MON" => in_case(&month[..3], name),
                    "DAY" => padded(in_case(weekday, name), 9),
                    "DY" => in_case(&weekday[..3], name),
                    "BC" | "AD" => in_case(if day.year > 0 { "AD" } else { "BC" }, name),
                    "B.C." | "A.D." => in_case(if day.year > 0 { "A.D." } else { "B.C." }, name),
                    "TZ" if self.has_zone => in_case("UTC", name),
                    "TZH" | "OF" => "+00".to_owned(),
                    "TZM" => "00".to_owned(),
                    _ => String::new(),
                }
            }
        });
        Ok(())
    }
}

/// The number of a part that only a day of the calendar has, and its width.
fn of_calendar(day: Day, number: i64, key: &str) -> Option<(i64, usize)> {
    let iso_year = || shown_year(day.week().0);
    Some(match key {
        "IYYY" => (iso_year(), 4),
        "IYY" => (iso_year() % 1_000, 3),
        "IY" => (iso_year() % 100, 2),
        "I" => (iso_year() % 10, 1),
        "D" => (weekday(number) + 1, 1),
        "ID" => ((weekday(number) + 6) % 7 + 1, 1),
        "IW" => (day.week().1, 2),
        "WW" => ((day.of_year() - 1) / 7 + 1, 2),
        "J" => (number - i64::from(FIRST_DAY), 1),
        _ => return None,
    })
}

fn text_of(fields: &Fields, pattern: &str) -> Result<Datum, SqlError> {
    if pattern.len() > BYTES_MAX / 16 {
        return Err(too_long());
    }
    let mut out = String::new();
    for part in parts(pattern) {
        match part {
            Part::Literal(literal) => out.push_str(literal),
            Part::Key { name, fills, ordinal } => fields.write(name, fills, ordinal, &mut out)?,
        }
    }
    Ok(Datum::text(out))
}

/// A moment by a pattern; null if it is infinite, or the pattern is empty.
pub(super) fn moment_text(moment: i64, has_zone: bool, pattern: &str) -> Result<Datum, SqlError> {
    if matches!(moment, i64::MIN | i64::MAX) || pattern.is_empty() {
        return Ok(Datum::Null);
    }
    let number = moment.div_euclid(DAY);
    let day = Day::of_number(number);
    let fields = Fields {
        year: day.year,
        month: i64::from(day.month),
        day: i64::from(day.day),
        time: moment.rem_euclid(DAY),
        calendar: Some((day, number)),
        has_zone,
    };
    text_of(&fields, pattern)
}

/// A span by a pattern.
pub(super) fn interval_text(span: Interval, pattern: &str) -> Result<Datum, SqlError> {
    if pattern.is_empty() {
        return Ok(Datum::Null);
    }
    let fields = Fields {
        year: i64::from(span.months / 12),
        month: i64::from(span.months % 12),
        day: i64::from(span.days),
        time: span.microseconds,
        calendar: None,
        has_zone: false,
    };
    text_of(&fields, pattern)
}

/// Takes a number of at most so many digits from the front of a text.
fn take_number(text: &mut &str, digits_max: usize, key: &str) -> Result<i64, SqlError> {
    *text = text.trim_start();
    let length = text.bytes().take(digits_max).take_while(u8::is_ascii_digit).count();
    if length == 0 {
        let shown: String = text.chars().take(digits_max).collect();
        return Err(SqlError::new("22007", format!("invalid value \"{shown}\" for \"{key}\""))
            .detail("Value must be an integer."));
    }
    let number = text[..length].parse().unwrap_or(0);
    *text = &text[length..];
    Ok(number)
}

/// Takes one of several names, whole or by its first letters, from the front of a text.
fn take_name(text: &mut &str, names: &[&str], letters: Option<usize>, key: &str) -> Result<usize, SqlError> {
    let found = names.iter().position(|name| {
        let wanted = &name[..letters.unwrap_or(name.len())];
        text.get(..wanted.len()).is_some_and(|start| start.eq_ignore_ascii_case(wanted))
    });
    let Some(place) = found else {
        let shown: String = text.chars().take(letters.unwrap_or(9)).collect();
        return Err(SqlError::new("22007", format!("invalid value \"{shown}\" for \"{key}\""))
            .detail("The given value did not match any of the allowed values for this field."));
    };
    *text = &text[letters.unwrap_or(names[place].len())..];
    Ok(place)
}

/// The moment that a text says by a pattern.
pub(super) fn parse_moment(text: &str, pattern: &str) -> Result<i64, SqlError> {
    let (mut year, mut month, mut day, mut day_of_year) = (None, 1, 1, None);
    let (mut hour, mut minute, mut second, mut fraction) = (0, 0, 0, 0);
    let (mut is_afternoon, mut is_before_christ, mut seconds_of_day) = (None, false, None);
    let mut rest = text;
    for part in parts(pattern) {
        let Part::Key { name, .. } = part else {
            if let Part::Literal(literal) = part {
                for wanted in literal.chars() {
                    // Separators stand for any separator; other characters for any one.
                    if wanted.is_alphanumeric() {
                        rest = rest.get(rest.chars().next().map_or(0, char::len_utf8)..).unwrap_or_default();
                    } else {
                        let is_separator = |next: char| {
                            !next.is_alphanumeric() && !matches!(next, '+' | '-' if wanted.is_whitespace())
                        };
                        rest = rest.trim_start_matches(is_separator);
                    }
                }
            }
            continue;
        };
        rest = rest.trim_start();
        let upper = name.to_ascii_uppercase();
        match upper.as_str() {
            "YYYY" | "IYYY" => {
                // A year that runs into the next field has four digits; one that stands alone may have more.
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                year = Some(take_number(&mut rest, if digits > 5 { 4 } else { 5 }, name)?);
            }
            "YYY" | "YY" | "Y" => {
                let short = take_number(&mut rest, upper.len(), name)?;
                year = Some(
                    short
                        + if short < 70 {
                            2_000
                        } else if short < 100 {
                            1_900
                        } else {
                            0
                        },
                );
            }
            "MM" => month = take_number(&mut rest, 2, name)?,
            "DD" => day = take_number(&mut rest, 2, name)?,
            "DDD" => day_of_year = Some(take_number(&mut rest, 3, name)?),
            "MONTH" => month = take_name(&mut rest, &MONTHS, None, name)? as i64 + 1,
            "MON" => month = take_name(&mut rest, &MONTHS, Some(3), name)? as i64 + 1,
            "DAY" => drop(take_name(&mut rest, &WEEKDAYS, None, name)?),
            "DY" => drop(take_name(&mut rest, &WEEKDAYS, Some(3), name)?),
            "HH24" => hour = take_number(&mut rest, 2, name)?,
            "HH" | "HH12" => {
                hour = take_number(&mut rest, 2, name)?;
                is_afternoon = is_afternoon.or(Some(false));
            }
            "MI" => minute = take_number(&mut rest, 2, name)?,
            "SS" => second = take_number(&mut rest, 2, name)?,
            "SSSS" | "SSSSS" => seconds_of_day = Some(take_number(&mut rest, 5, name)?),
            "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                let places = match upper.as_str() {
                    "MS" => 3,
                    "US" => 6,
                    other => other[2..].parse().unwrap_or(6),
                };
                let before = rest.len();
                let digits = take_number(&mut rest, places, name)?;
                fraction = digits * 10_i64.pow(6 - (before - rest.len()).min(6) as u32);
            }
            "AM" | "PM" => is_afternoon = Some(take_name(&mut rest, &["AM", "PM"], None, name)? == 1),
            "A.M." | "P.M." => is_afternoon = Some(take_name(&mut rest, &["A.M.", "P.M."], None, name)? == 1),
            "BC" | "AD" => is_before_christ = take_name(&mut rest, &["AD", "BC"], None, name)? == 1,
            _ => return Err(SqlError::not_supported(format!("\"{name}\" in a pattern to read a date"))),
        }
    }
    if let Some(seconds) = seconds_of_day {
        (hour, minute, second) = (seconds / 3_600, seconds % 3_600 / 60, seconds % 60);
    }
    if let Some(is_afternoon) = is_afternoon {
        if !(1..=12).contains(&hour) {
            let message = format!("hour \"{hour}\" is invalid for the 12-hour clock");
            return Err(SqlError::new("22007", message)
                .hint("Use the 24-hour clock, or give an hour between 1 and 12."));
        }
        hour = hour % 12 + if is_afternoon { 12 } else { 0 };
    }
    let year = match year {
        // Without a year, the one before the year 1.
        None => 0,
        Some(year) if is_before_christ => 1 - year,
        Some(year) => year,
    };
    let out_of_range = || SqlError::new("22008", format!("date/time field value out of range: \"{text}\""));
    let is_valid = (1..=12).contains(&month)
        && (1..=i64::from(days_of_month(year, month.clamp(1, 12) as u32))).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second);
    if !is_valid {
        return Err(out_of_range());
    }
    let mut number = Day { year, month: month as u32, day: day as u32 }.number();
    if let Some(day_of_year) = day_of_year {
        number = Day { year, month: 1, day: 1 }.number() + day_of_year - 1;
    }
    let time = hour * HOUR + minute * MINUTE + second * SECOND + fraction;
    number
        .checked_mul(DAY)
        .and_then(|midnight| midnight.checked_add(time))
        .filter(|moment| is_timestamp(*moment))
        .ok_or_else(out_of_range)
}
