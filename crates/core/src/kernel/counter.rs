//! Counters that a capability or a protocol names.
//!
//! A capability's room lists its counters (`deferred/counters.rs`, `graph/counters.rs`), a protocol lists its own
//! ([`Variants::COUNTERS`](crate::Variants::COUNTERS)). Nothing else names them: statistics and reports show those that
//! the engine's protocol has. A new counter takes its line in a list, and the calls that count.
//!
//! Each worker has an array of counts. The place of a counter there is a constant, so counting is an addition to one
//! word, which only this worker writes.

use crate::features::{deferred, graph, pieces, region};
use crate::kernel::capabilities::PieceOrder;
use crate::kernel::protocol::Protocol;
use crate::kernel::statistics::{add, bump};
use crate::{Deferral as _, Stealing as _};
use hotrow_sync::atomic::{AtomicU64, Ordering};
use std::ops::{AddAssign, Sub};

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

    /// Returns the counter's place among those of a protocol. To be called in a `const` block, where a counter that the
    /// protocol does not name is an error of compilation.
    pub const fn place<P: Protocol>(&self) -> CounterPlace {
        let mut before = 0;
        let lists = lists::<P>();
        let mut list = 0;
        while list < lists.len() {
            let mut at = 0;
            while at < lists[list].len() {
                if same(lists[list][at].name, self.name) {
                    return CounterPlace(before + at);
                }
                at += 1;
            }
            before += lists[list].len();
            list += 1;
        }
        panic!("neither the protocol nor a capability names this counter")
    }
}

/// `==` of strings, for constants.
const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// The place of a counter in a worker's array of counts. Made by [`Counter::place`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterPlace(usize);

/// The maximum number of counters that a protocol and the capabilities name.
const COUNTERS_MAX: usize = 18;

/// The lists of counters, in the order of their places.
const fn lists<P: Protocol>() -> [&'static [Counter]; 6] {
    const {
        let of_pieces = pieces::COUNTERS.len() + pieces::ORDER_COUNTERS.len();
        let of_capabilities = deferred::COUNTERS.len() + graph::COUNTERS.len() + of_pieces;
        assert!(of_capabilities + region::COUNTERS.len() + P::COUNTERS.len() <= COUNTERS_MAX);
    }
    [
        deferred::COUNTERS,
        graph::COUNTERS,
        pieces::COUNTERS,
        pieces::ORDER_COUNTERS,
        region::COUNTERS,
        P::COUNTERS,
    ]
}

/// The counters that an engine's protocol has, by place: those of its capabilities and its own.
pub(crate) type Named = [Option<&'static Counter>; COUNTERS_MAX];

/// Finds the counters of an engine's protocol.
pub(crate) fn named<P: Protocol>(protocol: &P) -> Named {
    let chops = P::ALLOWS_CHOPPING && protocol.chops();
    let uses_regions = P::ALLOWS_REGIONS && protocol.uses_regions();
    let orders = P::PieceOrder::of(protocol).is_some();
    let (defers, steals) = (P::Deferral::of(protocol).is_some(), P::Stealing::of(protocol).is_some());
    let has = [defers, steals, chops, orders, uses_regions, true];
    let mut named = [None; COUNTERS_MAX];
    let mut place = 0;
    for (list, has) in lists::<P>().into_iter().zip(has) {
        for counter in list {
            named[place] = has.then_some(counter);
            place += 1;
        }
    }
    named
}

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

#[cfg(all(test, not(loom)))]
mod tests;
