//! Presets, and the options that override them.

use super::rows::{SHORT_BYTES_MAX, STANDARD_BYTES};
use super::{Records, Ycsb, fill};
use crate::traces;
use hotrow::chopping::Chopping;
use hotrow::{Database, Isolation, Procedures, Protocol};
use hotrow_driver::{
    BenchError, Observer, OptionError, OptionInfo, OptionValues, READERS, Refinement, WorkloadDefinition,
    WorkloadInfo, invalid, name_of,
};
use serde::{Serialize, Serializer};

/// YCSB's core workloads as plor §6.1 runs them: with transactions of several operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Update-heavy: half reads, half blind writes, theta 0.99.
    A,
    /// Read-heavy: 95 % reads, the rest blind writes, theta 0.5 as in the paper (YCSB's own is 0.99).
    B,
    /// Read-only, theta 0.99.
    C,
    /// Half reads, half read-modify-writes, theta 0.99.
    F,
}

impl Preset {
    /// All presets, with their names.
    pub(crate) const NAMES: [(&'static str, Preset); 4] =
        [Self::A.named(), Self::B.named(), Self::C.named(), Self::F.named()];

    const fn named(self) -> (&'static str, Preset) {
        (self.name(), self)
    }

    /// Returns the preset's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
            Self::C => "c",
            Self::F => "f",
        }
    }

    /// Returns the skew of the preset's distribution: its theta.
    pub(crate) fn theta(self) -> f64 {
        if self == Self::B { 0.5 } else { 0.99 }
    }

    /// Returns the share of operations that read.
    pub(crate) fn read_ratio(self) -> f64 {
        match self {
            Self::A | Self::F => 0.5,
            Self::B => 0.95,
            Self::C => 1.0,
        }
    }

    /// Returns the share of writes that are read-modify-writes; the others are blind.
    pub(crate) fn rmw_share(self) -> f64 {
        if self == Self::F { 1.0 } else { 0.0 }
    }
}

impl Serialize for Preset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Records, and the transactions on them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct YcsbOptions {
    /// Preset: gives the values of options that were not given.
    pub preset: Preset,
    /// Number of records, at least as many as a transaction has operations. The paper has ten million.
    pub records: u64,
    /// Size of a value, in bytes, at least 1.
    pub value_bytes: u32,
    /// Zipfian theta, from 0 (uniform).
    pub theta: f64,
    /// Share of operations that read, from 0 to 1.
    pub read_ratio: f64,
    /// Share of writes that are read-modify-writes, from 0 to 1; the others are blind.
    pub rmw_share: f64,
    /// Number of operations of a small transaction. The paper has 4.
    pub ops: u32,
    /// Share of transactions that are big, from 0 to 1. The paper has a tenth.
    pub big_share: f64,
    /// Number of operations of a big transaction. The paper has 16.
    pub big_ops: u32,
    /// Isolation of transactions that only read.
    #[serde(serialize_with = "readers_name")]
    pub readers: Isolation,
}

fn readers_name<S: Serializer>(readers: &Isolation, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name_of(&READERS, readers))
}

impl YcsbOptions {
    /// Returns a preset with a million records of 1,000 bytes (YCSB's ten fields of a hundred) and the paper's
    /// transactions.
    pub fn of(preset: Preset) -> Self {
        Self {
            preset,
            records: 1_000_000,
            value_bytes: 1_000,
            theta: preset.theta(),
            read_ratio: preset.read_ratio(),
            rmw_share: preset.rmw_share(),
            ops: 4,
            big_share: 0.1,
            big_ops: 16,
            readers: Isolation::Serializable,
        }
    }
}

/// Value of an option that stands for the preset's own value.
const PRESETS_OWN: &str = "preset";

/// Memory in use per record, in bytes: in all for a short value, without the value for a long one. It covers the
/// record, its entry in the index, and the allocator's overhead on both.
const SHORT_RECORD_BYTES: u64 = 80;
const RECORD_BYTES: u64 = 115;

impl WorkloadDefinition for YcsbOptions {
    type Loaded<P: Protocol> = Ycsb<P>;

    const INFO: WorkloadInfo = WorkloadInfo {
        name: "ycsb",
        summary: "small and big transactions of reads and writes of records, some of them hot",
        source: "YCSB, plor §6.1",
        runs_procedures: true,
        is_durable: true,
        options: &[
            OptionInfo {
                name: "preset",
                value: "PRESET",
                default: "a",
                summary: "a (half reads, half blind writes), b (95 % reads), c (all reads), f (half read-modify-writes)",
            },
            OptionInfo {
                name: "records",
                value: "N",
                default: "1000000",
                summary: "Records, from 1 to 10^9; the paper's 10000000 take 11 GB",
            },
            OptionInfo {
                name: "value-bytes",
                value: "N",
                default: "1000",
                summary: "The size of a value in bytes, from 1 to 1000000",
            },
            OptionInfo {
                name: "theta",
                value: "T",
                default: PRESETS_OWN,
                summary: "How unevenly records are drawn: the zipfian theta, from 0 to 1.4 (0.99; 0.5 in b)",
            },
            OptionInfo {
                name: "read-ratio",
                value: "R",
                default: PRESETS_OWN,
                summary: "The share of operations that read, from 0 to 1; the others write",
            },
            OptionInfo {
                name: "rmw-share",
                value: "S",
                default: PRESETS_OWN,
                summary: "The share of writes that read what they change, from 0 to 1; the others are blind (0; 1 in f)",
            },
            OptionInfo {
                name: "ops",
                value: "N",
                default: "4",
                summary: "Operations of a small transaction, from 1 to 1000, each on another record",
            },
            OptionInfo {
                name: "big-share",
                value: "S",
                default: "0.1",
                summary: "The share of transactions that are big, from 0 to 1",
            },
            OptionInfo {
                name: "big-ops",
                value: "N",
                default: "16",
                summary: "Operations of a big transaction, from 1 to 1000, each on another record",
            },
            OptionInfo {
                name: "readers",
                value: "HOW",
                default: "serializable",
                summary: "Transactions that only read: serializable by the protocol, on a snapshot (a millisecond old), or on a strict-snapshot",
            },
        ],
        baselines: &[],
        example: "--preset b --theta 0.99 --value-bytes 10",
    };
    const MEASURES_LIMIT: bool = true;

    fn parse(values: &OptionValues<'_>) -> Result<Self, OptionError> {
        let preset = values.one_of("preset", &Preset::NAMES)?;
        let share = |name| values.number_or(name, PRESETS_OWN, 0.0..=1.0);
        let options = Self {
            preset,
            records: values.number("records", 1..=1_000_000_000)?,
            value_bytes: values.number("value-bytes", 1..=1_000_000)?,
            theta: values.number_or("theta", PRESETS_OWN, 0.0..=1.4)?.unwrap_or(preset.theta()),
            read_ratio: share("read-ratio")?.unwrap_or(preset.read_ratio()),
            rmw_share: share("rmw-share")?.unwrap_or(preset.rmw_share()),
            ops: values.number("ops", 1..=1_000)?,
            big_share: values.number("big-share", 0.0..=1.0)?,
            big_ops: values.number("big-ops", 1..=1_000)?,
            readers: values.one_of("readers", &READERS)?,
        };
        let Self { records, ops, big_share, big_ops, .. } = options;
        // If no transaction has a size, its number of operations is not checked.
        for (name, ops, share) in [("ops", ops, 1.0 - big_share), ("big-ops", big_ops, big_share)] {
            if share > 0.0 && u64::from(ops) > records {
                let reason = format!("each operation is on another record, and there are {records}");
                return Err(invalid(name, &ops.to_string(), reason));
            }
        }
        Ok(options)
    }

    #[cfg(feature = "remote")]
    fn run_in_store(
        &self,
        address: &str,
        run: hotrow_driver::BaselineRun<'_>,
    ) -> Option<Result<hotrow_driver::RunOutcome, BenchError>> {
        Some(crate::in_store::run_ycsb(self, address, run))
    }

    fn data_bytes_estimate(&self) -> u64 {
        let long = u64::from(self.value_bytes) + RECORD_BYTES;
        let each = if self.value_bytes <= SHORT_BYTES_MAX { SHORT_RECORD_BYTES } else { long };
        self.records.saturating_mul(each)
    }

    fn chopping(&self, _refinement: Refinement) -> Option<Result<Chopping, BenchError>> {
        // Few records, and transactions of both sizes.
        let records = u64::from(self.ops.max(self.big_ops)).max(1);
        let small = Self { records, ..*self };
        Some(
            traces::load_small(&small)
                .and_then(|loaded| Ok(Chopping::new().procedure("transaction", loaded.traces()?))),
        )
    }

    fn load<P: Protocol>(
        &self,
        database: &Database<P>,
        threads: usize,
        _seed: u64,
        observer: &dyn Observer,
    ) -> Result<Ycsb<P>, BenchError> {
        database.set_readers_isolation(self.readers);
        let table = match self.value_bytes {
            ..=SHORT_BYTES_MAX => Records::Short(fill(database, self, threads, observer)?),
            STANDARD_BYTES => Records::Standard(fill(database, self, threads, observer)?),
            _ => Records::Long(fill(database, self, threads, observer)?),
        };
        Ok(Ycsb { database: database.clone(), table, options: *self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_preset_of_ycsb_holds_but_for_what_is_given() {
        let given = |options: &[(&str, &str)]| {
            let options = json!(YcsbOptions::from_given(options).unwrap());
            ["theta", "read_ratio", "rmw_share"].map(|name| options[name].as_f64().unwrap())
        };
        assert_eq!(given(&[]), [0.99, 0.5, 0.0]);
        assert_eq!(given(&[("preset", "b")]), [0.5, 0.95, 0.0]);
        assert_eq!(given(&[("preset", "c")]), [0.99, 1.0, 0.0]);
        assert_eq!(given(&[("preset", "f")]), [0.99, 0.5, 1.0]);
        assert_eq!(given(&[("theta", "1.2"), ("preset", "b"), ("rmw-share", "0.5")]), [1.2, 0.95, 0.5]);
        for (name, value) in [("theta", "1.5"), ("theta", "preset "), ("read-ratio", "2"), ("preset", "e")] {
            let words = YcsbOptions::from_given(&[(name, value)]).unwrap_err().to_string();
            assert!(words.starts_with(&format!("--{name} {value}: expected")), "{words}");
        }
    }

    #[test]
    fn a_preset_is_reported_by_its_word() {
        for (word, _) in Preset::NAMES {
            let options = YcsbOptions::from_given(&[("preset", word)]).unwrap();
            assert_eq!(json!(options)["preset"], word);
        }
        let options = YcsbOptions::from_given(&[("readers", "snapshot")]).unwrap();
        assert_eq!(json!(options)["readers"], "snapshot");
    }

    #[test]
    fn a_transaction_of_ycsb_needs_as_many_records_as_it_has_operations() {
        let words = YcsbOptions::from_given(&[("records", "8")]).unwrap_err().to_string();
        assert_eq!(words, "--big-ops 16: each operation is on another record, and there are 8");
        assert!(YcsbOptions::from_given(&[("records", "8"), ("big-share", "0")]).is_ok());
        assert!(YcsbOptions::from_given(&[("records", "8"), ("big-ops", "8")]).is_ok());
        assert!(YcsbOptions::from_given(&[("records", "3"), ("big-share", "0")]).is_err());
    }
}
