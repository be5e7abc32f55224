//! Tests of the simulator through its public interface.

mod chaos;
mod determinism;
mod endings;
mod machine;
mod protocols;
mod transactions;
mod turns;
mod word;

use hotrow_sim::{Config, Machine, Order, Simulation};

fn config(cores: usize) -> Config {
    Config::new(Machine::named("mesh-1024").unwrap(), cores)
}

fn simulation(config: Config) -> Simulation {
    Simulation::new(config).unwrap()
}

fn orders() -> [Order; 3] {
    [
        Order::LeastClock,
        Order::Random { probability: 0.2 },
        Order::Priorities { depth: 3, steps_expected: 1000 },
    ]
}
