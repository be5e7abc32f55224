//! The registry: the one place where a workload's name becomes its type.
//!
//! Adding a workload is one new module, one [`WorkloadInfo`] and one arm in each `match` below. The command's
//! parser, its help and its lists all come from here.

use crate::array::{Array, ArrayOptions};
use crate::driver::{Measurement, Settings, measure};
use crate::error::BenchError;
use crate::latency::Latencies;
use crate::observer::{Host, Observer};
use crate::options::{OptionError, OptionInfo, Values};
use crate::report::{HotRow, KindReport, Memory, RunReport, named_reasons};
use crate::tpcc::population::Scale;
use crate::tpcc::{Tpcc, TpccOptions};
use crate::workload::Workload;
use hotrow::protocols::{Visitor, with_protocol};
use hotrow::{Engine, Protocol};
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
        OptionInfo { name: "warehouses", value: "N", default: "1", summary: "warehouses, from 1 to 65535" },
        OptionInfo {
            name: "mix",
            value: "MIX",
            default: "full",
            summary: "transactions: full, new-order, or new-order+payment",
        },
        OptionInfo {
            name: "scale",
            value: "SCALE",
            default: "full",
            summary: "rows of a warehouse: full, or small for a quick try (100 items instead of 100000)",
        },
    ],
    example: "--warehouses 2 --mix new-order+payment",
};

const ARRAY: WorkloadInfo = WorkloadInfo {
    name: "array",
    summary: "reads and increments of random elements of an array of integers",
    source: "sto §5.1",
    options: &[
        OptionInfo { name: "size", value: "N", default: "1000000", summary: "elements, from 1 to 10^12" },
        OptionInfo { name: "ops", value: "N", default: "10", summary: "operations in a transaction, from 1 to 10000" },
        OptionInfo {
            name: "increment-share",
            value: "S",
            default: "0.5",
            summary: "the share of operations that increment, from 0 to 1; the others read",
        },
    ],
    example: "--size 1000 --increment-share 0.2",
};

/// All workloads, the main one first.
pub const WORKLOADS: &[WorkloadInfo] = &[TPCC, ARRAY];

/// The names of all workloads.
pub fn names() -> Vec<&'static str> {
    WORKLOADS.iter().map(|workload| workload.name).collect()
}

/// Memory in use for each warehouse of TPC-C at full scale, in bytes: an estimate on the high side.
const WAREHOUSE_BYTES: u64 = 160_000_000;

/// Memory in use for each element of the array, in bytes: the integer and what a protocol keeps beside it.
const ELEMENT_BYTES: u64 = 32;

/// Memory in use whatever the workload, in bytes.
const BASE_BYTES: u64 = 20_000_000;

/// A workload with its options.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WorkloadOptions {
    /// TPC-C.
    Tpcc(TpccOptions),
    /// The array.
    Array(ArrayOptions),
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
            Self::Array(_) => &ARRAY,
        }
    }

    /// The options' values, for reports.
    pub fn to_json(&self) -> Map<String, Value> {
        let options = match self {
            Self::Tpcc(TpccOptions { warehouses, mix, scale }) => {
                let name = SCALES.iter().find(|(_, known)| known == scale).map_or("other", |(name, _)| name);
                json!({ "warehouses": warehouses, "mix": mix.name(), "scale": name })
            }
            Self::Array(ArrayOptions { size, ops, increment_share }) => {
                json!({ "size": size, "ops": ops, "increment_share": increment_share })
            }
        };
        match options {
            Value::Object(map) => map,
            _ => unreachable!("both are objects"),
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
            Self::Array(ArrayOptions { size, .. }) => (*size as u64).saturating_mul(ELEMENT_BYTES),
        };
        data.saturating_add(BASE_BYTES)
    }
}

/// One run: what to run, under which protocol, how.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// The workload.
    pub workload: WorkloadOptions,
    /// The protocol's name.
    pub protocol: String,
    /// Threads, times and seed.
    pub settings: Settings,
}

/// Loads the workload's data into a new engine, runs it, checks the data.
///
/// # Errors
///
/// [`BenchError`]. Checks that do not pass are no errors: the report says so.
pub fn prepare_and_run(
    spec: &RunSpec,
    host: &dyn Host,
    observer: &dyn Observer,
) -> Result<RunReport, BenchError> {
    with_protocol(&spec.protocol, Runner { spec, host, observer })?
}

struct Runner<'a> {
    spec: &'a RunSpec,
    host: &'a dyn Host,
    observer: &'a dyn Observer,
}

impl Visitor for Runner<'_> {
    type Output = Result<RunReport, BenchError>;

    fn visit<P: Protocol>(self) -> Self::Output {
        let engine = Engine::<P>::new();
        let Settings { threads, seed, .. } = self.spec.settings;
        match &self.spec.workload {
            WorkloadOptions::Tpcc(options) => {
                let workload = Tpcc::<P>::load(&engine, options, threads, seed, self.observer)?;
                self.run(&engine, &workload)
            }
            WorkloadOptions::Array(options) => {
                let workload = Array::<P>::load(&engine, options, threads, seed, self.observer)?;
                self.run(&engine, &workload)
            }
        }
    }
}

impl Runner<'_> {
    /// Runs a workload that is loaded, and reports.
    fn run<P: Protocol, W: Workload<P>>(&self, engine: &Engine<P>, workload: &W) -> Result<RunReport, BenchError> {
        let Self { spec, host, observer } = self;
        // Before the keys and rows are counted, which itself may take memory.
        let resident_bytes_loaded = host.resident_bytes();
        let payload_bytes_loaded = workload.payload_bytes(&mut engine.worker()?);
        let (measurement, mut worker) = measure(engine, workload, &spec.settings, *observer)?;
        let resident_bytes_end = host.resident_bytes();
        let payload_bytes_end = workload.payload_bytes(&mut worker);
        let hot_rows = engine.hot_keys(HOT_ROWS).into_iter();
        let hot_rows = hot_rows
            .map(|hot| HotRow { table: hot.object, key: hot.key, conflicts: hot.conflicts })
            .collect();

        let Measurement { elapsed, kinds, reasons, attempts_max, clients } = measurement;
        let checks = workload.checks(&mut worker, clients);
        let mut latencies = Latencies::new();
        for kind in &kinds {
            latencies.add(&kind.latencies);
        }
        let commits: u64 = kinds.iter().map(|kind| kind.commits).sum();
        let seconds = elapsed.as_secs_f64();
        Ok(RunReport {
            workload: spec.workload.info().name,
            protocol: P::NAME,
            threads: spec.settings.threads,
            seconds,
            seed: spec.settings.seed,
            virtual_time: false,
            commits,
            aborts: kinds.iter().map(|kind| kind.aborts).sum(),
            rollbacks: kinds.iter().map(|kind| kind.rollbacks).sum(),
            throughput_per_s: if commits == 0 { 0.0 } else { commits as f64 / seconds },
            latency_us: latencies.summary(),
            by_transaction: workload
                .kinds()
                .iter()
                .zip(&kinds)
                .map(|(name, kind)| {
                    let latency_us = kind.latencies.summary();
                    (*name, KindReport { commits: kind.commits, aborts: kind.aborts, latency_us })
                })
                .collect(),
            abort_reasons: named_reasons(&reasons),
            attempts_max,
            hot_rows,
            checks,
            memory_bytes: resident_bytes_end,
            memory: Memory {
                payload_bytes_loaded,
                resident_bytes_loaded,
                payload_bytes_end,
                resident_bytes_end,
            },
            options: spec.workload.to_json(),
            revision: host.revision().to_owned(),
            machine: host.machine(),
        })
    }
}

/// Rows in a report of the hottest.
const HOT_ROWS: usize = 10;
