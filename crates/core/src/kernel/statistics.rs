//! Counts of commits and aborts, and of what a capability or a protocol names.
//!
//! # Named counters
//!
//! The kernel names none. Each worker has an array of counts. The place of a counter there is a constant, so counting is an addition to one
//! word, which only this worker writes. Which counters there are, and their places, the features say
//! ([`Slots::named_counters`](crate::kernel::slots::Slots::named_counters), [`Counter::place`]).

use crate::kernel::abort::Reason;
use hotrow_sync::atomic::{AtomicU64, Ordering};
use std::fmt;
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

/// A counter that a capability or a protocol names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    name: &'static str,
    about: &'static str,
    kind: CounterKind,
}

/// The meaning of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CounterKind {
    /// The number of events.
    Count,
    /// The mean of durations, counted in nanoseconds and shown in microseconds.
    MeanUs,
    /// The share that the first of two counters has in both.
    Share([&'static str; 2]),
}

/// A counter's value.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum CounterValue {
    /// A number of events.
    Count(u64),
    /// A mean duration in microseconds; `None` if nothing was measured.
    MeanUs(Option<f64>),
    /// A share, from 0 to 1; `None` if there were no events.
    Share(Option<f64>),
}

impl Counter {
    /// Makes a counter of events. Names are those of JSON (`tame_commits`), `about` completes "name: …".
    pub const fn count(name: &'static str, about: &'static str) -> Self {
        Self { name, about, kind: CounterKind::Count }
    }

    /// Makes a mean of durations. The name ends in `_us`.
    pub const fn mean_us(name: &'static str, about: &'static str) -> Self {
        Self { name, about, kind: CounterKind::MeanUs }
    }

    /// Makes the share that `part` has in `part` and `rest`, two counters of events of the same list.
    pub const fn share(name: &'static str, about: &'static str, part: &Counter, rest: &Counter) -> Self {
        Self { name, about, kind: CounterKind::Share([part.name, rest.name]) }
    }

    /// The name, in the form of a JSON key. A duration's name ends in its unit.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// A description of the events counted, in one line.
    pub const fn about(&self) -> &'static str {
        self.about
    }
}

/// The place of a counter in a worker's array of counts. Made by [`Counter::place`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterPlace(pub(crate) usize);

/// The maximum number of counters that a protocol and the capabilities name.
pub(crate) const COUNTERS_MAX: usize = 18;

/// The counters that an engine's protocol has, by place: those of its capabilities and its own.
pub(crate) type Named = [Option<&'static Counter>; COUNTERS_MAX];

/// One worker's counts, by place. Only the worker writes; any thread may read.
#[derive(Debug, Default)]
pub(crate) struct NamedCounters {
    sums: [AtomicU64; COUNTERS_MAX],
    /// The number of durations in a sum.
    durations: [AtomicU64; COUNTERS_MAX],
}

impl NamedCounters {
    /// Counts an event.
    #[inline(always)]
    pub(crate) fn count(&self, place: CounterPlace) {
        bump(&self.sums[place.0]);
    }

    /// Adds a duration to a mean.
    pub(crate) fn measure(&self, place: CounterPlace, took_ns: u64) {
        add(&self.sums[place.0], took_ns);
        bump(&self.durations[place.0]);
    }

    pub(crate) fn read(&self, named: &Named) -> NamedCounts {
        // Relaxed: counts order nothing.
        let read = |counts: &[AtomicU64; COUNTERS_MAX]| {
            std::array::from_fn(|place| match named[place] {
                Some(_) => counts[place].load(Ordering::Relaxed),
                None => 0,
            })
        };
        NamedCounts { named: *named, sums: read(&self.sums), durations: read(&self.durations) }
    }
}

/// The values of the counters that an engine's protocol has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamedCounts {
    named: Named,
    sums: [u64; COUNTERS_MAX],
    durations: [u64; COUNTERS_MAX],
}

impl NamedCounts {
    /// No events of these counters.
    pub(crate) fn of(named: &Named) -> Self {
        Self { named: *named, ..Self::default() }
    }

    /// Returns the number of events that a counter has counted; 0 if the protocol does not have it.
    pub fn count(&self, counter: &Counter) -> u64 {
        self.place(counter.name).map_or(0, |place| self.sums[place])
    }

    /// Iterates over the counters that the protocol has.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Counter, CounterValue)> {
        self.named
            .iter()
            .enumerate()
            .filter_map(|(place, counter)| counter.map(|counter| (counter, self.value(place, counter))))
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.named.iter().position(|counter| counter.is_some_and(|counter| counter.name == name))
    }

    fn value(&self, place: usize, counter: &Counter) -> CounterValue {
        let ratio = |part: u64, whole: u64| (whole != 0).then(|| part as f64 / whole as f64);
        match counter.kind {
            CounterKind::Count => CounterValue::Count(self.sums[place]),
            CounterKind::MeanUs => CounterValue::MeanUs(
                ratio(self.sums[place], self.durations[place]).map(|mean_ns| mean_ns / 1e3),
            ),
            CounterKind::Share(names) => {
                let [part, rest] = names.map(|name| self.place(name).map_or(0, |place| self.sums[place]));
                CounterValue::Share(ratio(part, part + rest))
            }
        }
    }
}

impl AddAssign for NamedCounts {
    /// Adds the counts of the same protocol.
    fn add_assign(&mut self, other: Self) {
        for place in 0..COUNTERS_MAX {
            self.named[place] = self.named[place].or(other.named[place]);
            self.sums[place] += other.sums[place];
            self.durations[place] += other.durations[place];
        }
    }
}

impl Sub for NamedCounts {
    type Output = Self;

    /// Returns the counts since `earlier`, of the same worker or engine.
    fn sub(self, earlier: Self) -> Self {
        Self {
            named: self.named,
            sums: std::array::from_fn(|place| self.sums[place] - earlier.sums[place]),
            durations: std::array::from_fn(|place| self.durations[place] - earlier.durations[place]),
        }
    }
}

/// Adds one without a locked instruction, because there is only one writer.
#[inline(always)]
pub(crate) fn bump(counter: &AtomicU64) {
    add(counter, 1);
}

#[inline(always)]
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    // Relaxed: counts order nothing.
    counter.store(counter.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
}
