//! The report of a conflict that an attempt has lost, and the events that tell of it.
//!
//! Events for the crate `tracing`, with the feature `tracing`: between attempts and after the last one, when nothing is held. Without the
//! feature there are none.
//!
//! | target | level | event | fields |
//! |---|---|---|---|
//! | `hotrow::attempt` | trace | an attempt was lost | `protocol`, `reason`, `object`, `key`, `attempts`, `loser`, `winner` |
//! | `hotrow::transaction` | debug | a transaction escalates: others let it through | `protocol`, `attempts` |
//! | `hotrow::transaction` | warn | a transaction gives up | `protocol`, `conflict` |

use crate::kernel::abort::{Conflict, Reason};
use crate::memory::identity::Origin;
use crate::memory::pin::Pin;
use std::time::Duration;

/// The part of a lost conflict that outlives the attempt.
#[derive(Debug)]
pub(crate) struct ConflictReport {
    pub(crate) reason: Reason,
    /// The object and the key; only where the transaction might give up, because it takes time to name them.
    pub(crate) words: Option<(String, String)>,
    /// The transaction that lost, and the one that it lost to, as far as they are known.
    pub(crate) sides: [Option<Origin>; 2],
    /// The pin with which the attempt's footprint stays valid, if it has one.
    pub(crate) pin: Option<Pin>,
}

impl ConflictReport {
    /// Reports a loss about which nothing else is said.
    pub(crate) fn of(reason: Reason) -> Self {
        Self { reason, words: None, sides: [None; 2], pin: None }
    }

    /// Reports a deadline that passed while an older transaction was let through.
    pub(crate) fn at_gate() -> Self {
        Self::of(Reason::GateClosed)
    }

    pub(crate) fn into_conflict(self, attempts: u32, lost_time: Duration) -> Box<Conflict> {
        let (object, key) = self.words.unwrap_or_default();
        let [loser, winner] = self.sides;
        Box::new(Conflict { reason: self.reason, object, key, attempts, lost_time, loser, winner })
    }
}

/// The place of one member in a deadlock, as the protocol has found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadlockPart {
    /// The deadlock's number among those of its engine, from 0.
    pub number: u64,
    /// Number of members.
    pub members: u32,
    /// The member's position. It waits for the member with the next one.
    pub position: u32,
    /// The victim's position.
    pub victim: u32,
}

/// The receiver of the events of an engine with this protocol.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "tracing"), allow(dead_code, reason = "nobody is told"))]
pub(crate) struct Events<'a>(pub(crate) &'a str);

#[cfg_attr(
    not(feature = "tracing"),
    allow(unused_variables, dead_code, clippy::unused_self, reason = "nobody is told")
)]
impl Events<'_> {
    /// True if somebody wants to know of lost attempts, with the names of their keys.
    #[inline(always)]
    pub(crate) fn want_losses() -> bool {
        #[cfg(feature = "tracing")]
        return tracing::enabled!(target: "hotrow::attempt", tracing::Level::TRACE);
        #[cfg(not(feature = "tracing"))]
        false
    }

    /// An attempt was lost; so many have been made.
    pub(crate) fn lost(self, lost: &ConflictReport, attempts: u32) {
        #[cfg(feature = "tracing")]
        if Self::want_losses() {
            let (object, key) = lost.words.as_ref().map_or(("", ""), |(object, key)| (object, key));
            let [loser, winner] = lost.sides.map(|side| side.map(tracing::field::display));
            let (protocol, reason) = (self.0, lost.reason.name());
            tracing::trace!(target: "hotrow::attempt", protocol, reason, object, key, attempts, loser, winner, "attempt lost");
        }
    }

    /// A transaction asks others to let it through.
    pub(crate) fn escalates(self, attempts: u32) {
        #[cfg(feature = "tracing")]
        tracing::debug!(target: "hotrow::transaction", protocol = self.0, attempts, "transaction escalates");
    }

    /// A transaction has lost its last attempt.
    pub(crate) fn gives_up(self, conflict: &Conflict) {
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "hotrow::transaction", protocol = self.0, %conflict, "transaction gives up");
    }
}
