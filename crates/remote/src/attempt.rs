//! The end of an attempt: its commit, and what a recording notes of it.

use crate::cluster::Stop;
use crate::combining::{Sender, add, as_additions};
use crate::committing::send;
use crate::counters::Addition;
use crate::error::Failure;
use crate::layout::part;
use crate::marker::until;
use crate::recording::{AttemptEnd, Attempted};
use crate::shared::Counts;
use crate::store::{At, Commit, Mutation, Outcome, Span, StoreError, Version};
use crate::transaction::Transaction;
use crate::writes::Write;
use hotrow_core::history::WriteKind;
use hotrow_core::{Abort, Misuse};

impl Transaction<'_> {
    /// Runs the body, and commits.
    pub(crate) fn run<T>(
        &mut self,
        number: u32,
        body: &mut impl FnMut(&mut Self) -> Result<T, Abort>,
    ) -> Result<T, Stop> {
        let judged = |tx: &mut Self, output| match tx.failure.is_some() || tx.has_raised {
            true => Ok(output),
            false => tx.judge().map(|()| output),
        };
        let (result, end) = match body(self).and_then(|output| judged(self, output)) {
            Err(abort) => {
                let stop = Stop::of(abort, self.failure.take());
                let stop = self.tested(stop);
                let end = if matches!(stop, Stop::Rollback(_)) {
                    AttemptEnd::RolledBack
                } else {
                    AttemptEnd::Conflict
                };
                (Err(stop), end)
            }
            Ok(output) => match self.commit() {
                Ok(None) => (Ok(output), AttemptEnd::ReadOnly),
                Ok(Some(version)) => (Ok(output), AttemptEnd::Committed(version)),
                Err(failure) => {
                    let is_unknown = matches!(failure, Failure::Store(StoreError::Unknown { .. }));
                    let end = if is_unknown { AttemptEnd::Unknown } else { AttemptEnd::Conflict };
                    (Err(Stop::Failed(failure)), end)
                }
            },
        };
        if let (Some(began), Some(recorder)) = (self.began, self.shared.recorder.get()) {
            recorder.note(self.attempted(number, began, end));
        }
        result
    }

    /// The end of an attempt, unless it may have come to that only by what it has assumed.
    fn tested(&mut self, stop: Stop) -> Stop {
        match stop {
            Stop::Rollback(_) | Stop::Failed(Failure::Wait) if self.has_assumed => {
                self.reads_counters = true;
                Stop::Failed(Failure::Assumed)
            }
            stop => stop,
        }
    }

    /// Commits. Returns the version of the commit, if anything was written.
    fn commit(&mut self) -> Result<Option<Version>, Failure> {
        if let Some(failure) = self.failure.take() {
            // The body has kept it to itself.
            return Err(failure);
        }
        if self.has_raised {
            return Err(Failure::Misuse(Misuse::CaughtError));
        }
        if self.writes.is_empty() {
            return Ok(None);
        }
        let commit = self.to_commit();
        let sent = match as_additions(&commit) {
            Some(additions) => {
                let (shared, deadline) = (self.shared, self.deadline);
                let read = |keys: &[Vec<u8>]| {
                    let read = until(deadline, || shared.store.get_many(keys, At::Newest, deadline))?;
                    Ok(read.values.into_iter().map(|found| Some(found?.value)).collect())
                };
                let sender = Sender { send: |commit| send(shared, commit, deadline), read, deadline };
                add(&shared.combiner, additions, &sender)
            }
            None => send(self.shared, commit, self.deadline),
        };
        match sent? {
            Outcome::Committed(version) => {
                Counts::one(&self.shared.counts.commits);
                Ok(Some(version))
            }
            Outcome::Conflict(key) => {
                let is_key = |key: &[u8]| self.reads.get(key).is_some_and(|seen| !seen.is_in_span);
                // A store that does not tell may mean any of them.
                let lost_addition = match &key {
                    Some(key) => self.is_blind_addition(key),
                    None => self.writes.keys().any(|key| self.is_blind_addition(key)),
                };
                self.reads_counters |= lost_addition;
                Err(Failure::Conflict(self.shared.conflict(key.as_deref(), is_key)))
            }
        }
    }

    /// True if the part is added to, and nothing that was read says that it can be.
    fn is_blind_addition(&self, key: &[u8]) -> bool {
        let Some(Write::Add(addition)) = self.writes.get(key) else { return false };
        let read = self.reads.get(key).and_then(|seen| seen.value.as_ref());
        read.and_then(|read| addition.to(read)).is_none()
    }

    /// True if the attempt has lost by what an addition has assumed, or perhaps, so that the next one must read the row.
    pub(crate) fn has_lost_addition(&self, failure: &Failure) -> bool {
        match failure {
            Failure::Conflict(_) => self.reads_counters,
            Failure::Assumed => true,
            _ => false,
        }
    }

    /// The conditions and changes of the attempt.
    fn to_commit(&self) -> Commit {
        let (mut keys, mut spans) = (Vec::new(), self.spans.clone());
        for (key, seen) in &self.reads {
            match seen {
                seen if seen.is_in_span => {}
                // A tombstone, which may be collected meanwhile: nothing must have been written over it.
                seen if seen.value.is_none() && seen.version > 0 => spans.push(Span::of_key(key)),
                seen => keys.push((key.clone(), seen.version)),
            }
        }
        if !spans.is_empty() {
            spans.push(self.shared.fence());
        }
        let mutations = self.writes.iter().map(|(key, write)| {
            let key = key.clone();
            match write {
                Write::Put(value) => Mutation::Put { key, value: value.clone() },
                Write::Delete => Mutation::Put { key, value: Vec::new() },
                Write::Add(Addition { amount, within }) => {
                    Mutation::Add { key, amount: *amount, within: within.clone() }
                }
            }
        });
        let mutations = mutations.collect();
        let commit = Commit { read_at: self.at.unwrap_or(0), keys, spans, mutations, marker: None };
        #[cfg(test)]
        let commit = self.mutate(commit);
        commit
    }

    #[cfg(test)]
    fn mutate(&self, mut commit: Commit) -> Commit {
        use crate::mutants::Mutant;
        let fence = self.shared.fence();
        if self.shared.has(Mutant::RangeForgotten) {
            commit.spans.retain(|span| *span == fence);
        }
        if self.shared.has(Mutant::FenceForgotten) {
            commit.spans.retain(|span| *span != fence);
        }
        if self.shared.has(Mutant::KeysForgotten) {
            commit.keys.clear();
        }
        if self.shared.has(Mutant::AbsencesForgotten) {
            let is_absent = |key: &[u8]| self.reads.get(key).is_some_and(|seen| seen.value.is_none());
            commit.keys.retain(|(key, _)| !is_absent(key));
            commit.spans.retain(|span| !is_absent(&span.start));
        }
        if self.shared.has(Mutant::FloorForgotten) {
            for mutation in &mut commit.mutations {
                if let Mutation::Add { within, .. } = mutation {
                    *within = i64::MIN..=i64::MAX;
                }
            }
        }
        if self.shared.has(Mutant::NoTombstones) {
            for mutation in &mut commit.mutations {
                if let Mutation::Put { key, value } = mutation
                    && value.is_empty()
                {
                    *mutation = Mutation::Delete { key: key.clone() };
                }
            }
        }
        commit
    }

    /// The attempt as a recording notes it.
    fn attempted(&self, number: u32, began: u64, end: AttemptEnd) -> Attempted {
        let reads = self.reads.iter().map(|(key, seen)| (key.clone(), seen.version, seen.value.is_some()));
        let kind = |key: &[u8], write: &Write| match write {
            Write::Delete => WriteKind::Delete,
            Write::Add(_) => WriteKind::Commute,
            Write::Put(_) => {
                let main = part(&key[..key.len() - 1], 0);
                let was_read = |key| self.reads.get(key).is_some_and(|seen| seen.value.is_some());
                if was_read(key) || was_read(&*main) { WriteKind::Update } else { WriteKind::Insert }
            }
        };
        let writes = self.writes.iter().map(|(key, write)| (key.clone(), kind(key, write)));
        let (reads, writes) = (reads.collect(), writes.collect());
        Attempted {
            number,
            began,
            may_be_old: self.may_be_old,
            read_at: self.at.unwrap_or(0),
            reads,
            spans: self.spans.clone(),
            writes,
            end,
        }
    }
}
