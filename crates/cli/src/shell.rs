//! `hotrow completions` and `hotrow man`: what a shell and a manual need, made from the definition of the command line.

use crate::error::CommandError;
use crate::text;
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use std::fs;
use std::path::PathBuf;

/// A request for completions or manual pages.
#[derive(Debug)]
pub(crate) enum ShellPlan {
    /// Prints the completions of a shell.
    Completions(Shell),
    /// Writes manual pages to a directory, or prints the first one.
    Manual(Option<PathBuf>),
}

pub(crate) fn completions_command() -> Command {
    Command::new("completions")
        .about("Prints the completions of a shell")
        .after_help("Example:\n  hotrow completions bash > ~/.local/share/bash-completion/completions/hotrow")
        .arg_required_else_help(true)
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .help("The shell")
                .required(true)
                .value_parser(value_parser!(Shell)),
        )
}

pub(crate) fn manual_command() -> Command {
    Command::new("man")
        .about("Prints the manual page, or writes those of all subcommands to a directory")
        .after_help(
            "Example:\n  hotrow man > hotrow.1 && man ./hotrow.1\n  hotrow man ~/.local/share/man/man1",
        )
        .arg(
            Arg::new("directory")
                .value_name("DIR")
                .help("The directory, which is there already")
                .value_parser(value_parser!(PathBuf)),
        )
}

pub(crate) fn plan(name: &str, matches: &ArgMatches) -> ShellPlan {
    if name == "man" {
        return ShellPlan::Manual(matches.get_one::<PathBuf>("directory").cloned());
    }
    ShellPlan::Completions(*matches.get_one::<Shell>("shell").expect("clap requires it"))
}

/// Makes what the plan says of `command`, the definition of the command line.
pub(crate) fn run(plan: &ShellPlan, mut command: Command) -> Result<(), CommandError> {
    let mut out = Vec::new();
    match plan {
        ShellPlan::Completions(shell) => clap_complete::generate(*shell, &mut command, "hotrow", &mut out),
        ShellPlan::Manual(None) => clap_mangen::Man::new(command).render(&mut out)?,
        ShellPlan::Manual(Some(directory)) => {
            if !fs::metadata(directory).is_ok_and(|found| found.is_dir()) {
                return Err(CommandError::BadInput(format!("{} is no directory", directory.display())));
            }
            let written = clap_mangen::generate_to(command, directory);
            return written.map_err(|error| CommandError::File(format!("{}: {error}", directory.display())));
        }
    }
    text::print(&String::from_utf8_lossy(&out))?;
    Ok(())
}
