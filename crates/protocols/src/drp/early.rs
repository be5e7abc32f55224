//! Early places: a wild transaction that has lost lines up before its body runs, for what it has touched before.
//!
//! An option (`drp+early`), because its body then runs while it holds lines, for which others wait without a deadline. Bodies that wait
//! for other transactions may wait for ever.
//!
//! # Algorithm
//!
//! A wild attempt reads without a place, so it loses wherever there always is a writer in line. Its next attempt knows what it
//! has to do with: its *footprint* ([`hotrow_core::deferred`]). Before its body runs, it joins the lines of the footprint in the
//! order of ranks, as a tame attempt joins its lines (drp §4.1). The body then reads and writes each segment of the footprint
//! at its turn. Nobody can invalidate such a read. What is not in the footprint is read without a place, as always. A write
//! that is not in the footprint joins its line at the commit, but only if it can be alone there: it never waits.
//!
//! The footprint are all segments that the attempt has written, or was going to write, and those reads over which it has lost.
//! Other reads stay without a place, so that a segment that is read often and written seldom has no line of readers.
//!
//! A transaction whose first read meets a writer in line has a footprint of one segment. It would lose once for each further
//! one, with the places that it has so far. So such an attempt goes on as a *scout*: it takes a place in that one line, reads at
//! its turn, and leaves at once. It holds nothing meanwhile, and behind it others go on as behind an attempt that has aborted.
//! It does so at each read that meets a writer, and loses at its end, with its whole footprint.
//!
//! # Taming
//!
//! Attempts behind an unfinished one do not finish, so none of their intentions runs. So an attempt with early places that needs
//! no certification finishes before its body runs, as a tame one does before its intentions. For that its footprint must be
//! whole: it contains all reads, too, and the attempt before has executed its body to the end, and has observed no index, no
//! predicate, no datatype with locks of its own, and has deleted nothing. If it was going to insert rows, the attempt announces
//! that before it finishes, as tame ones do, until its body has ended. If such a *tamed* attempt touches anything else, it is
//! aborted, and the next one is not tamed.
//!
//! A tamed attempt is in the same position as a tame one whose intentions run: its place in the serial order is fixed, all that it
//! reads and writes is held by its places, it waits only for attempts that have finished, and it may still fail without any
//! effect. So the arguments for tame attempts hold for it. An attempt that has finished must not read without a place: an
//! attempt behind it may have finished, too, and left the line of a read early, so that a third one may come between.
//!
//! # Why there is no deadlock
//!
//! An attempt with early places joins its lines before it waits for any turn, in the order of ranks, each when all before it
//! have passed that rank. It waits in no other line. That is all that the argument in the head of [`drp`](super) relies on. A
//! line that it joins alone adds nobody before it. A scout holds no place but the one in which it waits. A transaction that
//! waits for another one in its own body, however, may wait for one that is behind it in a line.

use super::Drp;
use super::commit::{HeldTicket, rank_of};
use super::order::Planned;
use super::stage::Stage;
use super::ticket_lock::TicketLock;
use crate::host::Host;
use hotrow_core::{Access, Attempt, ConflictCause, ConflictTarget, Flags, Item, ItemId, Reason};
use hotrow_sync::thread::label;

/// The taming of a transaction's next attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Taming {
    /// It is not tamed.
    #[default]
    Not,
    /// It can be tamed.
    Next {
        /// True if it is going to insert rows.
        inserts: bool,
    },
    /// No further one is tamed: one that was has lost.
    Never,
}

impl Drp {
    /// True if an attempt that meets a writer in the line of `id` may go on as a scout.
    fn may_scout<H: Host<Self>>(&self, attempt: &Attempt<H>, id: ItemId) -> bool {
        self.options.early
            && !H::local(&attempt.local).stage.has_begun()
            // It sees states of different moments.
            && !self.options.opaque
            && !attempt.is_last()
            && !attempt.profile().read_only
            // Others would meet its new rows while it waits.
            && !attempt.changes_structure()
            && !attempt.has_hooks()
            && !attempt.items.get(id).is(Flags::READ)
            // Its maker may hold it for long.
            && !H::header(attempt.items.get(id).header()).is_new()
    }

    /// Waits for the attempt's turn in a segment's line, to read it and [leave the line](Self::end_scout). From then on the attempt is a scout.
    /// False if it must not become one.
    pub(super) fn begin_scout<H: Host<Self>>(&self, attempt: &mut Attempt<H>, id: ItemId) -> bool {
        if !self.may_scout(attempt, id) {
            return false;
        }
        // It has the line still if what loaded its value has panicked.
        self.end_scout(attempt);
        label("scout");
        attempt.become_scout(ConflictCause::item(Reason::ReadLocked, id));
        let worker = attempt.worker().number();
        let rank = rank_of(attempt.items.get(id));
        H::local_mut(&mut attempt.local).forget_lines();
        let commit = self.progress.begin(worker, Some(rank));
        // As a writer, because the next writer would have to wait for a reader's turn before it goes on.
        self.join(attempt, Planned { rank, item: id, writes: true }, worker);
        self.advance(attempt, commit, None);
        self.let_all_pass(attempt);
        // It is going to change nothing, so those behind it may finish, and run their intentions elsewhere.
        self.wait_for_predecessors(attempt);
        self.progress.finish(worker);
        self.take_turn(attempt, id, true);
        H::local_mut(&mut attempt.local).scouted = Some(id);
        true
    }

    /// Leaves the line in which a scout has read a segment, if it is in one.
    #[cold]
    pub(super) fn end_scout<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        let Some(id) = H::local_mut(&mut attempt.local).scouted.take() else { return };
        self.leave(attempt, 0);
        self.tell(attempt);
        H::local_mut(&mut attempt.local).forget_lines();
        let item = attempt.items.get_mut(id);
        H::mark_mut(&mut item.mark).ticket = 0;
        item.clear(Flags::LOCKED);
    }

    /// Joins the lines of a footprint before the body runs.
    pub(super) fn join_early<H: Host<Self>>(&self, attempt: &mut Attempt<H>, footprint: &[(ItemId, Access)]) {
        label("line up");
        let Attempt { items, local, .. } = attempt;
        let local = H::local_mut(local);
        local.forget_lines();
        for (id, access) in footprint {
            let (rank, writes) = (rank_of(items.get(*id)), *access == Access::Write);
            local.plan.add(Planned { rank, item: *id, writes });
        }
        local.stage = Stage::Early;
        local.calm.meet();
        Self::sort_plan(attempt);
        let joined = self.join_planned(attempt, false, None);
        debug_assert!(joined.is_ok(), "nothing was read before");
        H::local_mut(&mut attempt.local).plan.clear();
        let taming = &mut H::local_mut(&mut attempt.local).taming;
        if let Taming::Next { inserts } = *taming {
            *taming = Taming::Not;
            self.tame(attempt, inserts);
        } else {
            self.let_all_pass(attempt);
        }
    }

    /// Finishes an attempt before its body runs.
    fn tame<H: Host<Self>>(&self, attempt: &mut Attempt<H>, inserts: bool) {
        if inserts && !self.options.two_phase {
            // Before it finishes, as in `finish_tame`.
            self.wait_for_predecessors(attempt);
            H::local_mut(&mut attempt.local).is_restructuring = true;
            self.progress.toggle_restructuring(attempt.worker().number());
        }
        self.finish_in_order(attempt);
        H::local_mut(&mut attempt.local).stage = Stage::Tamed;
    }

    /// Waits for the turn at a segment that the body reads.
    pub(super) fn take_early_turn<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        writes: bool,
    ) -> Result<(), ConflictCause> {
        if H::mark(attempt.items.get(id).mark).ticket == 0 {
            // A tamed attempt reads a segment in whose line it is not.
            H::local_mut(&mut attempt.local).wanted.push((id, writes));
            return Err(ConflictCause::item(Reason::ReadLocked, id));
        }
        self.take_turn(attempt, id, true);
        H::local_mut(&mut attempt.local).has_read |= H::local(&attempt.local).stage != Stage::Tamed;
        Ok(())
    }

    /// Checks that an attempt that has joined lines before its body may write a segment.
    pub(super) fn may_write_early<H: Host<Self>>(
        attempt: &mut Attempt<H>,
        id: ItemId,
    ) -> Result<(), ConflictCause> {
        let Attempt { items, local, .. } = attempt;
        let local = H::local_mut(local);
        let item = items.get(id);
        let may = match (H::mark(item.mark).ticket as usize).checked_sub(1) {
            Some(held) => local.tickets[held].writes,
            None => local.stage != Stage::Tamed || item.is(Flags::INSERTED),
        };
        if may {
            return Ok(());
        }
        local.wanted.push((id, true));
        Err(ConflictCause::item(Reason::WriteLocked, id))
    }

    /// Joins the lines of writes and deferred operations that were not in the footprint, if the attempt can be alone in each.
    /// A tamed attempt must have none.
    pub(super) fn join_rest<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        let worker = attempt.worker().number();
        if H::local(&attempt.local).stage == Stage::Tamed
            && (attempt.has_hooks()
                || attempt.will_remove()
                || attempt.may_insert()
                    && !H::local(&attempt.local).is_restructuring
                    && !self.options.two_phase)
        {
            // It has items at least for its footprint.
            let first = attempt.items.ids().next();
            return first.map_or(Ok(()), |id| Err(ConflictCause::item(Reason::WriteLocked, id)));
        }
        let Attempt { items, local, .. } = attempt;
        let local = H::local_mut(local);
        for id in items.ids() {
            let item = items.get_mut(id);
            let writes = item.is_any(&[Flags::WRITE, Flags::DEFERRED_WRITE]);
            if item.is(Flags::INSERTED) || !(writes || item.is(Flags::DEFERRED)) {
                continue;
            }
            if let Some(held) = (H::mark(item.mark).ticket as usize).checked_sub(1) {
                if writes && !local.tickets[held].writes {
                    return Err(ConflictCause::item(Reason::WriteLocked, id));
                }
                continue;
            }
            let ticket = if local.stage == Stage::Tamed {
                None
            } else {
                H::header(item.header()).try_join_alone(worker)
            };
            let Some(ticket) = ticket else {
                return Err(ConflictCause::item(Reason::WriteLocked, id));
            };
            let (writes, has_turn, has_left) = (true, true, false);
            local.tickets.push(HeldTicket { ticket, item: id, writes, has_turn, has_left });
            H::mark_mut(&mut item.mark).ticket = local.tickets.len() as u32;
            item.set(Flags::LOCKED);
            if item.is(Flags::READ) && H::mark(item.mark).version != TicketLock::version_at(ticket) {
                return Err(ConflictCause::item(Reason::ReadChanged, id));
            }
        }
        Ok(())
    }

    /// Tells which segments an attempt that has lost was going to write, or has lost over. If the next attempt can be tamed, all
    /// that it has read, too.
    pub(super) fn keep_footprint<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        lost: &ConflictCause,
        keep: &mut dyn FnMut(&Item<H>, Access),
    ) {
        let local = H::local_mut(&mut attempt.local);
        let was_tamed = local.stage == Stage::Tamed || local.taming == Taming::Never;
        local.taming = if was_tamed { Taming::Never } else { Taming::Not };
        let local = H::local(&attempt.local);
        // One that had to touch more than it had said runs at once the next time, and touches what it needs. It knows too little
        // of that now to line up for it.
        let is_conflict_over_values =
            matches!(lost.reason(), Reason::ReadLocked | Reason::ReadChanged | Reason::WriteLocked);
        // A transaction that ran at once because it was calm may be tame, and one that is tame has places of its own.
        let is_wild = Self::is_wild(attempt) || lost.reason() == Reason::ReadLocked;
        // The body has been executed to its end, as far as is known.
        let is_whole = attempt.is_end_of_scout(lost) || local.stage.is_after_body();
        // An attempt that ends in its body, and could not become a scout, has seen too little.
        let is_enough = is_whole || local.stage.is_early() || self.options.opaque;
        if !self.options.early
            || !is_conflict_over_values
            || local.calm.is_at_once()
            || !is_wild && !was_tamed
            || !is_enough
            || attempt.profile().read_only
            || attempt.is_interactive()
        {
            return;
        }
        if let ConflictTarget::Item(id) = lost.target()
            && H::header(attempt.items.get(id).header()).is_new()
        {
            // Nobody may line up for it yet, so the next attempt would lose again.
            return;
        }
        let deletes = |item: &Item<H>| item.is(Flags::CLEANUP) && !item.is(Flags::INSERTED);
        let can_be_tamed = is_whole
            && !was_tamed
            && !attempt.has_structures()
            && !attempt.items.has_predicates()
            && !attempt.has_hooks()
            && !attempt.will_remove()
            && !attempt.items.iter().any(deletes);
        for (id, item) in attempt.items.entries() {
            // A new segment is its maker's until that has left, which it had if the segment was read.
            if item.is(Flags::INSERTED)
                || H::header(item.header()).is_new() && !item.is_any(&[Flags::READ, Flags::LOCKED])
            {
                continue;
            }
            let held =
                (H::mark(item.mark).ticket as usize).checked_sub(1).filter(|_| local.stage.has_begun());
            let held_to_write =
                held.is_some_and(|held| local.tickets[held].writes) && !self.options.exclusive;
            let wanted =
                local.wanted.iter().filter(|(wanted, _)| *wanted == id).map(|(_, writes)| *writes).max();
            if item.is_any(&[Flags::WRITE, Flags::DEFERRED_WRITE])
                || wanted == Some(true)
                || item.is(Flags::LOCKED) && held_to_write
            {
                keep(item, Access::Write);
            } else if item.is_any(&[Flags::LOCKED, Flags::DEFERRED])
                || wanted.is_some()
                || lost.target() == ConflictTarget::Item(id)
                || can_be_tamed && item.is(Flags::READ)
            {
                keep(item, Access::Read);
            }
        }
        if can_be_tamed {
            H::local_mut(&mut attempt.local).taming = Taming::Next { inserts: attempt.may_insert() };
        }
    }
}
