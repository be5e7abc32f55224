//! Commits, sent once for certain.

use crate::error::Failure;
use crate::marker::{Fate, Pause, Slot};
use crate::shared::{Counts, Shared};
use crate::store::{Commit, Outcome, StoreError};
use hotrow_core::Misuse;
use hotrow_sync::clock::{Instant, now};

/// Sends a commit with a marker, until it is answered or the deadline passes. It is applied at most once. What the store would refuse is
/// not sent.
///
/// # Errors
///
/// [`Failure::Misuse`] if it is too large; [`Failure::Store`] with [`StoreError::Unreachable`] if it was not applied and never will be,
/// with [`StoreError::Unknown`] if nobody knows.
pub(crate) fn send(shared: &Shared, mut commit: Commit, deadline: Instant) -> Result<Outcome, Failure> {
    let store = &*shared.store;
    // All markers have the same size, and one may cost an answer of the store.
    commit.marker = Some(Slot::of(&shared.layout, 0, 0).next());
    if let Err(reason) = store.limits().check(&commit) {
        return Err(Failure::Misuse(Misuse::Unsupported(reason)));
    }
    let mut slot = shared.markers.take(store, &shared.layout, deadline)?;
    let mut pause = Pause::up_to(shared.settings.backoff_max);
    loop {
        commit.marker = Some(slot.next());
        Counts::one(&shared.counts.sent);
        let failed = match store.commit(&commit, deadline) {
            Ok(outcome) => {
                if let Outcome::Committed(version) = outcome {
                    slot.applied(version);
                }
                shared.markers.put_back(slot);
                return Ok(outcome);
            }
            Err(StoreError::Unknown { reason }) => {
                Counts::one(&shared.counts.looked_up);
                match fate(shared, &mut slot, &commit) {
                    Fate::Applied(version) => {
                        slot.applied(version);
                        shared.markers.put_back(slot);
                        return Ok(Outcome::Committed(version));
                    }
                    Fate::Never => StoreError::Unreachable { reason },
                    Fate::Unknown(reason) => return Err(Failure::Store(StoreError::Unknown { reason })),
                }
            }
            Err(error) => error,
        };
        let is_final = !matches!(failed, StoreError::Unreachable { .. });
        if !is_final {
            pause.wait();
        }
        if is_final || now() >= deadline {
            shared.markers.put_back(slot);
            return Err(failed.into());
        }
    }
}

#[cfg(not(test))]
fn fate(shared: &Shared, slot: &mut crate::marker::Slot, _: &Commit) -> Fate {
    slot.look_up(&*shared.store, now() + shared.settings.lookup)
}

#[cfg(test)]
fn fate(shared: &Shared, slot: &mut crate::marker::Slot, commit: &Commit) -> Fate {
    use crate::mutants::Mutant;
    use crate::store::At;
    let until = now() + shared.settings.lookup;
    if shared.has(Mutant::BlindRepetition) {
        // With a marker that can be replaced again.
        *slot = shared.markers.take(&*shared.store, &shared.layout, until).unwrap();
        return Fate::Never;
    }
    if shared.has(Mutant::LookupWithoutWrite) {
        let marker = commit.marker.as_ref().unwrap();
        let read = crate::marker::until(until, || {
            shared.store.get_many(std::slice::from_ref(&marker.key), At::Newest, until)
        });
        return match &read.unwrap().values[0] {
            Some(found) if found.value == marker.value => Fate::Applied(found.version),
            _ => {
                *slot = shared.markers.take(&*shared.store, &shared.layout, until).unwrap();
                Fate::Never
            }
        };
    }
    slot.look_up(&*shared.store, until)
}
