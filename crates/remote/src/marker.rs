//! Markers: commits whose answer was lost are looked up, and never repeated blindly.
//!
//! A client has one marker for each commit that it makes at a time, in a key of which nobody else makes use. Each commit replaces
//! the marker under the condition that it has the version that the last use gave it, so at most one commit succeeds for each
//! version. A lost commit is looked up by a write of the marker under the same condition. Either that succeeds, and the lost one never
//! will; or the marker's value tells which of the two has succeeded.
//!
//! A marker that could not be looked up is never used again, because its commit may still be on its way. No marker is ever deleted:
//! its key would have version 0 again, which is the condition of the first commit that was sent with it. So a client leaves a key of a few
//! bytes behind for each commit that it has made at a time, and none if it has only read.

use crate::layout::Layout;
use crate::store::{At, Commit, Marker, Mutation, Outcome, Store, StoreError, Version};
use hotrow_sync::atomic::{AtomicU32, Ordering};
use hotrow_sync::backoff::Backoff;
use hotrow_sync::clock::{Duration, Instant, now};
use hotrow_sync::random::Random;
use hotrow_sync::{Mutex, lock, thread};

/// A marker that nobody else uses now.
#[derive(Debug)]
pub(crate) struct Slot {
    key: Vec<u8>,
    /// The version of the key.
    version: Version,
    /// The number of the last commit that was sent with it.
    number: u64,
}

/// The markers of a client.
#[derive(Debug, Default)]
pub(crate) struct Markers {
    client: Mutex<Option<u64>>,
    next: AtomicU32,
    free: Mutex<Vec<Slot>>,
}

/// The fate of a lost commit.
#[derive(Debug)]
pub(crate) enum Fate {
    /// It was applied, and has this version.
    Applied(Version),
    /// It was not and will not be.
    Never,
    /// Nobody knows. The marker must not be used again.
    Unknown(String),
}

impl Slot {
    /// The marker of a client with this number that was never used.
    pub(crate) fn of(layout: &Layout, client: u64, number: u32) -> Self {
        Self { key: layout.marker(client, number), version: 0, number: 0 }
    }

    /// The marker for a new commit.
    pub(crate) fn next(&mut self) -> Marker {
        self.number += 1;
        Marker { key: self.key.clone(), replaces: self.version, value: self.number.to_le_bytes().to_vec() }
    }

    /// Notes that the last commit was applied.
    pub(crate) fn applied(&mut self, version: Version) {
        self.version = version;
    }

    /// Looks up the last commit, until `until` at the latest.
    pub(crate) fn look_up(&mut self, store: &dyn Store, until: Instant) -> Fate {
        let lost = self.number;
        let cancel = Commit { marker: Some(self.next()), ..Commit::default() };
        let mut pause = Pause::new();
        loop {
            let failed = match store.commit(&cancel, until) {
                Ok(Outcome::Committed(version)) => {
                    self.version = version;
                    return Fate::Never;
                }
                Ok(Outcome::Conflict(_)) => {
                    match store.get_many(std::slice::from_ref(&self.key), At::Newest, until) {
                        Ok(read) => return self.fate(lost, read.values.into_iter().next().flatten()),
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            if now() >= until {
                return Fate::Unknown(failed.to_string());
            }
            pause.wait();
        }
    }

    /// The fate of a lost commit, by the marker's value after a commit with the same condition.
    fn fate(&mut self, lost: u64, found: Option<crate::store::Stamped>) -> Fate {
        let Some(found) = found else { return Fate::Unknown("its marker was deleted".to_owned()) };
        self.version = found.version;
        match found.value.try_into().map(u64::from_le_bytes) {
            Ok(number) if number == lost => Fate::Applied(found.version),
            Ok(number) if number == self.number => Fate::Never,
            _ => Fate::Unknown("somebody else has changed its marker".to_owned()),
        }
    }
}

impl Markers {
    /// Takes a marker that is not in use.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unreachable`].
    pub(crate) fn take(
        &self,
        store: &dyn Store,
        layout: &Layout,
        deadline: Instant,
    ) -> Result<Slot, StoreError> {
        if let Some(slot) = lock(&self.free).pop() {
            return Ok(slot);
        }
        let known = *lock(&self.client);
        let number = match known {
            Some(number) => number,
            None => {
                let number = unique_number(store, layout.numbers("client"), deadline)?;
                // Another thread may have been faster; then the number is nobody's.
                *lock(&self.client).get_or_insert(number)
            }
        };
        // Relaxed: only uniqueness matters.
        let slot = self.next.fetch_add(1, Ordering::Relaxed);
        Ok(Slot::of(layout, number, slot))
    }

    /// Gives back a marker whose last commit was answered or looked up.
    pub(crate) fn put_back(&self, slot: Slot) {
        lock(&self.free).push(slot);
    }
}

/// A number that nobody else gets. Some numbers are nobody's.
///
/// # Errors
///
/// [`StoreError::Unreachable`].
pub(crate) fn unique_number(store: &dyn Store, key: Vec<u8>, deadline: Instant) -> Result<u64, StoreError> {
    unique_numbers(store, key, 1, 1, deadline)
}

/// The first of so many numbers that follow one another and that nobody else gets. The first ones of all begin with `first`.
///
/// # Errors
///
/// As [`unique_number`].
pub(crate) fn unique_numbers(
    store: &dyn Store,
    key: Vec<u8>,
    first: u64,
    count: u64,
    deadline: Instant,
) -> Result<u64, StoreError> {
    until(deadline, || {
        let read = store.get_many(std::slice::from_ref(&key), At::Newest, deadline)?;
        let found = read.values.into_iter().next().flatten();
        let version = found.as_ref().map_or(0, |found| found.version);
        let number = found.and_then(|found| found.value.try_into().ok().map(u64::from_le_bytes));
        let number = number.unwrap_or(first);
        let value = number.wrapping_add(count).to_le_bytes().to_vec();
        let put = Mutation::Put { key: key.clone(), value };
        let commit = Commit { keys: vec![(key.clone(), version)], mutations: vec![put], ..Commit::default() };
        match store.commit(&commit, deadline) {
            Ok(Outcome::Committed(_)) => Ok(number),
            Ok(Outcome::Conflict(_)) => Err(again("others take numbers")),
            // If it was applied, or will be, the numbers are nobody's.
            Err(StoreError::Unknown { reason }) => Err(again(&reason)),
            Err(error) => Err(error),
        }
    })
}

fn again(reason: &str) -> StoreError {
    StoreError::Unreachable { reason: reason.to_owned() }
}

/// Repeats a call that has no effect, or one that can be repeated, while the store does not answer.
///
/// # Errors
///
/// The last error: any other, or the last one before the deadline.
pub(crate) fn until<T>(
    deadline: Instant,
    mut call: impl FnMut() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut pause = Pause::new();
    let mut before = None;
    loop {
        match call() {
            Err(error @ StoreError::Unreachable { .. }) => {
                if now() >= deadline {
                    // One that the deadline has cut short says less.
                    return Err(before.unwrap_or(error));
                }
                before = Some(error);
                pause.wait();
            }
            result => return result,
        }
    }
}

/// Pauses that grow.
#[derive(Debug)]
pub(crate) struct Pause {
    backoff: Backoff,
    random: Random,
}

impl Pause {
    pub(crate) fn new() -> Self {
        Self::up_to(Duration::from_millis(20))
    }

    pub(crate) fn up_to(longest: Duration) -> Self {
        let seed = hotrow_sync::clock::nanoseconds();
        Self { backoff: Backoff::new(longest), random: Random::stream(seed, thread::number()) }
    }

    pub(crate) fn wait(&mut self) {
        self.backoff.wait(&mut self.random);
    }
}
