//! Events for the crate `tracing`, with the feature `tracing`: between attempts and after the last one, when nothing is held. Without the
//! feature there are none.
//!
//! | target | level | event | fields |
//! |---|---|---|---|
//! | `hotrow::attempt` | trace | an attempt was lost | `protocol`, `reason`, `object`, `key`, `attempts`, `loser`, `winner` |
//! | `hotrow::transaction` | debug | a transaction escalates: others let it through | `protocol`, `attempts` |
//! | `hotrow::transaction` | warn | a transaction gives up | `protocol`, `conflict` |

#![cfg_attr(
    not(feature = "tracing"),
    allow(unused_variables, dead_code, clippy::unused_self, reason = "nobody is told")
)]

use crate::kernel::loss::ConflictReport;

/// The receiver of the events of an engine with this protocol.
#[derive(Clone, Copy)]
pub(crate) struct Events<'a>(pub(crate) &'a str);

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
    pub(crate) fn gives_up(self, conflict: &crate::kernel::abort::Conflict) {
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "hotrow::transaction", protocol = self.0, %conflict, "transaction gives up");
    }
}
