//! The report of a conflict that an attempt has lost.

use crate::abort::{Conflict, Reason};
use crate::pin::Pin;

/// The part of a lost conflict that outlives the attempt.
#[derive(Debug)]
pub(crate) struct ConflictReport {
    pub(crate) reason: Reason,
    /// The object and the key; only where the transaction might give up, because it takes time to name them.
    pub(crate) words: Option<(String, String)>,
    /// The pin with which the attempt's footprint stays valid, if it has one.
    pub(crate) pin: Option<Pin>,
}

impl ConflictReport {
    /// Reports a deadline that passed while an older transaction was let through.
    pub(super) fn at_gate() -> Self {
        Self { reason: Reason::GateClosed, words: None, pin: None }
    }

    pub(super) fn take(&mut self) -> Self {
        Self { reason: self.reason, words: self.words.take(), pin: self.pin.take() }
    }

    pub(crate) fn into_conflict(self, attempts: u32) -> Conflict {
        let (object, key) = self.words.unwrap_or_default();
        Conflict { reason: self.reason, object, key, attempts }
    }
}
