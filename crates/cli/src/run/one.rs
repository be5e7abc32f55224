//! One run, in this process.

use super::plan::{BenchPlan, Part};
use crate::error::CommandError;
use crate::history;
use crate::host::ThisHost;
use crate::progress::Progress;
use hotrow_workloads::{LogMode, LogSpec, On, RunOutcome, RunReport, RunSpec, prepare_and_run};
use std::{env, io};
use tempfile::TempDir;

/// Makes one run in this process.
pub(super) fn run_here(plan: &BenchPlan, host: &ThisHost, part: Part) -> Result<RunReport, CommandError> {
    let (info, threads) = plan.protocols[part.protocol];
    let directory = log_directory(plan)?;
    let path = directory.as_ref().map(|directory| directory.path().to_owned());
    let spec = RunSpec {
        workload: plan.workload.clone(),
        protocol: info.name.to_owned(),
        on: On::Threads(plan.settings(threads, part.round)),
        think: plan.think,
        log: LogSpec { mode: plan.durability, directory: path.unwrap_or_default() },
        store: plan.store.clone(),
        record_bytes_max: plan.record.as_ref().map(|record| record.bytes_max),
        both_sides: plan.both_sides,
    };
    let (workload, place) = (plan.workload.info().name, plan.place(part));
    let label = format!("{workload} {}, {threads} threads, run {place} of {}", info.name, plan.runs());
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

/// The report of a run as JSON, in one line.
pub(super) fn in_json(report: &RunReport) -> io::Result<String> {
    Ok(serde_json::to_string(report)?)
}
