//! The command line as a whole: its definition from all subcommands, and the request that it parses into.

use crate::arguments::{Refusal, refused, unknown};
#[cfg(not(feature = "sim"))]
use crate::arguments::{no_simulator, without_feature};
use crate::host::ThisHost;
use crate::text;
use clap::Command;
use std::env;

/// A parsed command line.
#[derive(Debug)]
pub(crate) enum Request {
    /// Measures a workload.
    Bench(crate::run::BenchPlan),
    /// Measures STAMP applications.
    #[cfg(feature = "stamp")]
    Stamp(crate::stamp::StampPlan),
    /// Measures several protocols in turn.
    Compare(crate::run::BenchPlan),
    /// Chops a workload's procedures.
    Chop(crate::chop::ChopPlan),
    /// Copies a database between a directory and a cluster.
    #[cfg(feature = "remote")]
    Copy(crate::copy::CopyPlan),
    /// Looks at the log of a durable database.
    Log(crate::log::LogPlan),
    /// Lists protocols, workloads and machines, or the options of a workload.
    List(crate::list::ListPlan),
    /// Prints shell completions, or writes manual pages.
    Shell(crate::shell::ShellPlan),
    /// Serves a database to PostgreSQL's clients.
    #[cfg(feature = "serve")]
    Serve(crate::serve::ServePlan),
    /// Checks a recorded history.
    Check(crate::history::CheckArguments),
    /// Measures on virtual cores.
    #[cfg(feature = "sim")]
    Sim(crate::sim::VirtualPlan),
    /// Runs STAMP applications on virtual cores.
    #[cfg(all(feature = "sim", feature = "stamp"))]
    VirtualStamp(crate::stamp::VirtualStampPlan),
    /// Checks many schedules.
    #[cfg(feature = "sim")]
    Explore(crate::explore::Exploration),
    /// Compares simulated runs with real ones.
    #[cfg(feature = "sim")]
    Fidelity(crate::fidelity::FidelityPlan),
    /// Reruns the papers' figures.
    #[cfg(feature = "sim")]
    Figures(crate::figures::FiguresPlan),
}

/// The command's definition.
pub(crate) fn command() -> Command {
    Command::new("hotrow")
        .about("Measures transactions on shared memory, under every protocol of Hotrow")
        // Also where the output is no terminal.
        .max_term_width(text::WIDTH.into())
        .version(concat!(env!("CARGO_PKG_VERSION"), " (", env!("HOTROW_REVISION"), ")"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        // So that the error for an unknown command can list the known ones.
        .allow_external_subcommands(true)
        .subcommand(crate::run::bench_command().subcommand(crate::stamp::command()))
        .subcommand(crate::run::compare_command())
        .subcommand(crate::history::command())
        .subcommand(crate::chop::command())
        .subcommand(crate::log::command())
        .subcommand(crate::copy::command())
        .subcommand(crate::list::command())
        .subcommand(crate::serve::command())
        .subcommand(crate::sim::command())
        .subcommand(crate::explore::command())
        .subcommand(crate::fidelity::command())
        .subcommand(figures())
        .subcommand(crate::shell::completions_command())
        .subcommand(crate::shell::manual_command())
        .after_help("Example:\n  hotrow bench tpcc --warehouses 1 --protocol all")
}

/// The subcommand of the papers' figures, which most need the simulator.
fn figures() -> Command {
    #[cfg(feature = "sim")]
    return crate::figures::command();
    #[cfg(not(feature = "sim"))]
    without_feature("figures", "Reruns the papers' figures, and sets ours beside theirs on one page", "sim")
}

/// Reads the command line.
pub(crate) fn parse(host: &ThisHost) -> Result<Request, Refusal> {
    let mut definition = command();
    let arguments: Vec<_> = env::args_os().collect();
    let matches = match definition.try_get_matches_from_mut(&arguments) {
        Ok(matches) => matches,
        Err(error) => {
            definition.build();
            return Err(refused(error, &definition, &arguments));
        }
    };
    let (name, matches) = matches.subcommand().expect("clap requires a subcommand");
    let is_stamp = matches.subcommand_name() == Some(crate::stamp::NAME);
    match name {
        #[cfg(feature = "stamp")]
        "bench" if is_stamp => Ok(Request::Stamp(crate::stamp::plan(matches)?)),
        #[cfg(not(feature = "stamp"))]
        "bench" if is_stamp => Err(crate::stamp::missing("stamp -- bench stamp")),
        "bench" => Ok(Request::Bench(crate::run::plan(matches, host, false)?)),
        "compare" => Ok(Request::Compare(crate::run::plan(matches, host, true)?)),
        #[cfg(all(feature = "sim", feature = "stamp"))]
        "sim" if is_stamp => Ok(Request::VirtualStamp(crate::stamp::virtual_plan(matches)?)),
        #[cfg(all(feature = "sim", not(feature = "stamp")))]
        "sim" if is_stamp => Err(crate::stamp::missing("sim,stamp -- sim stamp")),
        #[cfg(feature = "sim")]
        "sim" => Ok(Request::Sim(crate::sim::plan(matches)?)),
        #[cfg(feature = "sim")]
        "explore" => Ok(Request::Explore(crate::explore::plan(matches)?)),
        #[cfg(feature = "sim")]
        "fidelity" => Ok(Request::Fidelity(crate::fidelity::plan(matches)?)),
        #[cfg(feature = "sim")]
        "figures" => Ok(Request::Figures(crate::figures::plan(matches)?)),
        #[cfg(not(feature = "sim"))]
        "sim" | "explore" | "fidelity" | "figures" => Err(no_simulator(name)),
        "check" => Ok(Request::Check(crate::history::plan(matches)?)),
        #[cfg(feature = "serve")]
        "serve" => Ok(Request::Serve(crate::serve::plan(matches)?)),
        #[cfg(not(feature = "serve"))]
        "serve" => Err(crate::serve::missing()),
        #[cfg(feature = "remote")]
        "copy" => Ok(Request::Copy(crate::copy::plan(matches)?)),
        #[cfg(not(feature = "remote"))]
        "copy" => Err(crate::copy::missing()),
        "log" => Ok(Request::Log(crate::log::plan(matches))),
        "completions" | "man" => Ok(Request::Shell(crate::shell::plan(name, matches))),
        "chop" => Ok(Request::Chop(crate::chop::plan(matches)?)),
        "list" => Ok(Request::List(crate::list::plan(matches)?)),
        _ => {
            let known = definition.get_subcommands().filter(|known| !known.is_hide_set());
            Err(Refusal::Message(unknown("command", name, known.map(Command::get_name))))
        }
    }
}

#[cfg(all(test, feature = "sim", feature = "stamp", feature = "serve", feature = "remote"))]
mod page;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_accepts_the_command_definition() {
        command().debug_assert();
    }

    /// Calls `visit` with the help of a command and of all that are below it.
    fn visit_help(command: &mut Command, visit: &mut impl FnMut(&str, String)) {
        let name = command.get_bin_name().unwrap_or_default().to_owned();
        visit(&name, command.render_long_help().to_string());
        command.get_subcommands_mut().for_each(|below| visit_help(below, visit));
    }

    #[test]
    fn help_is_no_wider_than_a_terminal() {
        let mut command = command();
        command.build();
        let mut pages = 0;
        visit_help(&mut command, &mut |name, help| {
            pages += 1;
            for line in help.lines() {
                assert!(line.chars().count() <= text::WIDTH.into(), "{name}: {line}");
            }
        });
        assert!(pages > 20);
    }
}
