//! The order of pieces under `ic3`: a piece that has committed is seen at once, and those that see it come after its transaction
//! (Wang, Mu, Cui, Yi, Chen, Li, "Scaling Multicore Databases via Constrained Parallel Execution", SIGMOD 2016).
//!
//! # Algorithm
//!
//! The tables, or their column groups, have *ranks* (`hotrow_procedures::chopping`). Each piece of a transaction touches one of them (or
//! several neighbours), and the pieces come in the order of ranks. A transaction publishes its *bound*: it, and all transactions before
//! it, have done with all ranks below.
//!
//! A piece with the ranks `first..=last` that may conflict with pieces of others
//!
//! 1. waits, before it begins, until all transactions that its own *comes after* have bounds above `last`;
//! 2. executes, and locks what it will write, as `occ` does;
//! 3. takes the latches of the accessor lists of all that it has read or will write, draws the stamp if it is the first, and
//!    validates;
//! 4. finds in the lists the transactions in progress with a conflicting access. One whose bound is not above `last` is in the way: the
//!    attempt is aborted, and the next one waits until it is. After the others the transaction *comes* from now on;
//! 5. enters itself in the lists, publishes the bound `last + 1`, and lets go of the latches; then it installs, and unlocks.
//!
//! After its last piece a transaction waits until all that it comes after have ended. Then it has ended itself, and its caller is told.
//! Pieces that conflict with no others are transactions of `occ` and do nothing of this.
//!
//! # Why it is serializable
//!
//! If two accesses of different transactions conflict, their accessor list has an order of the two: each is validated and entered
//! while the latch is held. (A write is installed after it was entered, under the segment's lock; who reads before it is installed fails
//! the validation, or reads the version before and has entered before.) The later one finds the earlier one, and ends after it, or the
//! earlier one has ended before. So each transaction ends after all those of which it has seen something, and whatever it has
//! overwritten: the order of ends is a serial order. It agrees with real time, because the caller is told at the end. Transactions
//! that are not in pieces overlap no one between two pieces (`hotrow_core`, `pieces.rs`).
//!
//! # Why nobody waits for ever
//!
//! *`A` comes after `B`* is entered only when the bound of `B` is above the `last` of the piece of `A`, while the bound of `A` is no more
//! than its `first`; and `A` publishes no bound above that of any transaction that it comes after. So along "comes after" bounds never
//! fall, and no new one closes a circle: if `B` came after `A` already, the bound of `B` would be no more than that of `A`. Several that
//! are entered at the same time do not close one either, because bounds do not change during a commit, and each has a larger one at its end.
//! Who waits for a transaction in the way (step 4) waits for one with a larger bound than its own, because that one has done with a
//! rank that both have. So in a circle of waits all bounds would be equal, and all waits for those that come before; but these form
//! no circle.
//!
//! It follows that a waiter needs to know its direct predecessors only, and that a bound must be published in waits, too: where a transaction
//! has no piece at a rank, it passes it when those before it have.
//!
//! # Only what is necessary waits
//!
//! A transaction that has done its last conflicting piece has passed all later ranks as soon as those before it have. A piece that
//! conflicts with nobody waits for nobody. Waiting for those only whose remaining pieces can conflict with the own one would not do: the bound stands for
//! transactions that the waiter does not know.
//!
//! # Rollbacks
//!
//! In the paper a transaction that aborts takes along those that have seen its writes. Here an exposed transaction does not abort: all operations upon which a procedure decides are in its first piece (or before), and the others
//! are repeated until they commit.
//!
//! A piece that rolls back is validated, and entered in the lists, as one that only reads: what it has decided upon is a state of the serial
//! order, and the caller is told when those that it has seen have ended.
//!
//! # Snapshots
//!
//! All pieces of a transaction have one stamp, drawn in the first that conflicts. A transaction with a later epoch than one that is
//! exposed and in progress comes after it: in its first commit it looks at all workers, and takes those with an earlier epoch for
//! transactions before it, as if they had a conflict (and so waits for them, if they have not passed its ranks). So no transaction comes
//! after one with a later epoch.
//!
//! Each worker shows its epoch. The word is [`DRAWING`] from before it looks at the clock, then the epoch, and then, when its first piece is
//! published, the epoch marked as exposed; after an attempt that fails it is 0 again, and the next one draws again. Whoever meets a worker in
//! one of the first two states, with an earlier epoch, waits until that commit has ended: it holds all its locks and latches, and
//! waits for commits with still earlier epochs only. When a look has found nobody with an earlier epoch, there will be none any more
//! ([`Order::quiet`]).
//!
//! Nobody waits between attempts for a transaction that is not exposed. So such a one is in no circle of waits, and for the others the
//! argument above is all that is needed.

use super::Ic3;
use super::accessors::{Access, Accessors, Kinds};
use crate::drp::progress::{FINISHED, JOINED_ALL, Predecessor, Progress};
use crate::host::Host;
use crate::per_worker::PerWorker;
use crate::version::{self, WORKERS_MAX};
use crossbeam_utils::CachePadded;
use hotrow_core::{
    Attempt, ConflictCause, ConflictTarget, Counter, Flags, ItemId, KeySpan, PieceRanks, Reason,
};
use hotrow_sync::atomic::{AtomicU64, Ordering, fence};
use hotrow_sync::profile::waiting;
use hotrow_sync::spin::Spin;

/// The epoch of a worker that is drawing a stamp.
const DRAWING: u64 = u64::MAX;
/// The bit of an epoch whose transaction is exposed. The others are above it.
const EXPOSED: u64 = 1;

/// The order of an engine's pieces.
#[derive(Debug)]
pub(super) struct Order {
    progress: Progress,
    accessors: Accessors,
    /// The epoch of each worker's transaction, above [`EXPOSED`]; 0 if it has none.
    epochs: PerWorker<AtomicU64>,
    /// No transaction in progress has an earlier epoch, nor will one have.
    quiet: CachePadded<AtomicU64>,
}

/// A worker's transaction in pieces.
#[derive(Debug, Default)]
pub(super) struct OrderLocal {
    /// True if it has begun a piece that may conflict.
    has_begun: bool,
    /// True if such a piece has committed.
    is_exposed: bool,
    /// True from the latching of a piece's lists until it has installed or failed.
    is_committing: bool,
    /// True if the attempt has drawn the stamp.
    has_drawn: bool,
    /// The transactions that it comes after, unless they have ended.
    after: Vec<Predecessor>,
    /// Those that were in the way of the last attempt, with the ranks that they must pass.
    in_the_way: Vec<(Predecessor, u64)>,
    /// The accesses of the piece that commits.
    accesses: Vec<Access>,
    /// Where keys come, go or are absent, by their objects' places, while accesses are collected.
    spans: Vec<(u16, Kinds, KeySpan)>,
    /// The lists whose latches are held.
    latched: Vec<u32>,
    /// True if the piece has entered its accesses, and has not installed.
    has_entered: bool,
}

impl Order {
    pub(super) fn new() -> Self {
        Self {
            progress: Progress::new(),
            accessors: Accessors::new(),
            epochs: PerWorker::new(WORKERS_MAX),
            quiet: CachePadded::default(),
        }
    }

    /// Waits until a piece may begin.
    pub(super) fn before_piece<H: Host<Ic3>>(&self, attempt: &mut Attempt<H>) {
        let Some(ranks) = attempt.piece_ranks() else { return };
        let worker = attempt.worker().number();
        if !std::mem::replace(&mut H::local_mut(&mut attempt.local).order.has_begun, true) {
            self.progress.begin(worker, Some(0));
        }
        // INVARIANT 19: The pieces of a transaction come in the order of ranks.
        debug_assert!(
            self.progress.of(worker).own_bound() <= u64::from(ranks.first),
            "pieces come in the order of ranks"
        );
        self.wait_for_those_before(attempt, u64::from(ranks.first), u64::from(ranks.last) + 1);
        while let Some((other, rank)) = H::local_mut(&mut attempt.local).order.in_the_way.pop() {
            if self.progress.bound(other) <= rank {
                attempt.count(const { Counter::PIECE_WAITS.place::<H>() });
                let _waiting = waiting("a transaction in the way", 0);
                self.progress.wait(u64::from(other.worker), || self.progress.bound(other) > rank);
            }
        }
    }

    /// Waits until all that the transaction comes after have at least the bound `enough`. Publishes its own bound meanwhile, which is
    /// `own_max` if nobody before it has a lower one.
    fn wait_for_those_before<H: Host<Ic3>>(&self, attempt: &mut Attempt<H>, own_max: u64, enough: u64) {
        let worker = attempt.worker().number();
        let own = self.progress.of(worker);
        loop {
            let mut lowest: Option<(Predecessor, u64)> = None;
            H::local_mut(&mut attempt.local).order.after.retain(|other| {
                let bound = self.progress.bound(*other);
                if bound != FINISHED && lowest.is_none_or(|(_, lowest)| bound < lowest) {
                    lowest = Some((*other, bound));
                }
                bound != FINISHED
            });
            let bound = lowest.map_or(own_max, |(_, lowest)| lowest.min(own_max));
            if bound > own.own_bound() {
                own.advance(Some(bound));
                self.progress.tell(std::iter::once(u64::from(worker)));
            }
            let Some((other, bound)) = lowest.filter(|(_, bound)| *bound < enough) else { return };
            attempt.count(const { Counter::PIECE_WAITS.place::<H>() });
            let kind =
                if enough == FINISHED { "the end of a transaction before" } else { "a rank of one before" };
            let _waiting = waiting(kind, 0);
            self.progress.wait(u64::from(other.worker), || self.progress.bound(other) != bound);
        }
    }

    /// Ends the worker's transaction, when all that it comes after have ended.
    pub(super) fn end<H: Host<Ic3>>(&self, attempt: &mut Attempt<H>) {
        if !std::mem::take(&mut H::local_mut(&mut attempt.local).order.has_begun) {
            return;
        }
        self.wait_for_those_before(attempt, JOINED_ALL, FINISHED);
        let worker = attempt.worker().number();
        // Relaxed: who looks checks afterwards that the transaction is in progress.
        self.epochs.of(worker).store(0, Ordering::Relaxed);
        self.progress.finish(worker);
        self.progress.tell(std::iter::once(u64::from(worker)));
        let order = &mut H::local_mut(&mut attempt.local).order;
        order.is_exposed = false;
        order.in_the_way.clear();
    }

    /// The first half of the commit of a piece. Returns the highest number among the versions read and overwritten.
    pub(super) fn prepare<H: Host<Ic3>>(
        &self,
        attempt: &mut Attempt<H>,
        ranks: PieceRanks,
    ) -> Result<u64, ConflictCause> {
        let overwritten = version::lock_writes::<Ic3, H>(attempt)?;
        self.latch(attempt);
        version::upgrade_predicates::<Ic3, H>(attempt)?;
        let is_first = !H::local(&attempt.local).order.is_exposed;
        let epoch = self.epochs.of(attempt.worker().number());
        if is_first {
            // Sequentially consistent, before the clock is read: see `find_earlier`.
            epoch.store(DRAWING, Ordering::SeqCst);
        }
        H::local_mut(&mut attempt.local).order.has_drawn = attempt.stamp_epoch() == 0;
        // INVARIANT 12: A commit draws its stamp under all its locks and before it validates, so that no successor has a smaller stamp.
        attempt.draw_stamp();
        if is_first {
            epoch.store(attempt.stamp_epoch() << 1, Ordering::SeqCst);
        }
        // Orders the reads before the checks, also where nothing is locked: K2.
        fence(Ordering::Acquire);
        let read = version::validate_beside_locks::<Ic3, H>(attempt)?;
        if is_first && attempt.stamp_epoch() > self.quiet.load(Ordering::Relaxed) {
            self.find_earlier(attempt, ranks);
        }
        self.find_conflicts(attempt, ranks);
        if !H::local(&attempt.local).order.in_the_way.is_empty() {
            return Err(lost(attempt));
        }
        let own = self.progress.current(attempt.worker().number());
        let order = &mut H::local_mut(&mut attempt.local).order;
        for access in &order.accesses {
            // SAFETY: the latches of all accesses are held.
            unsafe { self.accessors.enter(access, ranks, own, &self.progress) };
        }
        order.has_entered = true;
        Ok(overwritten.max(read))
    }

    /// Validates a piece that is going to be rolled back, as if it committed with what it has read alone. So the transaction has
    /// seen one state of a serial order, and its caller is told when those before it have ended.
    pub(super) fn validate_before_rollback<H: Host<Ic3>>(
        &self,
        attempt: &mut Attempt<H>,
        ranks: PieceRanks,
    ) -> Result<(), ConflictCause> {
        if !H::local(&attempt.local).order.is_committing {
            self.prepare(attempt, ranks)?;
            self.publish(attempt, ranks);
        }
        // Else it has been validated by its commit, which something else has stopped.
        Ok(())
    }

    /// Publishes a piece that can fail no more. Its writes are locked until they are installed.
    pub(super) fn publish<H: Host<Ic3>>(&self, attempt: &mut Attempt<H>, ranks: PieceRanks) {
        let worker = attempt.worker().number();
        // Before the latches are given back, so that whoever finds the entries finds the bound.
        self.progress.of(worker).advance(Some(u64::from(ranks.last) + 1));
        if !H::local(&attempt.local).order.is_exposed {
            // Release: who sees it sees the bound.
            self.epochs.of(worker).store(attempt.stamp_epoch() << 1 | EXPOSED, Ordering::Release);
        }
        let order = &mut H::local_mut(&mut attempt.local).order;
        order.is_committing = false;
        order.has_entered = false;
        order.is_exposed = true;
        self.accessors.unlatch(&order.latched);
        order.latched.clear();
        self.progress.tell(std::iter::once(u64::from(worker)));
    }

    /// Gives back what an attempt at a piece holds that has failed.
    pub(super) fn release<H: Host<Ic3>>(&self, attempt: &mut Attempt<H>) {
        if !std::mem::take(&mut H::local_mut(&mut attempt.local).order.is_committing) {
            return;
        }
        if !H::local(&attempt.local).order.is_exposed {
            // Release: as in `publish`.
            self.epochs.of(attempt.worker().number()).store(0, Ordering::Release);
            if H::local(&attempt.local).order.has_drawn {
                attempt.forget_stamp();
            }
        }
        let (ranks, own) = (attempt.piece_ranks(), self.progress.current(attempt.worker().number()));
        let order = &mut H::local_mut(&mut attempt.local).order;
        if std::mem::take(&mut order.has_entered)
            && let Some(ranks) = ranks
        {
            for slot in &order.latched {
                // SAFETY: the latch is held.
                unsafe { self.accessors.take_back(*slot, ranks, own) };
            }
        }
        self.accessors.unlatch(&order.latched);
        order.latched.clear();
    }

    /// Lists the attempt's accesses, and takes the latches of their lists.
    fn latch<H: Host<Ic3>>(&self, attempt: &mut Attempt<H>) {
        let mut accesses = std::mem::take(&mut H::local_mut(&mut attempt.local).order.accesses);
        accesses.clear();
        let mut spans = std::mem::take(&mut H::local_mut(&mut attempt.local).order.spans);
        spans.extend(attempt.observed_spans().map(|(meta, span)| (meta.place(), Kinds::OBSERVE, span)));
        if attempt.changes_structure() {
            for item in attempt.items.iter().filter(|item| item.is(Flags::WRITE)) {
                if !item.is_any(&[Flags::INSERTED, Flags::CLEANUP]) {
                    continue;
                }
                let (place, span) = (item.place(), item.span());
                if !item.is(Flags::INSERTED) {
                    spans.push((place, Kinds::DELETE, span));
                } else if !item.has_effect() {
                    // One that was deleted again only tells that the key was absent; its record is never seen.
                    spans.push((place, Kinds::OBSERVE, span));
                } else {
                    // In one span, because there are many and they conflict with few.
                    let known = spans.iter_mut().find(|of| (of.0, of.1) == (place, Kinds::INSERT));
                    match known {
                        Some((.., all)) => *all = all.with(span),
                        None => spans.push((place, Kinds::INSERT, span)),
                    }
                }
            }
        }
        for (place, kinds, span) in spans.drain(..) {
            for slot in Accessors::slots_of_object(place, kinds, attempt.worker().number()) {
                accesses.push(Access { slot, key: usize::from(place), span, kinds });
            }
        }
        H::local_mut(&mut attempt.local).order.spans = spans;
        let mut add = |rank: u64, key: usize, kinds: Kinds| {
            accesses.push(Access { slot: Accessors::slot_of(rank), key, span: KeySpan::ALL, kinds });
        };
        for item in attempt.items.iter() {
            let kinds = match (item.is_any(&[Flags::READ, Flags::PREDICATE]), item.is(Flags::WRITE)) {
                (true, true) => Kinds::READ.and(Kinds::WRITE),
                (true, false) => Kinds::READ,
                (false, true) => Kinds::WRITE,
                (false, false) => continue,
            };
            add(item.rank(), item.segment().addr().get(), kinds);
        }
        for read in attempt.reads.iter() {
            add(read.segment().rank(), read.segment().address(), Kinds::READ);
        }
        let order = &mut H::local_mut(&mut attempt.local).order;
        order.is_committing = true;
        order.latched.extend(accesses.iter().map(|access| access.slot));
        order.latched.sort_unstable();
        order.latched.dedup();
        order.accesses = accesses;
        self.accessors.latch(&order.latched);
    }

    /// Finds the transactions in progress whose accesses conflict with the attempt's.
    fn find_conflicts<H: Host<Ic3>>(&self, attempt: &mut Attempt<H>, ranks: PieceRanks) {
        let own = self.progress.current(attempt.worker().number());
        let accesses = std::mem::take(&mut H::local_mut(&mut attempt.local).order.accesses);
        for access in &accesses {
            // SAFETY: the latches of all accesses are held.
            unsafe {
                self.accessors.conflicts(access, ranks, own, &self.progress, |other, bound| {
                    self.note(attempt, ranks, other, bound);
                });
            }
        }
        H::local_mut(&mut attempt.local).order.accesses = accesses;
    }

    /// Finds the exposed transactions in progress with an earlier epoch.
    #[cold]
    fn find_earlier<H: Host<Ic3>>(&self, attempt: &mut Attempt<H>, ranks: PieceRanks) {
        let (own, epoch) = (attempt.worker().number(), attempt.stamp_epoch());
        let mut is_quiet = true;
        // A worker whose epoch is not to be seen here reads the clock after this, and draws this epoch or a later one.
        fence(Ordering::SeqCst);
        for worker in self.progress.workers().filter(|worker| *worker != own) {
            let (other, earlier) = loop {
                let other = self.progress.current(worker);
                let mut spin = Spin::new();
                let earlier = loop {
                    let word = self.epochs.of(worker).load(Ordering::SeqCst);
                    // One with this epoch or a later one may wait for this commit.
                    let is_committing =
                        word == DRAWING || word & EXPOSED == 0 && word != 0 && word >> 1 < epoch;
                    if !is_committing {
                        break if word & EXPOSED == 0 { 0 } else { word >> 1 };
                    }
                    spin.turn_or_yield();
                };
                if self.progress.current(worker) == other {
                    break (other, earlier);
                }
            };
            let bound = self.progress.bound(other);
            if bound != FINISHED && earlier != 0 && earlier < epoch {
                is_quiet = false;
                self.note(attempt, ranks, other, bound);
            }
        }
        if is_quiet {
            // Relaxed: whoever draws this epoch has read the clock, and needs no more.
            self.quiet.fetch_max(epoch, Ordering::Relaxed);
        }
    }

    /// Notes a transaction in progress that the attempt comes after, or must wait for.
    fn note<H: Host<Ic3>>(
        &self,
        attempt: &mut Attempt<H>,
        ranks: PieceRanks,
        other: Predecessor,
        bound: u64,
    ) {
        let rank = u64::from(ranks.last);
        let order = &mut H::local_mut(&mut attempt.local).order;
        if bound <= rank {
            order.in_the_way.push((other, rank));
        } else if !order.after.contains(&other) {
            order.after.push(other);
            attempt.count(const { Counter::DEPENDENCIES.place::<H>() });
        }
    }
}

/// The conflict of an attempt that must wait for another transaction first.
fn lost<H: Host<Ic3>>(attempt: &Attempt<H>) -> ConflictCause {
    let item: Option<ItemId> = attempt.items.entries().map(|(id, _)| id).next();
    let target = match item {
        Some(item) => ConflictTarget::Item(item),
        None if attempt.reads.iter().next().is_some() => ConflictTarget::Read(0),
        None if attempt.has_structures() => ConflictTarget::Structure(0),
        // Those that have committed before it began come before it, although it has met none of them.
        None => ConflictTarget::Nothing,
    };
    ConflictCause::new(Reason::OutOfOrder, target)
}
