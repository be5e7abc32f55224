//! Transactions that wait for a change, under every protocol. A test binary of its own, as waiting is looked at often and the
//! one of all else under every protocol takes long to build.

#[path = "../support/mod.rs"]
mod support;

mod acknowledged;
mod durable;
mod durations;
mod executor;
mod hooks;
mod retry;
mod sessions;
mod tasks;
