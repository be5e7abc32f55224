//! The steps of a commit: line up, certify, finish. The rest is in `install.rs`.

use super::clock_block::ClockBlock;
use super::order::Planned;
use super::progress::{RANK_MAX, WorkerProgress};
use super::stage::Stage;
use super::ticket_lock::{Ticket, TicketLock};
use super::{Drp, DrpLocal};
use crate::host::Host;
use crate::reads;
use hotrow_core::{Attempt, ConflictCause, Flags, Item, ItemId, LoggedRead, Reason};
use hotrow_sync::profile::waiting;
use hotrow_sync::thread::label;

/// A ticket in a segment's line.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeldTicket {
    pub(super) ticket: Ticket,
    pub(super) item: ItemId,
    pub(super) writes: bool,
    /// True if its turn is known to have come. The turn lasts until the line is left.
    pub(super) has_turn: bool,
    pub(super) has_left: bool,
}

impl HeldTicket {
    /// Leaves the line at its turn.
    #[inline]
    pub(super) fn leave(&mut self, line: &TicketLock, clock_block: ClockBlock) {
        self.has_left = true;
        if self.writes {
            line.leave_writing(self.ticket, clock_block);
        } else {
            line.leave_reading();
        }
    }
}

/// The rank of an item's segment.
pub(super) fn rank_of<H: Host<Drp>>(item: &Item<H>) -> u64 {
    item.rank().min(RANK_MAX)
}

impl Drp {
    /// True if the attempt depends on a value that it has read without being in line.
    #[inline]
    pub(super) fn is_wild<H: Host<Self>>(attempt: &Attempt<H>) -> bool {
        H::local(&attempt.local).has_read || attempt.has_structures() || attempt.items.has_predicates()
    }

    /// Plans the lines that the attempt has to join, in the order of ranks (drp §4.1, step 1). Segments with
    /// deferred operations are planned already.
    fn plan<H: Host<Self>>(attempt: &mut Attempt<H>) {
        let Attempt { items, local, .. } = attempt;
        let local = H::local_mut(local);
        local.forget_lines();
        for id in items.writes() {
            let item = items.get(*id);
            if !item.is_any(&[Flags::DEFERRED, Flags::INSERTED]) {
                local.plan.add(Planned { rank: rank_of(item), item: *id, writes: false });
            }
        }
        Self::sort_plan(attempt);
    }

    /// Sorts the plan. The joined part stays where it is, because everything else ranks higher.
    pub(super) fn sort_plan<H: Host<Self>>(attempt: &mut Attempt<H>) {
        let Attempt { items, local, .. } = attempt;
        let local = H::local_mut(local);
        local.plan.sort(|id| items.get(id).segment().addr().get());
    }

    /// Joins all planned lines in the order of ranks. If a border is given, only those of lower ranks: the
    /// operations that run next will determine the lines after it.
    pub(super) fn join_all<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        below: Option<u64>,
    ) -> Result<(), ConflictCause> {
        label("line up");
        let goes_on = H::local(&attempt.local).stage.has_begun();
        if goes_on {
            Self::sort_plan(attempt);
        } else {
            H::local_mut(&mut attempt.local).stage = Stage::BodyEnded;
            Self::look_before(attempt)?;
            Self::plan(attempt);
            H::local_mut(&mut attempt.local).stage = Stage::InLine;
        }
        self.join_planned(attempt, goes_on, below)
    }

    /// Checks the reads of an attempt that has made rows, before it lines up. If one has changed, or is going to, the attempt
    /// would lose in the end, and others would meet its rows meanwhile.
    fn look_before<H: Host<Self>>(attempt: &Attempt<H>) -> Result<(), ConflictCause> {
        if !H::local(&attempt.local).has_read || !attempt.changes_structure() {
            return Ok(());
        }
        let changed = |item: &Item<H>| {
            item.is(Flags::READ) && H::header(item.header()).version() != Some(H::mark(item.mark).version)
        };
        let lost = attempt.items.entries().find(|(_, item)| changed(item));
        lost.map_or(Ok(()), |(id, _)| Err(ConflictCause::item(Reason::ReadChanged, id)))
    }

    /// Joins the lines of a plan that is in order. `goes_on`: the attempt has joined a part of them before.
    pub(super) fn join_planned<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        goes_on: bool,
        below: Option<u64>,
    ) -> Result<(), ConflictCause> {
        let worker = attempt.worker().number();
        let below = below.map(|below| below.min(RANK_MAX));
        let next_after = |attempt: &Attempt<H>| {
            let next = H::local(&attempt.local).plan.get(H::local(&attempt.local).tickets.len());
            next.filter(|next| below.is_none_or(|below| next.rank < below))
        };
        let bound_of = |next: Option<Planned>| next.map(|next| next.rank).or(below);
        let mut next = next_after(attempt);
        let commit =
            if goes_on { self.progress.of(worker) } else { self.progress.begin(worker, bound_of(next)) };
        while let Some(planned) = next {
            if !H::local(&attempt.local).behind.is_empty()
                || !H::local(&attempt.local).behind_readers.is_empty()
            {
                // INVARIANT 28: An attempt joins a line only when all attempts before it have passed that rank, so that none is before itself.
                self.wait_for_predecessors_below(attempt, commit, planned.rank);
            }
            let at = H::local(&attempt.local).tickets.len();
            self.join(attempt, planned, worker);
            next = next_after(attempt);
            self.advance(attempt, commit, bound_of(next));
            let item = attempt.items.get(planned.item);
            // An attempt that has read another version will not be certified.
            if item.is(Flags::READ)
                && H::mark(item.mark).version
                    != TicketLock::version_at(H::local(&attempt.local).tickets[at].ticket)
            {
                return Err(ConflictCause::item(Reason::ReadChanged, planned.item));
            }
            if self.options.two_phase {
                self.take_turn(attempt, planned.item, true);
            }
        }
        if goes_on {
            // The bound said that more was to come, but possibly nothing was joined since.
            self.advance(attempt, commit, below);
        }
        Ok(())
    }

    /// Joins the lines of all writes, if it can be alone in each, in any order: an attempt that never waits in a line is in no
    /// circle of those that wait. Attempts behind it join no further line until it has finished.
    pub(super) fn join_alone<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        label("line up");
        let worker = attempt.worker().number();
        let Attempt { items, local, .. } = attempt;
        let local = H::local_mut(local);
        local.forget_lines();
        local.stage = Stage::InLine;
        self.progress.begin(worker, Some(0));
        // Those first whose line is to be left last: lines are left in the reverse of this order.
        for is_left_late in [true, false] {
            for (id, item) in items.writes_mut() {
                if item.is(Flags::INSERTED) || item.is(Flags::RELEASE_AFTER_INSERTS) != is_left_late {
                    continue;
                }
                let Some(ticket) = H::header(item.header()).try_join_alone(worker) else {
                    return Err(ConflictCause::item(Reason::WriteLocked, id));
                };
                let (writes, has_turn, has_left) = (true, true, false);
                local.tickets.push(HeldTicket { ticket, item: id, writes, has_turn, has_left });
                H::mark_mut(&mut item.mark).ticket = local.tickets.len() as u32;
                item.set(Flags::LOCKED);
            }
        }
        Ok(())
    }

    /// Joins the line of a segment that the body reads, and waits for its turn: a commit that begins early, in
    /// stages of one segment each. Only for attempts without writes, because writes may rank lower. False if the
    /// order of ranks does not allow it.
    #[cold]
    pub(super) fn read_in_line<H: Host<Self>>(&self, attempt: &mut Attempt<H>, id: ItemId) -> bool {
        let Attempt { items, local, .. } = &*attempt;
        let local = H::local(local);
        let rank = rank_of(items.get(id));
        let goes_on = local.stage == Stage::ReadsInLine;
        let is_in_body = local.stage.has_begun() == goes_on && local.plan.is_empty();
        let ranks_highest =
            !goes_on || local.tickets.last().is_some_and(|held| rank_of(items.get(held.item)) < rank);
        // A session may idle between two reads, and others would wait behind it.
        if attempt.is_interactive()
            || !attempt.profile().read_only
            || !is_in_body
            || !ranks_highest
            || items.get(id).is(Flags::READ)
        {
            return false;
        }
        // The maker of a new segment is in its line from the start, and has yet to join others, perhaps of a lower
        // rank and behind this attempt. Then each would wait for the other.
        if H::header(items.get(id).header()).is_new() {
            return false;
        }
        let worker = attempt.worker().number();
        let commit = if goes_on {
            self.progress.of(worker)
        } else {
            Self::plan(attempt);
            H::local_mut(&mut attempt.local).stage = Stage::ReadsInLine;
            self.progress.begin(worker, Some(rank))
        };
        if !H::local(&attempt.local).behind.is_empty() || !H::local(&attempt.local).behind_readers.is_empty()
        {
            self.wait_for_predecessors_below(attempt, commit, rank);
        }
        self.join(attempt, Planned { rank, item: id, writes: false }, worker);
        self.advance(attempt, commit, Some(rank + 1));
        self.take_turn(attempt, id, true);
        H::local_mut(&mut attempt.local).has_read = true;
        true
    }

    /// Waits until all predecessors have passed `rank` (drp §4.1, step 2).
    #[cold]
    fn wait_for_predecessors_below<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        commit: &WorkerProgress,
        rank: u64,
    ) {
        self.wait_passed(attempt, rank);
        self.wait_for_readers(attempt);
        // Attempts behind this one may now come up to this rank, because all attempts before it have passed it.
        commit.advance(Some(rank));
    }

    fn wait_passed<H: Host<Self>>(&self, attempt: &mut Attempt<H>, rank: u64) {
        let behind = &mut H::local_mut(&mut attempt.local).behind;
        behind.retain(|predecessor| !self.progress.has_finished(*predecessor));
        for predecessor in behind {
            self.progress.wait_passed(*predecessor, rank);
        }
    }

    /// Waits for the readers before this attempt. Readers leave only when they have finished.
    fn wait_for_readers<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        while let Some(readers) = H::local_mut(&mut attempt.local).behind_readers.pop() {
            let id = H::local(&attempt.local).tickets[readers as usize].item;
            self.take_turn(attempt, id, true);
        }
    }

    /// Publishes how far the attempt has come; `next` is the rank to be joined next. The bound is never ahead of a
    /// predecessor's bound, otherwise attempts behind this one would overtake the predecessor.
    #[inline]
    pub(super) fn advance<H: Host<Self>>(
        &self,
        attempt: &Attempt<H>,
        commit: &WorkerProgress,
        next: Option<u64>,
    ) {
        let DrpLocal { behind, behind_readers, .. } = H::local(&attempt.local);
        if behind.is_empty() && behind_readers.is_empty() {
            commit.advance(next);
        } else if behind_readers.is_empty() {
            // Readers publish no bound: until they have left, their progress is unknown.
            let bounds = behind.iter().map(|predecessor| self.progress.bound(*predecessor));
            commit.advance(next.into_iter().chain(bounds).min());
        }
    }

    /// Lets attempts behind a wild attempt join all their lines while it runs its intentions.
    pub(super) fn let_all_pass<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        if !H::local(&attempt.local).behind.is_empty() && H::local(&attempt.local).behind_readers.is_empty() {
            self.wait_passed(attempt, RANK_MAX);
            self.progress.of(attempt.worker().number()).advance(None);
        }
    }

    /// Joins a line and notes its predecessors there (drp §4.1, step 3).
    #[inline]
    pub(super) fn join<H: Host<Self>>(&self, attempt: &mut Attempt<H>, planned: Planned, worker: u32) {
        let Attempt { items, local, .. } = attempt;
        let local = H::local_mut(local);
        let item = items.get_mut(planned.item);
        let writes =
            self.options.exclusive || planned.writes || item.is_any(&[Flags::WRITE, Flags::DEFERRED_WRITE]);
        let line = H::header(item.header());
        let (ticket, last_writer) = if writes { line.join_writing(worker) } else { line.join_reading() };
        let has_turn = line.is_turn(ticket, writes);
        local.tickets.push(HeldTicket { ticket, item: planned.item, writes, has_turn, has_left: false });
        H::mark_mut(&mut item.mark).ticket = local.tickets.len() as u32;
        if !has_turn && !self.options.two_phase {
            self.note_predecessors(attempt, last_writer);
        }
    }

    /// Notes the attempt's predecessors in the line that it has joined last.
    #[cold]
    fn note_predecessors<H: Host<Self>>(&self, attempt: &mut Attempt<H>, last_writer: Option<u32>) {
        let Attempt { items, local, .. } = attempt;
        let local = H::local_mut(local);
        local.calm.meet();
        let at = local.tickets.len() - 1;
        let HeldTicket { item: id, ticket, writes, .. } = local.tickets[at];
        let line = H::header(items.get(id).header());
        // Behind readers the attempt must wait for its turn, which comes after that of all attempts before them.
        if writes && line.has_readers_before(ticket) {
            local.behind_readers.push(at as u32);
        } else if let Some(last_writer) = last_writer {
            let predecessor = self.progress.current(last_writer);
            // Checked again after the load of its serial number: see `Progress::current`.
            if line.has_writers_before(ticket) && !local.behind.contains(&predecessor) {
                local.behind.push(predecessor);
            }
        }
    }

    /// True if it is the attempt's turn in an item's line. With `wait`, waits for the turn.
    #[inline]
    pub(super) fn take_turn<H: Host<Self>>(&self, attempt: &mut Attempt<H>, id: ItemId, wait: bool) -> bool {
        let Attempt { items, local, .. } = attempt;
        let local = H::local_mut(local);
        let item = items.get_mut(id);
        if item.is(Flags::LOCKED) {
            return true;
        }
        self.take_turn_at(&mut local.tickets[H::mark(item.mark).ticket as usize - 1], item, wait)
    }

    /// As [`take_turn`](Self::take_turn), for an item whose place in its line is known.
    #[inline(always)]
    fn take_turn_at<H: Host<Self>>(&self, held: &mut HeldTicket, item: &mut Item<H>, wait: bool) -> bool {
        if !held.has_turn && !self.look_for_turn(held, item, wait) {
            return false;
        }
        item.set(Flags::LOCKED);
        true
    }

    #[cold]
    pub(super) fn look_for_turn<H: Host<Self>>(
        &self,
        held: &mut HeldTicket,
        item: &Item<H>,
        wait: bool,
    ) -> bool {
        let HeldTicket { ticket, writes, .. } = *held;
        let line = H::header(item.header());
        held.has_turn = line.is_turn(ticket, writes);
        if !held.has_turn && wait {
            let _waiting = waiting("its turn in the line", item.segment().addr().get());
            self.progress.wait(rank_of(item), || line.is_turn(ticket, writes));
            held.has_turn = true;
        }
        held.has_turn
    }

    /// Waits for all predecessors and publishes that the attempt has finished (drp §4.1, step 6), which fixes its
    /// place in the serial order. The stamp is drawn before that, so that attempts that see it finished draw later
    /// ones.
    pub(super) fn finish_in_order<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        self.wait_for_predecessors(attempt);
        attempt.draw_stamp();
        let stage = &mut H::local_mut(&mut attempt.local).stage;
        *stage = stage.finished();
        self.progress.finish(attempt.worker().number());
    }

    /// Finishes a tame attempt, whose intentions run from now on. If one of them is going to change an index, this
    /// is published for wild attempts.
    pub(super) fn finish_tame<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        if attempt.will_restructure() && !self.options.two_phase {
            // Before it finishes, because then attempts behind it may finish, and others behind them.
            self.wait_for_predecessors(attempt);
            let worker = attempt.worker().number();
            if attempt.will_remove() {
                // The insertions of earlier attempts must find the rows that this one is going to delete. It waits
                // before it publishes its own change, otherwise two such attempts would wait for each other.
                self.progress
                    .wait_for_restructuring(worker, &mut H::local_mut(&mut attempt.local).restructuring);
            }
            H::local_mut(&mut attempt.local).is_restructuring = true;
            self.progress.toggle_restructuring(worker);
        }
        self.finish_in_order(attempt);
    }

    /// Publishes that the attempt's changes of indexes are done, or will not be made.
    pub(super) fn end_restructuring<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        if std::mem::take(&mut H::local_mut(&mut attempt.local).is_restructuring) {
            self.progress.toggle_restructuring(attempt.worker().number());
        }
    }

    pub(super) fn wait_for_predecessors<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        while let Some(predecessor) = H::local_mut(&mut attempt.local).behind.pop() {
            self.progress.wait_finished(predecessor);
        }
        self.wait_for_readers(attempt);
    }

    /// Checks everything that a wild attempt depends on (drp §4.2, step 4).
    pub(super) fn certify<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        if !Self::is_wild(attempt) {
            return Ok(());
        }
        label("certify");
        self.wait_for_predecessors(attempt);
        if self.options.opaque {
            // So every attempt before it in a line has advanced the clock before any attempt comes after it by its
            // checks: see "Opacity" in `clock_block.rs`.
            self.take_all_turns(attempt);
        }
        if attempt.items.has_predicates() {
            for at in 0..H::local(&attempt.local).tickets.len() {
                let id = H::local(&attempt.local).tickets[at].item;
                if attempt.items.get(id).is(Flags::PREDICATE) {
                    self.take_turn(attempt, id, true);
                }
            }
        }
        Self::check_predicates(attempt)?;
        // INVARIANT 12: A commit draws its stamp under all its locks and before it validates, so that no successor has a smaller stamp.
        attempt.draw_stamp();
        self.check_observations(attempt)
    }

    /// Waits for the attempt's turn in all lines that it has not left.
    pub(super) fn take_all_turns<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        let Attempt { items, local, .. } = attempt;
        let local = H::local_mut(local);
        for held in local.tickets.iter_mut().filter(|held| !held.has_left) {
            self.take_turn_at(held, items.get_mut(held.item), true);
        }
    }

    /// Checks everything that the attempt has read.
    pub(super) fn check_all<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        Self::check_predicates(attempt)?;
        self.check_observations(attempt)
    }

    /// Checks the values, buckets and leaves that the attempt has read.
    fn check_observations<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        // The attempt has seen an absence, or is going to make one.
        if attempt.has_structures() || attempt.changes_structure() {
            let worker = attempt.worker().number();
            self.progress.wait_for_restructuring(worker, &mut H::local_mut(&mut attempt.local).restructuring);
        }
        Self::check_reads(attempt)
    }

    /// Checks each predicate at the attempt's turn, or on a state that no writer touches.
    pub(super) fn check_predicates<H: Host<Self>>(attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        reads::upgrade_predicates::<Self, H>(attempt, |item| item.is(Flags::LOCKED))
    }

    /// Returns the version before the attempt itself in the line of a logged read, if it has joined that since.
    #[cold]
    fn version_in_line<H: Host<Self>>(attempt: &Attempt<H>, read: &LoggedRead<H>) -> Option<u32> {
        let item = attempt.items.get(attempt.items.at(read.segment().address())?);
        let ticket = (H::mark(item.mark).ticket as usize)
            .checked_sub(1)
            .filter(|_| H::local(&attempt.local).stage.has_begun())?;
        Some(TicketLock::version_at(H::local(&attempt.local).tickets[ticket].ticket))
    }

    /// Checks that everything read is unchanged, with no other writer in line, and every bucket and leaf, too.
    pub(super) fn check_reads<H: Host<Self>>(attempt: &Attempt<H>) -> Result<(), ConflictCause> {
        Self::check_first_reads(attempt, attempt.items.len())
    }

    /// Does what [`check_reads`](Self::check_reads) does, for an attempt whose reads are all in the log or among its first
    /// `count` items.
    pub(super) fn check_first_reads<H: Host<Self>>(
        attempt: &Attempt<H>,
        count: usize,
    ) -> Result<(), ConflictCause> {
        let has_begun = H::local(&attempt.local).stage.has_begun();
        for (id, item) in attempt.items.first_entries(count) {
            if !item.is(Flags::READ) {
                continue;
            }
            let version = match H::mark(item.mark).ticket {
                ticket if has_begun && ticket != 0 => {
                    Some(TicketLock::version_at(H::local(&attempt.local).tickets[ticket as usize - 1].ticket))
                }
                _ => H::header(item.header()).version(),
            };
            if version != Some(H::mark(item.mark).version) {
                return Err(ConflictCause::item(Reason::ReadChanged, id));
            }
        }
        for (position, read) in attempt.reads.iter().enumerate() {
            let version = Some(H::mark(read.mark()).version);
            if H::header(read.segment().header()).version() != version
                && Self::version_in_line(attempt, read) != version
            {
                return Err(attempt.reads.lost(position, Reason::ReadChanged));
            }
        }
        attempt.check_structures()
    }
}
