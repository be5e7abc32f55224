//! Programs to start from. Each module is one: a type with its tables, its transactions and its documentation, which names what it
//! shows. `hotrow-examples NAME` puts load on it and prints throughput, latency, what was checked, and the conflict report;
//! `--over hotrow,mutex` does so by turns with the same over a mutex or over an embedded store ([`rivals`]).
//!
//! `docs/results/README.md` has the figures of such comparisons.
//!
//! | module | shows |
//! |---|---|
//! | [`ticket_shop`] | one hot row behind a web server; a report on a snapshot beside it |
//! | [`inventory`] | reservations that expire |
//! | [`ledger`] | a durable ledger with idempotency keys, a hot settlement account and an audit on a snapshot |
//! | [`order_matching`] | two priority queues that change together |
//! | [`job_queue`] | waiting for a change, on both sides of a bounded queue |
//! | [`rate_limiter`] | counters with predicates: a limit of each client and one of all |
//! | [`dashboard`] | metrics for Prometheus, and a page that shows the hottest rows and who loses to whom |
//! | [`outbox`] | messages that are sent once for each order that committed |
//! | [`leaderboard`] | a secondary index in order, read on a snapshot |

mod dashboard;
mod inventory;
mod job_queue;
mod leaderboard;
mod ledger;
mod load;
mod order_matching;
mod outbox;
mod rate_limiter;
mod rivals;
mod ticket_shop;
mod web;

use clap::Parser;
use load::{Load, Measured, Scenario};
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

/// A way to make a scenario: over Hotrow, or over something else.
struct Store {
    name: &'static str,
    make: fn() -> Result<Box<dyn Scenario>, Box<dyn Error>>,
}

struct Example {
    name: &'static str,
    stores: &'static [Store],
}

/// All examples, with all that they can run over; the first store is Hotrow.
const EXAMPLES: &[Example] = &[
    Example { name: "ticket-shop", stores: ticket_shop::STORES },
    Example { name: "inventory", stores: inventory::STORES },
    Example { name: "ledger", stores: ledger::STORES },
    Example { name: "order-matching", stores: order_matching::STORES },
    Example { name: "job-queue", stores: job_queue::STORES },
    Example { name: "rate-limiter", stores: rate_limiter::STORES },
    Example { name: "leaderboard", stores: leaderboard::STORES },
    Example { name: "outbox", stores: outbox::STORES },
    Example { name: "dashboard", stores: dashboard::STORES },
];

/// Puts load on an example, checks it, and prints what happened.
#[derive(Parser)]
#[command(after_help = "Example:\n  hotrow-examples ledger --over hotrow,redb --rounds 5")]
struct Arguments {
    /// The example: ticket-shop, inventory, ledger, order-matching, job-queue, rate-limiter, leaderboard,
    /// outbox, dashboard
    example: String,
    /// Stores that it runs over, by turns: hotrow, mutex, redb (outbox and dashboard: hotrow)
    #[arg(long, value_delimiter = ',', default_value = "hotrow")]
    over: Vec<String>,
    /// Threads that put load on it
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Seconds of a run
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Serves the ticket shop, or the dashboard under load, at this address until the process is ended
    #[arg(long, value_name = "ADDRESS")]
    serve: Option<String>,
    /// Runs over each store
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let Some(example) = EXAMPLES.iter().find(|example| example.name == arguments.example) else {
        let names: Vec<_> = EXAMPLES.iter().map(|example| example.name).collect();
        return Err(
            format!("unknown example {:?}; there are: {}", arguments.example, names.join(", ")).into()
        );
    };
    if let Some(address) = &arguments.serve {
        return match example.name {
            "ticket-shop" => ticket_shop::serve(address),
            "dashboard" => dashboard::serve(address),
            name => Err(format!("--serve is for ticket-shop and dashboard; {name} is not on HTTP").into()),
        };
    }
    let mut stores = Vec::new();
    for name in &arguments.over {
        let store = example.stores.iter().find(|store| store.name == name);
        stores.push(store.ok_or_else(|| {
            let names: Vec<_> = example.stores.iter().map(|store| store.name).collect();
            format!("{} does not run over {name:?}; there are: {}", example.name, names.join(", "))
        })?);
    }
    let seconds = Duration::try_from_secs_f64(arguments.seconds);
    let seconds = seconds.map_err(|_| format!("{} is no number of seconds", arguments.seconds))?;
    let load = Load { threads: usize::from(arguments.threads), duration: seconds };
    let mut runs: Vec<Vec<Measured>> = stores.iter().map(|_| Vec::new()).collect();
    for round in 1..=arguments.rounds {
        for (store, runs) in stores.iter().zip(&mut runs) {
            let scenario = (store.make)()?;
            let measured = load.put_on(&*scenario);
            println!("{} over {}, run {round}: {measured}", example.name, store.name);
            println!("  checked: {}", scenario.check()?);
            if let Some(report) = scenario.conflicts() {
                println!("  {report}");
            }
            runs.push(measured);
        }
    }
    if let [first, others @ ..] = &runs[..] {
        for (store, runs) in stores[1..].iter().zip(others) {
            println!("{}", load::compare(stores[0].name, first, store.name, runs));
        }
    }
    Ok(())
}
