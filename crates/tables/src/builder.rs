//! Builders of tables: properties, constraints and indexes, declared before the table is made.

use crate::catalog::{Part, PartId};
use crate::companions::{Constraints, MaintainedIndex, MaintainedIndexes, Queues, SplitRows};
use crate::database::Database;
use crate::durability::{DurableTable, Migration};
use crate::key::Key;
use crate::loading::{KeepId, Loading, Making, ReservedNames};
use crate::misuse::TableMisuse;
use crate::record::GroupsOf;
use crate::record_index::Index;
use crate::secondary::{SecondaryIndex, TableSlot};
use crate::storage::Shared;
use crate::table::Table;
use crate::unique::UniqueIndex;
use hotrow_core::column_groups::groups_of;
use hotrow_core::{Columns, Engine, EpochBox, Error, Misuse, Pin, Protocol, Value};
use hotrow_protocols::Occ;
use hotrow_stored::Stored;
use hotrow_sync::Arc;
use std::fmt::{self, Debug, Display};
use std::mem::{replace, take};

/// The properties of a table to be made. See [`Database::table`].
pub struct TableBuilder<K: Key, R: Value, P: Protocol = Occ> {
    database: Database<P>,
    name: String,
    capacity: Option<usize>,
    immutable: bool,
    /// The number of last bits of keys' heads that keys of one bucket of a cache differ in.
    cached: Option<u32>,
    constraints: Constraints<K, R>,
    maintained: MaintainedIndexes<K, R, P>,
    /// The secondary indexes as parts of the catalog, and where they keep their numbers there.
    indexes: Vec<(Part, KeepId)>,
    /// The place where the handles of the indexes find the table.
    slot: TableSlot<K, R, P>,
    /// The column groups of which indexes use columns, as [`groups_of`] numbers them.
    indexed: u32,
    rank: u16,
    queues: Option<Queues<K>>,
    in_memory: bool,
    /// The ways from rows of earlier types.
    migrations: Vec<Migration<K, R>>,
}

impl<K: Key, R: Value, P: Protocol> fmt::Debug for TableBuilder<K, R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<K: Key, R: Value, P: Protocol> TableBuilder<K, R, P> {
    pub(crate) fn new(database: Database<P>, name: String) -> Self {
        Self {
            database,
            name,
            capacity: None,
            immutable: false,
            cached: None,
            constraints: Constraints::new(),
            maintained: MaintainedIndexes::new(),
            indexes: Vec::new(),
            slot: TableSlot::default(),
            indexed: 0,
            rank: u16::MAX,
            queues: None,
            in_memory: false,
            migrations: Vec::new(),
        }
    }

    /// Chooses an ordered index, which can be scanned. This is the default.
    #[must_use]
    pub fn ordered(mut self) -> Self {
        self.capacity = None;
        self
    }

    /// Chooses a hash index with room for `expected` rows. It grows beyond that by itself, but a good estimate avoids
    /// that work. Room is reserved for 16,777,216 rows at most. Such a table cannot be scanned.
    #[must_use]
    pub fn hash(mut self, expected: usize) -> Self {
        self.capacity = Some(expected);
        self
    }

    /// Declares that rows never change after [loading](Self::load). Every protocol then reads them without tracking, and a
    /// transaction that tries to change them ends with [`TableMisuse::ImmutableTable`](crate::TableMisuse::ImmutableTable).
    #[must_use]
    pub fn immutable(mut self) -> Self {
        self.immutable = true;
        self
    }

    /// Puts a small cache in front of the table's index, into which insertions go first (dbx-tc §3.3). A record is written back to the
    /// index when its transaction has committed. Under a protocol whose transactions are hardware transactions as a whole
    /// (`naive-htm`), insertions then change fewer cache lines in it. Under others a cache costs a little time.
    ///
    /// Keys that differ only in the last `tail_bits` of the first 64 bits of their image share a bucket of the cache, which has room
    /// for 14 records. A key of one integer is its own image; the fields of a composite key fill its image from the highest bit on; a
    /// string is its bytes. Choose `tail_bits` so that the keys which one transaction inserts share a bucket, and those of others do not.
    /// A scan looks at the buckets of its range: at all 256 if the range has many.
    ///
    /// An immutable table has no cache, and neither has any under a protocol that locks ranges.
    #[must_use]
    pub fn cached(mut self, tail_bits: u32) -> Self {
        self.cached = Some(tail_bits);
        self
    }

    /// Declares a constraint: a condition that each row meets whenever a transaction commits. A table may have several.
    ///
    /// Each row that a transaction has inserted or changed is judged when its body has ended, in its final state; it may
    /// be wrong in between. If `holds` is false, the transaction rolls back with
    /// [`ConstraintViolated`](crate::ConstraintViolated). `holds` must return the same result for the same key and row. If it
    /// panics, the transaction ends with [`Error::Panicked`].
    ///
    /// ```
    /// use hotrow_tables::{ConstraintViolated, Database};
    ///
    /// let db = Database::open()?;
    /// let accounts = db.table::<u32, i64>("accounts")
    ///     .check("the balance is not negative", |_, balance| *balance >= 0)
    ///     .create()?;
    /// accounts.bulk_insert([(1, 10), (2, 10)])?;
    /// let refused = db.transact(|tx| {
    ///     accounts.update(tx, &1, |balance| *balance -= 11)?;
    ///     accounts.update(tx, &2, |balance| *balance += 11)
    /// });
    /// let error = refused.unwrap_err();
    /// assert!(error.downcast_ref::<ConstraintViolated>().is_some());
    /// assert_eq!(error.to_string(), "rolled back: accounts[1] breaks the constraint: the balance is not negative");
    /// assert_eq!(db.transact(|tx| accounts.get(tx, &2))?, Some(10));
    /// # Ok::<(), hotrow_core::Error>(())
    /// ```
    #[must_use]
    pub fn check(mut self, name: &str, holds: impl Fn(&K, &R) -> bool + Send + Sync + 'static) -> Self {
        self.constraints.add(name, holds);
        self
    }

    /// Sets the table's position in the order in which transactions acquire the segments of deferred operations
    /// (*line up*; drp §6.3): rows of tables of a lower rank come first, and the rows of one table have an order of
    /// their own. The default is the highest rank, 65,535.
    ///
    /// Set it if most transactions want some of the rows. Rows of the highest rank are locked last, when the cache
    /// already holds everything else that the transaction needs, so that they are held for the shortest time.
    #[must_use]
    pub fn rank(mut self, rank: u16) -> Self {
        self.rank = rank;
        self
    }

    /// Declares that the table's groups are queues: rows are inserted behind all others of their group, in the order
    /// of their keys, and the first row is [taken](Table::defer_take_first). `group_of` returns the number of a row's
    /// group.
    ///
    /// Deferred insertions then do not conflict with operations that take the first row. A row inserted elsewhere in
    /// its group is correct as well, but costs the deferred insertion another attempt, which defers nothing.
    #[must_use]
    pub fn queues(mut self, group_of: impl Fn(&K) -> u64 + Send + Sync + 'static) -> Self {
        self.queues = Some(Queues::new(group_of));
        self
    }

    /// As [`secondary`](Self::secondary), for a key that is made from some columns of the row: `column_of!(Person, age)`, or a tuple of them.
    ///
    /// If the row has [column groups](trait@hotrow_core::Value), those of other columns conflict apart. An index by a key that is made from the
    /// whole row makes the row one segment, as a [constraint](Self::check) does.
    pub fn secondary_on<C: Columns<R> + Send + Sync + 'static, S: Key>(
        &mut self,
        name: &str,
        columns: C,
        key_of: impl Fn(&K, C::Values) -> S + Send + Sync + 'static,
    ) -> SecondaryIndex<S, K, R, P> {
        self.indexed |= groups_of::<R, GroupsOf<R>>(columns);
        self.index_by(name, false, Box::new(move |key, row| key_of(key, columns.of(row))))
    }

    /// As [`secondary_on`](Self::secondary_on), for an index whose entries never change: see
    /// [`immutable_secondary`](Self::immutable_secondary).
    pub fn immutable_secondary_on<C: Columns<R> + Send + Sync + 'static, S: Key>(
        &mut self,
        name: &str,
        columns: C,
        key_of: impl Fn(&K, C::Values) -> S + Send + Sync + 'static,
    ) -> SecondaryIndex<S, K, R, P> {
        self.indexed |= groups_of::<R, GroupsOf<R>>(columns);
        self.index_by(name, true, Box::new(move |key, row| key_of(key, columns.of(row))))
    }

    /// As [`secondary`](Self::secondary), for an index whose entries never change after the table is loaded: no row
    /// is inserted or deleted any more, and no row's secondary key changes. Every protocol reads it without tracking.
    /// A transaction that tries to change an entry ends with
    /// [`TableMisuse::ImmutableTable`](crate::TableMisuse::ImmutableTable).
    pub fn immutable_secondary<S: Key>(
        &mut self,
        name: &str,
        key_of: impl Fn(&K, &R) -> S + Send + Sync + 'static,
    ) -> SecondaryIndex<S, K, R, P> {
        self.indexed = u32::MAX;
        self.index_by(name, true, Box::new(key_of))
    }

    /// Adds a secondary index by a key that `key_of` makes from key and row. It must return the same result for the
    /// same key and row. The table maintains the index from the first row on.
    pub fn secondary<S: Key>(
        &mut self,
        name: &str,
        key_of: impl Fn(&K, &R) -> S + Send + Sync + 'static,
    ) -> SecondaryIndex<S, K, R, P> {
        self.indexed = u32::MAX;
        self.index_by(name, false, Box::new(key_of))
    }

    /// Adds an index by a key that `key_of` makes from key and row, and that no two rows may have: see [`UniqueIndex`]. It
    /// must return the same result for the same key and row.
    pub fn unique<S: Key>(
        &mut self,
        name: &str,
        key_of: impl Fn(&K, &R) -> S + Send + Sync + 'static,
    ) -> UniqueIndex<S, K, R, P> {
        self.indexed = u32::MAX;
        self.unique_by(name, Box::new(key_of))
    }

    /// As [`unique`](Self::unique), for a key that is made from some columns of the row: see [`secondary_on`](Self::secondary_on).
    pub fn unique_on<C: Columns<R> + Send + Sync + 'static, S: Key>(
        &mut self,
        name: &str,
        columns: C,
        key_of: impl Fn(&K, C::Values) -> S + Send + Sync + 'static,
    ) -> UniqueIndex<S, K, R, P> {
        self.indexed |= groups_of::<R, GroupsOf<R>>(columns);
        self.unique_by(name, Box::new(move |key, row| key_of(key, columns.of(row))))
    }

    fn unique_by<S: Key>(
        &mut self,
        name: &str,
        key_of: Box<dyn Fn(&K, &R) -> S + Send + Sync>,
    ) -> UniqueIndex<S, K, R, P> {
        let (name, slot) = self.place_of_index(name);
        let index = UniqueIndex::<S, K, R, P>::new(&self.database, name, slot, key_of);
        // No procedure refers to it.
        self.add_index(&index.inner, Part::new(index.name(), index.clone()), |_| ());
        index
    }

    fn index_by<S: Key>(
        &mut self,
        name: &str,
        immutable: bool,
        key_of: Box<dyn Fn(&K, &R) -> S + Send + Sync>,
    ) -> SecondaryIndex<S, K, R, P> {
        let (name, slot) = self.place_of_index(name);
        let index = SecondaryIndex::<S, K, R, P>::new(&self.database, name, immutable, slot, key_of);
        let kept = index.clone();
        self.add_index(&index.kept, Part::new(index.name(), index.clone()), move |id| kept.set_part(id));
        index
    }

    /// An index's full name, and the place where its handles find the table.
    fn place_of_index(&self, name: &str) -> (String, TableSlot<K, R, P>) {
        (format!("{}.{name}", self.name), self.slot.clone())
    }

    fn add_index<I>(&mut self, inner: &Arc<I>, part: Part, keep: impl FnOnce(PartId) + Send + Sync + 'static)
    where
        Arc<I>: MaintainedIndex<K, R, P> + 'static,
    {
        self.maintained.add(inner.clone());
        self.indexes.push((part, Box::new(keep)));
    }

    /// Makes the table, which is empty, or has the rows that were recovered under its name.
    ///
    /// # Errors
    ///
    /// [`TableMisuse::NameTaken`](crate::TableMisuse::NameTaken) if the database has a table of this name, or one of its indexes. For a durable table whose database has
    /// recovered rows of it: [`TableMisuse::OtherSchema`](crate::TableMisuse::OtherSchema) if they have other types; [`TableMisuse::Malformed`](crate::TableMisuse::Malformed) if one cannot be read or migrated, or
    /// is refused by a constraint or an index. [`TableMisuse::NotStored`](crate::TableMisuse::NotStored) if a type of a durable table cannot be stored.
    pub fn create(self) -> Result<Table<K, R, P>, Misuse> {
        self.begin()?.publish().map_err(|error| match error {
            Error::Misuse(misuse) => misuse,
            other => Misuse::Unsupported(other.to_string()),
        })
    }

    /// Begins to make the table, and to load it: nobody else sees it before it has all its rows. See [`Loading`].
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    pub fn load(self) -> Result<Loading<K, R, P>, Misuse> {
        self.begin()
    }

    /// Makes the table, and leaves it to the caller to publish it.
    fn begin(mut self) -> Result<Loading<K, R, P>, Misuse> {
        let database = self.database.clone();
        let reserved = ReservedNames::reserve(&database, &self.name, &self.indexes)?;
        let durable = match self.in_memory {
            true => None,
            false => DurableTable::begin(&database, &self.name, take(&mut self.migrations))?,
        };
        let is_new = durable.as_ref().is_none_or(|durable| durable.place.is_new());
        let log = durable.as_ref().map(|durable| durable.log.clone());
        let mut shared = self.shared(log.as_ref().is_some_and(|log| !log.codec().by_fields));
        if let Some(log) = log {
            shared.set_log(log);
        }
        let table = Table { shared: Arc::new(EpochBox::bulky(shared)), engine: Engine::clone(&database) };
        if let (Some(durable), false) = (&durable, is_new) {
            durable.recover(table.name(), &|key, row| table.shared.load_row(key, row, &Pin::new()))?;
        }
        Ok(Loading::new(table, reserved, Making { slot: self.slot, indexes: self.indexes, durable }, is_new))
    }

    /// The shared part of the table, and the companions that it was told of. `logs_rows_whole`: segments of a row cannot be logged apart.
    fn shared(&mut self, logs_rows_whole: bool) -> Shared<K, R, P> {
        let index = match self.capacity {
            Some(expected) => Index::hash(expected),
            None => Index::ordered(),
        };
        let index = match self.cached {
            Some(tail_bits) if !self.immutable && !self.database.locks_ranges() => index.cached(tail_bits),
            _ => index,
        };
        let is_one = self.immutable || !self.constraints.is_empty() || logs_rows_whole;
        let indexed = if is_one { u32::MAX } else { self.indexed };
        let mut shared = Shared::new(&self.database, self.name.clone(), index, self.immutable);
        shared.companions.split = SplitRows::new(self.database.id(), &self.name, self.rank, indexed);
        shared.guards_changes |= !self.constraints.is_empty();
        shared.companions.constraints = replace(&mut self.constraints, Constraints::new());
        shared.companions.indexes = replace(&mut self.maintained, MaintainedIndexes::new());
        shared.companions.queues = self.queues.take();
        shared.meta.set_rank(self.rank);
        shared.companions.groups.meta.set_rank(self.rank);
        shared
    }

    /// Returns the table of this name: the one that this run of the program has made, or else a new one, with the rows that were recovered
    /// under its name. The properties of one that was made before are those with which it was made.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create) and [`open`](Self::open).
    pub fn create_or_open(self) -> Result<Table<K, R, P>, Misuse> {
        let (database, name) = (self.database.clone(), self.name.clone());
        let find = || database.catalog().find::<Table<K, R, P>>(&name).cloned();
        match find() {
            Err(TableMisuse::NoSuchName { .. }) => {}
            found => return Ok(found?),
        }
        match self.create() {
            // Another thread was faster.
            Err(misuse) if matches!(misuse.downcast_ref(), Some(TableMisuse::NameTaken { .. })) => {
                Ok(find()?)
            }
            created => created,
        }
    }

    /// Returns the table of this name, which has been made before. Its properties are those with which it was made.
    ///
    /// # Errors
    ///
    /// [`TableMisuse::NoSuchName`](crate::TableMisuse::NoSuchName); [`TableMisuse::OtherTypes`](crate::TableMisuse::OtherTypes) if its keys or rows are of other types.
    pub fn open(self) -> Result<Table<K, R, P>, Misuse> {
        Ok(self.database.catalog().find::<Table<K, R, P>>(&self.name).cloned()?)
    }
}

/// The facts that a durable database needs.
impl<K: Key, R: Value, P: Protocol> TableBuilder<K, R, P> {
    /// Declares that the table lives in memory alone, in a database that was opened at a directory.
    /// Otherwise its rows survive the process there, and its types are [stored](hotrow_stored::Stored).
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.in_memory = true;
        self
    }

    /// Says how rows that an earlier version of the program has written, with other types, become those of the present ones. If the directory
    /// has such rows, [`create`](Self::create) reads each, calls `migrate`, and writes the results: all of them or, if one fails or
    /// the process ends, none. A directory that has rows of the present types already, or none, is left as it is, so the call may stay in
    /// the program; it may be repeated for several earlier versions.
    ///
    /// The earlier types are declared as they were then; their names do not matter. The crate `hotrow-durable` shows an example.
    #[must_use]
    pub fn migrate_from<OldKey: Stored + Debug, Old: Stored, E: Display>(
        mut self,
        migrate: impl Fn(OldKey, Old) -> Result<(K, R), E> + Send + Sync + 'static,
    ) -> Self {
        self.migrations.push(Migration::new(migrate));
        self
    }
}

impl<P: Protocol> Database<P> {
    /// Begins to [make](TableBuilder::create) a table of this name, or to [open](TableBuilder::open) the one that has it.
    pub fn table<K: Key, R: Value>(&self, name: impl Into<String>) -> TableBuilder<K, R, P> {
        TableBuilder::new(self.clone(), name.into())
    }
}
