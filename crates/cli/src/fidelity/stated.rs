//! The measured error: as a table, as a file, and in one line.

use crate::text;
use serde::{Deserialize, Serialize};

/// The results of one call of `hotrow fidelity`. They have no date, so that equal results give equal files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fidelity {
    /// The processor of the real runs.
    pub(crate) machine: String,
    /// The model of the simulated runs.
    pub(crate) model: String,
    /// The source revision of both.
    pub(crate) revision: String,
    /// The command that repeats the measurement.
    pub(crate) command: String,
    /// The measured points.
    #[serde(default, rename = "point")]
    pub(crate) points: Vec<MeasuredPoint>,
}

/// The result for one workload under one protocol with one number of threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeasuredPoint {
    /// The workload's name.
    pub(crate) workload: String,
    /// The workload's options that differ from the defaults, as given on a command line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) options: String,
    /// The protocol's name.
    pub(crate) protocol: String,
    /// Threads of the machine, and cores of the model.
    pub(crate) threads: usize,
    /// Commits per second on the machine: the median of its runs, or the quantile that the command names.
    pub(crate) real_per_s: f64,
    /// Commits per virtual second on the model.
    pub(crate) simulated_per_s: f64,
    /// The excess of the simulated throughput over the real one, in percent.
    pub(crate) error_percent: f64,
}

impl MeasuredPoint {
    /// The excess of `simulated` over `real`, in percent, rounded to a tenth.
    pub(crate) fn error_percent(real: f64, simulated: f64) -> f64 {
        ((simulated / real - 1.0) * 1_000.0).round() / 10.0
    }
}

impl Fidelity {
    /// The last saved results, which are kept beside the sources and compiled in.
    pub(crate) fn kept() -> Self {
        toml::from_str(KEPT).expect("a test reads the file that is compiled in")
    }

    /// The results as a TOML file.
    pub(crate) fn to_toml(&self) -> String {
        let toml = toml::to_string(self).expect("TOML has text and finite numbers");
        format!(
            "# Written by `hotrow fidelity --save`: the error of simulated throughput against real throughput.\n{toml}"
        )
    }

    /// The results as a table for people.
    pub(crate) fn table(&self) -> String {
        let rows = self.points.iter().map(|point| {
            let MeasuredPoint {
                workload,
                options,
                protocol,
                threads,
                real_per_s,
                simulated_per_s,
                error_percent,
            } = point;
            let workload =
                if options.is_empty() { workload.clone() } else { format!("{workload} {options}") };
            vec![
                workload,
                protocol.clone(),
                threads.to_string(),
                text::quantity(*real_per_s),
                text::quantity(*simulated_per_s),
                signed(*error_percent),
            ]
        });
        let header = ["workload", "protocol", "threads", "real commits/s", "simulated commits/s", "error %"];
        format!(
            "{} against virtual cores of {}\n\n{}\n{}\n",
            self.machine,
            self.model,
            text::table(2, &header, rows),
            self.in_words()
        )
    }

    /// The range of the errors by workload, in the line that stands below every simulated table.
    pub(crate) fn in_words(&self) -> String {
        let mut workloads: Vec<(&str, f64, f64)> = Vec::new();
        for MeasuredPoint { workload, error_percent, .. } in &self.points {
            match workloads.iter_mut().find(|(name, ..)| name == workload) {
                Some((_, least, most)) => {
                    *least = least.min(*error_percent);
                    *most = most.max(*error_percent);
                }
                None => workloads.push((workload, *error_percent, *error_percent)),
            }
        }
        if workloads.is_empty() {
            return String::from("error against real runs: not measured yet; `hotrow fidelity` measures it");
        }
        let mut threads: Vec<usize> = self.points.iter().map(|point| point.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        let threads: Vec<String> = threads.iter().map(usize::to_string).collect();
        let plural = if threads == ["1"] { "" } else { "s" };
        let ranges = workloads.iter().map(|(name, least, most)| {
            format!("{name} {} to {} %", signed(least.round()), signed(most.round()))
        });
        format!(
            "error against real runs at {} thread{plural} ({}, revision {}): {}; `hotrow fidelity` repeats the measurement",
            threads.join(" and "),
            self.machine,
            self.revision,
            ranges.collect::<Vec<_>>().join(", "),
        )
    }
}

/// The file of the last saved results.
const KEPT: &str = include_str!("../../fidelity.toml");

/// A number with its sign; zero has none.
fn signed(percent: f64) -> String {
    if percent == 0.0 { String::from("0") } else { format!("{percent:+}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(workload: &str, threads: usize, error_percent: f64) -> MeasuredPoint {
        let (workload, protocol) = (workload.to_owned(), "occ".to_owned());
        let options = String::new();
        MeasuredPoint {
            workload,
            options,
            protocol,
            threads,
            real_per_s: 1.0,
            simulated_per_s: 1.5,
            error_percent,
        }
    }

    fn fidelity(points: Vec<MeasuredPoint>) -> Fidelity {
        let [machine, model, revision, command] =
            ["Abacus 9", "this", "abc", "hotrow fidelity"].map(str::to_owned);
        Fidelity { machine, model, revision, command, points }
    }

    #[test]
    fn the_kept_results_can_be_read_and_stated() {
        let kept = Fidelity::kept();
        assert!(
            kept.in_words().starts_with("error against real runs") && kept.in_words().lines().count() == 1
        );
        assert!(kept.points.iter().all(|point| point.error_percent.is_finite()));
    }

    #[test]
    fn results_survive_a_round_trip_through_a_file() {
        let found = fidelity(vec![point("array", 1, -12.5), point("tpcc", 2, 3.0)]);
        assert_eq!(toml::from_str::<Fidelity>(&found.to_toml()).unwrap(), found);
    }

    #[test]
    fn the_error_is_relative_to_the_real_throughput() {
        assert_eq!(MeasuredPoint::error_percent(200.0, 150.0), -25.0);
        assert_eq!(MeasuredPoint::error_percent(3.0, 4.0), 33.3);
    }

    #[test]
    fn the_line_has_the_range_of_each_workload() {
        let found = fidelity(vec![
            point("array", 1, -12.3),
            point("array", 2, 7.8),
            point("tpcc", 1, -0.2),
            point("array", 1, 0.0),
        ]);
        assert_eq!(
            found.in_words(),
            "error against real runs at 1 and 2 threads (Abacus 9, revision abc): array -12 to +8 %, \
             tpcc 0 to 0 %; `hotrow fidelity` repeats the measurement"
        );
        assert!(fidelity(Vec::new()).in_words().contains("not measured yet"));
        assert!(found.table().contains("-12.3\n"), "{}", found.table());
    }
}
