//! Counts of an engine for the crate [`metrics`], with the feature `metrics`: whatever recorder the program has installed
//! (Prometheus, StatsD, a test's) gets them.
//!
//! ```
//! use hotrow::metrics::Publisher;
//! use hotrow::{Database, TBox};
//!
//! let db: Database = Database::open()?;
//! let publisher = Publisher::new(&db, "shop");
//! let seats = TBox::named(&db, "seats", 10u64);
//! db.transact(|tx| seats.set(tx, 9))?;
//! publisher.publish(); // In a thread of its own, or at each scrape.
//! # Ok::<(), hotrow::Error>(())
//! ```

use hotrow_core::{CounterValue, Engine, Protocol, Reason};
use metrics::{Counter, Gauge, Unit, counter, describe_counter, describe_gauge, gauge};

/// Number of hot keys that are published. Each is a series of its own, so there must not be many.
const HOT_KEYS: usize = 10;

/// Publishes the counts of an engine. It holds the engine.
///
/// | metric | type | labels |
/// |---|---|---|
/// | `hotrow_commits_total` | counter | `database`, `protocol` |
/// | `hotrow_rollbacks_total` | counter | the same |
/// | `hotrow_aborts_total` | counter | the same and `reason` |
/// | `hotrow_waits_total` | counter | `database`, `protocol`: waits for a change (`retry`) |
/// | `hotrow_attempts_max` | gauge | `database`, `protocol` |
/// | `hotrow_protocol_…` | gauge | the same: each counter that the protocol names |
/// | `hotrow_hot_key_conflicts` | gauge | `database`, `object`, `key`: the ten hottest keys |
/// | `hotrow_retained_bytes` | gauge | none: memory of the whole process that is replaced and not freed yet |
/// | `hotrow_snapshots_open`, `hotrow_snapshot_bytes`, `hotrow_snapshot_age_seconds` | gauge | `database`: the last is of the oldest |
#[derive(Debug)]
pub struct Publisher<P: Protocol> {
    engine: Engine<P>,
    database: String,
    protocol: String,
    commits: Counter,
    rollbacks: Counter,
    waits: Counter,
    aborts: [Counter; Reason::ALL.len()],
    attempts_max: Gauge,
}

impl<P: Protocol> Publisher<P> {
    /// Makes a publisher, and describes its metrics to the installed recorder. `database` tells several engines of a process apart.
    pub fn new(engine: &Engine<P>, database: &str) -> Self {
        describe_counter!("hotrow_commits_total", Unit::Count, "Transactions committed");
        describe_counter!("hotrow_rollbacks_total", Unit::Count, "Transactions that their body ended");
        describe_counter!("hotrow_aborts_total", Unit::Count, "Attempts that lost a conflict");
        describe_counter!("hotrow_waits_total", Unit::Count, "Waits for a change of what was read");
        describe_gauge!("hotrow_attempts_max", Unit::Count, "The most attempts of one transaction");
        describe_gauge!(
            "hotrow_hot_key_conflicts",
            Unit::Count,
            "Attempts lost over one of the hottest keys"
        );
        describe_gauge!("hotrow_retained_bytes", Unit::Bytes, "Memory that is replaced and not freed yet");
        describe_gauge!("hotrow_snapshots_open", Unit::Count, "Open snapshots");
        describe_gauge!(
            "hotrow_snapshot_bytes",
            Unit::Bytes,
            "Memory of versions that are kept for snapshots"
        );
        describe_gauge!("hotrow_snapshot_age_seconds", Unit::Seconds, "Age of the oldest open snapshot");
        let labels = [("database", database.to_owned()), ("protocol", engine.protocol().to_owned())];
        let aborts = |reason: Reason| {
            let [database, protocol] = labels.clone();
            counter!("hotrow_aborts_total", &[database, protocol, ("reason", reason.name().to_owned())])
        };
        Self {
            engine: engine.clone(),
            database: database.to_owned(),
            protocol: engine.protocol().to_owned(),
            commits: counter!("hotrow_commits_total", &labels),
            rollbacks: counter!("hotrow_rollbacks_total", &labels),
            waits: counter!("hotrow_waits_total", &labels),
            aborts: Reason::ALL.map(aborts),
            attempts_max: gauge!("hotrow_attempts_max", &labels),
        }
    }

    /// Publishes the counts as they are now. It reads each worker's counters, and disturbs no transaction.
    pub fn publish(&self) {
        let statistics = self.engine.statistics();
        self.commits.absolute(statistics.commits);
        self.rollbacks.absolute(statistics.rollbacks);
        self.waits.absolute(statistics.waits);
        for (published, count) in self.aborts.iter().zip(statistics.reasons) {
            published.absolute(count);
        }
        self.attempts_max.set(statistics.attempts_max as f64);
        let (database, protocol) = (&self.database, &self.protocol);
        for (counter, value) in statistics.counters.iter() {
            let value = match value {
                CounterValue::Count(count) => Some(count as f64),
                CounterValue::MeanUs(value) | CounterValue::Share(value) => value,
                _ => None,
            };
            if let Some(value) = value {
                let labels = [("database", database.clone()), ("protocol", protocol.clone())];
                gauge!(format!("hotrow_protocol_{}", counter.name()), &labels).set(value);
            }
        }
        for hot in self.engine.hot_keys(HOT_KEYS) {
            let labels = [("database", database.clone()), ("object", hot.object), ("key", hot.key)];
            gauge!("hotrow_hot_key_conflicts", &labels).set(hot.conflicts as f64);
        }
        gauge!("hotrow_retained_bytes").set(hotrow_core::retained_bytes() as f64);
        let snapshots = self.engine.snapshots();
        let labels = [("database", database.clone())];
        gauge!("hotrow_snapshots_open", &labels).set(snapshots.open.len() as f64);
        gauge!("hotrow_snapshot_bytes", &labels).set(snapshots.bytes as f64);
        let age = snapshots.open.first().map_or(0.0, |oldest| oldest.open_for.as_secs_f64());
        gauge!("hotrow_snapshot_age_seconds", &labels).set(age);
    }
}
