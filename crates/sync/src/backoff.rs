//! Backoff between two attempts of a transaction.

use crate::clock::whole_nanoseconds;
use crate::{random::Random, spin, thread};
use std::time::Duration;

/// Randomized exponential backoff: first a few spins, then a yield, then a sleep.
///
/// The caller must hold nothing (no lock, no pinned epoch), so that others can go on while it waits.
#[derive(Debug, Clone)]
pub struct Backoff {
    round: u32,
    sleep_max: Duration,
}

/// Rounds that only spin.
const SPIN_ROUNDS: u32 = 2;
/// The next rounds, which yield the processor without sleeping.
const YIELD_ROUNDS: u32 = 4;

impl Backoff {
    /// A backoff whose sleeps are never longer than `sleep_max`.
    pub fn new(sleep_max: Duration) -> Self {
        Self { round: 0, sleep_max }
    }

    /// Waits once, on average longer than in the previous call.
    pub fn wait(&mut self, random: &mut Random) {
        let round = self.round;
        self.round = round.saturating_add(1);
        if round < SPIN_ROUNDS {
            for _ in 0..random.below(u64::from(spin::TURNS << round)) {
                thread::spin_loop();
            }
        } else if round < SPIN_ROUNDS + YIELD_ROUNDS {
            thread::yield_now();
        } else {
            let doublings = (round - SPIN_ROUNDS - YIELD_ROUNDS).min(20);
            let ceiling = (1_000u64 << doublings).min(whole_nanoseconds(self.sleep_max)).max(1);
            thread::sleep(Duration::from_nanos(random.below(ceiling) + 1));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sleeps_stay_below_the_ceiling() {
        let mut backoff = Backoff::new(Duration::from_micros(50));
        let mut random = Random::seeded(1);
        let begin = crate::clock::now();
        for _ in 0..40 {
            backoff.wait(&mut random);
        }
        // 34 sleeps of at most 50 us each, with generous room for the operating system's timer.
        assert!(begin.elapsed() < Duration::from_secs(5));
        assert_eq!(backoff.round, 40);
    }
}
