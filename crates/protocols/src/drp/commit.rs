//! The steps of a commit: line up, certify, finish, install, leave.

use super::Drp;
use super::line::{Line, Position};
use super::progress::RANK_MAX;
use hotrow_core::{Attempt, Flags, ItemId, Lost, Reason};
use hotrow_sync::atomic::{Ordering, fence};
use hotrow_sync::thread::label;

/// A place in a segment's line, taken or to be taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    rank: u64,
    /// The segment's address: it tells segments of one rank apart.
    segment: usize,
    item: ItemId,
    position: Position,
    writes: bool,
    has_left: bool,
}

impl Drp {
    /// Whether the attempt depends on something that it has seen without being in line.
    #[inline]
    pub(super) fn is_wild(attempt: &Attempt<Self>) -> bool {
        attempt.local.reads > 0 || attempt.has_structures() || attempt.items.has_predicates()
    }

    /// Finds out where the attempt has to line up, in the order of ranks (drp §4.1, step 1).
    fn plan(&self, attempt: &mut Attempt<Self>) {
        let Attempt { items, local, .. } = attempt;
        local.places.clear();
        local.behind.clear();
        local.behind_readers.clear();
        local.joined = 0;
        for (at, item) in items.iter().enumerate() {
            if item.is_any(&[Flags::WRITE, Flags::DEFERRED]) && !item.is(Flags::BORN) {
                local.places.push(Place {
                    rank: item.rank().min(RANK_MAX),
                    segment: item.segment().addr().get(),
                    item: ItemId::from_position(at),
                    position: Position::default(),
                    writes: self.options.exclusive || item.is_any(&[Flags::WRITE, Flags::DEFERRED_WRITE]),
                    has_left: false,
                });
            }
        }
        local.places.sort_unstable_by_key(|place| (place.rank, place.segment));
        for (at, place) in local.places.iter().enumerate() {
            items.get_mut(place.item).mark.place = at as u32 + 1;
        }
    }

    /// Joins all lines in the order of ranks.
    pub(super) fn join_all(&self, attempt: &mut Attempt<Self>) -> Result<(), Lost> {
        label("line up");
        self.plan(attempt);
        let worker = attempt.worker().number();
        attempt.local.has_begun = true;
        self.progress.begin(worker, attempt.local.places.first().map(|place| place.rank));
        for at in 0..attempt.local.places.len() {
            if !self.options.two_phase {
                self.let_pass(attempt, at);
            }
            self.join(attempt, at, worker);
            self.advance(attempt, at + 1);
            let Place { item: id, position, .. } = attempt.local.places[at];
            let item = attempt.items.get(id);
            // Who has read another version will not be certified.
            if item.is(Flags::READ) && item.mark.version != Line::version_at(position) {
                return Err(Lost::item(Reason::ReadChanged, id));
            }
            if self.options.two_phase {
                self.take_turn(attempt, id, true);
            }
        }
        Ok(())
    }

    /// Waits until all predecessors have passed the rank of a place (drp §4.1, step 2).
    #[inline]
    fn let_pass(&self, attempt: &mut Attempt<Self>, at: usize) {
        let rank = attempt.local.places[at].rank;
        if attempt.local.behind.is_empty() && attempt.local.behind_readers.is_empty() {
            return;
        }
        self.wait_passed(attempt, rank);
        while let Some(readers) = attempt.local.behind_readers.pop() {
            let id = attempt.local.places[readers as usize].item;
            self.take_turn(attempt, id, true);
        }
        // Who is behind this attempt may come up to this rank now: so have all who are before it.
        self.progress.advance(attempt.worker().number(), Some(rank));
    }

    fn wait_passed(&self, attempt: &mut Attempt<Self>, rank: u64) {
        let behind = &mut attempt.local.behind;
        behind.retain(|predecessor| !self.progress.has_finished(*predecessor));
        for predecessor in behind {
            self.progress.wait_passed(*predecessor, rank);
        }
    }

    /// Says how far the attempt has come, all places before the one at `next` being joined: no further than any of
    /// its predecessors, or else who is behind it would overtake them.
    #[inline]
    fn advance(&self, attempt: &Attempt<Self>, next: usize) {
        let local = &attempt.local;
        // How far readers have come is not known before they have left.
        if local.behind_readers.is_empty() {
            let bounds = local.behind.iter().map(|predecessor| self.progress.bound(*predecessor));
            let rank = local.places.get(next).map(|place| place.rank).into_iter().chain(bounds).min();
            self.progress.advance(attempt.worker().number(), rank);
        }
    }

    /// Lets those behind a wild attempt join all their lines while it runs its intentions.
    pub(super) fn let_all_pass(&self, attempt: &mut Attempt<Self>) {
        if !attempt.local.behind.is_empty() && attempt.local.behind_readers.is_empty() {
            self.wait_passed(attempt, RANK_MAX);
            self.progress.advance(attempt.worker().number(), None);
        }
    }

    /// Joins a line, and notes whom it is behind now (drp §4.1, step 3).
    #[inline]
    fn join(&self, attempt: &mut Attempt<Self>, at: usize, worker: u32) {
        let Attempt { items, local, .. } = attempt;
        let place = &mut local.places[at];
        let line = items.get(place.item).header();
        let (position, last_writer) =
            if place.writes { line.join_writing(worker) } else { line.join_reading() };
        place.position = position;
        local.joined = at + 1;
        if self.options.two_phase || line.is_turn(position, place.writes) {
            return;
        }
        // Behind readers only its turn will do, which comes after that of all who were before them.
        if place.writes && line.has_readers_before(position) {
            local.behind_readers.push(at as u32);
        } else if let Some(last_writer) = last_writer {
            let predecessor = self.progress.current(last_writer);
            // Asked again after the look at its serial number: see `Progress::current`.
            if line.has_writers_before(position) && !local.behind.contains(&predecessor) {
                local.behind.push(predecessor);
            }
        }
    }

    /// Whether it is the attempt's turn at an item's place. Waits for it if told so.
    #[inline]
    pub(super) fn take_turn(&self, attempt: &mut Attempt<Self>, id: ItemId, wait: bool) -> bool {
        let Attempt { items, local, .. } = attempt;
        let item = items.get_mut(id);
        if item.is(Flags::LOCKED) {
            return true;
        }
        let place = &local.places[item.mark.place as usize - 1];
        let (line, position, writes) = (item.header(), place.position, place.writes);
        if !line.is_turn(position, writes) {
            if !wait {
                return false;
            }
            self.progress.wait(place.rank, || line.is_turn(position, writes));
        }
        item.set(Flags::LOCKED);
        true
    }

    /// Waits for all predecessors, and says that the attempt has finished (drp §4.1, step 6).
    pub(super) fn finish(&self, attempt: &mut Attempt<Self>) {
        self.wait_for_predecessors(attempt);
        attempt.local.has_finished = true;
        self.progress.finish(attempt.worker().number());
    }

    fn wait_for_predecessors(&self, attempt: &mut Attempt<Self>) {
        while let Some(predecessor) = attempt.local.behind.pop() {
            self.progress.wait_finished(predecessor);
        }
        // Readers before this attempt leave only when they have finished.
        while let Some(readers) = attempt.local.behind_readers.pop() {
            let id = attempt.local.places[readers as usize].item;
            self.take_turn(attempt, id, true);
        }
    }

    /// Checks what a wild attempt depends on (drp §4.2, step 4).
    pub(super) fn certify(&self, attempt: &mut Attempt<Self>) -> Result<(), Lost> {
        if !Self::is_wild(attempt) {
            return Ok(());
        }
        label("certify");
        self.wait_for_predecessors(attempt);
        if attempt.items.has_predicates() {
            for at in 0..attempt.local.places.len() {
                let id = attempt.local.places[at].item;
                if attempt.items.get(id).is(Flags::PREDICATE) {
                    self.take_turn(attempt, id, true);
                }
            }
        }
        Self::check_predicates_now(attempt)?;
        Self::check_reads(attempt)
    }

    /// Checks each predicate on a state that no writer touches, and turns it into a read of that state.
    pub(super) fn check_predicates_now(attempt: &mut Attempt<Self>) -> Result<(), Lost> {
        attempt.check_predicates(|attempt, id| {
            let item = attempt.items.get(id);
            if item.is(Flags::LOCKED) {
                return Ok(attempt.predicate_holds(id));
            }
            let stable = item.header().stable(|| attempt.predicate_holds(id));
            let (version, holds) = stable.map_err(|reason| Lost::item(reason, id))?;
            let item = attempt.items.get_mut(id);
            if !item.is(Flags::READ) {
                item.mark.version = version;
                item.set(Flags::READ);
            }
            Ok(holds)
        })
    }

    /// Whether everything read is as it was, with no other writer in line, and every bucket and leaf, too.
    pub(super) fn check_reads(attempt: &Attempt<Self>) -> Result<(), Lost> {
        let has_begun = attempt.local.has_begun;
        for (at, item) in attempt.items.iter().enumerate() {
            if !item.is(Flags::READ) {
                continue;
            }
            let version = match item.mark.place {
                place if has_begun && place != 0 => {
                    Some(Line::version_at(attempt.local.places[place as usize - 1].position))
                }
                _ => item.header().version(),
            };
            if version != Some(item.mark.version) {
                return Err(Lost::item(Reason::ReadChanged, ItemId::from_position(at)));
            }
        }
        attempt.check_structures()
    }

    /// Installs all pending writes and leaves all lines. Nothing can fail any more.
    pub(super) fn install(&self, attempt: &mut Attempt<Self>) {
        label("install");
        for at in 0..attempt.local.places.len() {
            let Place { item, writes, .. } = attempt.local.places[at];
            if writes {
                self.take_turn(attempt, item, true);
            }
        }
        if self.options.opaque {
            // Sequentially consistent: see `keep_opaque`.
            self.clock.fetch_add(1, Ordering::SeqCst);
        }
        // Orders having joined before the stores to the values; pairs with the fence in `Line::stable`.
        fence(Ordering::Release);
        for at in 0..attempt.items.writes().len() {
            attempt.install(attempt.items.writes()[at]);
        }
        self.leave_all(attempt);
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
        let place = &mut local.places[item.mark.place as usize - 1];
        if !place.writes && !place.has_left {
            place.has_left = true;
            item.clear(Flags::LOCKED);
            item.header().leave_reading();
        }
    }

    /// Leaves every line, each at its turn, and tells who waits. An attempt that aborts does the same: what it had
    /// recorded is nullified (drp §5.2).
    pub(super) fn leave_all(&self, attempt: &mut Attempt<Self>) {
        for at in 0..attempt.items.writes().len() {
            let item = attempt.items.get(attempt.items.writes()[at]);
            if item.is(Flags::BORN) {
                item.header().leave_born();
            }
        }
        if !attempt.local.has_begun {
            return;
        }
        if !attempt.local.has_finished {
            // Who is behind must not overtake those who are before.
            self.finish(attempt);
        }
        for at in 0..attempt.local.joined {
            let Place { item: id, position, writes, has_left, .. } = attempt.local.places[at];
            if has_left {
                continue;
            }
            self.take_turn(attempt, id, true);
            let line = attempt.items.get(id).header();
            if writes {
                line.leave_writing(position);
            } else {
                line.leave_reading();
            }
        }
        let worker = u64::from(attempt.worker().number());
        let ranks = attempt.local.places[..attempt.local.joined].iter().map(|place| place.rank);
        self.progress.tell(ranks.chain([worker]));
    }
}
