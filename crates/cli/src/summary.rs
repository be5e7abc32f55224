//! Reports of runs for people: one run in detail, several side by side.

#[cfg(feature = "sim")]
use crate::sim::VirtualRun;
use crate::{live, text};
use hotrow_workloads::{LatencySummary, RunReport};
use serde_json::Value;
use std::fmt::Write as _;

mod comparison;
mod counters;
mod ranking;

pub(crate) use comparison::{all_rounds, comparison};
pub(crate) use ranking::ranking;

/// One run in detail.
pub(crate) fn run(report: &RunReport) -> String {
    let mut words = String::new();
    let mut line = |name: &str, content: String| {
        let _ = writeln!(words, "  {name:<13} {content}");
    };
    line("throughput", format!("{} commits/s", text::quantity(report.throughput_per_s)));
    line("commits", text::count(report.commits));
    let per_commit = match report.commits {
        0 => String::new(),
        _ => format!(" ({} per commit)", text::quantity(report.aborts_per_commit())),
    };
    line("aborts", format!("{}{per_commit}", text::count(report.aborts)));
    if let Some(counters) = counters::in_words(report) {
        line("counters", counters);
    }
    line("attempts", format!("{} for one transaction at most", text::count(report.attempts_max)));
    line("rollbacks", text::count(report.rollbacks));
    line("abort reasons", abort_reasons(report));
    for (at, row) in hottest_rows(report).into_iter().enumerate() {
        line(if at == 0 { "hottest rows" } else { "" }, row);
    }
    for (at, deadlock) in report.deadlocks.iter().enumerate() {
        line(if at == 0 { "deadlocks" } else { "" }, deadlock.clone());
    }
    if let Some(set) = &report.working_set {
        let [all, read, written] =
            [set.bytes, set.read_bytes, set.written_bytes].map(|bytes| text::count(bytes as u64));
        line("working set", format!("{all} bytes: {read} read, {written} written"));
    }
    line("checks", checks(report));
    let memory = &report.memory;
    line("memory", format!("{} loaded", held(memory.payload_bytes_loaded, memory.resident_bytes_loaded)));
    line("", format!("{} at the end", held(memory.payload_bytes_end, memory.resident_bytes_end)));
    format!("{}\n{words}\n{}\n", heading(report), latencies(report))
}

/// The heading: workload, protocol, threads, time, seed and options.
fn heading(report: &RunReport) -> String {
    let mut heading = format!(
        "{} under {}: {} thread{}, {} s, seed {}",
        report.workload,
        report.protocol,
        report.threads,
        if report.threads == 1 { "" } else { "s" },
        text::quantity(report.seconds),
        report.seed,
    );
    if !report.options.is_empty() {
        heading += ", ";
        heading += &options(&report.options);
    }
    heading
}

/// The options of a workload.
pub(crate) fn options<'a>(options: impl IntoIterator<Item = (&'a String, &'a Value)>) -> String {
    let words = options.into_iter().map(|(name, value)| {
        let value = match value {
            // The value of an option that can be without a bound.
            Value::Null => String::from("unlimited"),
            Value::String(word) => word.clone(),
            value => value.to_string(),
        };
        format!("{} {value}", name.replace('_', " "))
    });
    words.collect::<Vec<_>>().join(", ")
}

fn latencies(report: &RunReport) -> String {
    let row = |name: &str, commits: u64, aborts: u64, latency: &Option<LatencySummary>| {
        let mut row = vec![name.to_owned(), text::count(commits), text::count(aborts)];
        match latency {
            Some(LatencySummary { p50, p90, p99, p999, max }) => {
                row.extend([p50, p90, p99, p999, max].map(|microseconds| text::quantity(*microseconds)));
            }
            None => row.extend([const { String::new() }; 5].map(|_| "-".to_owned())),
        }
        row
    };
    let mut rows: Vec<_> = report
        .by_transaction
        .iter()
        .filter(|(_, kind)| kind.commits + kind.aborts != 0)
        .map(|(name, kind)| row(name, kind.commits, kind.aborts, &kind.latency_us))
        .collect();
    if rows.len() != 1 {
        rows.push(row("all", report.commits, report.aborts, &report.latency_us));
    }
    let header = ["latency in µs", "commits", "aborts", "p50", "p90", "p99", "p99.9", "max"];
    text::table(1, &header, rows)
}

fn abort_reasons(report: &RunReport) -> String {
    let counted = report.abort_reasons.iter().filter(|(_, count)| *count != 0);
    let words: Vec<String> =
        counted.map(|(reason, count)| format!("{reason} {}", text::count(*count))).collect();
    match words.is_empty() {
        false => words.join(", "),
        true if report.aborts == 0 => "none".to_owned(),
        // A distributed store does not say.
        true => "not known".to_owned(),
    }
}

/// The hottest rows, one line each.
fn hottest_rows(report: &RunReport) -> Vec<String> {
    if report.hot_rows.is_empty() {
        return vec!["none".to_owned()];
    }
    let rows = report.hot_rows.iter().take(5);
    rows.map(|row| {
        let sides = live::sides(&row.rivalries, row.conflicts);
        let separator = if sides.is_empty() { "" } else { ": " };
        let plural = if row.conflicts == 1 { "" } else { "s" };
        format!(
            "{} conflict{plural} over {} {}{separator}{sides}",
            text::count(row.conflicts),
            row.table,
            row.key
        )
    })
    .collect()
}

fn checks(report: &RunReport) -> String {
    let failed: Vec<String> = report
        .failed_checks()
        .map(|check| format!("{}: {}", check.name, check.detail.as_deref().unwrap_or("does not hold")))
        .collect();
    let passed = report.checks.len() - failed.len();
    if failed.is_empty() {
        format!("{passed} passed")
    } else {
        format!("{passed} passed, {} FAILED: {}", failed.len(), failed.join("; "))
    }
}

/// The least memory in keys and rows, in bytes, to which the memory of the process is set in relation. The process itself needs more than
/// less does.
const COMPARED_BYTES_MIN: u64 = 1_000_000;

/// The memory in keys and rows, and the memory of the process relative to it.
fn held(payload: u64, resident: u64) -> String {
    let times = match payload {
        COMPARED_BYTES_MIN.. => format!(" ({})", text::ratio(resident as f64, payload as f64)),
        _ => String::new(),
    };
    format!("{} in keys and rows, {} resident{times}", text::memory(payload), text::memory(resident))
}

/// Runs on virtual cores, one line each; then sentences about them, and the error of the simulator.
#[cfg(feature = "sim")]
pub(crate) fn virtual_runs(machine: &str, runs: &[VirtualRun], sentences: &[String], error: &str) -> String {
    let Some(VirtualRun { report: first, factor, .. }) = runs.first() else { return String::new() };
    let same_factor = runs.iter().all(|run| run.factor == *factor);
    let counters = counters::Columns::of(runs.iter().map(|run| &run.report));
    let rows = runs.iter().map(|VirtualRun { factor, report, .. }| {
        let latency = |pick: fn(&LatencySummary) -> f64| match &report.latency_us {
            Some(latency) => text::quantity(pick(latency)),
            None => String::from("-"),
        };
        let mut row = vec![
            report.protocol.to_owned(),
            report.threads.to_string(),
            text::quantity(report.throughput_per_s),
            latency(|latency| latency.p50),
            latency(|latency| latency.p90),
            latency(|latency| latency.p99),
            latency(|latency| latency.p999),
            latency(|latency| latency.max),
            text::quantity(report.aborts_per_commit()),
            report.attempts_max.to_string(),
        ];
        row.extend(counters.cells(&[report]));
        row.push(checks(report));
        if !same_factor {
            row.insert(1, format!("{factor}x"));
        }
        row
    });
    let mut header = vec![
        "protocol",
        "cores",
        "commits/s",
        "p50 µs",
        "p90 µs",
        "p99 µs",
        "p99.9 µs",
        "max µs",
        "aborts/commit",
        "attempts",
    ];
    let columns = counters.header();
    header.extend(columns.iter().map(String::as_str));
    header.push("checks");
    let mut heading =
        format!("{} on virtual cores of {machine}, {} virtual s", first.workload, first.seconds);
    if !same_factor {
        header.insert(1, "transfers");
    } else if *factor != 1.0 {
        let _ = write!(heading, ", transfers {factor}x");
    }
    heading += &counters.legend();
    let table = text::table(1, &header, rows.collect::<Vec<_>>());
    let mut below: String = sentences.iter().map(|sentence| format!("{sentence}\n")).collect();
    if !sentences.is_empty() {
        below.push('\n');
    }
    format!("{heading}\n\n{table}\n{below}{error}\n")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use hotrow_workloads::{
        Check, Counter, CounterReport, CounterValue, HotRow, KindReport, LatencyDistribution, Machine,
        Memory, WorkingSet,
    };

    /// A report of a run whose only check has passed, or failed.
    pub(crate) fn report(passed: bool) -> RunReport {
        let latency_us = Some(LatencySummary { p50: 1.5, p90: 2.5, p99: 30.0, p999: 400.25, max: 5_000.0 });
        let found = if passed { Ok(()) } else { Err("3 instead of 4".to_owned()) };
        RunReport {
            workload: "toy".into(),
            protocol: String::from("occ"),
            threads: 2,
            seconds: 2.0,
            seed: 7,
            virtual_time: false,
            commits: 4_000,
            aborts: 1_000,
            rollbacks: 40,
            throughput_per_s: 2_000.0,
            latency_us,
            latency_distribution: LatencyDistribution::default(),
            by_transaction: vec![
                ("move".into(), KindReport { commits: 4_000, aborts: 1_000, latency_us }),
                ("never".into(), KindReport { commits: 0, aborts: 0, latency_us: None }),
            ],
            abort_reasons: vec![("read_changed".into(), 1_000), ("write_locked".into(), 0)],
            attempts_max: 9,
            counters: vec![
                CounterReport { counter: &Counter::TAME_COMMITS, value: CounterValue::Count(3_000) },
                CounterReport { counter: &Counter::STOLEN_SHARE, value: CounterValue::Share(Some(0.781)) },
                CounterReport { counter: &Counter::STOLEN_MEAN_US, value: CounterValue::MeanUs(Some(3.36)) },
            ],
            hot_rows: vec![HotRow {
                table: "box".to_owned(),
                key: "3".to_owned(),
                conflicts: 900,
                lost_ms: 1.5,
                rivalries: Vec::new(),
            }],
            deadlocks: vec![String::from("one waited for the other")],
            working_set: Some(WorkingSet { read_bytes: 640.0, written_bytes: 128.0, bytes: 704.0 }),
            checks: vec![Check::new("money is kept", found)],
            memory_bytes: 3_000_000,
            memory: Memory {
                payload_bytes_loaded: 1_000_000,
                resident_bytes_loaded: 2_000_000,
                payload_bytes_end: 1_000_000,
                resident_bytes_end: 3_000_000,
                retained_bytes_end: 0,
            },
            options: [("boxes".to_owned(), 5.into())].into_iter().collect(),
            revision: "unknown".to_owned(),
            machine: Machine { cores: 2, memory_bytes: 1, cpu: String::new(), os: String::new() },
        }
    }

    #[test]
    fn the_report_of_a_run_has_units_and_checks() {
        let words = run(&report(false));
        for expected in [
            "toy under occ: 2 threads, 2.00 s, seed 7, boxes 5",
            "2,000 commits/s",
            "1,000 (0.250 per commit)",
            "counters      tame commits 3,000, stolen share 78.1%, stolen mean 3.36 µs\n",
            "read_changed 1,000\n",
            "900 conflicts over box 3\n",
            "deadlocks     one waited for the other\n",
            "working set   704 bytes: 640 read, 128 written\n",
            "0 passed, 1 FAILED: money is kept: 3 instead of 4",
            "1.00 MB in keys and rows, 3.00 MB resident (3.00x) at the end",
            "move             4,000   1,000  1.50  2.50  30.0    400  5,000\n",
        ] {
            assert!(words.contains(expected), "{expected:?} in {words}");
        }
        assert!(!words.contains("never"), "a type that did not run is left out: {words}");
        assert!(run(&report(true)).contains("1 passed\n"));
    }

    #[test]
    fn a_run_without_commits_or_data_has_no_figure_without_sense() {
        let memory = Memory { payload_bytes_loaded: 28, payload_bytes_end: 452_000, ..report(true).memory };
        let options = [("capacity".to_owned(), Value::Null)].into_iter().collect();
        let nothing = RunReport { commits: 0, aborts: 5, latency_us: None, memory, options, ..report(true) };
        let words = run(&nothing);
        for expected in [
            "aborts        5\n",
            "28 bytes in keys and rows, 2.00 MB resident loaded\n",
            "452 kB in keys and rows, 3.00 MB resident at the end\n",
            "capacity unlimited",
        ] {
            assert!(words.contains(expected), "{expected:?} in {words}");
        }
        for wrong in ["null", "NaN", "inf", "0.000"] {
            assert!(!words.contains(wrong), "{wrong:?} in {words}");
        }
    }
}
