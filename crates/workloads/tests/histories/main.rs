//! Recorded stress, judged: the protocols pass, and mutants do not.

mod deferred_mutants;
mod mutants;
mod opacity;
mod stress;
mod strictness;
mod timestamp_mutants;
