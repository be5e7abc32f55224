//! The end of a commit: install the writes, leave the lines, tell the waiters.

use super::Drp;
use super::clock_block::ClockBlock;
use super::commit::{HeldTicket, rank_of};
use crate::host::Host;
use hotrow_core::{Attempt, Flags, Item, ItemId, OneByOne, Prepared};
use hotrow_sync::atomic::{Ordering, fence};
use hotrow_sync::thread::label;

impl Drp {
    /// Installs all pending writes and leaves all lines. All turns have come, so it waits for nobody. It must not
    /// wait: an attempt that finds a new row may join its line, and be before this attempt in another one.
    pub(super) fn install<H: Host<Self>>(&self, prepared: Prepared<'_, H>) {
        label("install");
        let mut prepared = prepared.one_by_one();
        if self.options.opaque {
            // All turns have come, so an attempt that comes later in a line has a later clock value: see "Opacity"
            // in `clock_block.rs`. Sequentially consistent: see `keep_opaque`.
            let clock = self.clock.fetch_add(1, Ordering::SeqCst) + 1;
            let attempt = prepared.attempt();
            H::local_mut(&mut attempt.local).clock_block = ClockBlock::of(clock);
            self.removals.note(attempt, clock);
        }
        // Orders the joins before the stores to the values; pairs with the fence in `TicketLock::stable`.
        fence(Ordering::Release);
        let inserts = prepared.attempt().changes_structure();
        // The most contended segments have the highest ranks, so they are left first. All new rows are installed
        // before any of their lines is left, and before a line is left where the next attempt relies on finding
        // them.
        let mut rows_are_there = !inserts;
        for at in (0..H::local(&prepared.attempt().local).tickets.len()).rev() {
            let HeldTicket { item: id, has_left, .. } = H::local(&prepared.attempt().local).tickets[at];
            let item = prepared.attempt().items.get(id);
            let (writes, is_after_inserts) = (item.is(Flags::WRITE), item.is(Flags::RELEASE_AFTER_INSERTS));
            if !rows_are_there && is_after_inserts {
                Self::install_inserted(&mut prepared);
                rows_are_there = true;
            }
            if has_left {
                continue;
            }
            if writes {
                prepared.install(id);
            }
            self.leave(prepared.attempt(), at);
        }
        if inserts {
            if !rows_are_there {
                Self::install_inserted(&mut prepared);
            }
            Self::leave_inserted(prepared.attempt());
        }
        self.tell(prepared.attempt());
    }

    fn install_inserted<H: Host<Self>>(prepared: &mut OneByOne<'_, H>) {
        for at in 0..prepared.attempt().items.writes().len() {
            let id = prepared.attempt().items.writes()[at];
            if prepared.attempt().items.get(id).is(Flags::INSERTED) {
                prepared.install(id);
            }
        }
    }

    fn leave_inserted<H: Host<Self>>(attempt: &Attempt<H>) {
        Self::each_inserted(attempt, |item| {
            H::header(item.header()).leave_inserted(H::local(&attempt.local).clock_block)
        });
    }

    fn each_inserted<H: Host<Self>>(attempt: &Attempt<H>, visit: impl FnMut(&Item<H>)) {
        let items = attempt.items.writes().iter().map(|id| attempt.items.get(*id));
        items.filter(|item| item.is(Flags::INSERTED)).for_each(visit);
    }

    /// Leaves a line in which the attempt only reads, after the read.
    #[inline]
    pub(super) fn leave_read<H: Host<Self>>(attempt: &mut Attempt<H>, id: ItemId) {
        let Attempt { items, local, .. } = attempt;
        let local = H::local_mut(local);
        let item = items.get_mut(id);
        if H::mark(item.mark).ticket == 0 {
            // The attempt has made the segment.
            return;
        }
        item.clear(Flags::LOCKED);
        local.tickets[H::mark(item.mark).ticket as usize - 1]
            .leave(H::header(item.header()), local.clock_block);
    }

    /// Leaves a line at its turn, unless it has left already.
    #[inline]
    pub(super) fn leave<H: Host<Self>>(&self, attempt: &mut Attempt<H>, at: usize) {
        let Attempt { items, local, .. } = attempt;
        let local = H::local_mut(local);
        let held = &mut local.tickets[at];
        if held.has_left {
            return;
        }
        let item = items.get(held.item);
        if !held.has_turn {
            self.look_for_turn(held, item, true);
        }
        held.leave(H::header(item.header()), local.clock_block);
    }

    /// Leaves every line, each at its turn, and tells the waiters. An attempt that aborts does the same: its
    /// recorded operations are nullified (drp §5.2).
    pub(super) fn leave_all<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        Self::leave_inserted(attempt);
        self.end_scout(attempt);
        if !H::local(&attempt.local).stage.has_begun() {
            return;
        }
        self.end_restructuring(attempt);
        if !H::local(&attempt.local).stage.has_finished() {
            // Attempts behind this one must not overtake those before it.
            self.finish_in_order(attempt);
        }
        for at in 0..H::local(&attempt.local).tickets.len() {
            if self.options.opaque && !H::local(&attempt.local).tickets[at].has_left {
                self.take_turn(attempt, H::local(&attempt.local).tickets[at].item, true);
                // Nothing was written, but attempts before it may have written. Relaxed: its turn makes their clock
                // values visible.
                H::local_mut(&mut attempt.local).clock_block =
                    ClockBlock::of(self.clock.load(Ordering::Relaxed));
            }
            self.leave(attempt, at);
        }
        self.tell(attempt);
    }

    /// Tells everybody who waits for this attempt.
    #[inline]
    pub(super) fn tell<H: Host<Self>>(&self, attempt: &Attempt<H>) {
        let worker = u64::from(attempt.worker().number());
        let items = &attempt.items;
        let ranks = H::local(&attempt.local).tickets.iter().map(|held| rank_of(items.get(held.item)));
        // An attempt that has found an inserted row may have joined its line before the row's maker had left.
        let inserted = items.writes().iter().map(|id| items.get(*id)).filter(|item| item.is(Flags::INSERTED));
        self.progress.tell(ranks.chain(inserted.map(rank_of)).chain([worker]));
    }
}
