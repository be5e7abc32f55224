//! `hotrow bench` and `hotrow compare`.

mod definition;
mod one;
mod part;
mod plan;

pub(crate) use definition::{bench_command, compare_command};
#[cfg(feature = "sim")]
pub(crate) use part::this_program;
pub(crate) use plan::{BenchPlan, RecordingOptions, Reports, plan, rounds};

use crate::arguments::Format;
use crate::error::{CommandError, verdict};
use crate::host::ThisHost;
use crate::plot::{self, Curve, Plot, PlotRequest};
use crate::summary;
use crate::text::print;
use crate::whole_file::WholeFile;
use hotrow_workloads::RunReport;
use one::{in_json, run_here};
use plan::Part;

/// `hotrow bench`: runs one protocol after the other, each with all its repetitions.
pub(crate) fn bench(plan: &BenchPlan, host: &ThisHost) -> Result<(), CommandError> {
    if let Some(part) = plan.part {
        return part::run(plan, host, part);
    }
    let runs =
        (0..plan.protocols.len()).flat_map(|protocol| (0..plan.repeat).map(move |round| (protocol, round)));
    let reports = run_all(plan, host, runs, summary::run)?;
    if plan.format == Format::Table && plan.repeat > 1 {
        print(&summary::comparison(plan, &reports))?;
    }
    verdict(reports.iter().map(|(_, report)| report))
}

/// `hotrow compare`: runs round by round, each protocol once in a round.
pub(crate) fn compare(plan: &BenchPlan, host: &ThisHost) -> Result<(), CommandError> {
    if let Some(part) = plan.part {
        return part::run(plan, host, part);
    }
    let runs =
        (0..plan.repeat).flat_map(|round| (0..plan.protocols.len()).map(move |protocol| (protocol, round)));
    // Opened before the runs, which would be useless if the file cannot be opened.
    let target = plan.plot.as_ref().map(|plot| WholeFile::open(&plot.path)).transpose()?;
    eprintln!("hotrow: {}", plan.forecast());
    let reports = run_all(plan, host, runs, |_| String::new())?;
    if plan.format == Format::Table {
        if plan.details {
            print(&format!(
                "{}{}\n",
                summary::comparison(plan, &reports),
                summary::all_rounds(plan, &reports)
            ))?;
        }
        print(&summary::ranking(plan, &reports))?;
    }
    if let (Some(request), Some(target)) = (&plan.plot, target) {
        let drawn = plot::draw(&picture(plan, request, &reports)).map_err(CommandError::File)?;
        target.write(|file| file.write_all(drawn.as_bytes()))?;
    }
    verdict(reports.iter().map(|(_, report)| report))
}

/// The plot of a comparison.
fn picture(plan: &BenchPlan, request: &PlotRequest, reports: &Reports) -> Plot {
    let mut curves: Vec<Curve> = Vec::new();
    for (at, (protocol, threads)) in plan.protocols.iter().enumerate() {
        plot::add(&mut curves, protocol.name, plot::Point::of(*threads, &rounds(reports, at)));
    }
    let workload = plan.workload.info().name;
    let mut notes = Vec::new();
    if let Some((_, first)) = reports.first() {
        let options = summary::options(&first.options);
        let separator = if options.is_empty() { "" } else { "; " };
        notes.push(format!("{workload}: {options}{separator}{}", plan.method()));
        let machine = &first.machine;
        notes.push(format!("{}, {} cores, {}", machine.cpu, machine.cores, machine.os));
    }
    Plot {
        title: format!("{workload}: {}", request.kind.title()),
        notes,
        caution: String::from(
            "If there are more threads than cores, threads take turns, and a transaction whose thread waits for a core takes longer.",
        ),
        workers: "threads",
        kind: request.kind,
        at: request.at,
        curves,
    }
}

/// Makes the runs and prints each report as soon as its run is done. `runs` gives for each run the index of its
/// protocol in the plan, and its round.
fn run_all(
    plan: &BenchPlan,
    host: &ThisHost,
    runs: impl Iterator<Item = (usize, u32)>,
    in_words: impl Fn(&RunReport) -> String,
) -> Result<Reports, CommandError> {
    for (protocol, threads) in &plan.left_out {
        let numbers = threads.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let at = if plan.several_threads { format!(" at {numbers} threads") } else { String::new() };
        eprintln!(
            "hotrow: {} is left out{at}: it admits at most {} thread{}",
            protocol.name,
            protocol.workers_max,
            if protocol.workers_max == 1 { "" } else { "s" },
        );
    }
    let is_only = plan.protocols.len() == 1 && plan.repeat == 1;
    let mut reports = Reports::new();
    for (protocol, round) in runs {
        let part = Part { protocol, round };
        let (report, json) = if is_only {
            let report = run_here(plan, host, part)?;
            let json = in_json(&report)?;
            (report, json)
        } else {
            part::run_in_own_process(plan, part)?
        };
        print(&match plan.format {
            Format::Table => in_words(&report),
            Format::Json => format!("{json}\n"),
        })?;
        reports.push((protocol, report));
    }
    Ok(reports)
}
