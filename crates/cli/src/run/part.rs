//! Runs in processes of their own.
//!
//! The memory of a process that makes several runs is that of all of them: what one leaves behind (memory that is not freed
//! yet, or that the allocator keeps) counts into the next. So if a plan has several runs, the command starts itself once
//! for each, with the same arguments and the number of the run. That process makes the run, with the progress bar, and
//! writes two lines to its standard output: the report, and the latency distribution, which the report's JSON leaves out.
//!
//! The first process keeps the other one's standard input open, without writing to it. When it has come to its end, however
//! that was, the other one reads the end of its input and ends as well.

use super::one::{in_json, run_here};
use super::plan::{BenchPlan, Part};
use crate::error::{CommandError, FAILURE};
use crate::host::ThisHost;
use crate::text::print;
use hotrow::sync::thread;
use hotrow_workloads::{LatencyDistribution, RunReport};
use std::path::PathBuf;
use std::process::{Command, Stdio, exit};
use std::{env, io};

/// Makes one run of a plan for the process that has started this one.
pub(super) fn run(plan: &BenchPlan, host: &ThisHost, part: Part) -> Result<(), CommandError> {
    let end_with_starter = || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        exit(FAILURE.into());
    };
    thread::Builder::new().name("starter".to_owned()).spawn(end_with_starter)?;
    let report = run_here(plan, host, part)?;
    let distribution = serde_json::to_string(&report.latency_distribution.microseconds);
    print(&format!("{}\n{}\n", in_json(&report)?, distribution.map_err(io::Error::from)?))?;
    Ok(())
}

/// Makes one run of a plan in a process of its own. Returns the report, and its JSON as that process has written it.
pub(super) fn run_in_own_process(plan: &BenchPlan, part: Part) -> Result<(RunReport, String), CommandError> {
    let name = plan.protocols[part.protocol].0.name;
    let failed = |error: &dyn std::fmt::Display| {
        CommandError::Verdict(format!("the process for the run of {name} failed: {error}"))
    };
    let mut process = Command::new(this_program().map_err(|error| failed(&error))?)
        .args(env::args_os().skip(1))
        .arg(format!("--{}={part}", Part::OPTION))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error))?;
    let input = process.stdin.take();
    let ended = process.wait_with_output().map_err(|error| failed(&error))?;
    drop(input);
    match ended.status.code() {
        Some(0) => received(&ended.stdout).map_err(|error| failed(&error)),
        // It has said why on standard error.
        Some(status) => Err(CommandError::Told(status as u8)),
        None => Err(failed(&ended.status)),
    }
}

/// Reads what the process of a run has written.
fn received(written: &[u8]) -> Result<(RunReport, String), Box<dyn std::error::Error>> {
    let mut lines = std::str::from_utf8(written)?.lines();
    let json = lines.next().ok_or("it has written no report")?;
    let mut report = RunReport::from_json(json)?;
    let microseconds = serde_json::from_str(lines.next().ok_or("it has written no latencies")?)?;
    report.latency_distribution = LatencyDistribution { microseconds };
    Ok((report, json.to_owned()))
}

/// This program's file: on Linux also if it has been replaced since it was started.
pub(crate) fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { env::current_exe() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::report;
    use hotrow::Counter;
    use hotrow_workloads::{CounterReport, CounterValue};

    #[test]
    fn a_report_is_received_as_it_was_sent() {
        let latency_distribution = LatencyDistribution { microseconds: vec![0.5, 1.25] };
        let counters = vec![
            CounterReport { counter: &Counter::STOLEN_OPERATIONS, value: CounterValue::Count(7) },
            CounterReport { counter: &Counter::STOLEN_SHARE, value: CounterValue::Share(Some(0.75)) },
            CounterReport { counter: &Counter::STOLEN_MEAN_US, value: CounterValue::MeanUs(None) },
        ];
        let protocol = String::from("steal");
        for passed in [true, false] {
            let sent = RunReport {
                latency_distribution: latency_distribution.clone(),
                counters: counters.clone(),
                protocol: protocol.clone(),
                ..report(passed)
            };
            let json = in_json(&sent).unwrap();
            let (found, line) = received(format!("{json}\n[0.5,1.25]\n").as_bytes()).unwrap();
            assert_eq!((found, &line), (sent, &json));
        }
    }

    #[test]
    fn a_process_that_has_written_something_else_is_an_error() {
        let json = in_json(&report(true)).unwrap();
        for written in ["", "{}\n[]\n", &json, &format!("{json}\n[1,")] {
            assert!(received(written.as_bytes()).is_err(), "{written}");
        }
    }
}
