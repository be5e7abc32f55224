//! The command line: its definition, and the request that it parses into.
//!
//! Each workload is a subcommand of `bench` and of `compare`. It comes from the registry of workloads, plus the
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

#[cfg(feature = "stamp")]
pub(crate) use measured::parse_threads;
pub(crate) use measured::{BenchPlan, Part, RecordingOptions, THREADS_MAX};
#[cfg(feature = "sim")]
pub(crate) use measured::{ThinkArguments, parse_measured, parse_warmup, protocols};

/// A parsed command line.
#[derive(Debug)]
pub(crate) enum Request {
    /// Measures a workload.
    Bench(BenchPlan),
    /// Measures STAMP applications.
    #[cfg(feature = "stamp")]
    Stamp(crate::stamp::StampPlan),
    /// Measures several protocols in turn.
    Compare(BenchPlan),
    /// Chops a workload's procedures.
    Chop(crate::chop::ChopPlan),
    /// Looks at the log of a durable database.
    Log(crate::log::LogPlan),
    /// Lists protocols, workloads and machines, or the options of a workload.
    List(crate::list::ListPlan),
    /// Prints shell completions, or writes manual pages.
    Shell(crate::shell::ShellPlan),
    /// Checks a recorded history.
    Check(CheckArguments),
    /// Measures on virtual cores.
    #[cfg(feature = "sim")]
    Sim(crate::sim::VirtualPlan),
    /// Runs STAMP applications on virtual cores.
    #[cfg(all(feature = "sim", feature = "stamp"))]
    VirtualStamp(crate::stamp::VirtualStampPlan),
    /// Checks many schedules.
    #[cfg(feature = "sim")]
    Explore(crate::explore::Exploration),
    /// Compares simulated runs with real ones.
    #[cfg(feature = "sim")]
    Fidelity(crate::fidelity::FidelityPlan),
    /// Reruns the papers' figures.
    #[cfg(feature = "sim")]
    Figures(crate::figures::FiguresPlan),
}

/// The output format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for people.
    Table,
    /// One JSON object per line.
    Json,
}

/// The arguments of `hotrow check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The history file that --record has written
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The level that the history must reach: serializable, strict (serializable in real time), or opaque (aborted
    /// attempts have seen one consistent state, too) [default: the level that the recorded protocol claims]
    #[arg(long, value_parser = level(), value_name = "LEVEL", hide_possible_values = true)]
    pub(crate) require: Option<Level>,
    /// The largest number of anomalies to print
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) anomalies: u32,
    /// Output format: "table", or "json" for one object
    #[arg(long, value_enum, default_value_t = Format::Table, hide_possible_values = true)]
    pub(crate) format: Format,
}

/// The names of [`Level::ALL`] on the command line.
pub(crate) const LEVELS: [&str; Level::ALL.len()] = ["serializable", "strict", "opaque"];

/// Parses one of [`LEVELS`].
fn level() -> impl TypedValueParser<Value = Level> {
    let at =
        |name: String| LEVELS.iter().position(|known| *known == name).expect("clap accepts no other name");
    PossibleValuesParser::new(LEVELS).map(move |name| Level::ALL[at(name)])
}

/// A subcommand that runs workloads.
struct Runner {
    name: &'static str,
    about: &'static str,
    details: &'static str,
    protocol: &'static str,
    repeat: &'static str,
    /// The default kind of its plot; `None` if it draws no plots.
    plot: Option<plot::PlotKind>,
    example: &'static str,
}

/// The help text about the counters of protocols.
pub(crate) const COUNTERS_HELP: &str = "\
    A run also reports the counters of its protocol (JSON: counters): under work-stealing protocols (steal, \
    steal-basic) the share of the stealable operations that other workers ran, and the mean time of an operation, \
    stolen or not; under drp and deferred-2pl the tame transactions; under dbx, chop-htm and naive-htm the hardware \
    transactions, by how they ended.";

const BENCH: Runner = Runner {
    name: "bench",
    about: "Runs a workload and reports throughput, latency, aborts, hot rows, checks and memory",
    details: "If there are several runs, each has a process of its own. The exit status is 1 if a check of the \
              workload fails, and 2 for invalid arguments.",
    protocol: "occ",
    repeat: "1",
    plot: None,
    example: "--threads 2 --seconds 10",
};

const COMPARE: Runner = Runner {
    name: "compare",
    about: "Runs a workload under several protocols in turn and reports ratios to the first",
    details: "Each round runs every protocol once at each number of threads. The command compares medians over the \
              rounds, at the same number of threads. Each run has a process of its own, so that it is not charged \
              with memory that an earlier one has left behind. With --format json it prints one object per run and \
              line, without ratios.",
    protocol: "all",
    repeat: "5",
    plot: Some(plot::PlotKind::Latency),
    example: "--protocol occ,tl2 --threads 1,2,4,8 --repeat 3 --plot latency.svg",
};

/// The command's definition.
pub(crate) fn command() -> Command {
    Command::new("hotrow")
        .about("Measures transactions on shared memory, under every protocol of Hotrow")
        .version(concat!(env!("CARGO_PKG_VERSION"), " (", env!("HOTROW_REVISION"), ")"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        // So that the error for an unknown command can list the known ones.
        .allow_external_subcommands(true)
        .subcommand(runner(&BENCH).subcommand(crate::stamp::command()))
        .subcommand(runner(&COMPARE))
        .subcommand(
            CheckArguments::augment_args(Command::new("check"))
                .about("Checks a recorded history: serializable, strictly serializable, opaque")
                .after_help(
                    "The exit status is 1 if the history does not reach the required level, or cannot be read.\n\n\
                     Example:\n  hotrow bench stress --threads 4 --seconds 1 --record stress.history\n  \
                     hotrow check stress.history",
                ),
        )
        .subcommand(crate::chop::command())
        .subcommand(crate::log::command())
        .subcommand(crate::list::command())
        .subcommand(crate::sim::command())
        .subcommand(crate::explore::command())
        .subcommand(crate::fidelity::command())
        .subcommand(figures())
        .subcommand(crate::shell::completions_command())
        .subcommand(crate::shell::manual_command())
        .after_help("Example:\n  hotrow bench tpcc --warehouses 1 --protocol all")
}

/// The subcommand of the papers' figures, which most need the simulator.
fn figures() -> Command {
    #[cfg(feature = "sim")]
    return crate::figures::command();
    #[cfg(not(feature = "sim"))]
    crate::sim::without_simulator(
        "figures",
        "Reruns the papers' figures, and sets ours beside theirs on one page",
    )
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
        // So that the error for an unknown workload can list the known ones.
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

/// The description of a workload. Set it after all options, because the shared ones bring an `about` of their own.
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
    format!("{} {COUNTERS_HELP}\n\nExample:\n  hotrow {} {example}", runner.details, runner.name)
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
        Self::Message(error.to_string())
    }
}

/// Reads the command line.
pub(crate) fn parse(host: &ThisHost) -> Result<Request, Refusal> {
    let matches = command().try_get_matches().map_err(shortened)?;
    let (name, matches) = matches.subcommand().expect("clap requires a subcommand");
    match name {
        "bench" if matches.subcommand_name() == Some(crate::stamp::NAME) => crate::stamp::request(matches),
        "bench" => Ok(Request::Bench(measured::plan(matches, host, false)?)),
        "compare" => Ok(Request::Compare(measured::plan(matches, host, true)?)),
        #[cfg(feature = "sim")]
        "sim" if matches.subcommand_name() == Some(crate::stamp::NAME) => {
            crate::stamp::virtual_request(matches)
        }
        #[cfg(feature = "sim")]
        "sim" => Ok(Request::Sim(crate::sim::plan(matches)?)),
        #[cfg(feature = "sim")]
        "explore" => Ok(Request::Explore(crate::explore::plan(matches)?)),
        #[cfg(feature = "sim")]
        "fidelity" => Ok(Request::Fidelity(crate::fidelity::plan(matches)?)),
        #[cfg(feature = "sim")]
        "figures" => Ok(Request::Figures(crate::figures::plan(matches)?)),
        #[cfg(not(feature = "sim"))]
        "sim" | "explore" | "fidelity" | "figures" => Err(crate::sim::refusal(name)),
        "check" => Ok(Request::Check(CheckArguments::from_arg_matches(matches).map_err(shortened)?)),
        "log" => Ok(Request::Log(crate::log::plan(matches))),
        "completions" | "man" => Ok(Request::Shell(crate::shell::plan(name, matches))),
        "chop" => Ok(Request::Chop(crate::chop::plan(matches)?)),
        "list" => Ok(Request::List(crate::list::plan(matches)?)),
        _ => {
            let known: Vec<String> =
                command().get_subcommands().map(|known| known.get_name().to_owned()).collect();
            Err(Refusal::Message(format!("unknown command {name:?}; there are: {}", known.join(", "))))
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
    Refusal::Message(line.strip_prefix("error: ").unwrap_or(&line).to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_accepts_the_command_definition() {
        command().debug_assert();
    }
}
