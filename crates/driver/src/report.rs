//! The report of one run, as `--format json` prints it.

use crate::latency::{LatencyDistribution, LatencySummary};
use crate::workload::Check;
use hotrow::protocols::{Visitor, with_protocol};
use hotrow::{Counter, CounterValue, Engine, HotKey, Origin, Protocol, Reason, RetryPolicy};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// The mean working set of the simulated hardware transactions that committed, in bytes of whole cache lines.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct WorkingSet {
    /// Lines that were read before anything was written to them.
    pub read_bytes: f64,
    /// Lines that were written.
    pub written_bytes: f64,
    /// Lines that were read or written.
    pub bytes: f64,
}

/// Results of one run.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RunReport {
    /// Name of the workload.
    pub workload: Cow<'static, str>,
    /// Name of the protocol.
    pub protocol: String,
    /// Number of workers, one thread each.
    pub threads: usize,
    /// Measured time, without the warm-up.
    pub seconds: f64,
    /// Seed of the data and the inputs.
    pub seed: u64,
    /// True if time was simulated.
    #[serde(rename = "virtual")]
    pub virtual_time: bool,
    /// Transactions committed in the measured time.
    pub commits: u64,
    /// Attempts lost to a conflict, of the transactions that ended in the measured time.
    pub aborts: u64,
    /// Transactions that rolled back because the workload asked for it.
    pub rollbacks: u64,
    /// Commits per second.
    pub throughput_per_s: f64,
    /// Latency of all commits, in microseconds; `None` if nothing committed.
    pub latency_us: Option<LatencySummary>,
    /// Latency distribution of all commits, for figures. The JSON leaves it out, because it would be longer than
    /// the rest.
    #[serde(skip)]
    pub latency_distribution: LatencyDistribution,
    /// Results by type of transaction.
    #[serde(serialize_with = "as_map", deserialize_with = "from_map")]
    pub by_transaction: Vec<(Cow<'static, str>, KindReport)>,
    /// Aborts by reason.
    #[serde(serialize_with = "as_map", deserialize_with = "from_map")]
    pub abort_reasons: Vec<(Cow<'static, str>, u64)>,
    /// Largest number of attempts of one transaction.
    pub attempts_max: u64,
    /// Counters that the protocol names, of the transactions that began in the measured time, lost attempts included;
    /// an object in the JSON, left out if there are none.
    #[serde(serialize_with = "counters_as_map", skip_serializing_if = "Vec::is_empty", skip_deserializing)]
    pub counters: Vec<CounterReport>,
    /// Keys with the most conflicts, warm-up included.
    pub hot_rows: Vec<HotRow>,
    /// The last deadlocks in words, the newest first, warm-up included. Left out of the JSON if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deadlocks: Vec<String>,
    /// Working sets of the hardware transactions, warm-up included. Left out of the JSON if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_set: Option<WorkingSet>,
    /// Results of the workload's own checks.
    pub checks: Vec<Check>,
    /// Memory in use by the process at the end, in bytes.
    pub memory_bytes: u64,
    /// Memory in use by data and process, after loading and after the run.
    pub memory: Memory,
    /// Options of the workload, and `think_us`, the delay before each operation, if the run had one.
    pub options: Map<String, Value>,
    /// Source revision of the build.
    pub revision: String,
    /// Description of the machine.
    pub machine: Machine,
}

impl RunReport {
    /// Reads a report from its JSON. The latency distribution, which the JSON leaves out, is empty.
    ///
    /// # Errors
    ///
    /// An error if the text is not the JSON of a report.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        let mut report: Self = serde_json::from_str(text)?;
        let CountersOnly { counters } = serde_json::from_str(text)?;
        report.counters = counters_from_map(&report.protocol, &counters)?;
        Ok(report)
    }

    /// Iterates over the checks that did not pass.
    pub fn failed_checks(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.passed)
    }

    /// Returns the aborts per commit.
    pub fn aborts_per_commit(&self) -> f64 {
        ratio(self.aborts, self.commits)
    }
}

/// Returns `part` divided by `whole`; 0 if both are 0.
fn ratio(part: u64, whole: u64) -> f64 {
    if part == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Results of one type of transaction.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct KindReport {
    /// Transactions committed.
    pub commits: u64,
    /// Attempts lost to a conflict.
    pub aborts: u64,
    /// Latency, in microseconds; `None` if nothing committed.
    pub latency_us: Option<LatencySummary>,
}

impl KindReport {
    /// Returns the aborts per commit.
    pub fn aborts_per_commit(&self) -> f64 {
        ratio(self.aborts, self.commits)
    }
}

/// A counter that the protocol names, and its value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CounterReport {
    /// The counter.
    pub counter: &'static Counter,
    /// Its value.
    pub value: CounterValue,
}

/// A key over which attempts were lost.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct HotRow {
    /// Name of the table or object.
    pub table: String,
    /// Key within the table or object.
    pub key: String,
    /// Attempts lost over the key.
    pub conflicts: u64,
    /// The time of the lost attempts, each with the pause before it, in milliseconds. A transaction's first attempt is not timed.
    #[serde(default)]
    pub lost_ms: f64,
    /// The transactions on both sides, the most frequent pairs first, if the run [names them](crate::RunSpec::both_sides).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivalries: Vec<RivalryReport>,
}

/// The conflicts that transactions of one kind have lost to those of another.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RivalryReport {
    /// The transaction that lost; `None` if it has no name.
    pub loser: Option<String>,
    /// The transaction that it lost to; `None` if the protocol does not know.
    pub winner: Option<String>,
    /// Attempts lost.
    pub conflicts: u64,
}

impl From<HotKey> for HotRow {
    fn from(hot: HotKey) -> Self {
        let named = |side: Option<Origin>| side.map(|side| side.to_string());
        let rivalries = hot.rivalries.into_iter().map(|rivalry| RivalryReport {
            loser: named(rivalry.loser),
            winner: named(rivalry.winner),
            conflicts: rivalry.conflicts,
        });
        Self {
            table: hot.object,
            key: hot.key,
            conflicts: hot.conflicts,
            lost_ms: hot.lost_time.as_secs_f64() * 1e3,
            rivalries: rivalries.collect(),
        }
    }
}

/// Memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Memory {
    /// Keys and rows after loading.
    pub payload_bytes_loaded: u64,
    /// Memory in use by the process after loading.
    pub resident_bytes_loaded: u64,
    /// Keys and rows after the run.
    pub payload_bytes_end: u64,
    /// Memory in use by the process after the run.
    pub resident_bytes_end: u64,
    /// Memory that was replaced or unlinked and is not freed yet, after the run.
    pub retained_bytes_end: u64,
}

/// Properties of a machine that results depend on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Machine {
    /// Number of threads that run at once.
    pub cores: usize,
    /// Main memory, in bytes.
    pub memory_bytes: u64,
    /// Name of the processor.
    pub cpu: String,
    /// Name and version of the operating system.
    pub os: String,
}

/// Pairs the counts of aborts with the names of their reasons.
pub(crate) fn named_reasons(counts: &[u64; Reason::ALL.len()]) -> Vec<(Cow<'static, str>, u64)> {
    Reason::ALL.iter().zip(counts).map(|(reason, count)| (reason.name().into(), *count)).collect()
}

/// Serializes pairs as an object, in their order.
fn as_map<S: Serializer, V: Serialize>(
    pairs: &[(Cow<'static, str>, V)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(pairs.len()))?;
    for (name, value) in pairs {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

/// Deserializes the pairs of an object, in their order.
fn from_map<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<(Cow<'static, str>, V)>, D::Error> {
    struct Pairs<V>(PhantomData<V>);
    impl<'de, V: Deserialize<'de>> serde::de::Visitor<'de> for Pairs<V> {
        type Value = Vec<(Cow<'static, str>, V)>;
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut pairs = Vec::new();
            while let Some((name, value)) = map.next_entry::<String, V>()? {
                pairs.push((name.into(), value));
            }
            Ok(pairs)
        }
    }
    deserializer.deserialize_map(Pairs(PhantomData))
}

/// The counters in the JSON of a report.
#[derive(serde::Deserialize)]
struct CountersOnly {
    #[serde(default)]
    counters: Map<String, Value>,
}

/// Returns the counters in the JSON of a report, in the order in which the protocol names them.
fn counters_from_map(
    protocol: &str,
    counters: &Map<String, Value>,
) -> serde_json::Result<Vec<CounterReport>> {
    if counters.is_empty() {
        return Ok(Vec::new());
    }
    let named = with_protocol(protocol, NamedCounters).map_err(serde_json::Error::custom)?;
    let found = named.into_iter().filter_map(|CounterReport { counter, value }| {
        let found = counters.get(counter.name())?;
        let value = match value {
            CounterValue::MeanUs(_) => CounterValue::MeanUs(found.as_f64()),
            CounterValue::Share(_) => CounterValue::Share(found.as_f64()),
            _ => CounterValue::Count(found.as_u64()?),
        };
        Some(CounterReport { counter, value })
    });
    Ok(found.collect())
}

/// Finds the counters that a protocol names, each without events.
struct NamedCounters;

impl Visitor for NamedCounters {
    type Output = Vec<CounterReport>;

    fn visit<P: Protocol>(self, name: &str) -> Self::Output {
        let engine = Engine::<P>::named(name, RetryPolicy::default()).expect("chosen by this name");
        engine.statistics().counters.iter().map(|(counter, value)| CounterReport { counter, value }).collect()
    }
}

/// Serializes counters as an object, in their order. A value without events is `null`.
fn counters_as_map<S: Serializer>(counters: &[CounterReport], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(counters.len()))?;
    for CounterReport { counter, value } in counters {
        match value {
            CounterValue::Count(count) => map.serialize_entry(counter.name(), count)?,
            CounterValue::MeanUs(figure) | CounterValue::Share(figure) => {
                map.serialize_entry(counter.name(), figure)?;
            }
            // A kind that this version does not know.
            _ => {}
        }
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
    fn counters_are_an_object_and_have_null_for_what_was_not_measured() {
        let counters = [
            CounterReport { counter: &Counter::STOLEN_OPERATIONS, value: CounterValue::Count(3) },
            CounterReport { counter: &Counter::STOLEN_SHARE, value: CounterValue::Share(Some(0.75)) },
            CounterReport { counter: &Counter::STOLEN_MEAN_US, value: CounterValue::MeanUs(None) },
        ];
        let json = counters_as_map(&counters, serde_json::value::Serializer).expect("plain values");
        let expected =
            serde_json::json!({ "stolen_operations": 3, "stolen_share": 0.75, "stolen_mean_us": null });
        assert_eq!(json, expected);
    }
}
