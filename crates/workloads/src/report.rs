//! The report of one run, as `--format json` prints it.

use crate::latency::{LatencyDistribution, LatencySummary};
use crate::workload::Check;
use hotrow::{Drawn, OperationCounts, Reason};
use serde::ser::{Serialize, SerializeMap as _, Serializer};

/// Everything that one run found.
#[derive(Debug, Clone, serde::Serialize)]
pub struct RunReport {
    /// The workload's name.
    pub workload: &'static str,
    /// The protocol's name.
    pub protocol: String,
    /// Workers, one thread each.
    pub threads: usize,
    /// How long was measured, without the warm-up.
    pub seconds: f64,
    /// The seed of data and inputs.
    pub seed: u64,
    /// Whether time was simulated.
    #[serde(rename = "virtual")]
    pub virtual_time: bool,
    /// Transactions committed while measuring.
    pub commits: u64,
    /// Attempts that lost a conflict, of the transactions that ended while measuring.
    pub aborts: u64,
    /// Transactions that rolled back because the workload wants some to.
    pub rollbacks: u64,
    /// Commits per second.
    pub throughput_per_s: f64,
    /// Latency of all commits, in microseconds; none if nothing committed.
    pub latency_us: Option<LatencySummary>,
    /// The same as a curve, to be drawn. Not in the JSON, where it would be longer than all the rest.
    #[serde(skip)]
    pub latency_distribution: LatencyDistribution,
    /// The same by type of transaction.
    #[serde(serialize_with = "as_map")]
    pub by_transaction: Vec<(&'static str, KindReport)>,
    /// Aborts by reason.
    #[serde(serialize_with = "as_map")]
    pub abort_reasons: Vec<(&'static str, u64)>,
    /// The most attempts that a transaction took.
    pub attempts_max: u64,
    /// Those commits and aborts that were of tame attempts; none under a protocol that defers nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tame: Option<TameReport>,
    /// Operations that had been drawn for others to run, of the transactions that ended while measuring, lost attempts
    /// included; none under a protocol that shares no operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drawn_operations: Option<DrawnReport>,
    /// The keys over which most attempts were lost, warm-up included.
    pub hot_rows: Vec<HotRow>,
    /// The workload's own checks.
    pub checks: Vec<Check>,
    /// Memory in use by the process at the end, in bytes.
    pub memory_bytes: u64,
    /// Memory in detail.
    pub memory: Memory,
    /// The workload's options; and `think_us`, the delay before each operation, if there was one.
    pub options: serde_json::Map<String, serde_json::Value>,
    /// The source revision.
    pub revision: String,
    /// The machine.
    pub machine: Machine,
}

impl RunReport {
    /// The checks that did not pass.
    pub fn failed_checks(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.passed)
    }

    /// Aborts for each commit.
    pub fn aborts_per_commit(&self) -> f64 {
        ratio(self.aborts, self.commits)
    }
}

/// `part` for each one of `whole`; 0 if there is neither.
fn ratio(part: u64, whole: u64) -> f64 {
    if part == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// What one type of transaction did.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct KindReport {
    /// Transactions committed.
    pub commits: u64,
    /// Attempts that lost a conflict.
    pub aborts: u64,
    /// Latency in microseconds; none if none committed.
    pub latency_us: Option<LatencySummary>,
}

impl KindReport {
    /// Aborts for each commit.
    pub fn aborts_per_commit(&self) -> f64 {
        ratio(self.aborts, self.commits)
    }
}

/// What tame attempts came to: those that had deferred something and read nothing when their commit began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct TameReport {
    /// Tame transactions committed.
    pub commits: u64,
    /// Tame attempts that were lost all the same.
    pub aborts: u64,
}

/// Who ran the operations that transactions had drawn for others to run, and how long one took (stealdb §4.2).
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct DrawnReport {
    /// Those that their own worker ran.
    pub own: u64,
    /// Those that others ran, who waited for it.
    pub stolen: u64,
    /// The share that others ran, from 0 to 1; none if there were no such operations.
    pub stolen_share: Option<f64>,
    /// What one took on average of those that their own worker ran, in microseconds, waits for locks included; none if
    /// none was timed.
    pub own_mean_us: Option<f64>,
    /// The same of those that others ran.
    pub stolen_mean_us: Option<f64>,
}

impl DrawnReport {
    /// The report of counts.
    pub(crate) fn of(drawn: &Drawn) -> Self {
        let Drawn { own, stolen } = drawn;
        let mean_us = |counts: &OperationCounts| counts.mean_ns().map(|nanoseconds| nanoseconds / 1e3);
        Self {
            own: own.count,
            stolen: stolen.count,
            stolen_share: drawn.stolen_share(),
            own_mean_us: mean_us(own),
            stolen_mean_us: mean_us(stolen),
        }
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        self.own + self.stolen
    }
}

/// A key over which attempts were lost.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct HotRow {
    /// The table's or object's name.
    pub table: String,
    /// The key within it.
    pub key: String,
    /// Attempts lost over it.
    pub conflicts: u64,
}

/// Memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Memory {
    /// Keys and rows after loading.
    pub payload_bytes_loaded: u64,
    /// In use by the process after loading.
    pub resident_bytes_loaded: u64,
    /// Keys and rows after the run.
    pub payload_bytes_end: u64,
    /// In use by the process after the run.
    pub resident_bytes_end: u64,
    /// Replaced or taken out and not freed yet after the run.
    pub retained_bytes_end: u64,
}

/// What a machine is, as far as results depend on it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Machine {
    /// Threads it runs at once.
    pub cores: usize,
    /// Its memory.
    pub memory_bytes: u64,
    /// The processor's name.
    pub cpu: String,
    /// The operating system's name and version.
    pub os: String,
}

/// Names the counts of aborts by reason.
pub(crate) fn named_reasons(counts: &[u64; Reason::ALL.len()]) -> Vec<(&'static str, u64)> {
    Reason::ALL.iter().zip(counts).map(|(reason, count)| (reason.name(), *count)).collect()
}

/// Pairs as an object, in their order.
fn as_map<S: Serializer, V: Serialize>(
    pairs: &[(&'static str, V)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(pairs.len()))?;
    for (name, value) in pairs {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_aborts_without_commits_are_no_aborts_per_commit() {
        assert_eq!(ratio(0, 0), 0.0);
        assert_eq!(ratio(1, 4), 0.25);
        assert_eq!(ratio(1, 0), f64::INFINITY);
    }

    #[test]
    fn drawn_operations_have_a_share_and_means_of_those_that_were_timed() {
        let own = OperationCounts { count: 7, timed: 2, timed_ns: 2_040 };
        let stolen = OperationCounts { count: 25, timed: 4, timed_ns: 13_440 };
        let report = DrawnReport::of(&Drawn { own, stolen });
        assert_eq!((report.own, report.stolen, report.all()), (7, 25, 32));
        let figures = [report.stolen_share, report.own_mean_us, report.stolen_mean_us];
        assert_eq!(figures, [Some(25.0 / 32.0), Some(1.02), Some(3.36)]);
        let none = DrawnReport::of(&Drawn::default());
        assert_eq!(
            (none.all(), none.stolen_share, none.own_mean_us, none.stolen_mean_us),
            (0, None, None, None)
        );
    }
}
