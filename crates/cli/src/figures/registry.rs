//! The figures of the papers, as data: one file for each paper, in the papers' order.

use serde::Deserialize;
use std::sync::OnceLock;

/// The papers' files, and Hotrow's own.
const PAPERS: &[&str] = &[
    include_str!("papers/sto.toml"),
    include_str!("papers/drp.toml"),
    include_str!("papers/plor.toml"),
    include_str!("papers/stealdb.toml"),
    include_str!("papers/dbx-tc.toml"),
    include_str!("papers/hotrow.toml"),
];

/// All figures.
pub(super) fn figures() -> &'static [Figure] {
    static FIGURES: OnceLock<Vec<Figure>> = OnceLock::new();
    FIGURES.get_or_init(|| {
        let read =
            |text: &&str| toml::from_str::<Paper>(text).expect("a test reads each of the files").figures;
        PAPERS.iter().flat_map(read).collect()
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Paper {
    #[serde(rename = "figure")]
    figures: Vec<Figure>,
}

/// A figure or a table of a paper.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figure {
    /// Paper and number, and the part if a figure has several: `drp.3`, `sto.5-genome`.
    pub(super) id: String,
    pub(super) title: String,
    /// Paper, section and figure.
    pub(super) source: String,
    /// The paper's set-up.
    pub(super) setting: String,
    /// The reason why it is not rerun as it is in the paper, and what stands for it.
    pub(super) substitute: Option<String>,
    pub(super) runs: Option<Runs>,
    /// The words after `hotrow sim`.
    #[serde(default)]
    pub(super) workload: String,
    /// The machine of the virtual cores.
    #[serde(default)]
    pub(super) machine: String,
    /// What differs from point to point: `cores`, `threads`, or an option of the workload.
    #[serde(default)]
    pub(super) x: String,
    /// Its values.
    #[serde(default)]
    pub(super) values: Vec<String>,
    /// Its values in a quick run.
    #[serde(default)]
    pub(super) quick: Vec<String>,
    /// The cores or threads, where another value differs.
    pub(super) cores: Option<usize>,
    /// The length of a simulated run.
    #[serde(default = "milliseconds")]
    pub(super) virtual_ms: u32,
    /// The length of a real run.
    #[serde(default = "second")]
    pub(super) seconds: f64,
    /// What the plot shows.
    #[serde(default)]
    pub(super) metric: Metric,
    #[serde(default)]
    pub(super) series: Vec<Series>,
    #[serde(default, rename = "claim")]
    pub(super) claims: Vec<Claim>,
}

fn milliseconds() -> u32 {
    5
}

fn second() -> f64 {
    1.0
}

/// The processors that a figure's runs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Runs {
    /// Virtual cores of the machine.
    Sim,
    /// Threads of this machine.
    Bench,
    /// Virtual cores, on which a STAMP application runs to completion. Only in builds that have them.
    Stamp,
}

/// A number that a report has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Metric {
    /// Commits per second.
    #[default]
    Throughput,
    /// A percentile of latency, in microseconds.
    P50,
    P99,
    P999,
    /// Aborts per commit.
    Aborts,
    /// Runs of an application to completion, in a second.
    Speed,
    /// The mean working set of hardware transactions, in bytes.
    WorkingSet,
}

impl Metric {
    pub(super) const ALL: [Metric; 7] = [
        Metric::Throughput,
        Metric::P50,
        Metric::P99,
        Metric::P999,
        Metric::Aborts,
        Metric::Speed,
        Metric::WorkingSet,
    ];

    /// The name in the registry.
    pub(super) fn name(self) -> &'static str {
        ["throughput", "p50", "p99", "p999", "aborts", "speed", "working-set"][self as usize]
    }

    /// The label of an axis.
    pub(super) fn label(self) -> &'static str {
        [
            "commits per second",
            "median of latency, µs",
            "99th percentile of latency, µs",
            "99.9th percentile of latency, µs",
            "aborts per commit",
            "runs per virtual second",
            "working set of a transaction, bytes",
        ][self as usize]
    }
}

/// A line of a plot.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) protocol: String,
    /// The words after `hotrow sim`, where they are not the figure's.
    pub(super) workload: Option<String>,
}

/// What a paper claims.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    /// The claim in words.
    pub(super) says: String,
    /// Its number.
    pub(super) paper: f64,
    /// Our number: a value, or a quotient of two.
    pub(super) ours: String,
    pub(super) kind: Kind,
    /// The reason why ours differs, if it is known. The pages print it where the claim does not hold.
    pub(super) reason: Option<String>,
}

/// The way in which our number is compared with the paper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// More is better.
    AtLeast,
    /// Less is better.
    AtMost,
    /// Neither is.
    About,
    /// Only the order counts.
    Order,
}

impl Kind {
    /// The name in the registry.
    pub(super) fn name(self) -> &'static str {
        ["at-least", "at-most", "about", "order"][self as usize]
    }
}

impl Figure {
    /// The paper's name: `drp` of `drp.3`.
    pub(super) fn paper(&self) -> &str {
        self.id.split('.').next().unwrap_or_default()
    }

    /// True if a name on the command line is that of the figure, or of its paper, or of the figure of which it is a part.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.id == name || self.paper() == name || self.is_part_of(name)
    }

    /// True if it is a part of a figure: `sto.5-genome` of `sto.5`.
    fn is_part_of(&self, name: &str) -> bool {
        name.contains('.') && self.id.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
    }

    /// True if it has runs that this build can make.
    pub(super) fn is_rerun(&self) -> bool {
        self.runs.is_some() && !self.is_left_out()
    }

    /// True if its runs need STAMP applications, which this build has not.
    pub(super) fn is_left_out(&self) -> bool {
        self.runs == Some(Runs::Stamp) && !cfg!(feature = "stamp")
    }

    /// The values of a whole or of a quick run.
    pub(super) fn values(&self, quick: bool) -> &[String] {
        if quick && !self.quick.is_empty() { &self.quick } else { &self.values }
    }

    /// True if the number of workers differs from point to point.
    pub(super) fn is_over_workers(&self) -> bool {
        ["cores", "threads"].contains(&self.x.as_str())
    }

    /// The arguments of the call that makes a point, without the command's name. `real`: on threads of this machine.
    pub(super) fn call(&self, series: &Series, value: &str, real: bool) -> Vec<String> {
        let workload = series.workload.as_deref().unwrap_or(&self.workload);
        let mut words: Vec<String> = workload.split_whitespace().map(str::to_owned).collect();
        let workers = match self.is_over_workers() {
            true => value.to_owned(),
            false => {
                words.extend([self.x.clone(), value.to_owned()]);
                self.cores.unwrap_or(1).to_string()
            }
        };
        words.insert(0, String::from(if real { "bench" } else { "sim" }));
        let mut add = |option: &str, value: &str| words.extend([option.to_owned(), value.to_owned()]);
        add("--protocol", &series.protocol);
        if real {
            add("--threads", &workers);
            add("--seconds", &self.seconds.to_string());
            add("--warmup", "0.2");
        } else {
            add("--cores", &workers);
            add("--machine", &self.machine);
            if self.runs != Some(Runs::Stamp) {
                add("--virtual-ms", &self.virtual_ms.to_string());
                add("--warmup-ms", "1");
            }
        }
        add("--format", "json");
        words
    }
}

#[cfg(test)]
mod tests {
    use super::super::claims::{Value, parse};
    use super::*;
    use crate::request::command;
    use hotrow::protocols::find;
    use hotrow_sim::Machine;
    use std::collections::BTreeSet;

    #[test]
    fn each_figure_can_be_run_and_each_claim_is_about_its_points() {
        let mut ids = BTreeSet::new();
        for figure in figures() {
            let id = &figure.id;
            assert!(ids.insert(id), "{id} is there twice");
            assert!(
                !figure.title.is_empty() && !figure.source.is_empty() && !figure.setting.is_empty(),
                "{id}"
            );
            let Some(runs) = figure.runs else {
                assert!(figure.substitute.is_some(), "{id} has neither runs nor a substitute");
                assert!(figure.series.is_empty() && figure.claims.is_empty(), "{id} has lines but no runs");
                continue;
            };
            assert!(!figure.values.is_empty() && !figure.series.is_empty(), "{id} has no points");
            assert!(
                figure.quick.iter().all(|value| figure.values.contains(value)),
                "{id}: {:?}",
                figure.quick
            );
            if runs != Runs::Bench {
                Machine::named(&figure.machine).unwrap_or_else(|error| panic!("{id}: {error}"));
            }
            for series in &figure.series {
                find(&series.protocol).unwrap_or_else(|error| panic!("{id}: {error}"));
                for value in &figure.values {
                    let words = figure.call(series, value, runs == Runs::Bench);
                    let parsed =
                        command().try_get_matches_from([&[String::from("hotrow")], &words[..]].concat());
                    parsed.unwrap_or_else(|error| panic!("{id}: {words:?}: {error}"));
                }
            }
            for claim in &figure.claims {
                let values = parse(&claim.ours).unwrap_or_else(|| panic!("{id}: {:?}", claim.ours));
                for Value { series, at, .. } in values {
                    assert!(
                        figure.series.iter().any(|known| known.name == series),
                        "{id}: no series {series:?}"
                    );
                    assert!(figure.values(true).contains(&at), "{id}: no point at {at:?} in a quick run");
                }
                assert!(claim.kind != Kind::Order || claim.paper == 1.0, "{id}: {}", claim.says);
                assert!(claim.paper > 0.0, "{id}: {}", claim.says);
                assert!(
                    claim.reason.as_ref().is_none_or(|reason| reason.ends_with('.')),
                    "{id}: {}",
                    claim.says
                );
            }
        }
        for (paper, numbers) in [("sto", 3..=7), ("plor", 6..=15), ("stealdb", 2..=6), ("dbx-tc", 10..=15)] {
            for number in numbers {
                let name = format!("{paper}.{number}");
                assert!(
                    figures().iter().any(|figure| figure.is_called(&name)),
                    "{name} is not in the registry"
                );
            }
        }
    }
}
