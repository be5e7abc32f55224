//! What an attempt records of itself in a history.

use crate::features::history::recorder::{Log, Named, RecordedKey, Recorder};
use crate::features::history::{Ended, ReadKind};
use crate::features::pieces::Piece;
use crate::features::state::State;
use crate::kernel::attempt::Attempt;
use crate::kernel::item::{Flags, ItemId};
use crate::kernel::object::Object;
use crate::kernel::object::WriteKind;
use crate::kernel::profile::Isolation;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use hotrow_sync::Arc;
use std::ptr::NonNull;

impl<P: Protocol> Attempt<P> {
    /// Returns the recorder of the attempt, if it is recorded.
    pub(crate) fn recorder(&self) -> Option<Arc<Recorder>> {
        self.features.log.as_ref().map(|log| log.recorder())
    }

    /// True if the attempt is recorded in a history.
    #[inline]
    pub(crate) fn is_recorded(&self) -> bool {
        self.features.log.is_some()
    }

    /// The attempt's log, if it is recorded.
    pub(crate) fn log(&mut self) -> Option<&mut Log> {
        self.features.log.as_deref_mut()
    }

    /// Returns the recorder's entry of a segment's key, if the attempt is recorded.
    ///
    /// # Safety
    ///
    /// The segment is the object's and in memory.
    pub(crate) unsafe fn recorded_key(
        &self,
        object: &dyn Object<P>,
        segment: NonNull<P::Header>,
    ) -> Option<Arc<RecordedKey>> {
        // SAFETY: the caller's promise.
        self.features.log.as_deref().map(|log| unsafe { recorded_key_of(log, object, segment) })
    }

    /// Returns the version in the history of the value that an item's pending write will replace. `None` if no history is recorded, by this
    /// attempt or others: snapshots name the versions that they read, and those of one that began before the recording has ended may read
    /// what attempts replace that began later.
    pub(crate) fn history_of(&self, id: ItemId) -> Option<u64> {
        let recorder = self.features.announcement.as_ref()?.snapshots().recorder.get()?;
        if recorder.is_finished() {
            return None;
        }
        let item = self.items.get(id);
        // SAFETY: the item's segment is its object's, and in memory until the attempt ends.
        let key = unsafe { NamedSegment::new(item.object(), item.segment()) };
        Some(recorder.version_of(item.object().meta(), &key))
    }

    /// Records the end of the attempt.
    pub(crate) fn record_end(&mut self, outcome: Ended) {
        let State { log: Some(log), piece, ends_later, log_goes_on, records_later: false, .. } =
            &mut self.features
        else {
            return;
        };
        *log_goes_on = false;
        if outcome == Ended::Committed {
            log.read_predicates(|item| self.items.get(item).is(Flags::PREDICATE));
            if piece.goes_on() || *ends_later {
                log.end_piece();
                *log_goes_on = true;
                return;
            }
        } else if piece.is_later() {
            log.undo_piece();
            *log_goes_on = true;
            return;
        }
        log.end(outcome);
    }

    /// Ends a transaction in pieces before its last one. Nothing is open.
    #[cold]
    pub(crate) fn end_pieces(&mut self) {
        self.features.log_goes_on = false;
        if let Some(log) = &mut self.features.log {
            log.end(Ended::Committed);
            self.close_log();
        }
        if let Some(announcement) = &mut self.features.announcement {
            announcement.end();
        }
        self.features.stamp = None;
    }

    /// Records the evaluation of a predicate. The transaction depends on the last one before its commit.
    pub(crate) fn record_predicate(&self, id: ItemId, recorded: &RecordedKey, version: u64) {
        if let Some(log) = &self.features.log {
            log.predicate(id, recorded, version);
        }
    }

    /// Records a read.
    pub(crate) fn record_read(&mut self, recorded: &RecordedKey, version: u64, kind: ReadKind) {
        if let Some(log) = &mut self.features.log {
            log.read(recorded, version, kind);
        }
    }

    /// Records that a key was found, with a value of no version.
    pub(crate) fn find_unrecorded(&mut self, recorded: &RecordedKey) {
        if let Some(log) = &mut self.features.log {
            log.find_unrecorded(recorded);
        }
    }

    /// Records the installation of all pending writes.
    pub(crate) fn record_installed(&mut self) {
        let Self { items, features: State { log: Some(log), .. }, .. } = self else { return };
        items.writes().iter().for_each(|id| log.installed(*id));
    }

    /// Finds the keys of all pending writes, before any of them is installed. Users' code makes their names and may
    /// panic, which it must not do between one installation and the next.
    #[cold]
    pub(crate) fn name_writes(&mut self) {
        let Self { items, features: State { log: Some(log), piece, .. }, .. } = self else { return };
        for id in items.writes() {
            let item = items.get(*id);
            if let Some(mut effect) = item.object().effect(item) {
                if effect == WriteKind::Commute && *piece == Piece::Whole {
                    // Its place in the order is that of its lock, as of any other write.
                    effect = WriteKind::Update;
                }
                // SAFETY: the item's segment is its object's, and in memory until the attempt ends.
                let recorded = unsafe { recorded_key_of(log, item.object(), item.segment()) };
                log.will_write(*id, recorded, effect);
            }
        }
        log.sort_writes();
    }

    /// Begins the log of the attempt, if its engine is recorded.
    #[inline(always)]
    pub(crate) fn open_log(&mut self) {
        let announcement = self.features.announcement.as_ref();
        if announcement.is_some_and(|announcement| announcement.snapshots().recorder.get().is_some()) {
            self.open_log_now();
        }
    }

    #[cold]
    #[inline(never)]
    fn open_log_now(&mut self) {
        let Some(announcement) = &self.features.announcement else { return };
        let Some(recorder) = announcement.snapshots().recorder.get() else { return };
        // The log of a later piece is that of the first.
        if recorder.is_open() && self.features.log.is_none() {
            let log = self.features.spare_log.take();
            let mut log = log.unwrap_or_else(|| Box::new(Log::new(recorder.clone(), self.worker)));
            let begun = self.features.snapshot.as_ref().map(|point| point.history_begin());
            log.begin(self.number(), self.profile.isolation != Isolation::ReadCommitted, begun);
            self.features.log = Some(log);
        }
        if self.features.log.is_some() {
            self.hears.add(const { Moments::PREPARING.and(Moments::INSTALLING).and(Moments::CLOSED) });
        }
    }

    #[cold]
    pub(crate) fn close_log(&mut self) {
        if let Some(mut log) = self.features.log.take() {
            log.close();
            self.features.spare_log = Some(log);
            self.note_or_not();
        }
    }
}

/// A segment's key, named by its object.
struct NamedSegment<'o, P: Protocol> {
    object: &'o dyn Object<P>,
    segment: NonNull<P::Header>,
}

impl<'o, P: Protocol> NamedSegment<'o, P> {
    /// # Safety
    ///
    /// The segment is the object's, and in memory as long as the name.
    unsafe fn new(object: &'o dyn Object<P>, segment: NonNull<P::Header>) -> Self {
        Self { object, segment }
    }
}

impl<P: Protocol> Named for NamedSegment<'_, P> {
    fn bytes(&self, bytes: &mut Vec<u8>) {
        // SAFETY: the segment is the object's and in memory (`new`).
        unsafe { self.object.name(self.segment, bytes) };
    }

    fn text(&self) -> String {
        // SAFETY: as for `bytes`.
        unsafe { self.object.describe(self.segment) }
    }
}

/// # Safety
///
/// The segment is the object's and in memory.
unsafe fn recorded_key_of<P: Protocol>(
    log: &Log,
    object: &dyn Object<P>,
    segment: NonNull<P::Header>,
) -> Arc<RecordedKey> {
    // SAFETY: the caller's promise.
    log.recorded_key(object.meta(), &unsafe { NamedSegment::new(object, segment) })
}
