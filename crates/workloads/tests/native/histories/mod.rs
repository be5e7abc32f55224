//! Recorded stress, judged: the protocols pass, and mutants do not.

mod opacity;
mod stress;
mod strictness;
