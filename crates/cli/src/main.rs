//! The `hotrow` command: measures workloads under Hotrow's protocols.
//!
//! Exit status: 0; 1 if a check of a workload failed or a run did not come to its end; 2 for arguments that
//! cannot be. Results go to standard output; progress, notes and errors to standard error.

mod arguments;
mod explore;
mod fidelity;
mod history;
mod host;
mod list;
mod plot;
mod progress;
mod run;
mod sim;
mod summary;
mod text;
#[cfg(feature = "sim")]
mod transfers;
mod whole_file;

use arguments::{Refusal, Request};
use host::ThisHost;
use std::io;
use std::process::ExitCode;

const FAILURE: u8 = 1;
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let host = ThisHost::new();
    let done = match arguments::parse(&host) {
        Ok(Request::Bench(plan)) => run::bench(&plan, &host),
        Ok(Request::Compare(plan)) => run::compare(&plan, &host),
        Ok(Request::Check(arguments)) => history::check(&arguments),
        #[cfg(feature = "sim")]
        Ok(Request::Sim(plan)) => sim::run(&plan, &host),
        #[cfg(feature = "sim")]
        Ok(Request::Explore(exploration)) => explore::run(&exploration),
        #[cfg(feature = "sim")]
        Ok(Request::Fidelity(plan)) => fidelity::run(&plan, &host),
        Ok(Request::List(format)) => list::print(format).map_err(run::Stop::from),
        Err(Refusal::Answer(answer)) => answer.exit(),
        Err(Refusal::Words(words)) => Err(run::Stop::BadInput(words)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the results has seen enough.
        Err(run::Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(stop) => {
            eprintln!("hotrow: {stop}");
            ExitCode::from(if matches!(stop, run::Stop::BadInput(_)) { BAD_INPUT } else { FAILURE })
        }
    }
}
