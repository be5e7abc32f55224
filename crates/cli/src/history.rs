//! Histories: `--record FILE` and `hotrow check FILE`.

use crate::arguments::{Format, Refusal, shortened};
use crate::error::CommandError;
use crate::run::RecordingOptions;
use crate::text;
use crate::text::print;
use crate::whole_file::{WholeFile, cannot};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use hotrow::history::History;
use hotrow_check::{Counts, Level, Report};
use serde_json::json;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The file to which a history will be written.
#[derive(Debug)]
pub(crate) struct HistoryFile {
    bytes_max: usize,
    file: WholeFile,
}

impl HistoryFile {
    /// Opens the file. Call it before the run, which would be useless if the file cannot be opened.
    pub(crate) fn open(record: &RecordingOptions) -> Result<Self, CommandError> {
        let RecordingOptions { path, bytes_max } = record;
        Ok(Self { bytes_max: *bytes_max, file: WholeFile::open(path)? })
    }

    /// Writes the history.
    pub(crate) fn write(self, history: &History) -> Result<(), CommandError> {
        let Self { bytes_max, file } = self;
        if !history.complete {
            eprintln!(
                "hotrow: the history has reached its bound of {} (--record-mb); attempts that began later are not in it",
                text::memory(bytes_max as u64)
            );
        }
        file.write(|mut file| hotrow_check::file::write(history, &mut file))
    }
}

/// The arguments of `hotrow check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The history file that --record has written
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The level that the history must reach: serializable, strict (serializable in real time), or opaque (aborted
    /// attempts have seen one consistent state, too) [default: the level that the recorded protocol claims]
    #[arg(long, value_parser = level(), value_name = "LEVEL", hide_possible_values = true)]
    require: Option<Level>,
    /// The largest number of anomalies to print
    #[arg(long, value_name = "N", default_value_t = 3)]
    anomalies: u32,
    /// Output format: "table", or "json" for one object
    #[arg(long, value_enum, default_value_t = Format::Table, hide_possible_values = true)]
    format: Format,
}

/// The names of [`Level::ALL`] on the command line.
const LEVELS: [&str; Level::ALL.len()] = ["serializable", "strict", "opaque"];

/// Parses one of [`LEVELS`].
fn level() -> impl TypedValueParser<Value = Level> {
    let at =
        |name: String| LEVELS.iter().position(|known| *known == name).expect("clap accepts no other name");
    PossibleValuesParser::new(LEVELS).map(move |name| Level::ALL[at(name)])
}

/// The subcommand.
pub(crate) fn command() -> Command {
    CheckArguments::augment_args(Command::new("check"))
        .about("Checks a recorded history: serializable, strictly serializable, opaque")
        .after_help(
            "The exit status is 1 if the history does not reach the required level, or cannot be read.\n\n\
             Example:\n  hotrow bench stress --threads 4 --seconds 1 --record stress.history\n  \
             hotrow check stress.history",
        )
}

/// Reads the arguments.
pub(crate) fn plan(matches: &ArgMatches) -> Result<CheckArguments, Refusal> {
    CheckArguments::from_arg_matches(matches).map_err(shortened)
}

/// `hotrow check`.
pub(crate) fn check(arguments: &CheckArguments) -> Result<(), CommandError> {
    let CheckArguments { file, require, anomalies, format } = arguments;
    let bytes = File::open(file).map_err(|error| cannot("read", file, &error))?;
    let history = hotrow_check::file::read(&mut BufReader::new(bytes));
    let history = history.map_err(|error| cannot("read", file, &error))?;
    let mut report = hotrow_check::check(&history).map_err(|error| cannot("check", file, &error))?;
    let (required, whose) = match require {
        Some(level) => (*level, "as required"),
        None => (report.claimed(), "as its protocol claims"),
    };
    let unclaimed = match format {
        Format::Table => take_unclaimed(&mut report, required),
        Format::Json => String::new(),
    };
    let listed = report.anomalies.len();
    report.anomalies.truncate(*anomalies as usize);
    report.not_listed += (listed - report.anomalies.len()) as u64;
    print(&match format {
        Format::Table => format!("{report}\n{unclaimed}"),
        Format::Json => format!("{}\n", in_json(file, &report)),
    })?;
    if report.is(required) {
        Ok(())
    } else {
        Err(CommandError::Verdict(format!("{}: not {}, {whose}", file.display(), required.name())))
    }
}

/// Takes the anomalies out of a report that violate nothing which is required, and returns a line about them; an empty text if there
/// are none.
fn take_unclaimed(report: &mut Report, required: Level) -> String {
    // They are in the order of levels, the weakest first.
    let first = report.anomalies.partition_point(|anomaly| anomaly.violates <= required);
    let unclaimed = report.anomalies.split_off(first);
    let [example, ..] = &unclaimed[..] else { return String::new() };
    // Only a level with a hundred of them has others that are not listed.
    let others = if first < LISTED_MAX { std::mem::take(&mut report.not_listed) } else { 0 };
    let flag =
        LEVELS[Level::ALL.iter().position(|level| *level == example.violates).expect("all levels are there")];
    format!(
        "\n{} more violate only what is not claimed, first {} (--require {flag} shows them)\n",
        text::count(unclaimed.len() as u64 + others),
        example.kind,
    )
}

/// The number of anomalies that a report lists of each level.
const LISTED_MAX: usize = 100;

fn in_json(file: &Path, report: &Report) -> serde_json::Value {
    let Counts { attempts, committed, aborted, rolled_back, unfinished, reads, writes, range_reads, .. } =
        report.counts;
    let anomalies = report
        .anomalies
        .iter()
        .map(|anomaly| json!({ "name": anomaly.kind.name(), "words": anomaly.to_string() }));
    json!({
        "file": file.display().to_string(),
        "protocol": report.protocol,
        "complete": report.complete,
        "serializable": report.serializable,
        "strictly_serializable": report.strictly_serializable,
        "opaque": report.opaque,
        "attempts": attempts,
        "committed": committed,
        "aborted": aborted,
        "rolled_back": rolled_back,
        "unfinished": unfinished,
        "reads": reads,
        "writes": writes,
        "range_reads": range_reads,
        "anomalies": anomalies.collect::<Vec<_>>(),
        "anomalies_not_listed": report.not_listed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotrow_check::{Anomaly, AnomalyKind};

    fn found(kind: AnomalyKind, violates: Level) -> Anomaly {
        Anomaly { kind, violates, steps: Vec::new() }
    }

    #[test]
    fn what_is_not_claimed_is_one_line() {
        let mut report = Report {
            protocol: String::from("occ"),
            claims_opacity: false,
            claims_strictness: true,
            complete: true,
            serializable: true,
            strictly_serializable: false,
            opaque: false,
            counts: Counts::default(),
            anomalies: vec![found(AnomalyKind::StaleRead, Level::Strict)],
            not_listed: 7,
        };
        assert_eq!(take_unclaimed(&mut report, Level::Strict), "");
        report.anomalies.extend([0; 3].map(|_| found(AnomalyKind::InconsistentState, Level::Opaque)));
        let all = report.clone();
        assert_eq!(take_unclaimed(&mut report, Level::Opaque), "");
        assert_eq!(report, all);
        assert_eq!(
            take_unclaimed(&mut report, Level::Strict),
            "\n10 more violate only what is not claimed, first inconsistent state seen by an attempt without effect \
             (--require opaque shows them)\n"
        );
        assert_eq!((report.anomalies.len(), report.not_listed), (1, 0));
    }
}
