//! Every application on every store over an engine, under protocols of each kind, with verified results.

use hotrow::protocols::{Visitor, for_each_concurrent_protocol};
use hotrow::{Any, Engine, Occ, Protocol, RetryPolicy};
use hotrow_stamp::registry::{APPLICATIONS, ApplicationOptions};
use hotrow_stamp::store::{Cell, Counters, Lists, Map, Queue, Store, Vector};
use hotrow_stamp::{Tracked, Typed, TypedOptions, Words, on_threads};

/// Options of every application that make a short run with conflicts.
fn small() -> impl Iterator<Item = ApplicationOptions> {
    APPLICATIONS.iter().map(|application| {
        let options: &[(&str, &str)] = match application.name {
            "bayes" => &[("variables", "8"), ("records", "100")],
            "genome" => &[("gene_length", "120"), ("segment_length", "16"), ("segments", "400")],
            "intruder" => &[("flows", "60"), ("packets_max", "8")],
            "kmeans" => &[("points", "100"), ("clusters", "2"), ("iterations", "5")],
            "labyrinth" => &[("width", "8"), ("height", "8"), ("pairs", "12")],
            "ssca2" => &[("scale", "5")],
            "vacation" => {
                &[("relations", "16"), ("transactions", "400"), ("queries", "4"), ("user_percent", "70")]
            }
            _ => &[("points", "30")],
        };
        ApplicationOptions::parse(application.name, None, options).unwrap()
    })
}

fn engine<P: Protocol>(protocol: &str) -> Engine<P> {
    Engine::named(protocol, RetryPolicy::default()).unwrap()
}

fn assert_right<S: Store>(store: impl Fn() -> S, label: &str, threads: usize)
where
    for<'a> hotrow_stamp::Spawning<hotrow_stamp::runner::StartThreads>:
        hotrow_stamp::registry::EveryRunner<S>,
{
    for options in small() {
        let outcome = options.execute(store(), &on_threads(threads));
        assert_eq!(outcome.verification, Ok(()), "{} {label}", options.name());
    }
}

fn typed<P: Protocol>(protocol: &str, options: TypedOptions) -> Typed<P> {
    Typed::new(Tracked::new(engine(protocol)), options)
}

const PREDICATES: TypedOptions = TypedOptions { predicates: true, deferred: false, boosted: false };
const DEFERRED: TypedOptions = TypedOptions { predicates: true, deferred: true, boosted: false };
const BOOSTED: TypedOptions = TypedOptions { predicates: false, deferred: false, boosted: true };

#[test]
fn every_application_is_right_on_datatypes() {
    assert_right(|| typed::<Occ>("occ", TypedOptions::default()), "on numbers under occ", 3);
    assert_right(|| typed::<Occ>("occ", PREDICATES), "on predicates under occ", 4);
    assert_right(|| typed::<Any>("drp", PREDICATES), "on predicates under drp", 2);
    assert_right(|| typed::<Any>("drp", DEFERRED), "deferred under drp", 3);
}

#[test]
fn every_application_is_right_on_datatypes_under_opaque_and_locking_protocols() {
    assert_right(|| typed::<Any>("tl2", PREDICATES), "on predicates under tl2", 3);
    let numbers = TypedOptions::default();
    assert_right(|| typed::<Any>("wait-die", numbers), "on numbers under wait-die", 3);
    assert_right(|| typed::<Any>("wait-die", PREDICATES), "on predicates under wait-die", 2);
}

#[test]
fn every_application_is_right_on_boosted_maps() {
    assert_right(|| typed::<Occ>("occ", BOOSTED), "boosted under occ", 4);
    assert_right(|| typed::<Any>("tl2", BOOSTED), "boosted under tl2", 3);
    assert_right(|| typed::<Any>("drp", BOOSTED), "boosted under drp", 3);
    assert_right(|| typed::<Any>("wait-die", BOOSTED), "boosted under wait-die", 2);
}

/// Runs labyrinth, whose copies of the grid are of no single state, with wires that cross each other.
#[derive(Clone, Copy)]
struct LabyrinthUnderEachProtocol;

impl Visitor for LabyrinthUnderEachProtocol {
    type Output = ();

    fn visit<P: Protocol>(self, name: &str) {
        let given = [("width", "12"), ("height", "12"), ("pairs", "40")];
        let options = ApplicationOptions::parse("labyrinth", None, &given).unwrap();
        let outcome = options.execute(typed::<P>(name, TypedOptions::default()), &on_threads(3));
        assert_eq!(outcome.verification, Ok(()), "on datatypes under {name}");
        let outcome = options.execute(Words::new(Tracked::new(engine::<P>(name))), &on_threads(3));
        assert_eq!(outcome.verification, Ok(()), "in words under {name}");
    }
}

#[test]
fn labyrinth_is_right_with_untracked_copies_under_every_protocol() {
    assert!(for_each_concurrent_protocol(4, LabyrinthUnderEachProtocol).len() > 10);
}

#[test]
fn every_application_is_right_in_words() {
    let tracked = || Tracked::new(engine::<Occ>("occ"));
    assert_right(|| Words::new(tracked()), "in words under occ", 4);
    let tracked = || Tracked::new(engine::<Any>("wait-die"));
    assert_right(|| Words::new(tracked()), "in words under wait-die", 2);
}

/// Compares a store's collections with what the trait promises. The keys make chains, levels and a full heap.
fn assert_collections<S: Store>(store: &S)
where
    S::Abort: std::fmt::Debug,
{
    let hashed = store.hash_map(4, [(1_u32, 10_u32)]);
    let ordered = store.ordered_map((0..100).map(|key: u32| (3 * key, key)));
    let lists = store.lists::<u32, u32, u32>(2, [7]);
    let queue = store.queue([2_u32, 3]);
    let heap = store.priority_queue((0..100_u32).map(|number| number * 37 % 100));
    let counters = store.counters([1, -5]);
    let cell = store.cell((1_u32, 2_u32));
    let vector = store.vector([4_u64, 5, 6]);
    let mut worker = store.worker();
    S::transact(&mut worker, |tx| {
        for key in 2..20 {
            assert!(hashed.insert_if_absent(tx, key, key)? && !hashed.insert_if_absent(tx, key, 0)?);
        }
        assert!(hashed.remove(tx, 5)? && !hashed.remove(tx, 5)? && hashed.get(tx, 5)?.is_none());
        hashed.put(tx, 6, 60)?;
        assert_eq!(
            (hashed.get(tx, 1)?, hashed.get(tx, 6)?, hashed.get(tx, 19)?),
            (Some(10), Some(60), Some(19))
        );

        for key in (0..100).map(|key: u32| key * 59 % 100) {
            assert_eq!(ordered.get(tx, 3 * key)?, Some(key));
            assert!(ordered.insert_if_absent(tx, 3 * key + 1, key)?);
            assert!(ordered.remove(tx, 3 * key)?);
            ordered.put(tx, 3 * key + 1, key + 1)?;
            ordered.put(tx, 3 * key + 2, key + 2)?;
        }
        for key in 0..100 {
            assert_eq!(ordered.get(tx, 3 * key)?, None);
            assert_eq!(
                (ordered.get(tx, 3 * key + 1)?, ordered.get(tx, 3 * key + 2)?),
                (Some(key + 1), Some(key + 2))
            );
        }

        assert!(!lists.open(tx, 7)? && lists.open(tx, 8)? && lists.insert(tx, 9, 1, 1)?);
        for item in [3, 1, 2] {
            assert!(lists.insert(tx, 7, item, 10 * item)? && !lists.insert(tx, 7, item, 0)?);
        }
        assert_eq!((lists.len(tx, 7)?, lists.len(tx, 8)?, lists.len(tx, 6)?), (Some(3), Some(0), None));
        let items = Some(vec![(1, 10), (2, 20), (3, 30)]);
        assert_eq!((lists.get(tx, 7)?, lists.take(tx, 7)?, lists.take(tx, 7)?), (items.clone(), items, None));

        queue.push(tx, 4)?;
        let popped = [queue.pop(tx)?, queue.pop(tx)?, queue.pop(tx)?, queue.pop(tx)?];
        assert_eq!(popped, [Some(2), Some(3), Some(4), None]);
        heap.push(tx, 50)?;
        let mut popped = Vec::new();
        while let Some(element) = heap.pop(tx)? {
            popped.push(element);
        }
        assert!(popped.is_sorted_by(|one, next| one >= next) && popped.len() == 101, "{popped:?}");

        assert!(counters.take_if_available(tx, 0, 1)? && !counters.take_if_available(tx, 0, 1)?);
        counters.add(tx, 1, 3)?;
        assert_eq!((Counters::get(&counters, tx, 0)?, Counters::get(&counters, tx, 1)?), (0, -2));
        assert!(counters.is_at_least(tx, 1, -2)? && !counters.is_at_least(tx, 1, -1)?);

        Cell::update(&cell, tx, |pair| pair.1 += 1)?;
        assert_eq!(Cell::get(&cell, tx)?, (1, 3));
        Vector::set(&vector, tx, 0, 8)?;
        vector.change_later(tx, 2, |number| *number += 1)?;
        let mut all = Vec::new();
        vector.peek_all(tx, &mut all)?;
        let mut last = Vec::new();
        vector.read_range(tx, 1..3, |number| last.push(*number))?;
        assert_eq!((all, last), (vec![8, 5, 7], vec![5, 7]));
        assert_eq!(Vector::read(&vector, tx, 2, |number| *number)?, 7);
        Ok(())
    });
    let left = S::transact(&mut worker, |tx| {
        Ok((queue.pop(tx)?, heap.pop(tx)?, ordered.get(tx, 4)?, Vector::get(&vector, tx, 2)?))
    });
    // It is the second transaction. In the first one all changes are its own.
    assert_eq!((left.0, left.1, left.2), (None, None, Some(2)));
    assert_eq!(left.3, 7);
    let before = cell.update_alone(&mut worker, |pair| std::mem::replace(pair, (4, 5)));
    let sum = cell.update_alone(&mut worker, |pair| pair.0 + pair.1);
    assert_eq!((before, sum), ((1, 3), 9));
}

#[test]
fn collections_keep_their_promises() {
    assert_collections(&typed::<Occ>("occ", TypedOptions::default()));
    assert_collections(&typed::<Any>("tl2", PREDICATES));
    assert_collections(&typed::<Any>("drp", DEFERRED));
    assert_collections(&typed::<Occ>("occ", BOOSTED));
    assert_collections(&Words::new(Tracked::new(engine::<Occ>("occ"))));
}

#[test]
fn the_largest_transaction_is_noted() {
    let tracked = Tracked::new(engine::<Occ>("occ"));
    let store = Words::new(tracked.clone());
    let vector = store.vector(0..10_u64);
    let mut worker = store.worker();
    Words::transact(&mut worker, |tx| (0..7).try_for_each(|index| Vector::get(&vector, tx, index).map(drop)));
    Words::transact(&mut worker, |tx| Vector::get(&vector, tx, 0));
    drop(worker);
    assert_eq!(tracked.items_max(), 7);
}
