//! Durable databases: what was acknowledged is there after a crash, and nothing is half there.
//!
//! In CI a few crashes of each kind. Many of them:
//!
//! ```text
//! HOTROW_CRASHES=10000 cargo test --release -p hotrow --test durable power -- --nocapture
//! HOTROW_CRASHES=1000 cargo test --release -p hotrow --test durable killed -- --nocapture
//! ```

mod around;
mod checkpoints;
mod dropping;
mod failures;
mod killed;
mod ledger;
mod loading;
mod objects;
mod power;
mod schemas;
mod structures;
#[path = "../support/mod.rs"]
mod support;
mod tables;
