//! Virtual cores in virtual time, on one thread of the operating system.
//!
//! A [`Simulation`] runs one closure on each of up to 1024 virtual cores. A core is a fiber with a clock. Code
//! announces each operation on shared memory with [`access`] (and [`fence`], [`pause`], [`park_on`] ...) before
//! it performs it; that is a *step*. The core with the least clock makes the next step, and the step costs what
//! it would on a [`Machine`], according to a model of caches and cache coherence. So contention on many cores
//! can be measured on a machine that has two, and the same options give the same run, to the last step. Other
//! [schedules](Order) ignore the clocks and search for bad interleavings, with [`Faults`] if wanted.
//!
//! Outside a simulation these functions do nothing. The crate depends on no other crate of the project;
//! `hotrow-sync` builds on it when its feature `sim` is on.
//!
//! ```
//! use hotrow_sim::{AccessKind, Config, Machine, Simulation};
//! use std::cell::Cell;
//!
//! let counter = Cell::new(0_u64);
//! let machine = Machine::named("drp").unwrap();
//! let simulation = Simulation::new(Config::new(machine, 4)).unwrap();
//! let outcome = simulation.run(|_core| {
//!     for _ in 0..100 {
//!         hotrow_sim::access(counter.as_ptr() as usize, 8, AccessKind::ReadModifyWrite);
//!         counter.set(counter.get() + 1);
//!     }
//! });
//! assert_eq!(counter.get(), 400);
//! assert!(outcome.virtual_ns() > 10_000, "a contended line takes tens of nanoseconds to move");
//! ```
//!
//! docs/simulator.md lists what the model leaves out.
//!
//! # Panics and switches
//!
//! A core may switch while it unwinds. The standard library takes all cores for one thread, so its
//! `panicking()` is then true on the other cores too. Types that poison themselves by it (its `Mutex`) must
//! therefore not be shared between cores.

mod cache;
mod core_local;
mod directory;
mod ending;
mod engine;
mod fault;
pub mod htm;
mod machine;
mod memory;
mod operations;
mod outcome;
pub mod profile;
mod random;
mod regions;
mod schedule;
mod simulation;
mod trace;
mod turn;
mod virtual_core;
mod work;

pub use core_local::CoreLocal;
pub use fault::Faults;
pub use machine::{
    CORES_MAX, Caches, Costs, LINE_BYTES, Machine, MachineError, Shares, Topology, Transactions,
};
pub use memory::{AccessKind, Accesses};
pub use operations::{
    access, access_to_change, charge, cores, current_core, fence, is_active, label, now, number, park_if,
    park_on, pause, pause_for, place, quietly, should_stop, sleep, unpark_all, unpark_one, work, yield_now,
};
pub use outcome::{End, Fate, ParkedCore, SimulationReport};
pub use random::Random;
pub use schedule::{Choice, Priorities, RandomSwitches, Schedule};
pub use simulation::{Config, ConfigError, Ending, Order, Simulation, forget_abandoned_cores};
pub use trace::{Operation, Step, Trace};
pub use virtual_core::Woken;
pub use work::{Work, WorkCycles};
