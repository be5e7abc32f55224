//! Queues of transactions that wait for locks. They lie beside the locks and are found by the segment's address.
//!
//! A lock that nobody waits for has no queue. Queues of several segments share a list under a mutex (`striped`),
//! because few transactions wait at a time. A lock whose word is marked *queued* is taken and handed on under the
//! mutex only. Without the mutex a holder may only release it.
//!
//! # Waiting, dying and wounding (plor §2.1)
//!
//! - `no-wait`: nobody waits.
//! - `wait-die`: a transaction waits for younger holders only, and dies otherwise. A freed lock goes to the youngest
//!   in the queue first, so that a waiter waits for younger ones only. A younger transaction that conflicts with an
//!   older one in the queue, but with no holder, may still have the lock (plor §6.2.1 gives the benefit). It may do
//!   so only [`BYPASSES_MAX`] times, so that the one in the queue does not wait for ever.
//! - `wound-wait`: a transaction wounds younger holders and takes their locks, and waits for older ones. A freed
//!   lock goes to the oldest in the queue first. A transaction that conflicts with an older one in the queue waits
//!   behind it.
//!
//! Under `wound-wait` a freed lock is not given to a waiter that is asleep, because it would be idle until that one is awake,
//! which takes longer than most transactions. The waiter is called instead, and stays in the queue. A younger transaction that
//! comes meanwhile takes the lock, and the waiter wounds it when it is awake. (`wait-die` has no naps: those that come meanwhile
//! would soon have to die.)
//!
//! In both, a transaction waits only for transactions on one side of its age, so there is no cycle. An upgrade from
//! shared to exclusive goes before all others, because they wait for its shared lock.
//!
//! # Deviations from plor §2.1 and DBx1000
//!
//! A wounded transaction loses its locks at once instead of when it notices the wound. It has changed nothing under
//! them, because values are installed at commit. A wounded one that has passed its commit point is waited for.

use super::Policy;
use super::lock::LockWords;
use crate::queue_place::QueuePlace;
use crate::striped::Striped;
use crate::worker_states::{AttemptStamp, Waited, WorkerStates, Wound};
use hotrow_core::WaitLimit;
use hotrow_sync::profile::waiting;

/// Number of lists of queues.
const STRIPES: usize = if cfg!(test) { 2 } else { 256 };
/// Size of a lock in bytes.
const GRAIN: usize = 16;

/// Number of younger transactions that may share a lock past an older one in the queue (`wait-die`).
const BYPASSES_MAX: u32 = 16;

/// All queues of an engine.
#[derive(Debug)]
pub(super) struct Queues {
    entries: Striped<Entry, STRIPES, GRAIN>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A holder that shares the lock and has no bit in its words.
    Holder,
    /// A transaction that waits.
    Waiter {
        /// True if it shares the lock already.
        upgrade: bool,
        /// Number of younger transactions that have passed it since.
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

/// A transaction's request for a lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockRequest {
    /// The segment's address.
    pub(super) segment: usize,
    /// The requesting attempt.
    pub(super) stamp: AttemptStamp,
    /// True for the exclusive mode.
    pub(super) exclusive: bool,
    /// True if the transaction shares the lock already.
    pub(super) shares: bool,
}

impl LockRequest {
    fn conflicts_with(&self, exclusive: bool) -> bool {
        self.exclusive || exclusive
    }

    /// True if the entry is a transaction that waits for the lock in a mode that conflicts with this request.
    fn meets_waiter(&self, entry: &Entry) -> bool {
        entry.is_waiter() && entry.segment == self.segment && self.conflicts_with(entry.exclusive)
    }
}

/// The reasons for which a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// Others kept the lock.
    Unavailable,
    /// The transaction itself was wounded.
    Wounded,
}

impl Queues {
    pub(super) fn new() -> Self {
        Self { entries: Striped::new() }
    }

    /// Takes a lock that the word alone did not grant. `wait_max` returns the limit of the wait.
    pub(super) fn acquire(
        &self,
        mut wait_max: impl FnMut() -> WaitLimit,
        word: &LockWords,
        request: LockRequest,
        policy: Policy,
        states: &WorkerStates,
    ) -> Result<(), Refused> {
        let LockRequest { segment, stamp, exclusive, shares: upgrade } = request;
        let worker = stamp.worker();
        if policy == Policy::NoWait && !word.needs_queue(worker) {
            return Err(Refused::Unavailable);
        }
        // A transaction that would die of a holder dies without the list, which those that hand locks on need.
        if policy == Policy::WaitDie
            && holders(word, states)
                .any(|(holder, exclusive)| meet(request, holder, exclusive, policy, states).is_none())
        {
            return Err(Refused::Unavailable);
        }
        let mut entries = self.entries.lock(segment);
        let mut naps = 0;
        loop {
            word.close();
            let Some(waits) = decide(&mut entries, word, request, policy, states) else {
                // The closed word may have kept others from the lock meanwhile.
                hand_on(&mut entries, word, segment, policy, states);
                return Err(Refused::Unavailable);
            };
            if !waits {
                give(&mut entries, word, request);
                hand_on(&mut entries, word, segment, policy, states);
                return Ok(());
            }
            states.clear_grant(worker);
            entries.push(Entry { segment, stamp, exclusive, role: Role::Waiter { upgrade, bypassed: 0 } });
            drop(entries);
            let granted = || states.is_granted(worker, segment);
            let place = QueuePlace::new(|| self.leave(word, request, policy, states));
            let waited = {
                let _waiting = waiting("its lock", segment);
                states.wait_for_turn(wait_max(), stamp, &mut naps, granted, granted)
            };
            place.keep();
            if granted() {
                return Ok(());
            }
            entries = self.entries.lock(segment);
            if granted() {
                // Granted at the last moment: the attempt holds it, so the request has succeeded.
                return Ok(());
            }
            entries.retain(|entry| !entry.is_waiter_of(segment, stamp));
            let refused = match waited {
                // It was called, or looks by itself.
                Waited::Over => continue,
                Waited::Wounded => Refused::Wounded,
                Waited::TimedOut => Refused::Unavailable,
            };
            hand_on(&mut entries, word, segment, policy, states);
            return Err(refused);
        }
    }

    /// Leaves the queue because of a panic, and gives a lock back that was granted at the last moment.
    #[cold]
    fn leave(&self, word: &LockWords, request: LockRequest, policy: Policy, states: &WorkerStates) {
        let LockRequest { segment, stamp, exclusive, shares } = request;
        let worker = stamp.worker();
        let mut entries = self.entries.lock(segment);
        entries.retain(|entry| !entry.is_waiter_of(segment, stamp));
        if states.is_granted(worker, segment) {
            match exclusive {
                true => drop(word.release_exclusive(worker)),
                false if word.release_shared(worker).is_some() => {}
                false => entries.retain(|entry| !entry.is_holder_of(segment, worker)),
            }
            if shares {
                give(&mut entries, word, LockRequest { exclusive: false, ..request });
            }
        }
        hand_on(&mut entries, word, segment, policy, states);
    }

    /// Releases a shared lock that has no bit in the word.
    pub(super) fn release_noted(
        &self,
        word: &LockWords,
        segment: usize,
        stamp: AttemptStamp,
        policy: Policy,
        states: &WorkerStates,
    ) {
        let mut entries = self.entries.lock(segment);
        entries.retain(|entry| !entry.is_holder_of(segment, stamp.worker()));
        hand_on(&mut entries, word, segment, policy, states);
    }

    /// Hands on a lock that a holder has released.
    #[cold]
    pub(super) fn hand_on(&self, word: &LockWords, segment: usize, policy: Policy, states: &WorkerStates) {
        hand_on(&mut self.entries.lock(segment), word, segment, policy, states);
    }
}

impl Entry {
    fn is_waiter(&self) -> bool {
        matches!(self.role, Role::Waiter { .. })
    }

    fn is_waiter_of(&self, segment: usize, stamp: AttemptStamp) -> bool {
        self.is_waiter() && self.segment == segment && self.stamp.id == stamp.id
    }

    fn is_noted_at(&self, segment: usize) -> bool {
        self.role == Role::Holder && self.segment == segment
    }

    fn is_holder_of(&self, segment: usize, worker: u32) -> bool {
        self.is_noted_at(segment) && self.stamp.worker() == worker
    }
}

/// Decides on a request: true if it must wait, false if it is granted, `None` if its transaction must abort.
fn decide(
    entries: &mut Vec<Entry>,
    word: &LockWords,
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
    for entry in entries.iter().filter(|entry| request.meets_waiter(entry)) {
        let behind = entry.stamp.is_older_than(request.stamp);
        waits |= match policy {
            Policy::NoWait => false,
            // That one gets the lock first (the youngest goes first), and is younger.
            Policy::WaitDie => !behind,
            // One that sleeps wounds the holder after its nap, unless it waits for an older one itself.
            Policy::WoundWait => {
                let is_older = |(holder, exclusive): (AttemptStamp, bool)| {
                    (entry.exclusive || exclusive) && holder.is_older_than(entry.stamp)
                };
                let passes =
                    || states.is_asleep(entry.stamp.worker()) && !holders(word, states).any(is_older);
                behind && states.is_running(entry.stamp.id) && !passes()
            }
        };
    }
    if policy == Policy::WaitDie && !waits {
        for entry in entries.iter_mut().filter(|entry| request.meets_waiter(entry)) {
            let Role::Waiter { bypassed, .. } = &mut entry.role else { continue };
            if *bypassed >= BYPASSES_MAX {
                return None;
            }
            *bypassed += 1;
        }
    }
    Some(waits)
}

/// The relation of a request to a holder of the lock.
enum Met {
    /// The two do not conflict.
    Nobody,
    /// A holder that the request must wait for.
    Holder,
    /// A holder whose lock may be taken.
    Dead,
}

/// Compares a request with a holder. `None` if the request's transaction must abort.
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
        // INVARIANT 27: A transaction waits for one side of its age only, or for one that is installing.
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

/// Returns the holders that a lock's words name, each with true if it holds the lock exclusively. While the stripe's mutex
/// is held and the lock closed, no other gets the lock, and only readers that find it closed come and go; otherwise they are those of a
/// moment.
fn holders(word: &LockWords, states: &WorkerStates) -> impl Iterator<Item = (AttemptStamp, bool)> {
    word.holders().workers().filter_map(|(worker, exclusive)| {
        let stamp = states.stamp(worker);
        // If the worker still holds the lock, the stamp is that of the holding transaction.
        word.is_held_by(worker).then_some((stamp, exclusive))
    })
}

/// Makes a transaction a holder. Nobody may be in its way.
fn give(entries: &mut Vec<Entry>, word: &LockWords, request: LockRequest) {
    let LockRequest { segment, stamp, exclusive, .. } = request;
    if exclusive {
        entries.retain(|entry| !entry.is_holder_of(segment, stamp.worker()));
        word.grant_exclusive(stamp.worker());
    } else if !word.grant_shared(stamp.worker()) {
        entries.push(Entry { segment, stamp, exclusive, role: Role::Holder });
    }
}

/// Grants a lock to the next ones in its queue, as long as they do not conflict. If the queue is then empty, opens
/// the lock, so that everybody may take it by its word again.
fn hand_on(
    entries: &mut Vec<Entry>,
    word: &LockWords,
    segment: usize,
    policy: Policy,
    states: &WorkerStates,
) {
    loop {
        // The next one's position and entry.
        let mut next: Option<(usize, Entry)> = None;
        // The next one that is asleep.
        let mut sleeper: Option<Entry> = None;
        for (at, entry) in entries.iter().enumerate() {
            if entry.segment != segment {
                continue;
            }
            let Role::Waiter { upgrade, .. } = entry.role else { continue };
            // A transaction that was wounded while it waited is about to leave.
            if policy == Policy::WoundWait && !states.is_running(entry.stamp.id) {
                continue;
            }
            let is_first = |other: Entry| match policy {
                _ if upgrade => true,
                _ if matches!(other.role, Role::Waiter { upgrade: true, .. }) => false,
                Policy::WoundWait => entry.stamp.is_older_than(other.stamp),
                Policy::NoWait | Policy::WaitDie => other.stamp.is_older_than(entry.stamp),
            };
            if states.is_asleep(entry.stamp.worker()) {
                if sleeper.is_none_or(is_first) {
                    sleeper = Some(*entry);
                }
            } else if next.is_none_or(|(_, other)| is_first(other)) {
                next = Some((at, *entry));
            }
        }
        let Some((at, entry)) = next else {
            if let Some(sleeper) = sleeper {
                states.call(sleeper.stamp.worker());
            }
            break;
        };
        let worker = entry.stamp.worker();
        let noted =
            entries.iter().filter(|entry| entry.is_noted_at(segment)).map(|entry| (entry.stamp, false));
        let in_the_way = holders(word, states)
            .chain(noted)
            .any(|(holder, exclusive)| holder.worker() != worker && (entry.exclusive || exclusive));
        if in_the_way {
            if let Some(upgrade) =
                sleeper.filter(|sleeper| matches!(sleeper.role, Role::Waiter { upgrade: true, .. }))
            {
                // It may itself be in the way.
                states.call(upgrade.stamp.worker());
            }
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::worker_states::SpinPolicy;
    use hotrow_core::WaitLimit;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_wait_that_panics_leaves_the_queue_and_gives_back_what_it_was_granted() {
        for (policy, exclusive, is_granted) in [
            (Policy::WoundWait, true, false),
            (Policy::WoundWait, true, true),
            (Policy::WaitDie, true, true),
            (Policy::WaitDie, false, true),
        ] {
            let (queues, states) = (Queues::new(), WorkerStates::new(SpinPolicy::FAIR));
            let word = LockWords::default();
            let segment = 64;
            // The one that waits is younger where younger ones wait.
            let ages = if policy == Policy::WoundWait { [1, 2] } else { [2, 1] };
            let [holder, waiter] = [0, 1]
                .map(|worker: u32| states.enter_next(AttemptStamp::default(), worker, ages[worker as usize]));
            assert!(word.try_exclusive(holder.worker(), false).is_ok());
            let release = || {
                let _ = word.release_exclusive(holder.worker());
                queues.hand_on(&word, segment, policy, &states);
            };
            let wait_max = || -> WaitLimit {
                if is_granted {
                    release();
                }
                panic!("planned")
            };
            let request = LockRequest { segment, stamp: waiter, exclusive, shares: false };
            let wait = AssertUnwindSafe(|| queues.acquire(wait_max, &word, request, policy, &states));
            catch_unwind(wait).unwrap_err();
            if !is_granted {
                release();
            }
            assert!(word.try_exclusive(holder.worker(), false).is_ok(), "{policy:?}, granted: {is_granted}");
        }
    }
}
