//! The runs of `hotrow sim`.

use super::virtual_run::VirtualRun;
use crate::arguments::{
    COUNTERS_HELP, Format, Refusal, ThinkArguments, about, common_options, machine_called, own_options,
    protocols, shortened, workload,
};
use crate::error::{CommandError, verdict};
use crate::fidelity::Fidelity;
use crate::host::ThisHost;
use crate::plot::{self, Curve, Plot, PlotArguments, PlotKind, PlotRequest};
use crate::profile::{self, ProfileJson};
use crate::progress::Progress;
use crate::text::print;
use crate::whole_file::WholeFile;
use crate::{summary, transfers};
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use hotrow::protocols::ProtocolInfo;
use hotrow_sim::Machine;
use hotrow_workloads::{
    LogSpec, On, RunOutcome, RunReport, RunSpec, VirtualSettings, WORKLOADS, WorkloadOptions, prepare_and_run,
};
use serde::Serialize;
use std::io;
use std::time::Duration;

/// The runs on virtual cores that `hotrow sim` makes.
#[derive(Debug)]
pub(crate) struct VirtualPlan {
    workload: WorkloadOptions,
    protocols: Vec<&'static ProtocolInfo>,
    cores: Vec<usize>,
    machine: Machine,
    warmup: Duration,
    measured: Duration,
    seed: u64,
    transfer_factors: Vec<f64>,
    plot: Option<PlotRequest>,
    think: Duration,
    profiles: bool,
    format: Format,
}

/// A report as of `bench`, with the factor and the error that are needed to interpret it.
#[derive(Serialize)]
struct VirtualReport<'a> {
    #[serde(flatten)]
    report: &'a RunReport,
    transfer_factor: f64,
    error_against_real_runs: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileJson>,
}

#[derive(Debug, Args)]
struct SimArguments {
    /// Protocols, separated by commas, or "all": those that admit the number of cores, also those for comparison (`hotrow list
    /// --all`)
    #[arg(long, value_name = "P[,P...]|all", default_value = "occ")]
    protocol: String,
    /// Virtual cores, one worker each; several numbers, separated by commas, are several runs
    #[arg(long, value_name = "N[,N...]", default_value = "1,2,4,8", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024), allow_negative_numbers = true)]
    cores: Vec<u32>,
    /// The machine: a name from `hotrow list`, or a model's file
    #[arg(long, value_name = "NAME|FILE", default_value = "server-128")]
    machine: String,
    /// Length of the measurement, in virtual milliseconds
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000), allow_negative_numbers = true)]
    virtual_ms: u32,
    /// Length of the warm-up before the measurement, in virtual milliseconds
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=1_000_000), allow_negative_numbers = true)]
    warmup_ms: u32,
    /// Factor on the costs of all transfers between caches; several factors are several runs, and show whether an
    /// error in these costs would change the order of protocols
    #[arg(long, value_name = "F[,F...]", default_value = "1", value_delimiter = ',', value_parser = parse_factor, allow_negative_numbers = true)]
    transfer_factor: Vec<f64>,
    #[command(flatten)]
    think: ThinkArguments,
    /// Seed of data, inputs and simulation
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Also print where the cores' time goes, by cause, and which lock or cache line limits the run
    #[arg(long)]
    profile: bool,
    /// Output format: "table", or "json" for one object per run and line
    #[arg(long, value_enum, default_value_t = Format::Table, hide_possible_values = true)]
    format: Format,
}

fn parse_factor(text: &str) -> Result<f64, String> {
    // No range contains NaN.
    let factor = text.parse().ok().filter(|factor| (0.01..=100.0).contains(factor));
    factor.ok_or_else(|| String::from("expected a number from 0.01 to 100"))
}

/// Adds the options that all workloads share.
fn shared_options(command: Command) -> Command {
    PlotArguments::augment(SimArguments::augment_args(command), PlotKind::Throughput)
}

pub(crate) fn command() -> Command {
    let example = "--protocol occ,tl2 --cores 1,2,4,8,16,32 --machine drp";
    Command::new("sim")
        .about("Runs a workload on virtual cores in virtual time and reports as bench does")
        .after_help(format!(
            "{}\n\nThe same seed and options give the same output, byte for byte. docs/simulator.md explains what the \
             figures mean, and their limits. {COUNTERS_HELP}\n\nExamples:\n  hotrow sim tpcc {example}\n  hotrow sim tpcc \
             --mix new-order --protocol drp --cores 32 --machine drp --profile",
            common_options(shared_options)
        ))
        .subcommand_value_name("WORKLOAD")
        .subcommand_help_heading("Workloads")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .allow_external_subcommands(true)
        .subcommands(WORKLOADS.iter().map(|workload| {
            shared_options(own_options(workload)).about(about(workload)).after_help(format!(
                "Example:\n  hotrow sim {0} {1} {example}\n  hotrow sim {0} {1} {example} --plot latency.svg \
                 --plot-kind latency --plot-at 16",
                workload.name, workload.example
            ))
        }))
        .subcommand(crate::stamp::virtual_command())
}

pub(crate) fn plan(matches: &ArgMatches) -> Result<VirtualPlan, Refusal> {
    let (workload, matches) = workload(matches)?;
    let arguments = SimArguments::from_arg_matches(matches).map_err(shortened)?;
    let SimArguments { protocol, cores, machine, virtual_ms, warmup_ms, seed, profile, format, .. } =
        arguments;
    let cores: Vec<usize> = cores.into_iter().map(|cores| cores as usize).collect();
    let most = cores.iter().copied().max().expect("clap gives at least one");
    let (protocols, _) = protocols(&protocol, Some(most), most, &[])?;
    let machine = machine_called(&machine)?;
    if most > machine.threads() {
        return Err(Refusal::Message(format!(
            "machine {} has {} hardware threads, not {most}",
            machine.name,
            machine.threads()
        )));
    }
    let think = arguments.think.of(&workload)?;
    let plot = PlotArguments::from_arg_matches(matches).map_err(shortened)?.request("cores", &cores)?;
    Ok(VirtualPlan {
        workload,
        protocols: protocols.into_iter().map(|(protocol, _)| protocol).collect(),
        cores,
        machine,
        warmup: Duration::from_millis(warmup_ms.into()),
        measured: Duration::from_millis(virtual_ms.into()),
        seed,
        transfer_factors: arguments.transfer_factor,
        plot,
        think,
        profiles: profile,
        format,
    })
}

pub(crate) fn run(plan: &VirtualPlan, host: &ThisHost) -> Result<(), CommandError> {
    let error = Fidelity::kept().in_words();
    let target = plan.plot.as_ref().map(|plot| WholeFile::open(&plot.path)).transpose()?;
    let mut runs = Vec::new();
    for protocol in &plan.protocols {
        for &factor in &plan.transfer_factors {
            for &cores in &plan.cores {
                let run = plan.one(protocol, factor, cores, host)?;
                if plan.format == Format::Json {
                    let report = VirtualReport {
                        report: &run.report,
                        transfer_factor: factor,
                        error_against_real_runs: &error,
                        profile: run.profile.as_ref().map(ProfileJson::of),
                    };
                    print(&format!("{}\n", serde_json::to_string(&report).map_err(io::Error::from)?))?;
                }
                runs.push(run);
            }
        }
    }
    if plan.format == Format::Table {
        print(&summary::virtual_runs(&plan.machine.name, &runs, &orders(plan, &runs), &error))?;
        for run in &runs {
            if let Some(profile) = &run.profile {
                print(&format!("\n{}", profile::words(&plan.heading(run), profile)))?;
            }
        }
    }
    if let (Some(request), Some(target)) = (&plan.plot, target) {
        let drawn = plot::draw(&plan.plot(request, &runs, &error)).map_err(CommandError::File)?;
        target.write(|file| file.write_all(drawn.as_bytes()))?;
    }
    verdict(runs.iter().map(|run| &run.report))
}

/// Sentences on the order of protocols under the transfer factors, if there are several factors.
fn orders(plan: &VirtualPlan, runs: &[VirtualRun]) -> Vec<String> {
    if plan.transfer_factors.len() > 1 { transfers::orders(runs) } else { Vec::new() }
}

impl VirtualPlan {
    fn one(
        &self,
        protocol: &ProtocolInfo,
        factor: f64,
        cores: usize,
        host: &ThisHost,
    ) -> Result<VirtualRun, CommandError> {
        let spec = RunSpec {
            log: LogSpec::default(),
            store: None,
            workload: self.workload.clone(),
            protocol: protocol.name.to_owned(),
            on: On::Cores(Box::new(VirtualSettings {
                machine: self.machine.clone().with_transfers_scaled(factor),
                cores,
                warmup: self.warmup,
                measured: self.measured,
                seed: self.seed,
                profiles: self.profiles,
            })),
            think: self.think,
            record_bytes_max: None,
            both_sides: false,
        };
        let label = format!("{} {}, {cores} cores", self.workload.info().name, protocol.name);
        let progress = Progress::new(label);
        let RunOutcome { report, profile, .. } = prepare_and_run(&spec, host, &progress)?;
        Ok(VirtualRun { factor, report, profile })
    }

    /// The heading of a run's profile.
    fn heading(&self, run: &VirtualRun) -> String {
        let VirtualRun { factor, report, .. } = run;
        let cores = if report.threads == 1 { "core" } else { "cores" };
        let mut heading = format!(
            "{} under {} on {} {cores} of {}",
            report.workload, report.protocol, report.threads, self.machine.name
        );
        if *factor != 1.0 {
            heading += &format!(", transfers {factor}x");
        }
        heading
    }

    fn plot(&self, request: &PlotRequest, runs: &[VirtualRun], error: &str) -> Plot {
        let mut options = runs.first().map_or(String::new(), |run| summary::options(&run.report.options));
        if let [factor] = self.transfer_factors[..]
            && factor != 1.0
        {
            options += &format!(", transfers {factor}x");
        }
        let mut curves: Vec<Curve> = Vec::new();
        for VirtualRun { factor, report, .. } in runs {
            let name = if self.transfer_factors.len() > 1 {
                format!("{}, transfers {factor}x", report.protocol)
            } else {
                report.protocol.to_owned()
            };
            plot::add(&mut curves, &name, plot::Point::of(report.threads, &[report]));
        }
        Plot {
            title: format!(
                "{} on virtual cores of {}: {}",
                self.workload.info().name,
                self.machine.name,
                request.kind.title()
            ),
            notes: vec![
                format!(
                    "{}: {}; {} virtual ms, seed {}",
                    self.workload.info().name,
                    options,
                    self.measured.as_millis(),
                    self.seed
                ),
                format!("{}: {}", self.machine.name, self.machine.description),
            ],
            caution: error.to_owned(),
            workers: "cores",
            kind: request.kind,
            at: request.at,
            curves,
        }
    }
}
