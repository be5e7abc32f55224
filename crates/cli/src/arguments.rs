//! The command line: what can be asked, and what is asked.
//!
//! Each workload is a subcommand of `bench` and of `compare`, made from the workloads' own registry, with the
//! options that all workloads share.

use crate::host::ThisHost;
use crate::text;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches as _, ValueEnum};
use hotrow::protocols::{PROTOCOLS, ProtocolInfo, UnknownProtocol};
use hotrow_check::Level;
use hotrow_workloads::{OptionError, Settings, WORKLOADS, WorkloadInfo, WorkloadOptions};
use std::path::PathBuf;
use std::time::Duration;

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

/// What to measure.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The workload.
    pub(crate) workload: WorkloadOptions,
    /// The protocols, in order, each with its number of threads.
    pub(crate) protocols: Vec<(&'static ProtocolInfo, usize)>,
    /// The protocols of `all` that were left out because they admit fewer threads.
    pub(crate) left_out: Vec<&'static ProtocolInfo>,
    /// Runs of each protocol.
    pub(crate) repeat: u32,
    /// How to print.
    pub(crate) format: Format,
    /// Where the history of the one run goes.
    pub(crate) record: Option<Record>,
    warmup: Duration,
    measured: Duration,
    seed: u64,
}

impl Plan {
    /// How to run with so many threads in a round, which has a seed of its own.
    pub(crate) fn settings(&self, threads: usize, round: u32) -> Settings {
        let seed = self.seed.wrapping_add(u64::from(round));
        Settings { threads, warmup: self.warmup, measured: self.measured, seed }
    }
}

/// Where a history goes, and how large it may be.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// The file.
    pub(crate) path: PathBuf,
    /// Memory for it, in bytes.
    pub(crate) bytes_max: usize,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for people.
    Table,
    /// One JSON object per line.
    Json,
}

/// Options that all workloads share.
#[derive(Debug, Args)]
struct RunArguments {
    /// Protocols, separated by commas, or "all": those that admit the number of threads
    #[arg(long, value_name = "P[,P...]|all")]
    protocol: String,
    /// Threads, one worker each [default: the machine's cores, or fewer if the protocol admits no more]
    #[arg(long, value_name = "N", value_parser = parse_threads, allow_negative_numbers = true)]
    threads: Option<usize>,
    /// How long to measure, in seconds
    #[arg(long, value_name = "S", default_value = "5", value_parser = parse_measured, allow_negative_numbers = true)]
    seconds: Duration,
    /// How long to run before measuring, in seconds
    #[arg(long, value_name = "S", default_value = "1", value_parser = parse_warmup, allow_negative_numbers = true)]
    warmup: Duration,
    /// Seed of data and inputs; each further repetition takes the next number
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Runs of each protocol, each on new data
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), allow_negative_numbers = true)]
    repeat: u32,
    /// How to print: "table", or "json" for one object per run and line
    #[arg(long, value_enum, default_value_t = Format::Table, hide_possible_values = true)]
    format: Format,
    /// Record what each attempt reads and writes, for `hotrow check FILE`; one run only. Slows the run down
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Memory for the record, in MB; when it is used up, what begins later is not recorded
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000), allow_negative_numbers = true)]
    record_mb: u32,
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
    example: &'static str,
}

const BENCH: Runner = Runner {
    name: "bench",
    about: "Runs a workload and reports throughput, latency, aborts, hot rows, checks and memory",
    details: "The exit status is 1 if a check of the workload fails, 2 for arguments that cannot be.",
    protocol: "occ",
    repeat: "1",
    example: "--threads 2 --seconds 10",
};

const COMPARE: Runner = Runner {
    name: "compare",
    about: "Runs a workload under several protocols in turn and reports ratios to the first",
    details: "Each round runs every protocol once; medians over the rounds are compared. With --format json it \
              prints the runs' objects, one per line, and nothing else: ratios are the reader's to compute.",
    protocol: "all",
    repeat: "5",
    example: "--protocol occ,tl2 --threads 2 --repeat 3",
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
    let WorkloadInfo { name, summary, source, .. } = *workload;
    Command::new(name).args(own).about(format!("{summary} ({source})"))
}

fn workload_command(runner: &Runner, workload: &WorkloadInfo) -> Command {
    let WorkloadInfo { name, example, .. } = *workload;
    RunArguments::augment_args(own_options(workload))
        .mut_arg("protocol", |arg| arg.required(false).default_value(runner.protocol))
        .mut_arg("repeat", |arg| arg.required(false).default_value(runner.repeat))
        .after_help(help_end(runner, &format!("{name} {example} {}", runner.example)))
}

fn help_end(runner: &Runner, example: &str) -> String {
    format!("{}\n\nExample:\n  hotrow {} {example}", runner.details, runner.name)
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
        "bench" => Ok(Request::Bench(plan(matches, host)?)),
        "compare" => Ok(Request::Compare(plan(matches, host)?)),
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

fn plan(matches: &ArgMatches, host: &ThisHost) -> Result<Plan, Refusal> {
    let (workload, matches) = workload(matches)?;
    let name = workload.info().name;
    let arguments = RunArguments::from_arg_matches(matches).map_err(shortened)?;
    let cores = hotrow::sync::thread::parallelism();
    let (protocols, left_out) = protocols(&arguments.protocol, arguments.threads, cores)?;
    let needed = workload.resident_bytes_estimate();
    if let Some(available) = host.available_bytes().filter(|available| needed > *available) {
        let (needed, available) = (text::memory(needed), text::memory(available));
        return Err(Refusal::Words(format!(
            "{name} with these options needs about {needed} of memory, and {available} are available"
        )));
    }
    let RunArguments { seconds, warmup, seed, repeat, format, record, record_mb, .. } = arguments;
    let runs = protocols.len() * repeat as usize;
    if record.is_some() && runs != 1 {
        return Err(Refusal::Words(format!(
            "--record takes one run, not {runs}: name one protocol, and --repeat 1"
        )));
    }
    let record = record.map(|path| Record { path, bytes_max: record_mb as usize * 1_000_000 });
    Ok(Plan { workload, protocols, left_out, repeat, format, record, warmup, measured: seconds, seed })
}

/// The protocols named, each with its number of threads; and those of `all` that do not admit the number.
pub(crate) fn protocols(
    names: &str,
    threads: Option<usize>,
    cores: usize,
) -> Result<(Vec<(&'static ProtocolInfo, usize)>, Vec<&'static ProtocolInfo>), Refusal> {
    let admits = |protocol: &ProtocolInfo, threads: usize| threads <= protocol.workers_max as usize;
    if names == "all" {
        let threads = threads.unwrap_or(cores);
        let (fit, left_out): (Vec<_>, Vec<_>) =
            PROTOCOLS.iter().partition(|protocol| admits(protocol, threads));
        if fit.is_empty() {
            return Err(Refusal::Words(format!("no protocol admits {threads} threads")));
        }
        return Ok((fit.into_iter().map(|protocol| (protocol, threads)).collect(), left_out));
    }
    let named = names.split(',').map(|name| {
        let name = name.trim();
        let Some(protocol) = PROTOCOLS.iter().find(|protocol| protocol.name == name) else {
            return Err(Refusal::Words(UnknownProtocol { name: name.to_owned() }.to_string()));
        };
        let workers_max = protocol.workers_max as usize;
        let threads = threads.unwrap_or(cores.min(workers_max));
        if !admits(protocol, threads) {
            return Err(Refusal::Words(format!(
                "protocol {name} admits at most {workers_max} thread{}, not {threads}",
                if workers_max == 1 { "" } else { "s" }
            )));
        }
        Ok((protocol, threads))
    });
    Ok((named.collect::<Result<_, _>>()?, Vec::new()))
}

/// The most threads that a run may have.
const THREADS_MAX: usize = 1024;

fn parse_threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok().filter(|threads| (1..=THREADS_MAX).contains(threads));
    threads.ok_or_else(|| format!("expected a number from 1 to {THREADS_MAX}"))
}

/// The longest time, in seconds: a day.
const SECONDS_MAX: f64 = 86_400.0;

pub(crate) fn parse_measured(text: &str) -> Result<Duration, String> {
    parse_seconds(text, 0.001)
}

pub(crate) fn parse_warmup(text: &str) -> Result<Duration, String> {
    parse_seconds(text, 0.0)
}

fn parse_seconds(text: &str, least: f64) -> Result<Duration, String> {
    // What is not a number (NaN) is in no range.
    let seconds = text.parse().ok().filter(|seconds| (least..=SECONDS_MAX).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("expected seconds from {least} to {SECONDS_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn all_leaves_out_the_protocols_that_do_not_admit_the_threads() {
        let (two, left_out) = protocols("all", Some(2), 8).unwrap();
        assert!(two.iter().all(|(protocol, threads)| *threads == 2 && protocol.workers_max >= 2));
        assert!(left_out.iter().any(|protocol| protocol.name == "none"));
        let (one, left_out) = protocols("all", None, 1).unwrap();
        assert_eq!((one.len(), left_out.len()), (PROTOCOLS.len(), 0));
    }

    #[test]
    fn a_named_protocol_gets_as_many_threads_as_it_admits_unless_they_are_given() {
        let threads = |names, threads| {
            let (protocols, _) = protocols(names, threads, 8)?;
            Ok::<_, Refusal>(protocols.into_iter().map(|(_, threads)| threads).collect::<Vec<_>>())
        };
        assert_eq!(threads("occ,none", None).unwrap(), [8, 1]);
        assert_eq!(threads("occ, occ", Some(3)).unwrap(), [3, 3]);
        assert!(matches!(threads("occ,none", Some(2)), Err(Refusal::Words(words)) if words.contains("none")));
        assert!(matches!(threads("ocm", None), Err(Refusal::Words(words)) if words.contains("occ")));
    }

    #[test]
    fn times_are_positive_and_at_most_a_day() {
        for text in ["0", "-1", "NaN", "inf", "86401", "five", ""] {
            assert!(parse_measured(text).is_err(), "{text}");
        }
        assert_eq!(parse_measured("0.2"), Ok(Duration::from_millis(200)));
        assert_eq!(parse_warmup("0"), Ok(Duration::ZERO));
        assert!(parse_threads("0").is_err() && parse_threads("1025").is_err());
    }
}
