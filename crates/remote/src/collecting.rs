//! The collection of tombstones, behind the fence.

use crate::committing::send;
use crate::error::{ClusterError, Failure};
use crate::marker::until;
use crate::shared::Shared;
use crate::store::{At, Commit, Mutation, Outcome, Span, StoreError, Version};
use hotrow_core::Error;
use hotrow_sync::clock::{Instant, now};

/// Deletes the tombstones of all tables that are there now. Returns their number.
///
/// # Errors
///
/// [`ClusterError::Store`] if the store does not answer until the deadline; some tombstones may have been deleted.
pub(crate) fn collect(shared: &Shared) -> Result<u64, ClusterError> {
    let fence = raise_fence(shared)?;
    collect_below(shared, fence)
}

/// Writes the fence. Returns its version.
pub(crate) fn raise_fence(shared: &Shared) -> Result<Version, ClusterError> {
    let deadline = now() + shared.settings.deadline;
    let mutations = vec![Mutation::Put { key: shared.layout.fence(), value: Vec::new() }];
    match send(shared, Commit { mutations, ..Commit::default() }, deadline).map_err(failed)? {
        Outcome::Committed(fence) => Ok(fence),
        Outcome::Conflict(_) => {
            let reason = "the fence has no condition, and was refused".to_owned();
            Err(ClusterError::Store(StoreError::Unreachable { reason }))
        }
    }
}

/// Deletes the tombstones that are not newer than the fence. Returns their number.
pub(crate) fn collect_below(shared: &Shared, fence: Version) -> Result<u64, ClusterError> {
    let deadline = now() + shared.settings.deadline;
    let mut rest = shared.layout.rows();
    let mut collected = 0;
    loop {
        let page =
            until(deadline, || shared.store.range(&rest, At::Newest, shared.settings.page.max(1), deadline));
        let page = page.map_err(ClusterError::Store)?;
        let last = page.rows.last().map(|(key, _)| key.clone());
        let is_dead = |version: Version, value: &[u8]| value.is_empty() && version <= fence;
        let dead = page.rows.into_iter().filter(|(_, found)| is_dead(found.version, &found.value));
        collected += delete(shared, dead.map(|(key, found)| (key, found.version)).collect(), deadline)?;
        match last.filter(|_| page.has_more) {
            Some(last) => rest = Span { start: [&*last, &[0]].concat(), end: rest.end },
            None => return Ok(collected),
        }
    }
}

/// Deletes keys that have these versions, and leaves those that have others by now. Returns the number of those deleted.
fn delete(
    shared: &Shared,
    mut keys: Vec<(Vec<u8>, Version)>,
    deadline: Instant,
) -> Result<u64, ClusterError> {
    let limits = shared.store.limits();
    // One for the marker.
    let most = limits.conditions_max.min(limits.changes_max).saturating_sub(1).max(1);
    let mut deleted = 0;
    while !keys.is_empty() {
        let batch = keys.split_off(keys.len().saturating_sub(most));
        deleted += delete_batch(shared, batch, deadline)?;
    }
    Ok(deleted)
}

fn delete_batch(
    shared: &Shared,
    mut batch: Vec<(Vec<u8>, Version)>,
    deadline: Instant,
) -> Result<u64, ClusterError> {
    while !batch.is_empty() {
        let mutations = batch.iter().map(|(key, _)| Mutation::Delete { key: key.clone() }).collect();
        let commit = Commit { keys: batch.clone(), mutations, ..Commit::default() };
        match send(shared, commit, deadline).map_err(failed)? {
            Outcome::Committed(_) => return Ok(batch.len() as u64),
            // Somebody has inserted the row again.
            Outcome::Conflict(Some(key)) => batch.retain(|(other, _)| *other != key),
            Outcome::Conflict(None) => return Ok(0),
        }
    }
    Ok(0)
}

fn failed(failure: Failure) -> ClusterError {
    match failure {
        Failure::Misuse(misuse) => misuse.into(),
        Failure::Store(error) => ClusterError::Store(error),
        Failure::Conflict(conflict) => ClusterError::Transaction(Error::Conflict(Box::new(conflict))),
        Failure::Wait | Failure::Assumed => {
            ClusterError::Store(StoreError::Unreachable { reason: "nothing is waited for".to_owned() })
        }
    }
}
