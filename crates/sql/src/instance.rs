//! An instance: one database with its catalog.

use crate::catalog::{Catalog, CatalogChanges, Entry, Storages, numbers};
use crate::connection::Activities;
use crate::error::SqlError;
use crate::procedures::Procedures;
use hotrow::durable::{DurableBuilder, LogOptions, Mode};
use hotrow::{
    Abort, Any, Database, Direction, Error, Isolation, Profile, Reason, Sequence, TBox, Table, Transaction,
};
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

/// Where an instance keeps its rows, and how its transactions meet.
#[derive(Debug, Clone)]
pub struct InstanceOptions {
    /// The directory of the log and its checkpoints; none for a database in memory.
    pub directory: Option<PathBuf>,
    /// The protocol's name.
    pub protocol: String,
    /// When a commit is acknowledged, if there is a directory.
    pub mode: Mode,
}

impl Default for InstanceOptions {
    fn default() -> Self {
        Self { directory: None, protocol: "occ".to_owned(), mode: Mode::Group }
    }
}

/// A database that speaks SQL. It is a handle: a clone refers to the same database.
#[derive(Clone)]
pub struct Instance {
    pub(crate) shared: Arc<Shared>,
}

/// The part that all connections share.
pub(crate) struct Shared {
    pub(crate) database: Database<Any>,
    pub(crate) catalog: TBox<Arc<Catalog>, Any>,
    pub(crate) storages: Arc<Storages>,
    /// Numbers of rows of tables without primary keys.
    pub(crate) row_numbers: Arc<Sequence>,
    /// The catalog's entries, if they have to survive the process.
    kept: Option<Table<u32, Entry, Any>>,
    pub(crate) options: InstanceOptions,
    pub(crate) procedures: Procedures,
    /// The connections, with their activity.
    pub(crate) activities: Activities,
}

fn failed(error: impl std::fmt::Display) -> SqlError {
    SqlError::new("58000", error.to_string())
}

impl Instance {
    /// Opens a database: an empty one in memory, or that of a directory.
    ///
    /// # Errors
    ///
    /// 58000 with the reason: an unknown protocol, a directory that is another program's, a log that cannot be read.
    pub fn open(options: InstanceOptions) -> Result<Self, SqlError> {
        let builder = Database::builder().protocol(options.protocol.as_str());
        let Some(directory) = &options.directory else {
            let database = builder.open().map_err(failed)?;
            return Self::with(database, None, options);
        };
        let log = LogOptions { mode: options.mode, ..LogOptions::default() };
        let database = builder.log(log).open_at(directory).map_err(failed)?;
        let kept = database.table::<u32, Entry>("catalog").ordered().create_or_open().map_err(failed)?;
        Self::with(database, Some(kept), options)
    }

    fn with(
        database: Database<Any>,
        kept: Option<Table<u32, Entry, Any>>,
        options: InstanceOptions,
    ) -> Result<Self, SqlError> {
        // For `hotrow_conflicts`.
        database.report_both_sides(true);
        let entries = match &kept {
            Some(kept) => database
                .transact(|tx| kept.collect(tx, .., Direction::Ascending, usize::MAX))
                .map_err(failed)?,
            None => Vec::new(),
        };
        let entries = entries.into_iter().map(|(_, entry)| entry).collect();
        let catalog = Catalog::new(entries);
        let storages = Arc::new(Storages::new(database.clone(), kept.is_some())?);
        storages.open(&catalog)?;
        let row_numbers = numbers(&database, kept.is_some(), "row numbers")?;
        let catalog = TBox::named(&database, "catalog", Arc::new(catalog));
        Ok(Self {
            shared: Arc::new(Shared {
                database,
                catalog,
                storages,
                row_numbers,
                kept,
                options,
                procedures: Procedures::default(),
                activities: Activities::default(),
            }),
        })
    }

    /// The database behind the instance, for tests that record its history.
    #[doc(hidden)]
    pub fn database(&self) -> &Database<Any> {
        &self.shared.database
    }

    /// The protocol's name.
    pub fn protocol(&self) -> &str {
        &self.shared.options.protocol
    }
}

/// A number of a database, as monitoring systems read it: its name, a sentence about it, and its values with labels.
pub type Metric = (&'static str, &'static str, Vec<(String, f64)>);

impl Instance {
    /// The database's numbers. Names that end in `_total` only grow.
    pub fn metrics(&self) -> Vec<Metric> {
        let statistics = self.shared.database.statistics();
        let one = |value: u64| vec![(String::new(), value as f64)];
        let reasons = Reason::ALL.iter().filter(|reason| statistics.aborts_for(**reason) > 0);
        let by_reason =
            reasons.map(|reason| (format!("reason=\"{reason}\""), statistics.aborts_for(*reason) as f64));
        let retained = self.shared.database.retained_memory();
        vec![
            ("hotrow_commits_total", "Transactions that have committed.", one(statistics.commits)),
            ("hotrow_rollbacks_total", "Transactions that have rolled back.", one(statistics.rollbacks)),
            ("hotrow_aborts_total", "Attempts that have lost a conflict.", by_reason.collect()),
            ("hotrow_retained_bytes", "Memory that was replaced and is not freed yet.", one(retained.bytes)),
        ]
    }
}

impl Shared {
    /// Replaces the catalog, in a transaction. `entries` are those that have changed, by number.
    pub(crate) fn put_catalog(
        &self,
        tx: &mut Transaction<'_, Any>,
        catalog: Arc<Catalog>,
        changed: &[u32],
    ) -> Result<(), Abort> {
        if let Some(kept) = &self.kept {
            for oid in changed {
                match catalog.get(*oid) {
                    Some(entry) => drop(kept.upsert(tx, *oid, entry.clone())?),
                    None => drop(kept.delete(tx, oid)?),
                }
            }
        }
        self.catalog.set(tx, catalog)
    }

    /// The catalog as it is committed. It waits for no definition that an open transaction has made.
    pub(crate) fn committed_catalog(&self) -> Result<Arc<Catalog>, Error> {
        let profile = Profile { isolation: Isolation::StrictSnapshot, ..Profile::READ_ONLY };
        self.database.transact_as(profile, |tx| self.catalog.get(tx))
    }

    /// Drops the storages that a transaction has made or given up and that nobody refers to any more. Outside of any transaction.
    pub(crate) fn clean_up(&self, changes: &RefCell<CatalogChanges>) {
        let mut changes = changes.borrow_mut();
        if changes.is_empty() {
            return;
        }
        if let Ok(catalog) = self.database.transact(|tx| self.catalog.get(tx)) {
            self.storages.drop_unused(&mut changes, &catalog);
        }
    }
}
