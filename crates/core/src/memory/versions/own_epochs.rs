//! Segments that have the epoch of their newest commit beside them: see [`ObjectMeta::noting_commits`](crate::ObjectMeta::noting_commits).
//!
//! A commit puts the version that it replaces into the table, then notes its epoch, and installs after that. So if a reader finds an epoch below its
//! snapshot's number, what it has loaded before is its value. Otherwise it looks for a version that was current at its number. If there is
//! none, there was nothing: versions of a segment follow each other without a gap from its making on, but for those that no snapshot needs.
//!
//! A commit that has not replaced the value after all takes back its epoch, and then its version.

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

impl EntryHead {
    /// Takes back an entry whose value was not replaced after all, and the epoch that was noted in its segment. The caller holds the segment's lock,
    /// and the value is still the segment's.
    pub(crate) fn take_back(&self, own: Option<&AtomicU64>) {
        if let Some(own) = own {
            // Relaxed: before the entry, which releases it.
            own.store(self.since, Ordering::Relaxed);
        }
        // Release: pairs with the acquire of who walks along the list.
        self.is_void.store(true, Ordering::Release);
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
        loop {
            // Acquire: pairs with the release in `note_epoch`.
            let newest = own.map(|own| own.load(Ordering::Acquire));
            if newest.is_some_and(|newest| newest < snapshot) {
                return Found::InSegment;
            }
            if let Some(entry) = self.find(segment, snapshot, pin) {
                // SAFETY: found under the pin.
                let is_later = own.is_some() && unsafe { entry.as_ref() }.since >= snapshot;
                return if is_later { Found::Nowhere } else { Found::Version(entry) };
            }
            match own.zip(newest) {
                None => return Found::InSegment,
                // Relaxed: who has found an entry void, with acquire, finds what was stored before.
                Some((own, newest)) if own.load(Ordering::Relaxed) == newest => return Found::Nowhere,
                Some(_) => {}
            }
        }
    }
}
