//! Histories: `--record FILE` and `hotrow check FILE`.

use crate::arguments::{CheckArguments, Format, Level, Record};
use crate::run::{Stop, print};
use crate::text;
use hotrow::history::History;
use hotrow_check::{Counts, Report};
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Where a history will be written.
///
/// A file is written beside its final place and takes it when it is whole, so neither a run that fails nor a full
/// disk costs the file that was there before.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    bytes_max: usize,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Beside(NamedTempFile),
    /// Not a regular file: a pipe, a terminal.
    Itself(File),
}

impl Target {
    /// Opens the file, before the run that would be in vain if it cannot be opened.
    pub(crate) fn open(record: &Record) -> Result<Self, Stop> {
        let Record { path, bytes_max } = record;
        let place = match fs::metadata(path) {
            Ok(there) if there.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Ok(there) if !there.is_file() => File::options().write(true).open(path).map(Place::Itself),
            _ => beside(path).map(Place::Beside),
        };
        let place = place.map_err(|error| cannot("write", path, &error))?;
        Ok(Self { path: path.clone(), bytes_max: *bytes_max, place })
    }

    /// Writes the history.
    pub(crate) fn write(self, history: &History) -> Result<(), Stop> {
        let Self { path, bytes_max, place } = self;
        if !history.complete {
            eprintln!(
                "hotrow: the history has reached its bound of {} (--record-mb); what began later is not in it",
                text::memory(bytes_max as u64)
            );
        }
        let written = match place {
            Place::Beside(mut file) => whole(history, file.as_file_mut())
                .and_then(|()| file.persist(&path).map(drop).map_err(|error| error.error)),
            Place::Itself(mut file) => whole(history, &mut file),
        };
        written.map_err(|error| cannot("write", &path, &error))
    }
}

/// A new file in the directory of `path`, with the permissions that a new file has there.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".hotrow-history-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(directory.unwrap_or(Path::new(".")))
}

fn whole(history: &History, file: &mut File) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    hotrow_check::file::write(history, &mut file)?;
    file.flush()
}

fn cannot(what: &str, path: &Path, error: &dyn std::fmt::Display) -> Stop {
    Stop::History(format!("cannot {what} {}: {error}", path.display()))
}

/// `hotrow check`.
pub(crate) fn check(arguments: &CheckArguments) -> Result<(), Stop> {
    let CheckArguments { file, require, anomalies, format } = arguments;
    let bytes = File::open(file).map_err(|error| cannot("read", file, &error))?;
    let history = hotrow_check::file::read(&mut BufReader::new(bytes));
    let history = history.map_err(|error| cannot("read", file, &error))?;
    let mut report = hotrow_check::check(&history).map_err(|error| cannot("judge", file, &error))?;
    let listed = report.anomalies.len();
    report.anomalies.truncate(*anomalies as usize);
    report.not_listed += (listed - report.anomalies.len()) as u64;
    print(&match format {
        Format::Table => format!("{report}\n"),
        Format::Json => format!("{}\n", in_json(file, &report)),
    })?;
    let claimed = if report.claims_opacity { Level::Opaque } else { Level::Strict };
    let (required, whose) = match require {
        Some(level) => (*level, "as required"),
        None => (claimed, "as its protocol claims"),
    };
    if is(&report, required) {
        Ok(())
    } else {
        Err(Stop::Verdict(format!("{}: not {}, {whose}", file.display(), name(required))))
    }
}

fn is(report: &Report, level: Level) -> bool {
    match level {
        Level::Serializable => report.serializable,
        Level::Strict => report.strictly_serializable,
        Level::Opaque => report.opaque,
    }
}

fn name(level: Level) -> &'static str {
    match level {
        Level::Serializable => "serializable",
        Level::Strict => "strictly serializable",
        Level::Opaque => "opaque",
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
