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
//!
//! # Files
//!
//! [`Shared`] has the index of the records and the [companions](crate::companions) of the rows, which do not know it. An operation is an `impl Shared`
//! in a file above this one (`rows.rs`, `updating.rs`, `insertion.rs`, `scan.rs`, `queue.rs`, `split`, `deferred.rs`); handles, operations as
//! values and contexts are above these.

use crate::catalog::PartId;
use crate::companions::{Buried, Companions, Name};
use crate::index::Keyed;
use crate::key::{Key, key_hash, put_name};
use crate::record::{Pending, Record, State};
use crate::record_index::{Index, span_of_key};
use hotrow_core::history::WriteKind;
use hotrow_core::{
    Abort, Cell, CommitTimeChanges, ContextAccess, Engine, Item, ItemId, Keeper, KeySpan, Object,
    ObjectAccess, ObjectMeta, OutOfRange, Pin, Protocol, Redo, SavedWrite, Saver, StructureChange,
    StructureVersion, Transaction, Value, contained,
};
use hotrow_sync::OnceLock;
use std::ptr::NonNull;

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

/// The state that the handles of a table share; freed through the epoch.
pub struct Shared<K: Key, R: Value, P: Protocol> {
    pub(crate) meta: ObjectMeta,
    pub(crate) index: Index<K, R, P>,
    /// True if rows never change after loading. Every protocol then reads them in place, without tracking.
    pub(crate) immutable: bool,
    /// True if an operation that changes rows has more to do first: the table is immutable, or has constraints.
    pub(crate) guards_changes: bool,
    /// True if attempts see one consistent state.
    pub(crate) is_opaque: bool,
    pub(crate) companions: Companions<K, R, P>,
    /// The table's number in its database.
    pub(crate) part: OnceLock<PartId>,
}

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// True if a change may roll its transaction back: a constraint or a unique index judges it.
    pub fn may_refuse_changes(&self) -> bool {
        self.guards_changes || self.companions.indexes.may_refuse()
    }

    /// Asks the processor to fetch rows up to this byte.
    #[inline]
    pub fn fetch_ahead(&self, tx: &Transaction<'_, P>, keys: impl Iterator<Item = K> + Clone, byte: usize) {
        self.index.prefetch(keys, Record::<K, R, P>::bytes_up_to(byte), tx.pin());
    }

    /// An empty table without constraints, indexes and queues.
    pub(crate) fn new(engine: &Engine<P>, name: String, mut index: Index<K, R, P>, immutable: bool) -> Self {
        index.set_watched(engine.watched_nodes());
        // Before the table's label: see `Companions::new`.
        let companions = Companions::new(engine, &name);
        Self {
            // SAFETY: all segments of this object are records of this type.
            meta: unsafe {
                ObjectMeta::new(engine.id(), name).noting_commits(Record::<K, R, P>::NEWEST_COMMIT)
            },
            index,
            immutable,
            guards_changes: immutable,
            is_opaque: engine.is_opaque(),
            companions,
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
        let was_present = found.is_dead();
        if was_present && let Some(newest) = self.companions.graveyard.newest() {
            self.bury(record, newest, pin);
        }
        let is_removed = self.index.remove(record, pin, changed);
        // INVARIANT 36: A dead record never comes back, and whoever takes it out of the index retires it.
        if is_removed && (!was_present || found.leave_index()) {
            // SAFETY: made with `Box`. A removal succeeds only once, as dead records never go back into the index,
            // and from now on no lookup finds the record, which is not in the graveyard.
            unsafe { Self::retire(record.cast(), pin) };
        }
    }

    /// Buries a dead record that leaves the index next, if a snapshot may see it. `newest`: the newest one.
    #[cold]
    #[inline(never)]
    fn bury(&self, record: NonNull<Record<K, R, P>>, newest: u64, pin: &Pin) {
        // SAFETY: the record is in memory as long as the caller is pinned.
        let found = unsafe { record.as_ref() };
        let graveyard = &self.companions.graveyard;
        let since = graveyard.needed_since(&self.meta, record.addr().get(), pin);
        if since >= newest {
            return;
        }
        let (state, life) = (NonNull::from(found.state_word()), (since, newest));
        let buried = Buried { record: record.cast(), state, life, retire: Self::retire };
        // SAFETY: made with `Box`; who takes it out of the index leaves it to the graveyard once it is buried, and a record that stays in the
        // index is in memory until the table is dropped, which closes the graveyard.
        unsafe { graveyard.bury(Self::name_of(found), buried) };
    }

    /// The name of a record's key.
    pub(crate) fn name_of(record: &Record<K, R, P>) -> Name {
        Name::of(&|bytes| put_name(record.key(), bytes))
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
        self.index.keys().memory_bytes() + self.companions.indexes.memory_bytes()
    }
}

impl<K: Key, R: Value, P: Protocol> Drop for Shared<K, R, P> {
    fn drop(&mut self) {
        self.companions.graveyard.close();
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
        unsafe { self.index.keys().describe(node, pin) }
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
            tag::CHANGES if !unsafe { Self::changes_of(item) }.has_conditions() => Some(WriteKind::Commute),
            tag::UPDATE | tag::CHANGES => Some(WriteKind::Update),
            tag::DELETE => Some(WriteKind::Delete),
            tag::INSERTED => Some(WriteKind::Insert),
            _ => None,
        }
    }

    unsafe fn check(&self, item: &Item<P>) -> Result<(), Abort> {
        if self.companions.constraints.is_empty() {
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
        Ok(self.companions.constraints.judge(self.meta.name(), record.key(), row)?)
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
            tag::CHANGES => unsafe { Self::changes_of(item).install_in(item, record.cell(), pin) },
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
            // SAFETY: the tag says what the payload is.
            tag::CHANGES => !unsafe { Self::changes_of(item) }.need_copy(),
            // Otherwise a value would be dropped.
            _ => !item.has_payload(),
        }
    }

    unsafe fn settle(&self, item: ItemId, tx: &mut ObjectAccess<'_, P>) -> Result<(), OutOfRange> {
        if tx.tag(item) != tag::CHANGES {
            return Ok(());
        }
        // SAFETY: the caller's promise; the row is present, and the tag says what the payload is.
        unsafe {
            let record = Record::<K, R, P>::at(tx.segment_of(item));
            CommitTimeChanges::<R>::settle_in(item, record.cell(), tx)
        }
    }

    unsafe fn changes_fit(&self, item: &Item<P>, _: &Pin) -> bool {
        item.tag() != tag::CHANGES || {
            // SAFETY: as in `install`.
            let record = unsafe { Record::<K, R, P>::at(item.segment()) };
            // SAFETY: the tag says what the payload is.
            unsafe { Self::changes_of(item).fit_in(record.cell()) }
        }
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
        unsafe { Self::redo_version(item, redo) };
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
        // The image of a long key is users' code, which must not panic out of a commit.
        // SAFETY: kept by `keep_part`, for a leaf or bucket of this index and under this pin: the caller's promise.
        contained(|| unsafe { self.index.keys().still_holds(seen, &is_void, pin) }).unwrap_or(false)
    }

    unsafe fn span(&self, segment: NonNull<P::Header>) -> KeySpan {
        // SAFETY: the caller's promise.
        span_of_key(unsafe { Record::<K, R, P>::at(segment) }.key())
    }

    unsafe fn span_seen(&self, seen: NonNull<u8>) -> KeySpan {
        // SAFETY: the caller's promise.
        unsafe { self.index.keys().span_of_part(seen) }
    }

    /// The predicates of records: the row exists, on which alone a replacement depends; and the conditions of changes.
    /// (Conditions of changes that have become an update hold: the row was read.)
    unsafe fn predicate_holds(&self, item: &Item<P>) -> bool {
        // SAFETY: as in `install`.
        let record = unsafe { Record::<K, R, P>::at(item.segment()) };
        record.state() == State::Present
            // SAFETY: the tag says what the payload is.
            && (item.tag() != tag::CHANGES || unsafe { Self::changes_of(item).hold_in(record.cell()) })
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
