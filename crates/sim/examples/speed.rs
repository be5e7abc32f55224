//! Makes steps as fast as possible; run it under `time`.
//!
//! `time cargo run --release -p hotrow-sim --example speed -- CORES STEPS hits|array|switches`

use std::cell::Cell;

use hotrow_sim::{AccessKind, Config, Machine, Random, Simulation, access};

#[repr(align(64))]
#[derive(Default)]
struct Word(Cell<u64>);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (cores, steps) = (number(1) as usize, number(10_000_000));
    let pattern = arguments.next().unwrap_or_else(|| "hits".to_owned());
    let machine = Machine::named("drp").expect("it comes with the crate");
    let simulation = Simulation::new(Config::new(machine, cores)).expect("drp has 120 threads");
    let words: Vec<Word> = (0..1 << 17).map(|_| Word::default()).collect();
    let each = steps / cores as u64;
    let outcome = simulation.run(|core| {
        let mut random = Random::new(core as u64);
        for step in 0..each {
            let at = match pattern.as_str() {
                "array" => random.below(1 << 17) as usize,
                _ => core * 64 + step as usize % 8,
            };
            access(words[at].0.as_ptr() as usize, 8, AccessKind::Load);
        }
    });
    println!("{} steps, {} switches, {} virtual ns", outcome.steps, outcome.switches, outcome.virtual_ns());
}
