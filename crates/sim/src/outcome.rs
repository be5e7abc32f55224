//! The outcome of a simulation.

use std::any::Any;
use std::fmt;

use crate::htm::Regions;
use crate::memory::Accesses;
use crate::profile::ProfileReport;
use crate::trace::Trace;

/// A core that is parked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParkedCore {
    /// The core's number.
    pub core: usize,
    /// The key on which it is parked: usually an address, which differs from process to process.
    pub key: usize,
    /// The time at which it parked, in virtual nanoseconds.
    pub since_ns: u64,
    /// The label that it had set.
    pub label: &'static str,
}

impl fmt::Display for ParkedCore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { core, key, since_ns, label } = self;
        write!(formatter, "core {core} has waited on {key:#x} since {since_ns} ns")?;
        if label.is_empty() { Ok(()) } else { write!(formatter, " ({label})") }
    }
}

/// The event that ended a simulation.
#[non_exhaustive]
pub enum End {
    /// All cores that were not killed have returned.
    Finished,
    /// No core could go on.
    Deadlock {
        /// The parked cores.
        waiting: Vec<ParkedCore>,
    },
    /// The cores made too many steps, even after they had been asked to stop.
    StepLimit,
    /// A core's clock passed the hard limit of virtual time.
    TimeLimit,
    /// A core panicked.
    Panicked {
        /// The core's number.
        core: usize,
        /// The panic's payload.
        payload: Box<dyn Any + Send>,
    },
}

impl End {
    /// True if all cores that were not killed have returned.
    pub fn is_finished(&self) -> bool {
        matches!(self, Self::Finished)
    }
}

impl fmt::Display for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => formatter.write_str("all cores have finished"),
            Self::Deadlock { waiting } => {
                let waiting: Vec<String> = waiting.iter().map(ParkedCore::to_string).collect();
                write!(formatter, "deadlock: {}", waiting.join("; "))
            }
            Self::StepLimit => formatter.write_str("the step limit was reached"),
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

/// The way in which one core ended.
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

/// The report on a simulation.
#[derive(Debug)]
#[non_exhaustive]
pub struct SimulationReport<R> {
    /// The event that ended the simulation.
    pub end: End,
    /// The result of each core's body; `None` if the body did not return.
    pub results: Vec<Option<R>>,
    /// The way in which each core ended.
    pub fates: Vec<Fate>,
    /// Each core's clock at its end, in virtual nanoseconds.
    pub clocks_ns: Vec<u64>,
    /// The number of steps of all cores.
    pub steps: u64,
    /// The number of switches from one core to another.
    pub switches: u64,
    /// The number of cache lines touched.
    pub lines: usize,
    /// The numbers of accesses, by the place that served them.
    pub accesses: Accesses,
    /// The numbers of hardware transactions, by how they ended.
    pub regions: Regions,
    /// The last steps of each core, and the hash over all steps.
    pub trace: Trace,
    /// The profile, if one was asked for.
    pub profile: Option<ProfileReport>,
}

impl<R> SimulationReport<R> {
    /// The latest of the cores' clocks, in virtual nanoseconds.
    pub fn virtual_ns(&self) -> u64 {
        self.clocks_ns.iter().copied().max().unwrap_or(0)
    }

    /// The hash over all steps; see [`Trace::hash`].
    pub fn hash(&self) -> u64 {
        self.trace.hash()
    }
}
