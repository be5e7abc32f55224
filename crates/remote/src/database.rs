//! A store over a local database: the reference, and what data is moved through on one machine.
//!
//! # Tables
//!
//! | table | rows |
//! |---|---|
//! | `hotrow/values` | the value that each commit has given a key, by key and version; none where the commit has deleted it |
//! | `hotrow/states` | one row: the newest version, and the lowest that can be read |
//! | `hotrow/holds` | versions that are held, and by how many. In memory alone: whoever holds one is of this process |
//!
//! Each call is one transaction of the database, which reads and writes these tables alone. So the promises of [`Store`] follow from the
//! serializability of the database, and a commit is durable if the database is.

use crate::counters::sum;
use crate::store::{
    At, Commit, Freshness, Hold, Limits, Mutation, Outcome, Page, Read, Span, Stamped, Store, StoreError,
    Version,
};
use hotrow_core::{Abort, Error, Protocol, Transaction};
use hotrow_sync::clock::{Instant, now};
use hotrow_tables::{Database, Direction, Table};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

/// The number of values that are looked at in one transaction of a compaction.
const COMPACTED_AT_ONCE: usize = if cfg!(test) { 3 } else { 1_000 };

/// The row of the table of states.
type States = (Version, Version);

/// The key and the version of a value.
type Place = (Vec<u8>, Version);

/// A [`Store`] in tables of a [`Database`] of this process, in memory or in a directory. Any number of stores may be over one database.
///
/// It has every version until it is [compacted](Self::compact).
pub struct DatabaseStore<P: Protocol> {
    database: Database<P>,
    values: Table<Place, Option<Vec<u8>>, P>,
    states: Table<(), States, P>,
    holds: Table<Version, u64, P>,
    limits: Limits,
}

impl<P: Protocol> fmt::Debug for DatabaseStore<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseStore").field("database", &self.database).finish_non_exhaustive()
    }
}

impl<P: Protocol> DatabaseStore<P> {
    /// The store in a database, with the limits of [`MemoryStore`](crate::MemoryStore).
    ///
    /// # Errors
    ///
    /// Those of the database, in which the tables `hotrow/values`, `hotrow/states` and `hotrow/holds` are made.
    pub fn over(database: &Database<P>) -> Result<Self, Error> {
        let store = Self {
            values: database.table("hotrow/values").create_or_open()?,
            states: database.table("hotrow/states").create_or_open()?,
            holds: database.table("hotrow/holds").in_memory().create_or_open()?,
            database: database.clone(),
            limits: Limits { conditions_max: 1024, changes_max: 1024, bytes_max: 1536 * 1024 },
        };
        database.transact(|tx| store.states.insert_if_absent(tx, (), (0, 0)))?;
        Ok(store)
    }

    /// Forgets states below a version, as far as none is held. Returns the lowest version that can still be read.
    ///
    /// # Errors
    ///
    /// Those of the database. Some values may have been forgotten, of which no state that can be read has one.
    pub fn compact(&self, below: Version) -> Result<Version, Error> {
        let oldest = self.database.transact(|tx| {
            let (newest, oldest) = self.states(tx)?;
            let held = self.holds.collect(tx, .., Direction::Ascending, 1)?;
            let held = held.first().map_or(Version::MAX, |(held, _)| *held);
            let oldest = below.min(held).min(newest).max(oldest);
            self.states.upsert(tx, (), (newest, oldest))?;
            Ok(oldest)
        })?;
        let mut from = Some((Vec::new(), 0));
        while let Some(place) = from {
            from = self.database.transact(|tx| self.compact_from(tx, &place, oldest))?;
        }
        Ok(oldest)
    }

    /// Deletes some values that no state from `oldest` on has. Returns the place to go on from; `None` at the end.
    fn compact_from(
        &self,
        tx: &mut Transaction<'_, P>,
        from: &Place,
        oldest: Version,
    ) -> Result<Option<Place>, Abort> {
        let (mut dead, mut seen) = (Vec::new(), 0);
        let mut last: Option<(Place, bool)> = None;
        self.values.scan(tx, from.clone().., Direction::Ascending, |place, value| {
            if let Some((before, _)) = &last
                && before.0 == place.0
                && place.1 <= oldest
            {
                dead.extend(last.take().map(|(before, _)| before));
            } else if let Some((before, true)) = &last {
                dead.push(before.clone());
            }
            // A key that was deleted by then is the same as an absent one.
            last = Some((place.clone(), value.is_none() && place.1 <= oldest));
            seen += 1;
            if seen > COMPACTED_AT_ONCE { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let next = match last {
            Some((place, _)) if seen > COMPACTED_AT_ONCE => Some(place),
            Some((place, is_dead)) => {
                dead.extend(is_dead.then_some(place));
                None
            }
            None => None,
        };
        for place in &dead {
            self.values.delete(tx, place)?;
        }
        Ok(next)
    }

    /// Runs a transaction that ends by a deadline.
    fn run<T>(
        &self,
        deadline: Instant,
        mut body: impl FnMut(&mut Transaction<'_, P>) -> Result<T, Abort>,
    ) -> Result<T, Error> {
        self.database.transact(|tx| {
            tx.set_deadline(deadline.saturating_duration_since(now()));
            body(tx)
        })
    }

    /// As [`run`](Self::run), for a body that reads.
    fn read<T>(
        &self,
        deadline: Instant,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<Result<T, StoreError>, Abort>,
    ) -> Result<T, StoreError> {
        self.run(deadline, body).map_err(without_effect)?
    }

    fn states(&self, tx: &mut Transaction<'_, P>) -> Result<States, Abort> {
        Ok(self.states.get(tx, &())?.unwrap_or_default())
    }

    /// The version of the state that is to be read.
    fn version_of(&self, tx: &mut Transaction<'_, P>, at: At) -> Result<Result<Version, StoreError>, Abort> {
        let (newest, oldest) = self.states(tx)?;
        Ok(match at {
            At::Newest => Ok(newest),
            At::Version(version) if version < oldest => Err(StoreError::Compacted { version }),
            At::Version(version) if version > newest => {
                Err(StoreError::Refused { reason: format!("version {version} is of the future") })
            }
            At::Version(version) => Ok(version),
        })
    }

    /// The last change of a key up to a version: the version, and the value.
    fn last_change(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &[u8],
        at: Version,
    ) -> Result<Option<(Version, Option<Vec<u8>>)>, Abort> {
        let range = (key.to_vec(), 0)..=(key.to_vec(), at);
        let found = self.values.collect(tx, range, Direction::Descending, 1)?;
        Ok(found.into_iter().next().map(|((_, version), value)| (version, value)))
    }

    fn value(&self, tx: &mut Transaction<'_, P>, key: &[u8], at: Version) -> Result<Option<Stamped>, Abort> {
        let found = self.last_change(tx, key, at)?;
        Ok(found.and_then(|(version, value)| Some(Stamped { version, value: value? })))
    }

    /// The last change in a range above a version.
    fn changed_in(
        &self,
        tx: &mut Transaction<'_, P>,
        span: &Span,
        above: Version,
    ) -> Result<Option<Place>, Abort> {
        let mut changed: Option<Place> = None;
        if !span.is_empty() {
            let range = (span.start.clone(), 0)..(span.end.clone(), 0);
            self.values.scan(tx, range, Direction::Ascending, |place, _| {
                if place.1 > above && changed.as_ref().is_none_or(|(_, version)| place.1 > *version) {
                    changed = Some(place.clone());
                }
                ControlFlow::Continue(())
            })?;
        }
        Ok(changed)
    }

    /// The key of a condition that does not hold in the newest state.
    fn conflict(&self, tx: &mut Transaction<'_, P>, commit: &Commit) -> Result<Option<Vec<u8>>, Abort> {
        for (key, version) in commit.key_conditions() {
            let found = self.value(tx, key, Version::MAX)?;
            if found.map_or(0, |found| found.version) != version {
                return Ok(Some(key.to_vec()));
            }
        }
        for span in &commit.spans {
            if let Some((key, _)) = self.changed_in(tx, span, commit.read_at)? {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// Applies a commit whose mutations are of different keys.
    fn apply(&self, tx: &mut Transaction<'_, P>, commit: &Commit) -> Result<Outcome, Abort> {
        if let Some(key) = self.conflict(tx, commit)? {
            return Ok(Outcome::Conflict(Some(key)));
        }
        let mut changes = Vec::with_capacity(commit.changes());
        for mutation in &commit.mutations {
            changes.push(match mutation {
                Mutation::Put { key, value } => (key, Some(value.clone())),
                Mutation::Delete { key } => (key, None),
                Mutation::Add { key, amount, within } => {
                    let found = self.value(tx, key, Version::MAX)?;
                    match found.and_then(|found| sum(&found.value, *amount, within)) {
                        Some(sum) => (key, Some(sum)),
                        None => return Ok(Outcome::Conflict(Some(key.clone()))),
                    }
                }
            });
        }
        changes.extend(commit.marker.iter().map(|marker| (&marker.key, Some(marker.value.clone()))));
        let (newest, oldest) = self.states(tx)?;
        let version = newest + 1;
        self.states.upsert(tx, (), (version, oldest))?;
        for (key, value) in changes {
            self.values.insert(tx, (key.clone(), version), value)?;
        }
        Ok(Outcome::Committed(version))
    }

    /// The version of the last change above `from`.
    fn changed_after(
        &self,
        tx: &mut Transaction<'_, P>,
        keys: &[Vec<u8>],
        spans: &[Span],
        from: Version,
    ) -> Result<Option<Version>, Abort> {
        let mut last = None;
        for key in keys {
            last = last.max(self.last_change(tx, key, Version::MAX)?.map(|(version, _)| version));
        }
        for span in spans {
            last = last.max(self.changed_in(tx, span, from)?.map(|(_, version)| version));
        }
        Ok(last.filter(|version| *version > from))
    }
}

/// The error of a transaction that had no effect.
fn without_effect(error: Error) -> StoreError {
    let reason = error.to_string();
    match error {
        Error::Misuse(_) => StoreError::Refused { reason },
        _ => StoreError::Unreachable { reason },
    }
}

/// True if two mutations, or one and the marker, are of the same key.
fn changes_twice(commit: &Commit) -> bool {
    let keys = commit.mutations.iter().map(|mutation| mutation.key());
    let mut keys: Vec<_> = keys.chain(commit.marker.iter().map(|marker| &*marker.key)).collect();
    keys.sort_unstable();
    keys.windows(2).any(|two| two[0] == two[1])
}

impl<P: Protocol> Store for DatabaseStore<P> {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn read_version(&self, _: Freshness, deadline: Instant) -> Result<Version, StoreError> {
        self.read(deadline, |tx| self.version_of(tx, At::Newest))
    }

    fn get_many(&self, keys: &[Vec<u8>], at: At, deadline: Instant) -> Result<Read, StoreError> {
        self.limits.check_keys(keys).map_err(|reason| StoreError::Refused { reason })?;
        self.read(deadline, |tx| {
            let version = match self.version_of(tx, at)? {
                Ok(version) => version,
                Err(error) => return Ok(Err(error)),
            };
            let values = keys.iter().map(|key| self.value(tx, key, version)).collect::<Result<_, _>>()?;
            Ok(Ok(Read { version, values }))
        })
    }

    fn range(&self, span: &Span, at: At, limit: usize, deadline: Instant) -> Result<Page, StoreError> {
        self.read(deadline, |tx| {
            let version = match self.version_of(tx, at)? {
                Ok(version) => version,
                Err(error) => return Ok(Err(error)),
            };
            let mut rows = BTreeMap::new();
            if !span.is_empty() {
                let range = (span.start.clone(), 0)..(span.end.clone(), 0);
                self.values.scan(tx, range, Direction::Ascending, |(key, changed), value| {
                    if *changed > version {
                        return ControlFlow::Continue(());
                    }
                    match value {
                        Some(value) => {
                            let value = Stamped { version: *changed, value: value.clone() };
                            rows.insert(key.clone(), value);
                        }
                        None => drop(rows.remove(key)),
                    }
                    // The last of these may have a later change.
                    if rows.len() > limit.saturating_add(1) {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                })?;
            }
            let has_more = rows.len() > limit;
            Ok(Ok(Page { version, rows: rows.into_iter().take(limit).collect(), has_more }))
        })
    }

    fn commit(&self, commit: &Commit, deadline: Instant) -> Result<Outcome, StoreError> {
        self.limits.check(commit).map_err(|reason| StoreError::Refused { reason })?;
        if changes_twice(commit) {
            return Err(StoreError::Refused { reason: "a key is changed twice".to_owned() });
        }
        self.run(deadline, |tx| self.apply(tx, commit)).map_err(|error| match error {
            // It may be in the log.
            Error::NotDurable(failure) => StoreError::Unknown { reason: failure.to_string() },
            error => without_effect(error),
        })
    }

    fn watch(
        &self,
        keys: &[Vec<u8>],
        spans: &[Span],
        from: Version,
        deadline: Instant,
    ) -> Result<Option<Version>, StoreError> {
        let watched = self.run(deadline, |tx| {
            let (_, oldest) = self.states(tx)?;
            if from < oldest {
                return Ok(Err(StoreError::Compacted { version: from }));
            }
            match self.changed_after(tx, keys, spans, from)? {
                Some(version) => Ok(Ok(Some(version))),
                None => match deadline.saturating_duration_since(now()) {
                    left if left.is_zero() => Ok(Ok(None)),
                    left => tx.retry_for(left),
                },
            }
        });
        match watched {
            Ok(watched) => watched,
            Err(Error::RetryTimeout { .. }) => Ok(None),
            Err(error) => Err(without_effect(error)),
        }
    }

    fn hold(&self, at: Version, deadline: Instant) -> Result<Hold, StoreError> {
        self.read(deadline, |tx| {
            if let Err(error) = self.version_of(tx, At::Version(at))? {
                return Ok(Err(error));
            }
            let count = self.holds.get(tx, &at)?.unwrap_or_default();
            self.holds.upsert(tx, at, count + 1)?;
            Ok(Ok(()))
        })?;
        let (database, holds) = (self.database.clone(), self.holds.clone());
        Ok(Hold::new(at, move || {
            // If it fails, the database has, and is of no more use.
            let _: Result<(), Error> = database.transact(|tx| {
                match holds.get(tx, &at)? {
                    Some(count) if count > 1 => drop(holds.upsert(tx, at, count - 1)?),
                    _ => drop(holds.delete(tx, &at)?),
                }
                Ok(())
            });
        }))
    }
}
