//! Records: a key, a row, and the protocol's header beside them.
//!
//! # Life of a record
//!
//! A record is *reserved* when an insert puts it into the index, locked by the inserting attempt from the start
//! ("poisoned", sto §4.1): other attempts find it but cannot read it. The inserter's commit makes it *present*; its
//! abort makes it *withdrawn*. A committed delete makes a present record *dead*. Withdrawn records are treated as dead
//! ones are, except that nobody can have found them present. A dead record never comes back: the attempt
//! that made it dead removes it from the index in its cleanup, after which it is *removed*, and an insert of the same key makes a
//! new record. The thread that removes a record from the index retires it through the epoch, unless it was *buried* before, because a
//! snapshot may see it: then its [graveyard](crate::companions::Graveyard) does.
//!
//! An attempt that meets a dead record in the index (its killer is between commit and cleanup) removes the record
//! itself and looks again. So the bucket or leaf that it observes next no longer holds the record.
//!
//! Under a protocol that takes locks from attempts that can no longer commit, others may get the lock of a reserved
//! record. It will never be present, so they treat it as dead. Only its inserter changes it then.

use crate::index::Keyed;
use crate::key::{AsKey, ImageOf, Key, StartOf};
use hotrow_core::column_groups::{ColumnGroups, Part, PartSegment, Parts};
use hotrow_core::{Cell, Columns, Fields, Pin, Protocol, Value, contained};
use hotrow_sync::atomic::{AtomicU8, AtomicU64, Ordering};
use hotrow_sync::hashing::KeyHashing;
use hotrow_sync::work::charge_block;
use std::hash::BuildHasher;
use std::mem::offset_of;
use std::ptr::NonNull;

#[repr(C)]
pub(crate) struct Record<K: Key, R: Value, P: Protocol> {
    header: P::Header,
    /// The epoch of the newest commit: see [`ObjectMeta::noting_commits`](hotrow_core::ObjectMeta::noting_commits).
    newest_commit: AtomicU64,
    body: Body<K, R>,
    /// The groups of columns that conflict apart ([`split`](crate::split)); nothing if the row is not split.
    parts: PartsOf<R, P>,
}

/// The column groups of a row.
pub type GroupsOf<R> = <<R as Value>::Cell as Cell<R>>::Groups;
/// The words that hold the columns of one group.
pub(crate) type WordsOf<R> = <GroupsOf<R> as ColumnGroups<R>>::Words;

/// All column groups of a row, one bit each, as [`groups_of`](hotrow_core::column_groups::groups_of) numbers them.
pub fn all_groups<R: Value>() -> u32 {
    u32::MAX >> (31 - <GroupsOf<R> as ColumnGroups<R>>::NAMES.len())
}

/// The end of the last of these columns in a row.
#[inline(always)]
pub fn last_byte_of<R: Value>(columns: impl Columns<R>) -> usize {
    let mut last = 0;
    columns.each_place(|bytes| last = last.max(bytes.end));
    last
}

type PartsOf<R, P> = <GroupsOf<R> as ColumnGroups<R>>::Each<PartSegment<WordsOf<R>, P>>;

/// The key follows the header, so that a lookup that compares the key has already fetched the memory that a read
/// needs first.
#[repr(C)]
struct Body<K: Key, R: Value> {
    key: RecordKey<K>,
    cell: R::Cell,
}

/// The key of a record. Indexes hold pointers to it, so that they are compiled once for each type of key, and not
/// for each type of row and each protocol as well.
#[repr(C)]
pub(crate) struct RecordKey<K: Key> {
    key: K,
    /// The record's state. It and the place are here because they use bytes that are padding otherwise.
    state: AtomicU8,
    /// A part of the key's hash that distinguishes records in the order in which commits lock them.
    place: [u8; 3],
    /// The first bytes of a long key, so that most lookups need not read what the key owns elsewhere.
    start: StartOf<K>,
}

impl<K: Key> RecordKey<K> {
    fn new(key: K, state: State, place: [u8; 3]) -> Self {
        let start = key.record_start();
        Self { key, state: AtomicU8::new(state as u8), place, start }
    }

    /// Returns a number of 24 bits that is the same for the record's whole life.
    #[inline(always)]
    pub(crate) fn place(&self) -> u32 {
        let [low, middle, high] = self.place;
        u32::from_le_bytes([low, middle, high, 0])
    }

    /// True if this is the key for which `key` stands.
    #[inline(always)]
    pub(crate) fn is(&self, key: &(impl AsKey<K> + ?Sized)) -> bool {
        key.is(&self.key, &self.start)
    }
}

/// The state of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Reserved = 0,
    Present = 1,
    Dead = 2,
    Withdrawn = 3,
    /// Dead, and in the [graveyard](crate::companions::Graveyard), from which it is freed.
    Buried = 4,
    /// Was dead, and is out of the index.
    Removed = 5,
}

/// A state and a raw copy of the row, which may be torn until the protocol has validated the load.
pub(crate) struct Snapshot<R: Value> {
    pub(crate) state: State,
    pub(crate) row: <R::Cell as Cell<R>>::Snapshot,
}

pub(crate) type Pending<R> = <<R as Value>::Cell as Cell<R>>::Pending;

impl<K: Key, R: Value, P: Protocol> Record<K, R, P> {
    /// The bytes from the record's beginning to the epoch of its newest commit.
    pub(crate) const NEWEST_COMMIT: usize = offset_of!(Self, newest_commit);

    /// Makes a record. `header` makes the header of each of its segments; `incarnation` distinguishes the split rows that have
    /// the same key one after the other.
    pub(crate) fn boxed(
        mut header: impl FnMut() -> P::Header,
        state: State,
        key: K,
        row: R,
        incarnation: u32,
    ) -> Box<Self> {
        // Computed once, so that a record never changes its position in lock order, even if the key's hash is
        // inconsistent.
        let [place @ .., _, _, _, _, _] =
            if P::DEFERS { KeyHashing::of_process().hash_one(&key).to_le_bytes() } else { [0; 8] };
        charge_block(size_of::<Self>);
        let own = header();
        let part = |group| if state == State::Present { Self::part_of(&row, group) } else { Part::ABSENT };
        let parts = PartsOf::<R, P>::new(header, part, incarnation);
        let body = Body { key: RecordKey::new(key, state, place), cell: R::Cell::new(row) };
        let mut record = Box::new(Self { header: own, newest_commit: AtomicU64::new(0), body, parts });
        let key = NonNull::from(&record.body.key).cast();
        record.parts.set_key(key);
        record
    }

    /// Returns the part of a row that has the columns of a group.
    pub(crate) fn part_of(row: &R, group: usize) -> Part<WordsOf<R>> {
        Part::of::<R, GroupsOf<R>>(row, group)
    }

    /// Returns the segment of a group.
    #[inline(always)]
    pub(crate) fn part(&self, group: usize) -> &PartSegment<WordsOf<R>, P> {
        &self.parts.parts()[group]
    }

    /// Returns the record's address, by which items identify it.
    pub(crate) fn address(record: NonNull<Self>) -> NonNull<P::Header> {
        // The header is the first field of a `repr(C)` struct.
        record.cast()
    }

    /// Returns the record at an address that an item holds.
    ///
    /// # Safety
    ///
    /// `address` comes from [`address`](Self::address), and the record is still in memory.
    #[inline(always)]
    pub(crate) unsafe fn at<'a>(address: NonNull<P::Header>) -> &'a Self {
        // SAFETY: the caller's promise.
        unsafe { address.cast::<Self>().as_ref() }
    }

    /// Returns the pointer to the record's key that indexes hold. It may be used for the whole record.
    #[inline(always)]
    pub(crate) fn key_of(record: NonNull<Self>) -> NonNull<RecordKey<K>> {
        // SAFETY: the key lies within the record.
        unsafe { record.byte_add(offset_of!(Self, body.key)).cast() }
    }

    /// Returns the record to which a key belongs.
    ///
    /// # Safety
    ///
    /// `key` comes from [`key_of`](Self::key_of), and the record is still in memory.
    #[inline(always)]
    pub(crate) unsafe fn of_key(key: NonNull<RecordKey<K>>) -> NonNull<Self> {
        // SAFETY: the caller's promise.
        unsafe { key.byte_sub(offset_of!(Self, body.key)).cast() }
    }

    #[inline(always)]
    pub(crate) fn state(&self) -> State {
        // Relaxed: ordered by the header, like the words of the row.
        match self.body.key.state.load(Ordering::Relaxed) {
            0 => State::Reserved,
            1 => State::Present,
            2 => State::Dead,
            3 => State::Withdrawn,
            4 => State::Buried,
            _ => State::Removed,
        }
    }

    /// Moves the record to its next state. The caller holds the segment's lock.
    #[inline(always)]
    pub(crate) fn set_state(&self, state: State) {
        // Release: pairs with the acquire fence in `find_first`. An operation that finds the first row of a queue
        // present, without having been in line behind its maker, also finds all rows present that became so earlier.
        self.body.key.state.store(state as u8, Ordering::Release);
    }

    /// True if the record was present, and is dead.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state(), State::Dead | State::Buried)
    }

    /// Moves a dead record, which the caller has taken out of the index, to its last state. True if nobody has buried it, so that the caller
    /// frees it.
    pub(crate) fn leave_index(&self) -> bool {
        // Release: pairs with the acquire in the graveyard, which may free the record then.
        self.state_word().swap(State::Removed as u8, Ordering::AcqRel) == State::Dead as u8
    }

    /// The word that has the record's [state](State).
    pub(crate) fn state_word(&self) -> &AtomicU8 {
        &self.body.key.state
    }

    /// Returns a number that is the same for the record's whole life.
    #[inline(always)]
    pub(crate) fn place(&self) -> u32 {
        self.body.key.place()
    }

    #[inline(always)]
    pub(crate) fn load(&self) -> Snapshot<R> {
        Snapshot { state: self.state(), row: self.body.cell.load() }
    }

    /// Loads the state and some fields, which are at their places in `row` then.
    ///
    /// # Safety
    ///
    /// `row` has room for a snapshot.
    #[inline(always)]
    pub(crate) unsafe fn load_fields(
        &self,
        fields: impl Fields<R>,
        row: *mut <R::Cell as Cell<R>>::Snapshot,
    ) -> State {
        let state = self.state();
        // SAFETY: the caller's promise.
        unsafe { fields.load(&self.body.cell, row) };
        state
    }

    /// Bytes before a record's key, to which indexes point.
    pub(crate) const BEFORE_KEY: usize = offset_of!(Self, body.key);

    /// Returns the number of a record's bytes up to this byte of the row. Those of a row that is not in the record count as if it were.
    #[inline(always)]
    pub(crate) fn bytes_up_to(byte: usize) -> usize {
        byte.saturating_add(offset_of!(Self, body.cell)).min(size_of::<Self>())
    }

    /// Loads the state, and the row to where a pending one will be.
    ///
    /// # Safety
    ///
    /// `pending` has room for a pending row, and the row's cell [copies](Cell::COPIES).
    #[inline(always)]
    pub(crate) unsafe fn load_pending(&self, pending: *mut Pending<R>) -> State {
        let state = self.state();
        // SAFETY: the caller's promise.
        unsafe { self.body.cell.load_pending(pending) };
        state
    }

    /// The row's cell.
    #[inline(always)]
    pub(crate) fn cell(&self) -> &R::Cell {
        &self.body.cell
    }

    /// True if the record's key is the one for which `key` stands.
    pub(crate) fn is_of(&self, key: &(impl AsKey<K> + ?Sized)) -> bool {
        self.body.key.is(key)
    }

    /// # Safety
    ///
    /// The caller holds the segment's lock, so that no other thread installs at the same time.
    #[inline(always)]
    pub(crate) unsafe fn install(&self, pending: Pending<R>, pin: &Pin) {
        // SAFETY: the caller's promise.
        unsafe { self.body.cell.install(pending, pin) };
    }

    /// Returns the number of bytes that the key and the row take outside of the record.
    ///
    /// # Safety
    ///
    /// Nothing is installed meanwhile.
    pub(crate) unsafe fn heap_bytes(&self) -> usize {
        // SAFETY: the caller's promise.
        let row = unsafe { self.body.cell.heap_bytes() };
        // Users' code. The record is out of the index already, and must be retired.
        row.wrapping_add(contained(|| self.body.key.key.heap_bytes()).unwrap_or_default())
    }

    /// Returns the row in place.
    ///
    /// # Safety
    ///
    /// Nothing is installed while the reference lives.
    #[inline(always)]
    pub(crate) unsafe fn row(&self) -> &R {
        // SAFETY: the caller's promise.
        unsafe { self.body.cell.in_place() }
    }
}

impl<R: Value> Snapshot<R> {
    /// Returns the row.
    ///
    /// # Safety
    ///
    /// The snapshot is stable, its state is present (or reserved by the caller's attempt), and `pin` was
    /// pinned before it was loaded.
    #[inline(always)]
    pub(crate) unsafe fn row<'a>(&'a self, pin: &'a Pin) -> &'a R {
        // SAFETY: the caller's promise.
        unsafe { R::Cell::view(&self.row, pin) }
    }
}

impl<K: Key, R: Value, P: Protocol> Keyed for Record<K, R, P> {
    type Key = K;

    #[inline(always)]
    fn key(&self) -> &K {
        &self.body.key.key
    }
}

impl<K: Key> Keyed for RecordKey<K> {
    type Key = K;

    #[inline(always)]
    fn key(&self) -> &K {
        &self.key
    }
    #[inline(always)]
    fn image(&self) -> ImageOf<'_, K> {
        self.key.image_by_start(&self.start)
    }
}
