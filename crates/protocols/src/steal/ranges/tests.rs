//! Locks of ranges. There are few of them here, so that ranges often share a lock.

use super::*;
use crate::worker_states::SpinPolicy;
use RangeUse::{Change, Scan};
use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_sync::random::Random;
use hotrow_sync::thread;

/// An engine's locks, and attempts that take them.
struct Scene {
    ranges: Ranges,
    queues: Queues,
    states: WorkerStates,
}

impl Scene {
    fn new(workers: u32) -> Self {
        Self {
            ranges: Ranges::new(),
            queues: Queues::of_workers(workers),
            states: WorkerStates::new(SpinPolicy::FAIR),
        }
    }

    fn tries(&self, worker: u32, held: &HeldRanges, range: RangeId, how: RangeUse) -> bool {
        self.ranges.try_lock(&self.queues, worker, held, range, how)
    }

    /// Takes the lock, and waits if need be. False for a victim.
    fn locks(&self, stamp: AttemptStamp, held: &HeldRanges, range: RangeId, how: RangeUse) -> bool {
        let worker = stamp.worker();
        if self.tries(worker, held, range, how) {
            return true;
        }
        let holds_it = held.holds(range, Scan) || held.holds(range, Change);
        let locker = Locker { stamp, holds: !held.is_empty(), wait_max: || WaitLimit::NONE };
        let got = self.ranges.wait(&self.queues, &self.states, holds_it, (range, how), locker);
        if got.is_ok() {
            self.ranges.note(&self.queues, worker, held, range, how);
        }
        got.is_ok()
    }

    fn ends(&self, stamp: AttemptStamp, held: &HeldRanges) {
        self.queues.nodes.forget_shared(stamp.worker());
        self.ranges.release(&self.queues, &self.states, stamp.worker(), held);
        self.states.end(stamp);
    }
}

fn range(number: usize) -> RangeId {
    RangeId::new(0, number as u32)
}

#[test]
fn ranges_that_fall_together_are_locked_together() {
    let scene = Scene::new(2);
    let (one, two) = (HeldRanges::default(), HeldRanges::default());
    assert!(one.is_empty() && !one.holds(range(0), Scan));
    assert!(scene.tries(0, &one, range(1), Scan));
    assert!(
        one.holds(range(1 + STRIPES), Scan) && !one.holds(range(1), Change) && !one.holds(range(2), Scan)
    );
    assert!(!scene.tries(1, &two, range(1 + STRIPES), Change));
    assert!(scene.tries(1, &two, range(2), Change) && !scene.tries(0, &one, range(2), Scan));
    // Both ways at once, exclusively, and released once.
    assert!(scene.tries(0, &one, range(1 + STRIPES), Change) && one.holds(range(1), Change));
    assert!(!scene.tries(1, &two, range(1), Scan));
    assert!(!scene.ranges.release(&scene.queues, &scene.states, 0, &one), "nobody waits");
    assert!(one.is_empty() && !one.holds(range(1), Scan));
    assert!(scene.tries(1, &two, range(1), Scan) && scene.tries(1, &two, range(1), Change));
}

#[test]
fn holders_of_both_kinds_are_found_by_those_that_look_for_cycles() {
    for how in [Scan, Change] {
        let scene = Scene::new(2);
        let held = HeldRanges::default();
        assert!(scene.tries(1, &held, range(1), how) && scene.tries(1, &held, range(3), how));
        let found = |stripe: usize| {
            let address = Ranges::address(scene.ranges.lock(stripe));
            scene.queues.nodes.readers_that_wait(address).collect::<Vec<_>>()
        };
        assert_eq!(found(1), [], "it does not wait");
        scene.queues.nodes.open(1, 8, 0).unwrap();
        assert_eq!([found(0), found(1), found(2), found(3)], [vec![], vec![1], vec![], vec![1]]);
    }
}

/// Each thread takes a few ranges, in any order, to scan, to change, or both. No thread may change a range while
/// another one scans it.
#[test]
fn threads_that_lock_ranges_in_any_order_all_get_through() {
    const THREADS: u32 = 4;
    const TRANSACTIONS: u64 = 300;
    let scene = Scene::new(THREADS);
    // By stripe: the number of scanners, and of changers.
    let inside: [[AtomicU64; 2]; STRIPES] = Default::default();
    let run = |worker: u32| {
        let mut random = Random::stream(23, worker.into());
        let (mut stamp, held) = (AttemptStamp::default(), HeldRanges::default());
        for number in 0..TRANSACTIONS {
            let wishes = [(); 4]
                .map(|()| (random.below(3 * STRIPES as u64) as usize, random.chance(0.5)))
                .map(|(number, change)| (range(number), if change { Change } else { Scan }));
            let began_ns = number * u64::from(THREADS) + u64::from(worker) + 1;
            loop {
                stamp = scene.states.enter_next(stamp, worker, began_ns);
                let mut entered = Vec::new();
                let all = wishes.iter().all(|(range, how)| {
                    let is_new = !held.holds(*range, *how);
                    let got = scene.locks(stamp, &held, *range, *how);
                    if got && is_new {
                        let place = &inside[range.stripe(STRIPES)];
                        let (own, other) = if *how == Scan { (0, 1) } else { (1, 0) };
                        place[own].fetch_add(1, Ordering::SeqCst);
                        entered.push((range.stripe(STRIPES), own));
                        let others = place[other].load(Ordering::SeqCst);
                        let mine = u64::from(entered.contains(&(range.stripe(STRIPES), other)));
                        assert_eq!(others, mine, "somebody scans what another one changes");
                        if mine == 1 {
                            assert_eq!(place[own].load(Ordering::SeqCst), 1, "not alone in both ways");
                        }
                    }
                    if random.chance(0.2) {
                        thread::yield_now();
                    }
                    got
                });
                for (stripe, way) in entered {
                    inside[stripe][way].fetch_sub(1, Ordering::SeqCst);
                }
                scene.ends(stamp, &held);
                if all {
                    break;
                }
            }
        }
    };
    thread::scope(|scope| (0..THREADS).for_each(|worker| _ = scope.spawn(move || run(worker))));
    for how in [Scan, Change] {
        let held = HeldRanges::default();
        assert!((0..STRIPES).all(|number| scene.tries(0, &held, range(number), how)));
        scene.ranges.release(&scene.queues, &scene.states, 0, &held);
    }
    for worker in 0..THREADS {
        let node = || scene.queues.nodes.open(worker, 0, 0);
        assert!(node().is_some() && node().is_some(), "a node is in use still");
    }
}
