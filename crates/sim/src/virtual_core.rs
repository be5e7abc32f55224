//! One virtual core: its clock, and what it is doing.

use std::ptr;

use corosensei::Yielder;

use crate::core_local::Values;

/// The key of a core that is not in the heap.
pub(crate) const NOT_QUEUED: u64 = u64::MAX;
/// The position of a core that is not among the runnable.
pub(crate) const NOT_RUNNABLE: u32 = u32::MAX;

/// How parking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Another core woke this one.
    Notified,
    /// The deadline came first; or the simulation is being ended, which wakes all.
    TimedOut,
    /// The condition did not hold any more, and the core did not park.
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// Suspended until a time (only where a schedule ignores clocks).
    Sleeping,
    /// Parked on this key, since this time.
    Parked(usize, u64),
    Finished,
    Panicked,
    Killed,
    Abandoned,
}

/// One virtual core.
pub(crate) struct Core {
    pub(crate) clock: u64,
    pub(crate) state: State,
    /// The key under which it is in the heap; other keys of it there are stale.
    pub(crate) queued: u64,
    /// Its place among the runnable, where a schedule decides.
    pub(crate) position: u32,
    pub(crate) woken: Woken,
    pub(crate) yielder: *const Yielder<(), ()>,
    pub(crate) label: &'static str,
    pub(crate) cache: usize,
    /// Another core shares its physical core.
    pub(crate) has_sibling: bool,
    /// It was told to unwind.
    pub(crate) told: bool,
    pub(crate) steps_after_end: u64,
    pub(crate) values: Values,
}

impl Core {
    /// Core `number` of so many on a machine with so many physical cores.
    pub(crate) fn new(number: usize, cores: usize, physical_cores: usize) -> Self {
        Self {
            clock: 0,
            state: State::Ready,
            queued: NOT_QUEUED,
            position: NOT_RUNNABLE,
            woken: Woken::Notified,
            yielder: ptr::null(),
            label: "",
            cache: number % physical_cores,
            has_sibling: number >= physical_cores || number + physical_cores < cores,
            told: false,
            steps_after_end: 0,
            values: Values::default(),
        }
    }

    /// Whether it will make steps again, if it is let.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.state, State::Ready | State::Sleeping | State::Parked(..))
    }
}
