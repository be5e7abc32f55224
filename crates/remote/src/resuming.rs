//! Long works in steps, which go on where they were ended.
//!
//! A *mark* in the store says how far a work has come. Each step is one commit, which also replaces the mark, under the condition that it
//! has the version that the step before gave it. So a step whose answer was lost is simply sent again, and is applied once; and of two
//! processes that do the same work one is late, and goes on from the other one's mark.

use crate::marker::{Pause, until};
use crate::shared::Shared;
use crate::store::{At, Commit, Marker, Mutation, Outcome, Span, StoreError};
use hotrow_sync::clock::now;

/// Sends a step until it is answered. A conflict may be one with an earlier sending of the same step.
///
/// # Errors
///
/// [`StoreError`], the last one before the deadline if the store does not answer.
pub(crate) fn step(shared: &Shared, mut commit: Commit, mark: Marker) -> Result<Outcome, StoreError> {
    commit.marker = Some(mark);
    let deadline = now() + shared.settings.deadline;
    let mut pause = Pause::up_to(shared.settings.backoff_max);
    loop {
        match shared.store.commit(&commit, deadline) {
            Err(error @ (StoreError::Unknown { .. } | StoreError::Unreachable { .. })) => {
                if now() >= deadline {
                    return Err(error);
                }
                pause.wait();
            }
            answered => return answered,
        }
    }
}

/// Deletes all keys of a range that nobody writes any more, in several commits.
///
/// # Errors
///
/// [`StoreError`]. Some keys may have been deleted.
pub(crate) fn delete_all(shared: &Shared, span: &Span) -> Result<(), StoreError> {
    let most = shared.store.limits().changes_max.max(1);
    loop {
        let deadline = now() + shared.settings.deadline;
        let page = until(deadline, || shared.store.range(span, At::Newest, most, deadline))?;
        let mutations: Vec<_> = page.rows.into_iter().map(|(key, _)| Mutation::Delete { key }).collect();
        if !mutations.is_empty() {
            // The keys are never used again. So it does no harm if it is applied later.
            send_blindly(shared, &Commit { mutations, ..Commit::default() })?;
        }
        if !page.has_more {
            return Ok(());
        }
    }
}

/// Sends a commit, which may be applied several times, until it is answered.
///
/// # Errors
///
/// As [`step`].
pub(crate) fn send_blindly(shared: &Shared, commit: &Commit) -> Result<Outcome, StoreError> {
    let deadline = now() + shared.settings.deadline;
    until(deadline, || {
        shared.store.commit(commit, deadline).map_err(|error| match error {
            StoreError::Unknown { reason } => StoreError::Unreachable { reason },
            error => error,
        })
    })
}
