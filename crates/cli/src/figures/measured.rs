//! Measurements beside the papers' figures: against peers, against earlier revisions, against targets.
//!
//! Three files in the directory of results are the data. `measured.jsonl` has a JSON object a line ([`Measurement`]); `machines.json`
//! names the machines, `subjects.json` the tables in their order. A line that does not say how it was measured is refused.

use crate::error::CommandError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The measurements, with the words of their machines and subjects.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) subjects: Vec<Subject>,
    /// Machines in words, by their names.
    pub(super) machines: BTreeMap<String, String>,
    /// In the order of the file.
    pub(super) measurements: Vec<Measurement>,
}

/// The subject of the measurements of one section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Subject {
    pub(super) id: String,
    pub(super) title: String,
    /// The way in which it was measured, and what the numbers mean.
    pub(super) words: String,
    /// True if each row of its table has a revision and a command of its own.
    #[serde(default)]
    pub(super) has_commands_in_rows: bool,
}

/// A result of ours, or of another, or both.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measurement {
    pub(super) subject: String,
    /// The work that was done.
    pub(super) work: String,
    /// The threads, or clients, or virtual cores.
    pub(super) threads: Option<u32>,
    pub(super) ours: Option<Side>,
    /// A peer, an earlier revision, or a target.
    pub(super) other: Option<Side>,
    /// The unit of the values.
    pub(super) unit: String,
    /// Ours to the other: the median over the rounds, which is not the ratio of the medians.
    pub(super) ratio: Option<f64>,
    /// The least ratio of the rounds, and the largest.
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) command: String,
    pub(super) revision: String,
    pub(super) date: String,
    pub(super) machine: String,
}

/// One side of a comparison.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Side {
    pub(super) name: String,
    /// `None` if only the ratio is known.
    pub(super) value: Option<f64>,
}

impl Measured {
    /// Reads the three files in a directory.
    pub(super) fn read(directory: &Path) -> Result<Self, CommandError> {
        let read = |name: &str| {
            let path = directory.join(name);
            fs::read_to_string(&path)
                .map_err(|error| CommandError::File(format!("cannot read {}: {error}", path.display())))
        };
        let [machines, subjects, lines] =
            [read("machines.json")?, read("subjects.json")?, read("measured.jsonl")?];
        Self::parse(&machines, &subjects, &lines)
            .map_err(|error| CommandError::File(format!("in {}: {error}", directory.display())))
    }

    /// Reads the contents of the three files. An error names the line.
    fn parse(machines: &str, subjects: &str, lines: &str) -> Result<Self, String> {
        let machines: BTreeMap<String, String> =
            serde_json::from_str(machines).map_err(|error| format!("machines.json: {error}"))?;
        let subjects: Vec<Subject> =
            serde_json::from_str(subjects).map_err(|error| format!("subjects.json: {error}"))?;
        let mut measurements: Vec<Measurement> = Vec::new();
        for (at, line) in lines.lines().enumerate() {
            let place = |error: String| format!("measured.jsonl, line {}: {error}", at + 1);
            let measurement: Measurement =
                serde_json::from_str(line).map_err(|error| place(error.to_string()))?;
            measurement.check().map_err(place)?;
            if !machines.contains_key(&measurement.machine) {
                return Err(place(format!("machine {:?} is not in machines.json", measurement.machine)));
            }
            if !subjects.iter().any(|subject| subject.id == measurement.subject) {
                return Err(place(format!("subject {:?} is not in subjects.json", measurement.subject)));
            }
            measurements.push(measurement);
        }
        Ok(Self { subjects, machines, measurements })
    }
}

impl Measurement {
    /// Checks what the types do not: that it says how it was measured, and that its numbers fit each other.
    fn check(&self) -> Result<(), String> {
        let words = [
            ("work", &self.work),
            ("unit", &self.unit),
            ("command", &self.command),
            ("revision", &self.revision),
            ("date", &self.date),
            ("machine", &self.machine),
        ];
        if let Some((name, _)) = words.iter().find(|(_, words)| words.trim().is_empty()) {
            return Err(format!("{name} is empty"));
        }
        if self.ours.is_none() && self.other.is_none() {
            return Err(String::from("it has neither ours nor other"));
        }
        if self.ratio.is_some() && (self.ours.is_none() || self.other.is_none()) {
            return Err(String::from("a ratio needs ours and other"));
        }
        let is_in_range = match (self.ratio, self.low, self.high) {
            (Some(ratio), Some(low), Some(high)) => low <= ratio && ratio <= high,
            (_, None, None) => true,
            _ => false,
        };
        if !is_in_range {
            return Err(String::from("low and high are the ends of a range that has the ratio"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parsed(line: &Value) -> Result<Measured, String> {
        let subjects = r#"[{"id": "peers", "title": "Peers", "words": "By turns."}]"#;
        Measured::parse(r#"{"epyc": "two cores"}"#, subjects, &line.to_string())
    }

    fn line() -> Value {
        json!({
            "subject": "peers", "work": "array", "threads": 2, "ours": {"name": "occ", "value": 2.0},
            "other": {"name": "STO", "value": 4.0}, "unit": "commits/s", "ratio": 0.5, "low": 0.4, "high": 0.6,
            "command": "hotrow bench array", "revision": "aa65dcc3", "date": "2026-11-30", "machine": "epyc",
        })
    }

    #[test]
    fn a_line_that_does_not_say_how_it_was_measured_is_refused() {
        assert_eq!(parsed(&line()).unwrap().measurements.len(), 1);
        for name in ["command", "revision", "machine"] {
            let mut without = line();
            without.as_object_mut().unwrap().remove(name);
            let error = parsed(&without).unwrap_err();
            assert!(error.contains("line 1") && error.contains(name), "{error}");
            let mut empty = line();
            empty[name] = json!("");
            assert_eq!(parsed(&empty).unwrap_err(), format!("measured.jsonl, line 1: {name} is empty"));
        }
    }

    #[test]
    fn numbers_and_names_that_do_not_fit_are_refused() {
        for (name, value) in [
            ("machine", json!("another")),
            ("subject", json!("another")),
            ("ratio", json!(0.7)),
            ("high", json!(null)),
            ("other", json!(null)),
            ("speed", json!(1)),
        ] {
            let mut wrong = line();
            wrong[name] = value;
            assert!(parsed(&wrong).is_err(), "{name}");
        }
    }
}
