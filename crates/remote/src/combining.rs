//! Additions that wait in one process, combined into one commit.
//!
//! A transaction that has read nothing and only adds commutes with others like it, as far as the sums are in their ranges. While a commit of
//! one is on its way, others that add to the same keys wait; then one of them sends the sums of all. So a hot counter gets as many
//! additions for each answer of the store as there are threads that wait.
//!
//! If the commit conflicts, one of the keys has no number, or not all sums are in their ranges. Then the sender reads the numbers, and sends the
//! sums of those for which there is room, in the order in which they came, until no others have changed the numbers meanwhile. The rest are
//! told of the conflict: each runs again, reads the row, and tells its caller.

use crate::counters::Addition;
use crate::error::Failure;
use crate::store::{Commit, Mutation, Outcome, StoreError};
use hotrow_sync::clock::{Duration, Instant, now};
use hotrow_sync::{Condvar, Mutex, MutexGuard, lock};
use std::collections::BTreeMap;

/// Additions by their keys.
pub(crate) type Additions = BTreeMap<Vec<u8>, Addition>;

/// Transactions that wait, by the keys that they add to.
#[derive(Debug, Default)]
pub(crate) struct Combiner {
    queues: Mutex<Queues>,
    changed: Condvar,
    /// Notified when a transaction has come for which a leader waits.
    arrived: Condvar,
}

type Queues = BTreeMap<Vec<Vec<u8>>, Queue>;

#[derive(Debug, Default)]
struct Queue {
    next: u64,
    /// The additions of those that wait, in the order of keys.
    waiting: BTreeMap<u64, Vec<Addition>>,
    /// Results that were not fetched yet.
    results: BTreeMap<u64, Result<Outcome, Failure>>,
    is_sending: bool,
    /// The number of transactions in the last commit, and its time.
    last: (usize, Duration),
    /// True if the one that will send the next commit waits for others.
    is_gathering: bool,
}

/// Transactions that are sent together, in the order in which they came.
type Batch = Vec<(u64, Vec<Addition>)>;

/// The sums of a batch, if there are any.
fn sums(batch: &[(u64, Vec<Addition>)]) -> Option<Vec<Addition>> {
    let (first, rest) = batch.split_first()?;
    rest.iter().try_fold(first.1.clone(), |sums, (_, next)| {
        sums.iter().zip(next).map(|(sum, next)| sum.then(next)).collect()
    })
}

impl Queue {
    /// Takes a transaction, and all others that can be added to it.
    fn take(&mut self, ticket: u64) -> Batch {
        let mut taken: Batch = self.waiting.remove_entry(&ticket).into_iter().collect();
        for (other, additions) in std::mem::take(&mut self.waiting) {
            taken.push((other, additions));
            if sums(&taken).is_none()
                && let Some((other, additions)) = taken.pop()
            {
                self.waiting.insert(other, additions);
            }
        }
        taken
    }
}

/// The commit as additions without any condition; `None` if it is anything else.
pub(crate) fn as_additions(commit: &Commit) -> Option<Additions> {
    if commit.conditions() > 0 {
        return None;
    }
    let addition = |mutation: &Mutation| match mutation {
        Mutation::Add { key, amount, within } => {
            Some((key.clone(), Addition { amount: *amount, within: within.clone() }))
        }
        _ => None,
    };
    commit.mutations.iter().map(addition).collect()
}

/// The ways to the store of a process that adds.
pub(crate) struct Sender<S, R> {
    /// Sends a commit.
    pub(crate) send: S,
    /// Reads the values of keys.
    pub(crate) read: R,
    pub(crate) deadline: Instant,
}

/// The results of the transactions of a batch.
type Results = Vec<(u64, Result<Outcome, Failure>)>;

impl<S, R> Sender<S, R>
where
    S: Fn(Commit) -> Result<Outcome, Failure>,
    R: Fn(&[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Failure>,
{
    /// Commits a batch, as far as there is room.
    fn commit(&self, keys: &[Vec<u8>], mut batch: Batch) -> Results {
        let mut results = Results::new();
        while !batch.is_empty() {
            let Some(sums) = sums(&batch) else {
                // Each can be made, but not all at once.
                let lost = Outcome::Conflict(keys.first().cloned());
                results.extend(batch.into_iter().map(|(ticket, _)| (ticket, Ok(lost.clone()))));
                break;
            };
            let mutation = |(key, sum): (&Vec<u8>, Addition)| Mutation::Add {
                key: key.clone(),
                amount: sum.amount,
                within: sum.within,
            };
            let mutations = keys.iter().zip(sums).map(mutation).collect();
            let mut result = (self.send)(Commit { mutations, ..Commit::default() });
            if let Ok(Outcome::Conflict(key)) = &result
                && (batch.len() > 1 || now() < self.deadline)
            {
                let lost = Outcome::Conflict(key.clone());
                match (self.read)(keys) {
                    Ok(values) => {
                        let (kept, refused) = with_room(&values, batch);
                        results.extend(refused.into_iter().map(|(ticket, _)| (ticket, Ok(lost.clone()))));
                        batch = kept;
                        if now() < self.deadline {
                            continue;
                        }
                    }
                    Err(failure) => result = Err(failure),
                }
            }
            results.extend(batch.into_iter().map(|(ticket, _)| (ticket, result.clone())));
            break;
        }
        results
    }
}

/// Splits a batch into those for which there is room, one after the other, and the rest.
fn with_room(values: &[Option<Vec<u8>>], batch: Batch) -> (Batch, Batch) {
    let mut values: Option<Vec<Vec<u8>>> = values.iter().cloned().collect();
    batch.into_iter().partition(|(_, additions)| {
        let added = values.as_ref().and_then(|values| {
            additions.iter().zip(values).map(|(addition, value)| addition.to(value)).collect()
        });
        let has_room = added.is_some();
        values = added.or(values.take());
        has_room
    })
}

/// Commits additions, together with others to the same keys.
///
/// # Errors
///
/// As the sender's functions.
pub(crate) fn add<S, R>(
    combiner: &Combiner,
    additions: Additions,
    sender: &Sender<S, R>,
) -> Result<Outcome, Failure>
where
    S: Fn(Commit) -> Result<Outcome, Failure>,
    R: Fn(&[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Failure>,
{
    let (keys, additions): (Vec<_>, Vec<_>) = additions.into_iter().unzip();
    let mut queues = lock(&combiner.queues);
    let queue = queues.entry(keys.clone()).or_default();
    let ticket = queue.next;
    queue.next += 1;
    queue.waiting.insert(ticket, additions.clone());
    if queue.is_gathering {
        combiner.arrived.notify_all();
    }
    loop {
        let Some(queue) = queues.get_mut(&keys) else {
            unreachable!("a queue stays as long as anybody waits in it")
        };
        match queue.results.remove(&ticket) {
            // Whoever has sent it had less time.
            Some(Err(Failure::Store(StoreError::Unreachable { .. }))) if now() < sender.deadline => {
                queue.waiting.insert(ticket, additions.clone());
            }
            Some(result) => {
                tidy(&mut queues, &keys);
                return result;
            }
            None => {}
        }
        let waits = queue.waiting.contains_key(&ticket);
        if waits && !queue.is_sending {
            queue.is_sending = true;
            queues = gather(combiner, queues, &keys);
            let batch = queues.get_mut(&keys).map(|queue| queue.take(ticket)).unwrap_or_default();
            drop(queues);
            let tickets = batch.iter().map(|(ticket, _)| *ticket).collect();
            let mut leading =
                Leading { combiner, keys: &keys, tickets, began: now(), results: BTreeMap::new() };
            leading.results = sender.commit(&keys, batch).into_iter().collect();
            drop(leading);
            queues = lock(&combiner.queues);
            continue;
        }
        let left = sender.deadline.saturating_duration_since(now());
        if waits && left.is_zero() {
            queue.waiting.remove(&ticket);
            tidy(&mut queues, &keys);
            let reason = "others add to the same keys all the time".to_owned();
            return Err(Failure::Store(StoreError::Unreachable { reason }));
        }
        queues = if waits {
            let waited = combiner.changed.wait_timeout(queues, left);
            waited.unwrap_or_else(std::sync::PoisonError::into_inner).0
        } else {
            // The result will come, because whoever sends has a deadline.
            combiner.changed.wait(queues).unwrap_or_else(std::sync::PoisonError::into_inner)
        };
    }
}

/// Waits for those that the last commit was made for, who may come again now that they have been told its result. Not for long: otherwise
/// the first of them would go alone, and the others would wait for its commit.
fn gather<'q>(
    combiner: &Combiner,
    mut queues: MutexGuard<'q, Queues>,
    keys: &Vec<Vec<u8>>,
) -> MutexGuard<'q, Queues> {
    let mut until = None;
    while let Some(queue) = queues.get_mut(keys) {
        let (expected, time) = queue.last;
        let until = *until.get_or_insert_with(|| now() + time / 8);
        let left = until.saturating_duration_since(now());
        queue.is_gathering = queue.waiting.len() < expected && !left.is_zero();
        if !queue.is_gathering {
            break;
        }
        let waited = combiner.arrived.wait_timeout(queues, left);
        queues = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
    }
    queues
}

/// Forgets a queue that nobody uses.
fn tidy(queues: &mut MutexGuard<'_, Queues>, keys: &Vec<Vec<u8>>) {
    let is_unused = |queue: &Queue| !queue.is_sending && queue.waiting.is_empty() && queue.results.is_empty();
    if queues.get(keys).is_some_and(is_unused) {
        queues.remove(keys);
    }
}

/// A commit on its way for several transactions.
struct Leading<'c> {
    combiner: &'c Combiner,
    keys: &'c Vec<Vec<u8>>,
    tickets: Vec<u64>,
    began: Instant,
    /// Empty if the store has panicked.
    results: BTreeMap<u64, Result<Outcome, Failure>>,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        let mut queues = lock(&self.combiner.queues);
        if let Some(queue) = queues.get_mut(self.keys) {
            queue.is_sending = false;
            queue.last = (self.tickets.len(), self.began.elapsed());
            for ticket in &self.tickets {
                let result = self.results.remove(ticket).unwrap_or_else(|| {
                    let reason = "the thread that has sent the commit has panicked".to_owned();
                    Err(Failure::Store(StoreError::Unknown { reason }))
                });
                queue.results.insert(*ticket, result);
            }
        }
        tidy(&mut queues, self.keys);
        drop(queues);
        self.combiner.changed.notify_all();
    }
}
