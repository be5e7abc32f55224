//! Options of TPC-C.

use super::input::Mix;
use super::population::{Population, Scale};
use super::schema::DISTRICTS_PER_WAREHOUSE;
use super::{Tpcc, tables};
use crate::traces;
use hotrow::chopping::Chopping;
use hotrow::sync::clock;
use hotrow::{Database, Isolation, Procedures, Protocol};
use hotrow_driver::{
    BenchError, Observer, OptionError, OptionInfo, OptionValues, READERS, Refinement, WorkloadDefinition,
    WorkloadInfo, name_of,
};
use serde::{Serialize, Serializer};
use serde_json::json;

/// Size of the database and mix of transactions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TpccOptions {
    /// Number of warehouses, from 1 to 65,535.
    pub warehouses: u32,
    /// Types of transactions, and their shares.
    pub mix: Mix,
    /// Rows per warehouse.
    pub scale: Scale,
    /// Isolation level of Stock-Level.
    pub stock_level: Isolation,
    /// Share of New-Orders that defer their operations, from 0 to 1, under a protocol that can; the others read and
    /// write at once (drp §7.2, Figure 6).
    pub tame_share: f64,
    /// Ranks of the tables.
    pub ranks: Ranks,
    /// Isolation of Order-Status and Stock-Level, which only read, unless [`stock_level`](Self::stock_level) is lower.
    pub readers: Isolation,
    /// Number of orders that a Delivery delivers in one database transaction, from 1 to 10.
    pub delivery_batch: u8,
    /// How far procedures are chopped, under a protocol that executes them in pieces.
    pub chop: Factors,
    /// Which tables have database caches (dbx-tc §3.3).
    pub caches: Caches,
}

/// What the chopping of the procedures makes use of (dbx-tc §6.6, Figure 14), beside snapshots for those that only read, which are the
/// affair of [`TpccOptions::readers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Factors {
    /// All of it.
    Full,
    /// All but the declarations: reordering, commutative changes and column groups (dbx-tc §6.2, Figure 10).
    Default,
    /// As `Default`, without commutative changes, which become updates.
    WithoutCommuting,
    /// As `Default`, without column groups in the analysis.
    WithoutGroups,
}

const FACTORS: [(&str, Factors); 4] = [
    ("full", Factors::Full),
    ("default", Factors::Default),
    ("without-commuting", Factors::WithoutCommuting),
    ("without-groups", Factors::WithoutGroups),
];

/// Tables with [caches](hotrow::TableBuilder::cached).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caches {
    /// None.
    None,
    /// Those into which transactions insert: ORDER, NEW-ORDER, ORDER-LINE and HISTORY.
    Inserted,
}

const CACHES: [(&str, Caches); 2] = [("none", Caches::None), ("inserted", Caches::Inserted)];

/// Order in which deferred operations take the locks of tables (drp §6.3, "Rank tuning").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranks {
    /// Stock, orders, customers, districts, warehouses. The rows that many transactions want come last, so that
    /// their locks are held for the shortest time.
    Tuned,
    /// All tables have the same rank, so that the order is that of their creation.
    Equal,
}

const SCALES: [(&str, Scale); 2] = [("full", Scale::SPECIFICATION), ("small", Scale::SMALL)];

const ISOLATIONS: [(&str, Isolation); 2] =
    [("serializable", Isolation::Serializable), ("read-committed", Isolation::ReadCommitted)];

const RANKS: [(&str, Ranks); 2] = [("tuned", Ranks::Tuned), ("equal", Ranks::Equal)];

impl Serialize for TpccOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            warehouses,
            mix,
            scale,
            stock_level,
            tame_share,
            ranks,
            readers,
            delivery_batch,
            chop,
            caches,
        } = self;
        let values = json!({
            "warehouses": warehouses,
            "mix": mix.name(),
            "scale": name_of(&SCALES, scale),
            "stock_level": name_of(&ISOLATIONS, stock_level),
            "tame_share": tame_share,
            "ranks": name_of(&RANKS, ranks),
            "readers": name_of(&READERS, readers),
            "delivery_batch": delivery_batch,
            "chop": name_of(&FACTORS, chop),
            "caches": name_of(&CACHES, caches),
        });
        values.serialize(serializer)
    }
}

/// Memory in use per warehouse at full scale, in bytes: 100 million after loading, and room for the orders of some
/// seconds.
const WAREHOUSE_BYTES: u64 = 110_000_000;

impl WorkloadDefinition for TpccOptions {
    type Loaded<P: Protocol> = Tpcc<P>;

    const INFO: WorkloadInfo = WorkloadInfo {
        name: "tpcc",
        summary: "orders and payments at warehouses; one warehouse for all threads is high contention",
        source: "TPC-C, revision 5.11",
        runs_procedures: true,
        is_durable: true,
        options: &[
            OptionInfo {
                name: "warehouses",
                value: "N",
                default: "1",
                summary: "Warehouses, from 1 to 65535",
            },
            OptionInfo {
                name: "mix",
                value: "MIX",
                default: "full",
                summary: "Transactions: full, new-order, new-order+payment, payment, order-status, delivery, or stock-level",
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
            OptionInfo {
                name: "readers",
                value: "HOW",
                default: "strict-snapshot",
                summary: "Order-Status and Stock-Level: on a strict-snapshot, a snapshot (a millisecond old), or serializable by the protocol",
            },
            OptionInfo {
                name: "delivery-batch",
                value: "N",
                default: "10",
                summary: "Orders that a Delivery delivers in one database transaction, from 1 to 10 (clause 2.7)",
            },
            OptionInfo {
                name: "chop",
                value: "FACTORS",
                default: "full",
                summary: "Pieces under chop: full, default (nothing declared), and from that without-commuting or without-groups (dbx-tc §6.6)",
            },
            OptionInfo {
                name: "caches",
                value: "TABLES",
                default: "none",
                summary: "Tables with database caches: none, or inserted (ORDER, NEW-ORDER, ORDER-LINE, HISTORY; dbx-tc §3.3)",
            },
        ],
        baselines: &[],
        example: "--warehouses 2 --mix new-order+payment",
    };
    const MEASURES_LIMIT: bool = true;

    fn parse(values: &OptionValues<'_>) -> Result<Self, OptionError> {
        Ok(Self {
            warehouses: values.number("warehouses", 1..=u32::from(u16::MAX))?,
            mix: values.one_of("mix", &Mix::ALL.map(|mix| (mix.name(), mix)))?,
            scale: values.one_of("scale", &SCALES)?,
            stock_level: values.one_of("stock-level", &ISOLATIONS)?,
            tame_share: values.number("tame-share", 0.0..=1.0)?,
            ranks: values.one_of("ranks", &RANKS)?,
            readers: values.one_of("readers", &READERS)?,
            delivery_batch: values.number("delivery-batch", 1..=DISTRICTS_PER_WAREHOUSE)?,
            chop: values.one_of("chop", &FACTORS)?,
            caches: values.one_of("caches", &CACHES)?,
        })
    }

    #[cfg(feature = "remote")]
    fn run_in_store(
        &self,
        address: &str,
        run: hotrow_driver::BaselineRun<'_>,
    ) -> Option<Result<hotrow_driver::RunOutcome, BenchError>> {
        Some(crate::in_store::run_tpcc(self, address, run))
    }

    fn data_bytes_estimate(&self) -> u64 {
        let full = u64::from(self.warehouses) * WAREHOUSE_BYTES;
        // The small scale has about a hundredth of the rows.
        if self.scale == Scale::SPECIFICATION { full } else { full / 100 }
    }

    fn chopping(&self, refinement: Refinement) -> Option<Result<Chopping, BenchError>> {
        Some(super::chopping::chopping(self, refinement))
    }

    /// Loads the initial population (clause 4.3.3); not into a database that was recovered, which has it.
    fn load<P: Protocol>(
        &self,
        database: &Database<P>,
        threads: usize,
        seed: u64,
        observer: &dyn Observer,
    ) -> Result<Tpcc<P>, BenchError> {
        let loading = tables::begin(database, self);
        database.set_readers_isolation(self.readers);
        let population = Population::new(self.scale, seed, 1);
        // The command's option admits only as many warehouses as the keys have room for.
        let warehouses = u16::try_from(self.warehouses)
            .map_err(|_| BenchError::Load(format!("{} warehouses are too many", self.warehouses)))?;
        tables::load(&loading, population, warehouses, threads, observer)?;
        let tables = loading.finish()?;
        traces::chop_if_allowed(self, database)?;
        Ok(Tpcc { database: database.clone(), tables, options: *self, population, begin: clock::now() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_reported() {
        let tpcc = TpccOptions::from_given(&[("warehouses", "3"), ("mix", "new-order"), ("scale", "small")])
            .unwrap();
        assert_eq!(
            json!(tpcc),
            json!({ "warehouses": 3, "mix": "new-order", "scale": "small", "stock_level": "serializable",
                "tame_share": 1.0, "ranks": "tuned", "readers": "strict-snapshot", "delivery_batch": 10, "chop": "full",
                "caches": "none" })
        );
        let tpcc = TpccOptions::from_given(&[
            ("stock-level", "read-committed"),
            ("tame-share", "0.5"),
            ("ranks", "equal"),
            ("readers", "serializable"),
            ("delivery-batch", "3"),
            ("chop", "default"),
            ("caches", "inserted"),
        ])
        .unwrap();
        assert_eq!(
            json!(tpcc),
            json!({ "warehouses": 1, "mix": "full", "scale": "full", "stock_level": "read-committed",
                "tame_share": 0.5, "ranks": "equal", "readers": "serializable", "delivery_batch": 3, "chop": "default",
                "caches": "inserted" })
        );
    }

    #[test]
    fn more_warehouses_and_larger_ones_are_expected_to_take_more_memory() {
        let estimate = |given: &[(&str, &str)]| TpccOptions::from_given(given).unwrap().data_bytes_estimate();
        assert!(estimate(&[("warehouses", "2")]) > estimate(&[]));
        assert!(estimate(&[("scale", "small")]) < estimate(&[]));
    }
}
