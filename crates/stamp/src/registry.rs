//! The registry of applications: the only place where an application's name becomes its type.
//!
//! Adding an application takes one new module and one line in the call of `registry!` below.

use crate::application::{Outcome, execute};
use crate::bayes::{Bayes, BayesOptions};
use crate::genome::{Genome, GenomeOptions};
use crate::intruder::{Intruder, IntruderOptions};
use crate::kmeans::{Kmeans, KmeansOptions};
use crate::labyrinth::{Labyrinth, LabyrinthOptions};
use crate::options::{OptionError, OptionInfo, Options, Preset};
use crate::runner::Runner;
use crate::ssca2::{Ssca2, Ssca2Options};
use crate::store::Store;
use crate::vacation::{Vacation, VacationOptions};
use crate::yada::{Yada, YadaOptions};

/// The description of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApplicationInfo {
    /// Name.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// Options.
    pub options: &'static [OptionInfo],
    /// Named sets of options.
    pub presets: &'static [Preset],
}

macro_rules! registry {
    ($($variant:ident: $name:literal, $application:ident, $options:ident, $summary:literal;)*) => {
        /// All applications, in the order of their names.
        pub const APPLICATIONS: &[ApplicationInfo] = &[
            $(ApplicationInfo {
                name: $name,
                summary: $summary,
                options: <$options as Options>::OPTIONS,
                presets: <$options as Options>::PRESETS,
            },)*
        ];

        /// The options of one of the applications.
        #[derive(Debug, Clone, PartialEq)]
        pub enum ApplicationOptions {
            $(
                #[doc = concat!("Options of ", $name, ".")]
                $variant($options),
            )*
        }

        /// A runner for every application over the store `S`.
        pub trait EveryRunner<S: Store>: $(Runner<$application<S>> +)* {}

        impl<S: Store, R> EveryRunner<S> for R where R: $(Runner<$application<S>> +)* {}

        impl ApplicationOptions {
            /// Parses the options of the application `name`: those of the preset, if one is named, changed by the
            /// values `given`.
            ///
            /// # Errors
            ///
            /// [`OptionError`] if there is no such application, preset or option, or the option does not admit the
            /// value.
            pub fn parse(
                name: &str,
                preset: Option<&str>,
                given: &[(&str, &str)],
            ) -> Result<Self, OptionError> {
                match name {
                    $($name => Options::parse(preset, given).map(Self::$variant),)*
                    _ => Err(OptionError::UnknownApplication { name: name.to_owned() }),
                }
            }

            /// Returns the application's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }

            /// Prepares the application over `store`, runs it on the workers of `runner`, and verifies its result.
            pub fn execute<S: Store, R: EveryRunner<S>>(&self, store: S, runner: &R) -> Outcome {
                match self {
                    $(Self::$variant(options) => {
                        execute::<$application<S>, S, R>(store, options, runner)
                    })*
                }
            }
        }
    };
}

registry! {
    Bayes: "bayes", Bayes, BayesOptions, "The structure of a Bayesian network is learned from records.";
    Genome: "genome", Genome, GenomeOptions, "A gene is put together from overlapping segments.";
    Intruder: "intruder", Intruder, IntruderOptions, "Packets are put together to flows and searched for attacks.";
    Kmeans: "kmeans", Kmeans, KmeansOptions, "Points are grouped around the means of clusters.";
    Labyrinth: "labyrinth", Labyrinth, LabyrinthOptions, "Wires are laid in a maze without crossing each other.";
    Ssca2: "ssca2", Ssca2, Ssca2Options, "Adjacency arrays of a graph are built from its edges.";
    Vacation: "vacation", Vacation, VacationOptions,
        "Clients of a travel agency reserve cars, flights and rooms.";
    Yada: "yada", Yada, YadaOptions, "A mesh of triangles is refined until no angle is too small.";
}

/// Returns the names of all applications.
pub fn names() -> Vec<&'static str> {
    APPLICATIONS.iter().map(|application| application.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::Statistics;
    use crate::plain::{GlobalLock, Sequential};
    use crate::runner::{OneThread, on_threads};

    #[test]
    fn every_preset_and_the_defaults_are_admitted() {
        for application in APPLICATIONS {
            let presets = application.presets.iter().map(|preset| Some(preset.name));
            for preset in presets.chain([None]) {
                let options = ApplicationOptions::parse(application.name, preset, &[]);
                assert_eq!(options.map(|options| options.name()), Ok(application.name));
            }
        }
    }

    #[test]
    fn every_application_has_a_seed() {
        for name in names() {
            let error = ApplicationOptions::parse(name, None, &[("seed", "many")]).unwrap_err();
            assert!(error.to_string().starts_with("seed=many: expected a number from 0 to "));
        }
    }

    /// Options of every application that make a short run.
    fn small(seed: &str) -> impl Iterator<Item = ApplicationOptions> {
        APPLICATIONS.iter().map(move |application| {
            let small: &[(&str, &str)] = match application.name {
                "bayes" => &[("variables", "6"), ("records", "100")],
                "genome" => &[("gene_length", "100"), ("segment_length", "20"), ("segments", "200")],
                "intruder" => &[("flows", "50")],
                "kmeans" => &[("points", "100")],
                "labyrinth" => &[("width", "10"), ("height", "10"), ("pairs", "10")],
                "ssca2" => &[("scale", "5")],
                "vacation" => &[("relations", "50"), ("transactions", "500")],
                _ => &[("points", "30")],
            };
            let given: Vec<(&str, &str)> = small.iter().copied().chain([("seed", seed)]).collect();
            ApplicationOptions::parse(application.name, None, &given).unwrap()
        })
    }

    #[test]
    fn every_application_runs_on_threads_by_its_name() {
        for options in small("1") {
            let outcome = options.execute(GlobalLock::default(), &on_threads(2));
            assert_eq!(outcome.verification, Ok(()), "{}", options.name());
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_run() {
        let counts = |seed| -> Vec<Statistics> {
            small(seed).map(|options| options.execute(Sequential::default(), &OneThread).statistics).collect()
        };
        assert_eq!(counts("1"), counts("1"));
        assert_ne!(counts("1"), counts("2"));
    }

    #[test]
    fn an_unknown_application_is_refused() {
        let error = ApplicationOptions::parse("sudoku", None, &[]).unwrap_err();
        assert!(error.to_string().starts_with("unknown application \"sudoku\"; there are: "));
    }
}
