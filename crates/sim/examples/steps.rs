//! Runs a small contended program and prints what it did: the same options print the same bytes.
//!
//! `cargo run -p hotrow-sim --example steps -- [MACHINE] [CORES] [SEED] [least-clock|random|priorities]`

use std::cell::Cell;
use std::process::ExitCode;

use hotrow_sim::{Config, CoreLocal, Kind, Machine, Order, Random, Simulation, access, work};

#[repr(align(64))]
#[derive(Default)]
struct Word(Cell<u64>);

static RANDOM: CoreLocal<Cell<u64>> = CoreLocal::new(|| Cell::new(0));

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut argument = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (machine, cores, seed) = (argument("drp"), argument("16"), argument("1"));
    let order = match argument("least-clock").as_str() {
        "random" => Order::Random { probability: 0.1 },
        "priorities" => Order::Priorities { depth: 3, steps_expected: 10_000 },
        _ => Order::LeastClock,
    };
    let simulation = Machine::named(&machine).map_err(|error| error.to_string()).and_then(|machine| {
        let (cores, seed) = (cores.parse().unwrap_or(0), seed.parse().unwrap_or(0));
        let config = Config { seed, order, trace_steps: 4, ..Config::new(machine, cores) };
        Simulation::new(config).map_err(|error| error.to_string())
    });
    let simulation = match simulation {
        Ok(simulation) => simulation,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let words: Vec<Word> = (0..64).map(|_| Word::default()).collect();
    let outcome = simulation.run(|core| {
        let mut random = Random::stream(simulation.config().seed, 1000 + core as u64);
        for _ in 0..200 {
            // The square of a uniform number: low words are hot.
            let word = &words[(random.unit() * random.unit() * 64.0) as usize];
            access(word.0.as_ptr() as usize, 8, Kind::ReadModifyWrite);
            word.0.set(word.0.get() + 1);
            RANDOM.with(|sum| sum.set(sum.get() ^ word.0.get()));
            work(random.below(100));
        }
        RANDOM.with(Cell::get).unwrap_or(0)
    });
    println!("hash {:016x}", outcome.hash());
    println!("steps {} switches {} ns {}", outcome.steps, outcome.switches, outcome.virtual_ns());
    println!("{:?}", outcome.accesses);
    println!("{:?}", outcome.results);
    print!("{}", outcome.trace);
    ExitCode::SUCCESS
}
