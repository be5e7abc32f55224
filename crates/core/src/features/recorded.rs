//! The operations of a transaction that is recorded in a history: as the others, but their reads are noted.

use crate::features::history::ReadKind;
use crate::features::history::recorder::{Log, NamedKey, RecordedKey};
use crate::kernel::abort::Abort;
use crate::kernel::item::{ItemId, TouchedSegment};
use crate::kernel::object::Object;
use crate::kernel::object_access::room_of_access;
use crate::kernel::object_access::{LOADED, ObjectAccess, ReadValue};
use crate::kernel::protocol::{ConflictCause, Look, Protocol};
use crate::memory::identity::ObjectMeta;
use crate::memory::structure::Observed;
use hotrow_sync::Arc;
use std::fmt::Debug;
use std::ops::Bound;

room_of_access!(
    /// The part of an access that tells the recorded history, if there is one.
    HistoryAccess,
    history,
    history_mut
);

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Runs a protocol's read of a segment for an attempt that watches, that does not [keep its reads](Self::keeps_reads), or that is
    /// recorded: then it loads its key's version in the same `load`.
    ///
    /// Takes `load` by value: a reference to it here would keep it in memory where nothing is recorded, too.
    #[cold]
    pub(crate) fn read_noted<V>(
        &mut self,
        id: ItemId,
        look: Look,
        mut load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        let mut value = None;
        self.read_noted_by(id, look, &mut || value = Some(load()))?;
        Ok(value.expect(LOADED))
    }

    /// Is compiled once for all results.
    #[inline(never)]
    pub(super) fn read_noted_by(
        &mut self,
        id: ItemId,
        look: Look,
        load: &mut dyn FnMut(),
    ) -> Result<(), ConflictCause> {
        // Before it is loaded.
        let keeps_reads = self.keeps_reads();
        self.watch_item(id, look != Look::Peek || !keeps_reads);
        if !keeps_reads {
            return self.attempt.load(self.protocol, id, Look::Peek, load);
        }
        if !self.attempt.is_recorded() {
            return self.attempt.load(self.protocol, id, look, load);
        }
        let touched = self.attempt.items.get(id).touched;
        // SAFETY: the item's segment is its object's, and in memory until the attempt ends.
        let (read, recorded, version) =
            unsafe { self.versioned(touched, load, |tx, load| tx.attempt.load(tx.protocol, id, look, load)) };
        read?;
        match look {
            Look::Read | Look::ReadForUpdate => self.attempt.record_read(&recorded, version, ReadKind::Value),
            Look::Peek => self.attempt.record_predicate(id, &recorded, version),
        }
        Ok(())
    }

    /// As [`read_noted`](Self::read_noted), for a read that is logged.
    ///
    /// # Safety
    ///
    /// As for [`ObjectAccess::read`].
    #[inline(never)]
    pub(crate) unsafe fn read_logged_recorded(
        &mut self,
        touched: TouchedSegment<P>,
        load: &mut dyn FnMut(),
    ) -> Result<ReadValue<()>, Abort> {
        // SAFETY: the caller's promise.
        let (read, recorded, version) =
            unsafe { self.versioned(touched, load, |tx, load| tx.read_logged(touched, load)) };
        let read = read?;
        match read {
            ReadValue::Shared(()) => self.attempt.record_read(&recorded, version, ReadKind::Value),
            ReadValue::Own(id) if self.attempt.can_defer() => self.record_own_read(id),
            ReadValue::Own(_) => {}
        }
        Ok(read)
    }

    /// Reads a segment, and loads its key's version in the same `load`. Returns the result with the key and the version.
    ///
    /// # Safety
    ///
    /// The segment must be the object's, and in memory until the attempt ends.
    unsafe fn versioned<R>(
        &mut self,
        touched: TouchedSegment<P>,
        load: &mut dyn FnMut(),
        read: impl FnOnce(&mut Self, &mut dyn FnMut()) -> R,
    ) -> (R, Arc<RecordedKey>, u64) {
        // SAFETY: the caller's promise.
        let recorded = unsafe { self.attempt.recorded_key(touched.object(), touched.segment()) };
        let recorded = recorded.expect("called for recorded attempts only");
        let mut version = 0;
        self.record_place();
        let result = read(self, &mut || {
            load();
            version = recorded.version();
        });
        (result, recorded, version)
    }

    /// Notes the operation of the attempt's program to which the next events belong. Only deferred operations run in
    /// another order than that of the program.
    fn record_place(&mut self) {
        if self.attempt.can_defer() {
            let place = self.place();
            if let Some(log) = self.attempt.log() {
                log.operation(place);
            }
        }
    }

    /// Records a read of an item's own pending write, if the attempt is recorded.
    #[cold]
    pub(crate) fn record_own_read(&mut self, id: ItemId) {
        self.record_own(id, Log::own_read);
    }

    #[cold]
    #[inline(never)]
    fn record_own(&mut self, id: ItemId, record: fn(&mut Log, &RecordedKey)) {
        self.record_place();
        let item = self.attempt.items.get(id);
        // SAFETY: the item's segment is its object's, and in memory until the attempt ends.
        let recorded = unsafe { self.attempt.recorded_key(item.object(), item.segment()) };
        if let (Some(log), Some(recorded)) = (self.attempt.log(), recorded) {
            record(log, &recorded);
        }
    }

    /// As [`read_noted`](Self::read_noted), for protocols that leave no item.
    ///
    /// # Safety
    ///
    /// As for [`ObjectAccess::read`].
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn load_recorded<V>(
        &mut self,
        touched: TouchedSegment<P>,
        mut load: impl FnMut() -> V,
    ) -> V {
        self.watch_segment(touched.address(), true);
        let value = load();
        // SAFETY: the caller's promise.
        if let Some(recorded) = unsafe { self.attempt.recorded_key(touched.object(), touched.segment()) } {
            self.attempt.record_read(&recorded, recorded.version(), ReadKind::Value);
        }
        value
    }
}

impl<P: Protocol> HistoryAccess<'_, P> {
    /// Records that an item's pending write was made or changed, if the attempt is recorded and may defer operations.
    /// The operations here do so themselves; a datatype calls it where it changes a pending write in another way.
    #[inline]
    pub fn record_change(&mut self, id: ItemId) {
        // From the first savepoint on, operations run in the order of the program, and what is undone is no change.
        if self.attempt.can_defer() && self.attempt.is_recorded() && !self.attempt.features.savepoints.any {
            self.record_own(id, Log::change);
        }
    }

    /// True if the attempt is recorded in a [`history`](crate::features::history). A datatype asks before it does extra work for
    /// the record.
    #[inline]
    pub fn is_recorded(&self) -> bool {
        self.attempt.is_recorded()
    }

    /// Takes the last read back: its result (a dead record) is not used, and the key is searched for elsewhere.
    pub fn forget_read(&mut self) {
        if let Some(log) = self.attempt.log() {
            log.forget_read();
        }
    }

    /// Turns the last read into a condition: it told only that there is something to line up for. The operation reads
    /// the value when it runs, so changes by earlier operations of the attempt in between do not matter.
    pub fn read_as_condition(&mut self) {
        if let Some(log) = self.attempt.log() {
            log.read_as_condition();
        }
    }

    /// As [`observe`](crate::ObjectAccess::observe), for the absence of one key, which is recorded. False if the bucket or leaf has
    /// changed meanwhile. The version of the absence is not known then, and the caller must look the key up again.
    ///
    /// `bytes` appends the bytes that [`Object::name`] would append for a segment of the key.
    ///
    /// # Safety
    ///
    /// As for [`observe`](crate::ObjectAccess::observe).
    #[cold]
    pub unsafe fn observe_absence<O: Object<P> + 'static>(
        &mut self,
        object: &O,
        observed: Observed,
        key: &dyn Debug,
        bytes: &dyn Fn(&mut Vec<u8>),
    ) -> Result<bool, Abort> {
        self.record_place();
        let recorded =
            self.attempt.log().map(|log| log.recorded_key(object.meta(), &NamedKey { key, bytes }));
        let version = recorded.as_ref().map_or(0, |recorded| recorded.version());
        // SAFETY: observed under the attempt's pinned epoch, so it is in memory until the attempt ends.
        // An insertion of the key changes the node first and the key's version later, and a version that is seen makes
        // that change visible (acquire). So the version belongs to the absence.
        if recorded.is_some() && !unsafe { observed.node.as_ref() }.unchanged(observed.version) {
            return Ok(false);
        }
        // SAFETY: the caller's promise.
        if !unsafe { self.observe(object, observed) }? {
            return Ok(false);
        }
        if let Some(recorded) = recorded {
            self.attempt.record_read(&recorded, version, ReadKind::Absent);
        }
        Ok(true)
    }

    /// Records that an insertion found its key free. The key's record is in the index, locked by this attempt.
    pub fn record_free_key(&mut self, meta: &ObjectMeta, key: &dyn Debug, bytes: &dyn Fn(&mut Vec<u8>)) {
        self.record_place();
        let has_parts = self.attempt.features.savepoints.any;
        let can_defer = self.attempt.can_defer();
        if let Some(log) = self.attempt.log() {
            let recorded = log.recorded_key(meta, &NamedKey { key, bytes });
            // No other attempt installs a version of the key while its new record is locked.
            log.read(&recorded, recorded.version(), ReadKind::Absent);
            if can_defer && !has_parts {
                log.change(&recorded);
            }
        }
    }

    /// Records that an item's key has a pending write although it was not read. Needed where scans may find the pending
    /// write: keys that they do not find are taken to have been absent.
    pub fn record_intent(&mut self, id: ItemId) {
        let item = self.attempt.items.get(id);
        // SAFETY: the item's segment is its object's, and in memory until the attempt ends.
        let recorded = unsafe { self.attempt.recorded_key(item.object(), item.segment()) };
        if let (Some(log), Some(recorded)) = (self.attempt.log(), recorded) {
            log.intend(&recorded);
        }
    }

    /// Returns the moment at which a scan begins, if the attempt is recorded.
    #[inline]
    pub fn begin_range(&mut self) -> Option<u64> {
        let point = self.attempt.features.snapshot.as_ref().map(|point| point.history());
        self.attempt.log().map(|log| point.unwrap_or_else(|| log.stamp()))
    }

    /// Records a scan that began at `from` and covered the range between two bounds, given by the bytes that
    /// [`Object::name`] would append.
    pub fn record_range(&mut self, meta: &ObjectMeta, low: Bound<&[u8]>, high: Bound<&[u8]>, from: u64) {
        if let Some(log) = self.attempt.log() {
            log.range(meta, low, high, from);
        }
    }
}
