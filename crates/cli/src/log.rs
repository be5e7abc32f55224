//! `hotrow log`: looks at the files of a durable database, and changes none.

use crate::error::CommandError;
use crate::text;
use clap::{Arg, ArgMatches, Command, value_parser};
use hotrow::durable::storage::Directory;
use hotrow::durable::{DumpError, dump, verify};
use std::io::{self, Write as _};
use std::path::PathBuf;

/// The work on the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Verify,
    Dump,
}

/// A request to look at a database's files.
#[derive(Debug)]
pub(crate) struct LogPlan {
    work: Work,
    directory: PathBuf,
}

pub(crate) fn command() -> Command {
    let directory = || {
        Arg::new("directory")
            .value_name("DIR")
            .help("The database's directory, which no process has open")
            .required(true)
            .value_parser(value_parser!(PathBuf))
    };
    Command::new("log")
        .about("Checks or prints the log of a durable database")
        .after_help(
            "The exit status is 1 if the files are damaged. Remains of the last writes before a crash, of which nobody was told, are no \
             damage.\n\nExample:\n  hotrow log verify data",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(Command::new("verify").about("Reads all files as recovery does, and says what is there").arg(directory()))
        .subcommand(
            Command::new("dump").about("Prints tables, checkpoint and records, one entry a line").arg(directory()),
        )
}

pub(crate) fn plan(matches: &ArgMatches) -> LogPlan {
    let (name, matches) = matches.subcommand().expect("clap requires a subcommand");
    let work = if name == "dump" { Work::Dump } else { Work::Verify };
    let directory = matches.get_one::<PathBuf>("directory").expect("clap requires it");
    LogPlan { work, directory: directory.clone() }
}

pub(crate) fn run(plan: &LogPlan) -> Result<(), CommandError> {
    let storage =
        Directory::existing(&plan.directory).map_err(|error| CommandError::BadInput(error.to_string()))?;
    match plan.work {
        Work::Verify => {
            let report = verify(&storage).map_err(|error| CommandError::Verdict(error.to_string()))?;
            text::print(&format!("{report}\n"))?;
        }
        Work::Dump => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            match dump(&storage, &mut out) {
                Ok(()) => {}
                Err(DumpError::Output(error)) => return Err(error.into()),
                Err(error) => {
                    out.flush()?;
                    return Err(CommandError::Verdict(error.to_string()));
                }
            }
            out.flush()?;
        }
    }
    Ok(())
}
