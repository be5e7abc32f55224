//! Options of stress.

use super::Stress;
use super::objects::Objects;
use hotrow::{Database, Protocol};
use hotrow_driver::{
    BenchError, Observer, OptionError, OptionInfo, OptionValues, WorkloadDefinition, WorkloadInfo,
};
use serde::Serialize;

/// Sizes and shares of stress.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StressOptions {
    /// Number of keys of each object, at least 1.
    pub keys: u32,
    /// Largest number of operations in a transaction, at least 1. Each transaction has a random number of them.
    pub ops: u32,
    /// Share of operations that write, from 0 to 1.
    pub write_share: f64,
    /// Share of transactions that roll back at a random point.
    pub rollback_share: f64,
    /// Share of the other transactions of which a part has a savepoint of its own, and is undone in three of four cases.
    pub part_share: f64,
    /// Share of transactions whose body panics at a random point.
    pub panic_share: f64,
    /// Share of operations after which the thread yields.
    pub yield_share: f64,
    /// Share of transactions that only read, on a snapshot, which is strict in half of the cases.
    pub snapshot_share: f64,
    /// True if tables have database caches.
    pub caches: bool,
}

impl Default for StressOptions {
    fn default() -> Self {
        Self {
            keys: 8,
            ops: 8,
            write_share: 0.5,
            rollback_share: 0.05,
            part_share: 0.1,
            panic_share: 0.01,
            yield_share: 0.02,
            snapshot_share: 0.1,
            caches: false,
        }
    }
}

/// Memory in use per key, in bytes: two boxes, twins, two counters, an element, three rows and their entries.
const KEY_BYTES: u64 = 2_700;

impl WorkloadDefinition for StressOptions {
    type Loaded<P: Protocol> = Stress<P>;

    const INFO: WorkloadInfo = WorkloadInfo {
        name: "stress",
        summary: "random operations on a few hot keys of every kind of object, to be recorded and checked",
        source: "Hotrow's own",
        runs_procedures: false,
        is_durable: false,
        options: &[
            OptionInfo {
                name: "keys",
                value: "N",
                default: "8",
                summary: "Keys of each object, from 1 to 1000000",
            },
            OptionInfo {
                name: "ops",
                value: "N",
                default: "8",
                summary: "The most operations in a transaction, from 1 to 10000",
            },
            OptionInfo {
                name: "write-share",
                value: "S",
                default: "0.5",
                summary: "The share of operations that write, from 0 to 1",
            },
            OptionInfo {
                name: "rollback-share",
                value: "S",
                default: "0.05",
                summary: "The share of transactions that roll back, from 0 to 1",
            },
            OptionInfo {
                name: "part-share",
                value: "S",
                default: "0.1",
                summary: "The share of transactions with a part that may be undone alone, from 0 to 1",
            },
            OptionInfo {
                name: "panic-share",
                value: "S",
                default: "0.01",
                summary: "The share of transactions whose body panics, from 0 to 1",
            },
            OptionInfo {
                name: "yield-share",
                value: "S",
                default: "0.02",
                summary: "The share of operations after which a thread gives the processor away, from 0 to 1",
            },
            OptionInfo {
                name: "snapshot-share",
                value: "S",
                default: "0.1",
                summary: "The share of transactions that only read, on a snapshot, from 0 to 1",
            },
            OptionInfo {
                name: "caches",
                value: "TABLES",
                default: "none",
                summary: "Tables with database caches: none, or all",
            },
        ],
        baselines: &[],
        example: "--keys 2 --ops 4",
    };

    fn parse(values: &OptionValues<'_>) -> Result<Self, OptionError> {
        Ok(Self {
            keys: values.number("keys", 1..=1_000_000)?,
            ops: values.number("ops", 1..=10_000)?,
            write_share: values.number("write-share", 0.0..=1.0)?,
            rollback_share: values.number("rollback-share", 0.0..=1.0)?,
            part_share: values.number("part-share", 0.0..=1.0)?,
            panic_share: values.number("panic-share", 0.0..=1.0)?,
            yield_share: values.number("yield-share", 0.0..=1.0)?,
            snapshot_share: values.number("snapshot-share", 0.0..=1.0)?,
            caches: values.one_of("caches", &[("none", false), ("all", true)])?,
        })
    }

    fn data_bytes_estimate(&self) -> u64 {
        u64::from(self.keys) * KEY_BYTES
    }

    /// Makes the objects, with half of the rows.
    fn load<P: Protocol>(
        &self,
        database: &Database<P>,
        _threads: usize,
        _seed: u64,
        observer: &dyn Observer,
    ) -> Result<Stress<P>, BenchError> {
        observer.loading(0, 1);
        let objects = Objects::new(database, self.keys, self.caches);
        observer.loading(1, 1);
        Ok(Stress { objects, options: *self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_options_of_the_command_have_the_defaults_of_the_type() {
        let defaults = StressOptions::from_given(&[]).unwrap();
        assert_eq!(json!(defaults), json!(StressOptions::default()));
    }

    #[test]
    fn a_share_is_at_most_all() {
        for name in
            ["write-share", "rollback-share", "part-share", "panic-share", "yield-share", "snapshot-share"]
        {
            let words = StressOptions::from_given(&[(name, "1.1")]).unwrap_err().to_string();
            assert_eq!(words, format!("--{name} 1.1: expected a number from 0 to 1"));
        }
    }
}
