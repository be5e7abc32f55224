//! The registry: the workloads and their options.
//!
//! Adding a workload is one new module, one [`WorkloadInfo`], one arm in each `match` below and one where it is
//! loaded (`run`). The command's parser, its help and its lists all come from here.

use crate::array::ArrayOptions;
use crate::options::{OptionError, OptionInfo, Values, invalid};
use crate::stress::StressOptions;
use crate::tables32::Tables32Options;
use crate::tpcc::population::Scale;
use crate::tpcc::{Ranks, TpccOptions};
use crate::ycsb::rows::SHORT_BYTES_MAX;
use crate::ycsb::{Preset, YcsbOptions};
use hotrow::Isolation;
use serde_json::{Map, Value, json};

/// What is known of a workload without choosing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadInfo {
    /// The name, as given to the command.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its options.
    pub options: &'static [OptionInfo],
    /// Options as an example.
    pub example: &'static str,
}

const TPCC: WorkloadInfo = WorkloadInfo {
    name: "tpcc",
    summary: "orders and payments at warehouses; one warehouse for all threads is high contention",
    source: "TPC-C, revision 5.11",
    options: &[
        OptionInfo { name: "warehouses", value: "N", default: "1", summary: "Warehouses, from 1 to 65535" },
        OptionInfo {
            name: "mix",
            value: "MIX",
            default: "full",
            summary: "Transactions: full, new-order, or new-order+payment",
        },
        OptionInfo {
            name: "scale",
            value: "SCALE",
            default: "full",
            summary: "Rows of a warehouse: full, or small for a quick try (100 items instead of 100000)",
        },
        OptionInfo {
            name: "stock-level",
            value: "LEVEL",
            default: "serializable",
            summary: "Isolation of Stock-Level: serializable, or read-committed (clause 2.8.2.3; plor §6.1)",
        },
        OptionInfo {
            name: "tame-share",
            value: "S",
            default: "1",
            summary: "The share of New-Orders that defer their operations under protocols that do, from 0 to 1 (drp §7.2)",
        },
        OptionInfo {
            name: "ranks",
            value: "RANKS",
            default: "tuned",
            summary: "The order in which deferred operations line up: tuned (hot tables last), or equal (drp §6.3)",
        },
    ],
    example: "--warehouses 2 --mix new-order+payment",
};

const YCSB: WorkloadInfo = WorkloadInfo {
    name: "ycsb",
    summary: "small and big transactions of reads and writes of records, some of them hot",
    source: "YCSB, plor §6.1",
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
    ],
    example: "--preset b --theta 0.99 --value-bytes 10",
};

/// Stands for the preset's own value of an option.
const PRESETS_OWN: &str = "preset";

const ARRAY: WorkloadInfo = WorkloadInfo {
    name: "array",
    summary: "reads and increments of random elements of an array of integers",
    source: "sto §5.1",
    options: &[
        OptionInfo { name: "size", value: "N", default: "1000000", summary: "Elements, from 1 to 10^12" },
        OptionInfo {
            name: "ops",
            value: "N",
            default: "10",
            summary: "Operations in a transaction, from 1 to 10000",
        },
        OptionInfo {
            name: "increment-share",
            value: "S",
            default: "0.5",
            summary: "The share of operations that increment, from 0 to 1; the others read",
        },
    ],
    example: "--size 1000 --increment-share 0.2",
};

const TABLES32: WorkloadInfo = WorkloadInfo {
    name: "tables32",
    summary: "increments of a random record in each of 32 tables; one hot record in the first is high contention",
    source: "stealdb §4.2",
    options: &[
        OptionInfo { name: "tables", value: "N", default: "32", summary: "Tables, from 1 to 1000" },
        OptionInfo {
            name: "records",
            value: "N",
            default: "100000",
            summary: "Records of each table, from 1 to 10^9",
        },
        OptionInfo {
            name: "hot-records",
            value: "N",
            default: ALL_RECORDS,
            summary: "Records of the first table that transactions choose from, from 1 to all",
        },
    ],
    example: "--records 10000 --hot-records 1",
};

/// Stands for as many hot records as there are records.
const ALL_RECORDS: &str = "all";

const STRESS: WorkloadInfo = WorkloadInfo {
    name: "stress",
    summary: "random operations on a few hot keys of every kind of object, to be recorded and checked",
    source: "Hotrow's own",
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
    ],
    example: "--keys 2 --ops 4",
};

/// All workloads, the main one first.
pub const WORKLOADS: &[WorkloadInfo] = &[TPCC, YCSB, TABLES32, ARRAY, STRESS];

/// The names of all workloads.
pub(crate) fn names() -> Vec<&'static str> {
    WORKLOADS.iter().map(|workload| workload.name).collect()
}

/// Memory in use for each warehouse of TPC-C at full scale, in bytes: 100 million once it is loaded, and room
/// for the orders of some seconds.
const WAREHOUSE_BYTES: u64 = 110_000_000;

/// Memory in use for each record of YCSB with a short value, in bytes, and for any other beside its value: the record,
/// its entry in the index, and what the allocator adds to each.
const SHORT_RECORD_BYTES: u64 = 80;
const RECORD_BYTES: u64 = 115;

/// Memory in use for each element of the array, in bytes: the integer and what a protocol keeps beside it, at
/// most.
const ELEMENT_BYTES: u64 = 16;

/// Memory in use for each record of the 32 tables, in bytes: the record and its entry in the index.
const TABLES32_RECORD_BYTES: u64 = 80;

/// Memory in use for each key of stress, in bytes: two boxes, a counter, an element, two rows and their entries.
const STRESS_KEY_BYTES: u64 = 2_000;

/// Memory in use whatever the workload, in bytes.
const BASE_BYTES: u64 = 20_000_000;

/// A workload with its options.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WorkloadOptions {
    /// TPC-C.
    Tpcc(TpccOptions),
    /// YCSB.
    Ycsb(YcsbOptions),
    /// The array.
    Array(ArrayOptions),
    /// The 32 tables.
    Tables32(Tables32Options),
    /// Stress.
    Stress(StressOptions),
}

const ISOLATIONS: [(&str, Isolation); 2] =
    [("serializable", Isolation::Serializable), ("read-committed", Isolation::ReadCommitted)];

const RANKS: [(&str, Ranks); 2] = [("tuned", Ranks::Tuned), ("equal", Ranks::Equal)];

/// The name of one of an option's values.
fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> &'static str {
    names.iter().find(|(_, known)| known == value).map_or("other", |(name, _)| name)
}

const SCALES: [(&str, Scale); 2] = [("full", Scale::SPECIFICATION), ("small", Scale::SMALL)];

impl WorkloadOptions {
    /// The workload `name` with the options `given`, names without dashes and values.
    ///
    /// # Errors
    ///
    /// [`OptionError`] if there is no such workload or option, or the value cannot be.
    pub fn parse(name: &str, given: &[(String, String)]) -> Result<Self, OptionError> {
        let Some(info) = WORKLOADS.iter().find(|workload| workload.name == name) else {
            return Err(OptionError::UnknownWorkload { name: name.to_owned() });
        };
        let values = Values::new(info.name, info.options, given)?;
        if info.name == TPCC.name {
            Ok(Self::Tpcc(TpccOptions {
                warehouses: values.number("warehouses", 1..=u32::from(u16::MAX))?,
                mix: values.parsed("mix")?,
                scale: values.one_of("scale", &SCALES)?,
                stock_level: values.one_of("stock-level", &ISOLATIONS)?,
                tame_share: values.number("tame-share", 0.0..=1.0)?,
                ranks: values.one_of("ranks", &RANKS)?,
            }))
        } else if info.name == YCSB.name {
            parse_ycsb(&values).map(Self::Ycsb)
        } else if info.name == TABLES32.name {
            let records = values.number("records", 1..=1_000_000_000)?;
            Ok(Self::Tables32(Tables32Options {
                tables: values.number("tables", 1..=1_000)?,
                records,
                hot_records: values.number_or("hot-records", ALL_RECORDS, 1..=records)?.unwrap_or(records),
            }))
        } else if info.name == STRESS.name {
            Ok(Self::Stress(StressOptions {
                keys: values.number("keys", 1..=1_000_000)?,
                ops: values.number("ops", 1..=10_000)?,
                write_share: values.number("write-share", 0.0..=1.0)?,
                rollback_share: values.number("rollback-share", 0.0..=1.0)?,
                panic_share: values.number("panic-share", 0.0..=1.0)?,
                yield_share: values.number("yield-share", 0.0..=1.0)?,
            }))
        } else {
            Ok(Self::Array(ArrayOptions {
                size: values.number("size", 1..=1_000_000_000_000)?,
                ops: values.number("ops", 1..=10_000)?,
                increment_share: values.number("increment-share", 0.0..=1.0)?,
            }))
        }
    }

    /// The workload.
    pub fn info(&self) -> &'static WorkloadInfo {
        match self {
            Self::Tpcc(_) => &TPCC,
            Self::Ycsb(_) => &YCSB,
            Self::Array(_) => &ARRAY,
            Self::Tables32(_) => &TABLES32,
            Self::Stress(_) => &STRESS,
        }
    }

    /// Whether all its transactions are procedures, whose operations can be made to arrive one at a time.
    pub fn runs_procedures(&self) -> bool {
        match self {
            Self::Tpcc(_) | Self::Ycsb(_) | Self::Tables32(_) => true,
            Self::Array(_) | Self::Stress(_) => false,
        }
    }

    /// The options' values, for reports.
    pub fn to_json(&self) -> Map<String, Value> {
        let options = match self {
            Self::Tpcc(TpccOptions { warehouses, mix, scale, stock_level, tame_share, ranks }) => {
                json!({
                    "warehouses": warehouses,
                    "mix": mix.name(),
                    "scale": name_of(&SCALES, scale),
                    "stock_level": name_of(&ISOLATIONS, stock_level),
                    "tame_share": tame_share,
                    "ranks": name_of(&RANKS, ranks),
                })
            }
            Self::Ycsb(YcsbOptions {
                preset,
                records,
                value_bytes,
                theta,
                read_ratio,
                rmw_share,
                ops,
                big_share,
                big_ops,
            }) => json!({
                "preset": preset.name(),
                "records": records,
                "value_bytes": value_bytes,
                "theta": theta,
                "read_ratio": read_ratio,
                "rmw_share": rmw_share,
                "ops": ops,
                "big_share": big_share,
                "big_ops": big_ops,
            }),
            Self::Array(ArrayOptions { size, ops, increment_share }) => {
                json!({ "size": size, "ops": ops, "increment_share": increment_share })
            }
            Self::Tables32(Tables32Options { tables, records, hot_records }) => {
                json!({ "tables": tables, "records": records, "hot_records": hot_records })
            }
            Self::Stress(StressOptions {
                keys,
                ops,
                write_share,
                rollback_share,
                panic_share,
                yield_share,
            }) => json!({
                "keys": keys,
                "ops": ops,
                "write_share": write_share,
                "rollback_share": rollback_share,
                "panic_share": panic_share,
                "yield_share": yield_share,
            }),
        };
        match options {
            Value::Object(map) => map,
            _ => unreachable!("all are objects"),
        }
    }

    /// How much memory the process will have in use once the data is loaded, in bytes: an estimate.
    pub fn resident_bytes_estimate(&self) -> u64 {
        let data = match self {
            Self::Tpcc(TpccOptions { warehouses, scale, .. }) if *scale == Scale::SPECIFICATION => {
                u64::from(*warehouses) * WAREHOUSE_BYTES
            }
            // A thousandth of the rows; even all possible warehouses are no trouble.
            Self::Tpcc(TpccOptions { warehouses, .. }) => u64::from(*warehouses) * WAREHOUSE_BYTES / 100,
            Self::Ycsb(YcsbOptions { records, value_bytes, .. }) => {
                let long = u64::from(*value_bytes) + RECORD_BYTES;
                let each = if *value_bytes <= SHORT_BYTES_MAX { SHORT_RECORD_BYTES } else { long };
                records.saturating_mul(each)
            }
            Self::Array(ArrayOptions { size, .. }) => (*size as u64).saturating_mul(ELEMENT_BYTES),
            Self::Tables32(Tables32Options { tables, records, .. }) => {
                u64::from(*tables).saturating_mul(*records).saturating_mul(TABLES32_RECORD_BYTES)
            }
            Self::Stress(StressOptions { keys, .. }) => u64::from(*keys) * STRESS_KEY_BYTES,
        };
        data.saturating_add(BASE_BYTES)
    }
}

fn parse_ycsb(values: &Values<'_>) -> Result<YcsbOptions, OptionError> {
    let preset = values.one_of("preset", &Preset::NAMES)?;
    let share = |name| values.number_or(name, PRESETS_OWN, 0.0..=1.0);
    let options = YcsbOptions {
        preset,
        records: values.number("records", 1..=1_000_000_000)?,
        value_bytes: values.number("value-bytes", 1..=1_000_000)?,
        theta: values.number_or("theta", PRESETS_OWN, 0.0..=1.4)?.unwrap_or(preset.theta()),
        read_ratio: share("read-ratio")?.unwrap_or(preset.read_ratio()),
        rmw_share: share("rmw-share")?.unwrap_or(preset.rmw_share()),
        ops: values.number("ops", 1..=1_000)?,
        big_share: values.number("big-share", 0.0..=1.0)?,
        big_ops: values.number("big-ops", 1..=1_000)?,
    };
    let YcsbOptions { records, ops, big_share, big_ops, .. } = options;
    // A size that no transaction has may be anything.
    for (name, ops, share) in [("ops", ops, 1.0 - big_share), ("big-ops", big_ops, big_share)] {
        if share > 0.0 && u64::from(ops) > records {
            let reason = format!("each operation is on another record, and there are {records}");
            return Err(invalid(name, &ops.to_string(), reason));
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, options: &[(&str, &str)]) -> Result<WorkloadOptions, OptionError> {
        let given: Vec<_> =
            options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        WorkloadOptions::parse(name, &given)
    }

    #[test]
    fn every_workload_can_be_had_with_its_defaults_and_reports_all_its_options() {
        for workload in WORKLOADS {
            let options = parse(workload.name, &[]).unwrap();
            assert_eq!(options.info(), workload);
            let reported = options.to_json();
            let names = workload.options.iter().map(|option| option.name.replace('-', "_"));
            assert!(names.eq(reported.keys().cloned()), "{reported:?}");
        }
    }

    #[test]
    fn options_reach_their_workload() {
        let tpcc = parse("tpcc", &[("warehouses", "3"), ("mix", "new-order"), ("scale", "small")]).unwrap();
        assert_eq!(
            Value::from(tpcc.to_json()),
            json!({ "warehouses": 3, "mix": "new-order", "scale": "small", "stock_level": "serializable",
                "tame_share": 1.0, "ranks": "tuned" })
        );
        let array = parse("array", &[("size", "7"), ("ops", "2"), ("increment-share", "0.25")]).unwrap();
        assert_eq!(Value::from(array.to_json()), json!({ "size": 7, "ops": 2, "increment_share": 0.25 }));
        let words = parse("articles", &[]).unwrap_err().to_string();
        assert_eq!(words, "unknown workload \"articles\"; there are: tpcc, ycsb, tables32, array, stress");
    }

    #[test]
    fn a_preset_of_ycsb_holds_but_for_what_is_given() {
        let given = |options: &[(&str, &str)]| {
            let options = parse("ycsb", options).unwrap().to_json();
            ["theta", "read_ratio", "rmw_share"].map(|name| options[name].as_f64().unwrap())
        };
        assert_eq!(given(&[]), [0.99, 0.5, 0.0]);
        assert_eq!(given(&[("preset", "b")]), [0.5, 0.95, 0.0]);
        assert_eq!(given(&[("preset", "c")]), [0.99, 1.0, 0.0]);
        assert_eq!(given(&[("preset", "f")]), [0.99, 0.5, 1.0]);
        assert_eq!(given(&[("theta", "1.2"), ("preset", "b"), ("rmw-share", "0.5")]), [1.2, 0.95, 0.5]);
        for (name, value) in [("theta", "1.5"), ("theta", "preset "), ("read-ratio", "2"), ("preset", "e")] {
            let words = parse("ycsb", &[(name, value)]).unwrap_err().to_string();
            assert!(words.starts_with(&format!("--{name} {value}: expected")), "{words}");
        }
    }

    #[test]
    fn a_transaction_of_ycsb_needs_as_many_records_as_it_has_operations() {
        let words = parse("ycsb", &[("records", "8")]).unwrap_err().to_string();
        assert_eq!(words, "--big-ops 16: each operation is on another record, and there are 8");
        assert!(parse("ycsb", &[("records", "8"), ("big-share", "0")]).is_ok());
        assert!(parse("ycsb", &[("records", "8"), ("big-ops", "8")]).is_ok());
        assert!(parse("ycsb", &[("records", "3"), ("big-share", "0")]).is_err());
    }

    #[test]
    fn hot_records_are_some_of_the_records_and_all_of_them_unless_said_otherwise() {
        let given = |options: &[(&str, &str)]| Value::from(parse("tables32", options).unwrap().to_json());
        let all = json!({ "tables": 32, "records": 100_000, "hot_records": 100_000 });
        assert_eq!(given(&[]), all);
        let few = json!({ "tables": 3, "records": 7, "hot_records": 2 });
        assert_eq!(given(&[("tables", "3"), ("hot-records", "2"), ("records", "7")]), few);
        for (name, value) in [("hot-records", "8"), ("hot-records", "0"), ("hot-records", "few")] {
            let words = parse("tables32", &[("records", "7"), (name, value)]).unwrap_err().to_string();
            assert_eq!(words, format!("--{name} {value}: expected a number from 1 to 7"));
        }
    }

    #[test]
    fn more_data_is_expected_to_take_more_memory() {
        let estimate =
            |name, options: &[(&str, &str)]| parse(name, options).unwrap().resident_bytes_estimate();
        assert!(estimate("tpcc", &[("warehouses", "2")]) > estimate("tpcc", &[]));
        assert!(estimate("tpcc", &[("scale", "small")]) < estimate("tpcc", &[]));
        assert!(estimate("array", &[("size", "1000000000000")]) > 16_000_000_000_000);
    }
}
