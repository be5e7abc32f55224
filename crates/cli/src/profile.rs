//! The profile of a simulated run: as tables, and in JSON.

use crate::text;
use hotrow_sim::profile::{ByLabel, Cause, ProfileReport, Resource, ResourceKind};
use serde::Serialize;
use std::fmt::Write as _;

/// A resource that is busy for less than this share of the run does not limit it.
const LIMITS_FROM_PERCENT: f64 = 50.0;

/// A profile in JSON. Times are in virtual nanoseconds, over all cores.
#[derive(Debug, Serialize)]
pub(crate) struct ProfileJson {
    core_time_ns: u64,
    commits: u64,
    aborts: u64,
    committed: Vec<LabelJson>,
    aborted: Vec<LabelJson>,
    between: Vec<LabelJson>,
    waits: Vec<WaitJson>,
    lines: Vec<LineJson>,
    resources: Vec<ResourceJson>,
    limit: String,
}

#[derive(Debug, Serialize)]
struct LabelJson {
    label: &'static str,
    work_ns: u64,
    private_cache_ns: u64,
    memory_ns: u64,
    transfer_ns: u64,
    wait_ns: u64,
}

#[derive(Debug, Serialize)]
struct WaitJson {
    kind: &'static str,
    on: String,
    count: u64,
    ns: u64,
}

#[derive(Debug, Serialize)]
struct LineJson {
    on: String,
    lines: usize,
    transfers: u64,
    ns: u64,
    busy_ns_max: u64,
}

#[derive(Debug, Serialize)]
struct ResourceJson {
    kind: &'static str,
    on: String,
    uses: u64,
    busy_ns: u64,
    busy_percent: f64,
    bound_commits_per_s: f64,
}

impl ProfileJson {
    pub(crate) fn of(report: &ProfileReport) -> Self {
        let labels = |labels: &[ByLabel]| labels.iter().map(LabelJson::of).collect();
        Self {
            core_time_ns: core_time(report),
            commits: report.commits,
            aborts: report.aborts,
            committed: labels(&report.committed),
            aborted: labels(&report.aborted),
            between: labels(&report.between),
            waits: report
                .waits
                .iter()
                .map(|wait| WaitJson { kind: wait.kind, on: wait.on.clone(), count: wait.count, ns: wait.ns })
                .collect(),
            lines: report
                .lines
                .iter()
                .map(|line| LineJson {
                    on: line.on.clone(),
                    lines: line.lines,
                    transfers: line.transfers,
                    ns: line.ns,
                    busy_ns_max: line.busy_ns_max,
                })
                .collect(),
            resources: report
                .resources
                .iter()
                .map(|resource| ResourceJson {
                    kind: kind_of(resource),
                    on: resource.on.clone(),
                    uses: resource.uses,
                    busy_ns: resource.busy_ns,
                    busy_percent: percent(resource.busy_ns, report.elapsed_ns),
                    bound_commits_per_s: bound(report, resource),
                })
                .collect(),
            limit: limit(report),
        }
    }
}

impl LabelJson {
    fn of(label: &ByLabel) -> Self {
        Self {
            label: name_of(label),
            work_ns: label.of(Cause::Work),
            private_cache_ns: label.of(Cause::PrivateCache),
            memory_ns: label.of(Cause::Memory),
            transfer_ns: label.of(Cause::Transfer),
            wait_ns: label.of(Cause::Wait),
        }
    }
}

fn name_of(label: &ByLabel) -> &'static str {
    if label.label.is_empty() { "(no label)" } else { label.label }
}

fn kind_of(resource: &Resource) -> &'static str {
    match resource.kind {
        ResourceKind::Lock => "lock",
        ResourceKind::Line => "cache line",
        _ => "resource",
    }
}

fn core_time(report: &ProfileReport) -> u64 {
    report.elapsed_ns * report.cores as u64
}

fn percent(part: u64, whole: u64) -> f64 {
    // To a thousandth, so that JSON has no digits without meaning.
    if whole == 0 { 0.0 } else { (part as f64 * 100_000.0 / whole as f64).round() / 1_000.0 }
}

fn per_second(count: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 { 0.0 } else { count as f64 * 1e9 / elapsed_ns as f64 }
}

/// The throughput at which a resource would always be busy, if each commit used it for as long as in the run.
fn bound(report: &ProfileReport, resource: &Resource) -> f64 {
    (report.commits as f64 * 1e9 / resource.busy_ns.max(1) as f64).round()
}

/// Names the limit of a run in a sentence.
fn limit(report: &ProfileReport) -> String {
    let reached = per_second(report.commits, report.elapsed_ns);
    let busiest = report.resources.first();
    let Some(resource) = busiest.filter(|_| report.commits != 0) else {
        return String::from("no lock and no cache line was used by two cores");
    };
    let busy = percent(resource.busy_ns, report.elapsed_ns);
    let Resource { on, .. } = resource;
    let bound = text::quantity(bound(report, resource));
    let kind = kind_of(resource);
    if busy >= LIMITS_FROM_PERCENT {
        format!(
            "the {kind} of {on} was busy for {} % of the time, {} ns for each commit: it admits {bound} commits/s, of \
             which the run reached {}",
            text::quantity(busy),
            text::quantity(resource.busy_ns as f64 / report.commits as f64),
            text::quantity(reached),
        )
    } else {
        let (cause, share) = largest_cause(report);
        format!(
            "no lock or cache line was busy for half of the time (the {kind} of {on} for {} %, which admits {bound} \
             commits/s); {cause} took most of the cores' time, {} %",
            text::quantity(busy),
            text::quantity(share),
        )
    }
}

/// The largest cause, and its share.
fn largest_cause(report: &ProfileReport) -> (&'static str, f64) {
    let all = || report.committed.iter().chain(&report.between);
    let sum = |cause: Cause| all().map(|label| label.of(cause)).sum::<u64>();
    let aborted = report.aborted.iter().flat_map(|label| label.ns).sum::<u64>();
    let causes = [
        ("plain work", sum(Cause::Work)),
        ("hits in the cores' own caches", sum(Cause::PrivateCache)),
        ("memory and the third level", sum(Cause::Memory)),
        ("transfers between caches", sum(Cause::Transfer)),
        ("waits", sum(Cause::Wait)),
        ("work of attempts that did not commit", aborted),
    ];
    let (cause, ns) = causes.into_iter().max_by_key(|(_, ns)| *ns).expect("there are causes");
    (cause, percent(ns, core_time(report)))
}

/// Adds a table and an empty line; nothing if the table has no rows.
fn section(words: &mut String, names: usize, header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let rows: Vec<_> = rows.into_iter().collect();
    if !rows.is_empty() {
        let _ = writeln!(words, "{}", text::table(names, header, rows));
    }
}

/// The profile of a run as tables.
pub(crate) fn words(heading: &str, report: &ProfileReport) -> String {
    let total = core_time(report);
    let share = |ns: u64| format!("{:.1}", percent(ns, total));
    let row = |name: String, ns: [u64; 5]| {
        let shares = ns.into_iter().map(share).chain([share(ns.iter().sum())]);
        [name].into_iter().chain(shares).collect::<Vec<_>>()
    };
    let mut sum = [0; 5];
    let mut rows = Vec::new();
    for (state, labels) in
        [("committed", &report.committed), ("aborted", &report.aborted), ("between", &report.between)]
    {
        for label in labels {
            sum.iter_mut().zip(label.ns).for_each(|(sum, ns)| *sum += ns);
            rows.push(row(format!("{state}: {}", name_of(label)), label.ns));
        }
    }
    rows.push(row(String::from("all"), sum));
    let mut words = format!("profile of {heading}\n");
    let header = ["% of the cores' time", "work", "own caches", "memory", "transfers", "waits", "all"];
    let _ = writeln!(words, "{}", text::table(1, &header, rows));

    let rows = report.waits.iter().map(|wait| {
        let mean = text::quantity(wait.ns as f64 / wait.count.max(1) as f64);
        vec![wait.kind.to_owned(), wait.on.clone(), text::count(wait.count), mean, share(wait.ns)]
    });
    section(&mut words, 2, &["waits for", "of", "waits", "ns each", "% of time"], rows);

    let rows = report.lines.iter().map(|line| {
        let mean = text::quantity(line.ns as f64 / line.transfers.max(1) as f64);
        let busiest = format!("{:.1}", percent(line.busy_ns_max, report.elapsed_ns));
        let (lines, transfers) = (line.lines.to_string(), text::count(line.transfers));
        vec![line.on.clone(), lines, transfers, mean, share(line.ns), busiest]
    });
    let header = ["transfers of", "lines", "transfers", "ns each", "% of time", "busiest, % of run"];
    section(&mut words, 1, &header, rows);

    let rows = report.resources.iter().map(|resource| {
        let per_commit = text::quantity(resource.busy_ns as f64 / report.commits.max(1) as f64);
        let busy = format!("{:.1}", percent(resource.busy_ns, report.elapsed_ns));
        let (kind, on) = (kind_of(resource).to_owned(), resource.on.clone());
        let admits = text::quantity(bound(report, resource));
        vec![kind, on, text::count(resource.uses), per_commit, busy, admits]
    });
    let header = ["serial resource", "of", "uses", "ns per commit", "busy, % of run", "admits commits/s"];
    section(&mut words, 2, &header, rows);
    let _ = writeln!(words, "limit: {}\n", limit(report));
    words
}
