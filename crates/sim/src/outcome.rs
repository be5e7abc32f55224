//! How a simulation ended.

use std::any::Any;
use std::fmt;

use crate::htm::Regions;
use crate::memory::Accesses;
use crate::trace::Trace;

/// A core that is parked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// Its number.
    pub core: usize,
    /// What it is parked on: an address, usually, which differs from process to process.
    pub key: usize,
    /// Since when, in virtual nanoseconds.
    pub since_ns: u64,
    /// The label it had set.
    pub label: &'static str,
}

impl fmt::Display for Waiting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { core, key, since_ns, label } = self;
        write!(formatter, "core {core} waits on {key:#x} since {since_ns} ns")?;
        if label.is_empty() { Ok(()) } else { write!(formatter, " ({label})") }
    }
}

/// What ended a simulation.
#[non_exhaustive]
pub enum End {
    /// All cores that were not killed have returned.
    Finished,
    /// Nobody could go on.
    Deadlock {
        /// Who waited on what.
        waiting: Vec<Waiting>,
    },
    /// The cores made too many steps, even after they had been asked to stop.
    StepLimit,
    /// The cores' clocks went too far.
    TimeLimit,
    /// A core panicked.
    Panicked {
        /// Its number.
        core: usize,
        /// What it panicked with.
        payload: Box<dyn Any + Send>,
    },
}

impl End {
    /// Whether all went well.
    pub fn is_finished(&self) -> bool {
        matches!(self, Self::Finished)
    }
}

impl fmt::Display for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => formatter.write_str("all cores have finished"),
            Self::Deadlock { waiting } => {
                let waiting: Vec<String> = waiting.iter().map(Waiting::to_string).collect();
                write!(formatter, "deadlock: {}", waiting.join("; "))
            }
            Self::StepLimit => formatter.write_str("the limit of steps was reached"),
            Self::TimeLimit => formatter.write_str("the limit of virtual time was reached"),
            Self::Panicked { core, payload } => {
                let text = payload.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
                write!(formatter, "core {core} panicked: {}", text.unwrap_or("(no text)"))
            }
        }
    }
}

impl fmt::Debug for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "End({self})")
    }
}

/// How one core ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// Its body returned.
    Finished,
    /// Its body panicked.
    Panicked,
    /// A fault killed it.
    Killed,
    /// The run ended before its body did.
    Ended,
}

/// What a simulation leaves behind.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome<R> {
    /// What ended it.
    pub end: End,
    /// What each core's body returned, if it did.
    pub results: Vec<Option<R>>,
    /// How each core ended.
    pub fates: Vec<Fate>,
    /// Each core's clock at its end, in virtual nanoseconds.
    pub clocks_ns: Vec<u64>,
    /// Steps of all cores.
    pub steps: u64,
    /// How often another core went on.
    pub switches: u64,
    /// How many cache lines were touched.
    pub lines: usize,
    /// Where accesses were served from.
    pub accesses: Accesses,
    /// Hardware transactions.
    pub regions: Regions,
    /// The last steps, and the hash over all.
    pub trace: Trace,
}

impl<R> Outcome<R> {
    /// The latest clock of a core, in virtual nanoseconds.
    pub fn virtual_ns(&self) -> u64 {
        self.clocks_ns.iter().copied().max().unwrap_or(0)
    }

    /// The hash over all steps; see [`Trace::hash`].
    pub fn hash(&self) -> u64 {
        self.trace.hash()
    }
}
