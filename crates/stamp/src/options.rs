//! Options of applications: one description feeds the parser, the help, the presets and the check of bounds.

use std::error::Error;
use std::fmt;

/// The description of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionInfo {
    /// Name, as in `name=value`.
    pub name: &'static str,
    /// Summary in one line, with the unit.
    pub summary: &'static str,
    /// Value if none is given.
    pub default: &'static str,
    /// Smallest and largest admitted value.
    pub bounds: &'static str,
}

/// A named set of options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Name.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// Options that differ from the defaults, and their values.
    pub values: &'static [(&'static str, &'static str)],
}

/// Error in the options of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionError {
    /// No application has this name.
    UnknownApplication {
        /// Name asked for.
        name: String,
    },
    /// The application has no preset of this name.
    UnknownPreset {
        /// Name asked for.
        name: String,
        /// Names of the presets.
        known: Vec<&'static str>,
    },
    /// The application has no option of this name.
    Unknown {
        /// Name asked for.
        name: String,
        /// Names of the options.
        known: Vec<&'static str>,
    },
    /// The option does not admit this value.
    Invalid {
        /// Name of the option.
        name: &'static str,
        /// Value asked for.
        value: String,
        /// Admitted values.
        reason: String,
    },
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownApplication { name } => {
                write!(f, "unknown application {name:?}; there are: {}", crate::registry::names().join(", "))
            }
            Self::UnknownPreset { name, known } => {
                write!(f, "unknown preset {name:?}; there are: {}", known.join(", "))
            }
            Self::Unknown { name, known } => {
                write!(f, "unknown option {name:?}; there are: {}", known.join(", "))
            }
            Self::Invalid { name, value, reason } => write!(f, "{name}={value}: {reason}"),
        }
    }
}

impl Error for OptionError {}

/// The options of an application.
pub trait Options: Default + Clone + Send + Sync + 'static {
    /// The options that there are.
    const OPTIONS: &'static [OptionInfo];

    /// The named sets of options.
    const PRESETS: &'static [Preset];

    /// Sets the option `name` from a text.
    ///
    /// # Errors
    ///
    /// [`OptionError::Unknown`] or [`OptionError::Invalid`].
    fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError>;

    /// Checks that every option has an admitted value and that they agree with each other.
    ///
    /// # Errors
    ///
    /// [`OptionError::Invalid`] for the first option that does not.
    fn check(&self) -> Result<(), OptionError>;

    /// Returns the options of a preset.
    ///
    /// # Errors
    ///
    /// [`OptionError::UnknownPreset`].
    fn preset(name: &str) -> Result<Self, OptionError> {
        let Some(preset) = Self::PRESETS.iter().find(|preset| preset.name == name) else {
            let known = Self::PRESETS.iter().map(|preset| preset.name).collect();
            return Err(OptionError::UnknownPreset { name: name.to_owned(), known });
        };
        let mut options = Self::default();
        for (name, value) in preset.values {
            options.set(name, value)?;
        }
        Ok(options)
    }

    /// Parses options: those of the preset, if one is named, changed by the values `given`.
    ///
    /// # Errors
    ///
    /// Any [`OptionError`] but that of an unknown application.
    fn parse(preset: Option<&str>, given: &[(&str, &str)]) -> Result<Self, OptionError> {
        let mut options = preset.map_or_else(|| Ok(Self::default()), Self::preset)?;
        for (name, value) in given {
            options.set(name, value)?;
        }
        options.check()?;
        Ok(options)
    }
}

/// Declares a struct of options and implements [`Options`] for it.
///
/// Each field has a summary, a type, a default and bounds. `relations` names a function that checks what no bounds
/// can say.
macro_rules! options {
    (
        $(#[$meta:meta])*
        pub struct $options:ident {
            $(
                #[doc = $summary:literal]
                $field:ident: $type:ty = $default:literal in $low:literal..=$high:literal,
            )*
        }
        presets {
            $($preset:literal: $preset_summary:literal { $($name:ident = $value:literal),* $(,)? })*
        }
        relations $relations:expr;
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $options {
            $(
                #[doc = $summary]
                pub $field: $type,
            )*
        }

        impl Default for $options {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $crate::options::Options for $options {
            const OPTIONS: &'static [$crate::options::OptionInfo] = &[
                $($crate::options::OptionInfo {
                    name: stringify!($field),
                    summary: $summary.trim_ascii(),
                    default: stringify!($default),
                    bounds: concat!($low, " to ", $high),
                },)*
            ];

            const PRESETS: &'static [$crate::options::Preset] = &[
                $($crate::options::Preset {
                    name: $preset,
                    summary: $preset_summary,
                    values: &[$((stringify!($name), stringify!($value)),)*],
                },)*
            ];

            fn set(&mut self, name: &str, value: &str) -> Result<(), $crate::options::OptionError> {
                $(
                    if name == stringify!($field) {
                        let number = value.replace('_', "");
                        self.$field = number.parse().map_err(|_| $crate::options::invalid(
                            stringify!($field),
                            value,
                            concat!("expected a number from ", $low, " to ", $high),
                        ))?;
                        return Ok(());
                    }
                )*
                let known = Self::OPTIONS.iter().map(|option| option.name).collect();
                Err($crate::options::OptionError::Unknown { name: name.to_owned(), known })
            }

            fn check(&self) -> Result<(), $crate::options::OptionError> {
                $(
                    let bounds: ::std::ops::RangeInclusive<$type> = $low..=$high;
                    if !bounds.contains(&self.$field) {
                        return Err($crate::options::invalid(
                            stringify!($field),
                            self.$field,
                            concat!("expected a number from ", $low, " to ", $high),
                        ));
                    }
                )*
                let relations: fn(&Self) -> Result<(), $crate::options::OptionError> = $relations;
                relations(self)
            }
        }
    };
}

pub(crate) use options;

/// Makes the error for a value that its option does not admit.
pub(crate) fn invalid(name: &'static str, value: impl fmt::Display, reason: &str) -> OptionError {
    OptionError::Invalid { name, value: value.to_string(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The macro's structs are public, and no test module is.
    #[allow(unreachable_pub)]
    mod toy {
        options! {
        /// Options of nothing.
        pub struct ToyOptions {
            /// Number of things.
            things: usize = 1_000 in 1..=1_000_000,
            /// Share of the things that are red.
            red_share: f64 = 0.5 in 0.0..=1.0,
        }
        presets {
            "red": "Only red things." { red_share = 1.0, things = 2_000 }
        }
        relations |_| Ok(());
        }
    }
    use toy::ToyOptions;

    #[test]
    fn presets_and_given_values_replace_defaults() {
        assert_eq!(ToyOptions::parse(None, &[]), Ok(ToyOptions { things: 1_000, red_share: 0.5 }));
        let parsed = ToyOptions::parse(Some("red"), &[("things", "3")]);
        assert_eq!(parsed, Ok(ToyOptions { things: 3, red_share: 1.0 }));
        assert_eq!(ToyOptions::OPTIONS[0].summary, "Number of things.");
    }

    #[test]
    fn impossible_options_are_refused_with_a_message() {
        for (given, message) in [
            (("things", "0"), "things=0: expected a number from 1 to 1000000"),
            (("things", "-1"), "things=-1: expected a number from 1 to 1000000"),
            (("red_share", "NaN"), "red_share=NaN: expected a number from 0.0 to 1.0"),
            (("blue", "1"), "unknown option \"blue\"; there are: things, red_share"),
        ] {
            let error = ToyOptions::parse(None, &[given]).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
        let error = ToyOptions::parse(Some("blue"), &[]).unwrap_err();
        assert_eq!(error.to_string(), "unknown preset \"blue\"; there are: red");
    }
}
