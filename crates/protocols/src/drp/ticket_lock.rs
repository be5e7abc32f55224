//! The ticket lock of a segment (its *line*): the attempts that have joined it, and how many are done.
//!
//! # Two words
//!
//! ```text
//! joined: | writers 32 | readers 16 | last writer 16 |
//! done:   | clock block 16 | writers 32 | readers 16 |
//! ```
//!
//! An attempt that joins adds itself to `joined` in one step and gets its *ticket*: the number of attempts that had
//! joined before. An attempt that is done adds itself to `done`. So the line is served in the order in which it was
//! joined, and nobody waits to join it. It keeps nothing but the two counts and the last writer's [clock
//! block](super::clock_block). In both words the writers' count and the readers' count below it are one number of 48
//! bits. Where the readers of `joined` overflow into the writers, those of `done` do so after the same number.
//!
//! - A writer's turn is when `done` equals its ticket: all before it are done, and nobody behind it can be.
//! - A reader's turn is when no writer before it is left: its ticket is ahead of `done` by readers only. Readers
//!   that joined later may be done already, so the difference may be negative. Its size stays below half of the
//!   readers' count, because fewer readers than that are in line at a time.
//!
//! In the paper's words (drp §4.1, §6.1): a lock is *free* when both counts are equal. It is *acquired* between a
//! step's beginning and its end, which is one instruction. It is *relaxed* from then until its holder is done:
//! others may join, and the order is kept. The holder's number beside the count is its *last holder*. The tickets
//! are the *intention queue*: each intention waits, in its owner's memory, for its ticket.
//!
//! # The version
//!
//! The writers' count of `joined` is the segment's version for attempts that read without joining: it changes before
//! a writer may change the value. That of `done` tells whether the writers up to there are done. A version comes
//! back after 2³² writers. Only an attempt that remembers it and has seen none of them could mistake it for the old
//! one. The version also changes when 2¹⁶ readers have joined, which makes such a reader read again.

use super::clock_block::ClockBlock;
use crate::stable::StableWord;
use hotrow_core::{Before, Rival};
use hotrow_sync::atomic::{AtomicU64, Ordering};

/// Number of workers that a line can tell apart. Each may be in it once, and half of the readers' count is for them.
pub(super) const WORKERS_MAX: u32 = 1 << 14;

const HOLDER_BITS: u32 = 16;
const READERS_BITS: u32 = 16;
const CLOCK_BLOCK_SHIFT: u32 = 48;
const POSITIONS: u64 = (1 << CLOCK_BLOCK_SHIFT) - 1;
const READER: u64 = 1;
const WRITER: u64 = 1 << READERS_BITS;

/// A ticket: the number of attempts that had joined the line before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ticket(u64);

impl Ticket {
    #[inline(always)]
    fn version(self) -> u32 {
        (self.0 >> READERS_BITS) as u32
    }

    /// True if any writer before this ticket is not done.
    #[inline(always)]
    fn has_writers(self, done: u64) -> bool {
        let ahead = self.0.wrapping_sub(done).wrapping_add(WRITER / 2) & POSITIONS;
        ahead >> READERS_BITS != 0
    }

    /// True if any attempt before this ticket is not done.
    #[inline(always)]
    fn has_anybody(self, done: u64) -> bool {
        self.0 != done & POSITIONS
    }
}

/// The ticket lock beside a segment's value.
#[derive(Debug, Default)]
#[repr(C)]
pub struct TicketLock {
    joined: AtomicU64,
    done: AtomicU64,
}

impl TicketLock {
    /// Makes the line of a segment that a worker has just created: the worker is the first in it, as a writer.
    pub(super) fn new_locked(worker: u32) -> Self {
        let joined = WRITER << HOLDER_BITS | u64::from(worker + 1);
        Self { joined: AtomicU64::new(joined), done: AtomicU64::new(0) }
    }

    /// True if somebody has joined the line and nobody has left it yet: the attempt that has made the segment may still be in
    /// line.
    pub(super) fn is_new(&self) -> bool {
        // Relaxed: a segment that an attempt makes is made with its maker in line.
        self.done() & POSITIONS == 0 && self.joined.load(Ordering::Relaxed) != 0
    }

    /// Returns the last writer that has joined, if any has.
    pub(super) fn last_writer(&self) -> Option<Rival> {
        // Relaxed: nothing depends on it.
        let (position, last) = Self::joined(self.joined.load(Ordering::Relaxed));
        let is_running = position.has_anybody(self.done());
        last.map(|worker| if is_running { Rival::holder(worker) } else { Rival::writer(worker) })
    }

    /// Joins as a reader.
    #[inline]
    pub(super) fn join_reading(&self) -> (Ticket, Option<u32>) {
        // Sequentially consistent, as `join_writing`.
        Self::joined(self.joined.fetch_add(READER << HOLDER_BITS, Ordering::SeqCst))
    }

    /// Joins as a writer, and returns the last writer before it.
    #[inline]
    pub(super) fn join_writing(&self, worker: u32) -> (Ticket, Option<u32>) {
        let mut seen = self.joined.load(Ordering::Relaxed);
        loop {
            let position = (seen >> HOLDER_BITS).wrapping_add(WRITER);
            let joined = position << HOLDER_BITS | u64::from(worker + 1);
            // Sequentially consistent: if two attempts each join the line of the other's read, and then check their
            // own read (`version`), one sees the other in line.
            match self.joined.compare_exchange_weak(seen, joined, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return Self::joined(seen),
                Err(other) => seen = other,
            }
        }
    }

    /// Joins as a writer whose turn it is at once; `None` if that is not possible, because others are in line or join now.
    #[inline]
    pub(super) fn try_join_alone(&self, worker: u32) -> Option<Ticket> {
        let seen = self.joined.load(Ordering::Relaxed);
        let (ticket, _) = Self::joined(seen);
        if ticket.has_anybody(self.done()) {
            return None;
        }
        let position = (seen >> HOLDER_BITS).wrapping_add(WRITER);
        let joined = position << HOLDER_BITS | u64::from(worker + 1);
        // Sequentially consistent, as `join_writing`. If nobody has joined since, all who had are done still.
        self.joined.compare_exchange(seen, joined, Ordering::SeqCst, Ordering::Relaxed).ok().map(|_| ticket)
    }

    fn joined(word: u64) -> (Ticket, Option<u32>) {
        let holder = (word & ((1 << HOLDER_BITS) - 1)) as u32;
        (Ticket(word >> HOLDER_BITS), holder.checked_sub(1))
    }

    #[inline(always)]
    fn done(&self) -> u64 {
        // Acquire: pairs with the release in `leave_*`. An attempt whose turn has come sees the stores of those
        // before it, and stores only after their loads.
        self.done.load(Ordering::Acquire)
    }

    /// True if it is the turn of the attempt that joined at `position`.
    #[inline(always)]
    pub(super) fn is_turn(&self, position: Ticket, writes: bool) -> bool {
        let done = self.done();
        if writes { !position.has_anybody(done) } else { !position.has_writers(done) }
    }

    /// True if a reader before this ticket is not done. For a writer's ticket only: nobody behind a writer is done
    /// either.
    #[inline(always)]
    pub(super) fn has_readers_before(&self, position: Ticket) -> bool {
        position.0.wrapping_sub(self.done()) & (WRITER - 1) != 0
    }

    /// True if a writer before this ticket is not done.
    #[inline(always)]
    pub(super) fn has_writers_before(&self, position: Ticket) -> bool {
        position.has_writers(self.done())
    }

    /// Leaves the line as a writer, at its turn.
    #[inline(always)]
    pub(super) fn leave_writing(&self, position: Ticket, clock_block: ClockBlock) {
        let done = position.0.wrapping_add(WRITER) & POSITIONS;
        // Nobody else changes the word during a writer's turn. Release: pairs with `done`.
        self.done.store(done | u64::from(clock_block.0) << CLOCK_BLOCK_SHIFT, Ordering::Release);
    }

    /// Returns the clock block of the writer that has left last.
    #[inline]
    pub(super) fn clock_block(&self) -> ClockBlock {
        ClockBlock((self.done() >> CLOCK_BLOCK_SHIFT) as u16)
    }

    /// Leaves the line as a reader, at its turn.
    #[inline(always)]
    pub(super) fn leave_reading(&self) {
        // Release: pairs with `done`; a writer's turn comes after all loads of the readers before it. The chain of
        // additions keeps the releases of earlier readers.
        self.done.fetch_add(READER, Ordering::Release);
    }

    /// Leaves the line of a segment that the attempt itself has made.
    #[inline(always)]
    pub(super) fn leave_inserted(&self, clock_block: ClockBlock) {
        self.leave_writing(Ticket(0), clock_block);
    }

    /// Returns the version, if no writer is in line.
    #[inline(always)]
    pub(super) fn version(&self) -> Option<u32> {
        // Sequentially consistent: see `join_writing`.
        let joined = self.joined.load(Ordering::SeqCst);
        let (position, _) = Self::joined(joined);
        (!position.has_writers(self.done())).then(|| position.version())
    }

    /// Returns the version of a ticket: a reader that read before the ticket must have found it.
    #[inline(always)]
    pub(super) fn version_at(position: Ticket) -> u32 {
        position.version()
    }
}

/// [`Drp::install`](super::Drp) has the writer's fence: a reader that has seen a part of a writer's stores sees that the writer joined.
impl StableWord for TicketLock {
    type Version = u32;

    #[inline(always)]
    fn version_before(&self) -> Option<u32> {
        self.version()
    }

    #[inline(always)]
    fn version_after(&self, before: u32) -> Option<u32> {
        let (position, _) = Self::joined(self.joined.load(Ordering::Relaxed));
        (position.version() == before).then_some(before)
    }

    #[inline(always)]
    fn note(version: u32) -> Before {
        Before(version.into())
    }

    #[inline(always)]
    fn noted(before: Before) -> u32 {
        before.0 as u32
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn writers_are_served_in_the_order_in_which_they_joined() {
        let line = TicketLock::default();
        let (first, before) = line.join_writing(4);
        assert_eq!(before, None);
        let (second, before) = line.join_writing(5);
        assert_eq!(before, Some(4));
        assert!(line.is_turn(first, true) && !line.is_turn(second, true));
        assert_eq!(line.version(), None);
        line.leave_writing(first, ClockBlock::default());
        assert!(line.is_turn(second, true) && !line.has_writers_before(second));
        line.leave_writing(second, ClockBlock::default());
        assert_eq!(line.version(), Some(2));
    }

    #[test]
    fn a_writer_joins_alone_where_everybody_is_done() {
        let line = TicketLock::default();
        let alone = line.try_join_alone(4).unwrap();
        assert!(line.is_turn(alone, true) && line.version().is_none());
        assert_eq!(line.try_join_alone(5), None);
        line.leave_writing(alone, ClockBlock::default());
        let (reader, before) = line.join_reading();
        assert_eq!(before, Some(4));
        assert!(line.is_turn(reader, false) && line.try_join_alone(5).is_none());
        line.leave_reading();
        assert!(line.is_turn(line.try_join_alone(5).unwrap(), true));
    }

    #[test]
    fn readers_share_their_turn_and_writers_wait_for_them() {
        let line = TicketLock::default();
        let (one, _) = line.join_reading();
        let (two, _) = line.join_reading();
        let (writer, _) = line.join_writing(0);
        let (late, before) = line.join_reading();
        assert_eq!(before, Some(0));
        assert!(line.is_turn(one, false) && line.is_turn(two, false));
        assert!(!line.is_turn(writer, true) && !line.is_turn(late, false));
        line.leave_reading();
        assert!(!line.is_turn(writer, true));
        line.leave_reading();
        assert!(line.is_turn(writer, true) && !line.is_turn(late, false));
        line.leave_writing(writer, ClockBlock::default());
        assert!(line.is_turn(late, false));
    }

    #[test]
    fn a_reader_that_is_done_before_an_earlier_one_makes_no_writer_of_itself() {
        let line = TicketLock::default();
        let (early, _) = line.join_reading();
        for _ in 0..200 {
            let (position, _) = line.join_reading();
            assert!(line.is_turn(position, false));
            line.leave_reading();
        }
        assert!(line.is_turn(early, false));
        assert_eq!(line.version(), Some(0));
    }

    #[test]
    fn the_counts_may_run_over() {
        let line = TicketLock::default();
        for round in 0..3 {
            for _ in 0..(1 << READERS_BITS) - 1 {
                let (position, _) = line.join_reading();
                assert!(line.is_turn(position, false));
                line.leave_reading();
            }
            let (writer, _) = line.join_writing(9);
            assert!(line.is_turn(writer, true), "round {round}");
            let (reader, before) = line.join_reading();
            assert_eq!(before, Some(9));
            assert!(!line.is_turn(reader, false) && line.has_writers_before(reader));
            line.leave_writing(writer, ClockBlock::default());
            assert!(line.is_turn(reader, false));
            line.leave_reading();
        }
        let end =
            TicketLock { joined: AtomicU64::new(u64::MAX << HOLDER_BITS), done: AtomicU64::new(POSITIONS) };
        let (last, _) = end.join_writing(1);
        let (first, _) = end.join_writing(2);
        assert!(end.is_turn(last, true) && !end.is_turn(first, true));
        end.leave_writing(last, ClockBlock::default());
        assert!(end.is_turn(first, true));
    }

    #[test]
    fn an_inserted_rows_lock_is_held_until_it_is_left() {
        assert!(!TicketLock::default().is_new(), "nobody has made it in a transaction");
        let line = TicketLock::new_locked(3);
        assert!(line.is_new() && line.version().is_none());
        line.leave_inserted(ClockBlock::default());
        assert!(!line.is_new());
        assert_eq!(line.version(), Some(1));
        let (position, before) = line.join_writing(1);
        assert_eq!(before, Some(3));
        assert!(line.is_turn(position, true));
    }
}
