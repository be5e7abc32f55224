//! The arguments of `hotrow bench stamp`, and the runs that they ask for.

use crate::arguments::{Format, Refusal, parse_threads, shortened, unknown};
use crate::text::listing;
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use hotrow_stamp::OptionError;
use hotrow_stamp::registry::{APPLICATIONS, ApplicationInfo, ApplicationOptions, names};
use std::collections::BTreeSet;
use std::fmt;

/// The name of the workload.
pub(crate) const NAME: &str = "stamp";

/// The protocols under which the applications are compiled. More of them would take minutes to build.
pub(super) const PROTOCOLS: [&str; 4] = ["occ", "tl2", "drp", "wait-die"];

/// The protocols of [`PROTOCOLS`] that defer.
const DEFERRING: [&str; 1] = ["drp"];

/// A store, as the command names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    /// Words of one memory.
    Words,
    /// Datatypes; numbers are read and written.
    Datatypes,
    /// Datatypes; numbers are added to and tested.
    Predicates,
    /// As predicates; changes without a result are deferred.
    Deferred,
    /// As datatypes; maps, lists and numbers are boosted.
    Boosted,
}

impl Variant {
    const ALL: [Self; 5] = [Self::Words, Self::Datatypes, Self::Predicates, Self::Boosted, Self::Deferred];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Datatypes => "datatypes",
            Self::Predicates => "predicates",
            Self::Deferred => "deferred",
            Self::Boosted => "boosted",
        }
    }
}

/// The name of the version without transactions, against which speed-ups are measured.
pub(super) const SEQUENTIAL: &str = "sequential";

/// The store, protocol and threads of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setup {
    /// No transactions, on one thread.
    Sequential,
    /// Transactions.
    Transactional {
        /// The store.
        variant: Variant,
        /// One of [`PROTOCOLS`].
        protocol: &'static str,
        /// The number of threads.
        threads: usize,
    },
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequential => f.write_str(SEQUENTIAL),
            Self::Transactional { variant, protocol, threads } => {
                write!(f, "{} under {protocol} on {threads} threads", variant.name())
            }
        }
    }
}

/// The runs that `hotrow bench stamp` makes.
#[derive(Debug)]
pub(crate) struct StampPlan {
    pub(super) applications: Vec<ApplicationOptions>,
    /// In each round, each of them runs once. The first is [`Setup::Sequential`].
    pub(super) setups: Vec<Setup>,
    pub(super) repeat: u32,
    pub(super) format: Format,
    pub(super) preset: Option<String>,
    pub(super) set: Vec<String>,
}

/// The arguments that runs on threads and on virtual cores share.
#[derive(Debug, Args)]
pub(super) struct StoreArguments {
    /// Application, or "all"
    #[arg(value_name = "APP")]
    application: String,
    /// Protocols, separated by commas, of occ, tl2, drp, wait-die; or "all"
    #[arg(long, value_name = "P[,P...]|all", default_value = "occ")]
    pub(super) protocol: String,
    /// Stores, separated by commas: sequential (no transactions, one thread; on threads it always runs, as the speed-ups are
    /// against it), words (everything in words of one memory), datatypes, predicates (datatypes; numbers conflict only over
    /// what was tested), boosted (datatypes; maps and numbers are concurrent maps of another crate under abstract locks),
    /// deferred (predicates, and changes without a result are deferred; under drp); or "all"
    #[arg(long, value_name = "V[,V...]|all", default_value = "all")]
    pub(super) variant: String,
    /// Named set of options of the application
    #[arg(long, value_name = "NAME")]
    pub(super) preset: Option<String>,
    /// Option of the application; can be given several times. With "all" it is for the applications that have it
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
    /// Output format: "table", or "json" for one object per run and line
    #[arg(long, value_enum, default_value_t = Format::Table, hide_possible_values = true)]
    pub(super) format: Format,
}

impl StoreArguments {
    /// The named applications with their options.
    pub(super) fn applications(&self) -> Result<Vec<ApplicationOptions>, Refusal> {
        let (given, preset) = (settings(&self.set)?, self.preset.as_deref());
        if self.application == "all" {
            return all_applications(preset, &given);
        }
        Ok(vec![ApplicationOptions::parse(&self.application, preset, &given)?])
    }
}

#[derive(Debug, Args)]
struct StampArguments {
    #[command(flatten)]
    stores: StoreArguments,
    /// Threads; several numbers, separated by commas, are several runs [default: the machine's cores]
    #[arg(long, value_name = "N[,N...]", value_delimiter = ',', value_parser = parse_threads, allow_negative_numbers = true)]
    threads: Vec<usize>,
    /// Number of rounds; each runs everything once, the sequential version first
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), allow_negative_numbers = true)]
    repeat: u32,
}

/// The subcommand.
pub(crate) fn command() -> Command {
    StampArguments::augment_args(Command::new(NAME))
        .about("Runs STAMP applications over several stores and reports speed-ups over the sequential version")
        .after_help(format!(
            "An application runs to completion and verifies its result; the exit status is 1 if a verification fails. Times \
             are without the generation of the input and the verification; commits, aborts and items are with them. Items \
             are those of the largest transaction.\n\n{}\nExample:\n  \
             hotrow bench stamp vacation --preset high --threads 1,2 --set queries=8",
            options_help()
        ))
}

/// The applications with their options and presets.
pub(super) fn options_help() -> String {
    let mut help = String::new();
    for application in APPLICATIONS {
        let own = application.options.iter().map(|option| {
            [
                format!("--set {}={}", option.name, option.default),
                format!("{} [{}]", option.summary, option.bounds),
            ]
        });
        let presets = application
            .presets
            .iter()
            .map(|preset| [format!("--preset {}", preset.name), preset.summary.to_owned()]);
        help += &format!("{}: {}\n{}", application.name, application.summary, listing(own.chain(presets)));
    }
    help
}

impl From<OptionError> for Refusal {
    fn from(error: OptionError) -> Self {
        Self::Message(match error {
            OptionError::UnknownApplication { name } => {
                unknown("application", &name, names().into_iter().chain(["all"]))
            }
            OptionError::UnknownPreset { name, known } => unknown("preset", &name, known),
            OptionError::Unknown { name, known } => unknown("option", &name, known),
            error => error.to_string(),
        })
    }
}

/// Reads the arguments.
pub(crate) fn plan(matches: &ArgMatches) -> Result<StampPlan, Refusal> {
    let (_, matches) = matches.subcommand().expect("the caller has seen the subcommand");
    let arguments = StampArguments::from_arg_matches(matches).map_err(shortened)?;
    let applications = arguments.stores.applications()?;
    let threads = if arguments.threads.is_empty() {
        vec![hotrow::sync::thread::parallelism()]
    } else {
        arguments.threads.clone()
    };
    let protocols = protocols(&arguments.stores.protocol)?;
    let mut setups = vec![Setup::Sequential];
    for threads in threads {
        for protocol in &protocols {
            for variant in variants(&arguments.stores.variant, protocol)? {
                setups.push(Setup::Transactional { variant, protocol, threads });
            }
        }
    }
    let StampArguments { stores: StoreArguments { format, preset, set, .. }, repeat, .. } = arguments;
    Ok(StampPlan { applications, setups, repeat, format, preset, set })
}

fn settings(set: &[String]) -> Result<Vec<(&str, &str)>, Refusal> {
    let pair = |setting: &'_ String| Refusal::Message(format!("--set {setting}: expected KEY=VALUE"));
    set.iter().map(|setting| setting.split_once('=').ok_or_else(|| pair(setting))).collect()
}

/// The options of all applications, each with those of `given` and of the preset that it has.
fn all_applications(
    preset: Option<&str>,
    given: &[(&str, &str)],
) -> Result<Vec<ApplicationOptions>, Refusal> {
    let has = |application: &ApplicationInfo, key: &str| {
        application.options.iter().any(|option| option.name == key)
    };
    let has_preset = |application: &ApplicationInfo, name: &str| {
        application.presets.iter().any(|preset| preset.name == name)
    };
    if let Some((key, _)) = given.iter().find(|(key, _)| !APPLICATIONS.iter().any(|known| has(known, key))) {
        let known: BTreeSet<_> =
            APPLICATIONS.iter().flat_map(|known| known.options).map(|option| option.name).collect();
        return Err(Refusal::Message(unknown("option", key, known)));
    }
    if let Some(name) = preset.filter(|name| !APPLICATIONS.iter().any(|known| has_preset(known, name))) {
        let known: BTreeSet<_> =
            APPLICATIONS.iter().flat_map(|known| known.presets).map(|preset| preset.name).collect();
        return Err(Refusal::Message(unknown("preset", name, known)));
    }
    let options = APPLICATIONS.iter().map(|application| {
        let own: Vec<_> = given.iter().copied().filter(|(key, _)| has(application, key)).collect();
        let preset = preset.filter(|name| has_preset(application, name));
        Ok(ApplicationOptions::parse(application.name, preset, &own)?)
    });
    options.collect()
}

pub(super) fn protocols(names: &str) -> Result<Vec<&'static str>, Refusal> {
    if names == "all" {
        return Ok(PROTOCOLS.to_vec());
    }
    let find = |name: &str| PROTOCOLS.into_iter().find(|known| *known == name.trim());
    let refused =
        |name: &str| Refusal::Message(unknown("protocol of the STAMP applications", name.trim(), PROTOCOLS));
    names.split(',').map(|name| find(name).ok_or_else(|| refused(name))).collect()
}

/// The named variants, or all that a protocol admits.
pub(super) fn variants(names: &str, protocol: &str) -> Result<Vec<Variant>, Refusal> {
    let admits = |variant: &Variant| *variant != Variant::Deferred || DEFERRING.contains(&protocol);
    if names == "all" {
        return Ok(Variant::ALL.into_iter().filter(admits).collect());
    }
    let mut chosen = Vec::new();
    for name in names.split(',').map(str::trim).filter(|name| *name != SEQUENTIAL) {
        let Some(variant) = Variant::ALL.into_iter().find(|known| known.name() == name) else {
            let known = [SEQUENTIAL].into_iter().chain(Variant::ALL.map(Variant::name));
            return Err(Refusal::Message(unknown("variant", name, known)));
        };
        if !admits(&variant) {
            return Err(Refusal::Message(format!("variant {name} needs a protocol that defers: drp")));
        }
        chosen.push(variant);
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<T>(refused: Result<T, Refusal>) -> String {
        match refused {
            Err(Refusal::Message(words)) => words,
            _ => panic!("it is not refused"),
        }
    }

    #[test]
    fn deferral_is_only_for_protocols_that_defer() {
        assert_eq!(variants("all", "occ").unwrap().len(), 4);
        assert_eq!(variants("all", "drp").unwrap(), Variant::ALL);
        assert_eq!(variants("sequential, words", "occ").unwrap(), [Variant::Words]);
        assert_eq!(words(variants("deferred", "occ")), "variant deferred needs a protocol that defers: drp");
        assert!(
            words(variants("boxes", "occ"))
                .ends_with("there are: sequential, words, datatypes, predicates, boosted, deferred")
        );
    }

    #[test]
    fn options_of_all_go_to_the_applications_that_have_them() {
        let all = all_applications(Some("simulator"), &[("flows", "7"), ("seed", "3")]).unwrap();
        assert_eq!(all.len(), APPLICATIONS.len());
        assert!(all.iter().any(|options| format!("{options:?}").contains("flows: 7")));
        assert_eq!(
            words(all_applications(None, &[("relatons", "1")])),
            "unknown option \"relatons\"; did you mean relations?"
        );
        let unknown = words(all_applications(Some("abacus"), &[]));
        assert!(unknown.starts_with("unknown preset \"abacus\"; there are: "), "{unknown}");
    }
}
