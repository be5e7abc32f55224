//! Options of the 32 tables.

use super::procedure::IncrementProcedure;
use super::{Tables32, fill};
use crate::traces;
use hotrow::chopping::Chopping;
use hotrow::{Database, Protocol};
use hotrow_driver::{
    BenchError, Observer, OptionError, OptionInfo, OptionValues, Refinement, WorkloadDefinition, WorkloadInfo,
};
use serde::Serialize;

/// Sizes of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Tables32Options {
    /// Number of tables, at least 1. The paper has 32.
    pub tables: u32,
    /// Records per table, at least 1. The paper has 100,000.
    pub records: u64,
    /// Records of the first table that transactions draw from, from 1 to all. The paper's high contention is 1.
    pub hot_records: u64,
}

/// Value of `hot-records` that makes all records hot.
const ALL_RECORDS: &str = "all";

/// Memory in use per record, in bytes: the record and its entry in the index.
const RECORD_BYTES: u64 = 80;

impl WorkloadDefinition for Tables32Options {
    type Loaded<P: Protocol> = Tables32<P>;

    const INFO: WorkloadInfo = WorkloadInfo {
        name: "tables32",
        summary: "increments of a random record in each of 32 tables; one hot record in the first is high contention",
        source: "stealdb §4.2",
        runs_procedures: true,
        is_durable: false,
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
        baselines: &[],
        example: "--records 10000 --hot-records 1",
    };

    fn parse(values: &OptionValues<'_>) -> Result<Self, OptionError> {
        let records = values.number("records", 1..=1_000_000_000)?;
        Ok(Self {
            tables: values.number("tables", 1..=1_000)?,
            records,
            hot_records: values.number_or("hot-records", ALL_RECORDS, 1..=records)?.unwrap_or(records),
        })
    }

    fn data_bytes_estimate(&self) -> u64 {
        u64::from(self.tables).saturating_mul(self.records).saturating_mul(RECORD_BYTES)
    }

    fn chopping(&self, _refinement: Refinement) -> Option<Result<Chopping, BenchError>> {
        let small = Self { records: 1, hot_records: 1, ..*self };
        let keys = vec![0; self.tables as usize];
        Some(traces::load_small(&small).and_then(|loaded| {
            let increment = IncrementProcedure { tables: loaded.tables(), keys: &keys };
            Ok(Chopping::new().procedure("increment", [traces::trace(loaded.database(), &increment)?]))
        }))
    }

    fn load<P: Protocol>(
        &self,
        database: &Database<P>,
        threads: usize,
        _seed: u64,
        observer: &dyn Observer,
    ) -> Result<Tables32<P>, BenchError> {
        let tables = fill(database, self.tables, self.records, threads, observer)?;
        Ok(Tables32 { database: database.clone(), tables, options: *self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hot_records_are_some_of_the_records_and_all_of_them_unless_said_otherwise() {
        let given = |options: &[(&str, &str)]| json!(Tables32Options::from_given(options).unwrap());
        let all = json!({ "tables": 32, "records": 100_000, "hot_records": 100_000 });
        assert_eq!(given(&[]), all);
        let few = json!({ "tables": 3, "records": 7, "hot_records": 2 });
        assert_eq!(given(&[("tables", "3"), ("hot-records", "2"), ("records", "7")]), few);
        for (name, value) in [("hot-records", "8"), ("hot-records", "0"), ("hot-records", "few")] {
            let words =
                Tables32Options::from_given(&[("records", "7"), (name, value)]).unwrap_err().to_string();
            assert_eq!(words, format!("--{name} {value}: expected a number from 1 to 7"));
        }
    }
}
