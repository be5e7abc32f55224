//! The parts of [split rows](crate::split), as an object: a group of columns each.

use super::row_log::RowLog;
use crate::index::Keyed;
use crate::key::{Key, key_hash, put_name};
use crate::record::{GroupsOf, RecordKey, WordsOf};
use hotrow_core::column_groups::{ColumnGroups, GROUPS_MAX, Part, PartSegment};
use hotrow_core::history::WriteKind;
use hotrow_core::{
    EngineId, Item, ItemId, Keeper, Object, ObjectAccess, ObjectMeta, OutOfRange, Pin, Protocol, Redo,
    SavedWrite, Saver, Segment, Value,
};
use hotrow_sync::atomic::{Ordering, unfollowed::AtomicU32};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

/// The segment of a group.
pub(crate) type PartOf<R, P> = Segment<Part<WordsOf<R>>, P>;

/// The parts of a table's rows, as an object.
pub(crate) struct SplitRows<K: Key, R: Value, P: Protocol> {
    pub(crate) meta: ObjectMeta,
    /// The groups that conflict apart, as [`groups_of`] numbers them.
    apart: u32,
    incarnations: AtomicU32,
    /// The way to the log, if the table is durable.
    row_log: Option<Arc<RowLog<K, R>>>,
    /// The fields that the log has from parts and never from records, one bit each.
    logged_fields: u64,
    _parts: PhantomData<PartSegment<WordsOf<R>, P>>,
}

impl<K: Key, R: Value, P: Protocol> SplitRows<K, R, P> {
    /// The parts of a new table's rows: `None` if all columns conflict with each other. `indexed`: the groups of which the table's indexes
    /// use columns.
    pub(crate) fn new(engine: EngineId, table: &str, rank: u16, indexed: u32) -> Option<Box<Self>> {
        let groups = GroupsOf::<R>::NAMES.len();
        debug_assert!(groups <= GROUPS_MAX);
        let apart = ((1u32 << groups) - 1) << 1 & !indexed;
        // A row that is one column of a group has nothing else from which to be apart.
        let is_one = matches!(GroupsOf::<R>::COLUMNS, [only] if only.bytes == size_of::<R>());
        if apart == 0 || is_one {
            return None;
        }
        let meta = ObjectMeta::new(engine, format!("{table}.parts"));
        // SAFETY: all segments of this object are those of parts of this type.
        let meta = unsafe { meta.noting_commits(PartSegment::<WordsOf<R>, P>::NEWEST_COMMIT) };
        meta.set_rank(rank);
        let incarnations = AtomicU32::new(0);
        Some(Box::new(Self {
            meta,
            apart,
            incarnations,
            row_log: None,
            logged_fields: 0,
            _parts: PhantomData,
        }))
    }

    /// # Safety
    ///
    /// The segment is that of a part of this table's rows, and still in memory.
    pub(crate) unsafe fn part<'a>(segment: NonNull<P::Header>) -> (&'a PartSegment<WordsOf<R>, P>, &'a K) {
        // SAFETY: the caller's promise; the record notes where its key is, which lies beside the part.
        unsafe {
            let part = PartSegment::<WordsOf<R>, P>::at(segment);
            (part, part.key().cast::<RecordKey<K>>().as_ref().key())
        }
    }

    /// The groups that conflict apart, one bit each as [`groups_of`] numbers them.
    #[inline]
    pub(crate) fn apart(&self) -> u32 {
        self.apart
    }

    /// The number of the next record.
    pub(crate) fn next_incarnation(&self) -> u32 {
        // Relaxed: only uniqueness matters.
        self.incarnations.fetch_add(1, Ordering::Relaxed)
    }

    /// Sets the way to the log. The table is new.
    pub(crate) fn set_log(&mut self, log: Arc<RowLog<K, R>>) {
        self.logged_fields = log.fields_of_groups(self.apart >> 1);
        self.row_log = Some(log);
    }

    /// The fields that the log has from parts and never from records, one bit each.
    pub(crate) fn logged_fields(&self) -> u64 {
        self.logged_fields
    }

    /// Appends the entries of a part's pending write.
    ///
    /// # Safety
    ///
    /// As for [`Object::log`](hotrow_core::Object::log).
    unsafe fn log_write(&self, item: &Item<P>, pin: &Pin, entries: &mut Vec<u8>) -> Result<(), String> {
        let Some(log) = &self.row_log else { return Ok(()) };
        // SAFETY: all items of this object are for its parts, with a pending write; the caller holds the lock, so that nothing is installed.
        let ((part, key), after) =
            unsafe { (Self::part(item.segment()), PartOf::<R, P>::pending_value(item, pin)) };
        // The deletion of the record says all.
        if !after.is_present() {
            return Ok(());
        }
        // SAFETY: as above.
        let before = unsafe { part.segment().in_place() };
        log.put_part_changes(entries, key, part.group(), before, &after)
    }
}

// SAFETY: all items are for parts of the table's rows, with the payloads of their segment's type; parts and this object are in the table's
// records and shared state, which are freed through the epoch only; operations enter with the table's identity.
unsafe impl<K: Key, R: Value, P: Protocol> Object<P> for SplitRows<K, R, P> {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    unsafe fn describe(&self, segment: NonNull<P::Header>) -> String {
        // SAFETY: the caller's promise.
        let (part, key) = unsafe { Self::part(segment) };
        format!("{:?}.{}", key, GroupsOf::<R>::NAMES[part.group()])
    }

    unsafe fn identify(&self, segment: NonNull<P::Header>) -> u64 {
        // SAFETY: the caller's promise.
        let (part, key) = unsafe { Self::part(segment) };
        key_hash(key).wrapping_add(part.group() as u64 + 1)
    }

    unsafe fn rank(&self, segment: NonNull<P::Header>) -> u64 {
        // SAFETY: the caller's promise; the key is the record's.
        unsafe {
            let part = PartSegment::<WordsOf<R>, P>::at(segment);
            let place = part.key().cast::<RecordKey<K>>().as_ref().place();
            self.meta.rank_of((part.group() as u32) << 24 | place)
        }
    }

    unsafe fn name(&self, segment: NonNull<P::Header>, bytes: &mut Vec<u8>) {
        // SAFETY: the caller's promise.
        let (part, key) = unsafe { Self::part(segment) };
        put_name(key, bytes);
        bytes.extend((part.group() as u32).to_be_bytes());
        bytes.extend(part.incarnation().to_be_bytes());
    }

    #[inline]
    unsafe fn install(&self, item: &mut Item<P>, pin: &Pin) {
        // SAFETY: the caller's promise, here and below.
        unsafe { PartOf::<R, P>::install(item, pin) };
    }

    fn installs_in_regions(&self, item: &Item<P>) -> bool {
        // SAFETY: see above. It is asked of pending writes.
        unsafe { PartOf::<R, P>::installs_in_regions(item) }
    }

    unsafe fn settle(&self, item: ItemId, tx: &mut ObjectAccess<'_, P>) -> Result<(), OutOfRange> {
        // SAFETY: see above.
        unsafe { PartOf::<R, P>::settle(item, tx) }
    }

    unsafe fn changes_fit(&self, item: &Item<P>, _: &Pin) -> bool {
        // SAFETY: see above.
        unsafe { PartOf::<R, P>::changes_fit(item) }
    }

    unsafe fn keep(&self, item: &Item<P>, keeper: &mut Keeper<'_>) {
        // SAFETY: see above.
        unsafe { PartOf::<R, P>::keep(item, keeper) };
    }

    unsafe fn log(&self, item: &Item<P>, pin: &Pin, entries: &mut Vec<u8>) -> Result<(), String> {
        // SAFETY: the caller's promise.
        unsafe { self.log_write(item, pin, entries) }
    }

    fn effect(&self, item: &Item<P>) -> Option<WriteKind> {
        // SAFETY: all items of this object are for its parts, with a pending write.
        Some(unsafe { PartOf::<R, P>::effect(item) })
    }

    unsafe fn redo(&self, item: &Item<P>, redo: Redo<'_>) {
        // SAFETY: see above.
        unsafe { PartOf::<R, P>::redo(item, redo) };
    }

    unsafe fn save(&self, item: &Item<P>, saver: &Saver<'_, P>) -> SavedWrite {
        // SAFETY: see above.
        unsafe { PartOf::<R, P>::save(item, saver) }
    }

    unsafe fn restore(&self, item: &mut Item<P>, saved: Option<SavedWrite>, pin: &Pin) {
        // SAFETY: see above.
        unsafe { PartOf::<R, P>::restore_part(item, saved, pin) };
    }

    unsafe fn predicate_holds(&self, item: &Item<P>) -> bool {
        // SAFETY: see above.
        unsafe { PartOf::<R, P>::predicate_holds(item) }
    }
}
