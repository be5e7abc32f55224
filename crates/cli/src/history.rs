//! Histories: `--record FILE` and `hotrow check FILE`.

use crate::arguments::{CheckArguments, Format, RecordingOptions};
use crate::error::CommandError;
use crate::text;
use crate::text::print;
use crate::whole_file::{WholeFile, cannot};
use hotrow::history::History;
use hotrow_check::{Counts, Report};
use serde_json::json;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

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

/// `hotrow check`.
pub(crate) fn check(arguments: &CheckArguments) -> Result<(), CommandError> {
    let CheckArguments { file, require, anomalies, format } = arguments;
    let bytes = File::open(file).map_err(|error| cannot("read", file, &error))?;
    let history = hotrow_check::file::read(&mut BufReader::new(bytes));
    let history = history.map_err(|error| cannot("read", file, &error))?;
    let mut report = hotrow_check::check(&history).map_err(|error| cannot("check", file, &error))?;
    let listed = report.anomalies.len();
    report.anomalies.truncate(*anomalies as usize);
    report.not_listed += (listed - report.anomalies.len()) as u64;
    print(&match format {
        Format::Table => format!("{report}\n"),
        Format::Json => format!("{}\n", in_json(file, &report)),
    })?;
    let (required, whose) = match require {
        Some(level) => (*level, "as required"),
        None => (report.claimed(), "as its protocol claims"),
    };
    if report.is(required) {
        Ok(())
    } else {
        Err(CommandError::Verdict(format!("{}: not {}, {whose}", file.display(), required.name())))
    }
}

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
