//! Counts of commits and aborts.

use crate::kernel::abort::Reason;
use crate::kernel::counter::{Counter, Named, NamedCounters, NamedCounts, bump};
use hotrow_sync::atomic::{AtomicU64, Ordering};
use std::fmt;

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
    /// Waits for a change of what was read ([`retry`](crate::Transaction::retry)).
    pub waits: u64,
    /// Waits of these after which the body has found that it must wait again.
    pub woken_in_vain: u64,
    /// The counters that the protocol and its capabilities name.
    pub counters: NamedCounts,
}

impl Statistics {
    /// Aborts for one reason.
    pub fn aborts_for(&self, reason: Reason) -> u64 {
        self.reasons[reason as usize]
    }

    /// The number of events of a counter that the protocol names; 0 if it does not.
    pub fn count(&self, counter: &Counter) -> u64 {
        self.counters.count(counter)
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
        self.waits += other.waits;
        self.woken_in_vain += other.woken_in_vain;
        self.counters += other.counters;
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} commits, {} rollbacks, {} aborts", self.commits, self.rollbacks, self.aborts)?;
        show_reasons(f, &self.reasons)?;
        write!(f, ", at most {} attempts", self.attempts_max)
    }
}

/// Shows the reasons that occurred, in parentheses.
pub(crate) fn show_reasons(f: &mut fmt::Formatter<'_>, reasons: &[u64; Reason::ALL.len()]) -> fmt::Result {
    let occurred = Reason::ALL.into_iter().zip(reasons).filter(|(_, count)| **count > 0);
    let mut shown = occurred.map(|(reason, count)| format!("{count} × {reason}")).peekable();
    if shown.peek().is_some() {
        write!(f, " ({})", shown.collect::<Vec<_>>().join("; "))?;
    }
    Ok(())
}

/// One worker's counters. Only the worker writes; any thread may read.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    commits: AtomicU64,
    aborts: AtomicU64,
    rollbacks: AtomicU64,
    reasons: [AtomicU64; Reason::ALL.len()],
    attempts_max: AtomicU64,
    waits: AtomicU64,
    woken_in_vain: AtomicU64,
    named: NamedCounters,
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

    pub(crate) fn rollback(&self) {
        bump(&self.rollbacks);
    }

    pub(crate) fn attempts(&self, attempts: u32) {
        let attempts = u64::from(attempts);
        if attempts > self.attempts_max.load(Ordering::Relaxed) {
            self.attempts_max.store(attempts, Ordering::Relaxed);
        }
    }

    pub(crate) fn waited(&self) {
        bump(&self.waits);
    }

    pub(crate) fn woken_in_vain(&self) {
        bump(&self.woken_in_vain);
    }

    #[inline]
    pub(crate) fn aborts(&self) -> u64 {
        self.aborts.load(Ordering::Relaxed)
    }

    pub(crate) fn read(&self, named: &Named) -> Statistics {
        let commits = self.commits.load(Ordering::Relaxed);
        Statistics {
            commits,
            aborts: self.aborts.load(Ordering::Relaxed),
            rollbacks: self.rollbacks.load(Ordering::Relaxed),
            reasons: std::array::from_fn(|at| self.reasons[at].load(Ordering::Relaxed)),
            // A transaction that commits at its first attempt counts its commit only.
            attempts_max: self.attempts_max.load(Ordering::Relaxed).max(commits.min(1)),
            waits: self.waits.load(Ordering::Relaxed),
            woken_in_vain: self.woken_in_vain.load(Ordering::Relaxed),
            counters: self.named.read(named),
        }
    }

    /// The counters that the protocol and its capabilities name.
    #[inline(always)]
    pub(crate) fn named(&self) -> &NamedCounters {
        &self.named
    }
}
