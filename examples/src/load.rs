//! Load: threads that call an example until the time is over.

use hdrhistogram::Histogram;
use hotrow::sync::random::Random;
use hotrow::{Engine, Protocol};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// An example under load.
pub(crate) trait Scenario: Sync {
    /// Does one operation. `number` counts the operations of this thread. False if it was refused: sold out, overdrawn, over the limit.
    fn one(&self, thread: usize, number: u64, random: &mut Random) -> bool;

    /// Does what goes on beside the load, on a thread of its own, and returns the pause until the next time; `None` if there is nothing.
    fn beside(&self) -> Option<Duration> {
        None
    }

    /// Checks what must hold when all is over, and says what that was.
    fn check(&self) -> Result<String, String>;

    /// The conflict report, if there is one.
    fn conflicts(&self) -> Option<String> {
        None
    }
}

/// The amount of load.
pub(crate) struct Load {
    pub(crate) threads: usize,
    pub(crate) duration: Duration,
}

/// One run's figures.
pub(crate) struct Measured {
    seconds: f64,
    done: u64,
    refused: u64,
    /// Times of operations in nanoseconds.
    latency: Histogram<u64>,
}

impl Measured {
    /// Operations a second, refused ones included.
    fn throughput(&self) -> f64 {
        (self.done + self.refused) as f64 / self.seconds
    }

    fn latency_us(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1e3
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (throughput, p50, p99) = (self.throughput(), self.latency_us(0.5), self.latency_us(0.99));
        write!(
            f,
            "{throughput:.0} operations/s ({} done, {} refused), p50 {p50:.1} µs, p99 {p99:.1} µs",
            self.done, self.refused
        )
    }
}

impl Load {
    /// Puts the load on a scenario.
    pub(crate) fn put_on(&self, scenario: &dyn Scenario) -> Measured {
        let over = AtomicBool::new(false);
        let is_over = || over.load(Ordering::Relaxed);
        let begun = Instant::now();
        let one_thread = |thread: usize| {
            let mut random = Random::stream(1, thread as u64);
            // Three digits, up to a minute.
            let mut latency = Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are valid");
            let (mut done, mut refused) = (0, 0);
            for number in 0.. {
                if is_over() {
                    break;
                }
                let began = Instant::now();
                let accepted = scenario.one(thread, number, &mut random);
                latency.saturating_record(began.elapsed().as_nanos() as u64);
                if accepted {
                    done += 1;
                } else {
                    refused += 1;
                }
            }
            Measured { seconds: 0.0, done, refused, latency }
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads)
                .map(|thread| {
                    let one_thread = &one_thread;
                    scope.spawn(move || one_thread(thread))
                })
                .collect();
            scope.spawn(|| {
                while !is_over()
                    && let Some(pause) = scenario.beside()
                {
                    thread::sleep(pause);
                }
            });
            thread::sleep(self.duration);
            over.store(true, Ordering::Relaxed);
            let seconds = begun.elapsed().as_secs_f64();
            let all = threads.into_iter().map(|thread| thread.join().expect("an operation panicked"));
            let sum = all.reduce(|mut sum, one| {
                sum.done += one.done;
                sum.refused += one.refused;
                sum.latency.add(&one.latency).expect("the bounds are the same");
                sum
            });
            Measured { seconds, ..sum.expect("there is a thread") }
        })
    }
}

/// Compares runs that were made by turns: the ratio of each round, and the medians.
pub(crate) fn compare(first: &str, runs: &[Measured], second: &str, others: &[Measured]) -> String {
    let mut ratios: Vec<f64> =
        runs.iter().zip(others).map(|(run, other)| run.throughput() / other.throughput()).collect();
    let shown: Vec<_> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
    let p99 =
        |runs: &[Measured]| median(&mut runs.iter().map(|run| run.latency_us(0.99)).collect::<Vec<_>>());
    let (mine, theirs) = (p99(runs), p99(others));
    format!(
        "{first} to {second}: throughput {:.2} ({}), p99 {mine:.1} to {theirs:.1} µs",
        median(&mut ratios),
        shown.join(", ")
    )
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The conflict report of a database, in a few lines.
pub(crate) fn report<P: Protocol>(engine: &Engine<P>) -> String {
    let hot = engine.hot_keys(3).into_iter().map(|key| format!("\n  hot: {key}"));
    format!("conflicts: {}{}", engine.statistics(), hot.collect::<String>())
}
