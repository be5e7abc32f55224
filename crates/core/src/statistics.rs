//! Counts of commits and aborts, and the conflict report.

use crate::abort::Reason;
use hotrow_sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::ops::{AddAssign, Sub};

/// Counts since an engine was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Transactions committed.
    pub commits: u64,
    /// Attempts that lost a conflict.
    pub aborts: u64,
    /// Transactions rolled back because their body returned an error of its own, or panicked.
    pub rollbacks: u64,
    /// Aborts by reason, in the order of [`Reason::ALL`].
    pub reasons: [u64; Reason::ALL.len()],
    /// The highest number of attempts of one transaction.
    pub attempts_max: u64,
    /// The part of the commits and aborts whose attempts were tame.
    pub tame: Tame,
    /// Operations of attempts that had enqueued them for others to steal.
    pub drawn: Drawn,
}

/// Counts of operations on rows that were enqueued for others to steal (stealdb §4), in attempts that committed or not.
/// All are 0 where the protocol does not let others [steal](crate::Protocol::Stealing) operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Operations that their own worker ran.
    pub own: OperationCounts,
    /// Operations that workers waiting for it ran.
    pub stolen: OperationCounts,
}

/// The number of operations, and the time that they took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperationCounts {
    /// All of them.
    pub count: u64,
    /// The number of those that were timed: one of several.
    pub timed: u64,
    /// Nanoseconds that the timed ones took, waits for locks included.
    pub timed_ns: u64,
}

impl OperationCounts {
    /// The mean duration of the timed operations, in nanoseconds.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.timed != 0).then(|| self.timed_ns as f64 / self.timed as f64)
    }
}

impl Drawn {
    /// The share of stolen operations, from 0 to 1, if there were any operations.
    pub fn stolen_share(&self) -> Option<f64> {
        let all = self.own.count + self.stolen.count;
        (all != 0).then(|| self.stolen.count as f64 / all as f64)
    }
}

impl AddAssign for OperationCounts {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.timed += other.timed;
        self.timed_ns += other.timed_ns;
    }
}

impl Sub for OperationCounts {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self {
            count: self.count - earlier.count,
            timed: self.timed - earlier.timed,
            timed_ns: self.timed_ns - earlier.timed_ns,
        }
    }
}

impl AddAssign for Drawn {
    fn add_assign(&mut self, other: Self) {
        self.own += other.own;
        self.stolen += other.stolen;
    }
}

impl Sub for Drawn {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self { own: self.own - earlier.own, stolen: self.stolen - earlier.stolen }
    }
}

/// Counts of attempts that were *tame* (drp §4): when their commit began, deferred operations were waiting for it, and
/// nothing had been read. They never abort for a conflict. All are 0 where the protocol does not
/// [defer](crate::Protocol::Deferral).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tame {
    /// Tame transactions committed.
    pub commits: u64,
    /// Tame attempts that still lost: a deferred operation had to touch more than it had declared
    /// ([`Reason::Undeclared`]), or its row had been deleted before its turn ([`Reason::ReadChanged`]).
    pub aborts: u64,
}

impl AddAssign for Tame {
    fn add_assign(&mut self, other: Self) {
        self.commits += other.commits;
        self.aborts += other.aborts;
    }
}

impl Sub for Tame {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self { commits: self.commits - earlier.commits, aborts: self.aborts - earlier.aborts }
    }
}

impl Statistics {
    /// Aborts for one reason.
    pub fn aborts_for(&self, reason: Reason) -> u64 {
        self.reasons[reason as usize]
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Statistics) {
        self.commits += other.commits;
        self.aborts += other.aborts;
        self.rollbacks += other.rollbacks;
        for (mine, others) in self.reasons.iter_mut().zip(other.reasons) {
            *mine += others;
        }
        self.attempts_max = self.attempts_max.max(other.attempts_max);
        self.tame += other.tame;
        self.drawn += other.drawn;
    }
}

/// One worker's counters. Only the worker writes; any thread may read.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    commits: AtomicU64,
    aborts: AtomicU64,
    rollbacks: AtomicU64,
    reasons: [AtomicU64; Reason::ALL.len()],
    attempts_max: AtomicU64,
    tame_commits: AtomicU64,
    tame_aborts: AtomicU64,
    own: OperationCounters,
    stolen: OperationCounters,
}

#[derive(Debug, Default)]
struct OperationCounters {
    count: AtomicU64,
    timed: AtomicU64,
    timed_ns: AtomicU64,
}

impl OperationCounters {
    fn read(&self) -> OperationCounts {
        OperationCounts {
            count: self.count.load(Ordering::Relaxed),
            timed: self.timed.load(Ordering::Relaxed),
            timed_ns: self.timed_ns.load(Ordering::Relaxed),
        }
    }
}

/// Adds one without a locked instruction, because there is only one writer.
#[inline(always)]
fn bump(counter: &AtomicU64) {
    add(counter, 1);
}

#[inline(always)]
fn add(counter: &AtomicU64, amount: u64) {
    // Relaxed: counts order nothing.
    counter.store(counter.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
}

impl Counters {
    #[inline(always)]
    pub(crate) fn commit(&self) {
        bump(&self.commits);
    }

    pub(crate) fn abort(&self, reason: Reason) {
        bump(&self.aborts);
        bump(&self.reasons[reason as usize]);
    }

    #[inline]
    pub(crate) fn tame_commit(&self) {
        bump(&self.tame_commits);
    }

    pub(crate) fn tame_abort(&self) {
        bump(&self.tame_aborts);
    }

    /// Counts an operation that was enqueued, and its duration, if it was timed.
    pub(crate) fn operation(&self, stolen: bool, took_ns: Option<u64>) {
        let counters = if stolen { &self.stolen } else { &self.own };
        bump(&counters.count);
        if let Some(took_ns) = took_ns {
            bump(&counters.timed);
            add(&counters.timed_ns, took_ns);
        }
    }

    pub(crate) fn rollback(&self) {
        bump(&self.rollbacks);
    }

    pub(crate) fn attempts(&self, attempts: u32) {
        let attempts = u64::from(attempts);
        if attempts > self.attempts_max.load(Ordering::Relaxed) {
            self.attempts_max.store(attempts, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn aborts(&self) -> u64 {
        self.aborts.load(Ordering::Relaxed)
    }

    pub(crate) fn read(&self) -> Statistics {
        Statistics {
            commits: self.commits.load(Ordering::Relaxed),
            aborts: self.aborts.load(Ordering::Relaxed),
            rollbacks: self.rollbacks.load(Ordering::Relaxed),
            reasons: std::array::from_fn(|at| self.reasons[at].load(Ordering::Relaxed)),
            attempts_max: self.attempts_max.load(Ordering::Relaxed),
            tame: Tame {
                commits: self.tame_commits.load(Ordering::Relaxed),
                aborts: self.tame_aborts.load(Ordering::Relaxed),
            },
            drawn: Drawn { own: self.own.read(), stolen: self.stolen.read() },
        }
    }
}

/// Number of conflicts lost over one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HotKey {
    /// The object's or table's name.
    pub object: String,
    /// The key within it.
    pub key: String,
    /// Attempts lost over it. An upper bound if more keys had conflicts than the report keeps.
    pub conflicts: u64,
    /// The same by reason, in the order of [`Reason::ALL`].
    pub reasons: [u64; Reason::ALL.len()],
}

impl HotKey {
    /// Adds the counts of the same key.
    pub(crate) fn add(&mut self, other: &HotKey) {
        self.conflicts += other.conflicts;
        for (mine, others) in self.reasons.iter_mut().zip(other.reasons) {
            *mine += others;
        }
    }
}

/// Number of keys that one worker's report keeps. Beyond that a new key replaces the least frequent one and inherits
/// its count (the space-saving sketch), so that a hot key is never missed.
const KEYS_MAX: usize = if cfg!(test) { 4 } else { 256 };

/// One worker's conflicts by key. Ordered, so that each simulation replaces the same key.
#[derive(Debug, Default)]
pub(crate) struct ConflictTable {
    keys: BTreeMap<(u32, u64), HotKey>,
}

impl ConflictTable {
    /// Counts a conflict over a key. False if the key is new: the caller must then describe it, without the table's
    /// lock, and count it with [`count_new`](Self::count_new).
    pub(crate) fn count(&mut self, object: u32, identity: u64, reason: Reason) -> bool {
        let Some(key) = self.keys.get_mut(&(object, identity)) else { return false };
        key.conflicts += 1;
        key.reasons[reason as usize] += 1;
        true
    }

    /// Counts a conflict over a key that is new.
    pub(crate) fn count_new(
        &mut self,
        object: u32,
        identity: u64,
        reason: Reason,
        object_name: String,
        key: String,
    ) {
        let mut inherited = 0;
        if self.keys.len() >= KEYS_MAX {
            let least = self.keys.iter().min_by_key(|(_, key)| key.conflicts).map(|(at, _)| *at);
            let given_way = least.and_then(|least| self.keys.remove(&least));
            inherited = given_way.map_or(0, |key| key.conflicts);
        }
        let reasons = [0; Reason::ALL.len()];
        let new = HotKey { object: object_name, key, conflicts: inherited, reasons };
        self.keys.insert((object, identity), new);
        self.count(object, identity, reason);
    }

    /// Adds the counts to a report over all workers.
    pub(crate) fn add_to(&self, report: &mut BTreeMap<(u32, u64), HotKey>) {
        for (at, key) in &self.keys {
            match report.get_mut(at) {
                None => {
                    report.insert(*at, key.clone());
                }
                Some(sum) => sum.add(key),
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_hot_key_is_kept_when_there_are_more_keys_than_places() {
        let mut table = ConflictTable::default();
        for round in 0..100u64 {
            if !table.count(1, 7, Reason::ReadChanged) {
                table.count_new(1, 7, Reason::ReadChanged, "t".into(), "hot".into());
            }
            let (identity, key) = (1_000 + round, format!("cold {round}"));
            assert!(!table.count(1, identity, Reason::WriteLocked));
            table.count_new(1, identity, Reason::WriteLocked, "t".into(), key);
        }
        let mut report = BTreeMap::new();
        table.add_to(&mut report);
        assert_eq!(report.len(), KEYS_MAX);
        let hot = &report[&(1, 7)];
        assert_eq!(hot.key, "hot");
        assert_eq!(hot.reasons[Reason::ReadChanged as usize], 100);
        assert!(hot.conflicts >= 100);
    }
}
