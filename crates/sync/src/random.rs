//! Random numbers, reproducible from a seed.

use crate::work::{Work, charge};
use fastrand::Rng;

/// A small, fast generator for inputs, backoff and schedules. Not for secrets.
#[derive(Debug, Clone)]
pub struct Random {
    generator: Rng,
}

impl Random {
    /// A generator that always yields the same sequence for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self { generator: Rng::with_seed(seed) }
    }

    /// A generator for one of several streams of the same seed (one per worker, one per warehouse).
    pub fn stream(seed: u64, stream: u64) -> Self {
        // A multiplication by an odd constant keeps streams of neighbouring numbers apart.
        Self::seeded(seed ^ stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Uniform in `0..bound`; 0 when `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        charge(Work::Draw);
        if bound == 0 { 0 } else { self.generator.u64(..bound) }
    }

    /// Uniform in `low..=high`. `low` when the range is empty.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        charge(Work::Draw);
        if high <= low { low } else { self.generator.u64(low..=high) }
    }

    /// All 64 bits at random.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        charge(Work::Draw);
        self.generator.u64(..)
    }

    /// Uniform in `[0, 1)`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        charge(Work::Draw);
        self.generator.f64()
    }

    /// True with probability `share` (0 to 1).
    #[inline]
    pub fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// Shuffles a slice uniformly.
    pub fn shuffle<T>(&mut self, slice: &mut [T]) {
        self.generator.shuffle(slice);
    }
}
#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed| {
            let mut random = Random::seeded(seed);
            (0..8).map(|_| random.bits()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn bounds_are_kept_and_reached() {
        let mut random = Random::stream(1, 2);
        let drawn: Vec<u64> = (0..1_000).map(|_| random.between(3, 5)).collect();
        assert!(drawn.iter().all(|n| (3..=5).contains(n)));
        assert!((3..=5).all(|n| drawn.contains(&n)));
        assert_eq!(random.below(0), 0);
        assert_eq!(random.between(9, 2), 9);
    }

    #[test]
    fn a_shuffle_is_a_permutation() {
        let mut numbers: Vec<u32> = (0..100).collect();
        Random::seeded(3).shuffle(&mut numbers);
        assert_ne!(numbers, (0..100).collect::<Vec<_>>());
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    }
}
