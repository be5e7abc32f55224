//! Commits as transactions of etcd.

use super::failing::CallError;
use super::inner::{Inner, header, ranges, revision, stamped, version};
use super::messages::{
    Compare, Comparison, DeleteRangeRequest, PutRequest, RangeRequest, Request, RequestOp, TARGET_MOD,
    TxnRequest, TxnResponse, operation,
};
use crate::counters::sum;
use crate::marker::until;
use crate::store::{At, Commit, Marker, Mutation, Outcome, Span, Stamped, StoreError, Version};
use hotrow_sync::clock::{Instant, now};
use std::ops::RangeInclusive;

/// The most conditions of which a failed transaction tells which one has failed.
const TOLD_MAX: usize = 64;

/// The most bytes of their keys, which are sent once more for that.
const TOLD_BYTES_MAX: usize = 32 * 1024;

/// The condition that a key has a version.
fn key_has(key: &[u8], version: Version) -> Compare {
    Compare {
        result: Comparison::Equal.into(),
        target: TARGET_MOD,
        key: key.to_vec(),
        mod_revision: Some(revision(version)),
        range_end: Vec::new(),
    }
}

/// The condition that no key in a range has a version above another one.
fn unchanged(span: &Span, after: Version) -> Compare {
    Compare {
        result: Comparison::Less.into(),
        target: TARGET_MOD,
        key: span.start.clone(),
        mod_revision: Some(revision(after + 1)),
        range_end: span.end.clone(),
    }
}

fn put(key: &[u8], value: &[u8]) -> RequestOp {
    operation(Request::Put(PutRequest { key: key.to_vec(), value: value.to_vec(), lease: 0 }))
}

/// A counter, with the value to which it is added.
struct Addend<'c> {
    key: &'c [u8],
    amount: i64,
    within: &'c RangeInclusive<i64>,
    found: Option<Stamped>,
}

impl Addend<'_> {
    /// The value after the addition, if there is one.
    fn sum(&self) -> Option<Vec<u8>> {
        sum(&self.found.as_ref()?.value, self.amount, self.within)
    }
}

/// The requests of a commit.
struct Parts<'c> {
    commit: &'c Commit,
    spans: Vec<&'c Span>,
    adds: Vec<Addend<'c>>,
}

impl<'c> Parts<'c> {
    fn new(commit: &'c Commit) -> Self {
        let adds = commit.mutations.iter().filter_map(|mutation| match mutation {
            Mutation::Add { key, amount, within } => {
                Some(Addend { key, amount: *amount, within, found: None })
            }
            _ => None,
        });
        let spans = commit.spans.iter().filter(|span| !span.is_empty()).collect();
        Self { commit, spans, adds: adds.collect() }
    }

    /// The conditions of the commit.
    fn conditions(&self) -> Vec<Compare> {
        let keys = self.commit.key_conditions().map(|(key, version)| key_has(key, version));
        keys.chain(self.spans.iter().map(|span| unchanged(span, self.commit.read_at))).collect()
    }

    /// Reads that tell which condition has failed.
    fn questions(&self) -> Vec<RequestOp> {
        let bytes: usize = self.commit.key_conditions().map(|(key, _)| key.len()).sum();
        if self.commit.conditions() > TOLD_MAX || bytes > TOLD_BYTES_MAX {
            return Vec::new();
        }
        let of_keys = self.commit.key_conditions().map(|(key, _)| RangeRequest {
            key: key.to_vec(),
            keys_only: true,
            ..RangeRequest::default()
        });
        let of_spans = self.spans.iter().map(|span| RangeRequest {
            key: span.start.clone(),
            range_end: span.end.clone(),
            limit: 1,
            min_mod_revision: revision(self.commit.read_at + 1),
            keys_only: true,
            ..RangeRequest::default()
        });
        of_keys.chain(of_spans).map(|range| operation(Request::Range(range))).collect()
    }

    /// The key of a condition that has failed, by the answers; `None` if they tell of none.
    fn failed(&self, answer: TxnResponse) -> Option<Vec<u8>> {
        let mut answers = ranges(answer);
        for (key, wanted) in self.commit.key_conditions() {
            let found = answers.next()?.kvs.into_iter().next().map_or(0, |kv| version(kv.mod_revision));
            if found != wanted {
                return Some(key.to_vec());
            }
        }
        answers.find_map(|range| Some(range.kvs.into_iter().next()?.key))
    }

    /// The changes, with sums in place of additions.
    ///
    /// # Errors
    ///
    /// The key to which nothing can be added.
    fn changes(&self) -> Result<Vec<RequestOp>, Vec<u8>> {
        let mut adds = self.adds.iter();
        let mut changes = Vec::with_capacity(self.commit.changes());
        for mutation in &self.commit.mutations {
            changes.push(match mutation {
                Mutation::Put { key, value } => put(key, value),
                Mutation::Delete { key } => {
                    operation(Request::Delete(DeleteRangeRequest { key: key.clone() }))
                }
                Mutation::Add { key, .. } => {
                    let addend = adds.next().and_then(Addend::sum);
                    put(key, &addend.ok_or_else(|| key.clone())?)
                }
            });
        }
        if let Some(Marker { key, value, .. }) = &self.commit.marker {
            changes.push(put(key, value));
        }
        Ok(changes)
    }
}

impl Inner {
    /// Sends a commit that the limits allow.
    pub(super) fn commit(&self, commit: &Commit, deadline: Instant) -> Result<Outcome, StoreError> {
        let mut parts = Parts::new(commit);
        if parts.adds.is_empty() {
            return self.commit_once(&parts, Vec::new(), deadline).map(|(outcome, _)| outcome);
        }
        let known = parts.adds.iter().map(|add| self.counters.get(add.key)).collect::<Option<Vec<_>>>();
        let mut is_known = known.is_some();
        let known = known.unwrap_or_default().into_iter().map(Some);
        parts.adds.iter_mut().zip(known).for_each(|(add, known)| add.found = known);
        loop {
            if !is_known && let Some(conflict) = self.read_counters(&mut parts, deadline)? {
                return Ok(conflict);
            }
            let versions = parts.adds.iter().map(|add| {
                let version = add.found.as_ref().map_or(0, |found| found.version);
                key_has(add.key, version)
            });
            let (outcome, has_known_cause) = self.commit_once(&parts, versions.collect(), deadline)?;
            match outcome {
                Outcome::Committed(version) => {
                    for add in &parts.adds {
                        let value = add.sum();
                        self.counters.note(add.key, value.map(|value| Stamped { version, value }));
                    }
                    return Ok(outcome);
                }
                Outcome::Conflict(key) if has_known_cause || !is_known && key.is_some() => {
                    return Ok(Outcome::Conflict(key));
                }
                Outcome::Conflict(_) => {}
            }
            parts.adds.iter().for_each(|add| self.counters.note(add.key, None));
            is_known = false;
            if now() >= deadline {
                return Err(StoreError::Unreachable {
                    reason: "others add to the same keys all the time".to_owned(),
                });
            }
        }
    }

    /// Sends a commit once, with more conditions. In case of a conflict, also true if one of the commit's own conditions has failed.
    fn commit_once(
        &self,
        parts: &Parts<'_>,
        more: Vec<Compare>,
        deadline: Instant,
    ) -> Result<(Outcome, bool), StoreError> {
        let success = match parts.changes() {
            Ok(changes) => changes,
            // The value that is known of the counter may be old.
            Err(key) => return Ok((Outcome::Conflict(Some(key)), false)),
        };
        let compare = parts.conditions().into_iter().chain(more).collect();
        let request = TxnRequest { compare, success, failure: parts.questions() };
        let answer = match self.commits.call(&self.client, request, parts.commit.bytes(), deadline) {
            Ok(answer) => answer,
            Err(error) if error.is_full() => {
                return self.look_up_full(parts.commit, error, deadline).map(|outcome| (outcome, false));
            }
            Err(error) => return Err(error.of_commit()),
        };
        if answer.succeeded {
            return Ok((Outcome::Committed(header(answer.header)), false));
        }
        let failed = parts.failed(answer);
        let is_own = failed.is_some();
        Ok((Outcome::Conflict(failed), is_own))
    }

    /// Finds out if a commit was applied to which etcd has answered that it has no space left. The one that notices first that there is none
    /// takes effect all the same. It is on its way no more, so a look is enough.
    fn look_up_full(
        &self,
        commit: &Commit,
        error: CallError,
        deadline: Instant,
    ) -> Result<Outcome, StoreError> {
        let mut conditions = commit.key_conditions();
        let is_changed = |key: &[u8]| {
            let is_marker = commit.marker.as_ref().is_some_and(|marker| marker.key == key);
            is_marker || commit.mutations.iter().any(|mutation| mutation.key() == key)
        };
        let Some((key, before)) = conditions.find(|(key, _)| is_changed(key)) else {
            return Err(error.of_commit());
        };
        let read = until(deadline, || self.get_many(&[key.to_vec()], At::Newest, deadline));
        let found = read.map(|read| read.values.into_iter().next().flatten());
        let marker = commit.marker.as_ref();
        match found {
            Ok(found) if found.as_ref().map_or(0, |found| found.version) == before => {
                // Nothing has replaced it.
                Err(error.of_read(0))
            }
            Ok(Some(found))
                if marker.is_some_and(|marker| marker.key == key && marker.value == found.value) =>
            {
                Ok(Outcome::Committed(found.version))
            }
            _ => Err(error.of_commit()),
        }
    }

    /// Reads the counters that are added to, in a state in which the other conditions hold. Returns the conflict if they do not.
    fn read_counters(&self, parts: &mut Parts<'_>, deadline: Instant) -> Result<Option<Outcome>, StoreError> {
        let range = |add: &Addend<'_>| RangeRequest { key: add.key.to_vec(), ..RangeRequest::default() };
        let success = parts.adds.iter().map(|add| operation(Request::Range(range(add)))).collect();
        let request = TxnRequest { compare: parts.conditions(), success, failure: parts.questions() };
        let answer = self.txn(request, deadline).map_err(|error| error.of_read(0))?;
        if !answer.succeeded {
            return Ok(Some(Outcome::Conflict(parts.failed(answer))));
        }
        for (add, range) in parts.adds.iter_mut().zip(ranges(answer)) {
            add.found = range.kvs.into_iter().next().map(stamped);
        }
        let cannot = |add: &&Addend<'_>| add.sum().is_none();
        let cannot = parts.adds.iter().find(cannot).map(|add| add.key.to_vec());
        Ok(cannot.map(|key| Outcome::Conflict(Some(key))))
    }
}
