//! The end of a commit: install, leave, tell.

use super::Drp;
use super::commit::Place;
use super::progress::RANK_MAX;
use hotrow_core::{Attempt, Flags, ItemId};
use hotrow_sync::atomic::{Ordering, fence};
use hotrow_sync::thread::label;

impl Drp {
    /// Installs all pending writes and leaves all lines, each at its turn. Nothing can fail any more.
    pub(super) fn install(&self, attempt: &mut Attempt<Self>) {
        label("install");
        self.end_restructuring(attempt);
        if self.options.opaque {
            // Sequentially consistent: see `keep_opaque`.
            self.clock.fetch_add(1, Ordering::SeqCst);
        }
        // Orders having joined before the stores to the values; pairs with the fence in `Line::stable`.
        fence(Ordering::Release);
        let inserts = attempt.changes_structure();
        if inserts {
            // Who finds a new row may line up for it, and be before this attempt elsewhere: it must not have to wait
            // for anybody from then on.
            for at in 0..attempt.local.places.len() {
                self.take_turn(attempt, attempt.local.places[at].item, true);
            }
        }
        // What others want most is ranked highest, and left first. New rows are all there before any of them is left, and
        // before a group is left, which has no value: who comes next there finds them.
        let mut rows_are_there = !inserts;
        for at in (0..attempt.local.places.len()).rev() {
            let Place { item, writes, .. } = attempt.local.places[at];
            if !rows_are_there && writes && attempt.items.get(item).payload().is_null() {
                Self::each_born(attempt, |attempt, id| attempt.install(id));
                rows_are_there = true;
            }
            self.install_and_leave(attempt, at);
        }
        if inserts {
            if !rows_are_there {
                Self::each_born(attempt, |attempt, id| attempt.install(id));
            }
            Self::each_born(attempt, |attempt, id| attempt.items.get(id).header().leave_born());
        }
        self.tell(attempt);
    }

    /// Installs the pending write at a place, if there is one, and leaves the line, unless that has been done.
    #[inline]
    fn install_and_leave(&self, attempt: &mut Attempt<Self>, at: usize) {
        let Place { item, has_left, .. } = attempt.local.places[at];
        if !has_left && attempt.items.get(item).is(Flags::WRITE) {
            self.take_turn(attempt, item, true);
            attempt.install(item);
        }
        self.leave(attempt, at);
    }

    fn each_born(attempt: &mut Attempt<Self>, mut visit: impl FnMut(&mut Attempt<Self>, ItemId)) {
        for at in 0..attempt.items.writes().len() {
            let id = attempt.items.writes()[at];
            if attempt.items.get(id).is(Flags::BORN) {
                visit(attempt, id);
            }
        }
    }

    /// Leaves a line in which the attempt only reads, and has read.
    #[inline]
    pub(super) fn leave_read(attempt: &mut Attempt<Self>, id: ItemId) {
        let Attempt { items, local, .. } = attempt;
        let item = items.get_mut(id);
        if item.mark.place == 0 {
            // The attempt has made the segment.
            return;
        }
        item.clear(Flags::LOCKED);
        local.places[item.mark.place as usize - 1].leave(item.header());
    }

    /// Leaves a line at its turn, unless that has been done.
    #[inline]
    fn leave(&self, attempt: &mut Attempt<Self>, at: usize) {
        let Attempt { items, local, .. } = attempt;
        let place = &mut local.places[at];
        if place.has_left {
            return;
        }
        let line = items.get(place.item).header();
        if !place.has_turn {
            self.look_for_turn(place, line, true);
        }
        place.leave(line);
    }

    /// Leaves every line, each at its turn, and tells who waits. An attempt that aborts does the same: what it had
    /// recorded is nullified (drp §5.2).
    pub(super) fn leave_all(&self, attempt: &mut Attempt<Self>) {
        Self::each_born(attempt, |attempt, id| attempt.items.get(id).header().leave_born());
        if !attempt.local.has_begun {
            return;
        }
        self.end_restructuring(attempt);
        if !attempt.local.has_finished {
            // Who is behind must not overtake those who are before.
            self.finish(attempt);
        }
        for at in 0..attempt.local.places.len() {
            self.leave(attempt, at);
        }
        self.tell(attempt);
    }

    /// Tells who waits for what the attempt has done.
    #[inline]
    fn tell(&self, attempt: &Attempt<Self>) {
        let worker = u64::from(attempt.worker().number());
        let places = attempt.local.places.iter().map(|place| place.rank);
        // Who has found a row that was inserted may have lined up for it before its maker had left.
        let items = &attempt.items;
        let born = items.writes().iter().map(|id| items.get(*id)).filter(|item| item.is(Flags::BORN));
        self.progress.tell(places.chain(born.map(|item| item.rank().min(RANK_MAX))).chain([worker]));
    }
}
