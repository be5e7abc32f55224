//! Where transactions wait for locks: queues beside the locks, found by the segment's address.
//!
//! A lock that nobody waits for has no queue. Queues of several segments share a list under a mutex (`striped`); what
//! waits at one moment is little. A lock whose word says *queued* is taken and handed on under the mutex only, and
//! what can change without it is that a holder releases.
//!
//! # Who waits, who dies, who wounds (plor §2.1)
//!
//! - `no-wait`: nobody waits.
//! - `wait-die`: a transaction waits for younger holders only, and dies otherwise. So that what it waits for stays
//!   younger, a freed lock goes to the youngest in the queue first. A younger transaction that is in nobody's way
//!   but conflicts with an older one in the queue may still share the lock (plor §6.2.1 says what that is good
//!   for), but only [`BYPASSES_MAX`] times, so that the one in the queue does not wait for ever.
//! - `wound-wait`: a transaction wounds younger holders and takes what they hold, and waits for older ones. A freed
//!   lock goes to the oldest in the queue first, and who conflicts with an older one in the queue waits behind it.
//!
//! In both, whoever waits does so for transactions on one side of its age, so there is no cycle. An upgrade from
//! shared to exclusive goes before all others: its shared lock is what they wait for.
//!
//! # Deviations from plor §2.1 and DBx1000
//!
//! A wounded transaction loses its locks at once instead of when it finds out; nothing that it holds was changed,
//! for values are installed at commit. A wounded one that has passed its commit point is waited for.

use super::Policy;
use super::lock::LockWord;
use crate::striped::Striped;
use crate::worker_states::{AttemptStamp, Waited, WorkerStates, Wound};
use hotrow_sync::clock::Duration;

/// Lists of queues.
const STRIPES: usize = if cfg!(test) { 2 } else { 256 };
/// A lock and a word of value.
const GRAIN: usize = 16;

/// How many younger transactions may share a lock past an older one in the queue (`wait-die`).
const BYPASSES_MAX: u32 = 16;

/// All queues of an engine.
#[derive(Debug)]
pub(super) struct Queues {
    entries: Striped<Entry, STRIPES, GRAIN>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It shares the lock and has no bit in the word.
    Holder,
    /// It waits.
    Waiter {
        /// It shares the lock.
        upgrade: bool,
        /// How many younger ones have come before it since.
        bypassed: u32,
    },
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    segment: usize,
    stamp: AttemptStamp,
    exclusive: bool,
    role: Role,
}

/// What a transaction wants of a lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockRequest {
    /// The segment's address.
    pub(super) segment: usize,
    /// Who.
    pub(super) stamp: AttemptStamp,
    /// The lock for itself alone.
    pub(super) exclusive: bool,
    /// It shares the lock already.
    pub(super) shares: bool,
}

impl LockRequest {
    fn conflicts_with(&self, exclusive: bool) -> bool {
        self.exclusive || exclusive
    }
}

/// The lock was not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// It stayed with others.
    Unavailable,
    /// The transaction itself was wounded.
    Wounded,
}

impl Queues {
    pub(super) fn new() -> Self {
        Self { entries: Striped::new() }
    }

    /// Takes a lock that was not to be had by its word alone. `wait_max` says how long it may be waited for.
    pub(super) fn acquire(
        &self,
        wait_max: impl FnOnce() -> Option<Duration>,
        word: &LockWord,
        request: LockRequest,
        policy: Policy,
        states: &WorkerStates,
    ) -> Result<(), Refused> {
        let worker = request.stamp.worker();
        if policy == Policy::NoWait && !word.needs_queue(worker) {
            return Err(Refused::Unavailable);
        }
        let mut entries = self.entries.lock(request.segment);
        word.close();
        let Some(waits) = decide(&mut entries, word, request, policy, states) else {
            // Others may have been held off by the word alone meanwhile.
            hand_on(&mut entries, word, request.segment, policy, states);
            return Err(Refused::Unavailable);
        };
        if !waits {
            give(&mut entries, word, request);
            hand_on(&mut entries, word, request.segment, policy, states);
            return Ok(());
        }
        states.clear_grant(worker);
        let LockRequest { segment, stamp, exclusive, shares: upgrade } = request;
        entries.push(Entry { segment, stamp, exclusive, role: Role::Waiter { upgrade, bypassed: 0 } });
        drop(entries);
        let granted = || states.is_granted(worker, segment);
        let waited = states.wait_at_most(wait_max(), worker, stamp, granted, granted);
        if waited == Waited::Over {
            return Ok(());
        }
        let mut entries = self.entries.lock(segment);
        if granted() {
            // Granted in the last moment: the attempt has it, whatever it does next.
            return Ok(());
        }
        entries
            .retain(|entry| !(entry.segment == segment && entry.stamp.id == stamp.id && entry.is_waiter()));
        hand_on(&mut entries, word, segment, policy, states);
        Err(if waited == Waited::Wounded { Refused::Wounded } else { Refused::Unavailable })
    }

    /// Gives a shared lock back that has no bit in the word.
    pub(super) fn release_noted(
        &self,
        word: &LockWord,
        segment: usize,
        stamp: AttemptStamp,
        policy: Policy,
        states: &WorkerStates,
    ) {
        let mut entries = self.entries.lock(segment);
        entries.retain(|entry| !entry.is_holder_of(segment, stamp.worker()));
        hand_on(&mut entries, word, segment, policy, states);
    }

    /// A holder has released: the lock goes to whoever is next.
    #[cold]
    pub(super) fn hand_on(&self, word: &LockWord, segment: usize, policy: Policy, states: &WorkerStates) {
        hand_on(&mut self.entries.lock(segment), word, segment, policy, states);
    }
}

impl Entry {
    fn is_waiter(&self) -> bool {
        matches!(self.role, Role::Waiter { .. })
    }

    fn is_noted_at(&self, segment: usize) -> bool {
        self.role == Role::Holder && self.segment == segment
    }

    fn is_holder_of(&self, segment: usize, worker: u32) -> bool {
        self.is_noted_at(segment) && self.stamp.worker() == worker
    }
}

/// Whether a wish must wait (true) or is granted (false); `None` if its transaction must abort.
fn decide(
    entries: &mut Vec<Entry>,
    word: &LockWord,
    request: LockRequest,
    policy: Policy,
    states: &WorkerStates,
) -> Option<bool> {
    let mut held = false;
    for (holder, exclusive) in holders(word, states) {
        match meet(request, holder, exclusive, policy, states)? {
            Met::Nobody => {}
            Met::Holder => held = true,
            Met::Dead => word.revoke(holder.worker()),
        }
    }
    let mut at = 0;
    while let Some(entry) = entries.get(at) {
        if entry.is_noted_at(request.segment) {
            match meet(request, entry.stamp, false, policy, states)? {
                Met::Nobody => {}
                Met::Holder => held = true,
                Met::Dead => {
                    entries.swap_remove(at);
                    continue;
                }
            }
        }
        at += 1;
    }
    if request.shares {
        return Some(held);
    }
    let mut waits = held;
    for entry in entries.iter_mut() {
        let Role::Waiter { bypassed, .. } = &mut entry.role else { continue };
        if entry.segment != request.segment || !request.conflicts_with(entry.exclusive) {
            continue;
        }
        let behind = entry.stamp.is_older_than(request.stamp);
        match policy {
            Policy::NoWait => {}
            // It will have the lock first (the youngest goes first), and is younger.
            Policy::WaitDie if !behind => waits = true,
            Policy::WaitDie if held => {}
            Policy::WaitDie if *bypassed >= BYPASSES_MAX => return None,
            Policy::WaitDie => *bypassed += 1,
            Policy::WoundWait => waits |= behind && states.is_running(entry.stamp.id),
        }
    }
    Some(waits)
}

/// What a wish finds where somebody holds the lock.
enum Met {
    /// The two are not in each other's way.
    Nobody,
    /// Who must be waited for.
    Holder,
    /// One whose lock may be taken.
    Dead,
}

/// What a holder means to a wish. `None` if the wish's transaction must abort.
fn meet(
    request: LockRequest,
    holder: AttemptStamp,
    exclusive: bool,
    policy: Policy,
    states: &WorkerStates,
) -> Option<Met> {
    if holder.worker() == request.stamp.worker() || !request.conflicts_with(exclusive) {
        return Some(Met::Nobody);
    }
    match policy {
        Policy::NoWait => None,
        Policy::WaitDie if holder.is_older_than(request.stamp) => None,
        Policy::WoundWait
            if request.stamp.is_older_than(holder)
                && states.wound(holder.id, request.segment) == Wound::Dead =>
        {
            Some(Met::Dead)
        }
        Policy::WaitDie | Policy::WoundWait => Some(Met::Holder),
    }
}

/// Who holds a lock by its word, and whether alone. The stripe's mutex is held and the lock closed, so that its
/// holders become fewer at most.
fn holders(word: &LockWord, states: &WorkerStates) -> impl Iterator<Item = (AttemptStamp, bool)> {
    word.holders().workers().filter_map(|(worker, exclusive)| {
        let stamp = states.stamp(worker);
        // If the worker still holds the lock, the stamp is that of the transaction that does.
        word.is_held_by(worker).then_some((stamp, exclusive))
    })
}

/// Makes a transaction a holder. Nobody is in its way.
fn give(entries: &mut Vec<Entry>, word: &LockWord, request: LockRequest) {
    let LockRequest { segment, stamp, exclusive, .. } = request;
    if exclusive {
        entries.retain(|entry| !entry.is_holder_of(segment, stamp.worker()));
        word.grant_exclusive(stamp.worker());
    } else if !word.grant_shared(stamp.worker()) {
        entries.push(Entry { segment, stamp, exclusive, role: Role::Holder });
    }
}

/// Gives a lock to those in its queue who are next, as long as they are not in each other's way; and lets
/// everybody take it by its word again if the queue is empty.
fn hand_on(entries: &mut Vec<Entry>, word: &LockWord, segment: usize, policy: Policy, states: &WorkerStates) {
    loop {
        // (To whom, and whether it comes before another one that was found.)
        let mut next: Option<(usize, Entry)> = None;
        for (at, entry) in entries.iter().enumerate() {
            if entry.segment != segment {
                continue;
            }
            let Role::Waiter { upgrade, .. } = entry.role else { continue };
            // One that was wounded while it waited is about to leave.
            if policy == Policy::WoundWait && !states.is_running(entry.stamp.id) {
                continue;
            }
            let first = next.is_none_or(|(_, other)| match policy {
                _ if upgrade => true,
                _ if matches!(other.role, Role::Waiter { upgrade: true, .. }) => false,
                Policy::WoundWait => entry.stamp.is_older_than(other.stamp),
                Policy::NoWait | Policy::WaitDie => other.stamp.is_older_than(entry.stamp),
            });
            if first {
                next = Some((at, *entry));
            }
        }
        let Some((at, entry)) = next else { break };
        let worker = entry.stamp.worker();
        let noted =
            entries.iter().filter(|entry| entry.is_noted_at(segment)).map(|entry| (entry.stamp, false));
        let in_the_way = holders(word, states)
            .chain(noted)
            .any(|(holder, exclusive)| holder.worker() != worker && (entry.exclusive || exclusive));
        if in_the_way {
            break;
        }
        entries.swap_remove(at);
        let Entry { stamp, exclusive, .. } = entry;
        give(entries, word, LockRequest { segment, stamp, exclusive, shares: false });
        states.grant(worker, segment);
    }
    if !entries.iter().any(|entry| entry.segment == segment) {
        word.open();
    }
}

#[cfg(all(test, loom))]
mod models;
