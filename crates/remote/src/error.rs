//! Errors of clusters.

use crate::store::StoreError;
use hotrow_core::{Abort, Conflict, Error, Misuse};
use hotrow_tables::TableMisuse;

/// The reason for which a transaction over a store did not commit, or did perhaps.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The transaction had no effect, for a reason that a local one may have, too.
    #[error("{0}")]
    Transaction(Error),
    /// The transaction had no effect, because the store did not answer until the deadline, or does not take the request.
    #[error("{0}")]
    Store(StoreError),
    /// The transaction has committed, or has not.
    #[error("{0}")]
    Unknown(UnknownOutcome),
}

/// The answer to a commit was lost, and its marker could not be looked up for as long as the settings allow. The commit is
/// applied once or never.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is not known if the transaction has committed: {reason}")]
#[non_exhaustive]
pub struct UnknownOutcome {
    /// The reason.
    pub reason: String,
}

impl ClusterError {
    /// True if the same transaction may succeed if it is run again, and cannot have succeeded already.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Transaction(error) => error.is_retryable(),
            Self::Store(StoreError::Unreachable { .. } | StoreError::Compacted { .. }) => true,
            Self::Store(_) | Self::Unknown(_) => false,
        }
    }

    /// The error with which the body ended the transaction, if it is of this type.
    pub fn downcast_ref<T: std::error::Error + 'static>(&self) -> Option<&T> {
        match self {
            Self::Transaction(error) => error.downcast_ref(),
            _ => None,
        }
    }

    /// The misuse, if it is one.
    pub fn misuse(&self) -> Option<&Misuse> {
        match self {
            Self::Transaction(Error::Misuse(misuse)) => Some(misuse),
            _ => None,
        }
    }
}

impl From<Misuse> for ClusterError {
    fn from(misuse: Misuse) -> Self {
        Self::Transaction(Error::Misuse(misuse))
    }
}

impl From<TableMisuse> for ClusterError {
    fn from(misuse: TableMisuse) -> Self {
        Misuse::from(misuse).into()
    }
}

impl From<Abort> for ClusterError {
    fn from(abort: Abort) -> Self {
        Self::Transaction(Error::Rollback(abort))
    }
}

/// The reason for which an attempt cannot go on.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// The store failed.
    Store(StoreError),
    /// The attempt lost a conflict.
    Conflict(Conflict),
    /// The transaction can never work.
    Misuse(Misuse),
    /// The body waits for a change.
    Wait,
    /// The attempt may have gone as it has because it has assumed something that it has not read.
    Assumed,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused { reason } => Self::Misuse(Misuse::Unsupported(reason)),
            other => Self::Store(other),
        }
    }
}

impl From<Misuse> for Failure {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

impl From<TableMisuse> for Failure {
    fn from(misuse: TableMisuse) -> Self {
        Self::Misuse(misuse.into())
    }
}

/// The reason in the abort of an attempt that cannot go on; the transaction has the [`Failure`].
#[derive(Debug, thiserror::Error)]
#[error("the attempt cannot go on")]
pub(crate) struct Stopped;
