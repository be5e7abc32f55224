//! The contract of a store, tested on each.

use crate::faults::{CommitFault, Faults, FaultyStore};
use crate::{
    At, Commit, Freshness, Limits, Marker, MemoryStore, Mutation, Outcome, Span, Store, StoreError, Version,
};
use hotrow_sync::clock::{Duration, Instant, now};
use hotrow_sync::{Arc, thread};
use std::ops::RangeInclusive;

/// All numbers.
const WHOLE: RangeInclusive<i64> = i64::MIN..=i64::MAX;

/// A moment that is late enough.
fn soon() -> Instant {
    now() + Duration::from_secs(20)
}

struct Subject<'s> {
    store: &'s dyn Store,
    prefix: String,
}

impl Subject<'_> {
    fn key(&self, name: &str) -> Vec<u8> {
        format!("{}{name}", self.prefix).into_bytes()
    }

    fn span(&self, from: &str, to: &str) -> Span {
        Span { start: self.key(from), end: self.key(to) }
    }

    fn put_of(&self, name: &str, value: &str) -> Mutation {
        Mutation::Put { key: self.key(name), value: value.as_bytes().to_vec() }
    }

    fn commit(&self, commit: &Commit) -> Outcome {
        self.store.commit(commit, soon()).unwrap()
    }

    fn put(&self, name: &str, value: &str) -> Version {
        committed(self.commit(&Commit { mutations: vec![self.put_of(name, value)], ..Commit::default() }))
    }

    fn delete(&self, name: &str) -> Version {
        let mutations = vec![Mutation::Delete { key: self.key(name) }];
        committed(self.commit(&Commit { mutations, ..Commit::default() }))
    }

    fn get(&self, name: &str, at: At) -> Option<(String, Version)> {
        let read = self.store.get_many(&[self.key(name)], at, soon()).unwrap();
        let found = read.values.into_iter().next().unwrap()?;
        Some((String::from_utf8(found.value).unwrap(), found.version))
    }

    fn names(&self, span: &Span, at: At, limit: usize) -> (Vec<String>, bool) {
        let page = self.store.range(span, at, limit, soon()).unwrap();
        let name = |key: &[u8]| String::from_utf8(key[self.prefix.len()..].to_vec()).unwrap();
        (page.rows.iter().map(|(key, _)| name(key)).collect(), page.has_more)
    }
}

fn committed(outcome: Outcome) -> Version {
    match outcome {
        Outcome::Committed(version) => version,
        Outcome::Conflict(key) => panic!("a conflict at {key:?}"),
    }
}

fn is_conflict(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Conflict(_))
}

/// Checks that a store without faults keeps the contract, under keys with this prefix. `compact` forgets states below its first version as far as it
/// can, and at least those below its second.
pub(crate) fn check(store: &dyn Store, prefix: &str, compact: &dyn Fn(Version, Version)) {
    let subject = Subject { store, prefix: prefix.to_owned() };
    versions_ascend_and_old_states_stay(&subject);
    ranges_are_read_in_order_and_in_pages(&subject);
    conditions_on_keys_hold(&subject);
    conditions_on_ranges_notice_writes(&subject);
    a_failed_condition_prevents_all(&subject);
    additions_add(&subject);
    a_marker_is_a_condition_and_a_write(&subject);
    limits_are_refused(&subject);
    watches_report_changes(&subject);
    concurrent_commits_are_atomic(&subject);
    compaction_is_held_back(&subject, compact);
}

fn versions_ascend_and_old_states_stay(s: &Subject<'_>) {
    assert_eq!(s.get("a", At::Newest), None);
    let first = s.put("a", "1");
    let second = s.put("a", "2");
    assert!(first < second);
    assert!(s.store.read_version(Freshness::Newest, soon()).unwrap() >= second);
    assert_eq!(s.get("a", At::Newest), Some(("2".to_owned(), second)));
    assert_eq!(s.get("a", At::Version(first)), Some(("1".to_owned(), first)));
    let third = s.delete("a");
    assert_eq!(s.get("a", At::Newest), None);
    assert_eq!(s.get("a", At::Version(second)), Some(("2".to_owned(), second)));
    assert!(third > second);
    s.put("b", "3");
    let keys = [s.key("b"), s.key("a"), s.key("b")];
    let read = s.store.get_many(&keys, At::Newest, soon()).unwrap();
    assert_eq!(read.values.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
    assert!(read.version > third);
    assert_eq!(s.store.get_many(&[], At::Version(second), soon()).unwrap().values.len(), 0);
}

fn ranges_are_read_in_order_and_in_pages(s: &Subject<'_>) {
    let names = ["r1", "r2", "r3", "r4"];
    for name in names.iter().rev() {
        s.put(name, "x");
    }
    let before = s.delete("r3") - 1;
    let span = s.span("r", "s");
    assert_eq!(s.names(&span, At::Newest, 10), (vec!["r1".into(), "r2".into(), "r4".into()], false));
    assert_eq!(s.names(&span, At::Newest, 2), (vec!["r1".into(), "r2".into()], true));
    assert_eq!(s.names(&span, At::Version(before), 10).0, names);
    assert_eq!(s.names(&s.span("r2", "r4"), At::Version(before), 10).0, ["r2", "r3"]);
    assert_eq!(s.names(&s.span("r4", "r2"), At::Newest, 10).0, [] as [&str; 0]);
}

fn conditions_on_keys_hold(s: &Subject<'_>) {
    let version = s.put("c", "1");
    let next = |version: Version, value: &str| {
        let (keys, mutations) = (vec![(s.key("c"), version)], vec![s.put_of("c", value)]);
        s.commit(&Commit { keys, mutations, read_at: version, ..Commit::default() })
    };
    assert!(is_conflict(next(0, "2")), "the key is there");
    assert!(is_conflict(next(version - 1, "2")), "the key has another version");
    let second = committed(next(version, "2"));
    assert!(is_conflict(next(version, "3")));
    assert_eq!(s.get("c", At::Newest), Some(("2".to_owned(), second)));
    s.delete("c");
    assert!(is_conflict(next(second, "3")), "the key is absent");
    committed(next(0, "3"));
}

fn conditions_on_ranges_notice_writes(s: &Subject<'_>) {
    s.put("d1", "x");
    let read_at = s.put("d3", "x");
    let commit = |read_at: Version| {
        let (spans, mutations) = (vec![s.span("d", "e")], vec![s.put_of("other", "x")]);
        s.commit(&Commit { spans, mutations, read_at, ..Commit::default() })
    };
    committed(commit(read_at));
    let inserted = s.put("d2", "x");
    assert!(is_conflict(commit(read_at)), "a key was inserted");
    committed(commit(inserted));
    let updated = s.put("d1", "y");
    assert!(is_conflict(commit(inserted)), "a key was changed");
    committed(commit(updated));
    s.put("e", "x");
    committed(commit(updated));
}

fn a_failed_condition_prevents_all(s: &Subject<'_>) {
    s.put("f1", "1");
    let mutations = vec![s.put_of("f1", "2"), s.put_of("f2", "2")];
    let keys = vec![(s.key("f3"), 0), (s.key("f1"), 1)];
    assert!(is_conflict(s.commit(&Commit { keys, mutations, ..Commit::default() })));
    assert_eq!(s.get("f1", At::Newest).unwrap().0, "1");
    assert_eq!(s.get("f2", At::Newest), None);
}

fn additions_add(s: &Subject<'_>) {
    let key = s.key("g");
    let add = |amount| {
        let mutations = vec![Mutation::Add { key: key.clone(), amount, within: WHOLE }];
        s.commit(&Commit { mutations, ..Commit::default() })
    };
    let number = || {
        let read = s.store.get_many(std::slice::from_ref(&key), At::Newest, soon()).unwrap();
        let found = read.values.into_iter().next().unwrap().unwrap();
        (i64::from_le_bytes(found.value.try_into().unwrap()), found.version)
    };
    assert!(is_conflict(add(1)), "the key is absent");
    let put = Mutation::Put { key: key.clone(), value: 40i64.to_le_bytes().to_vec() };
    committed(s.commit(&Commit { mutations: vec![put], ..Commit::default() }));
    committed(add(5));
    let version = committed(add(-3));
    assert_eq!(number(), (42, version));
    assert!(is_conflict(add(i64::MAX)), "the sum is no number");
    let add_within = |amount, within| {
        let mutations = vec![Mutation::Add { key: key.clone(), amount, within }];
        s.commit(&Commit { mutations, ..Commit::default() })
    };
    assert!(is_conflict(add_within(-3, 40..=i64::MAX)), "the sum is below the range");
    assert!(is_conflict(add_within(3, 0..=44)), "the sum is above the range");
    assert_eq!(number(), (42, version));
    committed(add_within(-2, 40..=40));
    let version = committed(add_within(2, 42..=42));
    let stale = Commit {
        keys: vec![(key.clone(), version - 1)],
        mutations: vec![Mutation::Add { key: key.clone(), amount: 1, within: WHOLE }],
        ..Commit::default()
    };
    assert!(is_conflict(s.commit(&stale)), "a condition on the key holds for an addition, too");
    assert_eq!(number(), (42, version));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..5).map(|_| committed(add(1))).max());
        }
    });
    assert_eq!(number().0, 62);
    s.put("g", "text");
    assert!(is_conflict(add(1)), "the value is no number");
}

fn a_marker_is_a_condition_and_a_write(s: &Subject<'_>) {
    let commit = |replaces, value: &str| {
        let marker = Marker { key: s.key("h"), replaces, value: value.as_bytes().to_vec() };
        s.commit(&Commit {
            marker: Some(marker),
            mutations: vec![s.put_of("h2", value)],
            ..Commit::default()
        })
    };
    let first = committed(commit(0, "1"));
    assert!(is_conflict(commit(0, "2")));
    assert_eq!(s.get("h", At::Newest), Some(("1".to_owned(), first)));
    assert_eq!(s.get("h2", At::Newest), Some(("1".to_owned(), first)));
    let second = committed(commit(first, "2"));
    assert_eq!(s.get("h", At::Newest), Some(("2".to_owned(), second)));
}

fn limits_are_refused(s: &Subject<'_>) {
    let Limits { changes_max, bytes_max, conditions_max } = s.store.limits();
    let puts = |count: usize| (0..count).map(|at| s.put_of(&format!("l{at}"), "x")).collect::<Vec<_>>();
    committed(s.commit(&Commit { mutations: puts(changes_max), ..Commit::default() }));
    let refused = |mutations| {
        let commit = Commit { mutations, ..Commit::default() };
        matches!(s.store.commit(&commit, soon()), Err(StoreError::Refused { .. }))
    };
    assert!(refused(puts(changes_max + 1)));
    assert!(refused(vec![s.put_of("l", &"x".repeat(bytes_max))]));
    let fits = bytes_max - s.key("l").len();
    committed(s.commit(&Commit { mutations: vec![s.put_of("l", &"x".repeat(fits))], ..Commit::default() }));
    let read = |keys: &[Vec<u8>]| s.store.get_many(keys, At::Newest, soon());
    let key = |bytes: usize| [s.key("l"), vec![b'x'; bytes - s.key("l").len()]].concat();
    for keys in [vec![s.key("none"); conditions_max], vec![key(bytes_max / 2); 2]] {
        assert_eq!(read(&keys).unwrap().values.len(), keys.len());
    }
    for keys in
        [vec![s.key("l"); conditions_max + 1], vec![key(bytes_max / 2 + 1); 2], vec![key(bytes_max + 1)]]
    {
        assert!(matches!(read(&keys), Err(StoreError::Refused { .. })));
    }
    // A large key is sent as a change and as a condition.
    let add = Mutation::Add { key: key(bytes_max * 3 / 4), amount: 1, within: i64::MIN..=i64::MAX };
    assert!(refused(vec![add]));
}

fn watches_report_changes(s: &Subject<'_>) {
    let from = s.put("w1", "1");
    let keys = [s.key("w1")];
    let spans = [s.span("x", "y")];
    let watch = |from, time: u64| {
        let deadline = now() + Duration::from_millis(time);
        s.store.watch(&keys, &spans, from, deadline).unwrap()
    };
    s.put("w2", "not watched");
    assert_eq!(watch(from, 50), None);
    let changed = s.put("w1", "2");
    assert!(watch(from, 20_000).is_some_and(|version| version >= changed), "it was changed before the watch");
    assert_eq!(watch(changed, 50), None);
    let put = s.put("x1", "1");
    assert!(watch(changed, 20_000).is_some_and(|version| version >= put));
    let gone = thread::scope(|scope| {
        let watching = scope.spawn(|| watch(put, 20_000));
        thread::sleep(Duration::from_millis(20));
        let deleted = s.delete("x1");
        watching.join().unwrap().is_some_and(|version| version >= deleted)
    });
    assert!(gone, "deletions are changes");
}

fn concurrent_commits_are_atomic(s: &Subject<'_>) {
    let start =
        committed(s.commit(&Commit {
            mutations: vec![s.put_of("p1", "0"), s.put_of("p2", "0")],
            ..Commit::default()
        }));
    let successes = thread::scope(|scope| {
        let attempts: Vec<_> = (0..4)
            .map(|number| {
                let commit = Commit {
                    read_at: start,
                    keys: vec![(s.key("p1"), start)],
                    spans: vec![s.span("p2", "p3")],
                    mutations: vec![s.put_of("p1", &number.to_string()), s.put_of("p2", &number.to_string())],
                    marker: None,
                };
                scope.spawn(move || !is_conflict(s.commit(&commit)))
            })
            .collect();
        attempts.into_iter().filter(|_| true).map(|one| one.join().unwrap()).filter(|won| *won).count()
    });
    assert_eq!(successes, 1);
    assert_eq!(s.get("p1", At::Newest).unwrap(), s.get("p2", At::Newest).unwrap());
}

fn compaction_is_held_back(s: &Subject<'_>, compact: &dyn Fn(Version, Version)) {
    let first = s.put("k", "1");
    let held = s.put("k", "2");
    let hold = s.store.hold(held, soon()).unwrap();
    assert_eq!(hold.version(), held);
    let last = s.put("k", "3");
    compact(last, held);
    let read = |at| s.store.get_many(&[s.key("k")], At::Version(at), soon());
    assert_eq!(s.get("k", At::Version(held)).unwrap().0, "2");
    assert_eq!(read(first), Err(StoreError::Compacted { version: first }));
    let old = s.store.range(&s.span("k", "l"), At::Version(first), 10, soon());
    assert_eq!(old, Err(StoreError::Compacted { version: first }));
    assert!(s.store.hold(first, soon()).is_err());
    drop(hold);
    let newest = s.put("k", "4");
    compact(newest, newest);
    assert_eq!(read(held), Err(StoreError::Compacted { version: held }));
    assert_eq!(s.get("k", At::Newest).unwrap().0, "4");
}

#[test]
fn a_store_in_memory_keeps_the_contract() {
    let store = MemoryStore::new();
    check(&store, "contract/", &|version, _| {
        store.compact(version);
    });
}

#[test]
fn a_store_without_any_fault_keeps_the_contract() {
    let store = FaultyStore::new(MemoryStore::new(), 1, Faults::default());
    check(&store, "contract/", &|version, _| {
        store.inner().compact(version);
    });
}

#[test]
fn a_store_with_delays_and_compactions_keeps_the_contract_of_commits() {
    let store = FaultyStore::new(MemoryStore::new(), 1, Faults { delay: 0.3, ..Faults::wild() });
    let key = b"k".to_vec();
    let (mut applied, mut unknown) = (0, 0);
    for number in 0..2_000u32 {
        let commit = Commit {
            mutations: vec![Mutation::Put { key: key.clone(), value: number.to_le_bytes().to_vec() }],
            ..Commit::default()
        };
        match store.commit(&commit, soon()) {
            Ok(Outcome::Committed(_)) => applied += 1,
            Err(StoreError::Unknown { .. }) => unknown += 1,
            Err(StoreError::Unreachable { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    store.deliver();
    let newest = store.inner().read_version(Freshness::Newest, soon()).unwrap();
    assert!(newest >= applied && newest <= applied + unknown, "{applied} and {unknown} give {newest}");
    let counts = store.counts();
    assert_eq!(counts.unknown_commits, unknown);
    assert!(counts.late_commits > 0 && counts.compactions > 0, "{counts:?}");
}

#[test]
fn the_same_seed_gives_the_same_faults() {
    let run = |seed| {
        let store = FaultyStore::new(MemoryStore::new(), seed, Faults::wild());
        let commit = Commit { mutations: vec![Mutation::Delete { key: b"k".to_vec() }], ..Commit::default() };
        (0..200).map(|_| store.commit(&commit, soon())).collect::<Vec<_>>()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn a_planned_fault_happens_to_the_next_commit() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new(), 1, Faults::default()));
    let put = |value: &str| {
        let put = Mutation::Put { key: b"k".to_vec(), value: value.as_bytes().to_vec() };
        store.commit(&Commit { mutations: vec![put], ..Commit::default() }, soon())
    };
    let value = || {
        let read = store.get_many(&[b"k".to_vec()], At::Newest, soon()).unwrap();
        read.values[0].clone().map(|found| String::from_utf8(found.value).unwrap())
    };
    store.plan([
        CommitFault::Refused,
        CommitFault::Lost,
        CommitFault::LostReply,
        CommitFault::Late,
        CommitFault::None,
    ]);
    assert!(matches!(put("refused"), Err(StoreError::Unreachable { .. })));
    assert!(matches!(put("lost"), Err(StoreError::Unknown { .. })));
    assert_eq!(value(), None);
    assert!(matches!(put("reply lost"), Err(StoreError::Unknown { .. })));
    assert_eq!(value().unwrap(), "reply lost");
    assert!(matches!(put("late"), Err(StoreError::Unknown { .. })));
    put("not at all").unwrap();
    assert_eq!(value().unwrap(), "not at all");
    assert_eq!(store.deliver(), 1);
    assert_eq!(value().unwrap(), "late");
}
