//! Keeping versions: what a commit does between its halves. One that is a region does it inside (`in_region`).

mod in_region;

use crate::features::state::State;
use crate::kernel::engine::Engine;
use in_region::RegionPlan;

use super::Sweep;
use super::points::{Announcement, Snapshots};
use crate::kernel::attempt::Attempt;
use crate::kernel::item::{Flags, Item, ItemId};
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use crate::memory::identity::ObjectMeta;
use crate::memory::pin::Pin;
use crate::memory::versions::{Chunks, EntryHead, Keeper, Place, Redo, SegmentId, Versions, note_epoch};
use hotrow_sync::atomic::{AtomicU64, Ordering, fence};
use hotrow_sync::{Arc, local};
use std::cell;
use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::ptr::NonNull;
use std::sync::Weak;

local! {
    /// The stamp of the commit that the thread is installing, if it keeps versions; 0 otherwise.
    static KEEPING: cell::Cell<u64> = cell::Cell::new(0);
}

/// The number of stamped commits from one look at whether snapshots are still in use to the next.
const COMMITS_PER_LOOK: u32 = if cfg!(test) { 4 } else { 64 };

/// The number of versions that a worker keeps from one sweep to the next.
const SWEEP_AFTER: usize = if cfg!(test) { 4 } else { 256 };

/// The number of versions for which a commit asks for room at a time.
const ROOM: usize = if cfg!(test) { 2 } else { 64 };

/// The versions that an attempt's commit has handed over to snapshots: for each, the item whose box the entry owns from the
/// installation on.
#[derive(Default)]
pub(crate) struct KeptWrites {
    owning: Vec<(ItemId, NonNull<EntryHead>)>,
    /// Commits that were stamped, until the next look.
    commits: u32,
    /// Versions kept since the worker last swept.
    unswept: usize,
    /// A number that no open snapshot is below, nor will one be; from the last sweep.
    oldest: u64,
    /// The level of the table that has room for the commit's versions, and for how many; the bytes of those that are there.
    room: (usize, usize),
    bytes: usize,
    /// The memory for entries.
    chunks: Chunks,
    /// The versions that the worker has kept, and not found unneeded since.
    places: VecDeque<Place>,
    /// The commit's stamps, if it keeps versions: from before it installs anything until it has ended.
    keeping: Option<Keeping>,
    /// The versions in the history of what will be replaced, if one is recorded, by the items.
    histories: Vec<(ItemId, u64)>,
    /// The commit was a region, which has kept what had to be kept.
    was_region: bool,
    /// What a region will keep, if its commit is stamped.
    plan: RegionPlan,
    /// The version in the history of the value that was found last for the attempt's snapshot, if it was replaced since.
    pub(super) found: Option<u64>,
}

/// The stamps by which a commit keeps versions.
#[derive(Clone, Copy)]
struct Keeping {
    /// The commit's epoch.
    stamp: u64,
    /// The stamp that the values get which it replaces.
    superseded: u64,
    /// True if it is a later piece of its transaction.
    is_later: bool,
}

impl KeptWrites {
    /// Keeps the value that an item's pending write is going to replace, if a snapshot may need it.
    ///
    /// # Safety
    ///
    /// The item has a pending write of its object, which is installed next, and the segment is locked.
    #[inline]
    unsafe fn keep<P: Protocol>(
        &mut self,
        (id, item): (ItemId, &mut Item<P>),
        announcement: Option<&Announcement>,
        pin: &Pin,
    ) {
        let (Some(keeping), Some(announcement)) = (self.keeping, announcement) else { return };
        let (snapshots, touched) = (announcement.snapshots(), item.touched);
        let own = touched.newest_commit();
        // Relaxed: the segment is locked.
        let stamps = |own: &AtomicU64| (own.load(Ordering::Relaxed), keeping.superseded);
        if !(P::ALLOWS_CHOPPING && keeping.is_later)
            && let Some(epoch) = own
            && !is_needed((item, own), stamps(epoch), snapshots)
        {
            note_epoch(epoch, keeping.stamp);
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.keep_in((id, item), own, keeping, (snapshots, pin)) };
        }
        // INVARIANT 14: A value that a snapshot may need is kept before it is replaced.
        // Release: pairs with the acquire fence of a reader. If it loads a part of what is installed next, it finds the epoch and the entry.
        fence(Ordering::Release);
    }

    /// Keeps the value that an item's pending write is going to replace, unless it turns out that no snapshot needs it, or makes a late
    /// change in those that were kept. `own`: where the segment has the epoch of its newest commit, which it notes there.
    ///
    /// # Safety
    ///
    /// As for [`keep`](Self::keep).
    #[cold]
    #[inline(never)]
    unsafe fn keep_in<P: Protocol>(
        &mut self,
        (id, item): (ItemId, &mut Item<P>),
        own: Option<&AtomicU64>,
        Keeping { stamp, superseded, is_later }: Keeping,
        (snapshots, pin): (&Snapshots, &Pin),
    ) {
        let segment = segment_of(item);
        let shared = snapshots.newest_commits().filter(|_| own.is_none());
        let before = shared.map(|newest| newest.note_segment(segment.address, stamp));
        // No open snapshot, nor a later one, is between the last change and this number: that it was so early is all that is to be known.
        let since = before.filter(|before| *before < self.oldest);
        let since = since.unwrap_or_else(|| latest_of((item, own), snapshots, pin));
        if is_needed((item, own), (since, superseded), snapshots) {
            let recorded = self.histories.binary_search_by_key(&id, |(id, _)| *id);
            let history = recorded.map_or(0, |at| self.histories[at].1);
            let mut keeper = Keeper::new((&mut self.chunks, pin), segment, (since, superseded), history);
            // SAFETY: the caller's promise.
            unsafe { item.object().keep(item, &mut keeper) };
            let Keeper { kept, owns, .. } = keeper;
            if let Some(entry) = kept {
                self.put(entry, snapshots.versions());
                if owns {
                    self.owning.push((id, entry));
                    item.mark_as(Flags::KEPT);
                }
            }
        } else if P::ALLOWS_CHOPPING && is_later && since > stamp {
            for entry in snapshots.versions().superseded_after(segment, stamp, pin) {
                let redo = Redo { versions: snapshots.versions(), entry, stamp, pin };
                // SAFETY: the caller's promise.
                unsafe { item.object().redo(item, redo) };
            }
        }
        // After the entry is in the table.
        if let Some(own) = own {
            note_epoch(own, stamp);
        }
    }

    /// Puts an entry in the table.
    fn put(&mut self, entry: NonNull<EntryHead>, versions: &Versions) {
        let (level, left) = &mut self.room;
        if *left == 0 {
            (*level, *left) = (versions.make_room(ROOM), ROOM);
        }
        *left -= 1;
        versions.put(*level, entry);
        self.places.push_back(Versions::place_of(*level, entry));
        self.bytes += EntryHead::bytes(entry);
        self.unswept += 1;
    }

    /// True from [`Attempt::begin_keeping`] until the commit has ended, if it keeps versions.
    pub(crate) fn are_kept(&self) -> bool {
        self.keeping.is_some()
    }

    /// Counts a commit. True at one in some.
    fn is_time_to_look(&mut self) -> bool {
        self.commits += 1;
        self.commits.is_multiple_of(COMMITS_PER_LOOK)
    }

    /// Takes back the entry of a write that has not replaced its value after all. The segment is still locked.
    #[cold]
    #[inline(never)]
    pub(crate) fn not_replaced<P: Protocol>(&self, (id, item): (ItemId, &Item<P>)) {
        debug_assert!(item.touched.newest_commit().is_none(), "a segment that notes commits is replaced");
        for (_, entry) in self.owning.iter().filter(|(kept, _)| *kept == id) {
            // SAFETY: a commit that has stamped an entry keeps its point from being passed, so the entry has not been swept; the
            // attempt is pinned besides.
            unsafe { entry.as_ref() }.make_void();
        }
    }
}

/// The stamp at which the value of an item's segment has superseded another one; 0 if that is not known. `own`: where the segment has the
/// epoch of its newest commit, if it has it.
fn latest_of<P: Protocol>(
    (item, own): (&Item<P>, Option<&AtomicU64>),
    snapshots: &Snapshots,
    pin: &Pin,
) -> u64 {
    if let Some(own) = own {
        // Relaxed: the segment is locked, or it is looked at again.
        return own.load(Ordering::Relaxed);
    }
    // A segment that the attempt has made has no versions. (Those of another one that had its address are needed no more.)
    if item.is(Flags::INSERTED) { 0 } else { snapshots.versions().latest(segment_of(item), pin) }
}

/// True if a snapshot may need the value that an item's commit is going to replace, with the stamps at which it has superseded another one, and
/// is superseded itself. If the commit has made the segment, snapshots know from its epoch alone that they do not see it; but a recorded history
/// must know besides what was there before.
fn is_needed<P: Protocol>(
    (item, own): (&Item<P>, Option<&AtomicU64>),
    (since, superseded): (u64, u64),
    snapshots: &Snapshots,
) -> bool {
    let is_made_later = item.is(Flags::INSERTED) && snapshots.recorder.get().is_none() && own.is_some();
    since < superseded && !is_made_later
}

/// The name of an item's segment.
fn segment_of<P: Protocol>(item: &Item<P>) -> SegmentId {
    SegmentId { address: item.touched.address(), object: item.object().meta().number() }
}

impl<P: Protocol> Attempt<P> {
    /// Begins the keeping of values that the commit is going to replace, if snapshots are in use. Everything to be written is
    /// locked, and nothing is installed. Each value is kept right before it is replaced, so that what is locked first, and installed
    /// first, is not locked while all others are copied.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_keeping(&mut self) {
        let Some(stamp) = self.features.stamp else { return };
        if P::ALLOWS_REGIONS && mem::take(&mut self.features.kept.was_region) {
            return;
        }
        let State { announcement: Some(announcement), kept, piece, .. } = &mut self.features else { return };
        let snapshots = announcement.snapshots();
        let newest = snapshots.newest();
        if newest == 0 {
            if !kept.places.is_empty() {
                // They were taken out when the keeping was stopped.
                kept.places = VecDeque::new();
            }
            if kept.is_time_to_look() {
                snapshots.rest();
            }
            return;
        }
        // A value that was replaced after the newest point began is needed by no other point than those.
        let superseded = stamp.epoch().min(newest);
        let keeping = Keeping { stamp: stamp.epoch(), superseded, is_later: piece.is_later() };
        if snapshots.recorder.get().is_some() {
            // Naming keys runs users' code, which may panic: before anything is installed.
            let writes = self.items.writes().iter();
            let mut histories: Vec<_> = writes.map_while(|id| Some((*id, self.history_of(*id)?))).collect();
            histories.sort_unstable_by_key(|(id, _)| *id);
            self.features.kept.histories = histories;
        }
        self.features.kept.keeping = Some(keeping);
        KEEPING.with(|keeping| keeping.set(superseded));
        self.hears.add(Moments::INSTALLING);
    }

    /// Keeps the value that an item's pending write is going to replace, if the commit keeps versions.
    ///
    /// # Safety
    ///
    /// The item has a pending write of its object, which is installed next, and the segment is locked.
    pub(crate) unsafe fn keep_version(&mut self, id: ItemId) {
        let Self { features: State { kept, announcement, .. }, items, pin: Some(pin), .. } = self else {
            return;
        };
        if kept.keeping.is_some() {
            // SAFETY: the caller's promise.
            unsafe { kept.keep((id, items.get_mut(id)), announcement.as_ref(), pin) };
        }
    }

    /// Ends the keeping of versions, when everything is installed or nothing will be.
    #[inline]
    pub(crate) fn end_keeping(&mut self) {
        if self.features.kept.keeping.is_some() {
            self.end_keeping_now();
        }
    }

    #[cold]
    #[inline(never)]
    fn end_keeping_now(&mut self) {
        KEEPING.with(|keeping| keeping.set(0));
        self.features.kept.owning.clear();
        self.features.kept.keeping = None;
        let Some(announcement) = &self.features.announcement else { return };
        let versions = announcement.snapshots().versions();
        let (level, left) = mem::take(&mut self.features.kept.room);
        if left > 0 {
            versions.give_back(level, left);
        }
        let bytes = mem::take(&mut self.features.kept.bytes);
        if bytes > 0 {
            versions.count_bytes(bytes);
        }
        if self.features.kept.unswept >= SWEEP_AFTER {
            // Twice as many as there are new ones, so that no more are there than twice those that are needed, and some.
            let looks = 2 * mem::take(&mut self.features.kept.unswept);
            self.features.kept.oldest =
                announcement.snapshots().sweep_places(&mut self.features.kept.places, looks);
        }
        if self.features.kept.is_time_to_look() {
            announcement.snapshots().stop_keeping(false);
        }
    }
}

/// The engine's snapshots, as structures see them that keep removed segments: see [`Engine::kept_segments`](crate::Engine).
#[derive(Clone)]
pub struct KeptSegments(pub(crate) Arc<Snapshots>);

impl fmt::Debug for KeptSegments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptSegments").finish_non_exhaustive()
    }
}

impl KeptSegments {
    /// The stamp of the commit that this thread is installing, if the commit keeps versions.
    pub fn keeping() -> Option<u64> {
        let stamp = KEEPING.with(cell::Cell::get);
        (stamp != 0).then_some(stamp)
    }

    /// The number of the newest snapshot, if snapshots are in use: it may see what a commit has removed before now.
    pub fn newest(&self) -> Option<u64> {
        let newest = self.0.newest();
        (newest != 0).then_some(newest)
    }

    /// Returns a test: may a snapshot need what a commit with the first stamp has made, and one with the second one, or an
    /// earlier one, has removed?
    pub fn needs(&self) -> impl Fn(u64, u64) -> bool + use<> {
        let open = self.0.open_numbers();
        move |made, removed| open.may_need(made, removed)
    }

    /// The stamp before which no snapshot needs a segment that was deleted: that of the commit that has made it, or a later one. The segment is
    /// in memory, and has the epoch of its newest commit.
    pub fn needed_since(&self, meta: &ObjectMeta, address: usize, pin: &Pin) -> u64 {
        if self.0.recorder.get().is_some() {
            // The history names the version of an absence, which the segment's versions tell.
            return 0;
        }
        self.0.versions().since(SegmentId { address, object: meta.number() }, pin)
    }

    /// Lets a structure be swept when snapshots end, or no longer, according to whether it keeps any segment.
    pub fn register(&self, structure: &Weak<dyn Sweep>, keeps: bool) {
        self.0.register(structure, keeps);
    }

    /// Keeps what stands at a place and is no segment, if the caller installs a change of a commit that [keeps
    /// versions](Self::keeping), and no other version was kept since the newest snapshot. True if it was kept. The caller keeps
    /// all others from changing the place.
    pub(crate) fn keep_in_place<V: Send + 'static>(
        &self,
        meta: &ObjectMeta,
        address: usize,
        value: impl FnOnce() -> V,
        bytes: usize,
    ) -> bool {
        let Some(stamp) = Self::keeping() else { return false };
        let segment = SegmentId { address, object: meta.number() };
        let since = self.0.versions().latest(segment, &Pin::new());
        if since >= stamp {
            return false;
        }
        self.0.versions().keep(segment, (since, stamp), 0, value(), bytes);
        // As in `KeptWrites::keep`.
        fence(Ordering::Release);
        true
    }
}

impl<P: Protocol> Engine<P> {
    /// The engine's snapshots, for structures that keep removed segments.
    pub fn kept_segments(&self) -> KeptSegments {
        KeptSegments(self.shared.features.snapshots.clone())
    }
}
