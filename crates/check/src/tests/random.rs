//! Random histories: correct ones are accepted, and small ones are judged as by trying all orders.

use super::execution::{Action, Ending, Running, Store, addition, body, map_events};
use super::oracle::{explains, verdicts};
use crate::{check, serial_order};
use hotrow_core::history::{Event, History};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;

fn judged(history: &History) -> [bool; 3] {
    let report = check(history).unwrap();
    let text = report.to_string();
    assert!(!text.contains("comes before"), "every edge is explained:\n{text}");
    let verdicts = [report.serializable, report.strictly_serializable, report.opaque];
    assert_eq!(verdicts.contains(&false), !report.anomalies.is_empty());
    verdicts
}

/// Runs one transaction after the other. Each begins, executes at once and ends. If `turns` is true for it, it ends
/// later, so that its stamps overlap with those of others.
fn serial(bodies: &[(u32, (Vec<Action>, Ending))], turns: &[bool]) -> History {
    let mut store = Store::new();
    let mut open: Vec<Option<(Running, Ending)>> = (0..4).map(|_| None).collect();
    let mut begun: Vec<Option<Running>> = (0..4).map(|_| None).collect();
    for (n, (worker, (actions, ending))) in bodies.iter().enumerate() {
        let at = *worker as usize % 4;
        if let Some((running, ending)) = open[at].take() {
            store.end(running, ending);
        }
        let mut running = begun[at].take().unwrap_or_else(|| store.begin(at as u32));
        running.blind = *ending == Ending::Commit;
        actions.iter().for_each(|action| store.act(&mut running, *action));
        if *ending == Ending::Commit {
            store.install(&mut running);
        }
        if turns.get(n).copied().unwrap_or(false) {
            open[at] = Some((running, *ending));
        } else {
            store.end(running, *ending);
            if n % 3 == 0 {
                begun[at] = Some(store.begin(at as u32));
            }
        }
    }
    for (running, ending) in open.into_iter().flatten() {
        store.end(running, ending);
    }
    store.finish()
}

/// Runs all transactions at once, in the order of `turns`.
fn interleaved(bodies: &[(Vec<Action>, Ending)], turns: &[usize], slow_scans: bool) -> History {
    let mut store = Store::new();
    // Per transaction: its state, the number of its actions done, and true if it has ended.
    let mut running: Vec<(Option<Running>, usize, bool)> = bodies.iter().map(|_| (None, 0, false)).collect();
    let rest = (0..bodies.len()).flat_map(|n| std::iter::repeat_n(n, 1000));
    for turn in turns.iter().map(|turn| turn % bodies.len()).chain(rest) {
        let (state, done, ended) = &mut running[turn];
        let (actions, ending) = &bodies[turn];
        if *ended {
            continue;
        }
        let Some(mut now) = state.take() else {
            *state = Some(store.begin(turn as u32));
            continue;
        };
        if store.step_scan(&mut now) {
            *state = Some(now);
            continue;
        }
        now.blind = *ending == Ending::Commit;
        match actions.get(*done) {
            Some(Action::Scan(low, high)) if slow_scans => store.begin_scan(&mut now, *low, *high),
            Some(action) => store.act(&mut now, *action),
            None => {
                store.end(now, *ending);
                *ended = true;
                continue;
            }
        }
        *done += 1;
        *state = Some(now);
    }
    store.finish()
}

/// Lets one of the reads see another version of its key; `None` if there is no read.
fn with_a_read_moved(history: &History, which: Index, version: Index) -> Option<History> {
    let mut reads = Vec::new();
    let mut versions = vec![vec![0]; super::execution::KEYS as usize];
    for event in history.workers.iter().flat_map(|worker| worker.events()) {
        match event.unwrap() {
            Event::Read { key, .. } => reads.push(key),
            Event::Write { key, version, .. } => versions[key as usize].push(version),
            _ => {}
        }
    }
    if reads.is_empty() {
        return None;
    }
    let which = which.index(reads.len());
    let of_its_key = &versions[reads[which] as usize];
    let moved = of_its_key[version.index(of_its_key.len())];
    let mut at = 0;
    let corrupted = map_events(history, |event| match event {
        Event::Read { key, kind, .. } => {
            at += 1;
            if at == which + 1 { Event::Read { key, version: moved, kind } } else { event }
        }
        event => event,
    });
    Some(corrupted)
}

/// A transaction that mostly adds, and commits, so that it may do so in pieces.
fn adding_body() -> impl Strategy<Value = (Vec<Action>, Ending)> {
    (prop::collection::vec(addition(), 1..=7), Just(Ending::Commit))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn serial_executions_are_accepted(
        bodies in prop::collection::vec((0u32..4, body(8)), 1..60),
        turns in prop::collection::vec(any::<bool>(), 60),
    ) {
        for turns in [&turns[..], &[]] {
            let history = serial(&bodies, turns);
            prop_assert_eq!(judged(&history), [true; 3], "{}", check(&history).unwrap());
        }
    }

    #[test]
    fn small_executions_are_judged_as_by_trying_all_orders(
        bodies in prop::collection::vec(body(4), 1..6),
        turns in prop::collection::vec(any::<usize>(), 40),
    ) {
        let history = interleaved(&bodies, &turns, false);
        prop_assert_eq!(judged(&history), verdicts(&history), "{}", check(&history).unwrap());
    }

    #[test]
    fn long_runs_are_judged_as_by_trying_all_orders(
        bodies in prop::collection::vec(adding_body(), 2..6),
        turns in prop::collection::vec(any::<usize>(), 60),
        (which, version) in (any::<Index>(), any::<Index>()),
    ) {
        let history = interleaved(&bodies, &turns, false);
        for history in [with_a_read_moved(&history, which, version), Some(history)].into_iter().flatten() {
            prop_assert_eq!(judged(&history), verdicts(&history), "{}", check(&history).unwrap());
            if let (report, Some(order)) = serial_order(&history).unwrap() && report.serializable {
                let order: Vec<u32> = order.iter().map(|placed| placed.transaction.worker).collect();
                prop_assert!(explains(&history, &order), "{:?}", order);
            }
        }
    }

    #[test]
    fn a_slow_scan_raises_no_false_alarm(
        bodies in prop::collection::vec(body(4), 1..6),
        turns in prop::collection::vec(any::<usize>(), 80),
    ) {
        let history = interleaved(&bodies, &turns, true);
        for (judged, right) in judged(&history).into_iter().zip(verdicts(&history)) {
            prop_assert!(judged || !right, "{}", check(&history).unwrap());
        }
    }

    #[test]
    fn a_read_moved_to_another_version_is_judged_as_by_trying_all_orders(
        bodies in prop::collection::vec((0u32..4, body(4)), 1..7),
        turns in prop::collection::vec(any::<bool>(), 60),
        (which, version) in (any::<Index>(), any::<Index>()),
    ) {
        let Some(corrupted) = with_a_read_moved(&serial(&bodies, &turns), which, version) else { return Ok(()) };
        // If the moved read belongs to a scan, the scan must have missed the key. The checker then says less than
        // all orders do.
        let scanned = corrupted.workers.iter().flat_map(|worker| worker.events());
        let scanned = scanned.into_iter().any(|event| matches!(event, Ok(Event::Range { .. })));
        for (judged, right) in judged(&corrupted).into_iter().zip(verdicts(&corrupted)) {
            let fits = judged == right || scanned && judged;
            prop_assert!(fits, "{} {}", right, check(&corrupted).unwrap());
        }
    }

    #[test]
    fn any_bytes_are_judged_or_refused(
        bodies in prop::collection::vec((0u32..4, body(4)), 1..10),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut history = serial(&bodies, &[]);
        for (at, byte) in changes {
            let worker = at.index(history.workers.len());
            let bytes = &mut history.workers[worker].bytes;
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        let _ = check(&history).map(|report| report.to_string());
    }
}

fn assert_both_verdicts(strategy: impl Strategy<Value = (Vec<(Vec<Action>, Ending)>, Vec<usize>)>) {
    let mut counts = [0; 2];
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..400 {
        let (bodies, turns) = strategy.new_tree(&mut runner).unwrap().current();
        counts[usize::from(verdicts(&interleaved(&bodies, &turns, false))[0])] += 1;
    }
    assert!(counts.iter().all(|count| *count > 20), "wrong and right: {counts:?}");
}

#[test]
fn random_executions_are_sometimes_right_and_sometimes_wrong() {
    let turns = || prop::collection::vec(any::<usize>(), 60);
    assert_both_verdicts((prop::collection::vec(body(4), 2..6), turns()));
    assert_both_verdicts((prop::collection::vec(adding_body(), 2..6), turns()));
}
