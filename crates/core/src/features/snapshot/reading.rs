//! Reading on a snapshot.

use super::handle::ReadPoint;
use crate::features::history::ReadKind;
use crate::features::history::recorder::{NamedKey, RecordedKey};
use crate::kernel::abort::{Abort, Misuse};
use crate::kernel::attempt::Attempt;
use crate::kernel::item::ItemId;
use crate::kernel::object::Object;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::object_access::room_of_access;
use crate::kernel::protocol::Protocol;
use crate::memory::identity::ObjectMeta;
use crate::memory::versions::{EntryHead, Found, SegmentId, UNRECORDED};
use hotrow_sync::Arc;
use hotrow_sync::atomic::AtomicU64;
use std::fmt::Debug;
use std::ptr::NonNull;

room_of_access!(
    /// The part of an access that asks of the snapshot on which its transaction reads.
    SnapshotAccess,
    snapshot,
    snapshot_mut
);

/// A segment's value on a snapshot.
#[derive(Debug)]
pub enum OnSnapshot<'a, V, K> {
    /// The result of `load`, stable: the segment still has the value.
    Present(V),
    /// The version that was [kept](crate::Object::keep) when the value was replaced.
    Kept(&'a K),
    /// There was none: a commit that the snapshot does not see has made the segment. Only of objects that
    /// [note commits](ObjectMeta::noting_commits).
    MadeLater,
}

/// The removed segments that somebody may see.
#[derive(Debug, Clone, Copy)]
pub struct Sight {
    number: u64,
    is_unlimited: bool,
}

impl Sight {
    /// That of who sees all.
    pub const UNLIMITED: Self = Self { number: 0, is_unlimited: true };

    /// That of a snapshot with a number.
    pub fn of_snapshot(number: u64) -> Self {
        Self { number, is_unlimited: false }
    }

    /// True if a segment may be seen that a commit with the first stamp has made, and one with the second, or an earlier one, has removed.
    #[inline]
    pub fn has(self, (made, removed): (u64, u64)) -> bool {
        self.is_unlimited | ((made < self.number) & (self.number <= removed))
    }
}

/// The absence of a key on a snapshot, as it is recorded.
#[derive(Debug)]
pub struct AbsenceOnSnapshot {
    recorded: Arc<RecordedKey>,
    /// The earliest version found that stands for the absence.
    version: u64,
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// True if the transaction reads on a [snapshot](crate::Snapshot). Its operations use [`read_on_snapshot`](crate::SnapshotAccess::read_on_snapshot)
    /// alone: there are no items, and the protocol is not called.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn is_on_snapshot(&self) -> bool {
        !self.attempt.logs_reads_only() && self.attempt.features.snapshot.is_some()
    }

    fn read_point(&self) -> &ReadPoint {
        self.attempt.features.snapshot.as_deref().expect("the transaction reads on a snapshot")
    }

    /// Finds the version of a segment that was loaded just now, and records the read.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline(never)]
    unsafe fn find_version(&mut self, object: &dyn Object<P>, segment: NonNull<P::Header>) -> Found {
        // SAFETY: the caller's promise.
        let recorded = unsafe { self.attempt.recorded_key(object, segment) };
        let version = recorded.as_ref().map_or(0, |recorded| recorded.version());
        // SAFETY: the caller's promise.
        let own = unsafe { object.meta().newest_commit(segment) };
        let place = self.look_up(own, object.meta(), segment.addr().get());
        if let Some(recorded) = recorded {
            let found = match place {
                // SAFETY: found under the attempt's pin.
                Found::Version(entry) => Some(unsafe { entry.as_ref() }.history),
                // A commit that is recorded keeps a version of what was not there, too.
                Found::InSegment | Found::Nowhere => None,
            };
            self.attempt.features.kept.found = found;
            if found == Some(UNRECORDED) {
                self.attempt.find_unrecorded(&recorded);
            } else {
                self.attempt.record_read(&recorded, found.unwrap_or(version), ReadKind::Value);
            }
        }
        place
    }

    /// Finds where the value is of a segment that was loaded just now. `own`: where it has its newest epoch.
    fn look_up(&self, own: Option<&AtomicU64>, meta: &ObjectMeta, address: usize) -> Found {
        let ReadPoint { snapshots, opened } = self.read_point();
        let segment = SegmentId { address, object: meta.number() };
        snapshots.versions().look_up(own, segment, opened.number, self.pin())
    }

    /// As [`read_on_snapshot`](Self::read_on_snapshot), for what stands at a place and is no segment.
    ///
    /// # Safety
    ///
    /// `K` is the type of what was kept for the place.
    pub(crate) unsafe fn find_in_place<K: 'static>(&self, meta: &ObjectMeta, address: usize) -> Option<&K> {
        let Found::Version(entry) = self.look_up(None, meta, address) else { return None };
        // SAFETY: the caller's promise, and the attempt is pinned.
        Some(unsafe { EntryHead::value::<K>(entry) })
    }

    /// Ends a transaction on a snapshot that has come to an operation which asks the protocol: a datatype that has no snapshots.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn refuse_on_snapshot(&mut self, meta: &ObjectMeta) -> Result<(), Abort> {
        if self.is_on_snapshot() { Err(self.snapshot_mut().no_snapshots(meta)) } else { Ok(()) }
    }

    /// As [`refuse_on_snapshot`](Self::refuse_on_snapshot), for an item of a datatype.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn refuse_item_on_snapshot(&mut self, id: ItemId) -> Result<(), Abort> {
        if self.is_on_snapshot() { Err(self.no_snapshots_of(id)) } else { Ok(()) }
    }

    #[cold]
    fn no_snapshots_of(&mut self, id: ItemId) -> Abort {
        let name = self.attempt.items.get(id).object().meta().name().to_owned();
        self.misuse(Misuse::Unsupported(format!("{name} cannot be read on a snapshot")))
    }
}

impl<P: Protocol> SnapshotAccess<'_, P> {
    /// Which removed segments the transaction's snapshot may see: all if a history is recorded, which names the versions of absences, too.
    pub fn sight(&self) -> Sight {
        let ReadPoint { snapshots, opened } = self.read_point();
        if snapshots.recorder.get().is_some() { Sight::UNLIMITED } else { Sight::of_snapshot(opened.number) }
    }

    /// Reads a segment as it was for the transaction's snapshot.
    ///
    /// # Safety
    ///
    /// As for [`read`](crate::ObjectAccess::read). `K` is the type of what the object keeps of this segment. The transaction is [on a
    /// snapshot](crate::ObjectAccess::is_on_snapshot). What is kept may be used until the access is used again.
    pub unsafe fn read_on_snapshot<V, K: 'static, O: Object<P> + 'static>(
        &mut self,
        object: &O,
        segment: NonNull<P::Header>,
        load: impl FnOnce() -> V,
    ) -> OnSnapshot<'_, V, K> {
        let loaded = load();
        // SAFETY: the caller's promise.
        match unsafe { self.find_version(object, segment) } {
            // SAFETY: the object keeps values of this type, and the attempt is pinned.
            Found::Version(entry) => OnSnapshot::Kept(unsafe { EntryHead::value::<K>(entry) }),
            Found::InSegment => OnSnapshot::Present(loaded),
            Found::Nowhere => OnSnapshot::MadeLater,
        }
    }

    /// Begins to look for a key, which may turn out to be absent on the snapshot, if the attempt is recorded. `bytes` appends the
    /// bytes that [`Object::name`] would append for a segment of the key.
    pub fn begin_absence(
        &mut self,
        meta: &ObjectMeta,
        key: &dyn Debug,
        bytes: &dyn Fn(&mut Vec<u8>),
    ) -> Option<AbsenceOnSnapshot> {
        let recorded = self.attempt.log()?.recorded_key(meta, &NamedKey { key, bytes });
        let version = recorded.version();
        Some(AbsenceOnSnapshot { recorded, version })
    }

    /// Notes that the segment read last has no value on the snapshot.
    pub fn note_absent_version(&mut self, absence: &mut Option<AbsenceOnSnapshot>) {
        self.history_mut().forget_read();
        if let (Some(absence), Some(version)) = (absence, self.attempt.features.kept.found) {
            // Commits after the snapshot may have made the key present several times. The first one has replaced the absence
            // that the snapshot sees, and its version is the earliest.
            absence.version = absence.version.min(version);
        }
    }

    /// Records that the key was absent.
    pub fn end_absence(&mut self, absence: Option<AbsenceOnSnapshot>) {
        if let Some(AbsenceOnSnapshot { recorded, version }) = absence {
            self.attempt.record_read(&recorded, version, ReadKind::Absent);
        }
    }

    /// Ends the transaction because a datatype has no snapshots.
    #[cold]
    pub fn no_snapshots(&mut self, meta: &ObjectMeta) -> Abort {
        self.misuse(Misuse::Unsupported(format!("{} cannot be read on a snapshot", meta.name())))
    }

    /// Pins the epoch anew, so that a long operation on a snapshot does not keep memory from being freed. Everything that was
    /// found under the old pin is lost.
    ///
    /// # Safety
    ///
    /// The transaction is on a snapshot, and nothing found under the pin is used afterwards.
    pub unsafe fn repin(&mut self) {
        if let Some(pin) = &mut self.attempt.pin {
            pin.renew();
        }
    }
}

impl<P: Protocol> Attempt<P> {
    /// Ends the reading of a snapshot. Frees memory, and so may run users' code.
    #[cold]
    pub(crate) fn leave_snapshot(&mut self) {
        let point = self.features.snapshot.take();
        self.features.snapshot_read = point.map_or(0, |point| point.number());
    }
}
