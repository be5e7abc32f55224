//! The storage of a table: its index, its records, and the [`Object`] that the commit calls.
//!
//! # A table as a transactional object
//!
//! Each row is a segment (its [`Record`]). Each bucket or leaf of the index is one, too, through its version word: it
//! stands for the keys that are *not* there. So:
//!
//! - a lookup that finds a row reads the record; a lookup that finds none observes the bucket or leaf;
//! - a scan observes each leaf it covers and reads each record in range;
//! - if a leaf's version has changed at the check, the table looks again at the part that was observed
//!   ([`Object::still_holds`]): only changes there abort the attempt;
//! - an insert puts a locked record into the index at once, which changes the leaf's version, so that an attempt that
//!   observed the key's absence fails; from then on the record's version guards the key;
//! - an update or a delete is a pending write of the record; the commit of a delete makes the record dead, and its
//!   cleanup removes the record from the index;
//! - a replacement is a pending write, too, but reads nothing: it depends on the predicate that the row exists (sto
//!   §3.5).
//!
//! The sources are sto §4.1 (inserted and absent elements, read-my-writes) and Silo's node set. Deviation from STO:
//! its bucket versions change when an insert commits; here, as in Silo, they change when the record enters the index,
//! so that an aborted insert can also fail an observer.

use crate::catalog::PartId;
use crate::constraint::Constraint;
use crate::graveyard::Graveyard;
use crate::groups::Groups;
use crate::index::{
    CachedIndex, CachedPart, Cursor, Direction, HashIndex, Insertion, Keyed, LeafPart, Lookup, MainIndex,
    Marks, OrderedIndex,
};
use crate::key::{AsKey, ImageRange, Key, put_name};
use crate::queue::{GroupOf, LastKeys};
use crate::record::{Pending, Record, RecordKey, State};
use crate::row_log::RowLog;
use crate::secondary::MaintainedIndex;
use crate::span::kept_bounds;
use crate::split::SplitRows;
use hotrow_core::history::WriteKind;
use hotrow_core::{
    Abort, Cell, CommitTimeChanges, Engine, Item, ItemId, Keeper, KeySpan, Object, ObjectAccess, ObjectMeta,
    Observed, OpenObservation, OutOfRange, Pin, Protocol, Redo, SavedWrite, Saver, StructureChange,
    StructureVersion, Value, WatchedNodes, contained,
};
use hotrow_sync::OnceLock;
use hotrow_sync::hashing::KeyHashing;
use hotrow_sync::profile::labelled;
use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

/// The kind of a pending write of a record; the item's tag.
pub(crate) mod tag {
    /// Replaces the row with the payload.
    pub(crate) const UPDATE: u16 = 1;
    /// Makes the record dead. A payload, if any, is dropped.
    pub(crate) const DELETE: u16 = 2;
    /// The attempt made the record, and its row is in place.
    pub(crate) const INSERTED: u16 = 3;
    /// The attempt made the record and deleted it again.
    pub(crate) const INSERTED_DELETED: u16 = 4;
    /// Changes the row at the commit. The payload is not a row, but a [list of changes](hotrow_core::CommitTimeChanges).
    pub(crate) const CHANGES: u16 = 5;
}

/// The most bytes of a record that are prefetched.
const PREFETCHED_MAX: usize = 512;

/// The index of a table: it maps keys to records of these types.
pub(crate) struct Index<K: Key, R: Value, P: Protocol> {
    /// Every pointer in it was made with [`Record::key_of`] from a record of these types.
    keys: KeyIndex<K>,
    _records: PhantomData<Record<K, R, P>>,
}

/// A part of a leaf, before its bounds are known.
#[derive(Debug)]
pub(crate) struct BegunPart {
    open: OpenObservation,
    marks: Marks,
}

/// An index of the keys of records, compiled once for each type of key.
pub(crate) enum KeyIndex<K: Key> {
    Hash(HashIndex<RecordKey<K>>),
    Ordered(OrderedIndex<RecordKey<K>>),
    /// Either, with a cache in front.
    Cached(Box<CachedIndex<RecordKey<K>>>),
}

/// The condition of an insertion under a protocol that does not lock ranges.
///
/// It is a function without type parameters, so that insertions under all these protocols are one function.
#[inline(always)]
fn always(_: Observed) -> bool {
    true
}

impl<K: Key, R: Value, P: Protocol> Index<K, R, P> {
    /// An unordered index with room for `expected` rows.
    pub(crate) fn hash(expected: usize) -> Self {
        Self { keys: KeyIndex::Hash(HashIndex::with_capacity(expected)), _records: PhantomData }
    }

    /// An ordered index.
    pub(crate) fn ordered() -> Self {
        Self { keys: KeyIndex::Ordered(OrderedIndex::new()), _records: PhantomData }
    }

    /// Puts a cache in front of the index, which is empty. See [`CachedIndex::new`].
    pub(crate) fn cached(self, tail_bits: u32) -> Self {
        let main = match self.keys {
            KeyIndex::Hash(index) => MainIndex::Hash(index),
            KeyIndex::Ordered(index) => MainIndex::Ordered(index),
            KeyIndex::Cached(_) => return self,
        };
        Self { keys: KeyIndex::Cached(Box::new(CachedIndex::new(main, tail_bits))), _records: PhantomData }
    }

    /// The index itself, which leads to the keys of the records.
    pub(crate) fn keys(&self) -> &KeyIndex<K> {
        &self.keys
    }

    #[inline]
    pub(crate) fn is_ordered(&self) -> bool {
        match &self.keys {
            KeyIndex::Hash(_) => false,
            KeyIndex::Ordered(_) => true,
            KeyIndex::Cached(index) => matches!(index.main(), MainIndex::Ordered(_)),
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self, key: &(impl AsKey<K> + ?Sized), pin: &Pin) -> Lookup<Record<K, R, P>> {
        let found = match &self.keys {
            KeyIndex::Hash(index) => index.get_by(key, |other| other.is(key), pin.guard()),
            KeyIndex::Ordered(index) => index.get(&key.to_image(), pin.guard()),
            KeyIndex::Cached(index) => Self::get_cached(index, key, pin),
        };
        match found {
            // SAFETY: the index holds keys of records of these types, and frees them through the epoch.
            Lookup::Found(key) => Lookup::Found(unsafe { Record::of_key(key) }),
            Lookup::Absent(observed) => Lookup::Absent(observed),
        }
    }

    /// Adds a record under its key, unless there is one with this key, or `may_change` is false for the bucket or leaf.
    /// `may_change` is asked only under a protocol that locks ranges.
    ///
    /// # Safety
    ///
    /// The record is valid and is freed only through the epoch after its removal.
    #[inline]
    pub(crate) unsafe fn insert(
        &self,
        record: NonNull<Record<K, R, P>>,
        pin: &Pin,
        changed: &mut dyn FnMut(StructureChange),
        may_change: &dyn Fn(Observed) -> bool,
    ) -> Insertion<Record<K, R, P>> {
        let key = Record::key_of(record);
        // SAFETY: the caller's promise.
        let insertion = unsafe {
            if P::LOCKS_RANGES {
                self.keys.insert(key, pin, changed, may_change)
            } else {
                self.keys.insert(key, pin, changed, always)
            }
        };
        match insertion {
            Insertion::Inserted => Insertion::Inserted,
            // SAFETY: as in `get`.
            Insertion::Exists(key) => Insertion::Exists(unsafe { Record::of_key(key) }),
            Insertion::Refused(observed) => Insertion::Refused(observed),
        }
    }

    /// Has those told that wait for a change of a bucket or leaf when it is retired.
    fn set_watched(&mut self, watched: WatchedNodes) {
        match &mut self.keys {
            KeyIndex::Hash(index) => index.set_watched(watched),
            KeyIndex::Ordered(index) => index.set_watched(watched),
            KeyIndex::Cached(index) => index.set_watched(watched),
        }
    }

    /// The bucket or leaf that stands for a key's absence.
    pub(crate) fn node_of(&self, key: &K, pin: &Pin) -> Observed {
        match &self.keys {
            KeyIndex::Hash(index) => index.node_of(key, pin.guard()),
            KeyIndex::Ordered(index) => index.node_of(key, pin.guard()),
            KeyIndex::Cached(index) => index.node_of(key),
        }
    }

    pub(crate) fn remove(
        &self,
        record: NonNull<Record<K, R, P>>,
        pin: &Pin,
        changed: &mut dyn FnMut(StructureChange),
    ) -> bool {
        let _labelled = labelled("index removal");
        let key = Record::key_of(record);
        // SAFETY: the caller has the record, so it is in memory.
        let was_present = || unsafe { record.as_ref() }.state() == State::Dead;
        match &self.keys {
            KeyIndex::Hash(index) => index.remove(key, pin.guard(), changed),
            KeyIndex::Ordered(index) => index.remove(key, was_present(), pin.guard(), changed),
            KeyIndex::Cached(index) => index.remove(key, was_present(), pin.guard(), changed),
        }
    }

    /// Makes the attempt's last observation, which was of a leaf, one of a part of it: between two bounds, with these
    /// records. It does nothing in an index without order.
    #[inline]
    pub(crate) fn keep_part(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        observed: Observed,
        range: ImageRange<'_, K>,
        direction: Direction,
        records: &[NonNull<RecordKey<K>>],
    ) {
        let index = match &self.keys {
            KeyIndex::Ordered(index) => index,
            KeyIndex::Hash(_) => return,
            KeyIndex::Cached(_) => {
                return self.keep_cached_part(tx, observed, range, direction, records);
            }
        };
        let guard = tx.pin().guard();
        // SAFETY: the leaf was observed in this index under the attempt's pin, and the table can work with its parts.
        unsafe {
            let Some(marks) = index.marks(observed, guard) else { return };
            tx.keep_seen(records, |records, copy| {
                let (low, high) = kept_bounds::<K>(&range, copy);
                LeafPart::<K::Image, _> { low, high, direction, marks, records }
            });
        }
    }

    /// Begins what [`keep_part`](Self::keep_part) does, right after the observation of a leaf, for a caller that reads other objects before
    /// it knows what part matters. `None` if the whole leaf does.
    pub(crate) fn begin_part(&self, tx: &ObjectAccess<'_, P>, observed: Observed) -> Option<BegunPart> {
        let KeyIndex::Ordered(index) = &self.keys else { return None };
        let open = tx.open_observation()?;
        // SAFETY: the leaf was observed in this index under the attempt's pin.
        let marks = unsafe { index.marks(observed, tx.pin().guard()) }?;
        Some(BegunPart { open, marks })
    }

    /// Ends what [`begin_part`](Self::begin_part) has begun in the same attempt.
    pub(crate) fn end_part(
        tx: &mut ObjectAccess<'_, P>,
        begun: BegunPart,
        range: ImageRange<'_, K>,
        direction: Direction,
        records: &[NonNull<RecordKey<K>>],
    ) {
        let BegunPart { open, marks } = begun;
        // SAFETY: it was observed by the table, which can work with parts of its leaves.
        unsafe {
            tx.keep_seen_for(open, records, |records, copy| {
                let (low, high) = kept_bounds::<K>(&range, copy);
                LeafPart::<K::Image, _> { low, high, direction, marks, records }
            });
        }
    }

    /// Begins a scan of the keys of records; `None` if the index has no order, or a cache.
    #[inline]
    pub(crate) fn cursor<'k>(
        &self,
        (low, high): ImageRange<'k, K>,
        direction: Direction,
    ) -> Option<Cursor<'_, 'k, RecordKey<K>>> {
        match &self.keys {
            KeyIndex::Hash(_) | KeyIndex::Cached(_) => None,
            KeyIndex::Ordered(index) => Some(index.cursor(low, high, direction)),
        }
    }

    /// Asks the processor for the first bytes of the records of several keys at once.
    #[inline]
    pub(crate) fn prefetch(&self, keys: impl Iterator<Item = K> + Clone, bytes: usize, pin: &Pin) {
        // The ordered index cannot help: its inner nodes are in the cache already, and it cannot find a key's leaf
        // without waiting for them.
        let index = match &self.keys {
            KeyIndex::Hash(index) => Some(index),
            KeyIndex::Ordered(_) => None,
            KeyIndex::Cached(index) => index.main().hash(),
        };
        if let Some(index) = index {
            keys.clone().for_each(|key| index.prefetch_bucket(&key, pin.guard()));
            let bytes = bytes.min(PREFETCHED_MAX);
            keys.for_each(|key| index.prefetch_record(&key, bytes, pin.guard()));
        }
    }

    fn drain(&mut self, visit: &mut dyn FnMut(NonNull<Record<K, R, P>>)) {
        // SAFETY: as in `get`.
        let visit = &mut |key| visit(unsafe { Record::of_key(key) });
        match &mut self.keys {
            KeyIndex::Hash(index) => index.drain(visit),
            KeyIndex::Ordered(index) => index.drain(visit),
            KeyIndex::Cached(index) => index.drain(visit),
        }
    }
}

impl<K: Key> KeyIndex<K> {
    /// # Safety
    ///
    /// As for [`Index::insert`].
    #[inline]
    unsafe fn insert(
        &self,
        key: NonNull<RecordKey<K>>,
        pin: &Pin,
        changed: &mut dyn FnMut(StructureChange),
        may_change: impl Fn(Observed) -> bool,
    ) -> Insertion<RecordKey<K>> {
        let _labelled = labelled("index insertion");
        // SAFETY: the caller's promise. Only insertions keep fingers, so the one in the pin was returned under this
        // pin. The table's index does not move, is freed through the epoch, and was reached under this pin. So a finger
        // with its address is this index's.
        unsafe {
            match self {
                KeyIndex::Hash(index) => index.insert(key, pin.guard(), changed, may_change),
                KeyIndex::Ordered(index) => {
                    let (insertion, finger) = index.insert(key, pin.guard(), pin.kept(), changed, may_change);
                    pin.keep(finger);
                    insertion
                }
                // Protocols that lock ranges have no caches, and may change every bucket.
                KeyIndex::Cached(index) => index.insert(key, pin, changed),
            }
        }
    }

    /// The name of an observed bucket or leaf, for messages.
    ///
    /// # Safety
    ///
    /// The node is a bucket or leaf of this index, observed under the pin.
    #[cold]
    unsafe fn describe(&self, node: NonNull<StructureVersion>, pin: &Pin) -> String {
        // SAFETY: the caller's promise.
        let (key, place) = unsafe {
            match self {
                KeyIndex::Hash(index) => (index.record_at(node, pin.guard()), "absence in the bucket of"),
                KeyIndex::Ordered(index) => (index.record_at(node, pin.guard()), "range from"),
                KeyIndex::Cached(index) => (index.record_at(node, pin.guard()), "range or absence near"),
            }
        };
        match key {
            // SAFETY: found in the index under the pin.
            Some(key) => format!("{place} {:?}", unsafe { key.as_ref() }.key()),
            None => String::from("range or absence"),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            KeyIndex::Hash(index) => index.memory_bytes(),
            KeyIndex::Ordered(index) => index.memory_bytes(),
            KeyIndex::Cached(index) => index.memory_bytes(),
        }
    }
}

/// A hash of a key, which distinguishes it from other keys.
pub(crate) fn key_hash<K: Key>(key: &K) -> u64 {
    KeyHashing::of_process().hash_one(key)
}

/// The state that the handles of a table share; freed through the epoch.
pub struct Shared<K: Key, R: Value, P: Protocol> {
    pub(crate) meta: ObjectMeta,
    pub(crate) index: Index<K, R, P>,
    /// True if rows never change after loading. Every protocol then reads them in place, without tracking.
    pub(crate) immutable: bool,
    /// The conditions that each row meets.
    pub(crate) constraints: Vec<Constraint<K, R>>,
    /// True if an operation that changes rows has more to do first: the table is immutable, or has constraints.
    pub(crate) guards_changes: bool,
    /// True if attempts see one consistent state.
    pub(crate) is_opaque: bool,
    pub(crate) secondaries: Vec<Box<dyn MaintainedIndex<K, R, P>>>,
    /// The groups of columns that conflict apart, if there are any.
    pub(crate) split: Option<Box<SplitRows<K, R, P>>>,
    pub(crate) groups: Groups<P>,
    /// The group of a row, if the groups are queues.
    pub(crate) group_of: Option<GroupOf<K>>,
    pub(crate) last_keys: LastKeys<K>,
    /// The way to the log, if the table is durable.
    pub(crate) log: Option<Arc<dyn RowLog<K, R>>>,
    /// The dead records that snapshots may see.
    pub(crate) graveyard: Arc<Graveyard>,
    /// The table's number in its database.
    pub(crate) part: OnceLock<PartId>,
}

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// True if a change may roll its transaction back: a constraint or a unique index judges it.
    pub(crate) fn may_refuse_changes(&self) -> bool {
        self.guards_changes || self.secondaries.iter().any(|secondary| secondary.may_refuse())
    }

    /// An empty table without constraints, indexes and queues.
    pub(crate) fn new(engine: &Engine<P>, name: String, mut index: Index<K, R, P>, immutable: bool) -> Self {
        index.set_watched(engine.watched_nodes());
        let graveyard = Graveyard::new(engine.kept_segments());
        let (engine, is_opaque) = (engine.id(), engine.is_opaque());
        // Made before the table's label, so that it precedes the table in lock order: an operation that takes the
        // first row of a group lines up for the group first.
        let groups = Groups::new(engine, &name);
        Self {
            meta: ObjectMeta::new(engine, name),
            index,
            immutable,
            guards_changes: immutable,
            is_opaque,
            constraints: Vec::new(),
            secondaries: Vec::new(),
            split: None,
            groups,
            group_of: None,
            last_keys: LastKeys::new(),
            log: None,
            graveyard,
            part: OnceLock::new(),
        }
    }

    /// Removes a dead record from the index, unless another thread has done so, and retires it.
    ///
    /// Its killer and others that meet it may come here at the same time. Only the thread that removed it retires it.
    /// A record that is not found (because its key's hash or image is inconsistent) stays with the index until the
    /// table is dropped.
    pub(crate) fn remove_dead(
        &self,
        record: NonNull<Record<K, R, P>>,
        pin: &Pin,
        changed: &mut dyn FnMut(StructureChange),
    ) {
        // SAFETY: the record is in memory as long as the caller is pinned.
        let found = unsafe { record.as_ref() };
        let was_present = found.state() == State::Dead;
        if was_present && let Some(newest) = self.graveyard.newest() {
            return self.bury(record, newest, pin, changed);
        }
        if self.index.remove(record, pin, changed) {
            if was_present {
                found.leave_index();
                // Somebody may be burying it, if snapshots have come or gone just now.
                if !self.graveyard.is_surely_empty() {
                    self.graveyard.forget(&Self::name_of(found), record.cast());
                }
            }
            // SAFETY: made with `Box`. A removal succeeds only once, as dead records never go back into the index,
            // and from now on no lookup finds the record.
            unsafe { Self::retire(record.cast(), pin) };
        }
    }

    /// Removes a dead record that snapshots may see from the index.
    #[cold]
    #[inline(never)]
    fn bury(
        &self,
        record: NonNull<Record<K, R, P>>,
        newest: u64,
        pin: &Pin,
        changed: &mut dyn FnMut(StructureChange),
    ) {
        // SAFETY: the record is in memory as long as the caller is pinned.
        let found = unsafe { record.as_ref() };
        let name = Self::name_of(found);
        let life = (self.graveyard.birth(&self.meta, record.addr().get(), pin), newest);
        // Before it is removed, so that it is always found in one of the two.
        // SAFETY: as in `remove_dead`. A removal succeeds only once, and so the record is freed once.
        let is_in = unsafe {
            self.graveyard.bury(&name, record.cast(), life, Self::retire, || found.has_left_index())
        };
        if is_in && self.index.remove(record, pin, changed) {
            found.leave_index();
            self.graveyard.settle(&name, record.cast());
        }
    }

    /// The name of a record's key.
    fn name_of(record: &Record<K, R, P>) -> Vec<u8> {
        let mut name = Vec::new();
        put_name(record.key(), &mut name);
        name
    }

    /// Frees a record.
    ///
    /// # Safety
    ///
    /// The record is one of these types, made with `Box`, and in memory. No thread that pins from now on finds it, and it is
    /// retired once.
    unsafe fn retire(record: NonNull<()>, pin: &Pin) {
        let record = record.cast::<Record<K, R, P>>();
        // SAFETY: in memory, and nothing is installed in a dead record.
        let heap_bytes = unsafe { record.as_ref().heap_bytes() };
        // SAFETY: the caller's promise.
        unsafe { pin.retire_owning(record.as_ptr(), heap_bytes) };
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let secondaries: usize = self.secondaries.iter().map(|index| index.memory_bytes()).sum();
        self.index.keys.memory_bytes() + secondaries
    }
}

impl<K: Key, R: Value, P: Protocol> Drop for Shared<K, R, P> {
    fn drop(&mut self) {
        self.index.drain(&mut |record| {
            // SAFETY: every record is made with `Box`, and one in the index has not been retired. Nobody
            // else can reach the table: it is freed through the epoch after its last handle is gone.
            let record = unsafe { Box::from_raw(record.as_ptr()) };
            // A panic in one row's `Drop` must not stop the other rows from being dropped.
            contained(|| drop(record));
        });
    }
}

// SAFETY: all items of a table are for its records, with payloads of type `Pending<R>`, changes, or none, as the tags
// say; records and the shared state are freed through the epoch only; operations enter with `meta`.
unsafe impl<K: Key, R: Value, P: Protocol> Object<P> for Shared<K, R, P> {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    unsafe fn describe(&self, segment: NonNull<P::Header>) -> String {
        // SAFETY: the caller's promise.
        format!("{:?}", unsafe { Record::<K, R, P>::at(segment) }.key())
    }

    unsafe fn describe_structure(&self, node: NonNull<StructureVersion>, pin: &Pin) -> String {
        // SAFETY: the caller's promise: this table's bucket or leaf, observed under the pin.
        unsafe { self.index.keys.describe(node, pin) }
    }

    unsafe fn identify(&self, segment: NonNull<P::Header>) -> u64 {
        // SAFETY: the caller's promise.
        key_hash(unsafe { Record::<K, R, P>::at(segment) }.key())
    }

    unsafe fn rank(&self, segment: NonNull<P::Header>) -> u64 {
        // SAFETY: the caller's promise.
        self.meta.rank_of(unsafe { Record::<K, R, P>::at(segment) }.place())
    }

    unsafe fn name(&self, segment: NonNull<P::Header>, bytes: &mut Vec<u8>) {
        // SAFETY: the caller's promise.
        put_name(unsafe { Record::<K, R, P>::at(segment) }.key(), bytes);
    }

    fn effect(&self, item: &Item<P>) -> Option<WriteKind> {
        match item.tag() {
            // SAFETY: the tag says what the payload is.
            tag::CHANGES if unsafe { Self::changes_commute(item) } => Some(WriteKind::Commute),
            tag::UPDATE | tag::CHANGES => Some(WriteKind::Update),
            tag::DELETE => Some(WriteKind::Delete),
            tag::INSERTED => Some(WriteKind::Insert),
            _ => None,
        }
    }

    unsafe fn check(&self, item: &Item<P>) -> Result<(), Abort> {
        if self.constraints.is_empty() {
            return Ok(());
        }
        // SAFETY: as in `install`.
        let record = unsafe { Record::<K, R, P>::at(item.segment()) };
        let row = match item.tag() {
            // SAFETY: an update has a payload of this type.
            tag::UPDATE => R::Cell::pending(unsafe { &*item.payload::<Pending<R>>() }),
            // SAFETY: the attempt holds the lock of a record that it made, so nothing is installed.
            tag::INSERTED => unsafe { record.row() },
            _ => return Ok(()),
        };
        Ok(self.judge(record.key(), row)?)
    }

    #[inline]
    unsafe fn install(&self, item: &mut Item<P>, pin: &Pin) {
        // SAFETY: items of this object are for its records, which live until the attempt ends.
        let record = unsafe { Record::<K, R, P>::at(item.segment()) };
        match item.tag() {
            tag::UPDATE => {
                // SAFETY: an update has a payload, consumed here and nowhere else; the caller holds the lock.
                unsafe {
                    let pending = item.payload::<Pending<R>>().read();
                    item.install_in(record.cell(), pending, pin);
                }
            }
            tag::INSERTED => record.set_state(State::Present),
            // SAFETY: the tag says what the payload is, and the caller holds the lock.
            tag::CHANGES => unsafe { Self::install_changes(item, record, pin) },
            _ => {
                record.set_state(State::Dead);
                // SAFETY: the payload was not installed, so it has not been consumed.
                unsafe { discard_payload::<R, P>(item, pin) };
            }
        }
    }

    fn installs_in_regions(&self, item: &Item<P>) -> bool {
        match item.tag() {
            tag::UPDATE | tag::INSERTED => true,
            tag::CHANGES => Self::changes_fit_regions(item),
            // Otherwise a value would be dropped.
            _ => !item.has_payload(),
        }
    }

    unsafe fn settle(&self, item: ItemId, tx: &mut ObjectAccess<'_, P>) -> Result<(), OutOfRange> {
        // SAFETY: the caller's promise.
        unsafe { Self::settle_at_commit(item, tx) }
    }

    unsafe fn changes_fit(&self, item: &Item<P>, _: &Pin) -> bool {
        // SAFETY: the caller's promise.
        unsafe { Self::pending_fit(item) }
    }

    unsafe fn keep(&self, item: &Item<P>, keeper: &mut Keeper<'_>) {
        // SAFETY: the caller's promise.
        unsafe { Self::keep_version(item, keeper) };
    }

    unsafe fn log(&self, item: &Item<P>, pin: &Pin, entries: &mut Vec<u8>) -> Result<(), String> {
        // SAFETY: the caller's promise.
        unsafe { self.log_write(item, pin, entries) }
    }

    unsafe fn redo(&self, item: &Item<P>, redo: Redo<'_>) {
        // SAFETY: the caller's promise.
        unsafe { Self::redo_changes(item, redo) };
    }

    unsafe fn undo(&self, item: &mut Item<P>, pin: &Pin) {
        if matches!(item.tag(), tag::INSERTED | tag::INSERTED_DELETED) {
            // The attempt has held the lock since the insertion. Another attempt that has taken the lock from this
            // wounded one may read the state meanwhile; it treats both states alike.
            // SAFETY: as in `install`.
            unsafe { Record::<K, R, P>::at(item.segment()) }.set_state(State::Withdrawn);
        }
        // Changes are the attempt's memory.
        if item.tag() != tag::CHANGES {
            // SAFETY: an attempt that is undone has installed nothing; other payloads are of this type.
            unsafe { discard_payload::<R, P>(item, pin) };
        }
    }

    unsafe fn save(&self, item: &Item<P>, saver: &Saver<'_, P>) -> SavedWrite {
        match item.tag() {
            // SAFETY: an update has a payload of this type.
            tag::UPDATE => saver.value(R::Cell::pending(unsafe { &*item.payload::<Pending<R>>() })),
            // SAFETY: as in `install`; the attempt holds the lock of a record that it made, so nothing is installed.
            tag::INSERTED => saver.value(unsafe { Record::<K, R, P>::at(item.segment()).row() }),
            // SAFETY: the tag says what the payload is.
            tag::CHANGES => saver.plain(unsafe { &*item.payload::<CommitTimeChanges<R>>() }),
            _ => saver.nothing(),
        }
    }

    unsafe fn restore(&self, item: &mut Item<P>, saved: Option<SavedWrite>, pin: &Pin) {
        // SAFETY: the tag says what the payload is.
        unsafe {
            if item.tag() == tag::CHANGES {
                let _ = item.take_payload::<CommitTimeChanges<R>>();
            } else if let Some(pending) = item.take_payload::<Pending<R>>() {
                R::Cell::discard(pending, pin);
            }
        }
        match saved {
            // SAFETY: the caller's promise; the payload has been taken out.
            Some(saved) => unsafe { item.put_back(saved) },
            // SAFETY: such an item has no payload.
            None if item.tag() == tag::INSERTED => unsafe { item.set_tag(tag::INSERTED_DELETED) },
            None => {}
        }
        if item.tag() == tag::INSERTED
            // SAFETY: saved as a payload of this type.
            && let Some(row) = unsafe { item.take_payload::<Pending<R>>() }
        {
            // SAFETY: this attempt made the record and holds its lock.
            unsafe { Record::<K, R, P>::at(item.segment()).install(row, pin) };
        }
    }

    #[inline]
    unsafe fn cleanup(&self, item: &mut Item<P>, committed: bool, pin: &Pin) {
        let killed = match item.tag() {
            tag::DELETE => committed,
            tag::INSERTED if committed && self.index.is_cached() => {
                return self.write_back(item.segment().cast(), pin);
            }
            tag::INSERTED => !committed,
            tag::INSERTED_DELETED => true,
            _ => false,
        };
        if killed {
            self.remove_dead(item.segment().cast(), pin, &mut |_| ());
        }
    }

    unsafe fn still_holds(
        &self,
        seen: NonNull<u8>,
        is_own: &dyn Fn(NonNull<P::Header>) -> bool,
        pin: &Pin,
    ) -> bool {
        // The attempt's own insertions are no change, and those of others that were rolled back have never been seen.
        let is_void = |key| {
            // SAFETY: a record of this table, found in its index under the pin.
            let record = unsafe { Record::<K, R, P>::of_key(key) };
            // SAFETY: as above.
            is_own(Record::address(record)) || unsafe { record.as_ref() }.state() == State::Withdrawn
        };
        // SAFETY: kept by `keep_part`, for a leaf or bucket of this index and under this pin: the caller's promise.
        let look_again = || unsafe {
            match &self.index.keys {
                KeyIndex::Hash(_) => false,
                KeyIndex::Ordered(index) => {
                    let part = seen.cast::<LeafPart<K::Image, RecordKey<K>>>().as_ref();
                    index.still_holds(part, is_void, pin.guard())
                }
                KeyIndex::Cached(index) => {
                    let part = seen.cast::<CachedPart<K::Image, RecordKey<K>>>().as_ref();
                    index.still_holds(part, is_void, pin.guard())
                }
            }
        };
        // The image of a long key is users' code, which must not panic out of a commit.
        contained(look_again).unwrap_or(false)
    }

    unsafe fn span(&self, segment: NonNull<P::Header>) -> KeySpan {
        // SAFETY: the caller's promise.
        Self::span_of_key(unsafe { Record::<K, R, P>::at(segment) }.key())
    }

    unsafe fn span_seen(&self, seen: NonNull<u8>) -> KeySpan {
        // SAFETY: the caller's promise.
        unsafe { self.index.span_of_part(seen) }
    }

    /// The predicates of records: the row exists, on which alone a replacement depends; and the conditions of changes.
    /// (Conditions of changes that have become an update hold: the row was read.)
    unsafe fn predicate_holds(&self, item: &Item<P>) -> bool {
        // SAFETY: as in `install`.
        let record = unsafe { Record::<K, R, P>::at(item.segment()) };
        record.state() == State::Present
            // SAFETY: the tag says what the payload is.
            && (item.tag() != tag::CHANGES || unsafe { Self::conditions_hold(item, record) })
    }
}

/// # Safety
///
/// The item's payload, if any, is a `Pending<R>` that was not consumed and is not used again.
unsafe fn discard_payload<R: Value, P: Protocol>(item: &Item<P>, pin: &Pin) {
    if item.has_payload() {
        // SAFETY: the caller's promise.
        R::Cell::discard(unsafe { item.payload::<Pending<R>>().read() }, pin);
    }
}
