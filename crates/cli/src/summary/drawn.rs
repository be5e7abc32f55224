//! Stealable operations: a line in the report of one run, and columns in tables of several runs.

use crate::text;
use hotrow_workloads::{DrawnReport, RunReport};

/// The counts of stealable operations in a run, if there were any.
fn drawn(report: &RunReport) -> Option<&DrawnReport> {
    report.drawn_operations.as_ref().filter(|drawn| drawn.all() != 0)
}

/// The share of operations that other workers ran, and the mean time of one, stolen or not.
pub(super) fn in_words(report: &RunReport) -> Option<String> {
    let drawn = drawn(report)?;
    let stolen = drawn.stolen_share?;
    let part = |share: f64, by: &str, mean_us: Option<f64>| {
        let mean = mean_us.map_or(String::new(), |mean| format!(" (mean {} µs)", text::quantity(mean)));
        format!("{} by {by}{mean}", percent(share))
    };
    Some(format!(
        "{} operations, run {}, {}",
        text::count(drawn.all()),
        part(stolen, "other workers", drawn.stolen_mean_us),
        part(1.0 - stolen, "their own", drawn.own_mean_us),
    ))
}

/// The columns on stealable operations in a table of runs. They are shown only if one of the runs had such
/// operations.
pub(super) struct Columns {
    are_shown: bool,
}

impl Columns {
    /// The columns for a table of these runs.
    pub(super) fn of<'a>(runs: impl IntoIterator<Item = &'a RunReport>) -> Self {
        Self { are_shown: runs.into_iter().any(|run| drawn(run).is_some()) }
    }

    /// The names of the columns.
    pub(super) fn header(&self) -> &'static [&'static str] {
        if self.are_shown { &["stolen", "stolen op µs", "own op µs"] } else { &[] }
    }

    /// The explanation of the names; empty if the columns are not shown.
    pub(super) fn legend(&self) -> &'static str {
        if self.are_shown {
            "; stolen: share of stealable operations that other workers ran; op µs: mean time of one operation"
        } else {
            ""
        }
    }

    /// The cells of a row: medians over its runs.
    pub(super) fn cells(&self, runs: &[&RunReport]) -> Vec<String> {
        if !self.are_shown {
            return Vec::new();
        }
        let median = |pick: fn(&DrawnReport) -> Option<f64>| {
            text::median(runs.iter().filter_map(|run| drawn(run)).filter_map(pick))
        };
        vec![
            percent(median(|drawn| drawn.stolen_share)),
            text::quantity(median(|drawn| drawn.stolen_mean_us)),
            text::quantity(median(|drawn| drawn.own_mean_us)),
        ]
    }
}

fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1}%", share * 100.0) } else { "-".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;
    use super::*;

    fn with(drawn: Option<DrawnReport>) -> RunReport {
        RunReport { drawn_operations: drawn, ..report(true) }
    }

    const NONE: DrawnReport =
        DrawnReport { own: 0, stolen: 0, stolen_share: None, own_mean_us: None, stolen_mean_us: None };

    const NONE_STOLEN: DrawnReport =
        DrawnReport { own: 64, stolen_share: Some(0.0), own_mean_us: Some(1.5), ..NONE };

    #[test]
    fn an_unknown_mean_is_left_out() {
        let words = in_words(&with(Some(NONE_STOLEN)));
        let expected = "64 operations, run 0.0% by other workers, 100.0% by their own (mean 1.50 µs)";
        assert_eq!(words.as_deref(), Some(expected));
    }

    #[test]
    fn without_stealable_operations_nothing_is_shown() {
        for none in [None, Some(NONE)] {
            let run = with(none);
            assert_eq!(in_words(&run), None);
            let columns = Columns::of([&run]);
            assert!(columns.header().is_empty() && columns.legend().is_empty());
            assert!(columns.cells(&[&run]).is_empty());
        }
    }

    #[test]
    fn columns_are_medians_and_empty_for_runs_without_stealable_operations() {
        let stolen =
            DrawnReport { stolen: 32, stolen_share: Some(0.5), stolen_mean_us: Some(3.36), ..NONE_STOLEN };
        let [none, one, other] = [with(None), with(Some(NONE_STOLEN)), with(Some(stolen))];
        let columns = Columns::of([&none, &one, &other]);
        assert_eq!(columns.header().len(), 3);
        assert_eq!(columns.cells(&[&none]), ["-", "-", "-"]);
        assert_eq!(columns.cells(&[&one, &other]), ["25.0%", "3.36", "1.50"]);
    }
}
