//! The points of figures: calls of this command, and their reports in a file.
//!
//! Each line of the file is one point: the call, the revision of the command that made it, and the report. A line is written when its
//! run has ended, so that nothing is lost but the runs in progress if the command is killed; a line that was cut off is not used. Nor is
//! one of another revision, but for pages that are made from an archive: these take the last report of each call, and say of which
//! revisions the reports are.
//!
//! Simulated runs do not disturb each other, so as many are made at once as there are cores. Real runs are made alone, after them.

use super::registry::{Figure, Metric, Runs, Series};
use crate::error::CommandError;
use crate::run::this_program;
use crate::stamp;
use flate2::read::MultiGzDecoder;
use hotrow::sync::clock::{self, Duration};
use hotrow::sync::{Mutex, lock, thread};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The file of the reports, in the directory of the page.
const FILE: &str = "reports.jsonl";

/// The same, compressed: what an archive keeps.
const ARCHIVE: &str = "reports.jsonl.gz";

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    call: String,
    revision: String,
    report: Value,
}

/// The values of a report, in the order of [`Metric::ALL`]; `None` for a metric that it does not have.
type Values = [Option<f64>; Metric::ALL.len()];

/// The values of points, by their calls.
pub(super) struct Results {
    directory: PathBuf,
    revision: String,
    reports: HashMap<String, Values>,
    /// True if the file's last line was cut off.
    is_cut_off: bool,
}

/// The reports of an archive, and where they come from.
pub(super) struct Archive {
    pub(super) results: Results,
    /// The revision of the reports; of several, with the number of reports of each, in the order of the file.
    pub(super) revision: String,
    /// The machine of the runs that are not simulated, in words.
    pub(super) machine: String,
}

/// A point that is to be measured.
struct Point {
    figure: String,
    call: Vec<String>,
    real: bool,
}

impl Results {
    /// Opens a directory, which is made if there is none, and reads what was measured there.
    pub(super) fn open(directory: &Path, revision: &str) -> Result<Self, CommandError> {
        let cannot = |what: &str, error: &dyn std::fmt::Display| {
            CommandError::File(format!("cannot {what} {}: {error}", directory.display()))
        };
        fs::create_dir_all(directory).map_err(|error| cannot("make", &error))?;
        let text = match fs::read_to_string(directory.join(FILE)) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(cannot("read the reports in", &error)),
        };
        let mut reports = HashMap::new();
        for line in text.lines() {
            // A line that was cut off, or is another version's, is measured again.
            let Ok(line) = serde_json::from_str::<Line>(line) else { continue };
            if line.revision == revision
                && let Ok(values) = values(&line.report)
            {
                reports.insert(line.call, values);
            }
        }
        let is_cut_off = !text.is_empty() && !text.ends_with('\n');
        Ok(Self { directory: directory.to_owned(), revision: revision.to_owned(), reports, is_cut_off })
    }

    /// Reads the reports of an archive, whatever their revision. Of one call the last report counts.
    pub(super) fn of_archive(directory: &Path) -> Result<Archive, CommandError> {
        let text = read_archive(directory)?;
        let mut reports = HashMap::new();
        let mut revisions_of_calls: Vec<(String, String)> = Vec::new();
        let mut machine = String::from("unknown");
        for line in text.lines() {
            let Ok(line) = serde_json::from_str::<Line>(line) else { continue };
            let Ok(values) = values(&line.report) else { continue };
            if line.report["virtual"] != true
                && let Some(words) = machine_of(&line.report)
            {
                machine = words;
            }
            if reports.insert(line.call.clone(), values).is_some() {
                revisions_of_calls.retain(|(call, _)| *call != line.call);
            }
            revisions_of_calls.push((line.call, line.revision));
        }
        let mut revisions: Vec<(String, usize)> = Vec::new();
        for (_, revision) in revisions_of_calls {
            match revisions.iter_mut().find(|(known, _)| *known == revision) {
                Some((_, count)) => *count += 1,
                None => revisions.push((revision, 1)),
            }
        }
        if revisions.is_empty() {
            return Err(CommandError::File(format!("no report in {}", directory.display())));
        }
        let revision = match &revisions[..] {
            [(revision, _)] => revision.clone(),
            several => {
                let words = several.iter().map(|(revision, count)| format!("{revision} ({count} runs)"));
                words.collect::<Vec<_>>().join(", ")
            }
        };
        let results =
            Self { directory: directory.to_owned(), revision: revision.clone(), reports, is_cut_off: false };
        Ok(Archive { results, revision, machine })
    }

    /// True if the point of any of a figure's lines was measured.
    pub(super) fn has_any_of(&self, figure: &Figure) -> bool {
        let is_real = figure.runs == Some(Runs::Bench);
        figure.series.iter().any(|series| {
            let is_known =
                |at: &String| self.reports.contains_key(&figure.call(series, at, is_real).join(" "));
            figure.values.iter().any(is_known)
        })
    }

    /// A metric of a point; `None` if its run failed.
    pub(super) fn value(&self, figure: &Figure, series: &Series, at: &str, metric: Metric) -> Option<f64> {
        self.measured(figure, series, at, metric, figure.runs == Some(Runs::Bench))
    }

    /// As [`value`](Self::value), on threads of this machine if `real`.
    pub(super) fn measured(
        &self,
        figure: &Figure,
        series: &Series,
        at: &str,
        metric: Metric,
        real: bool,
    ) -> Option<f64> {
        self.reports.get(&figure.call(series, at, real).join(" "))?[metric as usize]
    }

    /// Measures the points of these figures that are not there yet. Returns what failed, in words.
    pub(super) fn run(&mut self, figures: &[&Figure], quick: bool) -> Result<Vec<String>, CommandError> {
        let (mut simulated, mut real): (Vec<Point>, Vec<Point>) =
            missing(figures, quick, &self.reports).into_iter().partition(|point| !point.real);
        if simulated.is_empty() && real.is_empty() {
            return Ok(Vec::new());
        }
        let path = self.directory.join(FILE);
        let file = File::options().create(true).append(true).open(&path);
        let mut file = file.map_err(|error| cannot_write(&path, &error))?;
        if std::mem::take(&mut self.is_cut_off) {
            file.write_all(b"\n").map_err(|error| cannot_write(&path, &error))?;
        }
        let bar = Bar::new(simulated.len() + real.len());
        // The first in line is the last in the list.
        simulated.reverse();
        real.reverse();
        let shared = Mutex::new(Shared {
            file,
            reports: std::mem::take(&mut self.reports),
            failed: Vec::new(),
            error: None,
        });
        let revision = self.revision.as_str();
        for (points, at_once) in [(simulated, thread::parallelism()), (real, 1)] {
            let points = Mutex::new(points);
            thread::scope(|scope| {
                for _ in 0..at_once {
                    scope.spawn(|| {
                        while lock(&shared).error.is_none()
                            && let Some(point) = { lock(&points).pop() }
                        {
                            bar.begin(&point);
                            let outcome = make(&point.call);
                            lock(&shared).take(&point, outcome, revision);
                            bar.end();
                        }
                    });
                }
            });
        }
        let Shared { reports, failed, error, .. } =
            shared.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.reports = reports;
        match error {
            Some(error) => Err(cannot_write(&path, &error)),
            None => Ok(failed),
        }
    }
}

/// The lines of an archive: those of the compressed file, and then those of the other one.
fn read_archive(directory: &Path) -> Result<String, CommandError> {
    let mut text = String::new();
    for name in [ARCHIVE, FILE] {
        let path = directory.join(name);
        let read = File::open(&path).and_then(|mut file| match name {
            ARCHIVE => MultiGzDecoder::new(file).read_to_string(&mut text),
            _ => file.read_to_string(&mut text),
        });
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(CommandError::File(format!("cannot read {}: {error}", path.display()))),
        }
    }
    Ok(text)
}

/// The machine of a report in words.
fn machine_of(report: &Value) -> Option<String> {
    let machine = &report["machine"];
    let [cpu, os] = [machine["cpu"].as_str()?, machine["os"].as_str()?];
    Some(machine_in_words(cpu, machine["cores"].as_u64()?, os))
}

/// A machine in words.
pub(super) fn machine_in_words(cpu: &str, cores: u64, os: &str) -> String {
    format!("{cpu}, {cores} cores, {os}")
}

fn cannot_write(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::File(format!("cannot write {}: {error}", path.display()))
}

/// The points of figures that have no report, each once.
fn missing(figures: &[&Figure], quick: bool, reports: &HashMap<String, Values>) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut add = |figure: &Figure, call: Vec<String>, real: bool| {
        let is_known = reports.contains_key(&call.join(" ")) || points.iter().any(|point| point.call == call);
        if !is_known {
            points.push(Point { figure: figure.id.clone(), call, real });
        }
    };
    for figure in figures {
        let Some(runs) = figure.runs.filter(|_| figure.is_rerun()) else { continue };
        for value in figure.values(quick) {
            for series in &figure.series {
                add(figure, figure.call(series, value, runs == Runs::Bench), runs == Runs::Bench);
            }
        }
        for value in real_values(figure, quick) {
            for series in &figure.series {
                add(figure, figure.call(series, value, true), true);
            }
        }
    }
    points
}

/// The numbers of workers of a simulated figure that this machine has cores for: these are run on threads, too. Not in a quick run.
pub(super) fn real_values(figure: &Figure, quick: bool) -> impl Iterator<Item = &String> {
    let is_simulated = figure.runs == Some(Runs::Sim) && figure.is_over_workers() && !quick;
    let fits = |value: &&String| value.parse::<usize>().is_ok_and(|workers| workers <= thread::parallelism());
    figure.values(quick).iter().filter(move |value| is_simulated && fits(value))
}

/// What the threads that make points share.
struct Shared {
    file: File,
    reports: HashMap<String, Values>,
    failed: Vec<String>,
    error: Option<std::io::Error>,
}

impl Shared {
    fn take(&mut self, point: &Point, outcome: Result<(Values, Value), String>, revision: &str) {
        let call = point.call.join(" ");
        let (values, report) = match outcome {
            Ok(made) => made,
            Err(reason) => return self.failed.push(format!("{}: `hotrow {call}`: {reason}", point.figure)),
        };
        let line = Line { call: call.clone(), revision: revision.to_owned(), report };
        let written = serde_json::to_string(&line).map_err(std::io::Error::from);
        // In one write, so that a line is whole or is the last one.
        if let Err(error) = written.and_then(|line| self.file.write_all(format!("{line}\n").as_bytes())) {
            self.error.get_or_insert(error);
        }
        self.reports.insert(call, values);
    }
}

/// Makes a run in a process of its own. Returns its report, and what is shown of it.
fn make(call: &[String]) -> Result<(Values, Value), String> {
    let program = this_program().map_err(|error| error.to_string())?;
    let ended = Command::new(program).args(call).stdin(Stdio::null()).stderr(Stdio::piped()).output();
    let ended = ended.map_err(|error| error.to_string())?;
    if !ended.status.success() {
        let errors = String::from_utf8_lossy(&ended.stderr);
        return Err(errors.lines().last().unwrap_or("it has said nothing").to_owned());
    }
    let unreadable = |error: String| format!("its report cannot be read: {error}");
    let report = serde_json::from_slice(&ended.stdout).map_err(|error| unreadable(error.to_string()))?;
    Ok((values(&report).map_err(unreadable)?, report))
}

/// Reads the values of a report, also of one that another revision has written.
fn values(report: &Value) -> Result<Values, String> {
    let number = |at: &str| report.pointer(at).and_then(Value::as_f64);
    let counts = number("/aborts").zip(number("/commits"));
    let aborts = counts.map(|(aborts, commits)| if aborts == 0.0 { 0.0 } else { aborts / commits });
    if report["workload"] == stamp::NAME {
        let speed = number("/virtual_seconds").map(|seconds| 1.0 / seconds);
        return Ok([None, None, None, None, aborts, speed, None]);
    }
    let throughput = number("/throughput_per_s").ok_or("it has no throughput")?;
    Ok([
        Some(throughput),
        number("/latency_us/p50"),
        number("/latency_us/p99"),
        number("/latency_us/p999"),
        aborts,
        None,
        number("/working_set/bytes"),
    ])
}

/// The progress of all points, with the time that is left.
struct Bar {
    bar: ProgressBar,
    begun: clock::Instant,
}

impl Bar {
    fn new(points: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(points as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:30} {pos} of {len} points {wide_msg}");
        bar.set_style(style.expect("the template is a constant that parses"));
        Self { bar, begun: clock::now() }
    }

    fn begin(&self, point: &Point) {
        let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let left = match done {
            0 => String::new(),
            _ => {
                let left = self.begun.elapsed().mul_f64((all - done) as f64 / done as f64);
                format!(", about {} min left", left.max(Duration::from_secs(30)).as_secs().div_ceil(60))
            }
        };
        self.bar.set_message(format!("{}{left}", point.figure));
    }

    fn end(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
