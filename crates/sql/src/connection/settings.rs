//! Settings: the variables that clients set and show, by PostgreSQL's names.
//!
//! A setting that changes nothing here is known only where clients are used to set it. One that would have to change something, and
//! cannot, has one value: others are refused.

use crate::error::SqlError;
use std::collections::BTreeMap;
use std::time::Duration;

/// The version that clients are told.
const SERVER_VERSION: &str = "15.0 (Hotrow 0.1.0)";

/// The largest number of settings with names of users' own.
const OWN_MAX: usize = 1_000;

/// The values that a setting may have.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Boolean,
    Integer(i64, i64),
    /// A time; in milliseconds, where it has no unit. 0: none.
    Time,
    /// A size; in kilobytes, where it has no unit.
    Size,
    /// One of these.
    Choice(&'static [&'static str]),
    /// Any of these, and it is the default all the same.
    Always(&'static [&'static str]),
    /// Nothing but the default.
    Fixed,
    Zone,
    DateStyle,
    Encoding,
}

struct Setting {
    /// Its name as `SHOW ALL` has it.
    name: &'static str,
    kind: Kind,
    default: &'static str,
    /// True if clients are told of each change.
    is_reported: bool,
}

const fn setting(name: &'static str, kind: Kind, default: &'static str) -> Setting {
    Setting { name, kind, default, is_reported: false }
}

const fn reported(name: &'static str, kind: Kind, default: &'static str) -> Setting {
    Setting { name, kind, default, is_reported: true }
}

const LEVELS: &[&str] =
    &["debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "info", "notice", "warning", "error"];
const ISOLATIONS: &[&str] = &["serializable", "repeatable read", "read committed", "read uncommitted"];

static SETTINGS: &[Setting] = &[
    reported("application_name", Kind::Text, ""),
    setting("array_nulls", Kind::Always(&["on"]), "on"),
    setting("backslash_quote", Kind::Choice(&["safe_encoding", "on", "off"]), "safe_encoding"),
    setting("block_size", Kind::Fixed, "8192"),
    setting("bytea_output", Kind::Choice(&["hex"]), "hex"),
    setting("check_function_bodies", Kind::Boolean, "on"),
    reported("client_encoding", Kind::Encoding, "UTF8"),
    setting("client_min_messages", Kind::Choice(LEVELS), "notice"),
    reported("DateStyle", Kind::DateStyle, "ISO, MDY"),
    setting("default_table_access_method", Kind::Choice(&["heap"]), "heap"),
    setting("default_tablespace", Kind::Choice(&[""]), ""),
    setting("default_transaction_deferrable", Kind::Boolean, "off"),
    setting("default_transaction_isolation", Kind::Always(ISOLATIONS), "serializable"),
    reported("default_transaction_read_only", Kind::Boolean, "off"),
    setting("escape_string_warning", Kind::Boolean, "on"),
    setting("extra_float_digits", Kind::Integer(1, 3), "1"),
    setting("idle_in_transaction_session_timeout", Kind::Time, "0"),
    setting("idle_session_timeout", Kind::Choice(&["0"]), "0"),
    reported("in_hot_standby", Kind::Fixed, "off"),
    reported("integer_datetimes", Kind::Fixed, "on"),
    reported("IntervalStyle", Kind::Choice(&["postgres"]), "postgres"),
    reported("is_superuser", Kind::Fixed, "on"),
    setting("jit", Kind::Boolean, "off"),
    setting("lc_collate", Kind::Fixed, "C"),
    setting("lc_ctype", Kind::Fixed, "C.UTF-8"),
    setting("lc_messages", Kind::Text, "C"),
    setting("lc_monetary", Kind::Text, "C"),
    setting("lc_numeric", Kind::Text, "C"),
    setting("lc_time", Kind::Text, "C"),
    setting("lock_timeout", Kind::Time, "0"),
    setting("maintenance_work_mem", Kind::Size, "64MB"),
    setting("max_identifier_length", Kind::Fixed, "63"),
    setting("max_index_keys", Kind::Fixed, "32"),
    setting("row_security", Kind::Boolean, "on"),
    setting("search_path", Kind::Text, "\"$user\", public"),
    reported("server_encoding", Kind::Fixed, "UTF8"),
    reported("server_version", Kind::Fixed, SERVER_VERSION),
    setting("server_version_num", Kind::Fixed, "150000"),
    reported("session_authorization", Kind::Fixed, ""),
    reported("standard_conforming_strings", Kind::Always(&["on"]), "on"),
    setting("statement_timeout", Kind::Time, "0"),
    setting(
        "synchronous_commit",
        Kind::Choice(&["on", "off", "local", "remote_write", "remote_apply"]),
        "on",
    ),
    setting("temp_tablespaces", Kind::Choice(&[""]), ""),
    reported("TimeZone", Kind::Zone, "UTC"),
    setting("transaction_deferrable", Kind::Boolean, "off"),
    setting("transaction_isolation", Kind::Always(ISOLATIONS), "serializable"),
    setting("transaction_read_only", Kind::Boolean, "off"),
    setting("work_mem", Kind::Size, "4MB"),
    setting("xmloption", Kind::Choice(&["content", "document"]), "content"),
];

fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name.eq_ignore_ascii_case(name))
}

fn unknown(name: &str) -> SqlError {
    SqlError::new("42704", format!("unrecognized configuration parameter \"{name}\""))
}

fn invalid(name: &str, value: &str) -> SqlError {
    SqlError::new("22023", format!("invalid value for parameter \"{name}\": \"{value}\""))
}

/// The value of a word that is true or false, as PostgreSQL reads it.
pub(super) fn boolean(word: &str) -> Option<bool> {
    let word = word.trim().to_ascii_lowercase();
    let starts = |of: &str, least: usize| word.len() >= least && of.starts_with(&word);
    if word == "1" || word == "on" || starts("true", 1) || starts("yes", 1) {
        Some(true)
    } else if word == "0" || starts("off", 2) || starts("false", 1) || starts("no", 1) {
        Some(false)
    } else {
        None
    }
}

/// A number with one of these units, each with its factor.
fn with_unit(value: &str, units: &[(&str, f64)]) -> Option<i64> {
    let value = value.trim();
    let end = value.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(value.len());
    let (number, unit) = (value[..end].trim(), value[end..].trim());
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    let number: f64 = number.parse().ok()?;
    let scaled = (number * factor).round();
    (scaled.is_finite() && scaled.abs() <= f64::from(i32::MAX)).then_some(scaled as i64)
}

const TIMES: &[(&str, f64)] = &[
    ("", 1.0),
    ("us", 0.001),
    ("ms", 1.0),
    ("s", 1_000.0),
    ("min", 60_000.0),
    ("h", 3_600_000.0),
    ("d", 86_400_000.0),
];
const SIZES: &[(&str, f64)] = &[
    ("", 1.0),
    ("B", 1.0 / 1_024.0),
    ("kB", 1.0),
    ("MB", 1_024.0),
    ("GB", 1_048_576.0),
    ("TB", 1_073_741_824.0),
];

/// A number in the largest of its units that it is a multiple of.
fn shown(number: i64, units: &[(&str, f64)]) -> String {
    let fits = |factor: f64| factor >= 1.0 && number % factor as i64 == 0;
    match units[1..].iter().rev().find(|(_, factor)| fits(*factor)) {
        Some((unit, factor)) if number != 0 => format!("{}{unit}", number / *factor as i64),
        _ => number.to_string(),
    }
}

impl Setting {
    /// The value as it is kept, if the setting may have it.
    fn check(&self, value: &str) -> Result<String, SqlError> {
        let invalid = || invalid(self.name, value);
        let fixed = || SqlError::new("55P02", format!("parameter \"{}\" cannot be changed", self.name));
        let among = |choices: &[&'static str]| {
            choices.iter().copied().find(|choice| choice.eq_ignore_ascii_case(value.trim()))
        };
        match self.kind {
            Kind::Text => Ok(value.to_owned()),
            Kind::Boolean => match boolean(value) {
                Some(true) => Ok("on".to_owned()),
                Some(false) => Ok("off".to_owned()),
                None => Err(SqlError::new(
                    "22023",
                    format!("parameter \"{}\" requires a Boolean value", self.name),
                )),
            },
            Kind::Integer(min, max) => {
                let number: i64 = value.trim().parse().map_err(|_| invalid())?;
                if !(min..=max).contains(&number) {
                    let name = self.name;
                    return Err(SqlError::new(
                        "22023",
                        format!(
                            "{number} is outside the valid range for parameter \"{name}\" ({min} .. {max})"
                        ),
                    ));
                }
                Ok(number.to_string())
            }
            Kind::Time => match with_unit(value, TIMES) {
                Some(milliseconds) if milliseconds >= 0 => Ok(shown(milliseconds, TIMES)),
                Some(milliseconds) => {
                    let (name, max) = (self.name, i32::MAX);
                    Err(SqlError::new(
                        "22023",
                        format!(
                            "{milliseconds} ms is outside the valid range for parameter \"{name}\" (0 .. {max})"
                        ),
                    ))
                }
                None => Err(invalid()),
            },
            Kind::Size => match with_unit(value, SIZES) {
                Some(kilobytes) if kilobytes > 0 => Ok(shown(kilobytes, SIZES)),
                _ => Err(invalid()),
            },
            // A choice of one that is more than a word for the default: PostgreSQL has others.
            Kind::Choice(choices) => among(choices).map(str::to_owned).ok_or_else(invalid),
            Kind::Always(choices) => match (among(choices), boolean(value)) {
                (Some(_), _) => Ok(self.default.to_owned()),
                (None, Some(true)) if self.default == "on" => Ok(self.default.to_owned()),
                (None, _) => Err(invalid()),
            },
            Kind::Fixed if value == self.default => Ok(value.to_owned()),
            Kind::Fixed => Err(fixed()),
            Kind::Zone => zone(value).ok_or_else(invalid),
            Kind::Encoding if is_utf8(value) => Ok(self.default.to_owned()),
            Kind::Encoding => Err(invalid()),
            Kind::DateStyle => date_style(value).ok_or_else(invalid),
        }
    }
}

/// True if an encoding is UTF-8. Its letters and digits count, as in PostgreSQL.
pub(super) fn is_utf8(encoding: &str) -> bool {
    let name: String = encoding.chars().filter(char::is_ascii_alphanumeric).collect();
    ["utf8", "unicode"].iter().any(|known| known.eq_ignore_ascii_case(&name))
}

/// The time zone of a name, if it is UTC.
fn zone(value: &str) -> Option<String> {
    let name = value.trim();
    let names = ["utc", "gmt", "z", "zulu", "uct", "universal", "greenwich"];
    let word = name.to_ascii_lowercase();
    let word = word.strip_prefix("etc/").unwrap_or(&word);
    let is_zero =
        name.parse::<f64>() == Ok(0.0) || matches!(word, "+00" | "+00:00" | "gmt0" | "gmt+0" | "gmt-0");
    (is_zero || names.contains(&word)).then(|| "UTC".to_owned())
}

/// The style of dates, if it is ISO. The order of day and month is kept, and not looked at: dates are read as ISO only.
fn date_style(value: &str) -> Option<String> {
    let mut order = "MDY";
    for word in value.split(',') {
        match word.trim().to_ascii_lowercase().as_str() {
            "iso" => {}
            "mdy" | "us" | "noneuropean" => order = "MDY",
            "default" => {}
            _ => return None,
        }
    }
    Some(format!("ISO, {order}"))
}

/// The values of all settings.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Those that are not the default, by the name in lower case.
    values: BTreeMap<String, String>,
    statement_timeout: Option<Duration>,
    lock_timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    /// True if transactions only read, unless they say otherwise.
    pub(super) reads_only: bool,
    /// True if commits need not be on the device.
    pub(super) is_buffered: bool,
}

impl Settings {
    /// The defaults, for a user.
    pub(super) fn new(user: &str) -> Self {
        let values = BTreeMap::from([("session_authorization".to_owned(), user.to_owned())]);
        Self {
            values,
            statement_timeout: None,
            lock_timeout: None,
            idle_timeout: None,
            reads_only: false,
            is_buffered: false,
        }
    }

    /// Sets a value; without one, that of `defaults`.
    pub(super) fn set(&mut self, name: &str, value: Option<&str>, defaults: &Self) -> Result<(), SqlError> {
        let key = name.to_ascii_lowercase();
        let value = match (find(&key), value) {
            (Some(setting), Some(value)) if key == "session_authorization" || key == "role" => {
                if self.get(setting.name).as_deref() != Some(value) {
                    return Err(SqlError::not_supported("a change of the user"));
                }
                Some(value.to_owned())
            }
            (Some(setting), Some(value)) => Some(setting.check(value)?),
            (Some(_), None) => defaults.values.get(&key).cloned(),
            (None, value) if key == "role" => match value {
                None | Some("none") => None,
                Some(value)
                    if Some(value) == self.values.get("session_authorization").map(String::as_str) =>
                {
                    None
                }
                Some(_) => return Err(SqlError::not_supported("a change of the role")),
            },
            (None, value) if key.contains('.') => {
                if value.is_some() && self.values.len() >= OWN_MAX {
                    return Err(SqlError::new("54000", "there are too many settings"));
                }
                value.map(str::to_owned)
            }
            (None, _) => return Err(unknown(name)),
        };
        match value {
            Some(value) => self.values.insert(key, value),
            None => self.values.remove(&key),
        };
        self.read_again();
        Ok(())
    }

    /// Reads those again that are needed often.
    fn read_again(&mut self) {
        let time = |name: &str| {
            let milliseconds = with_unit(self.values.get(name)?, TIMES)?;
            (milliseconds > 0).then(|| Duration::from_millis(milliseconds as u64))
        };
        self.statement_timeout = time("statement_timeout");
        self.lock_timeout = time("lock_timeout");
        self.idle_timeout = time("idle_in_transaction_session_timeout");
        let is = |name: &str, value: &str| self.values.get(name).is_some_and(|is| is == value);
        self.reads_only = is("default_transaction_read_only", "on");
        self.is_buffered = is("synchronous_commit", "off");
    }

    /// The longest time that a statement may run.
    pub(super) fn statement_timeout(&self) -> Option<Duration> {
        self.statement_timeout
    }

    /// The longest time that a statement may wait for other transactions.
    pub(super) fn lock_timeout(&self) -> Option<Duration> {
        self.lock_timeout
    }

    /// The longest time that a block may wait for its next statement.
    pub(super) fn idle_timeout(&self) -> Option<Duration> {
        self.idle_timeout
    }

    /// The value of a setting, if it is known.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let key = name.to_ascii_lowercase();
        if key == "role" {
            return Some("none".to_owned());
        }
        let value = self.values.get(&key).cloned();
        value.or_else(|| find(&key).map(|setting| setting.default.to_owned()))
    }

    /// The value of a setting.
    pub(super) fn show(&self, name: &str) -> Result<String, SqlError> {
        self.get(name).ok_or_else(|| unknown(name))
    }

    /// The name of a setting as PostgreSQL has it.
    pub(super) fn name_of(name: &str) -> String {
        find(name).map_or_else(|| name.to_owned(), |setting| setting.name.to_owned())
    }

    /// All settings with their values.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, String)> {
        SETTINGS.iter().map(|setting| (setting.name, self.get(setting.name).unwrap_or_default()))
    }

    /// The settings of which clients are told.
    pub(super) fn reported(&self) -> impl Iterator<Item = (&'static str, String)> {
        let told = SETTINGS.iter().filter(|setting| setting.is_reported);
        told.map(|setting| (setting.name, self.get(setting.name).unwrap_or_default()))
    }

    /// True if a time zone has a name that could be one, and is not UTC.
    pub(super) fn is_other_zone(name: &str, value: &str) -> bool {
        name.eq_ignore_ascii_case("timezone")
            && zone(value).is_none()
            && value.contains(|c: char| c.is_ascii_alphabetic())
            && value.chars().all(|c| c.is_ascii_alphanumeric() || "/_+-".contains(c))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_their_largest_unit() {
        let defaults = Settings::new("ada");
        let mut settings = defaults.clone();
        for (given, shows) in [("1500", "1500ms"), ("60s", "1min"), ("0", "0"), ("2 h", "2h")] {
            settings.set("statement_timeout", Some(given), &defaults).unwrap();
            assert_eq!(settings.get("statement_timeout").unwrap(), shows);
        }
        assert!(settings.statement_timeout().is_some());
        settings.set("statement_timeout", None, &defaults).unwrap();
        assert_eq!(settings.statement_timeout(), None);
    }

    #[test]
    fn values_that_cannot_be_are_refused() {
        let defaults = Settings::new("ada");
        let mut settings = defaults.clone();
        for (name, value, code) in [
            ("client_encoding", "LATIN1", "22023"),
            ("standard_conforming_strings", "off", "22023"),
            ("server_version", "16", "55P02"),
            ("nothing", "1", "42704"),
            ("default_transaction_read_only", "perhaps", "22023"),
            ("extra_float_digits", "4", "22023"),
        ] {
            assert_eq!(settings.set(name, Some(value), &defaults).unwrap_err().code, code, "{name}");
        }
        settings.set("my.own", Some("x"), &defaults).unwrap();
        assert_eq!(settings.get("my.own").as_deref(), Some("x"));
    }
}
