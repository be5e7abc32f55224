//! The comparison of protocols: medians over the rounds, and ratios to the first protocol.
//!
//! The first table covers all transactions; if there are several types of transactions, a table for each follows.
//! Runs with the same number of threads stand together and are compared with each other.

use super::counters;
use crate::run::{BenchPlan, Reports, rounds};
use crate::text;
use hotrow_workloads::{KindReport, LatencySummary, RunReport};
use std::fmt::Write as _;

/// Formats the comparison of a plan's runs.
pub(crate) fn comparison(plan: &BenchPlan, reports: &Reports) -> String {
    let Some((_, first)) = reports.first() else { return String::new() };
    let measured = Measures::of_runs(plan, reports);
    let counters = counters::Columns::of(reports.iter().map(|(_, report)| report));
    let mut words = format!(
        "{}: {}, {}; latency in µs; attempts: the most of one transaction; \
         memory: in use by the process at the end{}\n\n",
        first.workload,
        plan.method(),
        ratios_to(plan, first),
        counters.legend(),
    );
    let mut header = vec![
        "protocol",
        "threads",
        "commits/s",
        "",
        "least",
        "most",
        "p50",
        "",
        "p90",
        "p99",
        "",
        "p99.9",
        "",
        "max",
        "aborts/commit",
        "attempts",
    ];
    let columns = counters.header();
    header.extend(columns.iter().map(String::as_str));
    header.extend(["memory", "checks"]);
    words += &table(plan, &header, |run| {
        let (own, first) = (&measured[run], &measured[plan.compared_to(run)]);
        let mut cells = own.throughput(first);
        cells.extend([own.least, own.most].map(text::quantity));
        cells.extend(own.latencies(first));
        cells.push(text::quantity(own.aborts_per_commit));
        let rounds = rounds(reports, run);
        cells.push(rounds.iter().map(|run| run.attempts_max).max().map_or(String::new(), text::count));
        cells.extend(counters.cells(&rounds));
        let resident = text::median(rounds.iter().map(|run| run.memory.resident_bytes_end as f64));
        cells.push(text::memory(resident as u64));
        cells.push(checks(&rounds));
        cells
    });

    let kinds = kinds(reports);
    for kind in kinds.iter().filter(|_| kinds.len() > 1) {
        let measured: Vec<Measures> =
            (0..plan.protocols.len()).map(|run| Measures::of_kind(&rounds(reports, run), kind)).collect();
        let header = [
            "protocol",
            "threads",
            "commits/s",
            "",
            "p50",
            "",
            "p90",
            "p99",
            "",
            "p99.9",
            "",
            "max",
            "aborts/commit",
        ];
        let of_kind = table(plan, &header, |run| {
            let (own, first) = (&measured[run], &measured[plan.compared_to(run)]);
            let mut cells = own.throughput(first);
            cells.extend(own.latencies(first));
            cells.push(text::quantity(own.aborts_per_commit));
            cells
        });
        let _ = write!(words, "\n{kind}\n\n{of_kind}");
    }
    words
}

/// The run to which ratios are, in words. `first` is the report of the first run.
pub(super) fn ratios_to(plan: &BenchPlan, first: &RunReport) -> String {
    let alike = if plan.several_threads { " with as many threads" } else { "" };
    format!("ratios to {}{alike}", first.protocol)
}

/// The verdict on the checks of all rounds of a run.
pub(super) fn checks(rounds: &[&RunReport]) -> String {
    match rounds.iter().map(|run| run.failed_checks().count()).sum() {
        0 => "passed".to_owned(),
        failed => format!("{failed} FAILED"),
    }
}

/// A table with a row for each round of each run of the plan.
pub(crate) fn all_rounds(plan: &BenchPlan, reports: &Reports) -> String {
    let rows = (0..plan.protocols.len()).flat_map(|run| {
        let (protocol, threads) = plan.protocols[run];
        rounds(reports, run).into_iter().enumerate().map(move |(round, report)| {
            let own = Measures::of_all(&[report]);
            let mut cells = vec![protocol.name.to_owned(), threads.to_string(), (round + 1).to_string()];
            let measures = [own.throughput, own.p50, own.p99, own.p999, own.aborts_per_commit];
            cells.extend(measures.map(text::quantity));
            cells
        })
    });
    let header = ["protocol", "threads", "round", "commits/s", "p50", "p99", "p99.9", "aborts/commit"];
    format!("\nall rounds\n\n{}", text::table(1, &header, rows.collect::<Vec<_>>()))
}

/// A table with a row for each run of the plan, and an empty line before each further number of threads.
pub(super) fn table(plan: &BenchPlan, header: &[&str], cells: impl Fn(usize) -> Vec<String>) -> String {
    let mut rows = Vec::new();
    for (run, (protocol, threads)) in plan.protocols.iter().enumerate() {
        if plan.several_threads
            && run > 0
            && plan.protocols[run - 1].1 != *threads
            && plan.compared_to(run) == run
        {
            rows.push(vec![String::new(); header.len()]);
        }
        let mut row = vec![protocol.name.to_owned(), threads.to_string()];
        row.extend(cells(run));
        rows.push(row);
    }
    text::table(1, header, rows)
}

/// The types of transactions that ran, in the order of the reports.
fn kinds(reports: &Reports) -> Vec<&str> {
    let mut kinds: Vec<&str> = Vec::new();
    for (name, kind) in reports.iter().flat_map(|(_, report)| &report.by_transaction) {
        if kind.commits + kind.aborts > 0 && !kinds.contains(&&**name) {
            kinds.push(name);
        }
    }
    kinds
}

/// The measures of one run of the plan: medians over the rounds, and the least and most throughput.
pub(super) struct Measures {
    pub(super) throughput: f64,
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) p999: f64,
    pub(super) max: f64,
    pub(super) aborts_per_commit: f64,
}

impl Measures {
    /// The measures of each run of the plan.
    pub(super) fn of_runs(plan: &BenchPlan, reports: &Reports) -> Vec<Self> {
        (0..plan.protocols.len()).map(|run| Self::of_all(&rounds(reports, run))).collect()
    }

    pub(super) fn of_all(runs: &[&RunReport]) -> Self {
        let rounds = runs.iter().map(|run| (run.throughput_per_s, run.latency_us, run.aborts_per_commit()));
        Self::of(rounds.collect())
    }

    fn of_kind(runs: &[&RunReport], kind: &str) -> Self {
        let rounds = runs.iter().filter_map(|run| {
            let (_, found) = run.by_transaction.iter().find(|(name, _)| *name == kind)?;
            let KindReport { commits, latency_us, .. } = *found;
            Some((commits as f64 / run.seconds, latency_us, found.aborts_per_commit()))
        });
        Self::of(rounds.collect())
    }

    /// The measures of rounds, each given as throughput, latency, and aborts per commit.
    fn of(rounds: Vec<(f64, Option<LatencySummary>, f64)>) -> Self {
        let throughputs = || rounds.iter().map(|(throughput, ..)| *throughput);
        let latency = |pick: fn(&LatencySummary) -> f64| {
            text::median(rounds.iter().filter_map(|(_, latency, _)| latency.as_ref()).map(pick))
        };
        Self {
            throughput: text::median(throughputs()),
            least: throughputs().fold(f64::INFINITY, f64::min),
            most: throughputs().fold(0.0, f64::max),
            p50: latency(|latency| latency.p50),
            p90: latency(|latency| latency.p90),
            p99: latency(|latency| latency.p99),
            p999: latency(|latency| latency.p999),
            max: latency(|latency| latency.max),
            aborts_per_commit: text::median(rounds.iter().map(|(.., aborts)| *aborts)),
        }
    }

    /// The cells of throughput and its ratio.
    pub(super) fn throughput(&self, first: &Self) -> Vec<String> {
        vec![text::quantity(self.throughput), text::ratio(self.throughput, first.throughput)]
    }

    /// The cells of the latency percentiles, with ratios for the most important ones.
    fn latencies(&self, first: &Self) -> Vec<String> {
        vec![
            text::quantity(self.p50),
            text::ratio(self.p50, first.p50),
            text::quantity(self.p90),
            text::quantity(self.p99),
            text::ratio(self.p99, first.p99),
            text::quantity(self.p999),
            text::ratio(self.p999, first.p999),
            text::quantity(self.max),
        ]
    }
}
