use super::*;
use hotrow_sync::thread;

const WORKERS: u32 = 2;

fn is_over(window: Window) -> bool {
    clock::now() >= window.until
}

/// Lets an elder lose attempts in its window until the window is over, and come to the gate for the next one.
fn outlast(elder: &mut Elder<'_>) {
    let window = elder.window.unwrap();
    while !is_over(window) {
        thread::yield_now();
    }
    assert!(elder.pass(WORKERS, None));
}

#[test]
fn the_gate_is_closed_while_an_elder_has_a_window_and_open_before_and_after() {
    let gate = StarvationGate::default();
    let mut elder = gate.escalate();
    assert!(!gate.is_closed(), "it has not begun an attempt");
    assert!(elder.pass(WORKERS, None));
    assert!(gate.is_closed());
    drop(elder);
    assert!(!gate.is_closed());
    assert!(gate.wait(None));
}

#[test]
fn a_wait_at_the_gate_ends_even_if_the_elder_stays_and_nobody_else_waits_again() {
    let gate = StarvationGate::default();
    let mut elder = gate.escalate();
    assert!(elder.pass(WORKERS, None));
    assert!(gate.wait(None));
    assert!(!gate.is_closed(), "it sleeps on, and its window is over");
    drop(elder);
}

#[test]
fn an_elder_keeps_its_window_from_one_attempt_to_the_next() {
    let gate = StarvationGate::default();
    let mut elder = gate.escalate();
    elder.length = Duration::from_secs(1_000);
    assert!(elder.pass(WORKERS, None));
    let window = elder.window;
    assert!(elder.pass(WORKERS, None));
    assert_eq!(elder.window, window);
}

#[test]
fn a_deadline_that_passes_at_the_gate_ends_the_wait_and_not_the_window() {
    let gate = StarvationGate::default();
    let mut elder = gate.escalate();
    elder.length = Duration::from_secs(1_000);
    assert!(elder.pass(WORKERS, None));
    assert!(!gate.wait(Some(Duration::ZERO)));
    let mut other = gate.escalate();
    assert!(!other.pass(WORKERS, Some(Duration::from_millis(1))));
    assert!(gate.is_open(elder.window.unwrap()));
    drop(elder);
    let mut third = gate.escalate();
    assert!(third.pass(WORKERS, None), "who has given up is in nobody's way");
}

#[test]
fn after_a_window_that_was_too_short_the_gate_is_open_and_then_comes_a_longer_one() {
    let gate = StarvationGate::default();
    let mut elder = gate.escalate();
    assert!(elder.pass(WORKERS, None));
    let first = elder.window.unwrap();
    outlast(&mut elder);
    let second = elder.window.unwrap();
    assert!(second.until - first.until >= elder.length + WINDOW_MIN, "the pause is as long as the first one");
    // The elder's only attempt in the first window took all of it.
    assert!(elder.longest >= WINDOW_MIN, "{elder:?}");
    assert_eq!(elder.length, WINDOW_MIN * GROWTH, "{elder:?}");
}

#[test]
fn windows_grow_until_the_longest_attempt_fits_and_no_further() {
    let gate = StarvationGate::default();
    let mut elder = gate.escalate();
    elder.longest = Duration::from_secs(1);
    let lengths: Vec<_> = (0..10)
        .map(|_| {
            elder.grow(3);
            elder.length
        })
        .collect();
    assert_eq!(lengths[0], WINDOW_MIN * GROWTH);
    assert!(lengths.is_sorted());
    assert_eq!(lengths[9], Duration::from_secs(6), "twice for each of three workers");
    let mut short = gate.escalate();
    short.longest = Duration::from_nanos(1);
    short.grow(3);
    assert_eq!(short.length, WINDOW_MIN, "who loses at once does not stop others for longer and longer");
}

#[test]
fn elders_get_their_windows_in_turns() {
    let gate = StarvationGate::default();
    let mut first = gate.escalate();
    assert!(first.pass(WORKERS, None));
    thread::scope(|scope| {
        let second = scope.spawn(|| {
            let mut second = gate.escalate();
            assert!(second.pass(WORKERS, None));
        });
        while lock(&gate.state).queue.is_empty() && lock(&gate.state).windows == 1 {
            thread::yield_now();
        }
        // It loses again and again, and comes to the gate all the time.
        while !second.is_finished() {
            assert!(first.pass(WORKERS, None));
        }
    });
    assert!(lock(&gate.state).queue.is_empty());
}

#[test]
fn an_elder_that_stops_in_the_queue_does_not_stop_those_behind_it() {
    let gate = StarvationGate::default();
    lock(&gate.state).queue.push_back(1_000);
    let mut elder = gate.escalate();
    assert!(elder.pass(WORKERS, None));
    assert!(lock(&gate.state).queue.is_empty());
}

#[test]
fn a_policy_without_escalation_never_escalates() {
    let policy = super::super::RetryPolicy { escalate_after: u32::MAX, ..Default::default() };
    assert!(!policy.escalates_after(1_000_000, Duration::from_secs(1_000)));
    let policy = super::super::RetryPolicy::default();
    assert!(policy.escalates_after(policy.escalate_after, Duration::ZERO));
    assert!(!policy.escalates_after(policy.escalate_after - 1, Duration::ZERO));
    assert!(policy.escalates_after(2, Duration::from_secs(1)));
}
