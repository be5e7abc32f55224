//! The command line: what can be asked, and what is asked.
//!
//! Each workload is a subcommand of `bench` and of `compare`, made from the workloads' own registry, with the
//! options that all workloads share.

use crate::host::ThisHost;
use crate::plot::{self, PlotArguments};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches as _, ValueEnum};
use hotrow_check::Level;
use hotrow_workloads::{OptionError, WORKLOADS, WorkloadInfo, WorkloadOptions};
use measured::RunArguments;
use std::path::PathBuf;

mod measured;

pub(crate) use measured::{Plan, Record};
#[cfg(feature = "sim")]
pub(crate) use measured::{ThinkArguments, parse_measured, parse_warmup, protocols};

/// What is asked.
#[derive(Debug)]
pub(crate) enum Request {
    /// Measure.
    Bench(Plan),
    /// Measure several protocols in turn.
    Compare(Plan),
    /// Say what there is.
    List(Format),
    /// Judge a recorded history.
    Check(CheckArguments),
    /// Measure on virtual cores.
    #[cfg(feature = "sim")]
    Sim(crate::sim::VirtualPlan),
    /// Judge many schedules.
    #[cfg(feature = "sim")]
    Explore(crate::explore::Exploration),
    /// Hold simulated runs against real ones.
    #[cfg(feature = "sim")]
    Fidelity(crate::fidelity::FidelityPlan),
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for people.
    Table,
    /// One JSON object per line.
    Json,
}

/// What to judge.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The history, as --record has written it
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The least that it must be: serializable, strict (serializable in real time), or opaque (aborted attempts
    /// have seen one state, too) [default: what the recorded protocol claims]
    #[arg(long, value_parser = level(), value_name = "LEVEL", hide_possible_values = true)]
    pub(crate) require: Option<Level>,
    /// The most anomalies to print
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) anomalies: u32,
    /// How to print: "table", or "json" for one object
    #[arg(long, value_enum, default_value_t = Format::Table, hide_possible_values = true)]
    pub(crate) format: Format,
}

/// The names of [`Level::ALL`] on the command line.
const LEVELS: [&str; Level::ALL.len()] = ["serializable", "strict", "opaque"];

/// One of [`LEVELS`].
fn level() -> impl TypedValueParser<Value = Level> {
    let at =
        |name: String| LEVELS.iter().position(|known| *known == name).expect("clap admits no other name");
    PossibleValuesParser::new(LEVELS).map(move |name| Level::ALL[at(name)])
}

#[derive(Debug, Args)]
struct ListArguments {
    /// How to print: "table", or "json" for one object
    #[arg(long, value_enum, default_value_t = Format::Table, hide_possible_values = true)]
    format: Format,
}

/// A subcommand that runs workloads.
struct Runner {
    name: &'static str,
    about: &'static str,
    details: &'static str,
    protocol: &'static str,
    repeat: &'static str,
    /// What its plot shows unless another is asked for, if it draws any.
    plot: Option<plot::Kind>,
    example: &'static str,
}

/// What runs say of operations that were shared.
pub(crate) const OF_STOLEN_OPERATIONS: &str = "\
    Under protocols that share operations (steal, steal-basic) a run also says how many of those that were drawn for \
    others were stolen, that is, run by others than their own worker, and what one took on average, stolen or not \
    (JSON: drawn_operations).";

const BENCH: Runner = Runner {
    name: "bench",
    about: "Runs a workload and reports throughput, latency, aborts, hot rows, checks and memory",
    details: "The exit status is 1 if a check of the workload fails, 2 for arguments that cannot be.",
    protocol: "occ",
    repeat: "1",
    plot: None,
    example: "--threads 2 --seconds 10",
};

const COMPARE: Runner = Runner {
    name: "compare",
    about: "Runs a workload under several protocols in turn and reports ratios to the first",
    details: "Each round runs every protocol once at each number of threads; medians over the rounds are \
              compared, those with as many threads to each other. With --format json it prints the runs' objects, one per line, and nothing else: ratios are the reader's to compute.",
    protocol: "all",
    repeat: "5",
    plot: Some(plot::Kind::Latency),
    example: "--protocol occ,tl2 --threads 1,2,4,8 --repeat 3 --plot latency.svg",
};

fn command() -> Command {
    Command::new("hotrow")
        .about("Measures transactions on shared memory, under every protocol of Hotrow")
        .version(concat!(env!("CARGO_PKG_VERSION"), " (", env!("HOTROW_REVISION"), ")"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        // So that an unknown command is answered with those there are.
        .allow_external_subcommands(true)
        .subcommand(runner(&BENCH))
        .subcommand(runner(&COMPARE))
        .subcommand(
            CheckArguments::augment_args(Command::new("check"))
                .about("Judges a recorded history: serializable, strictly serializable, opaque")
                .after_help(
                    "The exit status is 1 if the history is not what it must be, or cannot be read.\n\n\
                     Example:\n  hotrow bench stress --threads 4 --seconds 1 --record stress.history\n  \
                     hotrow check stress.history",
                ),
        )
        .subcommand(
            ListArguments::augment_args(Command::new("list"))
                .about(if cfg!(feature = "sim") {
                    "Lists protocols, workloads and machines"
                } else {
                    "Lists protocols and workloads"
                })
                .after_help("Example:\n  hotrow list --format json"),
        )
        .subcommand(crate::sim::command())
        .subcommand(crate::explore::command())
        .subcommand(crate::fidelity::command())
        .after_help("Example:\n  hotrow bench tpcc --warehouses 1 --protocol all")
}

fn runner(runner: &Runner) -> Command {
    let first = WORKLOADS.first().map_or("", |workload| workload.name);
    Command::new(runner.name)
        .about(runner.about)
        .after_help(help_end(runner, &format!("{first} {}", runner.example)))
        .subcommand_value_name("WORKLOAD")
        .subcommand_help_heading("Workloads")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        // So that an unknown workload is answered with those there are.
        .allow_external_subcommands(true)
        .subcommands(WORKLOADS.iter().map(|workload| workload_command(runner, workload)))
}

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

/// What a workload is. To be said after all options: those that are shared bring an `about` of their own.
pub(crate) fn about(workload: &WorkloadInfo) -> String {
    format!("{} ({})", workload.summary, workload.source)
}

fn workload_command(runner: &Runner, workload: &WorkloadInfo) -> Command {
    let WorkloadInfo { name, example, .. } = *workload;
    let shared = RunArguments::augment_args(own_options(workload));
    let all = match runner.plot {
        Some(kind) => PlotArguments::augment(shared, kind),
        None => shared,
    };
    all.about(about(workload))
        .mut_arg("protocol", |arg| arg.required(false).default_value(runner.protocol))
        .mut_arg("repeat", |arg| arg.required(false).default_value(runner.repeat))
        .after_help(help_end(runner, &format!("{name} {example} {}", runner.example)))
}

fn help_end(runner: &Runner, example: &str) -> String {
    format!("{} {OF_STOLEN_OPERATIONS}\n\nExample:\n  hotrow {} {example}", runner.details, runner.name)
}

/// Why a request is not carried out.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Help or version was asked for.
    Answer(clap::Error),
    /// The arguments cannot be: one line says why.
    Words(String),
}

impl From<OptionError> for Refusal {
    fn from(error: OptionError) -> Self {
        Self::Words(error.to_string())
    }
}

/// Reads the command line.
pub(crate) fn parse(host: &ThisHost) -> Result<Request, Refusal> {
    let matches = command().try_get_matches().map_err(shortened)?;
    let (name, matches) = matches.subcommand().expect("clap demands a subcommand");
    match name {
        "bench" => Ok(Request::Bench(measured::plan(matches, host, false)?)),
        "compare" => Ok(Request::Compare(measured::plan(matches, host, true)?)),
        #[cfg(feature = "sim")]
        "sim" => Ok(Request::Sim(crate::sim::plan(matches)?)),
        #[cfg(feature = "sim")]
        "explore" => Ok(Request::Explore(crate::explore::plan(matches)?)),
        #[cfg(feature = "sim")]
        "fidelity" => Ok(Request::Fidelity(crate::fidelity::plan(matches)?)),
        #[cfg(not(feature = "sim"))]
        "sim" | "explore" | "fidelity" => Err(crate::sim::refusal(name)),
        "check" => Ok(Request::Check(CheckArguments::from_arg_matches(matches).map_err(shortened)?)),
        "list" => Ok(Request::List(ListArguments::from_arg_matches(matches).map_err(shortened)?.format)),
        _ => {
            let known: Vec<String> =
                command().get_subcommands().map(|known| known.get_name().to_owned()).collect();
            Err(Refusal::Words(format!("unknown command {name:?}; there are: {}", known.join(", "))))
        }
    }
}

/// The first paragraph of clap's message, in one line.
pub(crate) fn shortened(error: clap::Error) -> Refusal {
    if !error.use_stderr() || error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    {
        return Refusal::Answer(error);
    }
    let message = error.to_string();
    let paragraph = message.split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    Refusal::Words(line.strip_prefix("error: ").unwrap_or(&line).to_owned())
}

/// The workload chosen below a subcommand, and what was said of it.
pub(crate) fn workload(matches: &ArgMatches) -> Result<(WorkloadOptions, &ArgMatches), Refusal> {
    let (name, matches) = matches.subcommand().expect("clap demands a subcommand");
    let Some(info) = WORKLOADS.iter().find(|workload| workload.name == name) else {
        return Err(OptionError::UnknownWorkload { name: name.to_owned() }.into());
    };
    let given: Vec<(String, String)> = info
        .options
        .iter()
        .filter_map(|option| Some((option.name.to_owned(), matches.get_one::<String>(option.name)?.clone())))
        .collect();
    Ok((WorkloadOptions::parse(name, &given)?, matches))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_consistent() {
        command().debug_assert();
    }
}
