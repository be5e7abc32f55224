//! The runs that `bench` and `compare` make.

use crate::arguments::{
    Format, Refusal, ThinkArguments, parse_measured, parse_threads, parse_warmup, protocols, shortened,
    workload,
};
use crate::host::ThisHost;
use crate::plot::{PlotArguments, PlotRequest};
use crate::text;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgMatches, Args, FromArgMatches as _};
use hotrow::protocols::ProtocolInfo;
use hotrow_workloads::{BaselineInfo, LogMode, OptionError, RunReport, Settings, WorkloadOptions};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The runs that `bench` or `compare` makes.
#[derive(Debug)]
pub(crate) struct BenchPlan {
    /// The workload.
    pub(crate) workload: WorkloadOptions,
    /// The protocols to run with their numbers of threads, in order: all protocols at the first number of threads,
    /// then all at the next.
    pub(crate) protocols: Vec<(&'static ProtocolInfo, usize)>,
    /// True if several numbers of threads were given.
    pub(crate) several_threads: bool,
    /// The protocols of `all` that are left out because they admit fewer threads, each with the numbers of threads
    /// at which it is left out.
    pub(crate) left_out: Vec<(&'static ProtocolInfo, Vec<usize>)>,
    /// The delay before each operation.
    pub(crate) think: Duration,
    /// When transactions count as committed.
    pub(crate) durability: LogMode,
    /// The directory in which each run has its log, in a new directory of its own.
    pub(crate) log_directory: Option<PathBuf>,
    /// The address of the distributed store that has the tables.
    pub(crate) store: Option<String>,
    /// The number of runs of each protocol.
    pub(crate) repeat: u32,
    /// The output format.
    pub(crate) format: Format,
    /// True if reports name both sides of conflicts.
    pub(crate) both_sides: bool,
    /// True if runs are shown while they go on.
    pub(crate) live: bool,
    /// The recording of the history, which only a single run may have.
    pub(crate) record: Option<RecordingOptions>,
    /// The only run that this process is to make, for the process that has started it.
    pub(crate) part: Option<Part>,
    /// The plot to draw.
    pub(crate) plot: Option<PlotRequest>,
    /// True if each round runs every protocol once; otherwise each protocol has all its rounds one after the other.
    pub(crate) takes_turns: bool,
    /// True if a comparison shows all that it has measured.
    pub(crate) details: bool,
    warmup: Duration,
    measured: Duration,
    seed: u64,
}

impl BenchPlan {
    /// The run that a run is compared to: the first run or, if there are several numbers of threads, the first run
    /// with the same number.
    pub(crate) fn compared_to(&self, run: usize) -> usize {
        let alike = |(_, threads): &(_, usize)| *threads == self.protocols[run].1;
        if self.several_threads { self.protocols.iter().position(alike).unwrap_or(run) } else { 0 }
    }

    /// Describes the number, length and seed of the runs.
    pub(crate) fn method(&self) -> String {
        let runs =
            if self.repeat == 1 { "one run".to_owned() } else { format!("medians of {} runs", self.repeat) };
        format!("{runs} each, {} s long, seed {}", self.measured.as_secs_f64(), self.seed)
    }

    /// The number of all runs.
    pub(crate) fn runs(&self) -> usize {
        self.protocols.len() * self.repeat as usize
    }

    /// The place of a run among all, counted from 1.
    pub(crate) fn place(&self, part: Part) -> usize {
        let round = part.round as usize;
        1 + match self.takes_turns {
            true => round * self.protocols.len() + part.protocol,
            false => part.protocol * self.repeat as usize + round,
        }
    }

    /// Says how long the runs take.
    pub(crate) fn forecast(&self) -> String {
        let counted =
            |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
        let total = (self.warmup + self.measured).saturating_mul(self.runs() as u32);
        format!(
            "takes about {}, and the time to load the data: {} ({}, {}), each with {} of warm-up and {} of \
             measurement",
            text::duration(total),
            counted(self.runs(), "run"),
            counted(self.protocols.len(), if self.several_threads { "configuration" } else { "protocol" }),
            counted(self.repeat as usize, "round"),
            text::duration(self.warmup),
            text::duration(self.measured),
        )
    }

    /// The settings of a run in a round. Each round has a seed of its own.
    pub(crate) fn settings(&self, threads: usize, round: u32) -> Settings {
        let seed = self.seed.wrapping_add(u64::from(round));
        Settings { threads, warmup: self.warmup, measured: self.measured, seed }
    }
}

/// One run of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// The index of its protocol in the plan.
    pub(crate) protocol: usize,
    /// Its round.
    pub(crate) round: u32,
}

impl Part {
    /// The option that names it.
    pub(crate) const OPTION: &str = "part-of-runs";
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.protocol, self.round)
    }
}

impl FromStr for Part {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text.split_once(':').and_then(|(protocol, round)| {
            Some(Self { protocol: protocol.parse().ok()?, round: round.parse().ok()? })
        });
        parsed.ok_or("expected two numbers with a colon between them")
    }
}

/// The file of a recorded history, and the largest size of the recording.
#[derive(Debug, Clone)]
pub(crate) struct RecordingOptions {
    /// The file.
    pub(crate) path: PathBuf,
    /// The memory for the recording, in bytes.
    pub(crate) bytes_max: usize,
}

/// The options that all workloads share.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// Protocols, separated by commas, or "all": those that admit the number of threads, also those for comparison
    /// (`hotrow list --all`), and the workload's baselines. A baseline does the workload's work without Hotrow; it can be
    /// named like a protocol (`hotrow list WORKLOAD`)
    #[arg(long, value_name = "P[,P...]|all")]
    protocol: String,
    /// Threads, one worker each; several numbers, separated by commas, are several runs; there may be more threads
    /// than cores [default: the machine's cores, or fewer if the protocol admits no more]
    #[arg(long, value_name = "N[,N...]", value_delimiter = ',', value_parser = parse_threads, allow_negative_numbers = true)]
    threads: Vec<usize>,
    /// Length of the measurement, in seconds
    #[arg(long, value_name = "S", default_value = "5", value_parser = parse_measured, allow_negative_numbers = true)]
    seconds: Duration,
    /// Length of the warm-up before the measurement, in seconds
    #[arg(long, value_name = "S", default_value = "1", value_parser = parse_warmup, allow_negative_numbers = true)]
    warmup: Duration,
    /// Seed of data and inputs; each further repetition takes the next number
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of runs of each protocol, each on new data
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), allow_negative_numbers = true)]
    repeat: u32,
    #[command(flatten)]
    think: ThinkArguments,
    /// When a transaction counts as committed: "none" without a log; "async" at once, and the log is written every 10 ms;
    /// "group" when it is on the device, while its worker goes on; "sync" when it is on the device, and its worker waits
    #[arg(long, value_name = "MODE", default_value = "none", value_parser = log_mode(), hide_possible_values = true)]
    durability: LogMode,
    /// An existing directory on the device for the logs; each run makes a directory in it, and removes it at the end
    /// [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    log_dir: Option<PathBuf>,
    /// Run over a distributed store, in tables that must not be there: etcd://HOST:PORT[,HOST:PORT...][/NAME][?max-txn-ops=N]
    #[cfg(feature = "remote")]
    #[arg(long, value_name = "ADDRESS")]
    store: Option<hotrow_remote::StoreAddress>,
    /// Output format: "table", or "json" for one object per run and line
    #[arg(long, value_enum, default_value_t = Format::Table, hide_possible_values = true)]
    format: Format,
    /// Name the transactions on both sides of conflicts: those that lost, and those that they lost to
    #[arg(long)]
    both_sides: bool,
    /// Show the run while it goes on: throughput, latency, the hottest rows and both sides of their conflicts; a line a
    /// second where standard error is no terminal. Slows the run down a little
    #[arg(long)]
    live: bool,
    /// Record the reads and writes of each attempt, for `hotrow check FILE`; one run only. Slows the run down
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Memory for the recording, in MB; attempts that begin after it is used up are not recorded
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000), allow_negative_numbers = true)]
    record_mb: u32,
    /// Make one run and report it to the process that has started this one
    #[arg(long = Part::OPTION, hide = true)]
    part: Option<Part>,
}

/// The option of a comparison to show more.
#[derive(Debug, Args)]
pub(super) struct DetailsArguments {
    /// Also print latencies, aborts, memory and each round, and a table for each type of transaction
    #[arg(long)]
    details: bool,
}

/// Parses the name of a mode of the log.
fn log_mode() -> impl TypedValueParser<Value = LogMode> {
    let of = |name: String| LogMode::ALL.into_iter().find(|mode| mode.name() == name);
    PossibleValuesParser::new(LogMode::ALL.map(LogMode::name))
        .map(move |name| of(name).expect("clap accepts no other name"))
}

/// The plan of `bench` or, if it `compares`, of `compare`.
pub(crate) fn plan(matches: &ArgMatches, host: &ThisHost, compares: bool) -> Result<BenchPlan, Refusal> {
    let (workload, matches) = workload(matches)?;
    let name = workload.info().name;
    let arguments = RunArguments::from_arg_matches(matches).map_err(shortened)?;
    let think = arguments.think.of(&workload)?;
    let baselines = workload.info().baselines;
    let (protocols, left_out) = all_protocols(&arguments.protocol, &arguments.threads, baselines)?;
    let details =
        compares.then(|| DetailsArguments::from_arg_matches(matches)).transpose().map_err(shortened)?;
    let plot = compares.then(|| PlotArguments::from_arg_matches(matches)).transpose().map_err(shortened)?;
    let numbers: Vec<usize> = protocols.iter().map(|(_, threads)| *threads).collect();
    let plot = plot.and_then(|plot| plot.request("threads", &numbers).transpose()).transpose()?;
    let needed = workload.resident_bytes_estimate();
    if let Some(available) = host.available_bytes().filter(|available| needed > *available) {
        let (needed, available) = (text::memory(needed), text::memory(available));
        return Err(Refusal::Message(format!(
            "{name} with these options needs about {needed} of memory, and {available} are available"
        )));
    }
    let RunArguments { threads, seconds, warmup, seed, repeat, format, record, record_mb, part, .. } =
        arguments;
    let (durability, log_directory) = (arguments.durability, arguments.log_dir);
    #[cfg(feature = "remote")]
    let store = arguments.store.map(|address| address.to_string());
    #[cfg(not(feature = "remote"))]
    let store = None;
    let (both_sides, live) = (arguments.both_sides || arguments.live, arguments.live);
    if durability != LogMode::None && !workload.info().is_durable {
        return Err(OptionError::NothingDurable { workload: name }.into());
    }
    let runs = protocols.len() * repeat as usize;
    if record.is_some() && runs != 1 {
        return Err(Refusal::Message(format!(
            "--record takes one run, not {runs}: name one protocol, one number of threads, and --repeat 1"
        )));
    }
    if part.is_some_and(|part| part.protocol >= protocols.len() || part.round >= repeat) {
        return Err(Refusal::Message(format!("--{}: there is no such run", Part::OPTION)));
    }
    let record = record.map(|path| RecordingOptions { path, bytes_max: record_mb as usize * 1_000_000 });
    Ok(BenchPlan {
        workload,
        protocols,
        several_threads: threads.len() > 1,
        left_out,
        think,
        durability,
        log_directory,
        store,
        repeat,
        format,
        both_sides,
        live,
        record,
        part,
        plot,
        takes_turns: compares,
        details: details.is_some_and(|arguments| arguments.details),
        warmup,
        measured: seconds,
        seed,
    })
}

/// The protocols to run with their threads; and those that are left out, with the numbers of threads.
type Chosen = (Vec<(&'static ProtocolInfo, usize)>, Vec<(&'static ProtocolInfo, Vec<usize>)>);

/// The named protocols at each number of threads.
fn all_protocols(names: &str, threads: &[usize], baselines: &[BaselineInfo]) -> Result<Chosen, Refusal> {
    let cores = hotrow::sync::thread::parallelism();
    let numbers: Vec<_> =
        if threads.is_empty() { vec![None] } else { threads.iter().copied().map(Some).collect() };
    let mut chosen = Chosen::default();
    for number in numbers {
        let (fit, left_out) = protocols(names, number, cores, baselines)?;
        chosen.0.extend(fit);
        for protocol in left_out {
            let number = number.unwrap_or(cores);
            match chosen.1.iter_mut().find(|(known, _)| known.name == protocol.name) {
                Some((_, numbers)) => numbers.push(number),
                None => chosen.1.push((protocol, vec![number])),
            }
        }
    }
    Ok(chosen)
}

/// The reports of the runs, each with the index of its protocol in the plan.
pub(crate) type Reports = Vec<(usize, RunReport)>;

/// The reports of one protocol of the plan, round by round.
pub(crate) fn rounds(reports: &Reports, protocol: usize) -> Vec<&RunReport> {
    reports.iter().filter(|(at, _)| *at == protocol).map(|(_, report)| report).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_numbers_of_threads_run_one_after_the_other() {
        let (chosen, left_out) = all_protocols("tl2,occ", &[4, 1], &[]).unwrap();
        let names: Vec<_> = chosen.iter().map(|(protocol, threads)| (protocol.name, *threads)).collect();
        assert_eq!(names, [("tl2", 4), ("occ", 4), ("tl2", 1), ("occ", 1)]);
        assert!(left_out.is_empty());
        let (chosen, left_out) = all_protocols("all", &[1, 2, 3], &[]).unwrap();
        assert_eq!(chosen.iter().filter(|(protocol, _)| protocol.name == "none").count(), 1);
        let left_out: Vec<_> = left_out.iter().map(|(protocol, at)| (protocol.name, at.clone())).collect();
        assert_eq!(left_out, [("none", vec![2, 3])]);
    }

    #[test]
    fn a_part_is_read_as_it_is_shown() {
        let part = Part { protocol: 12, round: 3 };
        assert_eq!(part.to_string().parse(), Ok(part));
        assert!("12".parse::<Part>().is_err() && "12:".parse::<Part>().is_err());
    }
}
