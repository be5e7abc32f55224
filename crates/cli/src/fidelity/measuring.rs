//! Measuring the error: the same runs on the machine and on its model.

use super::stated::{Fidelity, MeasuredPoint};
use crate::arguments::{Format, Refusal, machine_called, parse_measured, parse_warmup, protocols, shortened};
use crate::error::{CommandError, verdict};
use crate::host::ThisHost;
use crate::progress::Progress;
use crate::text;
use crate::text::print;
use crate::whole_file::WholeFile;
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use hotrow::protocols::ProtocolInfo;
use hotrow_sim::Machine;
use hotrow_workloads::{
    Host as _, LogSpec, On, RunOutcome, RunReport, RunSpec, Settings, VirtualSettings, WorkloadOptions,
    prepare_and_run,
};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

/// The measured workloads, each with its options that differ from the defaults.
const MEASURED: [(&str, &[(&str, &str)]); 5] = [
    ("array", &[("ops", "10")]),
    ("array", &[("ops", "50")]),
    ("tpcc", &[("warehouses", "1")]),
    ("ycsb", &[("preset", "a"), ("records", "100000")]),
    ("tables32", &[]),
];

/// The measured numbers of threads; the machine and the model may have fewer.
const THREADS: [usize; 2] = [1, 2];

/// The points to measure on the machine and on a model.
#[derive(Debug)]
pub(crate) struct FidelityPlan {
    points: Vec<PlannedPoint>,
    machine: Machine,
    command: String,
    arguments: FidelityArguments,
}

/// One workload under one protocol with one number of threads.
#[derive(Debug)]
struct PlannedPoint {
    workload: WorkloadOptions,
    /// The options that differ from the defaults, as given on a command line.
    options: String,
    protocol: &'static ProtocolInfo,
    threads: usize,
}

#[derive(Debug, Args)]
struct FidelityArguments {
    /// Protocols, separated by commas, or "all", also those for comparison (`hotrow list --all`); each runs with the
    /// numbers of threads that it admits
    #[arg(long, value_name = "P[,P...]|all", default_value = "all")]
    protocol: String,
    /// The workload: array (10 and 50 operations), tpcc (1 warehouse), ycsb (preset a), tables32, or all
    #[arg(long, value_name = "W", default_value = "all", value_parser = ["array", "tpcc", "ycsb", "tables32", "all"], hide_possible_values = true)]
    workload: String,
    /// The model to compare with this machine: a name from `hotrow list`, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "this")]
    machine: String,
    /// Number of real runs of each point; their median counts, or what --quantile says
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000), allow_negative_numbers = true)]
    repeat: u32,
    /// The quantile of the real runs that counts, from 0 to 1; 0.75, say, on a machine that other programs use, too
    #[arg(long, value_name = "Q", default_value_t = 0.5, value_parser = parse_quantile, allow_negative_numbers = true)]
    quantile: f64,
    /// The command of a build without the simulator, for the real runs; in a build with it, they pay for asking whether a
    /// simulation runs
    #[arg(long, value_name = "COMMAND")]
    real: Option<PathBuf>,
    /// Length of each real measurement, in seconds
    #[arg(long, value_name = "S", default_value = "1", value_parser = parse_measured, allow_negative_numbers = true)]
    seconds: Duration,
    /// Length of the warm-up before it, in seconds
    #[arg(long, value_name = "S", default_value = "0.2", value_parser = parse_warmup, allow_negative_numbers = true)]
    warmup: Duration,
    /// Length of each simulated measurement, in virtual milliseconds
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000), allow_negative_numbers = true)]
    virtual_ms: u32,
    /// Length of the warm-up before it, in virtual milliseconds
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=1_000_000), allow_negative_numbers = true)]
    warmup_ms: u32,
    /// Seed of data, inputs and simulation; each further repetition takes the next number
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Output format: "table", or "json" for one object per point and line
    #[arg(long, value_enum, default_value_t = Format::Table, hide_possible_values = true)]
    format: Format,
    /// Also write the results to this file, as TOML
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

pub(crate) fn command() -> Command {
    FidelityArguments::augment_args(Command::new("fidelity"))
        .about("Compares simulated runs with real ones on this machine and prints the error of each")
        .after_help(
            "Each protocol runs at 1 and 2 threads, on this machine and on as many virtual cores of its model. \
             Real runs are interleaved round by round. The machine should be idle otherwise. Every table of `hotrow \
             sim` repeats the last saved results, which are in crates/cli/fidelity.toml.\n\n\
             Example:\n  hotrow fidelity --save crates/cli/fidelity.toml",
        )
}

pub(crate) fn plan(matches: &ArgMatches) -> Result<FidelityPlan, Refusal> {
    let arguments = FidelityArguments::from_arg_matches(matches).map_err(shortened)?;
    let machine = machine_called(&arguments.machine)?;
    let (named, _) = protocols(&arguments.protocol, None, 1, &[])?;
    let threads_max = hotrow::sync::thread::parallelism().min(machine.threads());
    let mut points = Vec::new();
    for (workload, given) in MEASURED {
        if arguments.workload != "all" && arguments.workload != workload {
            continue;
        }
        let options = hotrow_workloads::parse(workload, given)?;
        let words =
            given.iter().map(|(name, value)| format!("--{name} {value}")).collect::<Vec<_>>().join(" ");
        for (protocol, _) in &named {
            let admitted = threads_max.min(protocol.workers_max as usize);
            for threads in THREADS.into_iter().filter(|threads| *threads <= admitted) {
                let (workload, options) = (options.clone(), words.clone());
                points.push(PlannedPoint { workload, options, protocol, threads });
            }
        }
    }
    let command = arguments.command();
    Ok(FidelityPlan { points, machine, command, arguments })
}

impl FidelityArguments {
    /// The command that repeats the measurement, with the defaults that results depend on written out.
    fn command(&self) -> String {
        let mut command = String::from("hotrow fidelity");
        let named = [("protocol", &self.protocol, "all"), ("workload", &self.workload, "all")];
        for (name, value, default) in named.into_iter().chain([("machine", &self.machine, "this")]) {
            if value != default {
                let _ = write!(command, " --{name} {value}");
            }
        }
        if let Some(real) = &self.real {
            let _ = write!(command, " --real {}", real.file_name().unwrap_or(real.as_os_str()).display());
        }
        if self.quantile != 0.5 {
            let _ = write!(command, " --quantile {}", self.quantile);
        }
        let Self { repeat, seconds, warmup, virtual_ms, warmup_ms, seed, .. } = self;
        let (seconds, warmup) = (seconds.as_secs_f64(), warmup.as_secs_f64());
        let _ = write!(
            command,
            " --repeat {repeat} --seconds {seconds} --warmup {warmup} --virtual-ms {virtual_ms} --warmup-ms \
             {warmup_ms} --seed {seed}"
        );
        command
    }
}

pub(crate) fn run(plan: &FidelityPlan, host: &ThisHost) -> Result<(), CommandError> {
    let FidelityPlan { points, machine, command, arguments } = plan;
    let target = arguments.save.as_deref().map(WholeFile::open).transpose()?;
    // Simulated runs come first, so that the state of the allocator before them is always the same.
    let simulated = points.iter().map(|point| one(point, host, &plan.on_model(point)));
    let simulated: Vec<RunReport> = simulated.collect::<Result<_, _>>()?;
    let mut real: Vec<Vec<f64>> = points.iter().map(|_| Vec::new()).collect();
    for round in 0..arguments.repeat {
        for (point, throughputs) in points.iter().zip(&mut real) {
            throughputs.push(plan.real(point, round, host)?);
        }
    }
    let found = Fidelity {
        machine: host.machine().cpu,
        model: machine.name.clone(),
        revision: host.revision().to_owned(),
        command: command.clone(),
        points: points
            .iter()
            .zip(real.iter().zip(&simulated))
            .map(|(point, (real, simulated))| {
                let real_per_s = text::quantile(real.iter().copied(), arguments.quantile).round();
                let simulated_per_s = simulated.throughput_per_s.round();
                MeasuredPoint {
                    workload: point.workload.info().name.to_owned(),
                    options: point.options.clone(),
                    protocol: point.protocol.name.to_owned(),
                    threads: point.threads,
                    real_per_s,
                    simulated_per_s,
                    error_percent: MeasuredPoint::error_percent(real_per_s, simulated_per_s),
                }
            })
            .collect(),
    };
    if let Some(point) = found.points.iter().find(|point| !point.error_percent.is_finite()) {
        return Err(CommandError::Verdict(format!(
            "{} under {} committed nothing in the given time; run it for longer",
            point.workload, point.protocol
        )));
    }
    match arguments.format {
        Format::Table => print(&found.table())?,
        Format::Json => {
            for point in &found.points {
                print(&format!("{}\n", serde_json::to_string(point).map_err(io::Error::from)?))?;
            }
        }
    }
    if let Some(target) = target {
        target.write(|file| file.write_all(found.to_toml().as_bytes()))?;
    }
    verdict(&simulated)
}

impl FidelityPlan {
    fn on_model(&self, point: &PlannedPoint) -> On {
        let FidelityArguments { virtual_ms, warmup_ms, seed, .. } = self.arguments;
        On::Cores(Box::new(VirtualSettings {
            machine: self.machine.clone(),
            cores: point.threads,
            warmup: Duration::from_millis(warmup_ms.into()),
            measured: Duration::from_millis(virtual_ms.into()),
            seed,
            profiles: false,
        }))
    }

    /// Runs a point on the machine. Returns its throughput.
    fn real(&self, point: &PlannedPoint, round: u32, host: &ThisHost) -> Result<f64, CommandError> {
        let FidelityArguments { warmup, seconds, seed, .. } = self.arguments;
        let seed = seed.wrapping_add(round.into());
        let settings = Settings { threads: point.threads, warmup, measured: seconds, seed };
        if let Some(command) = &self.arguments.real {
            return by_command(command, point, &settings);
        }
        let report = one(point, host, &On::Threads(settings))?;
        verdict([&report])?;
        Ok(report.throughput_per_s)
    }
}

/// Runs a point on the machine, by another build's command. Returns its throughput.
fn by_command(command: &Path, point: &PlannedPoint, settings: &Settings) -> Result<f64, CommandError> {
    let Settings { threads, warmup, measured, seed } = settings;
    let failed = |reason: String| CommandError::Verdict(format!("{}: {reason}", command.display()));
    let output = process::Command::new(command)
        .args(["bench", point.workload.info().name, "--protocol", point.protocol.name, "--format", "json"])
        .args(point.options.split_whitespace())
        .args(["--threads", &threads.to_string(), "--seed", &seed.to_string()])
        .args(["--seconds", &measured.as_secs_f64().to_string()])
        .args(["--warmup", &warmup.as_secs_f64().to_string()])
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))?;
    report["throughput_per_s"].as_f64().ok_or_else(|| failed(String::from("its report has no throughput")))
}

fn parse_quantile(text: &str) -> Result<f64, String> {
    // No range contains NaN.
    let quantile = text.parse().ok().filter(|quantile| (0.0..=1.0).contains(quantile));
    quantile.ok_or_else(|| String::from("expected a number from 0 to 1"))
}

/// Runs a point once.
fn one(point: &PlannedPoint, host: &ThisHost, on: &On) -> Result<RunReport, CommandError> {
    let PlannedPoint { workload, options, protocol, threads } = point;
    let where_ = if matches!(on, On::Threads(_)) { "threads" } else { "virtual cores" };
    let progress =
        Progress::new(format!("{} {options} {}, {threads} {where_}", workload.info().name, protocol.name));
    let spec = RunSpec {
        log: LogSpec::default(),
        store: None,
        workload: workload.clone(),
        protocol: protocol.name.to_owned(),
        on: on.clone(),
        think: Duration::ZERO,
        record_bytes_max: None,
        both_sides: false,
    };
    let RunOutcome { report, .. } = prepare_and_run(&spec, host, &progress)?;
    Ok(report)
}
