//! Counters that protocols name: a line in the report of one run, and columns in tables of several runs.

use crate::text;
use hotrow_workloads::{CounterReport, CounterValue, RunReport};

/// The counters of a run, those that have no value left out. `None` if no counter has one.
pub(super) fn in_words(report: &RunReport) -> Option<String> {
    let words = report.counters.iter().filter_map(|counted| {
        let value = match counted.value {
            CounterValue::Count(count) => text::count(count),
            _ => shown(counted.value, figure(counted.value)?),
        };
        Some(format!("{} {value}", words(counted)))
    });
    let words: Vec<_> = words.collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The name without its unit, which stands behind the value.
fn words(counted: &CounterReport) -> String {
    let name = counted.counter.name();
    name.strip_suffix("_us").unwrap_or(name).replace('_', " ")
}

/// The figure of a counter that runs can be compared by, whatever their length. `None` for counts, and for a figure
/// without events.
fn figure(value: CounterValue) -> Option<f64> {
    match value {
        CounterValue::MeanUs(figure) | CounterValue::Share(figure) => figure,
        _ => None,
    }
}

/// A figure with the unit of a value.
fn shown(unit: CounterValue, figure: f64) -> String {
    match unit {
        CounterValue::MeanUs(_) => format!("{} µs", text::quantity(figure)),
        _ => percent(figure),
    }
}

/// The columns on counters in a table of runs: the shares and means that one of the runs has.
pub(super) struct Columns {
    /// One counter for each column.
    shown: Vec<CounterReport>,
}

impl Columns {
    /// The columns for a table of these runs.
    pub(super) fn of<'a>(runs: impl IntoIterator<Item = &'a RunReport>) -> Self {
        let mut shown: Vec<CounterReport> = Vec::new();
        let figures = runs.into_iter().flat_map(|run| &run.counters);
        for counted in figures.filter(|counted| figure(counted.value).is_some()) {
            if shown.iter().all(|known| known.counter != counted.counter) {
                shown.push(*counted);
            }
        }
        Self { shown }
    }

    /// The names of the columns.
    pub(super) fn header(&self) -> Vec<String> {
        let unit = |value| if matches!(value, CounterValue::MeanUs(_)) { " µs" } else { "" };
        self.shown.iter().map(|counted| format!("{}{}", words(counted), unit(counted.value))).collect()
    }

    /// The explanation of the names; empty if there are no columns.
    pub(super) fn legend(&self) -> String {
        let legend =
            self.shown.iter().map(|counted| format!("; {}: {}", words(counted), counted.counter.about()));
        legend.collect()
    }

    /// The cells of a row: medians over its runs.
    pub(super) fn cells(&self, runs: &[&RunReport]) -> Vec<String> {
        let median = |column: &CounterReport| {
            let counters = runs.iter().flat_map(|run| &run.counters);
            let same = counters.filter(|counted| counted.counter == column.counter);
            text::median(same.filter_map(|counted| figure(counted.value)))
        };
        let cell = |column: &CounterReport| match column.value {
            CounterValue::MeanUs(_) => text::quantity(median(column)),
            _ => percent(median(column)),
        };
        self.shown.iter().map(cell).collect()
    }
}

fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1}%", share * 100.0) } else { "-".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;
    use super::*;
    use hotrow_workloads::Counter;

    fn with(counters: &[CounterReport]) -> RunReport {
        RunReport { counters: counters.to_vec(), ..report(true) }
    }

    fn stealing(stolen: u64, share: Option<f64>, mean_us: Option<f64>) -> RunReport {
        with(&[
            CounterReport { counter: &Counter::STOLEN_OPERATIONS, value: CounterValue::Count(stolen) },
            CounterReport { counter: &Counter::STOLEN_SHARE, value: CounterValue::Share(share) },
            CounterReport { counter: &Counter::STOLEN_MEAN_US, value: CounterValue::MeanUs(mean_us) },
        ])
    }

    #[test]
    fn an_unknown_mean_is_left_out() {
        let words = in_words(&stealing(0, Some(0.0), None));
        assert_eq!(words.as_deref(), Some("stolen operations 0, stolen share 0.0%"));
    }

    #[test]
    fn without_figures_there_are_no_columns() {
        assert_eq!(in_words(&with(&[])), None);
        for none in [with(&[]), stealing(0, None, None)] {
            let columns = Columns::of([&none]);
            assert!(columns.header().is_empty() && columns.legend().is_empty());
            assert!(columns.cells(&[&none]).is_empty());
        }
    }

    #[test]
    fn columns_are_medians_and_empty_for_runs_without_figures() {
        let (one, other) = (stealing(0, Some(0.0), None), stealing(32, Some(0.5), Some(3.36)));
        let none = with(&[]);
        let columns = Columns::of([&none, &one, &other]);
        assert_eq!(columns.header(), ["stolen share", "stolen mean µs"]);
        assert_eq!(columns.cells(&[&none]), ["-", "-"]);
        assert_eq!(columns.cells(&[&one, &other]), ["25.0%", "3.36"]);
    }
}
