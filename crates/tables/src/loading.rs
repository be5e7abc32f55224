//! The filling of tables: before anybody else can see them, or by transactions.
//!
//! Nothing becomes visible but by a commit with a stamp. Histories, snapshots, recovery, hooks and waiting transactions know of commits, and of
//! nothing else. So rows that no transaction inserts are there before the table is: a [`Loading`] is a table that is in no catalog yet, and
//! [`Loading::finish`] publishes it. [`Table::bulk_insert`] is a series of ordinary transactions.
//!
//! # Durable tables
//!
//! The log learns of a loaded table when it is finished. The rows are logged then, from the table, under the number of a structure whose name
//! in the log's catalog says that it is in the making. When they are on the device, the structure gets the table's name, by one
//! write of the catalog. An opening that finds a structure in the making drops it. Checkpoints know the table from before its first row is
//! logged: they delete the log before them, and would lose the rows otherwise.

use crate::catalog::{Part, PartId};
use crate::database::Database;
use crate::durability::DurableTable;
use crate::errors::LoadError;
use crate::key::Key;
use crate::secondary::TableSlot;
use crate::table::Table;
use hotrow_core::{Durability, Error, Misuse, Pin, Profile, Protocol, Value};
use hotrow_protocols::Occ;
use hotrow_sync::atomic::{AtomicBool, Ordering};
use std::fmt;

/// Keeps the number of an index in the catalog, once it has one.
pub(crate) type KeepId = Box<dyn FnOnce(PartId) + Send + Sync>;

/// Names of a database that parts in the making have.
pub(crate) struct ReservedNames<P: Protocol> {
    database: Database<P>,
    names: Vec<String>,
}

impl<P: Protocol> ReservedNames<P> {
    /// # Errors
    ///
    /// [`TableMisuse::NameTaken`](crate::TableMisuse::NameTaken) if one is taken.
    pub(crate) fn reserve(
        database: &Database<P>,
        table: &str,
        indexes: &[(Part, KeepId)],
    ) -> Result<Self, Misuse> {
        let names: Vec<_> =
            indexes.iter().map(|(part, _)| part.name()).chain([table]).map(str::to_owned).collect();
        database.catalog().reserve(&names)?;
        Ok(Self { database: database.clone(), names })
    }

    /// Fills the places of the names.
    pub(crate) fn fill(self, parts: Vec<Part>) -> Vec<PartId> {
        self.database.catalog().fill(parts)
    }

    /// Fills the places of the names with parts that keep their numbers.
    fn fill_and_tell(self, parts: Vec<(Part, KeepId)>) {
        let (parts, keep): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        for (keep, id) in keep.into_iter().zip(self.fill(parts)) {
            keep(id);
        }
    }
}

impl<P: Protocol> Drop for ReservedNames<P> {
    fn drop(&mut self) {
        self.database.catalog().release(&self.names);
    }
}

/// The work that is left to do for a table when it has its rows.
pub(crate) struct Making<K: Key, R: Value, P: Protocol> {
    /// The place where the handles of its indexes find it.
    pub(crate) slot: TableSlot<K, R, P>,
    /// Its indexes.
    pub(crate) indexes: Vec<(Part, KeepId)>,
    pub(crate) durable: Option<DurableTable<K, R, P>>,
}

/// A table that is being loaded: nobody else sees it before it is [finished](Self::finish).
///
/// Rows are inserted directly, without transactions, by any number of threads. Dropped, it leaves nothing.
///
/// In a durable table what was loaded becomes durable as a whole: after a crash there are all rows, if `finish` has returned, or there is no
/// such table. One that was recovered has its rows already; [`is_new`](Self::is_new) tells.
///
/// ```
/// use hotrow_tables::Database;
///
/// let db = Database::open()?;
/// let loading = db.table::<u32, u64>("stock").hash(1_000).load()?;
/// std::thread::scope(|scope| {
///     for part in 0..2 {
///         let loading = &loading;
///         scope.spawn(move || (0..500).try_for_each(|number| loading.insert(2 * number + part, 10)));
///     }
/// });
/// let stock = loading.finish()?;
/// assert_eq!(db.transact(|tx| stock.get(tx, &999))?, Some(10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a table appears when its loading is finished"]
pub struct Loading<K: Key, R: Value, P: Protocol = Occ> {
    table: Table<K, R, P>,
    reserved: ReservedNames<P>,
    making: Making<K, R, P>,
    is_new: bool,
    is_filled: AtomicBool,
    /// True once users' code has panicked in an insertion, which may be half done.
    is_spoilt: AtomicBool,
}

impl<K: Key, R: Value, P: Protocol> fmt::Debug for Loading<K, R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loading").field("table", &self.table.name()).finish_non_exhaustive()
    }
}

/// Notes that an insertion has panicked, unless it is forgotten.
struct Spoils<'l>(&'l AtomicBool);

impl Drop for Spoils<'_> {
    fn drop(&mut self) {
        // Relaxed: whoever finishes has the loading alone, which orders it behind all insertions.
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<K: Key, R: Value, P: Protocol> Loading<K, R, P> {
    pub(crate) fn new(
        table: Table<K, R, P>,
        reserved: ReservedNames<P>,
        making: Making<K, R, P>,
        is_new: bool,
    ) -> Self {
        let (is_filled, is_spoilt) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { table, reserved, making, is_new, is_filled, is_spoilt }
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        self.table.name()
    }

    /// True unless the table was recovered, with the rows that it had.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Inserts a row.
    ///
    /// # Errors
    ///
    /// [`LoadError`], and nothing has changed: there is a row with this key, or one with the same key of a unique index, or the row
    /// breaks a constraint, or the table was recovered.
    pub fn insert(&self, key: K, row: R) -> Result<(), LoadError> {
        if !self.is_new {
            return Err(LoadError::Recovered(self.name().to_owned()));
        }
        let spoils = Spoils(&self.is_spoilt);
        let loaded = self.table.shared.load_row(key, row, &Pin::new());
        std::mem::forget(spoils);
        loaded?;
        // Relaxed: as above. Looked at first, so that the threads do not fight for its cache line.
        if !self.is_filled.load(Ordering::Relaxed) {
            self.is_filled.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Ends the loading: the table is in its database, with all rows.
    ///
    /// # Errors
    ///
    /// [`Error::NotDurable`] if the log has failed; [`Misuse::Unsupported`] if the log cannot keep a row, or an insertion has panicked. Then
    /// there is no such table.
    pub fn finish(self) -> Result<Table<K, R, P>, Error> {
        self.publish()
    }

    pub(crate) fn publish(self) -> Result<Table<K, R, P>, Error> {
        let Self { table, reserved, making, is_filled, is_spoilt, .. } = self;
        let Making { slot, mut indexes, durable } = making;
        // Relaxed, both: nobody else has the loading any more.
        if is_spoilt.load(Ordering::Relaxed) {
            let misuse = format!("table {} is not whole: an insertion has panicked", table.name());
            return Err(Error::Misuse(Misuse::Unsupported(misuse)));
        }
        if let Some(durable) = durable {
            durable.end(&table, is_filled.load(Ordering::Relaxed))?;
        }
        // The builder makes one table only, so the place is free. Nobody looks there if there is no index.
        let _ = slot.set(table.clone());
        let kept = table.clone();
        let keep: KeepId = Box::new(move |id| kept.shared.part.set(id).expect("the table is new"));
        indexes.push((Part::new(table.name(), table.clone()), keep));
        reserved.fill_and_tell(indexes);
        Ok(table)
    }
}

/// The number of rows that one transaction of [`Table::bulk_insert`] inserts at most.
const BATCH: usize = if cfg!(test) { 3 } else { 256 };

impl<K: Key, R: Value, P: Protocol> Table<K, R, P> {
    /// Inserts rows, in transactions of the calling thread: up to 256 rows each, so few rows appear together.
    ///
    /// ```
    /// use hotrow_tables::Database;
    ///
    /// let db = Database::open()?;
    /// let accounts = db.table::<String, i64>("accounts").create()?;
    /// accounts.bulk_insert([("ada".into(), 1_000), ("bob".into(), 1_000)])?;
    /// assert!(accounts.bulk_insert([("eve".into(), 0), ("bob".into(), 0)]).is_err());
    /// assert_eq!(db.transact(|tx| accounts.get(tx, "eve"))?, None);
    /// # Ok::<(), hotrow_core::Error>(())
    /// ```
    ///
    /// A table that nobody uses yet is filled faster while it is made: see [`Loading`]. So are
    /// [immutable](crate::TableBuilder::immutable) ones.
    ///
    /// # Errors
    ///
    /// As [`Engine::transact`](hotrow_core::Engine::transact), and as [`insert`](Self::insert): a rollback with
    /// [`KeyExists`](crate::KeyExists) if there is a row with a key, say. The rows of the transactions before stay.
    pub fn bulk_insert(&self, rows: impl IntoIterator<Item = (K, R)>) -> Result<(), Error> {
        self.bulk_insert_all(&mut rows.into_iter())
    }

    /// Takes the rows through a pointer, so that it is compiled once for each table.
    fn bulk_insert_all(&self, rows: &mut dyn Iterator<Item = (K, R)>) -> Result<(), Error> {
        in_batches(rows, &mut |batch, profile| {
            self.engine.with_worker(|worker| {
                worker.try_transact_as(profile, |tx| {
                    batch.iter().try_for_each(|(key, row)| self.insert(tx, key.clone(), row.clone()))
                })
            })
        })
    }
}

/// Hands over rows in batches, each for a transaction of a profile. The last one is acknowledged after all others.
pub(crate) fn in_batches<T>(
    rows: &mut dyn Iterator<Item = T>,
    insert: &mut dyn FnMut(&[T], Profile) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut rows = rows.fuse();
    let mut batch = Vec::new();
    let mut next = rows.next();
    while let Some(first) = next {
        batch.clear();
        batch.push(first);
        batch.extend(rows.by_ref().take(BATCH - 1));
        next = rows.next();
        let durability = if next.is_some() { Durability::Buffered } else { Durability::OfDatabase };
        insert(&batch, Profile { durability, ..Profile::UNKNOWN })?;
    }
    Ok(())
}
