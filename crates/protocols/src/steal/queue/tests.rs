//! Queues and cycles, stepped on one thread; then threads.

use super::super::lock::QueueLock;
use super::*;
use crate::worker_states::SpinPolicy;
use hotrow_sync::atomic::AtomicU64;
use hotrow_sync::random::Random;
use hotrow_sync::thread;

/// Locks and the attempts that want them.
struct Scene {
    words: [QueueLock; 3],
    queues: Queues,
    states: WorkerStates,
}

impl Scene {
    fn new(workers: u32) -> Self {
        Self {
            words: Default::default(),
            queues: Queues::of_workers(workers),
            states: WorkerStates::new(SpinPolicy::FAIR),
        }
    }

    /// Begins a worker's first attempt.
    fn begin(&self, worker: u32, began_ns: u64) -> AttemptStamp {
        self.states.enter_next(AttemptStamp::default(), worker, began_ns)
    }

    /// True if all nodes of the first workers are free.
    fn nodes_are_free(&self, workers: u32) -> bool {
        let can_be_had = |worker| self.queues.nodes.open(worker, 0, 0).is_some();
        (0..workers).all(|worker| can_be_had(worker) && can_be_had(worker))
    }

    fn request(stamp: AttemptStamp, lock: usize, exclusive: bool) -> LockRequest {
        LockRequest { address: 16 * (lock + 1), stamp, exclusive, holds: true }
    }

    fn queue(&self, stamp: AttemptStamp, lock: usize, exclusive: bool) -> NodeId {
        match self.queues.try_lock(&self.words[lock], Self::request(stamp, lock, exclusive)) {
            Tried::Queued(id) => id,
            other => panic!("{other:?}"),
        }
    }

    fn acquires(&self, id: NodeId, lock: usize, exclusive: bool) -> bool {
        let acquired = self.queues.check_acquired(&self.words[lock], id, exclusive, &self.states);
        if acquired {
            self.queues.nodes.wait_is_over(id.worker());
        }
        acquired
    }

    fn share(&self, stamp: AttemptStamp, lock: usize) {
        assert!(self.queues.try_share(&self.words[lock], &self.states));
        self.queues.nodes.note_shared(stamp.worker(), 16 * (lock + 1));
    }

    fn takes(&self, stamp: AttemptStamp, lock: usize) {
        assert!(self.words[lock].try_exclusive(stamp.worker(), false));
    }

    /// Queues as the head, for a lock that `blocked_by` holds.
    fn queue_for(&self, stamp: AttemptStamp, lock: usize, exclusive: bool, blocked_by: BlockedBy) -> NodeId {
        let id = self.queue(stamp, lock, exclusive);
        self.queues.nodes.of(id).set_blocked_by(blocked_by);
        id
    }

    fn is_victim(&self, stamp: AttemptStamp) -> bool {
        self.queues.is_victim(stamp, 16, &self.states)
    }

    /// Returns the workers of these attempts that were chosen as victims.
    fn victims(&self, stamps: &[AttemptStamp]) -> Vec<u32> {
        let wounded = stamps.iter().filter(|stamp| self.states.is_wounded(**stamp));
        wounded.map(|stamp| stamp.worker()).collect()
    }
}

#[test]
fn readers_follow_each_other_and_abandoned_nodes_are_passed() {
    let scene = Scene::new(6);
    let [holder, first, second, third, fourth, last] =
        [0, 1, 2, 3, 4, 5].map(|worker| scene.begin(worker, 1));
    scene.takes(holder, 0);
    let first = scene.queue(first, 0, true);
    let second = scene.queue(second, 0, false);
    let third = scene.queue(third, 0, true);
    let fourth = scene.queue(fourth, 0, false);
    let last = scene.queue(last, 0, true);
    assert!(scene.queues.is_head(first) && !scene.queues.is_head(second));
    // The first is the head; the second is not.
    scene.queues.abandon(&scene.words[0], first, &scene.states);
    scene.queues.abandon(&scene.words[0], third, &scene.states);
    assert!(scene.queues.is_head(second) && !scene.queues.is_head(fourth));
    assert!(!scene.acquires(second, 0, false));
    assert_eq!(scene.words[0].release_exclusive(), Released::Awaited(0));
    assert!(scene.acquires(second, 0, false) && scene.acquires(fourth, 0, false));
    assert!(!scene.acquires(last, 0, true));
    assert!(scene.words[0].await_readers(last.worker()));
    assert_eq!(scene.words[0].release_shared(), Released::NoWaiters);
    assert_eq!(scene.words[0].release_shared(), Released::Awaited(last.worker()));
    assert!(scene.acquires(last, 0, true));
    assert_eq!(scene.words[0].release_exclusive(), Released::NoWaiters);
    assert!(scene.words[0].tail().is_none() && scene.nodes_are_free(6));
}

#[test]
fn a_queue_that_all_have_abandoned_is_empty() {
    let scene = Scene::new(3);
    let [holder, first, second] = [0, 1, 2].map(|worker| scene.begin(worker, 1));
    scene.takes(holder, 0);
    let first = scene.queue(first, 0, true);
    let second = scene.queue(second, 0, true);
    scene.queues.abandon(&scene.words[0], second, &scene.states);
    assert_eq!(scene.words[0].tail(), Some(second));
    scene.queues.abandon(&scene.words[0], first, &scene.states);
    assert!(scene.words[0].tail().is_none() && scene.nodes_are_free(3));
    assert_eq!(scene.words[0].release_exclusive(), Released::NoWaiters);
}

#[test]
fn a_worker_whose_nodes_are_all_in_queues_does_not_wait() {
    let scene = Scene::new(3);
    let [holder, head, many] = [0, 1, 2].map(|worker| scene.begin(worker, 1));
    for lock in 0..2 {
        scene.takes(holder, lock);
        scene.queue(head, lock, true);
        let id = scene.queue(many, lock, true);
        scene.queues.abandon(&scene.words[lock], id, &scene.states);
    }
    scene.takes(holder, 2);
    let refused = scene.queues.acquire(
        || WaitLimit::NONE,
        &scene.words[2],
        Scene::request(many, 2, true),
        &scene.states,
    );
    assert_eq!(refused, Err(Refused::Unavailable));
}

#[test]
fn of_two_that_wait_for_each_other_the_younger_one_dies_whoever_looks() {
    for looks in [0, 1] {
        let scene = Scene::new(2);
        let stamps = [scene.begin(0, 2), scene.begin(1, 1)];
        let [younger, older] = stamps;
        scene.takes(younger, 0);
        scene.share(older, 1);
        scene.queue_for(younger, 1, true, BlockedBy::Readers);
        assert!(!scene.is_victim(younger), "the other one does not wait yet");
        scene.queue_for(older, 0, false, BlockedBy::Attempt(younger.id));
        assert_eq!(scene.is_victim(stamps[looks]), looks == 0);
        assert_eq!(scene.victims(&stamps), if looks == 0 { vec![] } else { vec![0] });
        assert!(!scene.is_victim(older), "the victim is out of it");
    }
}

#[test]
fn a_cycle_through_a_queue_costs_one_that_holds_a_lock() {
    let scene = Scene::new(4);
    let stamps = [0, 1, 2, 3].map(|worker| scene.begin(worker, worker.into()));
    let [oldest, old, young, youngest] = stamps;
    scene.takes(oldest, 0);
    scene.takes(old, 1);
    scene.queue_for(young, 0, true, BlockedBy::Attempt(oldest.id));
    let ahead = scene.queue(youngest, 0, true);
    scene.queue(old, 0, true);
    scene.queues.abandon(&scene.words[0], ahead, &scene.states);
    scene.queue_for(oldest, 1, true, BlockedBy::Attempt(old.id));
    assert!(!scene.is_victim(oldest));
    assert_eq!(scene.victims(&stamps), [old.worker()], "those in between would be no help");
}

#[test]
fn a_writer_between_readers_dies_so_that_they_share_the_lock() {
    let scene = Scene::new(3);
    let stamps = [0, 1, 2].map(|worker| scene.begin(worker, worker.into()));
    let [holder, reader, writer] = stamps;
    scene.share(holder, 0);
    scene.takes(reader, 1);
    scene.queue_for(writer, 0, true, BlockedBy::Readers);
    scene.queue(reader, 0, false);
    scene.queue_for(holder, 1, true, BlockedBy::Attempt(reader.id));
    assert!(!scene.is_victim(holder));
    assert_eq!(scene.victims(&stamps), [writer.worker()]);
}

#[test]
fn a_search_goes_on_from_the_node_of_one_that_has_given_up_in_the_midst_of_a_queue() {
    let scene = Scene::new(3);
    let stamps = [0, 1, 2].map(|worker| scene.begin(worker, worker.into()));
    let [holder, ahead, behind] = stamps;
    scene.takes(holder, 0);
    let waits_for = |node| {
        let mut nodes = Vec::new();
        scene.queues.waited_for(node, &scene.states, |waiting| nodes.push(waiting.node));
        nodes
    };
    let head = scene.begin(3, 3);
    let head = scene.queue_for(head, 0, true, BlockedBy::Attempt(holder.id));
    let ahead_node = scene.queue(ahead, 0, false);
    let behind = scene.queue(behind, 0, false);
    assert_eq!(waits_for(behind), [ahead_node]);
    // Here the search has come to the worker ahead, which now gives up and begins again.
    scene.queues.nodes.wait_is_over(ahead.worker());
    scene.queues.abandon(&scene.words[0], ahead_node, &scene.states);
    scene.states.end(ahead);
    scene.states.enter_next(ahead, ahead.worker(), 1);
    assert_eq!((waits_for(ahead_node), waits_for(behind)), (vec![head], vec![head]));
}

#[test]
fn a_reader_behind_a_reader_does_not_make_that_one_a_victim() {
    let scene = Scene::new(3);
    let stamps = [scene.begin(0, 2), scene.begin(1, 3), scene.begin(2, 1)];
    let [holder, youngest, oldest] = stamps;
    scene.takes(holder, 0);
    scene.takes(oldest, 1);
    scene.queue_for(youngest, 0, false, BlockedBy::Attempt(holder.id));
    scene.queue(oldest, 0, false);
    scene.queue_for(holder, 1, false, BlockedBy::Attempt(oldest.id));
    assert!(scene.is_victim(holder), "the younger of the two that hold something");
    assert_eq!(scene.victims(&stamps), []);
}

#[test]
fn of_two_upgrades_the_younger_one_dies_though_it_came_first() {
    let scene = Scene::new(2);
    let (older, younger) = (scene.begin(0, 1), scene.begin(1, 2));
    scene.share(older, 0);
    scene.share(younger, 0);
    let upgrade = |stamp| {
        let request = Scene::request(stamp, 0, true);
        scene.queues.upgrade(|| WaitLimit::NONE, &scene.words[0], request, &scene.states)
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(upgrade(younger), Err(Refused::Victim));
            scene.queues.released(scene.words[0].release_shared(), &scene.states);
        });
        while scene.words[0].blocker(false) != Some(Blocker::Owner(1)) {
            thread::yield_now();
        }
        assert_eq!(upgrade(older), Ok(()));
    });
    assert_eq!(scene.words[0].release_exclusive(), Released::NoWaiters);
    assert!(scene.nodes_are_free(2));
}

/// Shares or takes locks in any order, upgrades some, and adds one to a value under each exclusive lock.
#[test]
fn threads_that_lock_in_any_order_all_get_through() {
    const THREADS: u32 = 4;
    const TRANSACTIONS: u64 = 300;
    let scene = Scene::new(THREADS);
    let values: [AtomicU64; 3] = Default::default();
    let added = AtomicU64::new(0);
    let run = |worker: u32| {
        let mut random = Random::stream(17, worker.into());
        let mut stamp = AttemptStamp::default();
        for number in 0..TRANSACTIONS {
            let wishes = [(); 3].map(|()| (random.below(3) as usize, random.chance(0.5)));
            let began_ns = number * u64::from(THREADS) + u64::from(worker) + 1;
            loop {
                stamp = scene.states.enter_next(stamp, worker, began_ns);
                // For each lock, `Some` if it is held, with true if it is held exclusively.
                let mut held = [None; 3];
                let all = wishes.iter().all(|(lock, exclusive)| {
                    let word = &scene.words[*lock];
                    let shares = match held[*lock] {
                        Some(alone) if alone || !exclusive => return true,
                        other => other.is_some(),
                    };
                    let request = Scene::request(stamp, *lock, *exclusive);
                    let got = match (shares, exclusive) {
                        (true, _) => scene.queues.upgrade(|| WaitLimit::NONE, word, request, &scene.states),
                        (false, true) if word.try_exclusive(worker, false) => Ok(()),
                        (false, false) if scene.queues.try_share(word, &scene.states) => Ok(()),
                        (false, _) => scene.queues.acquire(|| WaitLimit::NONE, word, request, &scene.states),
                    };
                    if got.is_ok() {
                        held[*lock] = Some(*exclusive);
                        if !exclusive {
                            scene.queues.nodes.note_shared(worker, request.address);
                        }
                        if random.chance(0.2) {
                            thread::yield_now();
                        }
                    }
                    got.is_ok()
                });
                for (lock, alone) in held.iter().enumerate() {
                    let Some(alone) = alone else { continue };
                    if *alone && all {
                        // A load and a store, not one update: only the lock keeps others away.
                        let value = values[lock].load(Ordering::Relaxed);
                        if random.chance(0.2) {
                            thread::yield_now();
                        }
                        values[lock].store(value + 1, Ordering::Relaxed);
                        added.fetch_add(1, Ordering::Relaxed);
                    }
                    let word = &scene.words[lock];
                    let released = if *alone { word.release_exclusive() } else { word.release_shared() };
                    scene.queues.released(released, &scene.states);
                }
                scene.queues.nodes.forget_shared(worker);
                scene.states.end(stamp);
                if all {
                    break;
                }
            }
        }
    };
    thread::scope(|scope| (0..THREADS).for_each(|worker| _ = scope.spawn(move || run(worker))));
    let sum: u64 = values.iter().map(|value| value.load(Ordering::Relaxed)).sum();
    assert_eq!(sum, added.into_inner());
    assert!(scene.words.iter().all(|word| word.try_exclusive(0, false)));
    assert!(scene.nodes_are_free(THREADS));
}

#[test]
fn a_wait_that_panics_leaves_neither_the_queue_nor_an_upgrade_behind() {
    let scene = Scene::new(3);
    let [holder, panicking, other] = [0, 1, 2].map(|worker| scene.begin(worker, worker.into()));
    let word = &scene.words[0];
    let panics = |wait: &dyn Fn() -> Result<(), Refused>| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(wait)).unwrap_err();
    };
    // In the queue.
    scene.takes(holder, 0);
    panics(&|| {
        let request = Scene::request(panicking, 0, true);
        scene.queues.acquire(|| panic!("planned"), word, request, &scene.states)
    });
    let waits = scene.queue(other, 0, true);
    assert!(!scene.acquires(waits, 0, true));
    scene.queues.released(word.release_exclusive(), &scene.states);
    assert!(scene.acquires(waits, 0, true), "nobody is before it");
    scene.queues.released(word.release_exclusive(), &scene.states);
    // Upgrading beside another reader.
    scene.share(panicking, 0);
    scene.share(other, 0);
    panics(&|| {
        let request = Scene::request(panicking, 0, true);
        scene.queues.upgrade(|| panic!("planned"), word, request, &scene.states)
    });
    scene.share(holder, 0);
    assert!(scene.nodes_are_free(3));
}
