//! A bounded history of deadlocks, for protocols that resolve them by aborting a victim.
//!
//! The worker that finds a cycle knows the other members only by their numbers: a segment's key is known to the attempt that has its
//! item. So each member reports its own part, when its wait is over ([`Attempt::report_deadlock`]). A cycle may be false, because its
//! parts were read at different moments; the part of a member that had ended meanwhile stays unknown.

use crate::kernel::attempt::Attempt;
use crate::kernel::engine::Engine;
use crate::kernel::item::ItemId;
use crate::kernel::loss::DeadlockPart;
use crate::kernel::object::Object;
use crate::kernel::protocol::Protocol;
use crate::memory::identity::ObjectMeta;
use crate::memory::identity::Origin;
use crate::memory::pin::Pin;
use crate::memory::structure::Observed;
use crate::memory::users_code::contained;
use hotrow_sync::{Mutex, lock};
use std::collections::VecDeque;
use std::fmt;

/// Number of deadlocks that an engine keeps: the last ones.
const DEADLOCKS_MAX: usize = 64;

/// Transactions that waited for each other, until the victim was aborted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock {
    /// Its number, from 0: the engine's deadlocks are counted.
    pub number: u64,
    /// The waits. Each transaction waits for the next one, and the last one for the first.
    pub waits: Vec<DeadlockWait>,
}

/// The wait of one transaction in a deadlock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadlockWait {
    /// The transaction. `None` if the engine does not [report both sides](crate::Engine::report_both_sides), or its wait is not over.
    pub waiter: Option<Origin>,
    /// The object's or table's name, and the key for which it waits, or the bucket or leaf. Empty if its wait is not over, or was
    /// over before the deadlock was found.
    pub object: String,
    /// The key within the object.
    pub key: String,
    /// True for the transaction that was aborted.
    pub is_victim: bool,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |at: usize| match self.waits[at].waiter {
            Some(waiter) => waiter.to_string(),
            None => format!("transaction {}", at + 1),
        };
        for (at, wait) in self.waits.iter().enumerate() {
            write!(f, "{} waited for {} over ", named(at), named((at + 1) % self.waits.len()))?;
            match wait.object.as_str() {
                "" => f.write_str("an unknown key; ")?,
                object => write!(f, "{object}[{}]; ", wait.key)?,
            }
        }
        let victim = self.waits.iter().position(|wait| wait.is_victim);
        write!(f, "{} was aborted", victim.map_or_else(|| String::from("nobody"), named))
    }
}

/// The last deadlocks of an engine.
#[derive(Debug, Default)]
pub(crate) struct Deadlocks {
    last: Mutex<VecDeque<Deadlock>>,
}

impl Deadlocks {
    /// The last deadlocks, the newest first, at most `limit`.
    pub(crate) fn last(&self, limit: usize) -> Vec<Deadlock> {
        lock(&self.last).iter().rev().take(limit).cloned().collect()
    }

    fn report(&self, part: DeadlockPart, waiter: Option<Origin>, object: String, key: String) {
        let mut last = lock(&self.last);
        // In the order of their numbers. The parts of several deadlocks may be reported by turns.
        let mut at = last.partition_point(|deadlock| deadlock.number < part.number);
        if last.get(at).is_none_or(|deadlock| deadlock.number != part.number) {
            let waits = (0..part.members)
                .map(|member| DeadlockWait { is_victim: member == part.victim, ..DeadlockWait::default() });
            last.insert(at, Deadlock { number: part.number, waits: waits.collect() });
            if last.len() > DEADLOCKS_MAX {
                last.pop_front();
                // It may have been that one.
                let Some(later) = at.checked_sub(1) else { return };
                at = later;
            }
        }
        if let Some(wait) = last[at].waits.get_mut(part.position as usize) {
            *wait = DeadlockWait { waiter, object, key, is_victim: wait.is_victim };
        }
    }
}

impl<P: Protocol> Attempt<P> {
    /// Reports the attempt's part in a deadlock, for the [history](crate::Engine::deadlocks). Its wait for the item's segment is over.
    /// Has no effect in a stolen operation, which waits for nothing.
    #[cold]
    pub fn report_deadlock(&self, part: DeadlockPart, item: ItemId) {
        let touched = &self.items.get(item).touched;
        let (object, segment) = (touched.object(), touched.segment());
        // SAFETY: the segment is its object's, and in memory until the attempt ends.
        self.report_deadlock_over(part, object.meta(), || unsafe { object.describe(segment) });
    }

    /// As [`report_deadlock`](Self::report_deadlock), of a wait for a bucket or leaf.
    ///
    /// # Safety
    ///
    /// The object has observed the node in this attempt.
    #[cold]
    pub(crate) unsafe fn report_range_deadlock(
        &self,
        part: DeadlockPart,
        object: &dyn Object<P>,
        observed: Observed,
    ) {
        let pin: &Pin = self.pin();
        // SAFETY: the caller's promise.
        let describe = || unsafe { object.describe_structure(observed.node, pin) };
        self.report_deadlock_over(part, object.meta(), describe);
    }

    fn report_deadlock_over(&self, part: DeadlockPart, meta: &ObjectMeta, describe: impl FnOnce() -> String) {
        let Some(slot) = self.slot() else { return };
        let key = contained(describe).unwrap_or_else(|| String::from("a key that cannot be shown"));
        let waiter = slot
            .features
            .origins
            .is_on()
            .then(|| slot.features.origins.origin(slot.features.activity.read().0))
            .flatten();
        slot.features.deadlocks.report(part, waiter, meta.name().to_owned(), key);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn report(deadlocks: &Deadlocks, number: u64, position: u32) {
        let part = DeadlockPart { number, members: 2, position, victim: 1 };
        let name = ["pay", "audit"][position as usize];
        deadlocks.report(part, Some(Origin::Name(name)), "accounts".into(), position.to_string());
    }

    #[test]
    fn parts_that_come_by_turns_find_their_deadlock() {
        let deadlocks = Deadlocks::default();
        for (number, position) in [(1, 0), (0, 1), (1, 1), (0, 0)] {
            report(&deadlocks, number, position);
        }
        let last = deadlocks.last(10);
        assert_eq!(last.iter().map(|deadlock| deadlock.number).collect::<Vec<_>>(), [1, 0]);
        let text =
            "pay waited for audit over accounts[0]; audit waited for pay over accounts[1]; audit was aborted";
        for deadlock in last {
            assert_eq!(deadlock.to_string(), text);
        }
    }

    #[test]
    fn the_last_deadlocks_are_kept() {
        let deadlocks = Deadlocks::default();
        (0..200).for_each(|number| report(&deadlocks, number, 0));
        // The second part of one that has gone.
        report(&deadlocks, 3, 1);
        let last = deadlocks.last(1_000);
        assert_eq!(last.len(), DEADLOCKS_MAX);
        assert_eq!((last[0].number, last[DEADLOCKS_MAX - 1].number), (199, 200 - DEADLOCKS_MAX as u64));
        let text = "pay waited for transaction 2 over accounts[0]; \
            transaction 2 waited for pay over an unknown key; transaction 2 was aborted";
        assert_eq!(last[0].to_string(), text);
        assert_eq!(deadlocks.last(1).len(), 1);
    }
}

impl<P: Protocol> Engine<P> {
    /// The last deadlocks, the newest first, at most `limit`; the engine keeps 64. Who waited for whom, and on which key; the
    /// transactions have names if the engine [reports both sides](Self::report_both_sides).
    ///
    /// Only protocols under which a transaction waits for any other have deadlocks: `2pl-mcs` and `steal`. Under the others
    /// there are none, and the list is empty.
    pub fn deadlocks(&self, limit: usize) -> Vec<Deadlock> {
        self.shared.features.deadlocks.last(limit)
    }
}
