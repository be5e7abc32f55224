//! Models of nodes' latches and sequence numbers (docs/memory-model.md, S1 to S3, K1).

use super::*;
use hotrow_sync::Arc;
use hotrow_sync::model::{Model, Part, UnsafeCell};
use hotrow_sync::thread::spawn;

/// A node of two slots, whose content is relaxed words as in both indexes.
#[derive(Default)]
struct Node {
    version: StructureVersion,
    slots: [AtomicU64; 2],
}

impl Node {
    fn load(&self) -> [u64; 2] {
        self.slots.each_ref().map(|slot| slot.load(Ordering::Relaxed))
    }

    fn store(&self, value: u64) {
        self.slots.iter().for_each(|slot| slot.store(value, Ordering::Relaxed));
    }

    /// A reader's one attempt.
    fn read(&self) -> Option<(u64, [u64; 2])> {
        let version = self.version.stable()?;
        let slots = self.load();
        self.version.unchanged(version).then_some((version, slots))
    }

    /// Fills the node, unless it has changed since `seen`.
    fn fill_at(&self, seen: u64, value: u64) -> bool {
        let latched = self.version.try_lock_at(seen);
        if latched {
            self.store(value);
            self.version.unlock_changed();
        }
        latched
    }
}

fn a_reader_beside_a_writer() {
    let node = Arc::new(Node::default());
    let writer = node.clone();
    let writer = spawn(move || assert!(writer.fill_at(0, 1)));
    if let Some((version, [first, second])) = node.read() {
        assert_eq!(first, second, "half a change");
        assert_eq!(StructureVersion::changes(version), first, "another version's content");
    }
    writer.join().unwrap();
}

#[test]
fn a_read_at_an_unchanged_version_returns_the_content_of_that_version() {
    Model::new()
        .needs(Part::LOADS)
        .needs(Part::STORES)
        .needs(Part::ACQUIRE_FENCES)
        .needs(Part::RELEASE_FENCES)
        .check(a_reader_beside_a_writer);
}

#[test]
fn a_reader_beside_two_changes_takes_no_part_of_either_for_the_whole() {
    Model::new().needs(Part::ACQUIRE_FENCES).needs(Part::RELEASE_FENCES).check(|| {
        let node = Arc::new(Node::default());
        let writer = node.clone();
        let writer = spawn(move || {
            let once = writer.version.lock().unwrap();
            writer.store(1);
            assert_eq!(StructureVersion::changes(writer.version.unlock_changed()), 1);
            assert!(writer.fill_at(once + STEP, 2));
        });
        if let Some((version, slots)) = node.read() {
            assert_eq!(slots, [StructureVersion::changes(version); 2]);
        }
        writer.join().unwrap();
    });
}

#[test]
fn latch_holders_exclude_one_another_and_see_what_the_last_one_did() {
    Model::new().needs(Part::STORES).needs(Part::LOADS | Part::UPDATES).check(|| {
        // Not atomic, so that only the latch keeps two holders from a data race.
        let shared = Arc::new((StructureVersion::new(), UnsafeCell::new(0)));
        let change = |(version, content): &(StructureVersion, UnsafeCell<u64>)| {
            version.lock().unwrap();
            // SAFETY: the latch is held.
            content.with_mut(|content| unsafe { *content += 1 });
            version.unlock_changed();
        };
        let other = shared.clone();
        let other = spawn(move || change(&other));
        change(&shared);
        other.join().unwrap();
        assert_eq!(shared.0.stable(), Some(2 * STEP));
        // SAFETY: the other thread has ended.
        assert_eq!(shared.1.with(|content| unsafe { *content }), 2);
    });
}

/// Both look, find nothing, and take the latch at the version they looked at.
#[test]
fn of_two_that_insert_what_they_did_not_find_one_finds_it() {
    Model::new().needs(Part::STORES).check(|| {
        let node = Arc::new(Node::default());
        let insert = |node: &Node, key: u64| loop {
            let seen = node.version.stable().unwrap();
            if node.load() != [0; 2] && node.version.unchanged(seen) {
                return false;
            }
            if node.fill_at(seen, key) {
                return true;
            }
        };
        let other = node.clone();
        let other = spawn(move || insert(&other, 1));
        let mine = insert(&node, 2);
        let others = other.join().unwrap();
        assert!(mine != others, "the key is in twice, or not at all");
        assert_eq!(node.load(), if mine { [2; 2] } else { [1; 2] });
    });
}

#[test]
fn a_reader_that_finds_a_node_retired_finds_its_heir_filled() {
    Model::new().needs(Part::LOADS).needs(Part::STORES).check(|| {
        let nodes = Arc::new((StructureVersion::new(), UnsafeCell::new(0)));
        let heir = nodes.clone();
        let heir = spawn(move || {
            heir.0.lock().unwrap();
            // SAFETY: a reader looks only after it has found the node retired, which comes later.
            heir.1.with_mut(|heir| unsafe { *heir = 1 });
            heir.0.unlock_retired();
        });
        if nodes.0.stable().is_none() {
            // SAFETY: it is written before the node is retired, and not afterwards.
            assert_eq!(nodes.1.with(|heir| unsafe { *heir }), 1);
        }
        heir.join().unwrap();
    });
}

/// The phantom argument for two inserters: each observes that the other's key is absent, inserts its own and checks its
/// observation.
#[test]
fn of_two_inserts_that_each_observed_the_absence_of_the_other_one_at_most_commits() {
    Model::totally_ordered().preemptions(3).needs(Part::TOTAL_ORDER).check(|| {
        let nodes = Arc::new([Node::default(), Node::default()]);
        let attempt = |nodes: &[Node; 2], mine: usize| {
            let [mine, others] = [&nodes[mine], &nodes[1 - mine]];
            let Some((observed, [0, 0])) = others.read() else { return false };
            let seen = mine.version.stable().unwrap();
            assert!(mine.fill_at(seen, 1));
            others.version.unchanged(observed)
        };
        let other = nodes.clone();
        let other = spawn(move || attempt(&other, 0));
        let mine = attempt(&nodes, 1);
        assert!(!(other.join().unwrap() && mine), "each was before the other");
    });
}
