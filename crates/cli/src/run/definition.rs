//! The subcommands `bench` and `compare`, below which each workload of the registry is a subcommand.

use super::plan::{DetailsArguments, RunArguments};
use crate::arguments::{COUNTERS_HELP, about, common_options, own_options};
use crate::plot::{PlotArguments, PlotKind};
use clap::{Args as _, Command};
use hotrow_workloads::{WORKLOADS, WorkloadInfo};

/// A subcommand that runs workloads.
struct Runner {
    name: &'static str,
    about: &'static str,
    details: &'static str,
    protocol: &'static str,
    repeat: &'static str,
    /// The default kind of its plot; `None` if it draws no plots.
    plot: Option<PlotKind>,
    example: &'static str,
}

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
    about: "Runs a workload under several protocols in turn and says which is first",
    details: "Each round runs every protocol once at each number of threads. The command compares medians over the \
              rounds, at the same number of threads, and ends with a sentence that says which protocol is first, by how \
              much, and how much the rounds vary. Before the runs it says on standard error how long they take. Each run has a process of its own, so that it is not charged \
              with memory that an earlier one has left behind. With --format json it prints one object per run and \
              line, without ratios.",
    protocol: "all",
    repeat: "5",
    plot: Some(PlotKind::Latency),
    example: "--protocol occ,tl2 --threads 1,2,4,8 --repeat 3 --plot latency.svg",
};

/// The subcommand `bench`.
pub(crate) fn bench_command() -> Command {
    runner(&BENCH)
}

/// The subcommand `compare`.
pub(crate) fn compare_command() -> Command {
    runner(&COMPARE)
}

fn runner(runner: &Runner) -> Command {
    let first = WORKLOADS.first().map_or("", |workload| workload.name);
    Command::new(runner.name)
        .about(runner.about)
        .after_help(format!(
            "{}\n\n{}",
            common_options(|command| shared_options(runner, command)),
            help_end(runner, &format!("{first} {}", runner.example))
        ))
        .subcommand_value_name("WORKLOAD")
        .subcommand_help_heading("Workloads")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        // So that the error for an unknown workload can list the known ones.
        .allow_external_subcommands(true)
        .subcommands(WORKLOADS.iter().map(|workload| workload_command(runner, workload)))
}

fn workload_command(runner: &Runner, workload: &WorkloadInfo) -> Command {
    let WorkloadInfo { name, example, .. } = *workload;
    shared_options(runner, own_options(workload))
        .about(about(workload))
        .after_help(help_end(runner, &format!("{name} {example} {}", runner.example)))
}

/// Adds the options that all workloads share.
fn shared_options(runner: &Runner, command: Command) -> Command {
    let shared = RunArguments::augment_args(command);
    let all = match runner.plot {
        Some(kind) => PlotArguments::augment(DetailsArguments::augment_args(shared), kind),
        None => shared,
    };
    all.mut_arg("protocol", |arg| arg.required(false).default_value(runner.protocol))
        .mut_arg("repeat", |arg| arg.required(false).default_value(runner.repeat))
}

fn help_end(runner: &Runner, example: &str) -> String {
    format!("{} {COUNTERS_HELP}\n\nExample:\n  hotrow {} {example}", runner.details, runner.name)
}
