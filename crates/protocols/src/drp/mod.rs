//! Deferred runtime pipelining.
//!
//! # Algorithm (drp §4–6)
//!
//! A transaction is *tame* if it declares its operations as [deferred operations](hotrow_core::deferred) and reads
//! nothing before it commits: it never aborts for a conflict. A transaction that has read is *wild*. Both take the
//! same path.
//!
//! 1. **Body.** Deferred operations are recorded. An immediate read takes no lock: the segment must have no writer
//!    in line, and the read's version is kept (§4.2, step 2).
//! 2. **Line up.** The attempt takes a ticket of the [ticket lock](ticket_lock) (*joins the line*) of each segment
//!    that it will touch, in the order of ranks (§4.1, step 1). Joining is one step and never waits. But before it
//!    joins a segment, each of its *predecessors* must have passed that segment's rank (step 2). A predecessor is
//!    the attempt that was last in a line that this one has joined, if it is not done (step 3). So an attempt that
//!    is behind another in one line is behind it in all.
//! 3. **Finish.** The attempt waits until all its predecessors have finished. If it is wild, its reads must be found
//!    unchanged, too (*certification*, §4.2, step 4). Then it has finished: its place in the serial order is fixed.
//! 4. **Turns.** Each intention runs at its segment's turn, when all who joined the line before are done.
//! 5. **Install and leave.** When all intentions have run and all turns have come, the pending writes are installed.
//!    The lines are left one after the other, which gives the next attempts their turn.
//!
//! A wild attempt runs its intentions before it finishes, so that their reads are certified, too. A tame attempt
//! runs them afterwards, and leaves the lines in which it only reads as soon as it has read.
//!
//! # Why it is serializable
//!
//! Take the moment at which an attempt finishes (tame), or begins its certification (wild). If two attempts are in
//! one line, the one behind finishes later. Either it found the other in line and waited for it to finish, or the
//! other had left, which it does only when it has finished. If a wild attempt reads a segment that another writes,
//! there are three cases. The other had left the line before the read. Or it joined after the read and the
//! certification found no writer in line, so it joined, and finished, later. Or the certification fails. So every
//! dependency goes from an earlier moment to a later one, and there is no cycle (the paper's effective commit, §4.3
//! and appendix). All lines are joined, and all new records are in their indexes, before the first line is left in
//! which the attempt has written. So an attempt that sees one of its writes finds the others installed, or a writer
//! in line. Both moments lie between begin and end, so the order is strict.
//!
//! Absence has no line. Take a tame attempt that has read, left that line early, and inserts a row later. A wild
//! attempt may come after others behind it and have seen that the row is not there: for it the insertion would come
//! too late. So an attempt that is going to change an index publishes this before it finishes, until it has made the
//! change. A wild attempt that has observed an index waits at its certification for all that have published a
//! change, before it checks that the index is unchanged ([`Progress`]). An attempt that is going to delete a row
//! waits in the same way before it finishes. So an attempt that comes before it by a line which it has already left
//! still finds the row when it inserts the same key. No waiting attempt has one that it waits for behind it: all
//! attempts before those have finished, and it has not.
//!
//! # Why there is no deadlock
//!
//! An attempt waits only for attempts that joined a line before it: until they have passed a rank, until they have
//! finished, or for its turn. Call an attempt *before* another if it is before it in some line, or before one that
//! is. Nobody is before itself. An attempt joins a segment's line only when all attempts before it have joined all
//! their lines up to that rank, so nobody behind it can come to be before it (§4.1, the example with three
//! transactions; appendix, lemma 1). This holds for all attempts before it, not only for its direct predecessors,
//! because the progress that an attempt publishes covers its own predecessors, too ([`Progress`]). Another may come before it later, when a
//! predecessor joins a line of a higher rank s. By then it has passed all ranks below s, otherwise it would not be in that line. Had it come to
//! stand behind the attempt at a lower rank, the attempt's bound, which is not above its predecessor's, would have kept it from s. An attempt that
//! aborts leaves its lines in the same order and finishes like the others. Its recorded operations are *nullified*
//! (§5.2), and nobody else is aborted with it.
//!
//! An attempt with early places joins them all in this way before its body runs, and waits in no other line (`early`). An attempt that runs its
//! operations at once joins each line only if it can be alone there, in any order: it never waits in a line, so it is in no circle of waits.
//! Until it has finished its bound is 0. A read in the body that must wait for its turn is a commit that has begun, in stages of one segment
//! each. It does not wait behind the maker of a row, which is in the row's line before it has joined others, perhaps behind the reader.
//!
//! # Tables
//!
//! A deferred operation on a row looks the row up at once, and lines up for its record. The key of a deferred insertion may depend on a
//! deferred value, so the insertion lines up for the *group* that it names: a segment without a value (`tables/src/companions/groups.rs`). The
//! group only orders insertions; records and the versions of nodes keep keys unique and phantoms out, so an insertion with another group is as
//! correct. A queue's group has two segments, its head and its tail (`tables/src/queue.rs`). A row becomes visible before its line is left:
//! when a taker has its turn at the row, all other rows of the row's maker are in place. Keys that only earlier operations tell line up in
//! stages (drp §7.2; `core/src/features/deferred/late.rs`): the attempt stays tame, but those behind it join no line of those ranks meanwhile.
//!
//! # Conflicts of tame transactions
//!
//! A tame transaction is aborted only if it ran at once because it was calm (once at most); if a row that it has deferred an operation on is
//! deleted meanwhile; if its insertion meets the row of a wild attempt, which that one will lose (`Reason::ReadLocked`; it stays tame); or if
//! an intention touches a segment that was not announced (`Reason::Undeclared`): then it runs again without deferring. A wild attempt loses if
//! anybody has joined, as a writer, the line of a segment that it has read, even one that aborts later.
//!
//! # Panics and rollbacks
//!
//! No value is installed before all intentions have run. So an intention may panic, or ask for a rollback
//! ([`require`](hotrow_core::Transaction::require)), without any effect: nobody has seen a value of the transaction,
//! and those behind it go on. The paper lets others use each value at once and excludes user-defined aborts. The
//! cost here: a segment's turn lasts until the last intention of the transaction has run.
//!
//! # Deviations
//!
//! - An intention stays with its transaction, which runs it itself; in the object's queue it is a ticket. Nobody
//!   evaluates another's intentions.
//! - The paper orders commits (§4.1, step 6); here this is the order in which attempts *finish*. The intentions run
//!   after it. Nothing depends on an attempt that may still be aborted.
//! - Predecessors that share a lock are counted, not listed. So a writer behind readers waits for them to leave
//!   before it joins a higher rank, while behind a writer it waits only for the writer's rank to pass.
//! - A read waits for writers in line for a few microseconds; the paper aborts at once. After that a transaction
//!   that was declared read-only joins the line itself, if the segment ranks higher than all that it has lined up
//!   for. It goes on at its turn, and leaves at its end. Otherwise it would not commit where there always is a
//!   writer in line.
//! - Opacity uses revalidation, as `tl2` does here: if a commit may have written a segment since everything was last
//!   checked, the attempt checks everything again. Segments have no global version, but a [clock
//!   block](clock_block).
//! - A segment that a transaction makes itself is in its index at once and held from the start. Others do not join
//!   its line before the transaction has left it, because they reach the segment by reading that it is there.
//! - A worker whose last transactions met nobody runs the next one's operations at once (`calm`), except under `drp+tame`.
//! - The lock is the protocol's, so no object has another one. An object without deferred operations is the paper's legacy object (drp §3): a
//!   read of it makes the attempt wild, and a write gets its place in line in the order of ranks, and holds it until the commit.

mod calm;
mod clock_block;
mod commit;
mod early;
mod install;
mod options;
mod order;
pub(crate) mod progress;
mod stage;
mod ticket_lock;

use crate::host::{Algorithm, Host};
use crate::reads::{self, KeepsVersions};
use crate::removals::Removals;
use crate::stable;
use calm::Calm;
use clock_block::ClockBlock;
use commit::HeldTicket;
use commit::rank_of;
use crossbeam_utils::CachePadded;
use early::Taming;
use hotrow_core::{
    Access, Attempt, Before, ConflictCause, ConflictTarget, Deferral, Flags, Item, ItemId, LoggedReads, Look,
    ObjectMeta, Prepared, Reason, Reports, Rival, Steps, TouchedSegment, Variant, Variants,
};
use hotrow_sync::atomic::{AtomicU64, Ordering};
use options::DrpOptions;
use order::{Plan, Planned};
use progress::{Predecessor, Progress, RANK_MAX};
use stage::Stage;
use ticket_lock::TicketLock;

/// Deferred runtime pipelining (drp §4–6), and its baseline without a pipeline.
#[derive(Debug)]
pub struct Drp {
    options: DrpOptions,
    progress: Progress,
    /// Number of commits that have changed something; counted only if attempts are opaque.
    clock: CachePadded<AtomicU64>,
    removals: Removals,
}

/// The mark that an attempt keeps of a segment.
#[derive(Debug, Clone, Copy, Default)]
pub struct DrpMark {
    /// The version read.
    version: u32,
    /// One more than the index of its ticket; 0 if it has none.
    ticket: u32,
}

/// State that a worker keeps.
#[derive(Debug, Default)]
pub struct DrpLocal {
    /// The lines that the attempt is going to join.
    plan: Plan,
    /// The tickets of the lines that it has joined, left ones included, in the order of ranks.
    tickets: Vec<HeldTicket>,
    /// Commits that must finish first.
    behind: Vec<Predecessor>,
    /// Indexes of tickets behind readers.
    behind_readers: Vec<u32>,
    /// True if any segment was read without being in line.
    has_read: bool,
    stage: Stage,
    /// The rank from which on intentions have no turns yet, if it lines up in stages although it has early places.
    turns_below: Option<u64>,
    /// The taming of the transaction's next attempt.
    taming: Taming,
    /// Segments of which a read has met a writer in line; true if they were read in order to be written.
    wanted: Vec<(ItemId, bool)>,
    /// The segment in whose line the attempt is as a scout.
    scouted: Option<ItemId>,
    /// True if the attempt has published that it is going to change an index.
    is_restructuring: bool,
    /// Other attempts that had published this when this one looked.
    restructuring: Vec<(u32, u32)>,
    /// The clock's value when everything read was last found unchanged.
    clock: u64,
    /// One more than the position of the last item that was read without a ticket.
    reads_end: usize,
    calm: Calm,
    /// The clock block that it leaves in the lines of its writes.
    clock_block: ClockBlock,
}

impl DrpLocal {
    /// Forgets the lines of the attempt before.
    #[inline(always)]
    fn forget_lines(&mut self) {
        self.tickets.clear();
        self.behind.clear();
        self.behind_readers.clear();
    }
}

/// Before a load: it is the attempt's turn. (A version has 32 bits.)
const AT_TURN: Before = Before(1 << 32);
/// Before a load: it is the attempt's turn in a line that it leaves after it.
const AS_SCOUT: Before = Before(2 << 32);

impl Drp {
    /// Checks everything read so far if the segment just read may have been written since the last such check. False
    /// if it checked: then a value that was read and not kept may be of another state.
    #[inline(always)]
    fn keep_opaque<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
    ) -> Result<bool, ConflictCause> {
        self.keep_opaque_at(attempt, |attempt| H::header(attempt.items.get(id).header()).clock_block())
    }

    /// As [`keep_opaque`](Self::keep_opaque); `clock_block` returns that of the segment just read.
    #[inline(always)]
    fn keep_opaque_at<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        clock_block: impl FnOnce(&Attempt<H>) -> ClockBlock,
    ) -> Result<bool, ConflictCause> {
        // The clock block after the read: it may be newer than the value, but not older.
        if !self.may_have_changed(attempt) || self.is_old(attempt, clock_block(attempt)) {
            return Ok(true);
        }
        self.check_again(attempt)?;
        Ok(false)
    }

    /// True if anybody has committed since everything read was last found unchanged.
    #[inline(always)]
    fn may_have_changed<H: Host<Self>>(&self, attempt: &Attempt<H>) -> bool {
        // Sequentially consistent: a commit advances the clock after it has joined its lines and before it leaves
        // them. An attempt that has seen one of its values sees the clock advanced.
        self.options.opaque && self.clock.load(Ordering::SeqCst) != H::local(&attempt.local).clock
    }

    /// True if the segment just read was last written before everything read was last found unchanged.
    #[cold]
    fn is_old<H: Host<Self>>(&self, attempt: &Attempt<H>, clock_block: ClockBlock) -> bool {
        // The clock block was loaded before the clock, which so includes it.
        clock_block.is_before(H::local(&attempt.local).clock, self.clock.load(Ordering::SeqCst))
    }

    /// The first half of a look: at the attempt's turn, if it has a place in the segment's line, otherwise without a place.
    #[inline(always)]
    fn begin_look<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        look: Look,
    ) -> Result<Before, ConflictCause> {
        let item = attempt.items.get(id);
        if item.is(Flags::LOCKED) {
            return Ok(AT_TURN);
        }
        let stage = H::local(&attempt.local).stage;
        if stage.has_begun()
            && let Some(before) = self.begin_in_line(attempt, id, look)?
        {
            return Ok(before);
        }
        match stable::wait_before(H::header(attempt.items.get(id).header())) {
            Ok(before) => Ok(before),
            Err(reason) if look == Look::Peek => Err(ConflictCause::item(reason, id)),
            Err(_) => self.meet_writer(attempt, id, look),
        }
    }

    /// As [`begin_look`](Self::begin_look), when the attempt has joined lines. `None` if it needs none for this.
    fn begin_in_line<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        look: Look,
    ) -> Result<Option<Before>, ConflictCause> {
        let item = attempt.items.get(id);
        let (has_place, stage) = (H::mark(item.mark).ticket != 0, H::local(&attempt.local).stage);
        if look == Look::Peek {
            if stage.is_early() && (has_place || stage == Stage::Tamed && attempt.keeps_reads()) {
                self.take_early_turn(attempt, id, false)?;
                return Ok(Some(AT_TURN));
            }
            return Ok(None);
        }
        if !has_place && !stage.has_finished() {
            return Ok(None);
        }
        if stage.is_early() {
            self.take_early_turn(attempt, id, look == Look::ReadForUpdate)?;
            return Ok(Some(AT_TURN));
        }
        // An intention reads another intention's segment, or one whose line the attempt has not joined. This is too
        // late, if others have come behind the attempt. But if an insertion has met the new row of a wild attempt, which
        // will lose it, the next attempt may be tame again; otherwise one wild attempt would make others wild.
        let meets_wild = !has_place && H::header(item.header()).is_new();
        let reason = if meets_wild { Reason::ReadLocked } else { Reason::Undeclared };
        Err(ConflictCause::item(reason, id))
    }

    /// Reads a segment in whose line a writer stays: behind the writer, or as a scout, or not at all.
    #[cold]
    #[inline(never)]
    fn meet_writer<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        look: Look,
    ) -> Result<Before, ConflictCause> {
        H::local_mut(&mut attempt.local).calm.meet();
        if self.read_in_line(attempt, id) {
            return Ok(AT_TURN);
        }
        H::local_mut(&mut attempt.local).wanted.push((id, look == Look::ReadForUpdate));
        if self.begin_scout(attempt, id) {
            return Ok(AS_SCOUT);
        }
        Err(ConflictCause::item(Reason::ReadLocked, id))
    }

    /// The second half of a look.
    #[inline(always)]
    fn end_look<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        look: Look,
        before: Before,
    ) -> Result<(), ConflictCause> {
        if before == AT_TURN {
            // A wild attempt may have seen other segments in an earlier state.
            if self.options.opaque && Self::is_wild(attempt) {
                self.keep_opaque(attempt, id)?;
            }
            return Ok(());
        }
        if before == AS_SCOUT {
            self.end_scout(attempt);
            return Ok(());
        }
        if look == Look::Peek {
            reads::after_peek::<Self, H>(attempt, id, before)?;
            if attempt.keeps_reads() && !self.keep_opaque(attempt, id)? {
                // The value is not kept, so it is checked at once, as the others have been.
                reads::after_peek::<Self, H>(attempt, id, before)?;
            }
            return Ok(());
        }
        match reads::after_read::<Self, H>(attempt, id, before) {
            Ok(_) => {
                H::local_mut(&mut attempt.local).has_read = true;
                if self.options.opaque {
                    H::local_mut(&mut attempt.local).reads_end =
                        H::local(&attempt.local).reads_end.max(id.position() + 1);
                    self.keep_opaque(attempt, id)?;
                }
                Ok(())
            }
            Err(lost) => {
                if !lost.is_passing() {
                    H::local_mut(&mut attempt.local).calm.meet();
                    H::local_mut(&mut attempt.local).wanted.push((id, look == Look::ReadForUpdate));
                }
                Err(lost)
            }
        }
    }

    #[cold]
    fn check_again<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        let clock = self.clock.load(Ordering::SeqCst);
        if attempt.items.has_predicates() {
            // The predicates become reads.
            Self::check_predicates(attempt)?;
            Self::check_reads(attempt)?;
        } else {
            Self::check_first_reads(attempt, H::local(&attempt.local).reads_end)?;
        }
        H::local_mut(&mut attempt.local).clock = clock;
        Ok(())
    }

    #[cold]
    fn undeclared<H: Host<Self>>(attempt: &Attempt<H>) -> ConflictCause {
        let mut ids = attempt.items.ids();
        let culprit = ids.find(|id| attempt.items.get(*id).is_any(&[Flags::READ, Flags::PREDICATE]));
        match culprit {
            Some(item) => ConflictCause::item(Reason::Undeclared, item),
            None => ConflictCause::new(Reason::Undeclared, ConflictTarget::Structure(0)),
        }
    }
}

impl KeepsVersions for Drp {
    #[inline]
    fn version(mark: &mut DrpMark) -> &mut u32 {
        &mut mark.version
    }
}

impl Variants for Drp {
    const VARIANTS: &'static [Variant] = options::VARIANTS;
    const OPAQUE: bool = false;
    const WORKERS_MAX: u32 = ticket_lock::WORKERS_MAX;

    type Options = DrpOptions;

    fn options(name: &str) -> Option<DrpOptions> {
        DrpOptions::parse(name)
    }

    fn name(options: &DrpOptions) -> String {
        options.name()
    }

    fn is_opaque(options: &DrpOptions) -> bool {
        options.opaque
    }

    fn new(options: &DrpOptions) -> Self {
        let clock = CachePadded::new(AtomicU64::new(ClockBlock::CLOCK_BEGINS));
        Self { options: *options, progress: Progress::new(), clock, removals: Removals::new() }
    }
}

// SAFETY: reads are stable by the line's version, or run at the attempt's turn in the line. Writes are installed at
// exclusive turns, each once, after everything that can fail. (A line that has been left is passed over, and rows
// that the attempt has made have no ticket.)
unsafe impl Algorithm for Drp {
    type Header = TicketLock;
    type Mark = DrpMark;
    type Local = DrpLocal;
}

impl<H: Host<Drp>> Steps<H> for Drp {
    #[inline]
    fn begin(&self, attempt: &mut Attempt<H>) {
        // Not the last attempt: it might be aborted for running at once.
        let may_run_at_once = attempt.number() == 0 && !attempt.is_last();
        let is_first = attempt.number() == 0;
        let local = H::local_mut(&mut attempt.local);
        if is_first {
            local.taming = Taming::Not;
        }
        local.plan.clear();
        local.has_read = false;
        local.stage = Stage::Body;
        local.turns_below = None;
        local.wanted.clear();
        local.is_restructuring = false;
        if self.options.opaque {
            local.clock = self.clock.load(Ordering::SeqCst);
            local.reads_end = 0;
        }
        if local.calm.begin(self.options.calm_after, may_run_at_once) {
            attempt.run_at_once();
        }
    }

    #[inline(always)]
    fn before_load(&self, attempt: &mut Attempt<H>, id: ItemId, look: Look) -> Result<Before, ConflictCause> {
        self.begin_look(attempt, id, look)
    }

    #[inline(always)]
    fn after_load(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        look: Look,
        before: Before,
    ) -> Result<(), ConflictCause> {
        self.end_look(attempt, id, look, before)?;
        if look == Look::ReadForUpdate { Steps::<H>::write(self, attempt, id) } else { Ok(()) }
    }

    #[inline]
    fn write(&self, attempt: &mut Attempt<H>, id: ItemId) -> Result<(), ConflictCause> {
        let item = attempt.items.get(id);
        let stage = H::local(&attempt.local).stage;
        if stage.is_early() {
            return Self::may_write_early(attempt, id);
        }
        if stage.has_begun() && !(item.is(Flags::LOCKED) && item.is(Flags::DEFERRED_WRITE)) {
            return Err(ConflictCause::item(Reason::Undeclared, id));
        }
        Ok(())
    }

    #[inline]
    fn new_locked_header(&self, attempt: &Attempt<H>) -> H::Header {
        H::new_header(TicketLock::new_locked(attempt.worker().number()))
    }

    #[inline]
    fn observed(&self, attempt: &mut Attempt<H>, object: Option<&ObjectMeta>) -> Result<(), ConflictCause> {
        if H::local(&attempt.local).stage.has_finished() && attempt.has_structures() {
            return Err(Self::undeclared(attempt));
        }
        if self.may_have_changed(attempt) && self.removals.any_after(H::local(&attempt.local).clock, object) {
            self.check_again(attempt)?;
        }
        Ok(())
    }

    fn prepare(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        if !H::local(&attempt.local).stage.has_begun() {
            if attempt.items.writes().is_empty() {
                return self.check_all(attempt);
            }
            if H::local(&attempt.local).calm.is_at_once() {
                self.join_alone(attempt)?;
            } else {
                self.join_all(attempt, None)?;
            }
        } else if H::local(&attempt.local).stage.is_early() {
            self.join_rest(attempt)?;
        }
        if !H::local(&attempt.local).stage.has_finished() {
            self.certify(attempt)?;
            self.finish_in_order(attempt);
        } else if Self::is_wild(attempt) {
            return Err(Self::undeclared(attempt));
        }
        self.end_restructuring(attempt);
        self.take_all_turns(attempt);
        Ok(())
    }

    fn finish(&self, mut prepared: Prepared<'_, H>) {
        H::local_mut(&mut prepared.attempt().local).calm.end();
        // An attempt that only reads may have joined no line.
        if H::local(&prepared.attempt().local).stage.has_begun() {
            self.install(prepared);
        }
    }

    fn validate_before_rollback(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        let stage = H::local(&attempt.local).stage;
        match (stage.has_finished(), Self::is_wild(attempt)) {
            (false, _) if stage.has_begun() => self.certify(attempt)?,
            (false, _) => self.check_all(attempt)?,
            (true, false) => {}
            (true, true) => return Err(Self::undeclared(attempt)),
        }
        H::local_mut(&mut attempt.local).calm.end();
        Ok(())
    }

    fn abort(&self, attempt: &mut Attempt<H>) {
        self.leave_all(attempt);
    }
}

impl<H: Host<Drp>> LoggedReads<H> for Drp {
    #[inline(always)]
    fn of(protocol: &H) -> Option<&Self> {
        protocol.algorithm()
    }

    /// Only attempts that run at once log reads. Their bodies have no turns.
    #[inline(always)]
    fn before_load(&self, segment: &TouchedSegment<H>) -> Result<Before, ConflictCause> {
        reads::before_logged::<Self, H>(segment)
    }

    #[inline(always)]
    fn after_load(
        &self,
        attempt: &mut Attempt<H>,
        segment: &TouchedSegment<H>,
        before: Before,
    ) -> Result<(), ConflictCause> {
        reads::log::<Self, H>(attempt, segment, before)?;
        H::local_mut(&mut attempt.local).has_read = true;
        self.keep_opaque_at(attempt, |_| H::header(segment.header()).clock_block())?;
        Ok(())
    }
}

impl<H: Host<Drp>> Deferral<H> for Drp {
    fn of(protocol: &H) -> Option<&Self> {
        protocol.algorithm()
    }

    #[inline]
    fn deferred(&self, attempt: &mut Attempt<H>, id: ItemId, rank: u64) {
        let item = attempt.items.get(id);
        // A segment with a pending write was planned when the attempt began to line up.
        let is_planned = H::local(&attempt.local).stage.has_begun() && item.is(Flags::WRITE);
        if !item.is(Flags::INSERTED) && !is_planned {
            H::local_mut(&mut attempt.local).plan.add(Planned {
                rank: rank.min(RANK_MAX),
                item: id,
                writes: false,
            });
        }
    }

    fn line_up(&self, attempt: &mut Attempt<H>, below: Option<u64>) -> Result<(), ConflictCause> {
        if H::local(&attempt.local).stage == Stage::ReadsInLine
            && let Some(held) = H::local(&attempt.local).tickets.last()
        {
            // Deferred operations may rank lower.
            return Err(ConflictCause::item(Reason::Undeclared, held.item));
        }
        if H::local(&attempt.local).stage.is_early() {
            // As where no line of these ranks is joined yet: the operations of this stage come before others on their segments.
            H::local_mut(&mut attempt.local).turns_below = below;
            self.join_rest(attempt)?;
        } else {
            self.join_all(attempt, below)?;
        }
        if below.is_some() || H::local(&attempt.local).stage == Stage::Tamed {
            // The attempt calls again when it knows more, or has finished before its body ran.
        } else if Self::is_wild(attempt) {
            self.let_all_pass(attempt);
        } else {
            self.finish_tame(attempt);
        }
        Ok(())
    }

    #[inline]
    fn acquire_in_order(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        wait: bool,
    ) -> Result<bool, ConflictCause> {
        let item = attempt.items.get(id);
        if H::mark(item.mark).ticket == 0 && !item.is(Flags::LOCKED)
            || H::local(&attempt.local).turns_below.is_some_and(|below| rank_of(item) >= below)
        {
            return Ok(false);
        }
        Ok(self.take_turn(attempt, id, wait))
    }

    #[inline]
    fn segment_done(&self, attempt: &mut Attempt<H>, id: ItemId) {
        // An opaque attempt would have to look for others' pending insertions at each read, not only at the end. So
        // with opacity no attempt leaves a line early.
        let DrpOptions { two_phase, opaque, .. } = self.options;
        let may_leave = H::local(&attempt.local).stage.has_finished() && !two_phase && !opaque;
        if may_leave && !attempt.items.get(id).is_any(&[Flags::DEFERRED_WRITE, Flags::WRITE]) {
            Self::leave_read(attempt, id);
        }
    }

    fn footprint(
        &self,
        attempt: &mut Attempt<H>,
        lost: &ConflictCause,
        keep: &mut dyn FnMut(&Item<H>, Access),
    ) {
        self.keep_footprint(attempt, lost, keep);
    }

    fn line_up_early(&self, attempt: &mut Attempt<H>, footprint: &[(ItemId, Access)]) {
        self.join_early(attempt, footprint);
    }
}

impl<H: Host<Drp>> Reports<H> for Drp {
    #[inline(always)]
    fn of(protocol: &H) -> Option<&Self> {
        protocol.algorithm()
    }

    fn rival(&self, _attempt: &Attempt<H>, header: &H::Header) -> Option<Rival> {
        H::header(header).last_writer()
    }
}
