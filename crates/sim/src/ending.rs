//! The end of cores and of runs: by returning, by a panic, by a fault, at a limit.

use corosensei::Yielder;

use crate::engine::Engine;
use crate::htm::AbortCause;
use crate::outcome::{End, Fate};
use crate::trace::Operation;
use crate::virtual_core::{NOT_QUEUED, State, Woken};

/// The treatment of a core that makes a step after the run has ended.
pub(crate) enum AfterEnd {
    /// The step does nothing: the core unwinds already, by request or out of a region.
    GoOn,
    /// The core must unwind.
    Unwind,
    /// The core waits in a destructor, so it is suspended and other cores go first.
    Suspend(*const Yielder<(), ()>),
    /// The core is suspended and never resumed.
    Abandon(*const Yielder<(), ()>),
}

impl Engine {
    /// Ends the run for all cores. [`next`](Self::next) resumes those that must unwind.
    pub(crate) fn end_all(&mut self, end: End) {
        self.htm.abort_all();
        self.end.get_or_insert(end);
        self.quiet = true;
        for (number, core) in self.cores.iter_mut().enumerate() {
            if core.is_alive() {
                if self.limits.unwinds && !core.yielder.is_null() {
                    core.state = State::Ready;
                    core.woken = Woken::TimedOut;
                    self.unwinding.push_back(number as u32);
                } else {
                    core.state = State::Abandoned;
                }
            }
        }
    }

    /// Ends the run after a core's panic: asks the other cores to stop, and wakes all that are parked.
    pub(crate) fn stop_after_panic(&mut self) {
        self.stopping = true;
        let hard = self.steps.saturating_add(self.limits.grace_steps);
        self.limits.steps_hard = self.limits.steps_hard.min(hard);
        self.attention_at = 0;
        let keys: Vec<usize> = self.parked().iter().map(|waiting| waiting.key).collect();
        for key in keys {
            self.wake(key, usize::MAX, Woken::TimedOut);
        }
    }

    /// Records that a core's body has returned or unwound.
    pub(crate) fn core_finished(&mut self, core: usize, state: State) {
        self.make_unready(core);
        self.cores[core].clock = self.now;
        self.cores[core].state = state;
        self.cores[core].queued = NOT_QUEUED;
    }

    /// The way in which a core ended.
    pub(crate) fn fate(&self, core: usize) -> Fate {
        match self.cores[core].state {
            State::Finished => Fate::Finished,
            State::Killed => Fate::Killed,
            State::Panicked => Fate::Panicked,
            _ => Fate::Ended,
        }
    }

    /// Kills the current core unless it is the last one alive. Returns true if it did.
    pub(crate) fn kill(&mut self) -> bool {
        if self.cores.iter().filter(|core| core.is_alive()).count() < 2 {
            return false;
        }
        let current = self.current;
        self.record(Operation::Killed, None, 0);
        self.htm.doom(current, AbortCause::System);
        self.htm.forget(current);
        self.make_unready(current);
        self.cores[current].state = State::Killed;
        true
    }

    /// Stops the current core for `ps` picoseconds. Returns true if the caller must suspend it.
    pub(crate) fn stop(&mut self, ps: u64) -> bool {
        let current = self.current;
        self.record(Operation::Stopped, None, ps);
        self.htm.doom(current, AbortCause::System);
        if self.is_clocked() {
            return false;
        }
        self.now -= ps;
        self.sleep_until(self.now + ps);
        true
    }

    /// Decides how the current core is treated at a step after the run has ended.
    pub(crate) fn after_end(&mut self, gives_way: bool) -> AfterEnd {
        let (grace, current) = (self.limits.grace_steps, self.current);
        let is_leaving = self.htm.is_leaving(current);
        let core = &mut self.cores[current];
        core.steps_after_end += 1;
        if !self.limits.unwinds || core.steps_after_end > grace {
            core.state = State::Abandoned;
            return AfterEnd::Abandon(core.yielder);
        }
        if !core.told_to_unwind && !is_leaving {
            core.told_to_unwind = true;
            return AfterEnd::Unwind;
        }
        if gives_way {
            let yielder = core.yielder;
            self.unwinding.push_back(current as u32);
            return AfterEnd::Suspend(yielder);
        }
        AfterEnd::GoOn
    }

    /// Ends the run from the current core. That core needs no further turn in order to unwind.
    pub(crate) fn end_here(&mut self, end: End) {
        self.end_all(end);
        let current = self.current as u32;
        self.unwinding.retain(|core| *core != current);
    }
}
