//! `hotrow bench` and `hotrow compare`.

mod part;

#[cfg(feature = "sim")]
pub(crate) use part::this_program;

use crate::arguments::{BenchPlan, Format, Part};
use crate::error::{CommandError, verdict};
use crate::history;
use crate::host::ThisHost;
use crate::plot::{self, Curve, Plot, PlotRequest};
use crate::progress::Progress;
use crate::summary;
use crate::text::print;
use crate::whole_file::WholeFile;
use hotrow_workloads::{LogMode, LogSpec, On, RunOutcome, RunReport, RunSpec, prepare_and_run};
use std::{env, io};
use tempfile::TempDir;

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
    let reports = run_all(plan, host, runs, |_| String::new())?;
    if plan.format == Format::Table {
        print(&summary::comparison(plan, &reports))?;
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

/// The reports of the runs, each with the index of its protocol in the plan.
pub(crate) type Reports = Vec<(usize, RunReport)>;

/// The reports of one protocol of the plan, round by round.
pub(crate) fn rounds(reports: &Reports, protocol: usize) -> Vec<&RunReport> {
    reports.iter().filter(|(at, _)| *at == protocol).map(|(_, report)| report).collect()
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

/// Makes one run in this process.
fn run_here(plan: &BenchPlan, host: &ThisHost, part: Part) -> Result<RunReport, CommandError> {
    let (info, threads) = plan.protocols[part.protocol];
    let directory = log_directory(plan)?;
    let path = directory.as_ref().map(|directory| directory.path().to_owned());
    let spec = RunSpec {
        workload: plan.workload.clone(),
        protocol: info.name.to_owned(),
        on: On::Threads(plan.settings(threads, part.round)),
        think: plan.think,
        log: LogSpec { mode: plan.durability, directory: path.unwrap_or_default() },
        record_bytes_max: plan.record.as_ref().map(|record| record.bytes_max),
        both_sides: plan.both_sides,
    };
    let (workload, round) = (plan.workload.info().name, part.round + 1);
    let label = format!("{workload} {}, {threads} threads, run {round} of {}", info.name, plan.repeat);
    let progress = Progress::new(label);
    let progress = if plan.live { progress.live() } else { progress };
    // Opened before the run, which would be useless if the file cannot be opened.
    let history_file = plan.record.as_ref().map(history::HistoryFile::open).transpose()?;
    let RunOutcome { report, history, .. } = prepare_and_run(&spec, host, &progress)?;
    drop((progress, directory));
    if let (Some(file), Some(history)) = (history_file, history) {
        file.write(&history)?;
    }
    Ok(report)
}

/// Makes the directory of a run's log, if it has one. It is removed with all that is in it when the value is dropped.
fn log_directory(plan: &BenchPlan) -> Result<Option<TempDir>, CommandError> {
    if plan.durability == LogMode::None {
        return Ok(None);
    }
    let parent = plan.log_directory.clone().unwrap_or_else(env::temp_dir);
    if !parent.is_dir() {
        return Err(CommandError::BadInput(format!("{} is no directory", parent.display())));
    }
    // The error names the path.
    let made = tempfile::Builder::new().prefix("hotrow-log-").tempdir_in(&parent);
    Ok(Some(
        made.map_err(|error| CommandError::File(format!("cannot make a directory for the log: {error}")))?,
    ))
}

fn in_json(report: &RunReport) -> io::Result<String> {
    Ok(serde_json::to_string(report)?)
}
