//! Transactions over a store.

use crate::error::Failure;
use crate::shared::Shared;
use crate::store::{Span, Stamped, Version};
use crate::writes::Writes;
use hotrow_core::Abort;
use hotrow_sync::Arc;
use hotrow_sync::clock::Instant;
use std::collections::BTreeMap;

/// One attempt of a transaction over a store: reads at one version, and writes that nobody else sees before the commit.
///
/// An operation that returns an [`Abort`] ends the attempt: pass it up with `?`. A body that keeps it to itself cannot commit, unless
/// the operation was a part's that is [undone](Self::savepoint).
pub struct Transaction<'c> {
    pub(crate) shared: &'c Shared,
    pub(crate) deadline: Instant,
    /// The version of all reads, from the first one on.
    pub(crate) at: Option<Version>,
    pub(crate) reads: BTreeMap<Vec<u8>, Seen>,
    /// Ranges that were read; all keys that were in them are among the reads.
    pub(crate) spans: Vec<Span>,
    pub(crate) writes: Writes,
    /// Rows of tables with constraints that were written, by the beginnings of their keys.
    pub(crate) judged: BTreeMap<Vec<u8>, Arc<dyn Judge>>,
    pub(crate) failure: Option<Failure>,
    /// True if an operation has ended with an error for the body.
    pub(crate) has_raised: bool,
    pub(crate) is_read_only: bool,
    /// The moment at which the attempt has begun, if attempts are recorded.
    pub(crate) began: Option<u64>,
    /// True if the version may be older than the transaction.
    pub(crate) may_be_old: bool,
    /// True if additions read the row: an attempt before has assumed something that is not so, or may not be.
    pub(crate) reads_counters: bool,
    /// True if an addition has assumed that it can be made.
    pub(crate) has_assumed: bool,
}

/// A part of a row as the transaction has read it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) version: Version,
    /// `None` if there is none, or a tombstone.
    pub(crate) value: Option<Vec<u8>>,
    /// True if it is in a range that was read, which is validated.
    pub(crate) is_in_span: bool,
}

/// A table with constraints.
pub(crate) trait Judge {
    /// Judges a row as the transaction has left it.
    ///
    /// # Errors
    ///
    /// [`ConstraintViolated`](hotrow_tables::ConstraintViolated).
    fn judge(&self, tx: &mut Transaction<'_>, row: &[u8]) -> Result<(), Abort>;
}

impl Seen {
    pub(crate) fn new(found: Option<Stamped>, is_in_span: bool) -> Self {
        let version = found.as_ref().map_or(0, |found| found.version);
        let value = found.map(|found| found.value).filter(|value| !value.is_empty());
        Self { version, value, is_in_span }
    }
}

impl<'c> Transaction<'c> {
    pub(crate) fn new(shared: &'c Shared, deadline: Instant) -> Self {
        Self {
            shared,
            deadline,
            at: None,
            reads: BTreeMap::new(),
            spans: Vec::new(),
            writes: Writes::default(),
            judged: BTreeMap::new(),
            failure: None,
            has_raised: false,
            is_read_only: false,
            began: shared.moment(),
            may_be_old: false,
            reads_counters: false,
            has_assumed: false,
        }
    }

    /// The version of the reads; `None` before the first one.
    pub fn version(&self) -> Option<Version> {
        self.at
    }
}
