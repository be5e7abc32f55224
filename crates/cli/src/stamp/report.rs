//! The results of `hotrow bench stamp`, for people and as JSON.

use super::plan::{NAME, SEQUENTIAL, Setup, StampPlan};
use crate::arguments::Format;
use crate::host::ThisHost;
use crate::text;
use hotrow_stamp::registry::ApplicationOptions;
use hotrow_stamp::{Failure, Outcome, Statistics};
use hotrow_workloads::Host as _;
use serde_json::{Map, Value, json};

/// One run.
#[derive(Debug)]
pub(super) struct StampRun {
    /// The index of its setup in the plan.
    pub(super) setup: usize,
    pub(super) round: u32,
    pub(super) seconds: f64,
    /// The sequential run's seconds, divided by this run's.
    pub(super) speed_up: f64,
    /// Of the sequential version, this and the next two are 0.
    pub(super) commits: u64,
    pub(super) aborts: u64,
    /// The items of the largest transaction.
    pub(super) items_max: u64,
    pub(super) statistics: Statistics,
    pub(super) verification: Result<(), Failure>,
}

impl StampRun {
    /// A run without transactions, whose place in the plan is set later.
    pub(super) fn of(outcome: Outcome) -> Self {
        let Outcome { elapsed, statistics, verification } = outcome;
        let seconds = elapsed.as_secs_f64();
        Self {
            setup: 0,
            round: 0,
            seconds,
            speed_up: 1.0,
            commits: 0,
            aborts: 0,
            items_max: 0,
            statistics,
            verification,
        }
    }
}

/// The result of the verification, for people.
pub(super) fn verdict(run: &StampRun) -> String {
    match &run.verification {
        Ok(()) => "right".to_owned(),
        Err(failure) => format!("wrong: {failure}"),
    }
}

/// The counts of the work that a run has done.
pub(super) fn counts(run: &StampRun) -> Map<String, Value> {
    run.statistics.counts().iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect()
}

/// The variant, protocol and threads of a setup.
fn names(setup: Setup) -> (&'static str, &'static str, usize) {
    match setup {
        Setup::Sequential => (SEQUENTIAL, "-", 1),
        Setup::Transactional { variant, protocol, threads } => (variant.name(), protocol, threads),
    }
}

/// The table of an application: the medians of all rounds.
pub(super) fn table(plan: &StampPlan, application: &ApplicationOptions, runs: &[StampRun]) -> String {
    let rows = plan.setups.iter().enumerate().map(|(at, setup)| {
        let own: Vec<&StampRun> = runs.iter().filter(|run| run.setup == at).collect();
        let median = |number: fn(&StampRun) -> f64| text::median(own.iter().map(|run| number(run)));
        let (variant, protocol, threads) = names(*setup);
        let count = |number: fn(&StampRun) -> f64| match setup {
            Setup::Sequential => "-".to_owned(),
            Setup::Transactional { .. } => text::count(median(number) as u64),
        };
        let wrong = own.iter().find(|run| run.verification.is_err());
        vec![
            variant.to_owned(),
            protocol.to_owned(),
            verdict(wrong.unwrap_or(&own[0])),
            threads.to_string(),
            text::quantity(median(|run| run.seconds)),
            match median(|run| run.speed_up) {
                speed_up if speed_up.is_finite() => format!("{speed_up:.2}"),
                _ => "-".to_owned(),
            },
            count(|run| run.commits as f64),
            count(|run| run.aborts as f64),
            count(|run| run.items_max as f64),
        ]
    });
    let header =
        ["variant", "protocol", "result", "threads", "seconds", "speed-up", "commits", "aborts", "items"];
    let rounds = match plan.repeat {
        1 => "one run each".to_owned(),
        rounds => format!("medians of {rounds} runs each"),
    };
    debug_assert_eq!(plan.format, Format::Table);
    format!("{} ({rounds})\n{}\n", application.name(), text::table(3, &header, rows))
}

/// One run as a JSON object in a line.
pub(super) fn json_line(
    plan: &StampPlan,
    application: &ApplicationOptions,
    run: &StampRun,
    host: &ThisHost,
) -> String {
    let (variant, protocol, threads) = names(plan.setups[run.setup]);
    let line = json!({
        "workload": NAME,
        "application": application.name(),
        "variant": variant,
        "protocol": protocol,
        "threads": threads,
        "round": run.round,
        "seconds": run.seconds,
        "speed_up": run.speed_up,
        "commits": run.commits,
        "aborts": run.aborts,
        "items_max": run.items_max,
        "verified": run.verification.is_ok(),
        "failure": run.verification.as_ref().err().map(ToString::to_string),
        "counts": counts(run),
        "options": { "preset": plan.preset, "set": plan.set },
        "revision": host.revision(),
        "machine": host.machine(),
    });
    format!("{line}\n")
}
