//! Capabilities: what only some protocols have. Each is a trait, asked for where it is needed by its `of`; a protocol without it names
//! [`Absent`], which has no value, so the compiler removes what would use one.

use crate::kernel::abort::Reason;
use crate::kernel::attempt::Attempt;
use crate::kernel::item::{Item, ItemId, TouchedSegment};
use crate::kernel::loss::DeadlockPart;
use crate::kernel::protocol::{Before, ConflictCause, Protocol};
use crate::kernel::slots::Slots;
use crate::memory::identity::{ObjectMeta, WorkerId};
use crate::memory::structure::StructureVersion;
use std::fmt;

/// A capability that a protocol does not have. The type has no value, so the compiler removes the code that would use
/// one.
#[derive(Debug, Clone, Copy)]
pub enum Absent {}

/// The presence of a protocol's capabilities, as constants. Every protocol has them: they follow from its associated
/// types, and it cannot set them.
pub trait Capabilities {
    /// True if operations can be deferred until the commit: [`Protocol::Deferral`].
    const DEFERS: bool;
    /// True if waiting workers can run operations of the transaction that they wait for: [`Protocol::Stealing`].
    const ALLOWS_STEALING: bool;
    /// True if buckets and leaves are locked before they are observed or changed: [`Protocol::RangeLocks`].
    const LOCKS_RANGES: bool;
    /// True if reads are logged and need no items: [`Protocol::LoggedReads`].
    const LOGS_READS: bool;
}

impl<P: Protocol> Capabilities for P {
    const DEFERS: bool = <P::Deferral as Deferral<P>>::PRESENT;
    const ALLOWS_STEALING: bool = <P::Stealing as Stealing<P>>::PRESENT;
    const LOCKS_RANGES: bool = <P::RangeLocks as RangeLocks<P>>::PRESENT;
    const LOGS_READS: bool = <P::LoggedReads as LoggedReads<P>>::PRESENT;
}

/// The abilities of an engine's protocol, of those that its type may have ([`Capabilities`]).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Abilities {
    pub(crate) defers: bool,
    pub(crate) steals: bool,
    pub(crate) logs_reads: bool,
}

impl Abilities {
    pub(crate) const NONE: Self = Self { defers: false, steals: false, logs_reads: false };

    pub(crate) fn of<P: Protocol>(protocol: &P) -> Self {
        Self {
            defers: P::Deferral::of(protocol).is_some(),
            steals: P::Stealing::of(protocol).is_some(),
            logs_reads: P::LoggedReads::of(protocol).is_some(),
        }
    }
}

/// The protocol's part in deferred operations: it gives turns on segments, in an order that all transactions keep (drp
/// §4).
pub trait Deferral<P: Protocol>: Sized {
    /// True except for [`Absent`].
    const PRESENT: bool = true;

    /// Returns the capability of an engine's protocol.
    fn of(protocol: &P) -> Option<&Self>;

    /// Notes that the first operation on a segment is deferred. `rank` is its [`Object::rank`](crate::Object::rank).
    fn deferred(&self, attempt: &mut Attempt<P>, item: ItemId, rank: u64);

    /// Queues for a turn on every segment with [deferred](crate::Flags::DEFERRED) operations or a pending write whose
    /// [rank](crate::Object::rank) is below `below`, if that is given. Called before [`Steps::prepare`](crate::Steps::prepare), if anything
    /// was deferred: with growing limits as long as there are operations whose segments are not known yet, and at last
    /// without one. After an `Err`, [`Steps::abort`](crate::Steps::abort) follows.
    fn line_up(&self, attempt: &mut Attempt<P>, below: Option<u64>) -> Result<(), ConflictCause>;

    /// True if it is the attempt's turn on a segment, so that it may run its intentions there. False if it has not
    /// lined up for the segment yet. Otherwise waits for the turn if `wait`, and returns false if not.
    fn acquire_in_order(
        &self,
        attempt: &mut Attempt<P>,
        item: ItemId,
        wait: bool,
    ) -> Result<bool, ConflictCause>;

    /// Notes that all intentions on a segment have run.
    fn segment_done(&self, attempt: &mut Attempt<P>, item: ItemId);

    /// Tells which segments the next attempt of the same transaction should queue for before its body runs: the
    /// *footprint* of an attempt that has just lost. None if the next attempt should begin like the first.
    fn footprint(
        &self,
        _attempt: &mut Attempt<P>,
        _lost: &ConflictCause,
        _keep: &mut dyn FnMut(&Item<P>, Access),
    ) {
    }

    /// Queues, before the body runs, for the segments in the footprint of the attempt before. Called after
    /// [`Steps::begin`](crate::Steps::begin), with items that nobody has touched yet.
    fn line_up_early(&self, _attempt: &mut Attempt<P>, _footprint: &[(ItemId, Access)]) {}
}

impl<P: Protocol> Deferral<P> for Absent {
    const PRESENT: bool = false;

    fn of(_protocol: &P) -> Option<&Self> {
        None
    }

    fn deferred(&self, _: &mut Attempt<P>, _: ItemId, _: u64) {
        match *self {}
    }

    fn line_up(&self, _: &mut Attempt<P>, _: Option<u64>) -> Result<(), ConflictCause> {
        match *self {}
    }

    fn acquire_in_order(&self, _: &mut Attempt<P>, _: ItemId, _: bool) -> Result<bool, ConflictCause> {
        match *self {}
    }

    fn segment_done(&self, _: &mut Attempt<P>, _: ItemId) {
        match *self {}
    }
}

/// The access of a deferred operation to its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It reads the segment.
    Read,
    /// It changes the segment.
    Write,
}

/// A worker's operations that others may steal: its *board* ([`graph`](crate::graph) says what is on it).
pub struct StealableOperations<P: Protocol> {
    pub(crate) board: <P as Slots>::Board,
}

impl<P: Protocol> Default for StealableOperations<P> {
    fn default() -> Self {
        Self { board: Default::default() }
    }
}

impl<P: Protocol> fmt::Debug for StealableOperations<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StealableOperations").finish_non_exhaustive()
    }
}

/// The protocol's part in stealing: it knows which workers wait for which, and tells them of runnable operations
/// (stealdb §3).
pub trait Stealing<P: Protocol>: Sized {
    /// True except for [`Absent`].
    const PRESENT: bool = true;

    /// Returns the capability of an engine's protocol. `None` if this variant of it does not let others run operations.
    fn of(protocol: &P) -> Option<&Self>;

    /// Returns the board of a worker, from which others steal its operations.
    fn stealable_operations(&self, worker: WorkerId) -> &StealableOperations<P>;

    /// True if a worker waits for the attempt, so that it could steal operations.
    fn has_waiters(&self, attempt: &Attempt<P>) -> bool;

    /// Notes that operations of the attempt are on its board, `stealable` of which can be stolen.
    fn published(&self, attempt: &mut Attempt<P>, batch: u64, stealable: u32);

    /// As [`published`](Self::published), but tells only the attempt's own worker, which may run them as a thief would.
    fn published_ahead(&self, attempt: &mut Attempt<P>, batch: u64, stealable: u32);

    /// True if the attempt runs operations while it waits for its first lock.
    fn runs_ahead(&self, attempt: &Attempt<P>) -> bool;

    /// The protocol state that a thief uses on the owner's behalf. Locks that the thief takes are the owner's; a thief
    /// must not block ([`Attempt::nonblocking`]).
    fn thief_state(&self, owner: WorkerId) -> P::Local;

    /// Merges an item that a thief recorded into the owner's item, where the owner may hold the same lock. The caller
    /// joins flags and mark.
    fn adopt(&self, attempt: &mut Attempt<P>, mine: ItemId, detached: &Item<P>);
}

impl<P: Protocol> Stealing<P> for Absent {
    const PRESENT: bool = false;

    fn of(_protocol: &P) -> Option<&Self> {
        None
    }

    fn stealable_operations(&self, _: WorkerId) -> &StealableOperations<P> {
        match *self {}
    }

    fn has_waiters(&self, _: &Attempt<P>) -> bool {
        match *self {}
    }

    fn published(&self, _: &mut Attempt<P>, _: u64, _: u32) {
        match *self {}
    }

    fn published_ahead(&self, _: &mut Attempt<P>, _: u64, _: u32) {
        match *self {}
    }

    fn runs_ahead(&self, _: &Attempt<P>) -> bool {
        match *self {}
    }

    fn thief_state(&self, _: WorkerId) -> P::Local {
        match *self {}
    }

    fn adopt(&self, _: &mut Attempt<P>, _: ItemId, _: &Item<P>) {
        match *self {}
    }
}

/// The purpose of a range lock. Locks of the same kind are compatible, those of different kinds are not: scans and
/// failed lookups leave the node as it is, and each of two insertions only has to find its own key free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeUse {
    /// A scan of it, or a failed lookup in it.
    Scan,
    /// An insertion into it, or a removal from it.
    Change,
}

/// The identity of a bucket or leaf. Two may have the same identity, and are then locked together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeId(u32);

impl RangeId {
    pub(crate) fn of(meta: &ObjectMeta, version: u64) -> Self {
        Self::new(meta.place(), StructureVersion::number(version))
    }

    /// Returns the identity of the node with this number, of the object with this place among its engine's.
    ///
    /// Both numbers are the same in each run, as addresses are not, so that simulations are repeatable. The nodes of an
    /// index are numbered one by one; those of different objects are kept apart.
    pub fn new(place: u16, node: u32) -> Self {
        Self(u32::from(place).wrapping_mul(0x3d1).wrapping_add(node))
    }

    /// Its stripe out of `stripes`, a power of two. Nodes with neighbouring numbers, which are often in use at the same
    /// time, have stripes far apart.
    #[inline]
    pub fn stripe(self, stripes: usize) -> usize {
        (self.0 as usize).wrapping_mul(0x9e5) & (stripes - 1)
    }
}

/// Locks on buckets and leaves (stealdb §5), for a protocol under which transactions wait for each other. They keep
/// insertions into a scanned range from aborting the transaction that scans.
pub trait RangeLocks<P: Protocol>: Sized {
    /// True except for [`Absent`].
    const PRESENT: bool = true;

    /// Returns the capability of an engine's protocol.
    fn of(protocol: &P) -> Option<&Self>;

    /// Locks a bucket or leaf until the attempt's [cleanup](crate::Steps::after_cleanup) is over. False if it would have to
    /// [wait](Self::wait). Also called if the attempt has locked it already, for this use or the other.
    fn try_lock(&self, attempt: &Attempt<P>, range: RangeId, how: RangeUse) -> bool;

    /// Waits for the lock that [`try_lock`](Self::try_lock) did not get, and takes it.
    fn wait(&self, attempt: &mut Attempt<P>, range: RangeId, how: RangeUse) -> Result<(), Reason>;

    /// Returns the attempt's parts in the deadlocks that its last wait has been in.
    fn deadlocks(&self, _attempt: &Attempt<P>) -> Vec<DeadlockPart> {
        Vec::new()
    }

    /// True if the attempt has locked a bucket or leaf for this use.
    fn holds(&self, attempt: &Attempt<P>, range: RangeId, how: RangeUse) -> bool;
}

impl<P: Protocol> RangeLocks<P> for Absent {
    const PRESENT: bool = false;

    fn of(_protocol: &P) -> Option<&Self> {
        None
    }

    fn try_lock(&self, _: &Attempt<P>, _: RangeId, _: RangeUse) -> bool {
        match *self {}
    }

    fn wait(&self, _: &mut Attempt<P>, _: RangeId, _: RangeUse) -> Result<(), Reason> {
        match *self {}
    }

    fn holds(&self, _: &Attempt<P>, _: RangeId, _: RangeUse) -> bool {
        match *self {}
    }
}

/// Reads that are logged, for a protocol that only checks them at commit.
pub trait LoggedReads<P: Protocol>: Sized {
    /// True except for [`Absent`].
    const PRESENT: bool = true;

    /// Returns the capability of an engine's protocol.
    fn of(protocol: &P) -> Option<&Self>;

    /// The first half of a read of a segment of which the attempt has no pending write, as [`Steps::before_load`](crate::Steps::before_load).
    /// Nothing was installed between two calls that have returned the same note, so a load between them, and an acquire fence after it,
    /// is stable without the second half.
    fn before_load(&self, segment: &TouchedSegment<P>) -> Result<Before, ConflictCause>;

    /// The second half, as [`Steps::after_load`](crate::Steps::after_load): [logs](crate::ReadLog::push) what `prepare` needs to know.
    fn after_load(
        &self,
        attempt: &mut Attempt<P>,
        segment: &TouchedSegment<P>,
        before: Before,
    ) -> Result<(), ConflictCause>;

    /// True if a segment that has no item and is going to be written may be read as by a logged read, with
    /// [`mark_to_write`](Self::mark_to_write) as the second half. Otherwise it is read by its item.
    fn loads_to_write(&self) -> bool {
        false
    }

    /// The second half of such a read: returns the mark for the item, and logs nothing. `None` if the read did not succeed: then it is made by
    /// the item.
    fn mark_to_write(
        &self,
        _attempt: &mut Attempt<P>,
        _segment: &TouchedSegment<P>,
        _before: Before,
    ) -> Option<P::Mark> {
        None
    }
}

impl<P: Protocol> LoggedReads<P> for Absent {
    const PRESENT: bool = false;

    #[inline(always)]
    fn of(_: &P) -> Option<&Self> {
        None
    }

    fn before_load(&self, _: &TouchedSegment<P>) -> Result<Before, ConflictCause> {
        match *self {}
    }

    fn after_load(&self, _: &mut Attempt<P>, _: &TouchedSegment<P>, _: Before) -> Result<(), ConflictCause> {
        match *self {}
    }
}

/// The ranks of what a piece touches, the lowest and the highest: pieces conflict only if they have a rank in common. The
/// pieces of a transaction come in the order of ranks, and have none in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceRanks {
    /// The lowest one.
    pub first: u16,
    /// The highest one.
    pub last: u16,
}

impl PieceRanks {
    /// True if a rank is among both.
    #[inline]
    pub fn overlap(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// A protocol that orders the pieces of different transactions by [ranks](PieceRanks), so that pieces may conflict with others than each
/// transaction's first ([`Protocol::PieceOrder`]).
pub trait PieceOrder<P: Protocol>: Sized {
    /// The order of pieces of this protocol; `None` if its variant has none.
    fn of(protocol: &P) -> Option<&Self>;

    /// Called before each attempt at a piece: waits until the piece may begin. Nothing is held, and no epoch pinned.
    fn before_piece(&self, attempt: &mut Attempt<P>);

    /// Called at the end of a transaction in pieces: waits until those before it have ended. Nothing is held. No other piece follows, even
    /// if the last one has not committed.
    fn end_pieces(&self, attempt: &mut Attempt<P>);
}

impl<P: Protocol> PieceOrder<P> for Absent {
    #[inline(always)]
    fn of(_protocol: &P) -> Option<&Self> {
        None
    }

    fn before_piece(&self, _attempt: &mut Attempt<P>) {
        match *self {}
    }

    fn end_pieces(&self, _attempt: &mut Attempt<P>) {
        match *self {}
    }
}

/// A protocol under which attempts may run [whole in a region](crate::region), without the lock that [`Steps::enter`](crate::Steps::enter) would take
/// ([`Protocol::Elision`]).
pub trait Elision<P: Protocol>: Sized {
    /// The protocol that elides its lock; `None` if its variant does not, or there are no regions.
    fn of(protocol: &P) -> Option<&Self>;

    /// Waits until the lock is free, before a region. False if the attempt should take it instead.
    fn wait_to_elide(&self, attempt: &mut Attempt<P>) -> bool;

    /// Called in the region, before the body: looks at the lock, so that the region is aborted if somebody takes it, and lets the
    /// attempt enter objects without it. False if somebody has it.
    ///
    /// If the region is aborted, [`Steps::begin`](crate::Steps::begin) is called once more.
    fn enter_region(&self, attempt: &mut Attempt<P>) -> bool;
}

impl<P: Protocol> Elision<P> for Absent {
    #[inline(always)]
    fn of(_protocol: &P) -> Option<&Self> {
        None
    }

    fn wait_to_elide(&self, _attempt: &mut Attempt<P>) -> bool {
        match *self {}
    }

    fn enter_region(&self, _attempt: &mut Attempt<P>) -> bool {
        match *self {}
    }
}

/// A protocol whose headers tell the winner of a conflict ([`Protocol::Reports`]), for [reports](crate::Engine::report_both_sides).
pub trait Reports<P: Protocol>: Sized {
    /// The protocol whose headers tell; `None` if those of its variant do not.
    fn of(protocol: &P) -> Option<&Self>;

    /// Returns the worker over which an attempt loses that meets this header, as far as the header tells: the one that has the
    /// segment locked, or the one that has changed it last.
    fn rival(&self, attempt: &Attempt<P>, header: &P::Header) -> Option<Rival>;

    /// Returns a number that tells a worker's commits apart, by which [`rival`](Self::rival) names one of them. Known once
    /// [`prepare`](crate::Steps::prepare) has returned `Ok`.
    #[inline(always)]
    fn commit_number(&self, _attempt: &Attempt<P>) -> u64 {
        0
    }
}

impl<P: Protocol> Reports<P> for Absent {
    #[inline(always)]
    fn of(_protocol: &P) -> Option<&Self> {
        None
    }

    fn rival(&self, _attempt: &Attempt<P>, _header: &P::Header) -> Option<Rival> {
        match *self {}
    }
}

/// The worker over which an attempt loses, as a segment's header names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rival {
    pub(crate) worker: WorkerId,
    pub(crate) which: Which,
}

/// One of a worker's transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// The one that it runs.
    Running,
    /// The last one that has committed.
    Last,
    /// The one whose commit has this [number](Reports::commit_number).
    Commit(u64),
}

impl Rival {
    /// The worker with this number, whose running transaction has the segment.
    pub fn holder(worker: u32) -> Self {
        Self { worker: WorkerId(worker), which: Which::Running }
    }

    /// The worker with this number, which has changed the segment last and is over with that.
    pub fn writer(worker: u32) -> Self {
        Self { worker: WorkerId(worker), which: Which::Last }
    }

    /// As [`writer`](Self::writer), by the commit with this [number](Reports::commit_number).
    pub fn writer_by(worker: u32, commit: u64) -> Self {
        Self { worker: WorkerId(worker), which: Which::Commit(commit) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_a_table_fall_apart_and_tables_keep_their_distance() {
        let stripe = |place, node| RangeId::new(place, node).stripe(4_096);
        let mut stripes: Vec<usize> = (0..400).flat_map(|node| [stripe(3, node), stripe(4, node)]).collect();
        stripes.sort_unstable();
        stripes.dedup();
        assert_eq!(stripes.len(), 800);
    }
}
