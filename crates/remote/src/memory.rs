//! A store in memory: the reference, and what tests run over.

use crate::counters::sum;
use crate::store::{
    At, Commit, Freshness, Hold, Limits, Mutation, Outcome, Page, Read, Span, Stamped, Store, StoreError,
    Version,
};
use hotrow_sync::clock::{Instant, now};
use hotrow_sync::{Arc, Condvar, Mutex, lock};
use std::collections::BTreeMap;
use std::ops::{Bound, RangeInclusive};

/// A store in the memory of this process, with every version until it is [compacted](Self::compact).
///
/// It does what the contract demands and no more. So its conditions on ranges miss deletions, as etcd's do.
#[derive(Debug)]
pub struct MemoryStore {
    state: Arc<State>,
    limits: Limits,
}

#[derive(Debug, Default)]
struct State {
    content: Mutex<Content>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Content {
    newest: Version,
    /// The lowest version that can be read.
    oldest: Version,
    /// The values of each key, in the order of versions; `None` if it was deleted.
    keys: BTreeMap<Vec<u8>, Vec<(Version, Option<Vec<u8>>)>>,
    /// Versions that are held, and by how many.
    held: BTreeMap<Version, usize>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store, with the limits that etcd has if it is started with `--max-txn-ops 1024`.
    pub fn new() -> Self {
        Self::with_limits(Limits { conditions_max: 1024, changes_max: 1024, bytes_max: 1536 * 1024 })
    }

    /// An empty store with other limits.
    pub fn with_limits(limits: Limits) -> Self {
        Self { state: Arc::default(), limits }
    }

    /// Forgets states below a version, as far as none is held. Returns the lowest version that can still be read.
    pub fn compact(&self, below: Version) -> Version {
        let mut content = lock(&self.state.content);
        let held = content.held.keys().next().copied().unwrap_or(Version::MAX);
        let oldest = below.min(held).min(content.newest).max(content.oldest);
        content.oldest = oldest;
        content.keys.retain(|_, values| {
            let at_oldest = values.partition_point(|(version, _)| *version <= oldest);
            values.drain(..at_oldest.saturating_sub(1));
            // A key that was deleted by then is the same as an absent one.
            if values.first().is_some_and(|(version, value)| *version <= oldest && value.is_none()) {
                values.remove(0);
            }
            !values.is_empty()
        });
        oldest
    }

    /// The number of keys of which anything is kept.
    pub fn keys(&self) -> usize {
        lock(&self.state.content).keys.len()
    }
}

impl Content {
    fn version_of(&self, at: At) -> Result<Version, StoreError> {
        match at {
            At::Newest => Ok(self.newest),
            At::Version(version) if version < self.oldest => Err(StoreError::Compacted { version }),
            At::Version(version) if version > self.newest => {
                Err(StoreError::Refused { reason: format!("version {version} is of the future") })
            }
            At::Version(version) => Ok(version),
        }
    }

    /// The value of a key at a version.
    fn value(&self, key: &[u8], at: Version) -> Option<Stamped> {
        value_at(self.keys.get(key)?, at)
    }

    /// The version of a key in the newest state.
    fn version(&self, key: &[u8]) -> Version {
        self.value(key, self.newest).map_or(0, |stamped| stamped.version)
    }

    fn within<'c>(
        &'c self,
        span: &'c Span,
    ) -> impl Iterator<Item = (&'c Vec<u8>, &'c Vec<(Version, Option<Vec<u8>>)>)> {
        let bounds = (Bound::Included(&span.start), Bound::Excluded(&span.end));
        (!span.is_empty()).then(|| self.keys.range::<Vec<u8>, _>(bounds)).into_iter().flatten()
    }

    /// The key of a condition that does not hold.
    fn conflict(&self, commit: &Commit) -> Option<Vec<u8>> {
        let of_keys = commit.key_conditions().find(|(key, version)| self.version(key) != *version);
        if let Some((key, _)) = of_keys {
            return Some(key.to_vec());
        }
        let is_newer = |(_, values): &(&Vec<u8>, &Vec<(Version, Option<Vec<u8>>)>)| {
            values.last().is_some_and(|(version, value)| value.is_some() && *version > commit.read_at)
        };
        commit.spans.iter().find_map(|span| self.within(span).find(is_newer)).map(|(key, _)| key.clone())
    }

    /// The sum that an addition makes.
    fn sum(&self, key: &[u8], amount: i64, within: &RangeInclusive<i64>) -> Option<Vec<u8>> {
        sum(&self.value(key, self.newest)?.value, amount, within)
    }

    fn changes_after(&self, keys: &[Vec<u8>], spans: &[Span], from: Version) -> Option<Version> {
        let last = |values: &Vec<(Version, Option<Vec<u8>>)>| values.last().map(|(version, _)| *version);
        let of_keys = keys.iter().filter_map(|key| self.keys.get(key).and_then(last));
        let of_spans = spans.iter().flat_map(|span| self.within(span)).filter_map(|(_, values)| last(values));
        of_keys.chain(of_spans).filter(|version| *version > from).max()
    }
}

fn value_at(values: &[(Version, Option<Vec<u8>>)], at: Version) -> Option<Stamped> {
    let (version, value) = values[..values.partition_point(|(version, _)| *version <= at)].last()?;
    value.clone().map(|value| Stamped { version: *version, value })
}

impl Store for MemoryStore {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn read_version(&self, _: Freshness, _: Instant) -> Result<Version, StoreError> {
        Ok(lock(&self.state.content).newest)
    }

    fn get_many(&self, keys: &[Vec<u8>], at: At, _: Instant) -> Result<Read, StoreError> {
        self.limits.check_keys(keys).map_err(|reason| StoreError::Refused { reason })?;
        let content = lock(&self.state.content);
        let version = content.version_of(at)?;
        Ok(Read { version, values: keys.iter().map(|key| content.value(key, version)).collect() })
    }

    fn range(&self, span: &Span, at: At, limit: usize, _: Instant) -> Result<Page, StoreError> {
        let content = lock(&self.state.content);
        let version = content.version_of(at)?;
        let found =
            content.within(span).filter_map(|(key, values)| Some((key.clone(), value_at(values, version)?)));
        let mut rows: Vec<_> = found.take(limit.saturating_add(1)).collect();
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        Ok(Page { version, rows, has_more })
    }

    fn commit(&self, commit: &Commit, _: Instant) -> Result<Outcome, StoreError> {
        self.limits.check(commit).map_err(|reason| StoreError::Refused { reason })?;
        let mut content = lock(&self.state.content);
        if let Some(key) = content.conflict(commit) {
            return Ok(Outcome::Conflict(Some(key)));
        }
        let mut changes = BTreeMap::new();
        for mutation in &commit.mutations {
            let (key, value) = match mutation {
                Mutation::Put { key, value } => (key, Some(value.clone())),
                Mutation::Delete { key } => (key, None),
                Mutation::Add { key, amount, within } => match content.sum(key, *amount, within) {
                    Some(sum) => (key, Some(sum)),
                    None => return Ok(Outcome::Conflict(Some(key.clone()))),
                },
            };
            if changes.insert(key.clone(), value).is_some() {
                return Err(StoreError::Refused { reason: "a key is changed twice".to_owned() });
            }
        }
        if let Some(marker) = &commit.marker {
            changes.insert(marker.key.clone(), Some(marker.value.clone()));
        }
        let version = content.newest + 1;
        content.newest = version;
        for (key, value) in changes {
            content.keys.entry(key).or_default().push((version, value));
        }
        drop(content);
        self.state.changed.notify_all();
        Ok(Outcome::Committed(version))
    }

    fn watch(
        &self,
        keys: &[Vec<u8>],
        spans: &[Span],
        from: Version,
        deadline: Instant,
    ) -> Result<Option<Version>, StoreError> {
        let mut content = lock(&self.state.content);
        loop {
            if from < content.oldest {
                return Err(StoreError::Compacted { version: from });
            }
            if let Some(version) = content.changes_after(keys, spans, from) {
                return Ok(Some(version));
            }
            let left = deadline.saturating_duration_since(now());
            if left.is_zero() {
                return Ok(None);
            }
            let waited = self.state.changed.wait_timeout(content, left);
            content = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }

    fn hold(&self, at: Version, _: Instant) -> Result<Hold, StoreError> {
        let mut content = lock(&self.state.content);
        content.version_of(At::Version(at))?;
        *content.held.entry(at).or_default() += 1;
        let state = Arc::clone(&self.state);
        Ok(Hold::new(at, move || {
            let mut content = lock(&state.content);
            if let Some(count) = content.held.get_mut(&at) {
                *count -= 1;
                if *count == 0 {
                    content.held.remove(&at);
                }
            }
        }))
    }
}
