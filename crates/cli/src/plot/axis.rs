//! Axes: where a value lies, and which values are labelled.

use crate::text;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// One axis. A *place* is what is drawn linearly: the value, or its logarithm.
#[derive(Debug)]
pub(super) struct Axis {
    logarithmic: bool,
    places: Range<f64>,
    ticks: Vec<f64>,
}

/// The least distance of two labels, as a share of the axis.
const LABELS_APART: f64 = 0.035;

/// What is left free at both ends of the axis of cores, as a share of it.
const MARGIN: f64 = 0.03;

/// A span above which an axis is logarithmic: of cores, which double.
const CORES_SPAN_MAX: f64 = 8.0;

/// The same of latencies.
const LATENCY_SPAN_MAX: f64 = 20.0;

impl Axis {
    /// An axis of cores, labelled at those that there are as far as they have room.
    pub(super) fn cores(cores: &[f64]) -> Self {
        let (least, most) = bounds(cores);
        let logarithmic = most > least * CORES_SPAN_MAX;
        let place = |value: f64| if logarithmic { value.ln() } else { value };
        let span = place(most) - place(least);
        let margin = if span > 0.0 { span * MARGIN } else { 1.0 };
        let places = place(least) - margin..place(most) + margin;
        let mut sorted = cores.to_vec();
        sorted.sort_by(f64::total_cmp);
        let mut ticks: Vec<f64> = Vec::new();
        for tick in sorted {
            let room = |last: &f64| place(tick) - place(*last) > (places.end - places.start) * LABELS_APART;
            if ticks.last().is_none_or(room) {
                ticks.push(tick);
            }
        }
        Self { logarithmic, places, ticks }
    }

    /// An axis of amounts from 0.
    pub(super) fn amounts(amounts: &[f64]) -> Self {
        let most = bounds(amounts).1;
        let high = if most > 0.0 { most * 1.06 } else { 1.0 };
        let step = step(high / 6.0);
        let ticks = (0..).map(|at| f64::from(at) * step).take_while(|tick| *tick <= high).collect();
        Self { logarithmic: false, places: 0.0..high, ticks }
    }

    /// An axis of latencies: from 0, or logarithmic if they are of different orders.
    pub(super) fn latencies(latencies: &[f64]) -> Self {
        let (least, most) = bounds(latencies);
        if least <= 0.0 || most <= least * LATENCY_SPAN_MAX {
            return Self::amounts(latencies);
        }
        let (low, high) = (least / 1.3, most * 1.3);
        let first = low.log10().floor() as i32;
        let last = high.log10().ceil() as i32;
        let decades =
            (first..=last).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
        let whole_only = last - first > 3;
        let shown = |tick: &f64| {
            (low..=high).contains(tick) && (!whole_only || (tick.log10() - tick.log10().round()).abs() < 1e-9)
        };
        Self { logarithmic: true, places: low.ln()..high.ln(), ticks: decades.filter(shown).collect() }
    }

    /// Where a value lies.
    fn place(&self, value: f64) -> f64 {
        if self.logarithmic { value.ln() } else { value }
    }

    /// What lies at a place.
    fn value(&self, place: f64) -> f64 {
        if self.logarithmic { place.exp() } else { place }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (self.place(*value) - self.places.start) / (self.places.end - self.places.start);
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // No lines between those that are labelled.
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.value(self.places.start)..self.value(self.places.end)
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(value: &f64) -> String {
        let rounded = value.round();
        if (value - rounded).abs() < 1e-6 * value.abs().max(1.0) {
            text::count(rounded as u64)
        } else {
            // As many digits as steps of 1, 2 and 5 have.
            let digits = format!("{value:.6}");
            digits.trim_end_matches('0').to_owned()
        }
    }
}

/// The least and the greatest; 0 and 0 of nothing.
fn bounds(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().reduce(f64::min).unwrap_or(0.0);
    let most = values.iter().copied().reduce(f64::max).unwrap_or(0.0);
    (least, most)
}

/// The next round number: 1, 2 or 5 times a power of ten.
fn step(at_least: f64) -> f64 {
    let power = 10_f64.powf(at_least.log10().floor());
    let digits = [1.0, 2.0, 5.0, 10.0];
    let digit = digits.into_iter().find(|digit| digit * power >= at_least * (1.0 - 1e-9));
    digit.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks.iter().map(Axis::format).collect()
    }

    #[test]
    fn cores_that_double_often_are_evenly_apart() {
        let axis = Axis::cores(&[1.0, 2.0, 4.0, 8.0, 16.0]);
        assert_eq!(labels(&axis), ["1", "2", "4", "8", "16"]);
        let pixels = |axis: &Axis| [1.0, 2.0, 4.0, 8.0].map(|cores| axis.map(&cores, (0, 1_000)));
        let [one, two, four, eight] = pixels(&axis);
        assert!((two - one).abs_diff(four - two) <= 1 && (four - two).abs_diff(eight - four) <= 1);
        let few = Axis::cores(&[8.0, 1.0, 2.0]);
        assert_eq!(labels(&few).join(" "), "1 2 8");
        let [_, two, four, eight] = pixels(&few);
        assert!((eight - four).abs_diff((four - two) * 2) <= 2);
    }

    #[test]
    fn labels_that_have_no_room_are_left_out() {
        let all: Vec<f64> = (1..=1024).map(f64::from).collect();
        let axis = Axis::cores(&all);
        assert!((10..=30).contains(&labels(&axis).len()), "{:?}", labels(&axis));
        assert_eq!(labels(&Axis::cores(&[4.0])), ["4"]);
    }

    #[test]
    fn amounts_are_labelled_in_round_steps_from_nothing() {
        assert_eq!(labels(&Axis::amounts(&[3.0, 990.0])), ["0", "200", "400", "600", "800", "1,000"]);
        assert_eq!(labels(&Axis::amounts(&[0.5])), ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(labels(&Axis::amounts(&[])).first().map(String::as_str), Some("0"));
    }

    #[test]
    fn latencies_of_different_orders_are_on_a_logarithmic_axis() {
        assert_eq!(labels(&Axis::latencies(&[1.0, 30.0])), ["1", "2", "5", "10", "20"]);
        assert_eq!(
            labels(&Axis::latencies(&[1.0, 90_000.0])),
            ["1", "10", "100", "1,000", "10,000", "100,000"]
        );
        assert_eq!(labels(&Axis::latencies(&[1.0, 2.0]))[0], "0");
    }
}
