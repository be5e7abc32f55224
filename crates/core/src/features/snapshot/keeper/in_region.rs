//! Keeping versions in a region: a stamped commit that takes no locks.
//!
//! Before the region, the commit *plans*: it looks which of the values that it is going to replace must be kept, and makes room for them in
//! the table. It does so without locks, so what it has found may be wrong when the region runs. The region checks that nothing has
//! changed: the clock and the newest point are those of the plan, and each segment for which the plan matters is at the version that it had
//! before. If not, it aborts itself ([`STALE`]), and the commit plans again.
//!
//! In the region, each version is kept as under locks: an entry is made, which takes over the segment's box, and is put into its list. So
//! entry and new value are there at the same moment, and a reader that loads a part of the new value finds the entry.
//!
//! # What an abort leaves
//!
//! Room in the table is given back. Entries are freed, without their values, which are the segments' still
//! ([`made_in_region`](crate::memory::held_back::made_in_region)). Flags of items and the list of entries are reset. A simulation does not undo the
//! table, whose lists depend on addresses and are no part of a run; so there the entries are put in right after the region has
//! committed, where nothing comes between.
//!
//! # What no region does
//!
//! A late change of a transaction in pieces that belongs to a version kept before (dbx-tc, Algorithm 1) is made under locks. That is rare: a
//! snapshot must have begun between the transaction's two pieces, and another transaction must have changed the row since.

use super::super::points::Stamping;
use super::{Keeping, KeptWrites, is_needed, latest_of, segment_of};
use crate::features::region::{Late, STALE};
use crate::features::stamp::CommitStamp;
use crate::features::state::State;
use crate::kernel::attempt::Attempt;
use crate::kernel::item::{Flags, Item, ItemId};
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use crate::memory::versions::{EntryHead, Keeper, Versions, note_epoch};
use hotrow_sync::region;
use std::mem;
use std::ptr::NonNull;

/// What a region does for snapshots.
#[derive(Default)]
pub(crate) struct RegionPlan {
    /// What commits are stamped with; `None` if they are not.
    stamping: Option<Stamping>,
    /// The commit's stamp.
    epoch: u64,
    segments: Vec<PlannedSegment>,
    /// The level of the table that has room, and for how many entries.
    room: (usize, usize),
    /// The entries that the region has made.
    made: Vec<NonNull<EntryHead>>,
}

/// A segment at a version at which the plan is right.
struct PlannedSegment {
    id: ItemId,
    /// The header's word.
    word: u64,
    /// The stamp at which its value has superseded another one, if the value must be kept.
    since: Option<u64>,
}

impl<P: Protocol> Attempt<P> {
    /// Plans what a region will do for snapshots. `word` reads an item's header: a commit to the segment changes it.
    ///
    /// # Errors
    ///
    /// If a version lacks one of the attempt's changes.
    #[inline]
    pub(crate) fn plan_region(&mut self, word: impl Fn(&Item<P>) -> u64) -> Result<(), Late> {
        let stamping =
            self.features.announcement.as_ref().and_then(|announcement| announcement.snapshots().stamping());
        let plan = &mut self.features.kept.plan;
        plan.segments.clear();
        plan.room = (0, 0);
        plan.stamping = stamping;
        match stamping {
            Some(stamping) => self.plan_versions(stamping, word),
            None => Ok(()),
        }
    }

    #[cold]
    fn plan_versions(&mut self, stamping: Stamping, word: impl Fn(&Item<P>) -> u64) -> Result<(), Late> {
        let Self {
            features: State { announcement: Some(announcement), kept, piece, stamp, .. },
            items,
            pin: Some(pin),
            ..
        } = self
        else {
            return Ok(());
        };
        let (snapshots, plan) = (announcement.snapshots(), &mut kept.plan);
        plan.epoch = stamp.map_or(stamping.clock, CommitStamp::epoch);
        if stamping.newest == 0 {
            return Ok(());
        }
        // As in `begin_keeping`.
        let superseded = plan.epoch.min(stamping.newest);
        // A commit with a later stamp may replace the segment meanwhile, and keep a version that lacks this attempt's change.
        let others_are_later = plan.epoch != stamping.clock;
        for id in items.writes() {
            let item = items.get(*id);
            // Before the table is searched, so that entries of later commits change it.
            let word = word(item);
            let own = item.touched.newest_commit();
            let since = latest_of((item, own), snapshots, pin);
            if since > plan.epoch && piece.is_later() {
                return Err(Late);
            }
            let since = is_needed((item, own), (since, superseded), snapshots).then_some(since);
            if since.is_some() || others_are_later {
                plan.segments.push(PlannedSegment { id: *id, word, since });
            }
        }
        let entries = plan.segments.iter().filter(|segment| segment.since.is_some()).count();
        if entries > 0 {
            // So that the region does not allocate for its lists.
            plan.made.reserve(entries);
            kept.owning.reserve(entries);
            plan.room = (snapshots.versions().make_room(entries), entries);
            kept.chunks.prepare(pin);
        }
        Ok(())
    }

    /// In the region: aborts it if the plan is not right any more.
    #[inline]
    pub(crate) fn check_plan(&self, word: impl Fn(&Item<P>) -> u64) {
        let plan = &self.features.kept.plan;
        let stamping =
            self.features.announcement.as_ref().and_then(|announcement| announcement.snapshots().stamping());
        let is_right = |segment: &PlannedSegment| word(self.items.get(segment.id)) == segment.word;
        if stamping != plan.stamping || !plan.segments.iter().all(is_right) {
            region::abort::<STALE>();
        }
    }

    /// In the region, before anything is installed: keeps what the plan says.
    #[inline]
    pub(crate) fn keep_planned(&mut self) {
        if self.features.kept.plan.room.1 > 0 {
            self.keep_planned_now();
        }
        if self.features.kept.plan.stamping.is_some() {
            let items = self.items.writes().iter().map(|id| self.items.get(*id));
            for own in items.filter_map(|item| item.touched.newest_commit()) {
                note_epoch(own, self.features.kept.plan.epoch);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn keep_planned_now(&mut self) {
        self.hears.add(Moments::INSTALLING);
        for at in 0..self.features.kept.plan.segments.len() {
            let PlannedSegment { id, since: Some(since), .. } = self.features.kept.plan.segments[at] else {
                continue;
            };
            let history = self.history_of(id).unwrap_or(0);
            let Self {
                features: State { announcement: Some(announcement), kept, .. },
                items,
                pin: Some(pin),
                ..
            } = self
            else {
                return;
            };
            let (snapshots, plan) = (announcement.snapshots(), &mut kept.plan);
            let newest = plan.stamping.map_or(0, |stamping| stamping.newest);
            let item = items.get(id);
            let stamps = (since, plan.epoch.min(newest));
            let mut keeper = Keeper::new((&mut kept.chunks, pin), segment_of(item), stamps, history);
            // SAFETY: the item has a pending write of its object, which is not installed; the region, at one moment, is as good as
            // the segment's lock.
            unsafe { item.object().keep(item, &mut keeper) };
            let Keeper { kept: Some(entry), owns, .. } = keeper else { continue };
            plan.made.push(entry);
            if region::undoes_all_memory() {
                snapshots.versions().put(plan.room.0, entry);
            }
            if owns {
                kept.owning.push((id, entry));
                items.get_mut(id).mark_as(Flags::KEPT);
            }
        }
    }

    /// After the region: ends what the plan has begun. `committed`: the region has, and with it the attempt.
    #[inline]
    pub(crate) fn settle_plan(&mut self, committed: bool) {
        if self.features.kept.plan.stamping.is_some() {
            self.settle_plan_now(committed);
        }
        if self.features.stamp.is_some() {
            self.hears.add(Moments::BETWEEN);
        }
        // Nothing is left to be kept, also if the stamp is that of an earlier piece.
        self.features.kept.was_region = committed && self.features.stamp.is_some();
    }

    #[cold]
    #[inline(never)]
    fn settle_plan_now(&mut self, committed: bool) {
        let Self { features: State { announcement: Some(announcement), kept, stamp, .. }, items, .. } = self
        else {
            return;
        };
        let snapshots = announcement.snapshots();
        let KeptWrites { plan, owning, places, .. } = &mut *kept;
        let made = if committed { mem::take(&mut plan.made) } else { Vec::new() };
        let (level, entries) = mem::take(&mut plan.room);
        for entry in &made {
            if !region::undoes_all_memory() {
                snapshots.versions().put(level, *entry);
            }
            snapshots.versions().count_bytes(EntryHead::bytes(*entry));
            places.push_back(Versions::place_of(level, *entry));
        }
        if entries > made.len() {
            snapshots.versions().give_back(level, entries - made.len());
        }
        if !committed {
            // In a simulation, the abort has undone none of it.
            plan.made.clear();
            for (id, _) in owning.drain(..) {
                items.get_mut(id).unmark(Flags::KEPT);
            }
            return;
        }
        stamp.get_or_insert_with(|| CommitStamp::new(plan.epoch, 0));
        let newest = kept.plan.stamping.map_or(0, |stamping| stamping.newest);
        if newest != 0 {
            kept.unswept += made.len();
            let stamp = kept.plan.epoch;
            kept.keeping = Some(Keeping { stamp, superseded: stamp.min(newest), is_later: false });
        } else if kept.is_time_to_look() {
            snapshots.rest();
        }
        // To be used again.
        kept.plan.made = made;
        kept.plan.made.clear();
    }
}
