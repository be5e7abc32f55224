//! Latencies: recorded in nanoseconds, reported in microseconds.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longest latency that the histogram distinguishes: an hour. A longer one counts as an hour.
const NANOSECONDS_MAX: u64 = 3_600_000_000_000;

/// Number of significant digits.
const DIGITS: u8 = 3;

/// Histogram of transaction latencies.
#[derive(Debug, Clone)]
pub struct Latencies {
    nanoseconds: Histogram<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    /// Makes an empty histogram and allocates all its memory (a quarter of a megabyte).
    pub(crate) fn new() -> Self {
        let nanoseconds = Histogram::new_with_bounds(1, NANOSECONDS_MAX, DIGITS);
        Self { nanoseconds: nanoseconds.expect("the bounds are constants that fit") }
    }

    /// Adds the latency of one transaction, in nanoseconds.
    #[inline]
    pub(crate) fn record(&mut self, nanoseconds: u64) {
        self.nanoseconds.saturating_record(nanoseconds);
    }

    /// Adds all latencies of another histogram.
    pub(crate) fn add(&mut self, other: &Latencies) {
        self.nanoseconds.add(&other.nanoseconds).expect("all histograms have the same bounds");
    }

    /// Returns the percentiles; `None` if there was no transaction.
    pub fn summary(&self) -> Option<LatencySummary> {
        let microseconds = |quantile| self.nanoseconds.value_at_quantile(quantile) as f64 / 1_000.0;
        (!self.nanoseconds.is_empty()).then(|| LatencySummary {
            p50: microseconds(0.5),
            p90: microseconds(0.9),
            p99: microseconds(0.99),
            p999: microseconds(0.999),
            max: self.nanoseconds.max() as f64 / 1_000.0,
        })
    }

    /// Returns the whole distribution as a few points.
    pub fn distribution(&self) -> LatencyDistribution {
        let count = self.nanoseconds.len() as f64;
        let nines = (0..).map(LatencyDistribution::nines).take_while(|nines| *nines <= count.log10() + 1e-9);
        // An empty histogram yields no points: the logarithm of 0 is below every place.
        let values = nines.map(|nines| {
            let quantile = 1.0 - 10_f64.powf(-nines);
            self.nanoseconds.value_at_quantile(quantile) as f64 / 1_000.0
        });
        LatencyDistribution { microseconds: values.collect() }
    }
}

/// Latency at percentiles that grow denser towards the tail, in microseconds.
///
/// Place `n` is the percentile with [`nines(n)`](Self::nines) nines: 0 nines is the least latency, 1 the 90th
/// percentile, 2 the 99th. The last place depends on the number of transactions: a hundred transactions cannot show
/// the slowest one in a thousand.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LatencyDistribution {
    /// Latency at each place, in order of places; empty if nothing committed.
    pub microseconds: Vec<f64>,
}

impl LatencyDistribution {
    /// Number of places per nine.
    const PLACES: u32 = 10;

    /// Returns the percentile of a place as a number of nines: `-log10(1 - q)` of quantile `q`.
    pub fn nines(place: u32) -> f64 {
        f64::from(place) / f64::from(Self::PLACES)
    }
}

/// Percentiles of latency, in microseconds, to three significant digits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Median: half of the transactions took at most this long.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Maximum.
    pub max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_what_was_recorded() {
        let (mut low, mut high) = (Latencies::new(), Latencies::new());
        assert_eq!(low.summary(), None);
        for number in 1..=500u64 {
            low.record(number * 100);
            high.record((number + 500) * 100);
        }
        low.add(&high);
        let summary = low.summary().unwrap();
        for (found, expected) in [
            (summary.p50, 50.0),
            (summary.p90, 90.0),
            (summary.p99, 99.0),
            (summary.p999, 99.9),
            (summary.max, 100.0),
        ] {
            assert!((found - expected).abs() <= expected / 1_000.0, "{found} instead of {expected}");
        }
    }

    #[test]
    fn a_distribution_ends_where_the_transactions_do() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.distribution(), LatencyDistribution::default());
        for number in 1..=1_000u64 {
            latencies.record(number * 1_000);
        }
        let distribution = latencies.distribution().microseconds;
        assert!(distribution.is_sorted());
        let places = [0.0, 1.0, 2.0, 3.0];
        let expected = [1.0, 900.0, 990.0, 999.0];
        assert_eq!(LatencyDistribution::nines(distribution.len() as u32 - 1), 3.0);
        for (nines, expected) in places.into_iter().zip(expected) {
            let place = (0..).position(|place| LatencyDistribution::nines(place) == nines).unwrap();
            let found = distribution[place];
            assert!((found - expected).abs() <= expected / 500.0, "{nines}: {found}, not {expected}");
        }
    }

    #[test]
    fn latencies_above_an_hour_count_as_an_hour() {
        let mut latencies = Latencies::new();
        latencies.record(100_000_000_000_000);
        latencies.record(0);
        let max = latencies.summary().unwrap().max;
        assert!((3.5e9..4.5e9).contains(&max), "{max}");
    }
}
