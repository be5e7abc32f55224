//! One virtual core: its clock and its state.

use std::ptr;

use corosensei::Yielder;

use crate::core_local::Values;

/// The key of a core that is not in the heap.
pub(crate) const NOT_QUEUED: u64 = u64::MAX;
/// The position of a core that is not in the list of runnable cores.
pub(crate) const NOT_RUNNABLE: u32 = u32::MAX;

/// The reason why a call that parks has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Another core woke this one.
    Notified,
    /// The deadline passed; or the simulation is being ended, which wakes all cores.
    TimedOut,
    /// The condition no longer held, so the core did not park.
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// Suspended until a time (only under a schedule that ignores the clocks).
    Sleeping,
    /// Parked: the key, and the time at which the core parked.
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
    /// The core's valid key in the heap; any other key of the core there is stale.
    pub(crate) queued: u64,
    /// The core's index in the list of runnable cores, which only a schedule uses.
    pub(crate) position: u32,
    pub(crate) woken: Woken,
    pub(crate) yielder: *const Yielder<(), ()>,
    pub(crate) label: &'static str,
    pub(crate) cache: usize,
    /// True if another virtual core runs on the same physical core.
    pub(crate) has_sibling: bool,
    pub(crate) told_to_unwind: bool,
    pub(crate) steps_after_end: u64,
    pub(crate) values: Values,
}

impl Core {
    /// Core `number` of `cores` on a machine with `physical_cores` physical cores.
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
            told_to_unwind: false,
            steps_after_end: 0,
            values: Values::default(),
        }
    }

    /// True if the core can make further steps.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.state, State::Ready | State::Sleeping | State::Parked(..))
    }
}
