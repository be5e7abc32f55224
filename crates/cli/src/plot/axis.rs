//! Axes: the positions of values, and the choice of labels.

use crate::text;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// One axis. It draws *places* linearly; the place of a value is the value itself or its logarithm.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    logarithmic: bool,
    /// True if values are percentiles, as numbers of nines.
    nines: bool,
    places: Range<f64>,
    ticks: Vec<f64>,
}

/// The least distance of two labels, as a share of the axis.
const LABELS_APART: f64 = 0.035;

/// The free margin at both ends of the axis of workers, as a share of the axis.
const MARGIN: f64 = 0.03;

/// The ratio of most to least workers above which their axis is logarithmic, because their numbers double.
const WORKERS_SPAN_MAX: f64 = 8.0;

/// The ratio of longest to shortest latency above which their axis is logarithmic.
const LATENCY_SPAN_MAX: f64 = 20.0;

/// The least latency above zero, in microseconds: latencies are recorded in whole nanoseconds.
const LATENCY_LEAST: f64 = 0.001;

/// The least number of labels that show that an axis is logarithmic.
const TICKS_MIN: usize = 4;

impl Axis {
    /// An axis of workers, with a label at each number that occurs, as far as there is room.
    pub(super) fn workers(workers: &[f64]) -> Self {
        let (least, most) = bounds(workers);
        let logarithmic = most > least * WORKERS_SPAN_MAX;
        let place = |value: f64| if logarithmic { value.ln() } else { value };
        let span = place(most) - place(least);
        let margin = if span > 0.0 { span * MARGIN } else { 1.0 };
        let places = place(least) - margin..place(most) + margin;
        let mut sorted = workers.to_vec();
        sorted.sort_by(f64::total_cmp);
        let mut ticks: Vec<f64> = Vec::new();
        for tick in sorted {
            let room = |last: &f64| place(tick) - place(*last) > (places.end - places.start) * LABELS_APART;
            if ticks.last().is_none_or(room) {
                ticks.push(tick);
            }
        }
        Self { logarithmic, nines: false, places, ticks }
    }

    /// An axis of amounts from 0.
    pub(super) fn amounts(amounts: &[f64]) -> Self {
        let most = bounds(amounts).1;
        let high = if most > 0.0 { most * 1.06 } else { 1.0 };
        let step = step(high / 6.0);
        let ticks = (0..).map(|at| f64::from(at) * step).take_while(|tick| *tick <= high).collect();
        Self { logarithmic: false, nines: false, places: 0.0..high, ticks }
    }

    /// An axis of latencies: from 0, or logarithmic if they differ by orders of magnitude.
    pub(super) fn latencies(latencies: &[f64]) -> Self {
        let (least, most) = bounds(latencies);
        if least <= 0.0 || most <= least * LATENCY_SPAN_MAX {
            return Self::amounts(latencies);
        }
        Self::logarithmic(latencies)
    }

    /// A logarithmic axis of latencies.
    pub(super) fn logarithmic(latencies: &[f64]) -> Self {
        let (least, most) = bounds(latencies);
        if most <= 0.0 {
            return Self::amounts(latencies);
        }
        let (low, high) = (least.max(LATENCY_LEAST) / 1.3, most.max(LATENCY_LEAST) * 1.3);
        let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let ticks_at = |digits: &[f64]| -> Vec<f64> {
            let all =
                powers.clone().flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
            all.filter(|tick| (low..=high).contains(tick)).collect()
        };
        // The coarsest steps that give enough labels.
        let choices = [&[1.0][..], &[1.0, 2.0, 5.0], &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]];
        let enough = choices.iter().map(|digits| ticks_at(digits)).find(|ticks| ticks.len() >= TICKS_MIN);
        let ticks = enough.unwrap_or_else(|| ticks_at(choices[2]));
        Self { logarithmic: true, nines: false, places: low.ln()..high.ln(), ticks }
    }

    /// An axis of percentiles that stretches the tail: each further nine takes the same room. Its values are
    /// numbers of nines.
    pub(super) fn percentiles(nines_max: f64) -> Self {
        let whole = (1..).map(f64::from).take_while(|nines| *nines <= nines_max + 1e-9);
        let ticks = [0.0, 2_f64.log10()].into_iter().chain(whole).collect();
        Self { logarithmic: false, nines: true, places: 0.0..nines_max + 0.1, ticks }
    }

    /// The label of a tick.
    pub(super) fn label(&self, tick: f64) -> String {
        if !self.nines {
            return Self::format(&tick);
        }
        let percent = 100.0 - 10_f64.powf(2.0 - tick);
        let digits = (tick - 2.0).max(0.0).round() as usize;
        format!("{percent:.digits$}")
    }

    /// The place of a value.
    fn place(&self, value: f64) -> f64 {
        if self.logarithmic { value.ln() } else { value }
    }

    /// The value at a place.
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
        // No grid lines without labels.
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
            // Ticks are steps of 1, 2 and 5, which have few digits.
            let digits = format!("{value:.6}");
            digits.trim_end_matches('0').to_owned()
        }
    }
}

/// The least and the greatest value; 0 and 0 if there are none.
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
    fn numbers_of_cores_that_double_are_evenly_spaced() {
        let axis = Axis::workers(&[1.0, 2.0, 4.0, 8.0, 16.0]);
        assert_eq!(labels(&axis), ["1", "2", "4", "8", "16"]);
        let pixels = |axis: &Axis| [1.0, 2.0, 4.0, 8.0].map(|cores| axis.map(&cores, (0, 1_000)));
        let [one, two, four, eight] = pixels(&axis);
        assert!((two - one).abs_diff(four - two) <= 1 && (four - two).abs_diff(eight - four) <= 1);
        let few = Axis::workers(&[8.0, 1.0, 2.0]);
        assert_eq!(labels(&few).join(" "), "1 2 8");
        let [_, two, four, eight] = pixels(&few);
        assert!((eight - four).abs_diff((four - two) * 2) <= 2);
    }

    #[test]
    fn labels_without_room_are_left_out() {
        let all: Vec<f64> = (1..=1024).map(f64::from).collect();
        let axis = Axis::workers(&all);
        assert!((10..=30).contains(&labels(&axis).len()), "{:?}", labels(&axis));
        assert_eq!(labels(&Axis::workers(&[4.0])), ["4"]);
    }

    #[test]
    fn amounts_are_labelled_in_round_steps_from_zero() {
        assert_eq!(labels(&Axis::amounts(&[3.0, 990.0])), ["0", "200", "400", "600", "800", "1,000"]);
        assert_eq!(labels(&Axis::amounts(&[0.5])), ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(labels(&Axis::amounts(&[])).first().map(String::as_str), Some("0"));
    }

    #[test]
    fn latencies_of_different_orders_of_magnitude_get_a_logarithmic_axis() {
        assert_eq!(labels(&Axis::latencies(&[1.0, 30.0])), ["1", "2", "5", "10", "20"]);
        assert_eq!(
            labels(&Axis::latencies(&[1.0, 90_000.0])),
            ["1", "10", "100", "1,000", "10,000", "100,000"]
        );
        assert_eq!(labels(&Axis::latencies(&[1.0, 2.0]))[0], "0");
        assert_eq!(labels(&Axis::logarithmic(&[20.0, 40.0])), ["20", "30", "40", "50"]);
        assert_eq!(labels(&Axis::logarithmic(&[0.0, 0.0])), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
    }

    #[test]
    fn each_nine_of_a_percentile_takes_the_same_room() {
        let axis = Axis::percentiles(4.5);
        let labels: Vec<String> = axis.ticks.iter().map(|tick| axis.label(*tick)).collect();
        assert_eq!(labels, ["0", "50", "90", "99", "99.9", "99.99"]);
        let [one, two, three] = [1.0, 2.0, 3.0].map(|nines| axis.map(&nines, (0, 1_000)));
        assert!((two - one).abs_diff(three - two) <= 1);
    }
}
