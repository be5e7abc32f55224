//! The table as users see it.

use crate::catalog::{Part, PartId};
use crate::constraint::Constraint;
use crate::database::Database;
use crate::index::Direction;
use crate::key::{AsKey, Key, KeyBounds};
use crate::loading::{KeepId, Loading, Making, ReservedNames};
use crate::logging::Migration;
use crate::misuse::TableMisuse;
use crate::queue::GroupOf;
use crate::record::{GroupsOf, Record, last_byte_of};
use crate::reference::TableRef;
use crate::secondary::{MaintainedIndex, SecondaryIndex, TableSlot};
use crate::split::SplitRows;
use crate::storage::{Index, Shared};
use crate::unique::UniqueIndex;
use hotrow_core::column_groups::groups_of;
use hotrow_core::{
    Abort, Columns, ContextAccess, Engine, EpochBox, Error, Misuse, Pin, Protocol, Transaction, Value, Worker,
};
use hotrow_protocols::Occ;
use hotrow_sync::Arc;
use std::fmt;
use std::ops::ControlFlow;

/// A table: rows of type `R` under keys of type `K`.
///
/// It is a handle: a clone refers to the same table. Every operation may fail with an [`Abort`]: pass it up with `?`.
///
/// An operation that finds no row where it needs one, or one where it would insert, rolls the transaction back:
/// [`MissingRow`](crate::MissingRow), [`KeyExists`](crate::KeyExists). The forms with `_if_` in their names tell it instead.
///
/// ```
/// use hotrow_tables::Database;
///
/// let db = Database::open()?;
/// let seats = db.table::<u32, u64>("seats").hash(100).create()?;
/// let sold = db.transact(|tx| {
///     seats.insert(tx, 7, 1_001)?;
///     let again = seats.insert_if_absent(tx, 7, 1_002)?;
///     Ok((again, seats.get(tx, &7)?, seats.get(tx, &8)?))
/// })?;
/// assert_eq!(sold, (false, Some(1_001), None));
///
/// let refused = db.transact(|tx| seats.insert(tx, 7, 1_002)).unwrap_err();
/// assert_eq!(refused.to_string(), "rolled back: seats has a row with key 7 already");
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct Table<K: Key, R: Value, P: Protocol = Occ> {
    pub(crate) shared: Arc<EpochBox<Shared<K, R, P>>>,
    pub(crate) engine: Engine<P>,
}

impl<K: Key, R: Value, P: Protocol> Clone for Table<K, R, P> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), engine: self.engine.clone() }
    }
}

impl<K: Key, R: Value, P: Protocol> fmt::Debug for Table<K, R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// The properties of a table to be made. See [`Database::table`].
pub struct TableBuilder<K: Key, R: Value, P: Protocol = Occ> {
    database: Database<P>,
    name: String,
    capacity: Option<usize>,
    immutable: bool,
    /// The number of last bits of keys' heads that keys of one bucket of a cache differ in.
    cached: Option<u32>,
    constraints: Vec<Constraint<K, R>>,
    secondaries: Vec<Box<dyn MaintainedIndex<K, R, P>>>,
    /// The secondary indexes as parts of the catalog, and where they keep their numbers there.
    indexes: Vec<(Part, KeepId)>,
    /// The place where the handles of the indexes find the table.
    slot: TableSlot<K, R, P>,
    /// The column groups of which indexes use columns, as [`groups_of`] numbers them.
    indexed: u32,
    rank: u16,
    group_of: Option<GroupOf<K>>,
    pub(crate) in_memory: bool,
    /// The ways from rows of earlier types.
    pub(crate) migrations: Vec<Migration<K, R>>,
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
            constraints: Vec::new(),
            secondaries: Vec::new(),
            indexes: Vec::new(),
            slot: TableSlot::default(),
            indexed: 0,
            rank: u16::MAX,
            group_of: None,
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
        self.constraints.push(Constraint { name: name.into(), holds: Box::new(holds) });
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
        self.group_of = Some(Box::new(group_of));
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
        self.secondaries.push(Box::new(inner.clone()));
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
    fn begin(self) -> Result<Loading<K, R, P>, Misuse> {
        let index = match self.capacity {
            Some(expected) => Index::hash(expected),
            None => Index::ordered(),
        };
        let index = match self.cached {
            Some(tail_bits) if !self.immutable && !self.database.locks_ranges() => index.cached(tail_bits),
            _ => index,
        };
        let database = self.database;
        let mut durable = match self.in_memory {
            true => None,
            false => Self::plan_of(&database, &self.name, self.migrations)?,
        };
        let logs_rows_whole = durable.as_ref().is_some_and(|durable| !durable.logs_fields());
        let is_one = self.immutable || !self.constraints.is_empty() || logs_rows_whole;
        let indexed = if is_one { u32::MAX } else { self.indexed };
        let (parts, keep): (Vec<_>, Vec<_>) = self.indexes.into_iter().unzip();
        let names = parts.iter().map(Part::name).chain([&self.name[..]]).map(str::to_owned).collect();
        let reserved = ReservedNames::reserve(&database, names)?;
        let mut shared = Shared::new(&database, self.name, index, self.immutable);
        shared.split = SplitRows::new(database.id(), shared.meta.name(), self.rank, indexed);
        shared.guards_changes |= !self.constraints.is_empty();
        shared.constraints = self.constraints;
        shared.secondaries = self.secondaries;
        shared.group_of = self.group_of;
        shared.meta.set_rank(self.rank);
        shared.groups.meta.set_rank(self.rank);
        let found = match &mut durable {
            Some(durable) => durable.begin(&database, shared.meta.name())?,
            None => None,
        };
        let is_new = found.as_ref().is_none_or(|found| found.is_new);
        let durable = durable.filter(|_| found.is_some());
        if let Some(found) = found {
            shared.set_log(found.log);
        }
        let table = Table { shared: Arc::new(EpochBox::bulky(shared)), engine: Engine::clone(&database) };
        if let Some(durable) = durable.as_ref().filter(|_| !is_new) {
            durable.recover(table.name(), &|key, row| table.shared.load_row(key, row, &Pin::new()))?;
        }
        Ok(Loading::new(table, reserved, Making { slot: self.slot, parts, keep, durable }, is_new))
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

/// The memory use of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableMemory {
    /// The number of rows.
    pub rows: u64,
    /// Bytes of keys and rows, as large as their types, and what keys own on the heap (without the memory that boxed rows
    /// own elsewhere).
    pub payload_bytes: u64,
    /// Bytes of the index and of secondary indexes, without their records.
    pub index_bytes: u64,
}

impl std::ops::Add for TableMemory {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            payload_bytes: self.payload_bytes + other.payload_bytes,
            index_bytes: self.index_bytes + other.index_bytes,
        }
    }
}

impl<K: Key, R: Value, P: Protocol> Table<K, R, P> {
    /// The table's reference, by which procedures name it.
    pub fn reference(&self) -> TableRef<K, R> {
        TableRef::new(*self.shared.part.get().expect("a table that is made is in its database"))
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        self.shared.meta.name()
    }

    /// True if the table was declared [immutable](TableBuilder::immutable).
    pub fn is_immutable(&self) -> bool {
        self.shared.immutable
    }

    /// Returns a copy of a row; `None` if there is none with this key (the transaction has then read its absence).
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on.
    #[inline]
    pub fn get(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Option<R>, Abort> {
        self.shared.read(tx, key, R::clone)
    }

    /// Reads a row. A boxed row is not copied. An inline row is, under protocols whose readers hold no lock.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn read<O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        look: impl FnOnce(&R) -> O,
    ) -> Result<Option<O>, Abort> {
        self.shared.read(tx, key, look)
    }

    /// Reads some columns of a row: `column_of!(Stock, quantity)`, or a tuple of columns. Of an inline row only their words
    /// are copied, and only their cache lines fetched.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn read_columns<C: Columns<R>>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
    ) -> Result<Option<C::Values>, Abort> {
        self.shared.read_columns(tx, key, columns)
    }

    /// Asks the processor to fetch rows that will be read or changed soon. It is a hint: it changes no result, and
    /// the transaction does not depend on it. It pays off from about three keys on, if the table is larger than the
    /// processor's cache. Tables with an ordered index ignore it.
    #[inline]
    pub fn prefetch(&self, tx: &Transaction<'_, P>, keys: impl Iterator<Item = K> + Clone) {
        self.fetch_ahead(tx, keys, usize::MAX);
    }

    /// As [`prefetch`](Self::prefetch), for rows of which only these columns will be read.
    #[inline]
    pub fn prefetch_columns(
        &self,
        tx: &Transaction<'_, P>,
        keys: impl Iterator<Item = K> + Clone,
        columns: impl Columns<R>,
    ) {
        self.fetch_ahead(tx, keys, last_byte_of(columns));
    }

    /// Asks the processor to fetch rows up to this byte.
    #[inline]
    pub(crate) fn fetch_ahead(
        &self,
        tx: &Transaction<'_, P>,
        keys: impl Iterator<Item = K> + Clone,
        byte: usize,
    ) {
        self.shared.index.prefetch(keys, Record::<K, R, P>::bytes_up_to(byte), tx.pin());
    }

    /// Changes a row, and returns what the change returns.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); a rollback with [`MissingRow`](crate::MissingRow) if there is no row with this key.
    #[inline]
    pub fn update<O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl FnOnce(&mut R) -> O,
    ) -> Result<O, Abort> {
        match self.shared.update(tx, key, change)? {
            Some(output) => Ok(output),
            None => Err(self.shared.missing(key)),
        }
    }

    /// As [`update`](Self::update), but a missing row is no error: `None` if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn update_if_present<O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl FnOnce(&mut R) -> O,
    ) -> Result<Option<O>, Abort> {
        self.shared.update(tx, key, change)
    }

    /// Inserts a row.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); a rollback with [`KeyExists`](crate::KeyExists) if there is a row with this key.
    #[inline]
    pub fn insert(&self, tx: &mut Transaction<'_, P>, key: K, row: R) -> Result<(), Abort> {
        match self.shared.insert_unless_found(tx, key, row)? {
            None => Ok(()),
            // SAFETY: found under the attempt's pinned epoch.
            Some(existing) => Err(self.shared.exists(unsafe { existing.as_ref() }).into()),
        }
    }

    /// As [`insert`](Self::insert), but an existing row is no error: false, and nothing changed, if the key exists. (Another
    /// row's key of a [unique index](UniqueIndex) is an error nevertheless.)
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn insert_if_absent(&self, tx: &mut Transaction<'_, P>, key: K, row: R) -> Result<bool, Abort> {
        self.shared.insert(tx, key, row)
    }

    /// Replaces a row without reading it: a blind write.
    ///
    /// The transaction then depends on the existence of the row and not on its value. So two transactions that
    /// replace the same row need not abort each other, and a boxed row is not copied. (A table with secondary indexes
    /// still reads the row, because it must find the old entries.)
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn replace(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        row: R,
    ) -> Result<(), Abort> {
        if self.shared.replace(tx, key, row)? { Ok(()) } else { Err(self.shared.missing(key)) }
    }

    /// As [`replace`](Self::replace), but a missing row is no error: false, and nothing changed, if there is none with
    /// this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn replace_if_present(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        row: R,
    ) -> Result<bool, Abort> {
        self.shared.replace(tx, key, row)
    }

    /// Inserts a row, or [replaces](Self::replace) the one with this key. True if it was inserted.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn upsert(&self, tx: &mut Transaction<'_, P>, key: K, row: R) -> Result<bool, Abort> {
        loop {
            if self.shared.replace(tx, &key, row.clone())? {
                return Ok(false);
            }
            if self.shared.insert(tx, key.clone(), row.clone())? {
                return Ok(true);
            }
        }
    }

    /// Deletes a row. False if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn delete(&self, tx: &mut Transaction<'_, P>, key: &(impl AsKey<K> + ?Sized)) -> Result<bool, Abort> {
        self.shared.delete(tx, key)
    }

    /// Visits the rows whose keys are in `range`, in the order of `direction`, until the visitor breaks. The scan
    /// includes the transaction's own changes. The transaction has then read the visited rows, and the absence of all
    /// other keys up to the point where the scan ended.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get). A table with a hash index ends the transaction with
    /// [`Misuse::Unsupported`](hotrow_core::Misuse::Unsupported).
    #[inline]
    pub fn scan(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<K>,
        direction: Direction,
        visit: impl FnMut(&K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.shared.scan_images(tx, range.images(), direction, visit)
    }

    /// Returns copies of the first `limit` rows of a range.
    ///
    /// # Errors
    ///
    /// As [`scan`](Self::scan).
    pub fn collect(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<K>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(K, R)>, Abort> {
        self.shared.collect(tx, range.images(), direction, limit)
    }

    /// Returns the number of rows in a range.
    ///
    /// # Errors
    ///
    /// As [`scan`](Self::scan).
    pub fn count(&self, tx: &mut Transaction<'_, P>, range: impl KeyBounds<K>) -> Result<usize, Abort> {
        self.shared.count(tx, range.images())
    }

    /// Returns the table's memory use. It counts all rows, so it takes time.
    ///
    /// # Errors
    ///
    /// As [`for_each`](Self::for_each).
    pub fn memory(&self, worker: &mut Worker<P>) -> Result<TableMemory, Error> {
        let mut key_bytes: usize = 0;
        let rows = self.for_each(worker, |key, _| key_bytes = key_bytes.wrapping_add(key.heap_bytes()))?;
        Ok(TableMemory {
            rows,
            payload_bytes: rows * (size_of::<K>() + size_of::<R>()) as u64 + key_bytes as u64,
            index_bytes: self.shared.memory_bytes() as u64,
        })
    }
}
