//! How cores and runs end: by returning, by a panic, by a fault, at a limit.

use corosensei::Yielder;

use crate::engine::Engine;
use crate::htm::AbortCause;
use crate::outcome::{End, Fate};
use crate::trace::Operation;
use crate::virtual_core::{NOT_QUEUED, State, Woken};

/// What becomes of a core that makes a step after the run has ended.
pub(crate) enum AfterEnd {
    /// It unwinds already, by being told or from a region, and the step does nothing.
    GoOn,
    /// It has to unwind.
    Unwind,
    /// It waits in a destructor, so others go first.
    Suspend(*const Yielder<(), ()>),
    /// It is never resumed.
    Abandon(*const Yielder<(), ()>),
}

impl Engine {
    /// Ends the run for all cores. Those that are to unwind get their turn by [`next`](Self::next).
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

    /// A core's panic ends the run: the others are asked to stop, and wait for nobody any more.
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

    /// A core's body has returned or unwound.
    pub(crate) fn core_finished(&mut self, core: usize, state: State) {
        self.make_unready(core);
        self.cores[core].clock = self.now;
        self.cores[core].state = state;
        self.cores[core].queued = NOT_QUEUED;
    }

    /// How a core ended.
    pub(crate) fn fate(&self, core: usize) -> Fate {
        match self.cores[core].state {
            State::Finished => Fate::Finished,
            State::Killed => Fate::Killed,
            State::Panicked => Fate::Panicked,
            _ => Fate::Ended,
        }
    }

    /// Kills the current core, unless it is the last. Whether it did.
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

    /// Stops the current core for a time. True if it has to be suspended for that.
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

    /// What becomes of the current core at a step after the run has ended.
    pub(crate) fn after_end(&mut self, gives_way: bool) -> AfterEnd {
        let (grace, current) = (self.limits.grace_steps, self.current);
        let is_leaving = self.htm.is_leaving(current);
        let core = &mut self.cores[current];
        core.steps_after_end += 1;
        if !self.limits.unwinds || core.steps_after_end > grace {
            core.state = State::Abandoned;
            return AfterEnd::Abandon(core.yielder);
        }
        if !core.told && !is_leaving {
            core.told = true;
            return AfterEnd::Unwind;
        }
        if gives_way {
            let yielder = core.yielder;
            self.unwinding.push_back(current as u32);
            return AfterEnd::Suspend(yielder);
        }
        AfterEnd::GoOn
    }

    /// The current core ends the run, so it needs no other turn to be told.
    pub(crate) fn end_here(&mut self, end: End) {
        self.end_all(end);
        let current = self.current as u32;
        self.unwinding.retain(|core| *core != current);
    }
}
