//! Options of workloads: one description feeds the parser, the help and the lists.

use hotrow::Isolation;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// An option of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionInfo {
    /// Name, without the dashes.
    pub name: &'static str,
    /// Placeholder for the value in the help text: `N`.
    pub value: &'static str,
    /// Value if none is given.
    pub default: &'static str,
    /// Summary in one line, with the unit and the admitted values.
    pub summary: &'static str,
}

/// The isolation of transactions that only read, where an option says it.
pub const READERS: [(&str, Isolation); 3] = [
    ("strict-snapshot", Isolation::StrictSnapshot),
    ("snapshot", Isolation::Snapshot),
    ("serializable", Isolation::Serializable),
];

/// Returns the name of an option's value.
pub fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> &'static str {
    names.iter().find(|(_, known)| known == value).map_or("other", |(name, _)| name)
}

/// Error in the options of a workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionError {
    /// No workload has this name.
    #[error("unknown workload {name:?}; there are: {}", known.join(", "))]
    UnknownWorkload {
        /// Name asked for.
        name: String,
        /// Names of the workloads.
        known: Vec<&'static str>,
    },
    /// The workload has no option of this name.
    #[error("{workload} has no option --{name}")]
    Unknown {
        /// Name of the workload.
        workload: &'static str,
        /// Name asked for.
        name: String,
    },
    /// The workload's transactions are closures; only operations of procedures can be delayed one by one.
    #[error("--think-us delays the operations of procedures, and {workload} has none: it runs closures")]
    NoProcedures {
        /// Name of the workload.
        workload: &'static str,
    },
    /// A baseline runs without Hotrow, which would have to delay operations or record them.
    #[error("--{option} is for protocols, and {baseline} is a baseline without one")]
    OnlyProtocols {
        /// Name of the option.
        option: &'static str,
        /// Name of the baseline.
        baseline: String,
    },
    /// The workload has no tables in distributed stores.
    #[error(
        "--store is for workloads whose tables can be in a distributed store, and those of {workload} cannot"
    )]
    NotInStores {
        /// Name of the workload.
        workload: &'static str,
    },
    /// Tables in a distributed store have a protocol of their own, and are durable as the store is.
    #[error("--{option} is for tables of this process, not for those in a distributed store")]
    OnlyHere {
        /// Name of the option.
        option: &'static str,
    },
    /// The workload's tables are not durable.
    #[error("--durability is for workloads with durable tables, and {workload} has none")]
    NothingDurable {
        /// Name of the workload.
        workload: &'static str,
    },
    /// The option takes one of a few words, and this is none of them.
    #[error("--{name} {value}: expected {}", alternatives(known))]
    NotOneOf {
        /// Name of the option.
        name: &'static str,
        /// Value asked for.
        value: String,
        /// Admitted words.
        known: Vec<String>,
    },
    /// The option does not admit this value.
    #[error("--{name} {value}: {reason}")]
    Invalid {
        /// Name of the option.
        name: &'static str,
        /// Value asked for.
        value: String,
        /// Admitted values.
        reason: String,
    },
}

/// Returns words with "or" before the last one.
pub fn alternatives(words: &[String]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        words => words.concat(),
    }
}

/// Values of a workload's options: the given ones, and defaults for the others.
///
/// A workload asks for options by the names in [`WorkloadInfo::options`](crate::WorkloadInfo::options). The methods
/// panic if it asks for a name that it has not declared there.
#[derive(Debug, Clone)]
pub struct OptionValues<'a> {
    values: Vec<(&'static str, &'a str)>,
}

impl<'a> OptionValues<'a> {
    /// Combines the options `infos` with the values `given`. If an option is given several times, the last value
    /// counts.
    pub(crate) fn new(
        workload: &'static str,
        infos: &'static [OptionInfo],
        given: &[(&str, &'a str)],
    ) -> Result<Self, OptionError> {
        let mut values: Vec<(&'static str, &'a str)> =
            infos.iter().map(|info| (info.name, info.default)).collect();
        for (name, value) in given {
            match values.iter_mut().find(|(known, _)| known == name) {
                Some((_, current)) => *current = *value,
                None => return Err(OptionError::Unknown { workload, name: (*name).to_owned() }),
            }
        }
        Ok(Self { values })
    }

    fn text(&self, name: &str) -> (&'static str, &'a str) {
        let value = self.values.iter().find(|(known, _)| *known == name);
        *value.expect("a workload asks for the options it has declared")
    }

    /// Returns a value parsed by its type.
    ///
    /// # Errors
    ///
    /// [`OptionError::Invalid`] with the type's own error as the reason.
    pub fn parsed<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T, OptionError> {
        let (name, value) = self.text(name);
        value.parse().map_err(|error: T::Err| invalid(name, value, error.to_string()))
    }

    /// Returns a number within `bounds`.
    ///
    /// # Errors
    ///
    /// [`OptionError::Invalid`] with the bounds as the reason.
    pub fn number<T>(&self, name: &str, bounds: RangeInclusive<T>) -> Result<T, OptionError>
    where
        T: FromStr + PartialOrd + Display,
    {
        let (name, value) = self.text(name);
        match value.parse() {
            // NaN is within no bounds.
            Ok(number) if bounds.contains(&number) => Ok(number),
            _ => {
                let (low, high) = bounds.into_inner();
                Err(invalid(name, value, format!("expected a number from {low} to {high}")))
            }
        }
    }

    /// Returns a number within `bounds`, or `None` if the value is `word`.
    ///
    /// # Errors
    ///
    /// As [`number`](Self::number).
    pub fn number_or<T>(
        &self,
        name: &str,
        word: &str,
        bounds: RangeInclusive<T>,
    ) -> Result<Option<T>, OptionError>
    where
        T: FromStr + PartialOrd + Display,
    {
        if self.text(name).1 == word { Ok(None) } else { self.number(name, bounds).map(Some) }
    }

    /// Returns the meaning of one of several words.
    ///
    /// # Errors
    ///
    /// [`OptionError::NotOneOf`], which has the words.
    pub fn one_of<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, OptionError> {
        let (name, value) = self.text(name);
        match words.iter().find(|(word, _)| *word == value) {
            Some((_, meaning)) => Ok(*meaning),
            None => {
                let known = words.iter().map(|(word, _)| (*word).to_owned()).collect();
                Err(OptionError::NotOneOf { name, value: value.to_owned(), known })
            }
        }
    }
}

/// Makes the error for a value that its option does not admit.
pub fn invalid(name: &'static str, value: &str, reason: String) -> OptionError {
    OptionError::Invalid { name, value: value.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFOS: &[OptionInfo] = &[
        OptionInfo { name: "size", value: "N", default: "10", summary: "" },
        OptionInfo { name: "share", value: "S", default: "0.5", summary: "" },
        OptionInfo { name: "mode", value: "M", default: "fast", summary: "" },
    ];

    #[test]
    fn options_not_given_have_their_defaults() {
        let values = OptionValues::new("toy", INFOS, &[]).unwrap();
        assert_eq!(values.number("size", 1..=20), Ok(10));
        assert_eq!(values.number("share", 0.0..=1.0), Ok(0.5));
        assert_eq!(values.one_of("mode", &[("slow", 1), ("fast", 2)]), Ok(2));
        assert_eq!(values.parsed::<String>("mode"), Ok("fast".to_owned()));
        assert_eq!(values.number_or("share", "any", 0.0..=1.0), Ok(Some(0.5)));
        assert_eq!(values.number_or("mode", "fast", 0.0..=1.0), Ok(None));
    }

    #[test]
    fn impossible_options_are_refused_with_a_message() {
        let refused = |options: &[(&str, &str)]| {
            let values = OptionValues::new("toy", INFOS, options)?;
            values.number("size", 1..=20)?;
            values.number("share", 0.0..=1.0)?;
            values.one_of("mode", &[("slow", 1), ("fast", 2)])
        };
        for (options, words) in [
            ([("size", "0")], "--size 0: expected a number from 1 to 20"),
            ([("size", "-1")], "--size -1: expected a number from 1 to 20"),
            ([("size", "many")], "--size many: expected a number from 1 to 20"),
            ([("share", "NaN")], "--share NaN: expected a number from 0 to 1"),
            ([("share", "1.5")], "--share 1.5: expected a number from 0 to 1"),
            ([("mode", "quick")], "--mode quick: expected slow or fast"),
            ([("sise", "1")], "toy has no option --sise"),
        ] {
            assert_eq!(refused(&options).unwrap_err().to_string(), words);
        }
        assert_eq!(refused(&[("size", "3"), ("size", "4"), ("mode", "slow")]), Ok(1));
    }
}
