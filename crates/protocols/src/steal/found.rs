//! The members of deadlocks that were found, until each has reported its part.
//!
//! The worker that finds a cycle notes its members before it wounds the victim. Each member looks for notes of itself when its wait
//! is over, and names the key for which it has waited ([`hotrow_core::Attempt::report_deadlock`]).

use crate::worker_states::{AttemptId, AttemptStamp};
use hotrow_core::DeadlockPart;
use hotrow_sync::atomic::instrument::{AtomicUsize, Ordering};
use hotrow_sync::{Mutex, lock};
use std::collections::VecDeque;

/// Number of parts that are kept for members that have not reported them. Those of false cycles are never taken.
const PARTS_MAX: usize = 256;
/// Number of looks since the last deadlock after which no more parts are expected. While there are some, each look takes a latch.
const LOOKS_MAX: u32 = 4_096;
/// Number of victims that are remembered, so that a deadlock is noted once although several members have found it.
const VICTIMS_MAX: usize = 32;

/// The deadlocks of an engine that were found.
#[derive(Debug, Default)]
pub(super) struct FoundDeadlocks {
    /// Number of parts that nobody has taken.
    pending: AtomicUsize,
    state: Mutex<Found>,
}

#[derive(Debug, Default)]
struct Found {
    count: u64,
    /// Number of looks since the last one was noted.
    looks: u32,
    victims: VecDeque<AttemptId>,
    parts: VecDeque<(AttemptId, DeadlockPart)>,
}

impl FoundDeadlocks {
    /// Notes a deadlock, in which each member waits for the next one, unless it was noted before.
    #[cold]
    pub(super) fn note(&self, members: &[AttemptStamp], victim: usize) {
        let mut found = lock(&self.state);
        if found.victims.contains(&members[victim].id) {
            return;
        }
        if found.victims.len() >= VICTIMS_MAX {
            found.victims.pop_front();
        }
        found.victims.push_back(members[victim].id);
        let number = found.count;
        found.count += 1;
        found.looks = 0;
        let count = members.len() as u32;
        for (position, member) in (0..).zip(members) {
            if found.parts.len() >= PARTS_MAX {
                found.parts.pop_front();
            }
            let part = DeadlockPart { number, members: count, position, victim: victim as u32 };
            found.parts.push_back((member.id, part));
        }
        // Release: pairs with the load in `take_parts`.
        self.pending.store(found.parts.len(), Ordering::Release);
    }

    /// Takes the parts of an attempt, whose wait is over.
    pub(super) fn take_parts(&self, stamp: AttemptStamp) -> Vec<DeadlockPart> {
        // Acquire: an attempt whose wait ended after a victim was wounded has seen the wound's or a lock's store, and so sees this
        // one, which came before.
        if self.pending.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let mut found = lock(&self.state);
        let is_mine = |id: AttemptId| id.worker() == stamp.worker();
        // Those of earlier attempts of the worker can no longer be reported.
        let mine = found.parts.iter().filter(|(id, _)| *id == stamp.id).map(|(_, part)| *part).collect();
        found.looks += 1;
        let is_late = found.looks >= LOOKS_MAX;
        found.parts.retain(|(id, _)| !is_mine(*id) && !is_late);
        self.pending.store(found.parts.len(), Ordering::Release);
        mine
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::worker_states::{SpinPolicy, WorkerStates};

    #[test]
    fn each_member_takes_its_part_once_and_late_parts_are_dropped() {
        let states = WorkerStates::new(SpinPolicy::FAIR);
        let [one, other, third] =
            [0, 1, 2].map(|worker| states.enter_next(AttemptStamp::default(), worker, 1));
        let found = FoundDeadlocks::default();
        assert!(found.take_parts(one).is_empty());
        found.note(&[one, other], 1);
        // Another member has found it, too.
        found.note(&[other, one], 0);
        let part = |position| DeadlockPart { number: 0, members: 2, position, victim: 1 };
        assert_eq!(found.take_parts(other), [part(1)]);
        assert!(found.take_parts(other).is_empty());
        // An earlier attempt's part is of no use to a later one.
        assert!(found.take_parts(states.enter_next(one, 0, 1)).is_empty());
        assert_eq!(found.pending.load(Ordering::Relaxed), 0);
        found.note(&[one, third], 1);
        (1..LOOKS_MAX).for_each(|_| assert!(found.take_parts(other).is_empty()));
        assert_eq!(found.pending.load(Ordering::Relaxed), 2);
        assert!(found.take_parts(other).is_empty());
        assert_eq!(found.pending.load(Ordering::Relaxed), 0);
        assert!(found.take_parts(third).is_empty());
    }
}
