//! Errors of transactions as errors of statements.

use super::state::SessionState;
use crate::error::SqlError;
use crate::run::Stop;
use crate::virtual_tables::conflicts::named;
use hotrow::{Abort, CancelCause, Conflict, Error, Misuse, Overflow, Reason};

/// The error of a statement whose transaction has ended so.
pub(super) fn of_error(error: Error<Stop>, state: &SessionState) -> SqlError {
    match error {
        Error::Rollback(Stop::Sql(error)) => error,
        Error::Rollback(Stop::Abort(abort)) => of_abort(abort),
        Error::Conflict(conflict) => of_conflict(&conflict, state),
        Error::Timeout(conflict) => SqlError::new("55P03", "canceling statement due to lock timeout")
            .detail(of_place(&conflict, state)),
        Error::RetryTimeout { .. } => SqlError::new("55P03", "canceling statement due to lock timeout"),
        Error::Misuse(misuse) => of_misuse(&misuse),
        Error::Panicked { message } => internal(&message),
        Error::MemoryLimit(limit) => SqlError::new("53200", "out of memory").detail(limit.to_string()),
        Error::Cancelled(cancelled) => match cancelled.cause {
            CancelCause::Idle { .. } => {
                SqlError::new("25P03", "terminating connection due to idle-in-transaction timeout")
            }
            _ => state.cancelled(),
        },
        Error::NotDurable(failure) => {
            let message = if failure.has_committed {
                "the transaction has committed, but perhaps it is not durable"
            } else {
                "the transaction was rolled back, because its commit cannot be written"
            };
            SqlError::new("58030", message).detail(failure.reason)
        }
        error => internal(&error.map_rollback(|_| Abort::rollback()).to_string()),
    }
}

/// As [`of_error`], for errors of a session's own.
pub(super) fn of_session(error: Error, state: &SessionState) -> SqlError {
    of_error(error.map_rollback(Stop::Abort), state)
}

/// An error of the server itself.
pub(super) fn internal(message: &str) -> SqlError {
    SqlError::new("XX000", format!("internal error: {message}"))
}

fn of_conflict(conflict: &Conflict, state: &SessionState) -> SqlError {
    let error = match conflict.reason {
        Reason::Deadlock => SqlError::new("40P01", "deadlock detected"),
        _ => SqlError::new("40001", "could not serialize access due to concurrent update")
            .hint("The transaction might succeed if retried."),
    };
    error.detail(of_place(conflict, state))
}

/// The reason of a loss, and its place: the table and the key as SQL has them.
fn of_place(conflict: &Conflict, state: &SessionState) -> String {
    if conflict.object.is_empty() {
        return format!("{}.", conflict.reason);
    }
    let (table, key) = match state.shared.committed_catalog() {
        Ok(catalog) => named(&conflict.object, &conflict.key, &catalog),
        Err(_) => (conflict.object.clone(), conflict.key.clone()),
    };
    format!("{}: {table} {key}.", conflict.reason)
}

fn of_misuse(misuse: &Misuse) -> SqlError {
    match misuse {
        // Somebody has dropped the table, or built it anew, since the statement was planned.
        Misuse::Dropped { .. } => {
            SqlError::new("40001", "could not serialize access due to concurrent update")
                .detail(format!("{misuse}."))
                .hint("The transaction might succeed if retried.")
        }
        Misuse::ReadOnly { .. } => SqlError::new("25006", "cannot execute this in a read-only transaction"),
        Misuse::TooManyWorkers { .. } => {
            SqlError::new("53300", "sorry, too many clients already").detail(format!("{misuse}."))
        }
        misuse => internal(&misuse.to_string()),
    }
}

fn of_abort(abort: Abort) -> SqlError {
    match abort.downcast::<SqlError>() {
        Ok(error) => error,
        Err(abort) if abort.downcast_ref::<Overflow>().is_some() => {
            SqlError::new("22003", "integer out of range")
        }
        Err(abort) => internal(&abort.to_string()),
    }
}
