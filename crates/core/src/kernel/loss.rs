//! The report of a conflict that an attempt has lost.

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
