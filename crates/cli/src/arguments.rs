//! What the arguments of several subcommands have in common.

use clap::{Arg, ArgMatches, Command, ValueEnum};
use hotrow_workloads::{OptionError, WORKLOADS, WorkloadInfo, WorkloadOptions};

#[cfg(not(all(feature = "sim", feature = "stamp", feature = "serve", feature = "remote")))]
mod absent;
mod measured;
mod nearest;
mod refused;
mod simulator;

#[cfg(not(all(feature = "sim", feature = "stamp", feature = "serve", feature = "remote")))]
pub(crate) use absent::without_feature;
#[cfg(feature = "serve")]
pub(crate) use measured::known_protocol;
pub(crate) use measured::{
    THREADS_MAX, ThinkArguments, parse_measured, parse_threads, parse_warmup, protocols,
};
pub(crate) use nearest::unknown;
pub(crate) use refused::{refused, shortened};
#[cfg(feature = "sim")]
pub(crate) use simulator::machine_called;
#[cfg(not(feature = "sim"))]
pub(crate) use simulator::no_simulator;

/// The output format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for people.
    Table,
    /// One JSON object per line.
    Json,
}

/// The help text about the counters of protocols.
pub(crate) const COUNTERS_HELP: &str = "\
    A run also reports the counters of its protocol (JSON: counters): under work-stealing protocols (steal, \
    steal-basic) the share of the stealable operations that other workers ran, and the mean time of an operation, \
    stolen or not; under drp and deferred-2pl the tame transactions; under dbx, chop-htm and naive-htm the hardware \
    transactions, by how they ended.";

/// The subcommand of a workload, with the workload's own options.
pub(crate) fn own_options(workload: &WorkloadInfo) -> Command {
    let own = workload.options.iter().map(|option| {
        Arg::new(option.name)
            .long(option.name)
            .value_name(option.value)
            .help(option.summary)
            .default_value(option.default)
            .allow_negative_numbers(true)
            .help_heading("Options of the workload")
    });
    Command::new(workload.name).args(own)
}

/// The options that `augment` adds to the command of every workload, as a section of the help of the command above.
pub(crate) fn common_options(augment: impl Fn(Command) -> Command) -> String {
    let options = augment(Command::new("options"))
        .disable_help_flag(true)
        .help_template("{options}")
        .term_width(crate::text::WIDTH.into())
        .render_help()
        .to_string();
    format!("Options of every workload, which come after its name:\n{}", options.trim_end())
}

/// The description of a workload. Set it after all options, because the shared ones bring an `about` of their own.
pub(crate) fn about(workload: &WorkloadInfo) -> String {
    format!("{} ({})", workload.summary, workload.source)
}

/// The reason why the command line gives no request.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The user asked for help or the version.
    Answer(clap::Error),
    /// The arguments are invalid; the message is one line.
    Message(String),
}

impl From<OptionError> for Refusal {
    fn from(error: OptionError) -> Self {
        Self::Message(match error {
            OptionError::UnknownWorkload { name, known } => unknown("workload", &name, known),
            OptionError::NotOneOf { name, value, known } => {
                nearest::not_one_of(&format!("--{name}"), &value, &known)
            }
            error => error.to_string(),
        })
    }
}

/// The workload chosen below a subcommand with its options, and the remaining arguments.
pub(crate) fn workload(matches: &ArgMatches) -> Result<(WorkloadOptions, &ArgMatches), Refusal> {
    let (name, matches) = matches.subcommand().expect("clap requires a subcommand");
    let known = WORKLOADS.iter().find(|workload| workload.name == name);
    let given: Vec<(&str, &str)> = known
        .map_or(&[][..], |workload| workload.options)
        .iter()
        .filter_map(|option| Some((option.name, matches.get_one::<String>(option.name)?.as_str())))
        .collect();
    Ok((hotrow_workloads::parse(name, &given)?, matches))
}
