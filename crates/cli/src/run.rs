//! `hotrow bench` and `hotrow compare`.

use crate::arguments::{Format, Plan};
use crate::history;
use crate::host::ThisHost;
use crate::plot::{self, Curve, Plot, PlotRequest};
use crate::progress::Progress;
use crate::summary;
use crate::whole_file::WholeFile;
use hotrow_workloads::{BenchError, On, Outcome, RunReport, RunSpec, prepare_and_run};
use std::fmt;
use std::io::{self, Write as _};

/// Why the command ends without success.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The arguments cannot be.
    BadInput(String),
    /// A run did not come to its end.
    Run(BenchError),
    /// Checks failed; the runs went on to their end.
    Checks(Vec<String>),
    /// The results could not be written.
    Output(io::Error),
    /// A file could not be written or read.
    File(String),
    /// A history is not what it must be.
    Verdict(String),
}

impl From<BenchError> for Stop {
    fn from(error: BenchError) -> Self {
        if error.is_bad_input() { Self::BadInput(error.to_string()) } else { Self::Run(error) }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadInput(words) => f.write_str(words),
            Self::Run(error) => write!(f, "{error}"),
            Self::Checks(failed) => write!(f, "checks failed: {}", failed.join("; ")),
            Self::File(words) | Self::Verdict(words) => f.write_str(words),
            Self::Output(error) => write!(f, "cannot write the results: {error}"),
        }
    }
}

/// `hotrow bench`: protocol by protocol, the repetitions of each one after the other.
pub(crate) fn bench(plan: &Plan, host: &ThisHost) -> Result<(), Stop> {
    let runs =
        (0..plan.protocols.len()).flat_map(|protocol| (0..plan.repeat).map(move |round| (protocol, round)));
    let reports = run_all(plan, host, runs, summary::run)?;
    if plan.format == Format::Table && plan.repeat > 1 {
        print(&summary::comparison(plan, &reports))?;
    }
    verdict(reports.iter().map(|(_, report)| report))
}

/// `hotrow compare`: round by round, each protocol once in a round.
pub(crate) fn compare(plan: &Plan, host: &ThisHost) -> Result<(), Stop> {
    let runs =
        (0..plan.repeat).flat_map(|round| (0..plan.protocols.len()).map(move |protocol| (protocol, round)));
    // Opened before the runs, which would be in vain if it cannot be.
    let target = plan.plot.as_ref().map(|plot| WholeFile::open(&plot.path)).transpose()?;
    let reports = run_all(plan, host, runs, |_| String::new())?;
    if plan.format == Format::Table {
        print(&summary::comparison(plan, &reports))?;
    }
    if let (Some(request), Some(target)) = (&plan.plot, target) {
        let drawn = plot::draw(&picture(plan, request, &reports)).map_err(Stop::File)?;
        target.write(|file| file.write_all(drawn.as_bytes()))?;
    }
    verdict(reports.iter().map(|(_, report)| report))
}

/// What is drawn of a comparison.
fn picture(plan: &Plan, request: &PlotRequest, reports: &Reports) -> Plot {
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
            "Threads that are more than the cores take turns: a transaction whose thread waits for its turn takes longer.",
        ),
        workers: "threads",
        kind: request.kind,
        at: request.at,
        curves,
    }
}

/// The runs that were made: which protocol of the plan, and what was found.
pub(crate) type Reports = Vec<(usize, RunReport)>;

/// What was found of one protocol of the plan, round by round.
pub(crate) fn rounds(reports: &Reports, protocol: usize) -> Vec<&RunReport> {
    reports.iter().filter(|(at, _)| *at == protocol).map(|(_, report)| report).collect()
}

/// Makes runs, given as places in the plan's protocols and rounds, and prints each as soon as it is done.
fn run_all(
    plan: &Plan,
    host: &ThisHost,
    runs: impl Iterator<Item = (usize, u32)>,
    in_words: impl Fn(&RunReport) -> String,
) -> Result<Reports, Stop> {
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
    let mut reports = Reports::new();
    for (protocol, round) in runs {
        let (info, threads) = plan.protocols[protocol];
        let spec = RunSpec {
            workload: plan.workload.clone(),
            protocol: info.name.to_owned(),
            on: On::Threads(plan.settings(threads, round)),
            think: plan.think,
            record_bytes_max: plan.record.as_ref().map(|record| record.bytes_max),
        };
        let (workload, round) = (plan.workload.info().name, round + 1);
        let label = format!("{workload} {}, {threads} threads, run {round} of {}", info.name, plan.repeat);
        let progress = Progress::new(label);
        // Opened before the run, which would be in vain if it cannot be.
        let target = plan.record.as_ref().map(history::Target::open).transpose()?;
        let Outcome { report, history } = prepare_and_run(&spec, host, &progress)?;
        drop(progress);
        print(&match plan.format {
            Format::Table => in_words(&report),
            Format::Json => format!("{}\n", serde_json::to_string(&report).map_err(io::Error::from)?),
        })?;
        if let (Some(target), Some(history)) = (target, history) {
            target.write(&history)?;
        }
        reports.push((protocol, report));
    }
    Ok(reports)
}

/// Success only if no check failed.
pub(crate) fn verdict<'a>(reports: impl IntoIterator<Item = &'a RunReport>) -> Result<(), Stop> {
    let mut failed = Vec::new();
    for report in reports {
        for check in report.failed_checks() {
            let detail = check.detail.as_deref().unwrap_or("does not hold");
            failed.push(format!("{} under {} (seed {}): {detail}", check.name, report.protocol, report.seed));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Stop::Checks(failed)) }
}

/// Writes to standard output at once: whoever reads a pipe sees each run when it is done.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::report;

    #[test]
    fn a_failed_check_is_named_and_is_no_success() {
        assert!(verdict([&report(true)]).is_ok());
        let stop = verdict([&report(true), &report(false)]).unwrap_err();
        let words = "checks failed: money is kept under occ (seed 7): 3 instead of 4";
        assert_eq!(stop.to_string(), words);
    }
}
