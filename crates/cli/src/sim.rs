//! `hotrow sim`: workloads on virtual cores.

use clap::Command;

#[cfg(not(feature = "sim"))]
use crate::arguments::Refusal;
#[cfg(feature = "sim")]
pub(crate) use with_simulator::{VirtualPlan, command, plan, run};

/// What is said where there is no simulator.
#[cfg(not(feature = "sim"))]
pub(crate) fn refusal() -> Refusal {
    Refusal::Words(String::from(
        "this build has no simulator, so that nothing it measures pays for one: \
         cargo run --release --features sim -- sim",
    ))
}

/// The subcommand, in a build that cannot carry it out.
#[cfg(not(feature = "sim"))]
pub(crate) fn command() -> Command {
    without_simulator("sim", "Runs a workload on virtual cores")
}

/// A subcommand that needs the simulator, in a build without it: takes any arguments.
#[cfg(not(feature = "sim"))]
pub(crate) fn without_simulator(name: &'static str, about: &str) -> Command {
    Command::new(name)
        .about(format!("{about} (in builds with `--features sim`)"))
        .disable_help_flag(true)
        .arg(clap::Arg::new("anything").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true))
}

#[cfg(feature = "sim")]
mod with_simulator {
    use super::Command;
    use crate::arguments::{Format, Refusal, own_options, protocols, shortened, workload};
    use crate::host::ThisHost;
    use crate::progress::Progress;
    use crate::run::{Stop, print};
    use crate::summary;
    use clap::{ArgMatches, Args, FromArgMatches as _};
    use hotrow::protocols::ProtocolInfo;
    use hotrow_sim::Machine;
    use hotrow_workloads::{
        On, Outcome, RunSpec, VirtualSettings, WORKLOADS, WorkloadOptions, prepare_and_run,
    };
    use std::io;
    use std::path::Path;
    use std::time::Duration;

    /// What to run on virtual cores.
    #[derive(Debug)]
    pub(crate) struct VirtualPlan {
        workload: WorkloadOptions,
        protocols: Vec<&'static ProtocolInfo>,
        cores: Vec<usize>,
        machine: Machine,
        warmup: Duration,
        measured: Duration,
        seed: u64,
        format: Format,
    }

    #[derive(Debug, Args)]
    struct SimArguments {
        /// Protocols, separated by commas, or "all"
        #[arg(long, value_name = "P[,P...]|all", default_value = "occ")]
        protocol: String,
        /// Virtual cores, one worker each; several numbers, separated by commas, are several runs
        #[arg(long, value_name = "N[,N...]", default_value = "1,2,4,8", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024), allow_negative_numbers = true)]
        cores: Vec<u32>,
        /// The machine: a name of `hotrow list`, or a profile's file
        #[arg(long, value_name = "NAME|FILE", default_value = "server-128")]
        machine: String,
        /// How long to measure, in virtual milliseconds
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000), allow_negative_numbers = true)]
        virtual_ms: u32,
        /// How long to run before measuring, in virtual milliseconds
        #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=1_000_000), allow_negative_numbers = true)]
        warmup_ms: u32,
        /// Seed of data, inputs and simulation
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
        /// How to print: "table", or "json" for one object per run and line
        #[arg(long, value_enum, default_value_t = Format::Table, hide_possible_values = true)]
        format: Format,
    }

    pub(crate) fn command() -> Command {
        let example = "--protocol occ,tl2 --cores 1,2,4,8,16,32 --machine drp";
        Command::new("sim")
            .about("Runs a workload on virtual cores in virtual time and reports as bench does")
            .after_help(format!(
                "The same seed and options give the same output, byte for byte. docs/simulator.md says what the \
                 figures mean and what they do not.\n\nExample:\n  hotrow sim tpcc {example}"
            ))
            .subcommand_value_name("WORKLOAD")
            .subcommand_help_heading("Workloads")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .disable_help_subcommand(true)
            .allow_external_subcommands(true)
            .subcommands(WORKLOADS.iter().map(|workload| {
                SimArguments::augment_args(own_options(workload)).after_help(format!(
                    "Example:\n  hotrow sim {} {} {example}",
                    workload.name, workload.example
                ))
            }))
    }

    pub(crate) fn plan(matches: &ArgMatches) -> Result<VirtualPlan, Refusal> {
        let (workload, matches) = workload(matches)?;
        let arguments = SimArguments::from_arg_matches(matches).map_err(shortened)?;
        let SimArguments { protocol, cores, machine, virtual_ms, warmup_ms, seed, format } = arguments;
        let cores: Vec<usize> = cores.into_iter().map(|cores| cores as usize).collect();
        let most = cores.iter().copied().max().expect("clap gives at least one");
        let (protocols, _) = protocols(&protocol, Some(most), most)?;
        let machine = if machine.contains(['/', '.']) {
            Machine::from_file(Path::new(&machine))
        } else {
            Machine::named(&machine)
        };
        let machine = machine.map_err(|error| Refusal::Words(error.to_string()))?;
        if most > machine.threads() {
            return Err(Refusal::Words(format!(
                "machine {} has {} hardware threads, not {most}",
                machine.name,
                machine.threads()
            )));
        }
        Ok(VirtualPlan {
            workload,
            protocols: protocols.into_iter().map(|(protocol, _)| protocol).collect(),
            cores,
            machine,
            warmup: Duration::from_millis(warmup_ms.into()),
            measured: Duration::from_millis(virtual_ms.into()),
            seed,
            format,
        })
    }

    pub(crate) fn run(plan: &VirtualPlan, host: &ThisHost) -> Result<(), Stop> {
        let mut reports = Vec::new();
        for protocol in &plan.protocols {
            for &cores in &plan.cores {
                let spec = RunSpec {
                    workload: plan.workload.clone(),
                    protocol: protocol.name.to_owned(),
                    on: On::Cores(VirtualSettings {
                        machine: plan.machine.clone(),
                        cores,
                        warmup: plan.warmup,
                        measured: plan.measured,
                        seed: plan.seed,
                    }),
                    record_bytes_max: None,
                };
                let label = format!("{} {}, {cores} cores", plan.workload.info().name, protocol.name);
                let progress = Progress::new(label);
                let Outcome { report, .. } = prepare_and_run(&spec, host, &progress)?;
                drop(progress);
                if plan.format == Format::Json {
                    print(&format!("{}\n", serde_json::to_string(&report).map_err(io::Error::from)?))?;
                }
                reports.push((reports.len(), report));
            }
        }
        if plan.format == Format::Table {
            print(&summary::virtual_runs(&plan.machine.name, &reports))?;
        }
        crate::run::verdict(&reports)
    }
}
