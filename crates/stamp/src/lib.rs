//! The applications of STAMP (Minh, Chung, Kozyrakis, Olukotun, "STAMP: Stanford Transactional Applications for
//! Multi-Processing", IISWC 2008), written afresh and once for every transactional store.
//!
//! A [`Store`] has collections and runs transactions; [`store`] says what it promises. [`Sequential`] is the store
//! without any synchronization, against which speedups are measured. An [`Application`] generates its input from a
//! seed, runs on the workers of a [`Runner`], and verifies its result. [`execute`] does these three in order, and
//! [`registry`] knows all applications by their names.
//!
//! The papers sto and drp are cited as in ARCHITECTURE.md.

pub mod application;
pub mod bayes;
pub mod encode;
pub mod genome;
pub mod intruder;
pub mod kmeans;
pub mod labyrinth;
pub mod options;
pub mod plain;
pub mod registry;
pub mod runner;
pub mod ssca2;
pub mod store;
pub mod tracked;
pub mod typed;
pub mod vacation;
pub mod words;
pub mod yada;

pub use application::{Application, Failure, Outcome, Statistics, execute};
pub use encode::Encode;
pub use options::{OptionError, OptionInfo, Options, Preset};
pub use plain::{GlobalLock, Sequential};
pub use runner::{OneThread, Runner, Spawning, Workers, on_threads};
pub use store::{Element, Key, Store};
pub use tracked::Tracked;
pub use typed::{Typed, TypedOptions};
pub use words::Words;
