//! Keys that a transaction touches: zipfian ranks, and the mapping from ranks to keys.
//!
//! # Zipfian ranks
//!
//! The record of rank `k` (from 1) is drawn with a probability proportional to `1 / k^theta`. The generator of Gray
//! and others (SIGMOD 1994), which YCSB and DBx1000 use, approximates this for theta below 1. This module uses
//! rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
//! distributions", 1996). It is exact for every theta, 1 and more included, and needs no table. Crate `rand_distr`
//! has an exact generator, too; it raises three numbers to a power for each draw, this one about one.
//!
//! # Mapping of ranks to keys
//!
//! Neighbours in rank must not be neighbours in memory, otherwise the hottest records would share cache lines. So
//! ranks are scrambled: a permutation maps them to keys. YCSB's hash is no permutation: several ranks may meet on
//! one record, and some records are never drawn.

use hotrow::sync::random::Random;

/// Draws ranks from 0, the hottest, to the number of records less one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Zipfian {
    records: u64,
    theta: f64,
    /// Exponent of the integral: `1 - theta`.
    exponent: f64,
    inverse_exponent: f64,
    /// Integral of the density at the lower and the upper end of the ranks.
    low: f64,
    high: f64,
    /// Distance to the rounded number up to which the rank is accepted without computing the exact condition.
    certain: f64,
}

impl Zipfian {
    /// The distribution over `records` records (0 counts as 1). A theta of 0 is uniform; a negative one counts as
    /// 0.
    pub(crate) fn new(records: u64, theta: f64) -> Self {
        let records = records.max(1);
        let theta = theta.max(0.0);
        let exponent = 1.0 - theta;
        let inverse_exponent = exponent.recip();
        let mut zipfian =
            Self { records, theta, exponent, inverse_exponent, low: 0.0, high: 0.0, certain: 0.0 };
        zipfian.low = zipfian.integral(1.5) - 1.0;
        zipfian.high = zipfian.integral(records as f64 + 0.5);
        zipfian.certain = 2.0 - zipfian.inverse(zipfian.integral(2.5) - 2f64.powf(-theta));
        zipfian
    }

    /// Returns the integral of `x^-theta` from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        if self.is_logarithmic() { log } else { (self.exponent * log).exp_m1() / self.exponent }
    }

    /// Returns the number up to which the integral is `area`.
    #[inline]
    fn inverse(&self, area: f64) -> f64 {
        if self.is_logarithmic() {
            return area.exp();
        }
        // Rounding may move the argument below -1, where the logarithm does not exist.
        let scaled = (self.exponent * area).max(-1.0);
        // Near a theta of 1 the sum would lose digits. Elsewhere the plain logarithm is precise enough, and twice
        // as fast.
        let log = if self.exponent.abs() < 1e-3 { scaled.ln_1p() } else { (1.0 + scaled).ln() };
        (log * self.inverse_exponent).exp()
    }

    /// True if theta is 1, or so close that the logarithm serves.
    #[inline]
    fn is_logarithmic(&self) -> bool {
        self.exponent.abs() < 1e-12
    }

    /// Draws a rank.
    #[inline]
    pub(crate) fn rank(&self, random: &mut Random) -> u64 {
        if self.theta == 0.0 {
            return random.below(self.records);
        }
        loop {
            let area = self.high + random.unit() * (self.low - self.high);
            let x = self.inverse(area);
            // Adding a half rounds to the nearest number, because the cast truncates.
            let number = ((x + 0.5) as u64).clamp(1, self.records);
            let rank = number as f64;
            if rank - x <= self.certain || area >= self.integral(rank + 0.5) - rank.powf(-self.theta) {
                return number - 1;
            }
        }
    }
}

/// Maps ranks to keys: a permutation of `0..records`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scramble {
    records: u64,
    /// All bits that a number below `records` may have.
    mask: u64,
    shift: u32,
}

impl Scramble {
    /// Makes the permutation of `records` keys, always the same one.
    pub(crate) fn new(records: u64) -> Self {
        let bits = u64::BITS - records.saturating_sub(1).leading_zeros();
        Self { records, mask: records.max(1).next_power_of_two() - 1, shift: (bits / 2).max(1) }
    }

    /// Returns the key of a rank.
    #[inline]
    pub(crate) fn key(&self, rank: u64) -> u64 {
        let mut number = rank;
        loop {
            number = self.mix(number);
            // `mix` permutes a power of two. Following it until the number is a key again makes a permutation of
            // the keys.
            if number < self.records {
                return number;
            }
        }
    }

    /// A permutation of `0..=mask`: each step is invertible.
    #[inline]
    fn mix(&self, number: u64) -> u64 {
        let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15) & self.mask;
        for odd in [0xbf58_476d_1ce4_e5b9u64, 0x94d0_49bb_1331_11eb] {
            mixed = mixed.wrapping_mul(odd) & self.mask;
            mixed ^= mixed >> self.shift;
        }
        mixed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the draws of each rank.
    fn drawn(records: u64, theta: f64, draws: u32) -> Vec<u32> {
        let zipfian = Zipfian::new(records, theta);
        let mut random = Random::seeded(11);
        let mut counts = vec![0; records as usize];
        for _ in 0..draws {
            counts[zipfian.rank(&mut random) as usize] += 1;
        }
        counts
    }

    fn probabilities(records: u64, theta: f64) -> Vec<f64> {
        let weights: Vec<f64> = (1..=records).map(|rank| (rank as f64).powf(-theta)).collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / sum).collect()
    }

    /// Returns the sum of squared deviations over variances. Its mean is the number of `bins` less one; its
    /// standard deviation is the root of twice that.
    fn chi_square(counts: &[u32], expected: &[f64]) -> f64 {
        counts.iter().zip(expected).map(|(count, mean)| (f64::from(*count) - mean).powi(2) / mean).sum()
    }

    #[test]
    fn ranks_are_drawn_with_their_exact_probabilities() {
        const DRAWS: u32 = 400_000;
        for records in [1u64, 2, 3, 50, 1_000] {
            for theta in [0.0, 0.01, 0.5, 0.99, 0.999_999, 1.0, 1.000_001, 1.2, 1.4] {
                let counts = drawn(records, theta, DRAWS);
                let expected: Vec<f64> =
                    probabilities(records, theta).iter().map(|share| share * f64::from(DRAWS)).collect();
                let freedom = (records - 1) as f64;
                // The bound is five standard deviations; the seed is fixed, so the result is always the same.
                let most = freedom + 5.0 * (2.0 * freedom).sqrt() + 1e-6;
                let found = chi_square(&counts, &expected);
                assert!(found <= most, "{records} records, theta {theta}: {found} above {most}");
            }
        }
    }

    #[test]
    fn the_test_notices_a_theta_that_is_slightly_wrong() {
        let counts = drawn(1_000, 0.97, 400_000);
        let expected: Vec<f64> = probabilities(1_000, 0.99).iter().map(|share| share * 4e5).collect();
        assert!(chi_square(&counts, &expected) > 1_500.0);
    }

    #[test]
    fn the_hottest_of_ten_million_have_their_share() {
        const DRAWS: u32 = 1_000_000;
        let (records, theta) = (10_000_000, 0.99);
        let shares = probabilities(records, theta);
        let counts = drawn(records, theta, DRAWS);
        for rank in 0..20 {
            let (found, mean) = (f64::from(counts[rank]), shares[rank] * f64::from(DRAWS));
            assert!((found - mean).abs() <= 5.0 * mean.sqrt(), "rank {rank}: {found}, not {mean}");
        }
        // The colder half is compared as a whole.
        let (half, all) = (shares[5_000_000..].iter().sum::<f64>(), f64::from(DRAWS));
        let found = f64::from(counts[5_000_000..].iter().sum::<u32>());
        assert!((found - half * all).abs() <= 5.0 * (half * all).sqrt(), "{found}, not {}", half * all);
    }

    #[test]
    fn every_key_has_one_rank() {
        for records in (1..=300).chain([4_095, 4_096, 4_097, 100_000]) {
            let scramble = Scramble::new(records);
            let mut seen = vec![false; records as usize];
            for rank in 0..records {
                let key = scramble.key(rank) as usize;
                assert!(!std::mem::replace(&mut seen[key], true), "{key} of {records} has two ranks");
            }
        }
    }

    #[test]
    fn hot_records_are_far_from_each_other() {
        for records in [100_000, 1_000_000, 10_000_000] {
            let scramble = Scramble::new(records);
            let mut keys: Vec<u64> = (0..32).map(|rank| scramble.key(rank)).collect();
            keys.sort_unstable();
            let nearest = keys.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
            assert!(nearest > 16, "{nearest} keys apart, of {records}");
        }
    }
}
