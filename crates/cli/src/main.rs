//! The `hotrow` command: measures workloads under Hotrow's protocols.
//!
//! Exit status: 0 for success; 1 if a check of a workload failed or a run did not finish; 2 for invalid arguments.
//! Results go to standard output; progress, notes and errors go to standard error.

mod arguments;
mod chop;
mod copy;
mod error;
mod explore;
mod fidelity;
#[cfg(feature = "sim")]
mod figures;
mod history;
mod host;
mod list;
mod live;
mod log;
mod plot;
#[cfg(feature = "sim")]
mod profile;
mod progress;
mod request;
mod run;
mod serve;
mod shell;
mod sim;
mod stamp;
mod summary;
mod text;
#[cfg(feature = "sim")]
mod transfers;
mod whole_file;

use arguments::Refusal;
use error::{BAD_INPUT, CommandError, FAILURE};
use host::ThisHost;
use mimalloc::MiMalloc;
use request::Request;
use std::io;
use std::process::ExitCode;

/// Rows are allocated by one thread and freed by another, through the epoch.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The colour of what has failed.
const ERROR: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();

fn main() -> ExitCode {
    let host = ThisHost::new();
    let done = match request::parse(&host) {
        Ok(Request::Bench(plan)) => run::bench(&plan, &host),
        #[cfg(feature = "stamp")]
        Ok(Request::Stamp(plan)) => stamp::run(&plan, &host),
        Ok(Request::Compare(plan)) => run::compare(&plan, &host),
        Ok(Request::Check(arguments)) => history::check(&arguments),
        #[cfg(feature = "sim")]
        Ok(Request::Sim(plan)) => sim::run(&plan, &host),
        #[cfg(all(feature = "sim", feature = "stamp"))]
        Ok(Request::VirtualStamp(plan)) => stamp::run_virtual(&plan, &host),
        #[cfg(feature = "sim")]
        Ok(Request::Explore(exploration)) => explore::run(&exploration),
        #[cfg(feature = "sim")]
        Ok(Request::Fidelity(plan)) => fidelity::run(&plan, &host),
        #[cfg(feature = "sim")]
        Ok(Request::Figures(plan)) => figures::run(&plan, &host),
        #[cfg(feature = "serve")]
        Ok(Request::Serve(plan)) => serve::run(plan),
        #[cfg(feature = "remote")]
        Ok(Request::Copy(plan)) => copy::run(plan),
        Ok(Request::Chop(plan)) => chop::run(&plan),
        Ok(Request::Log(plan)) => log::run(&plan),
        Ok(Request::Shell(plan)) => shell::run(&plan, request::command()),
        Ok(Request::List(plan)) => list::print(&plan).map_err(CommandError::from),
        Err(Refusal::Answer(answer)) => answer.exit(),
        Err(Refusal::Message(message)) => Err(CommandError::BadInput(message)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the results closed the pipe because it has seen enough.
        Err(CommandError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(CommandError::Told(status)) => ExitCode::from(status),
        Err(error) => {
            // Without colours where standard error is no terminal, or NO_COLOR is set.
            anstream::eprintln!("{ERROR}hotrow:{ERROR:#} {error}");
            ExitCode::from(if matches!(error, CommandError::BadInput(_)) { BAD_INPUT } else { FAILURE })
        }
    }
}
