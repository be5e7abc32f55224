//! Latencies: recorded in nanoseconds, reported in microseconds.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::Duration;

/// The longest latency that is told from longer ones: an hour.
const NANOSECONDS_MAX: u64 = 3_600_000_000_000;

/// Three significant digits.
const DIGITS: u8 = 3;

/// How many transactions took how long.
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
    /// No transaction yet. Allocates all it will ever need (a quarter of a megabyte).
    pub fn new() -> Self {
        let nanoseconds = Histogram::new_with_bounds(1, NANOSECONDS_MAX, DIGITS);
        Self { nanoseconds: nanoseconds.expect("the bounds are constants that fit") }
    }

    /// Adds a transaction.
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        self.nanoseconds.saturating_record(latency.as_nanos() as u64);
    }

    /// Adds all of another's transactions.
    pub fn add(&mut self, other: &Latencies) {
        self.nanoseconds.add(&other.nanoseconds).expect("all histograms have the same bounds");
    }

    /// Percentiles; none if there was no transaction.
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
}

/// Percentiles of latency, in microseconds, to three significant digits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Half of the transactions took at most this long.
    pub p50: f64,
    /// 90 % did.
    pub p90: f64,
    /// 99 % did.
    pub p99: f64,
    /// 99.9 % did.
    pub p999: f64,
    /// All did.
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
            low.record(Duration::from_nanos(number * 100));
            high.record(Duration::from_nanos((number + 500) * 100));
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
    fn what_takes_longer_than_an_hour_counts_as_an_hour() {
        let mut latencies = Latencies::new();
        latencies.record(Duration::from_secs(100_000));
        latencies.record(Duration::ZERO);
        let max = latencies.summary().unwrap().max;
        assert!((3.5e9..4.5e9).contains(&max), "{max}");
    }
}
