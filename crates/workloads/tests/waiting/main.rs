//! Transactions that wait for a change of what they have read, in many schedules on virtual cores. A lost wake-up leaves a core
//! parked for ever, with which the simulation ends.
//!
//! Needs feature `sim`. A binary of its own, as its long run is built with optimization. `HOTROW_WAITING_SCHEDULES` is the number
//! of schedules of each test, over all protocols together:
//!
//! ```sh
//! HOTROW_WAITING_SCHEDULES=100000 cargo test --release -p hotrow-workloads --features sim --test waiting
//! ```

#[path = "../simulated/crew.rs"]
mod crew;
mod scenarios;
