//! The progress of each worker's commit in the order of ranks, and the events at which others wait for it.
//!
//! This is the paper's table of maximal ranks, shared by all threads (drp §4.1, §6.1). A worker publishes its
//! *bound*: it has joined all its segments of lower ranks, and so has everybody before it. An attempt behind it in a
//! line may join segments below that bound. (The paper publishes the rank joined last and lets others come up to it.
//! The bound is the rank to be joined next, if nobody is before the worker. So others come further, and two segments
//! may have the same rank. But the bound is never ahead of a predecessor's bound. An attempt behind knows only its
//! direct predecessors, so otherwise it would overtake the others.)

use super::ticket_lock::WORKERS_MAX;
use crate::crowd::Crowd;
use crate::per_worker::PerWorker;
use crossbeam_utils::CachePadded;
use hotrow_sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use hotrow_sync::event::Event;
use hotrow_sync::profile::{name_slice, waiting};
use hotrow_sync::spin::spin_until;
use hotrow_sync::thread;

/// The bound of a worker that is not committing, or whose commit has finished.
pub(crate) const FINISHED: u64 = u64::MAX;
/// The bound of a worker that has joined all its lines and waits for others to finish.
pub(crate) const JOINED_ALL: u64 = u64::MAX - 1;
/// The highest rank there is.
pub(crate) const RANK_MAX: u64 = u64::MAX - 2;

/// The commit of one worker.
#[derive(Debug)]
pub(crate) struct WorkerProgress {
    /// Number of commits of the worker so far.
    serial: AtomicU64,
    bound: AtomicU64,
}

impl Default for WorkerProgress {
    fn default() -> Self {
        Self { serial: AtomicU64::new(0), bound: AtomicU64::new(FINISHED) }
    }
}

impl WorkerProgress {
    /// Publishes that this commit and all its predecessors have joined everything below `rank`, or everything.
    #[inline(always)]
    pub(crate) fn advance(&self, rank: Option<u64>) {
        // Release: pairs with the acquire in `has_passed`. An attempt that joins a line because of it joins behind
        // this worker.
        self.bound.store(rank.map_or(JOINED_ALL, |rank| rank.min(JOINED_ALL)), Ordering::Release);
    }

    /// The bound that the worker itself has published last.
    #[inline(always)]
    pub(crate) fn own_bound(&self) -> u64 {
        // Relaxed: only the worker itself changes it.
        self.bound.load(Ordering::Relaxed)
    }
}

/// A commit that precedes another one in a line (drp §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Predecessor {
    pub(crate) worker: u32,
    serial: u64,
}

/// Number of places to wait at. Each awaited condition has a number; several numbers share a place.
const PLACES: usize = if cfg!(test) { 2 } else { 64 };

/// Number of workers whose words lie in one cache line.
const IN_A_LINE: usize = 16;

/// The progress of all workers' commits.
#[derive(Debug)]
pub(crate) struct Progress {
    commits: PerWorker<WorkerProgress>,
    /// Odd while a worker has finished a commit that is going to change an index, and has not changed it yet. Many
    /// words lie in one cache line, because all of them are loaded together.
    restructuring: PerWorker<[AtomicU32; IN_A_LINE]>,
    places: Box<[CachePadded<Event>]>,
    /// Number of threads that are parked, or about to park.
    parked: CachePadded<AtomicU32>,
    crowd: CachePadded<Crowd>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            commits: PerWorker::new(WORKERS_MAX),
            restructuring: PerWorker::new(WORKERS_MAX.div_ceil(IN_A_LINE as u32)),
            places: {
                let places: Box<[CachePadded<Event>]> =
                    (0..PLACES).map(|_| CachePadded::new(Event::new())).collect();
                name_slice(&places, || String::from("the events at which workers wait"));
                places
            },
            parked: CachePadded::default(),
            crowd: CachePadded::default(),
        }
    }

    /// Begins a commit that will first join a segment of this rank.
    #[inline]
    pub(crate) fn begin(&self, worker: u32, rank: Option<u64>) -> &WorkerProgress {
        let commit = self.commits.of(worker);
        // Relaxed: only the worker itself changes it.
        let serial = commit.serial.load(Ordering::Relaxed);
        if serial == 0 {
            self.crowd.join(worker);
        }
        // Release, both, in this order: a thread that sees the new bound sees the new serial number. A thread that
        // finds the worker in a line, which it joins later, sees both.
        commit.serial.store(serial + 1, Ordering::Release);
        commit.advance(rank);
        commit
    }

    /// The numbers of the workers that have begun a commit.
    #[inline]
    pub(crate) fn workers(&self) -> std::ops::Range<u32> {
        self.crowd.workers()
    }

    /// Returns the commit of a worker.
    #[inline]
    pub(crate) fn of(&self, worker: u32) -> &WorkerProgress {
        self.commits.of(worker)
    }

    /// Publishes that the commit has finished: it and all its predecessors have joined all their lines.
    #[inline]
    pub(crate) fn finish(&self, worker: u32) {
        self.commits.of(worker).bound.store(FINISHED, Ordering::Release);
    }

    fn restructuring(&self, worker: u32) -> &AtomicU32 {
        &self.restructuring.of(worker / IN_A_LINE as u32)[worker as usize % IN_A_LINE]
    }

    /// Publishes that a worker's commit is going to change an index. The next call publishes that it has changed it.
    pub(crate) fn toggle_restructuring(&self, worker: u32) {
        let word = self.restructuring(worker);
        // Relaxed: only the worker itself changes it. The store pairs with the loads in `wait_for_restructuring`.
        // The word is odd before the commit finishes. So an attempt that comes after it in the serial order loads
        // that word, or a later word and then the index as it is now. Sequentially consistent, because an attempt
        // may come after another one without having seen anything of it: it was not in a line when the other looked
        // (`TicketLock::version`).
        word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::SeqCst);
    }

    /// Waits until all finished commits have made their announced changes of indexes. These include all commits
    /// whose effects the caller has seen, directly or through other transactions. Their insertions and deletions are
    /// in the index afterwards. `seen` lends room for a word of each worker.
    ///
    /// The caller has not finished, so no finished commit is behind it or waits for it. A commit that has published
    /// a change and has not finished yet waits for nobody any more. Commits that publish one later come after the
    /// caller.
    pub(crate) fn wait_for_restructuring(&self, worker: u32, seen: &mut Vec<(u32, u32)>) {
        let word = |other| self.restructuring(other).load(Ordering::SeqCst);
        let others = self.crowd.workers().filter(|other| *other != worker);
        seen.clear();
        seen.extend(others.map(|other| (other, word(other))).filter(|(_, seen)| seen % 2 == 1));
        for (other, seen) in seen.drain(..) {
            if word(other) == seen {
                let _waiting = waiting("changes of an index", 0);
                self.wait(u64::from(other), || word(other) != seen);
            }
        }
    }

    /// Returns the commit that a worker is in now.
    ///
    /// It is the commit that was found in a line, if that one still is in the line afterwards: a later commit begins
    /// when the earlier one has left its lines, and a thread that loads its serial number sees that (acquire).
    #[inline]
    pub(crate) fn current(&self, worker: u32) -> Predecessor {
        Predecessor { worker, serial: self.commits.of(worker).serial.load(Ordering::Acquire) }
    }

    /// Returns the rank below which a predecessor and all its own predecessors have joined all their lines.
    #[inline]
    pub(crate) fn bound(&self, predecessor: Predecessor) -> u64 {
        let commit = self.commits.of(predecessor.worker);
        // Acquire, both, in this order: a thread that loads a later commit's bound loads its serial number, too.
        let bound = commit.bound.load(Ordering::Acquire);
        if commit.serial.load(Ordering::Acquire) == predecessor.serial { bound } else { FINISHED }
    }

    /// True if a predecessor and all its own predecessors have joined all their lines up to and including `rank`.
    #[inline]
    fn has_passed(&self, predecessor: Predecessor, rank: u64) -> bool {
        self.bound(predecessor) > rank
    }

    /// True if a predecessor has finished.
    #[inline]
    pub(crate) fn has_finished(&self, predecessor: Predecessor) -> bool {
        self.has_passed(predecessor, JOINED_ALL)
    }

    /// Waits until a predecessor has passed `rank`.
    #[inline]
    pub(crate) fn wait_passed(&self, predecessor: Predecessor, rank: u64) {
        if !self.has_passed(predecessor, rank) {
            let kind = if rank == JOINED_ALL { "the end of a predecessor" } else { "a predecessor's rank" };
            let _waiting = waiting(kind, 0);
            self.wait(u64::from(predecessor.worker), || self.has_passed(predecessor, rank));
        }
    }

    /// Waits until a predecessor has finished.
    #[inline]
    pub(crate) fn wait_finished(&self, predecessor: Predecessor) {
        self.wait_passed(predecessor, JOINED_ALL);
    }

    fn place(&self, number: u64) -> &Event {
        &self.places[(number ^ number >> 32) as usize % PLACES]
    }

    /// Waits until `condition` holds; [`tell`](Self::tell) with `number` wakes it.
    ///
    /// It waits only for attempts that joined a line before, and those never wait for attempts that joined later. So
    /// the condition comes to hold. There is no deadline, because an attempt in a line cannot leave it before its
    /// turn.
    #[cold]
    pub(crate) fn wait(&self, number: u64, mut condition: impl FnMut() -> bool) {
        let rounds = match () {
            () if cfg!(loom) => 0,
            () if self.is_crowded() => 8,
            () => 4_096,
        };
        if spin_until(rounds, &mut condition) {
            return;
        }
        // Sequentially consistent: see `tell`.
        self.parked.fetch_add(1, Ordering::SeqCst);
        self.place(number).wait_until(condition);
        // Relaxed: no waiter that could be missed is left.
        self.parked.fetch_sub(1, Ordering::Relaxed);
    }

    /// Wakes the threads that wait for one of these numbers. Their condition's words have been stored before.
    ///
    /// Either this load sees that a thread is parked, or a thread that parks checks its condition after the fence,
    /// and so sees the earlier stores.
    #[inline]
    pub(crate) fn tell(&self, numbers: impl Iterator<Item = u64>) {
        fence(Ordering::SeqCst);
        if self.parked.load(Ordering::Relaxed) != 0 {
            self.wake(numbers);
        }
    }

    #[cold]
    fn wake(&self, numbers: impl Iterator<Item = u64>) {
        for number in numbers {
            self.place(number).notify_all();
        }
        if self.is_crowded() {
            thread::yield_now();
        }
    }

    /// True if there are more workers at work than can run at once.
    fn is_crowded(&self) -> bool {
        self.crowd.is_large(|worker| self.of(worker).serial.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_predecessor_passes_ranks_in_their_order_and_finishes_last() {
        let progress = Progress::new();
        let commit = progress.begin(3, Some(5));
        let predecessor = progress.current(3);
        assert!(progress.has_passed(predecessor, 4) && !progress.has_passed(predecessor, 5));
        commit.advance(Some(9));
        assert!(progress.has_passed(predecessor, 8) && !progress.has_passed(predecessor, 9));
        commit.advance(None);
        assert!(progress.has_passed(predecessor, RANK_MAX) && !progress.has_finished(predecessor));
        progress.finish(3);
        assert!(progress.has_finished(predecessor));
    }

    #[test]
    fn a_later_commit_of_the_same_worker_is_another() {
        let progress = Progress::new();
        progress.begin(0, Some(5));
        let predecessor = progress.current(0);
        progress.finish(0);
        progress.begin(0, Some(1));
        assert!(progress.has_finished(predecessor));
        assert!(!progress.has_finished(progress.current(0)));
    }
}
