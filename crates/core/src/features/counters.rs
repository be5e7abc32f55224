//! The counters of all capabilities and of the protocol, by place.
//!
//! A capability's room lists its counters (`deferred/counters.rs`, `graph/counters.rs`), a protocol lists its own
//! ([`Variants::COUNTERS`](crate::Variants::COUNTERS)). Nothing else names them: statistics and reports show those that
//! the engine's protocol has. A new counter takes its line in a list, and the calls that count.

use crate::features::{deferred, graph, pieces, region};
use crate::kernel::capabilities::{Deferral as _, PieceOrder as _, Stealing as _};
use crate::kernel::protocol::Protocol;
use crate::kernel::statistics::{COUNTERS_MAX, Counter, CounterPlace, Named};

impl Counter {
    /// Returns the counter's place among those of a protocol. To be called in a `const` block, where a counter that the
    /// protocol does not name is an error of compilation.
    pub const fn place<P: Protocol>(&self) -> CounterPlace {
        let mut before = 0;
        let lists = lists::<P>();
        let mut list = 0;
        while list < lists.len() {
            let mut at = 0;
            while at < lists[list].len() {
                if same(lists[list][at].name(), self.name()) {
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

#[cfg(all(test, not(loom)))]
mod tests;
