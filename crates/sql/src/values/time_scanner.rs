//! The words and numbers of which texts of dates and times consist, and what can be wrong with them.

use super::calendar::{MONTHS, SECOND};
use crate::error::SqlError;

/// The fault of a text.
pub(super) enum Flaw {
    /// It is no date.
    Syntax,
    /// A field is too large.
    Field,
    /// A month or a day is too large, perhaps because they stand in another order.
    Order,
    /// The offset is too large.
    Offset,
    /// The time zone is not known.
    Zone(String),
}

impl Flaw {
    pub(super) fn error(self, text: &str, name: &str) -> SqlError {
        match self {
            Self::Syntax => {
                SqlError::new("22007", format!("invalid input syntax for type {name}: \"{text}\""))
            }
            Self::Field => SqlError::new("22008", format!("date/time field value out of range: \"{text}\"")),
            Self::Order => SqlError::new("22008", format!("date/time field value out of range: \"{text}\""))
                .hint("Perhaps you need a different \"datestyle\" setting."),
            Self::Offset => {
                SqlError::new("22009", format!("time zone displacement out of range: \"{text}\""))
            }
            Self::Zone(zone) => SqlError::new("22023", format!("time zone \"{zone}\" not recognized")),
        }
    }
}

/// The text that is not read yet.
pub(super) struct Scanner<'t> {
    pub(super) rest: &'t str,
}

impl<'t> Scanner<'t> {
    pub(super) fn take(&mut self, is_wanted: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|next| !is_wanted(next)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    pub(super) fn digits(&mut self) -> &'t str {
        self.take(|next| next.is_ascii_digit())
    }

    pub(super) fn skip(&mut self, wanted: char) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    pub(super) fn next(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Reads `.123456` as microseconds; more digits are rounded.
    pub(super) fn fraction(&mut self) -> Result<i64, Flaw> {
        if !self.skip('.') {
            return Ok(0);
        }
        let digits = self.digits();
        if digits.len() > 40 {
            return Err(Flaw::Syntax);
        }
        let seconds: f64 = format!("0.{digits}0").parse().map_err(|_| Flaw::Syntax)?;
        Ok((seconds * SECOND as f64).round_ties_even() as i64)
    }
}

/// The value of some digits.
pub(super) fn number(digits: &str) -> Result<i64, Flaw> {
    if digits.is_empty() || digits.len() > 9 {
        return Err(if digits.is_empty() { Flaw::Syntax } else { Flaw::Field });
    }
    digits.parse().map_err(|_| Flaw::Syntax)
}

/// The number of a month that is written as a word, from 1 on.
pub(super) fn month(word: &str) -> Option<u32> {
    position_of_name(&MONTHS, word)
        .or_else(|| word.eq_ignore_ascii_case("sept").then_some(8))
        .map(|place| place as u32 + 1)
}

/// The place of a name that is given by its first three letters or wholly.
pub(super) fn position_of_name(names: &[&str], word: &str) -> Option<usize> {
    names.iter().position(|name| {
        name.eq_ignore_ascii_case(word)
            || (word.len() == 3 && name.as_bytes()[..3].eq_ignore_ascii_case(word.as_bytes()))
    })
}

/// Reads `+02`, `+0230` or `+02:30:15` as seconds.
pub(super) fn read_offset(scanner: &mut Scanner<'_>) -> Result<i64, Flaw> {
    let is_negative = scanner.skip('-');
    if !is_negative {
        scanner.skip('+');
    }
    let first = scanner.digits();
    let (hours, mut minutes) = if first.len() > 2 { first.split_at(first.len() - 2) } else { (first, "") };
    let mut seconds = "";
    if minutes.is_empty() && scanner.skip(':') {
        minutes = scanner.digits();
        if scanner.skip(':') {
            seconds = scanner.digits();
        }
    }
    let part = |digits: &str| if digits.is_empty() { Ok(0) } else { number(digits) };
    let (hours, minutes, seconds) = (number(hours)?, part(minutes)?, part(seconds)?);
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(Flaw::Offset);
    }
    let offset = hours * 3_600 + minutes * 60 + seconds;
    Ok(if is_negative { -offset } else { offset })
}
