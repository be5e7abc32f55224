//! Segments that have the epoch of their newest commit beside them: see [`ObjectMeta::noting_commits`](crate::ObjectMeta::noting_commits).
//!
//! A commit puts the version that it replaces into the table, then notes its epoch, and installs after that. So if a reader finds an epoch below its
//! snapshot's number, what it has loaded before is its value. Otherwise it looks for a version that was current at its number. If there is
//! none, there was nothing: versions of a segment follow each other without a gap from its making on, but for those that no snapshot needs.

use super::{EntryHead, SegmentId, Versions};
use crate::memory::pin::Pin;
use hotrow_sync::atomic::{AtomicU64, Ordering, fence};
use std::ptr::NonNull;

/// Where the value is that a segment had for a snapshot.
pub(crate) enum Found {
    InSegment,
    Version(NonNull<EntryHead>),
    /// There was none. Only of segments that have the epoch.
    Nowhere,
}

/// Notes a commit's epoch in a segment, whose lock the caller holds. The version that it replaces is in the table.
pub(crate) fn note_epoch(own: &AtomicU64, epoch: u64) {
    // A transaction in pieces may come after one with a later epoch.
    if own.load(Ordering::Relaxed) < epoch {
        // Release: pairs with the acquire in `look_up`, so that who sees the epoch finds the version.
        own.store(epoch, Ordering::Release);
    }
}

impl Versions {
    /// Finds where the value is that a segment, which was loaded just now, had for a snapshot. `own`: where it has its newest epoch.
    pub(crate) fn look_up(
        &self,
        own: Option<&AtomicU64>,
        segment: SegmentId,
        snapshot: u64,
        pin: &Pin,
    ) -> Found {
        // Acquire: pairs with the release fence between the noting and the installation.
        fence(Ordering::Acquire);
        // Acquire: pairs with the release in `note_epoch`.
        if own.is_some_and(|own| own.load(Ordering::Acquire) < snapshot) {
            return Found::InSegment;
        }
        match self.find(segment, snapshot, pin) {
            // SAFETY: found under the pin.
            Some(entry) if own.is_none() || unsafe { entry.as_ref() }.since < snapshot => {
                Found::Version(entry)
            }
            None if own.is_none() => Found::InSegment,
            _ => Found::Nowhere,
        }
    }
}
