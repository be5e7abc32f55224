//! Where rows are: Hotrow's tables and sequences, by number.

use super::{Catalog, Entry};
use crate::error::SqlError;
use crate::row::Row;
use hotrow::durable::DurableDatabase;
use hotrow::sync::{Mutex, lock};
use hotrow::{Any, Database, Misuse, Sequence, Table, Transaction};
use std::collections::HashMap;
use std::sync::Arc;

/// The rows of a table, or the entries of an index, by encoded keys.
pub(crate) type Rows = Table<Vec<u8>, Row, Any>;

/// Storages that a transaction has made or given up. They are looked through when it has ended.
#[derive(Debug, Default)]
pub(crate) struct CatalogChanges {
    touched: Vec<u32>,
    /// Storages for rows that the present attempt has made.
    made: Vec<u32>,
    /// Those of attempts that have lost: they are empty again.
    spare: Vec<u32>,
}

impl CatalogChanges {
    /// Notes a storage that was made, or is not needed if the transaction commits.
    pub(crate) fn touch(&mut self, storage: u32) {
        self.touched.push(storage);
    }

    /// Begins another attempt of a transaction. It uses the storages of the last one: a database has a limited number of them for all
    /// its life, and there may be many attempts.
    pub(crate) fn begin_attempt(&mut self) {
        self.spare.append(&mut self.made);
    }

    /// Takes an empty storage for rows that an attempt has left behind.
    pub(crate) fn take_spare(&mut self) -> Option<u32> {
        let storage = self.spare.pop()?;
        self.made.push(storage);
        Some(storage)
    }

    /// Notes a new storage for rows.
    pub(crate) fn make(&mut self, storage: u32) {
        self.made.push(storage);
    }

    /// True if nothing was noted.
    pub(crate) fn is_empty(&self) -> bool {
        self.touched.is_empty()
    }
}

/// All storages of an instance.
pub(crate) struct Storages {
    database: Database<Any>,
    is_durable: bool,
    /// Numbers of storages. None is drawn twice, whatever a crash leaves.
    numbers: Arc<Sequence>,
    rows: Mutex<HashMap<u32, Rows>>,
    sequences: Mutex<HashMap<u32, Arc<Sequence>>>,
}

fn name_of_rows(storage: u32) -> String {
    format!("rows {storage}")
}

fn name_of_sequence(storage: u32) -> String {
    format!("sequence {storage}")
}

/// Finds or makes numbers from 0 on.
pub(crate) fn numbers(
    database: &Database<Any>,
    is_durable: bool,
    name: &str,
) -> Result<Arc<Sequence>, SqlError> {
    if is_durable {
        database.durable_sequence(name, 0).map_err(|error| SqlError::new("XX000", error.to_string()))
    } else {
        Ok(Arc::new(Sequence::starting_at(database, name, 0)))
    }
}

impl Storages {
    /// The storages of a database.
    pub(crate) fn new(database: Database<Any>, is_durable: bool) -> Result<Self, SqlError> {
        let numbers = numbers(&database, is_durable, "storages")?;
        Ok(Self { database, is_durable, numbers, rows: Mutex::default(), sequences: Mutex::default() })
    }

    /// A number that no storage has had.
    pub(crate) fn draw(&self, tx: &Transaction<'_, Any>) -> u32 {
        self.numbers.next(tx) as u32
    }

    /// Finds rows, or makes them.
    pub(crate) fn rows(&self, storage: u32) -> Result<Rows, SqlError> {
        let mut rows = lock(&self.rows);
        if let Some(found) = rows.get(&storage) {
            return Ok(found.clone());
        }
        let made = self.database.table::<Vec<u8>, Row>(name_of_rows(storage)).ordered().create_or_open();
        let made = made.map_err(|error| {
            // The number of tables in a database's life is limited.
            let is_limit = matches!(error, Misuse::Unsupported(_));
            SqlError::new(if is_limit { "54000" } else { "XX000" }, error.to_string())
        })?;
        rows.insert(storage, made.clone());
        Ok(made)
    }

    /// Finds a sequence of numbers from 0 on, or makes it.
    pub(crate) fn sequence(&self, storage: u32) -> Result<Arc<Sequence>, SqlError> {
        let mut sequences = lock(&self.sequences);
        if let Some(found) = sequences.get(&storage) {
            return Ok(found.clone());
        }
        let made = numbers(&self.database, self.is_durable, &name_of_sequence(storage))?;
        sequences.insert(storage, made.clone());
        Ok(made)
    }

    /// Makes the storages of all entries.
    pub(crate) fn open(&self, catalog: &Catalog) -> Result<(), SqlError> {
        for entry in catalog.entries() {
            match entry {
                Entry::Relation(relation) => {
                    self.rows(relation.storage)?;
                    for index in &relation.indexes {
                        self.rows(index.storage)?;
                    }
                }
                Entry::Sequence(sequence) => {
                    self.sequence(sequence.storage)?;
                }
            }
        }
        Ok(())
    }

    /// Drops what was touched and is not used by the catalog, which is the newest one. Outside of any transaction.
    pub(crate) fn drop_unused(&self, changes: &mut CatalogChanges, catalog: &Catalog) {
        changes.made.clear();
        changes.spare.clear();
        for storage in changes.touched.drain(..) {
            if catalog.uses(storage) {
                continue;
            }
            let rows = lock(&self.rows).remove(&storage);
            if let Some(rows) = rows {
                // One that cannot be dropped keeps memory, and nobody refers to it.
                let _ = self.database.drop_table(&rows);
            }
            lock(&self.sequences).remove(&storage);
        }
    }
}
