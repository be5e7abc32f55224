//! The clock that stamps commits, and the points in its time at which snapshots read.
//!
//! # A point
//!
//! Whoever makes a point sets the clock to the point's number `s`. Commits that draw their stamp from then on have `s` or
//! more. Those with less are under way already, and each shows that in its worker's word ([`Announcement`]): the maker
//! waits until each word has changed that showed a commit. Then the point is *ready*.
//!
//! Several points may be *pending* at a time, so that a reader which comes while others wait for commits need not wait for these first.
//! Their numbers grow in the order in which they were begun, and whatever an earlier one waits for, a later one waits for as well or has
//! found ended: if one is ready, so are all before it.
//!
//! The announcement and the clock are two words that two threads write and read crosswise. While commits are stamped, both sides
//! have a full fence between: whoever does not see the new clock has announced itself visibly.
//!
//! # The first point
//!
//! Before it, commits draw no stamps: they announce themselves and look at `stamping` without a fence in between. Whoever
//! switches `stamping` on issues the barrier for both sides ([`hotrow_sync::barrier`]) and waits for all commits that are
//! announced then. The others see the switch. So no commit without a stamp is under way when the first point is made. (Where the
//! system has no such barrier, `stamping` is on from the beginning.)
//!
//! # The fences around the clock
//!
//! A commit has a full fence before it reads the clock, after its locks, and one after, before it validates its reads. If `A`
//! must come before `B`, then `B` has seen a write of `A`'s, or has locked what `A` has validated as unlocked, directly or over
//! transactions in between that only read. In each case the fence after `A`'s reading of the clock comes before the fence before
//! `B`'s, and so `B` reads the same number or a later one.
//!
//! # Commits in regions
//!
//! A commit in a region reads the clock inside. If the clock is set meanwhile, the region is aborted. So the commit happens, with all its
//! writes, at one moment at which the clock has its stamp: it announces nothing, and whoever makes a point need not wait for it. For the
//! order of stamps, its fences before and after the reading are the region's beginning and end: what `B` has seen of `A`, or has locked
//! although `A` had validated it, is on the other side of one moment.

use super::moment::{LastMoment, Moment};
use super::readers::{ReaderSlot, Readers};
use super::{LINGER, STALENESS_MAX, Sweep};
use crate::features::history::recorder::Recorder;
use crate::features::unacknowledged::NewestCommits;
use crate::memory::retained;
use crate::memory::versions::{OpenNumbers, Place, Versions};
use acknowledged::AcknowledgedPoints;
use crossbeam_utils::CachePadded;
use hotrow_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use hotrow_sync::clock::Duration;
use hotrow_sync::profile::waiting;
use hotrow_sync::spin::{Spin, spin_until};
use hotrow_sync::{Arc, Mutex, OnceLock, barrier, lock, thread, try_lock};
// The standard library's, because models do not follow the structures that register.
use std::collections::VecDeque;
use std::sync::Weak;

/// The snapshots of an engine: clock, points, readers, versions.
pub(crate) struct Snapshots {
    now: CachePadded<Now>,
    /// The newest point that is ready; 0 if there is none.
    ready: AtomicU64,
    /// The facts about the points made last, by their numbers.
    points: [Point; POINTS],
    /// When a snapshot was last asked for.
    last_use: LastMoment,
    /// The same for one that may be a little old: it should not have to wait for commits.
    last_stale_use: LastMoment,
    readers: Readers,
    versions: Versions,
    /// The recorder of the engine's history, if one is recorded.
    pub(crate) recorder: OnceLock<Arc<Recorder>>,
    /// True if commits are always stamped, because a log goes by it, or because there is no cheap way to begin.
    always: bool,
    /// True if transactions may be in pieces.
    chopping: AtomicBool,
    /// The number of transactions in progress beside which none may be in pieces.
    whole: CachePadded<AtomicU64>,
    /// The words of all workers, and of some that have ended. Locked for moments only, so that no worker waits for a snapshot
    /// when it begins.
    workers: Mutex<Vec<Word>>,
    /// The points that are not ready yet, the oldest first. Locked for moments only, but for the first point after a while.
    pending: Mutex<PendingPoints>,
    /// The newest commits, if they are logged.
    newest_commits: Option<NewestCommits>,
    /// The points for which a log answers.
    acknowledged: AcknowledgedPoints,
    /// The number of readers that wait for a pending point. It grows under the lock of `pending`.
    waiting: AtomicUsize,
    /// Structures that keep removed segments for snapshots.
    sweeps: Mutex<Vec<Weak<dyn Sweep>>>,
}

/// What commits look at: nothing else is in its cache line, because commits in regions are aborted when that is written.
struct Now {
    /// True while commits are stamped.
    stamping: AtomicBool,
    /// The number with which commits are stamped.
    clock: AtomicU64,
    /// The number of the point made last, ready or not; 0 while there is none. Versions are kept for it.
    newest: AtomicU64,
}

/// What commits are stamped with at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamping {
    /// The clock's number.
    pub(crate) clock: u64,
    /// The number of the newest point; 0 if no versions are kept.
    pub(crate) newest: u64,
}

/// Facts about a point.
#[derive(Default)]
struct Point {
    /// When it was begun.
    since: LastMoment,
    /// The moment in the history, if one is recorded.
    history: AtomicU64,
}

/// The number of points whose facts are kept: the newest one that is ready, those that are pending, the acknowledged one, and the one that
/// the log is writing, which may be pending besides those of readers.
const POINTS: usize = PENDING_MAX + 3;

/// The number of points of readers that may be pending. Readers beyond that wait for the oldest one, and share the next.
const PENDING_MAX: usize = if cfg!(test) { 2 } else { 15 };

/// A snapshot that was opened.
pub(crate) struct Opened {
    pub(crate) number: u64,
    /// Taken when the snapshot ends.
    pub(crate) slot: Option<ReaderSlot>,
    /// The moment at which its point was begun.
    pub(crate) since: Moment,
    /// The same moment in the history.
    pub(crate) history: u64,
    /// The moment in the history at which its transactions count as begun.
    pub(crate) history_begin: u64,
}

type PendingPoints = VecDeque<Pending>;

/// A point that is not ready yet.
#[derive(Clone)]
struct Pending {
    number: u64,
    /// The workers' words that showed a commit, with their values.
    commits: Arc<Vec<(Word, u64)>>,
}

impl Pending {
    /// True if all commits before the point have ended.
    fn is_over(&self) -> bool {
        // Acquire: pairs with the release in `Announcement::end`, so that what was installed is visible.
        self.commits.iter().all(|(word, value)| word.load(Ordering::Acquire) != *value)
    }
}

/// Counts a reader that waits for a pending point, while it lives.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(waiting: &'a AtomicUsize, _pending: &PendingPoints) -> Self {
        // Relaxed: grows, and is compared, under the lock.
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // Relaxed: one more than there are does no harm.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

type Word = Arc<CachePadded<AtomicU64>>;

/// The number of lists that a sweep of a part visits.
const SWEPT: usize = if cfg!(test) { 2 } else { 16 };

/// The number of turns for which a snapshot that must not wait looks if commits under way have ended.
const LOOKS: u32 = 64;

impl Snapshots {
    /// `always`: commits are stamped whether or not there are snapshots. `log`: they are logged, and are acknowledged when they are on the
    /// device (`Some(true)`) or at once.
    pub(crate) fn new(always: bool, log: Option<bool>) -> Arc<Self> {
        let always = always || !barrier::is_asymmetric();
        Arc::new(Self {
            now: CachePadded::new(Now {
                stamping: AtomicBool::new(always),
                clock: AtomicU64::new(1),
                newest: AtomicU64::new(0),
            }),
            ready: AtomicU64::new(0),
            points: std::array::from_fn(|_| Point::default()),
            last_use: LastMoment::default(),
            last_stale_use: LastMoment::default(),
            readers: Readers::new(),
            versions: Versions::new(),
            recorder: OnceLock::new(),
            always,
            chopping: AtomicBool::new(false),
            whole: CachePadded::new(AtomicU64::new(0)),
            workers: Mutex::new(Vec::new()),
            pending: Mutex::new(VecDeque::new()),
            acknowledged: AcknowledgedPoints::new(log == Some(true)),
            newest_commits: log.map(|_| NewestCommits::new()),
            waiting: AtomicUsize::new(0),
            sweeps: Mutex::new(Vec::new()),
        })
    }

    pub(crate) fn versions(&self) -> &Versions {
        &self.versions
    }

    /// The newest commits, if they are logged.
    pub(crate) fn newest_commits(&self) -> Option<&NewestCommits> {
        self.newest_commits.as_ref()
    }

    pub(crate) fn readers(&self) -> &Readers {
        &self.readers
    }

    /// The number of the newest point; 0 if no versions are kept.
    pub(crate) fn newest(&self) -> u64 {
        // SeqCst: `Readers::open` reads it before it looks at the readers.
        self.now.newest.load(Ordering::SeqCst)
    }

    /// The clock's number.
    pub(crate) fn epoch(&self) -> u64 {
        self.now.clock.load(Ordering::SeqCst)
    }

    /// Advances the clock for the log, and waits for the commits that may have a smaller number. Returns the number. It is a point's
    /// while acknowledged points are in use.
    pub(crate) fn advance(&self) -> u64 {
        // Not while a point is begun, whose number is the clock's next.
        let mut pending = lock(&self.pending);
        if self.acknowledged.are_in_use() {
            let point = self.begin_point(&mut pending);
            self.acknowledged.begin(point.number);
            // As a reader that waits for it, so that the keeping of versions does not stop meanwhile.
            let waiting = Waiting::new(&self.waiting, &pending);
            drop(pending);
            wait_for(&point.commits);
            let mut pending = lock(&self.pending);
            drop(waiting);
            self.finish_points(&mut pending, point.number);
            return point.number;
        }
        let number = self.now.clock.fetch_add(1, Ordering::SeqCst) + 1;
        drop(pending);
        // As in `begin_point`.
        fence(Ordering::SeqCst);
        wait_for(&self.announced());
        number
    }

    /// Sets the clock behind an epoch.
    pub(crate) fn continue_after(&self, epoch: u64) {
        let _pending = lock(&self.pending);
        self.now.clock.fetch_max(epoch + 1, Ordering::SeqCst);
    }

    /// Admits transactions in pieces.
    pub(crate) fn begin_chopping(&self) {
        self.chopping.store(true, Ordering::SeqCst);
    }

    /// True if transactions may be in pieces.
    #[inline]
    pub(crate) fn is_chopping(&self) -> bool {
        // Relaxed: set before transactions run.
        self.chopping.load(Ordering::Relaxed)
    }

    /// Counts a transaction beside which none may be in pieces, and waits for those that are.
    pub(crate) fn enter_whole(&self) {
        self.whole.fetch_add(1, Ordering::SeqCst);
        // Pairs with the fence in `Announcement::begin_pieces`: either that one sees the count, or its word is seen here.
        fence(Ordering::SeqCst);
        wait_for(&self.announced());
    }

    pub(crate) fn leave_whole(&self) {
        self.whole.fetch_sub(1, Ordering::SeqCst);
    }

    /// True if a transaction is in progress beside which none may be in pieces.
    #[inline]
    pub(crate) fn has_whole(&self) -> bool {
        self.whole.load(Ordering::SeqCst) != 0
    }

    /// True if commits are stamped now. A transaction that has read a write of a stamped commit sees it.
    #[inline]
    pub(crate) fn is_stamping(&self) -> bool {
        // Relaxed: the read of the write that came after it orders it.
        self.now.stamping.load(Ordering::Relaxed)
    }

    /// What commits are stamped with; `None` if they are not. In a region, all of it is of one moment, and nothing of it changes before
    /// the region has committed.
    #[inline]
    pub(crate) fn stamping(&self) -> Option<Stamping> {
        let Now { stamping, clock, newest } = &*self.now;
        // SeqCst, outside of regions: as a guess, any order would do.
        let now = || Stamping { clock: clock.load(Ordering::SeqCst), newest: newest.load(Ordering::SeqCst) };
        stamping.load(Ordering::Relaxed).then(now)
    }

    fn point(&self, number: u64) -> &Point {
        &self.points[number as usize % POINTS]
    }

    /// The time since the newest point that is ready was begun.
    fn age(&self) -> Duration {
        self.point(self.ready.load(Ordering::SeqCst)).since.get().age()
    }

    /// Shows a reader of a point that is ready.
    fn claim(&self, number: u64) -> Opened {
        let (slot, point) = (self.readers.claim(number), self.point(number));
        // Relaxed: the caller makes sure that the point is still ready.
        let (since, history) = (point.since.get(), point.history.load(Ordering::Relaxed));
        Opened { number, slot: Some(slot), since, history, history_begin: history }
    }

    /// Opens the newest snapshot, a new one if that is too old and no commit is in the way.
    ///
    /// Waits for commits only if there has been no snapshot for a while.
    pub(crate) fn open(&self) -> Opened {
        self.last_use.note();
        self.last_stale_use.note();
        loop {
            if self.age() > STALENESS_MAX {
                self.refresh();
            }
            // Acquire: pairs with the store in `finish_points`: all commits before the point are installed.
            let number = self.ready.load(Ordering::SeqCst);
            if number == 0 {
                return self.open_strict();
            }
            let opened = self.claim(number);
            // The fence orders the slot before the second look, as in `open_numbers`.
            fence(Ordering::SeqCst);
            if self.ready.load(Ordering::SeqCst) == number {
                return opened;
            }
        }
    }

    /// Opens a snapshot of everything that was committed before the call.
    pub(crate) fn open_strict(&self) -> Opened {
        self.last_use.note();
        // A point with a greater number is begun after this moment.
        let before = self.now.newest.load(Ordering::SeqCst);
        let mut pending = lock(&self.pending);
        let mut has_waited = false;
        while self.ready.load(Ordering::SeqCst) <= before {
            has_waited = true;
            let awaited = match pending.iter().find(|point| point.number > before) {
                Some(point) => point.clone(),
                None if pending.len() < PENDING_MAX => {
                    self.switch_on();
                    self.begin_point(&mut pending)
                }
                None => pending[0].clone(),
            };
            let waiting = Waiting::new(&self.waiting, &pending);
            drop(pending);
            wait_for(&awaited.commits);
            pending = lock(&self.pending);
            drop(waiting);
            self.finish_points(&mut pending, awaited.number);
        }
        // No point becomes ready, and none is hidden, while the pending ones are locked.
        let opened = self.claim(self.ready.load(Ordering::SeqCst));
        drop(pending);
        if has_waited {
            self.sweep_a_part();
        }
        opened
    }

    /// Makes a new point if that needs no long wait, or completes those that are pending.
    fn refresh(&self) {
        let Some(mut pending) = try_lock(&self.pending) else { return };
        if self.now.newest.load(Ordering::SeqCst) == 0 {
            return;
        }
        self.try_pending(&mut pending);
        if pending.is_empty() && self.age() > STALENESS_MAX {
            self.begin_point(&mut pending);
            spin_until(LOOKS, || self.try_pending(&mut pending));
        }
        drop(pending);
        self.sweep_a_part();
    }

    /// Makes commits draw stamps, if they do not, and waits for those that have begun without.
    fn switch_on(&self) {
        // Only who holds the lock of the pending point changes it.
        if self.now.stamping.swap(true, Ordering::SeqCst) {
            return;
        }
        barrier::heavy();
        wait_for(&self.announced());
    }

    fn begin_point(&self, pending: &mut PendingPoints) -> Pending {
        // Not one whose facts would take the place of others that are needed.
        let ready = self.ready.load(Ordering::SeqCst);
        let of_log = [self.acknowledged.newest(), self.acknowledged.coming()];
        let is_free = |number: &u64| {
            let mut used = pending
                .iter()
                .map(|point| point.number)
                .chain([ready])
                .chain(of_log)
                .filter(|used| *used != 0);
            !used.any(|used| used % POINTS as u64 == number % POINTS as u64)
        };
        let mut numbers = self.now.clock.load(Ordering::SeqCst) + 1..;
        let number = numbers.find(is_free).expect("there is one place more than are used");
        let point = self.point(number);
        // Relaxed: published by `ready`.
        point.since.note();
        let history = self.recorder.get().map_or(0, |recorder| recorder.stamp());
        point.history.store(history, Ordering::Relaxed);
        // First, so that a commit that is stamped with the number keeps versions for the point.
        self.now.newest.store(number, Ordering::SeqCst);
        self.now.clock.store(number, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let point = Pending { number, commits: Arc::new(self.announced()) };
        pending.push_back(point.clone());
        point
    }

    /// Completes the pending points whose commits have ended. True if none is left.
    fn try_pending(&self, pending: &mut PendingPoints) -> bool {
        if let Some(last) = pending.iter().rev().find(|point| point.is_over()) {
            let number = last.number;
            self.finish_points(pending, number);
        }
        pending.is_empty()
    }

    /// Makes a point ready, and those before it.
    fn finish_points(&self, pending: &mut PendingPoints, number: u64) {
        while pending.front().is_some_and(|point| point.number <= number) {
            pending.pop_front();
        }
        // A later one may be ready already.
        if self.ready.load(Ordering::SeqCst) < number {
            // Pairs with the loads in `open`.
            self.ready.store(number, Ordering::SeqCst);
        }
    }

    /// Called when a reader has ended, whose point was begun at a moment.
    pub(crate) fn after_reader(&self, since: Moment) {
        let is_long = since.age() >= LINGER;
        if self.stop_keeping(false) {
        } else if is_long {
            // There may be many versions that were kept for it alone.
            self.sweep();
        } else {
            self.sweep_a_part();
        }
        // In a simulation memory is freed at the same steps in each run, whatever else the process does.
        if is_long && !cfg!(loom) && !thread::is_simulated() {
            retained::collect();
        }
    }

    /// Frees everything that no open snapshot needs, also what is kept because one may be opened soon.
    pub(crate) fn collect(&self) {
        if !self.stop_keeping(true) {
            self.sweep();
        }
    }

    /// Notes that a structure keeps removed segments, or no longer does. Those that keep none cost nothing when a snapshot ends.
    pub(crate) fn register(&self, structure: &Weak<dyn Sweep>, keeps: bool) {
        let mut sweeps = lock(&self.sweeps);
        sweeps.retain(|other| other.strong_count() > 0 && !Weak::ptr_eq(other, structure));
        if keeps {
            sweeps.push(structure.clone());
        }
    }

    /// Removes the versions that no snapshot needs any more from the next lists.
    pub(crate) fn sweep_a_part(&self) {
        self.versions.sweep_some(&self.open_numbers(), SWEPT);
    }

    /// Removes the versions at a worker's places that no snapshot needs any more, and those in the next lists, which workers may have left
    /// that have ended. Returns the number of the oldest snapshot that is open or may be opened.
    pub(crate) fn sweep_places(&self, places: &mut VecDeque<Place>, looks: usize) -> u64 {
        let open = self.open_numbers();
        self.versions.sweep_places(places, looks, &open);
        self.versions.sweep_some(&open, SWEPT);
        open.oldest()
    }

    /// Removes everything that no snapshot needs any more.
    pub(crate) fn sweep(&self) {
        self.versions.sweep(&self.open_numbers());
        let sweeps: Vec<_> = lock(&self.sweeps).iter().filter_map(Weak::upgrade).collect();
        sweeps.iter().for_each(|structure| structure.sweep());
    }

    /// The numbers of the snapshots that are open or may be opened.
    pub(crate) fn open_numbers(&self) -> OpenNumbers {
        // Before `newest`: a point that is begun later has a greater number than the clock has here, if none is there yet.
        let clock = self.now.clock.load(Ordering::SeqCst);
        // In this order: a reader that opens a point that is ready shows that first, and then looks if it still is. If it is
        // missed here, the point was ready when `ready` was read here, or a later one was, and the reader will see that.
        let newest = self.now.newest.load(Ordering::SeqCst);
        let ready = self.ready.load(Ordering::SeqCst);
        // Before the acknowledged one, which it becomes. After `ready`: the log's next point has a greater number.
        let coming = self.acknowledged.coming();
        let acknowledged = self.acknowledged.newest();
        fence(Ordering::SeqCst);
        let mut numbers = self.readers.numbers();
        numbers.extend([ready, coming, acknowledged]);
        numbers.sort_unstable();
        numbers.dedup();
        let coming = match (newest, ready) {
            (0, _) => clock + 1,
            // There is a point, and the one that is ready is hidden: it may be opened again (`stop_keeping`).
            (_, 0) => 0,
            _ => ready + 1,
        };
        OpenNumbers { coming, numbers }
    }

    /// Stops keeping versions, if no snapshot is open, nor will be that has been made before, unless there has been one of late that may
    /// be a little old. `at_once`: even then. True if none are kept now.
    pub(crate) fn stop_keeping(&self, at_once: bool) -> bool {
        if !at_once && self.last_stale_use.is_recent()
            || self.acknowledged.are_in_use()
            || !self.readers.are_none()
        {
            return false;
        }
        let Some(mut pending) = try_lock(&self.pending) else { return false };
        if self.now.newest.load(Ordering::SeqCst) == 0 {
            return true;
        }
        if self.waiting.load(Ordering::Relaxed) > 0 {
            return false;
        }
        let ready = self.ready.swap(0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if !self.readers.are_none() {
            // As in `finish_points`. Those that look meanwhile try again, and those that sweep take nothing out.
            self.ready.store(ready, Ordering::SeqCst);
            return false;
        }
        pending.clear();
        self.acknowledged.forget();
        self.now.newest.store(0, Ordering::SeqCst);
        // Later points have greater numbers than all stamps until now.
        self.now.clock.fetch_add(1, Ordering::SeqCst);
        // Sweeping may run users' code (the `Drop` of values), which may open a snapshot.
        drop(pending);
        self.sweep();
        true
    }

    /// Stops stamping commits, if no snapshot has been in use for a while. Called from time to time by commits that are stamped and
    /// keep nothing.
    pub(crate) fn rest(&self) {
        if self.always || self.last_use.is_recent() {
            return;
        }
        // Only who holds the lock of the pending point makes a first one.
        if let Some(_pending) = try_lock(&self.pending)
            && self.now.newest.load(Ordering::SeqCst) == 0
        {
            self.now.stamping.store(false, Ordering::SeqCst);
        }
    }

    /// The words that show a commit, with their values.
    fn announced(&self) -> Vec<(Word, u64)> {
        // A worker that registers later sees the clock or the switch that was stored before this lock.
        let workers = lock(&self.workers);
        // Acquire: as in `Pending::is_over`, for those that have ended.
        let words = workers.iter().map(|word| (word, word.load(Ordering::Acquire)));
        words.filter(|(_, value)| value & 1 == 1).map(|(word, value)| (word.clone(), value)).collect()
    }
}

/// Waits until commits have ended. They run no users' code but changes at the commit, and wait for nobody but other commits.
fn wait_for(commits: &[(Word, u64)]) {
    let _waiting = waiting("commits under way", 0);
    for (word, value) in commits {
        let (mut spin, mut rounds) = (Spin::new(), 0);
        while word.load(Ordering::Acquire) == *value {
            if !spin.turn() {
                rounds += 1;
                // Its thread does not run, or it waits for its turn.
                if rounds < 8 { thread::yield_now() } else { thread::sleep(Duration::from_micros(20)) }
            }
        }
    }
}

/// A worker's word for its commits: odd from before the stamp is drawn until everything is installed, or nothing will be.
pub(crate) struct Announcement {
    snapshots: Arc<Snapshots>,
    word: Word,
    value: u64,
}

impl Announcement {
    /// Makes the word of a new worker.
    pub(crate) fn new(snapshots: &Arc<Snapshots>) -> Self {
        let word = Arc::new(CachePadded::new(AtomicU64::new(0)));
        let mut workers = lock(&snapshots.workers);
        // A worker that has ended has let go of its word.
        workers.retain(|word| Arc::strong_count(word) > 1);
        workers.push(word.clone());
        drop(workers);
        Self { snapshots: snapshots.clone(), word, value: 0 }
    }

    pub(crate) fn snapshots(&self) -> &Arc<Snapshots> {
        &self.snapshots
    }

    /// Begins a commit, whose locks are held. The clock's number, if commits are stamped.
    #[inline(always)]
    pub(crate) fn begin(&mut self) -> Option<u64> {
        self.value |= 1;
        // Relaxed, and no fence: the module's head says why.
        self.word.store(self.value, Ordering::Relaxed);
        barrier::light();
        if self.snapshots.now.stamping.load(Ordering::Relaxed) { Some(self.draw()) } else { None }
    }

    /// Announces a transaction in pieces, before its first one commits. False, and nothing is announced, if it must be whole.
    pub(crate) fn begin_pieces(&mut self) -> bool {
        self.value |= 1;
        self.word.store(self.value, Ordering::Relaxed);
        // Pairs with the fence in `Snapshots::enter_whole`.
        fence(Ordering::SeqCst);
        if self.snapshots.has_whole() {
            self.end();
            return false;
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn draw(&self) -> u64 {
        // Both fences: see "The fences around the clock" at the module's head.
        fence(Ordering::SeqCst);
        let number = self.snapshots.now.clock.load(Ordering::SeqCst);
        fence(Ordering::SeqCst);
        number
    }

    /// Ends the commit, if one was begun: all is installed, or nothing will be.
    #[inline(always)]
    pub(crate) fn end(&mut self) {
        if self.value & 1 == 1 {
            self.value += 1;
            // Release: pairs with the acquire loads of who makes a point.
            self.word.store(self.value, Ordering::Release);
        }
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        self.end();
    }
}

mod acknowledged;
#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
