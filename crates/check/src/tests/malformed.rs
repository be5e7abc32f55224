//! Histories that contradict themselves.

use super::Bench;
use crate::{AttemptInProgress, Malformed, check};
use hotrow_core::history::{Ended, Event, ReadKind, WorkerEvents, WriteKind};

/// Returns the error for one worker's events.
#[track_caller]
fn error(events: &[Event<'_>]) -> Malformed {
    let mut bench = Bench::new(2, 0);
    let attempt: AttemptInProgress = bench.history.begin(3);
    events.iter().for_each(|event| bench.history.event(attempt, *event));
    check(&bench.history.finish()).unwrap_err()
}

fn write(key: u32, replaced: u64, version: u64) -> Event<'static> {
    Event::Write { key, replaced, version, kind: WriteKind::Update }
}

fn read(key: u32, version: u64) -> Event<'static> {
    Event::Read { key, version, kind: ReadKind::Value }
}

const END: Event<'static> = Event::End { outcome: Ended::Committed, stamp: 50 };

#[test]
fn contradictions_are_errors_and_not_verdicts() {
    let range = |object, from, to| Event::Range { object, low: Unbounded, high: Unbounded, from, to };
    use std::ops::Bound::Unbounded;
    for (events, text) in [
        (
            &[write(0, 0, 1), write(0, 0, 2), END][..],
            "version 0 of table[0] was replaced twice: by version 1 and by version 2",
        ),
        (&[write(0, 0, 1), write(1, 0, 1), END], "version 1 was written twice: of table[0] and of table[1]"),
        (
            &[write(0, 0, 1), read(1, 1), END],
            "version 1 is named as one of table[1], but it was written as one of table[0]",
        ),
        (
            &[write(0, 0, 1), write(1, 1, 2), END],
            "version 1 is named as one of table[1], but it was written as one of table[0]",
        ),
        (
            &[write(0, 2, 1), write(0, 1, 2), END],
            "the versions of table[0] replace one another in a circle, version 1 among them",
        ),
        (
            &[write(0, 0, 0)],
            "transaction 3.1 wrote version 0 of table[0], which is the state before the history",
        ),
        (
            &[read(0, 9)],
            "the history is incomplete: version 9 of table[0] was read or replaced, but nobody wrote it",
        ),
        (
            &[write(0, 9, 10)],
            "the history is incomplete: version 9 of table[0] was read or replaced, but nobody wrote it",
        ),
        (&[read(2, 0)], "transaction 3.1 names key number 2, and there are only 2 keys"),
        (&[range(1, 0, 0)], "object number 1 is named, and there are only 1 objects"),
        (
            &[range(0, 5, 4)],
            "transaction 3.1 has a stamp 5 at a beginning and a smaller one, 4, at the end of it",
        ),
        (
            &[range(0, 40, 51), range(0, 5, 6), END],
            "transaction 3.1 read a range until stamp 51, and had ended at stamp 50",
        ),
        (
            &[Event::End { outcome: Ended::RolledBack, stamp: 0 }],
            "transaction 3.1 has a stamp 1 at a beginning and a smaller one, 0, at the end of it",
        ),
        (&[END, read(0, 0)], "worker 3: its event 3, counted from 1, lies outside any attempt"),
    ] {
        assert_eq!(error(events).to_string(), text);
    }
}

#[test]
fn aborted_versions_in_a_circle_are_an_error() {
    let aborted = Event::End { outcome: Ended::RolledBack, stamp: 50 };
    let begin = Event::Begin { attempt: 0, stamp: 60 };
    let end = Event::End { outcome: Ended::Committed, stamp: 61 };
    let events = [write(0, 2, 1), write(0, 1, 2), aborted, begin, write(0, 1, 3), end];
    assert!(matches!(error(&events), Malformed::Circle { .. }));
}

#[test]
fn bytes_that_are_no_event_are_an_error_with_their_place() {
    let mut bench = Bench::new(1, 0);
    let [a, b] = bench.begin();
    bench.commit(&[a, b]);
    let mut history = bench.history.finish();
    let offset = history.workers[1].bytes.len();
    history.workers[1].bytes.extend([77, 78]);
    assert_eq!(check(&history), Err(Malformed::Event { worker: 2, offset }));
}

#[test]
fn very_many_workers_take_no_longer_than_very_many_attempts() {
    // A quadratic check would take hours.
    let mut history = Bench::new(1, 0).history.finish();
    let mut bytes = Vec::new();
    Event::Begin { attempt: 0, stamp: 1 }.encode(&mut bytes);
    history.workers = (0..400_000).map(|n| WorkerEvents { worker: n / 2, bytes: bytes.clone() }).collect();
    let report = check(&history).unwrap();
    assert_eq!((report.counts.attempts, report.counts.unfinished), (400_000, 400_000));
}
