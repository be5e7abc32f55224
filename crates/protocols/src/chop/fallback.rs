//! Locks of the fallback from regions: one for all, or one for each partition (dbx-tc §3.3).
//!
//! Without them the fallback excludes by the locks of its segments exactly those that meet it. These locks exclude more: they show what
//! the paper's choices cost. dbx-tc has a partition for each warehouse; here one has segments of all tables.
//!
//! # Algorithm
//!
//! A *partition* is a set of segments, by the hash of their ranks; with one lock for all there is one partition. A commit by locks takes
//! those of the partitions of all that it has read or writes, in ascending order, before it takes the locks of segments, and gives them back at
//! the end. A region looks at those of its own partitions: if one is taken, it aborts itself, and waits until it is free; if one is taken
//! later, the processor aborts it.
//!
//! Isolation does not rest on them, so who validates without a region need not look at them.

use super::{Chop, ChopLocal};
use crate::host::Host;
use crate::latch::{self, Latch};
use crossbeam_utils::CachePadded;
use hotrow_core::region::LOCKED;
use hotrow_core::{Attempt, Flags};
use hotrow_sync::profile::{name_slice, waiting};
use hotrow_sync::region;
use hotrow_sync::spin::Spin;

/// The locks that a commit by locks takes besides those of its segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FallbackLocks {
    /// None.
    #[default]
    Segments,
    /// Those of its partitions.
    Partitions,
    /// One for all.
    Global,
}

/// The name of a wait in a profile.
const WAIT: &str = "the lock of a partition";

/// The number of partitions.
const PARTITIONS: usize = 64;

impl FallbackLocks {
    const NAMED: [(&'static str, Self); 2] = [("partitions", Self::Partitions), ("global", Self::Global)];

    /// Splits a name into that of a protocol and its locks.
    pub(super) fn split(name: &str) -> Option<(&str, Self)> {
        let Some((protocol, locks)) = name.split_once('+') else { return Some((name, Self::Segments)) };
        let (_, locks) = Self::NAMED.into_iter().find(|(name, _)| *name == locks)?;
        Some((protocol, locks))
    }

    /// The end of a protocol's name.
    pub(super) fn suffix(self) -> String {
        let named = Self::NAMED.into_iter().find(|(_, locks)| *locks == self);
        named.map_or(String::new(), |(name, _)| format!("+{name}"))
    }
}

/// The locks of an engine's partitions.
#[derive(Debug)]
pub(super) struct Partitions {
    locks: Box<[CachePadded<Latch>]>,
}

impl Partitions {
    pub(super) fn new(locks: FallbackLocks) -> Option<Self> {
        let count = match locks {
            FallbackLocks::Segments => return None,
            FallbackLocks::Partitions => PARTITIONS,
            FallbackLocks::Global => 1,
        };
        let locks: Box<[CachePadded<Latch>]> = (0..count).map(|_| CachePadded::default()).collect();
        name_slice(&locks, || String::from("the locks of partitions"));
        Some(Self { locks })
    }

    /// Notes the partitions of all that an attempt has read or writes, in ascending order.
    pub(super) fn note<H: Host<Chop>>(&self, attempt: &mut Attempt<H>) {
        let mut noted = std::mem::take(&mut H::local_mut(&mut attempt.local).partitions);
        noted.clear();
        let touched =
            attempt.items.iter().filter(|item| item.is_any(&[Flags::READ, Flags::PREDICATE, Flags::WRITE]));
        noted.extend(touched.map(|item| self.of(item.rank())));
        noted.extend(attempt.reads.iter().map(|read| self.of(read.segment().rank())));
        noted.sort_unstable();
        noted.dedup();
        H::local_mut(&mut attempt.local).partitions = noted;
    }

    fn of(&self, rank: u64) -> u32 {
        latch::number_of(rank, self.locks.len())
    }

    /// Waits until the noted partitions are free, each at some moment.
    pub(super) fn wait_until_free(&self, local: &ChopLocal) {
        for lock in local.partitions.iter().map(|lock| &self.locks[*lock as usize]) {
            if lock.is_locked() {
                let _waiting = waiting(WAIT, 0);
                let mut spin = Spin::new();
                while lock.is_locked() {
                    spin.turn_or_yield();
                }
            }
        }
    }

    /// Aborts the region that the thread is in if one of the noted partitions is taken.
    pub(super) fn check_in_region(&self, local: &ChopLocal) {
        if local.partitions.iter().any(|lock| self.locks[*lock as usize].is_locked()) {
            region::abort::<LOCKED>();
        }
    }

    /// Takes the locks of the noted partitions.
    pub(super) fn lock(&self, local: &mut ChopLocal) {
        for lock in &local.partitions {
            let lock = &self.locks[*lock as usize];
            if !lock.try_lock() {
                let _waiting = waiting(WAIT, 0);
                lock.lock();
            }
        }
        local.has_partitions = true;
    }

    /// Gives the locks of the noted partitions back, if the attempt has them.
    pub(super) fn unlock(&self, local: &mut ChopLocal) {
        if std::mem::take(&mut local.has_partitions) {
            for lock in &local.partitions {
                self.locks[*lock as usize].unlock();
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_end_with_the_locks() {
        for name in ["dbx", "dbx+partitions", "chop-htm+global"] {
            let (protocol, locks) = FallbackLocks::split(name).unwrap();
            assert_eq!(format!("{protocol}{}", locks.suffix()), name);
        }
        assert_eq!(FallbackLocks::split("dbx+rows"), None);
        assert_eq!(FallbackLocks::split("dbx+global+global"), None);
    }

    #[test]
    fn a_lock_for_all_is_the_same_for_all() {
        let one = Partitions::new(FallbackLocks::Global).unwrap();
        assert!((0..100).all(|rank| one.of(rank) == 0));
        let many = Partitions::new(FallbackLocks::Partitions).unwrap();
        let used: std::collections::BTreeSet<u32> = (0..1_000).map(|rank| many.of(rank)).collect();
        assert!(used.len() > 50 && used.iter().all(|partition| *partition < PARTITIONS as u32));
        assert!(Partitions::new(FallbackLocks::Segments).is_none());
    }
}
