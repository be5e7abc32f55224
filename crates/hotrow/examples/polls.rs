//! How long a poll of a transaction takes at most, under every protocol: tasks that all add to one row, first beside a thread that does
//! so by calls, and then beside a session that keeps the row for twenty milliseconds at a time.
//!
//! `cargo run --release -p hotrow --example polls [SECONDS [PROTOCOL ...]]`; a second each unless told otherwise. The first line has
//! polls that only count to a thousand, beside a thread that counts: that is how long the machine itself stops a thread.

use hotrow::protocols::{PROTOCOLS, Visitor, with_protocol};
use hotrow::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow::sync::clock::{self, Duration};
use hotrow::sync::thread;
use hotrow::{Engine, Error, Protocol, RetryPolicy, SessionOptions, TBox};
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Waker};

/// Tasks of the executor, which has one thread.
const TASKS: usize = 16;
/// The time for which the session keeps the row, and the pause between two.
const KEPT: Duration = Duration::from_millis(20);

/// The bound of waits in a poll that the guide states, in nanoseconds.
const BOUND_NS: u64 = 1_000_000;

/// Polls tasks by turns until the time is over, and returns how long each poll took, in nanoseconds, in order.
fn polls<'a>(
    duration: Duration,
    begin: impl Fn() -> Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>,
) -> Vec<u64> {
    let mut tasks: Vec<_> = (0..TASKS).map(|_| begin()).collect();
    let mut context = Context::from_waker(Waker::noop());
    let mut times = Vec::new();
    let end = clock::now() + duration;
    while clock::now() < end {
        let mut is_idle = true;
        for task in &mut tasks {
            let began = clock::now();
            let polled = task.as_mut().poll(&mut context);
            times.push(clock::whole_nanoseconds(began.elapsed()));
            if polled.map(|result| result.expect("it has no limit")).is_ready() {
                *task = begin();
                is_idle = false;
            }
        }
        if is_idle {
            thread::yield_now();
        }
    }
    times.sort_unstable();
    times
}

fn print(name: &str, beside: &str, times: &[u64]) {
    let at = |per_mille: usize| times[(times.len() - 1) * per_mille / 1000] as f64 / 1e3;
    let beyond = times.len() - times.partition_point(|time| *time <= BOUND_NS);
    println!(
        "{name:<20} {beside:<8} {:>9} polls, p50 {:>7.1} µs, p99 {:>7.1} µs, p99.9 {:>7.1} µs, longest {:>8.1} µs, {beyond} beyond 1 ms",
        times.len(),
        at(500),
        at(990),
        at(999),
        at(1000),
    );
}

struct Measure(Duration);

impl Visitor for &Measure {
    type Output = ();

    fn visit<P: Protocol>(self, name: &str) {
        let engine = Engine::<P>::named(name, RetryPolicy::default()).expect("chosen by this name");
        let row = TBox::new(&engine, 0u64);
        let task = || {
            let transaction = engine.transact_async(|tx| row.update(tx, |row| *row += 1));
            Box::pin(transaction) as Pin<Box<dyn Future<Output = Result<(), Error>> + '_>>
        };
        let is_over = AtomicBool::new(false);
        for beside in ["calls", "session"] {
            is_over.store(false, Ordering::Relaxed);
            let times = thread::scope(|scope| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        if beside == "calls" {
                            engine.transact(|tx| row.update(tx, |row| *row += 1)).expect("it has no limit");
                            continue;
                        }
                        let mut session = engine.begin(SessionOptions::named("keeps")).expect("a session");
                        // It may lose a conflict.
                        let _ = session.run(|tx| row.update(tx, |row| *row += 1));
                        thread::sleep(KEPT);
                        let _ = session.commit();
                        thread::sleep(KEPT);
                    }
                });
                let times = polls(self.0, task);
                is_over.store(true, Ordering::Relaxed);
                times
            });
            print(name, beside, &times);
        }
    }
}

/// The longest time for which the machine does not run a thread that waits for nothing.
fn measure_machine(duration: Duration) {
    let (is_over, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let times = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let times = polls(duration, || {
            Box::pin(async {
                for number in 0..1000 {
                    black_box(number);
                }
                Ok(())
            })
        });
        is_over.store(true, Ordering::Relaxed);
        times
    });
    print("(counting)", "", &times);
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(1.0, |seconds| seconds.parse().expect("a number of seconds"));
    let duration = Duration::from_secs_f64(seconds);
    let chosen: Vec<String> = arguments.collect();
    measure_machine(duration);
    for protocol in PROTOCOLS.iter().filter(|protocol| protocol.workers_max >= 2) {
        if chosen.is_empty() || chosen.iter().any(|name| name == protocol.name) {
            with_protocol(protocol.name, &Measure(duration)).expect("it is in the list");
        }
    }
}
