//! The engine: decides which core goes on, and carries out steps.
//!
//! # Turns
//!
//! Each core has a clock. The engine keeps the clock of the next core at hand (`horizon`). A step compares
//! first: as long as the running core is the earliest, it goes on without a switch. Otherwise it puts itself
//! into the heap of ready cores and suspends; the loop in `simulation.rs` resumes the earliest core. Then the
//! step charges its cost and returns, and the caller performs the real operation. So operations happen one at a
//! time, in the order of the clocks at which they begin; ties go to the lower core number.
//!
//! Under a [`Schedule`] the clocks do not decide: each step asks the schedule. All cores then share one time,
//! the sum of all costs.
//!
//! # Sharing
//!
//! Fibers reach the engine through a pointer. All fibers and the loop run on one thread of the operating system,
//! and no reference into the engine is held across a switch.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ptr;

use corosensei::Yielder;

use crate::fault::Fault;
use crate::memory::Memory;
use crate::outcome::{End, ParkedCore};
use crate::profile::{Cause, Profiler};
use crate::regions::Htm;
use crate::schedule::{Choice, Schedule};
use crate::trace::{Operation, Step, Trace};
use crate::virtual_core::{Core, NOT_QUEUED, NOT_RUNNABLE, State, Woken};

/// Bits of a key that hold the core's number; the rest is the clock.
const CORE_BITS: u32 = 10;

thread_local! {
    /// The engine of the simulation that runs in this thread, or null.
    static ACTIVE: Cell<*mut Engine> = const { Cell::new(ptr::null_mut()) };
    /// The number of the thread's last simulation.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// The engine of the simulation that runs in this thread, or null.
#[inline(always)]
pub(crate) fn active() -> *mut Engine {
    ACTIVE.get()
}

pub(crate) fn set_active(engine: *mut Engine) {
    ACTIVE.set(engine);
}

/// The limits of a run.
pub(crate) struct RunLimits {
    pub(crate) steps: u64,
    pub(crate) steps_hard: u64,
    pub(crate) until_ps: u64,
    pub(crate) until_ps_hard: u64,
    pub(crate) grace_steps: u64,
    pub(crate) unwinds: bool,
}

pub(crate) struct Engine {
    /// The number of the simulation in its thread, from 1.
    pub(crate) number: u64,
    /// The clock of the current core.
    pub(crate) now: u64,
    pub(crate) current: usize,
    /// The current core goes on while its key is below this.
    horizon: u64,
    pub(crate) steps: u64,
    /// The step at which a limit or a fault is due next.
    pub(crate) attention_at: u64,
    /// True if steps do nothing: a condition is being checked, or the run has ended.
    pub(crate) quiet: bool,
    pub(crate) memory: Memory,
    pub(crate) trace: Trace,
    pub(crate) htm: Htm,
    pub(crate) cores: Vec<Core>,
    /// The keys of the cores that are ready, or that wait until a time.
    queue: BinaryHeap<Reverse<u64>>,
    schedule: Option<Box<dyn Schedule>>,
    runnable: Vec<u32>,
    chosen: Option<usize>,
    /// The parked cores, by key. Not a map with a random hash seed, because its allocations and frees must come
    /// in the same order in each process.
    waiting: BTreeMap<usize, VecDeque<u32>>,
    faults: Vec<(u64, Fault)>,
    pub(crate) limits: RunLimits,
    pub(crate) stopping: bool,
    pub(crate) end: Option<End>,
    /// The cores that must still unwind.
    pub(crate) unwinding: VecDeque<u32>,
    pub(crate) switches: u64,
    pub(crate) sibling_percent: u64,
    pub(crate) profiler: Option<Box<Profiler>>,
}

/// The parameters of [`Engine::new`].
pub(crate) struct EngineParts {
    pub(crate) cores: usize,
    pub(crate) physical_cores: usize,
    pub(crate) memory: Memory,
    pub(crate) htm: Htm,
    pub(crate) trace: Trace,
    /// `None` if the clocks decide.
    pub(crate) schedule: Option<Box<dyn Schedule>>,
    /// The faults with their steps, the latest first.
    pub(crate) faults: Vec<(u64, Fault)>,
    pub(crate) limits: RunLimits,
    pub(crate) sibling_percent: u64,
    pub(crate) profiler: Option<Profiler>,
}

impl Engine {
    pub(crate) fn new(parts: EngineParts) -> Self {
        let EngineParts { cores, physical_cores, memory, .. } = parts;
        let EngineParts { htm, trace, schedule, faults, limits, sibling_percent, profiler, .. } = parts;
        let mut engine = Self {
            number: LAST.replace(LAST.get() + 1) + 1,
            now: 0,
            current: 0,
            horizon: 0,
            steps: 0,
            attention_at: 0,
            quiet: false,
            memory,
            trace,
            htm,
            cores: (0..cores).map(|number| Core::new(number, cores, physical_cores)).collect(),
            queue: BinaryHeap::new(),
            schedule,
            runnable: Vec::new(),
            chosen: None,
            waiting: BTreeMap::new(),
            faults,
            limits,
            stopping: false,
            end: None,
            unwinding: VecDeque::new(),
            switches: 0,
            sibling_percent,
            profiler: profiler.map(Box::new),
        };
        (0..cores).for_each(|core| engine.make_ready(core));
        engine
    }

    #[inline(always)]
    fn key(&self) -> u64 {
        self.now << CORE_BITS | self.current as u64
    }

    pub(crate) fn is_clocked(&self) -> bool {
        self.schedule.is_none()
    }

    /// Puts a core into the heap: at time `at` it goes on or, if it is parked, times out.
    fn enqueue(&mut self, core: usize, at: u64) {
        let key = at << CORE_BITS | core as u64;
        self.cores[core].queued = key;
        self.queue.push(Reverse(key));
        if self.is_clocked() {
            self.horizon = self.horizon.min(key);
        }
    }

    fn make_ready(&mut self, core: usize) {
        self.cores[core].state = State::Ready;
        if self.is_clocked() {
            self.enqueue(core, self.cores[core].clock);
        } else {
            self.cores[core].queued = NOT_QUEUED;
            self.cores[core].position = self.runnable.len() as u32;
            self.runnable.push(core as u32);
        }
    }

    /// Removes a core from the runnable cores. Does nothing if the clocks decide.
    pub(crate) fn make_unready(&mut self, core: usize) {
        let position = std::mem::replace(&mut self.cores[core].position, NOT_RUNNABLE);
        if position != NOT_RUNNABLE {
            self.runnable.swap_remove(position as usize);
            if let Some(moved) = self.runnable.get(position as usize) {
                self.cores[*moved as usize].position = position;
            }
        }
    }

    /// Returns the least key in the heap that is not stale.
    fn first_queued(&mut self) -> Option<u64> {
        while let Some(Reverse(key)) = self.queue.peek().copied() {
            if self.cores[(key & ((1 << CORE_BITS) - 1)) as usize].queued == key {
                return Some(key);
            }
            self.queue.pop();
        }
        None
    }

    /// Makes the core of the heap's least key ready; it was asleep, parked with a deadline, or ready already.
    fn come_due(&mut self, key: u64) -> usize {
        self.queue.pop();
        let core = (key & ((1 << CORE_BITS) - 1)) as usize;
        self.cores[core].queued = NOT_QUEUED;
        if let State::Parked(parked_on, _) = self.cores[core].state {
            if let Some(queue) = self.waiting.get_mut(&parked_on) {
                queue.retain(|waiter| *waiter as usize != core);
            }
            self.cores[core].woken = Woken::TimedOut;
            self.cores[core].clock = (key >> CORE_BITS) + self.memory.costs.wake;
        }
        self.cores[core].state = State::Ready;
        core
    }

    /// Asks the schedule for the next core. Returns `None` if no core can ever go on.
    fn choose(&mut self, current: Option<usize>, gave_way: bool) -> Option<usize> {
        while let Some(key) = self.first_queued()
            && (key >> CORE_BITS <= self.now || self.runnable.is_empty())
        {
            self.now = self.now.max(key >> CORE_BITS);
            let core = self.come_due(key);
            self.make_ready(core);
        }
        if self.runnable.is_empty() {
            return None;
        }
        if self.now >= self.limits.until_ps_hard {
            return current.or(Some(self.runnable[0] as usize));
        }
        let choice = Choice { step: self.steps, current, gave_way, runnable: &self.runnable };
        let chosen = self.schedule.as_mut().map_or(0, |schedule| schedule.choose(&choice));
        let is_runnable = self.cores.get(chosen).is_some_and(|core| core.position != NOT_RUNNABLE);
        Some(if is_runnable { chosen } else { self.runnable[0] as usize })
    }

    /// Returns the core to resume next and makes it the current one. `None` when the run is over.
    pub(crate) fn next(&mut self) -> Option<usize> {
        if self.end.is_some() {
            let core = self.unwinding.pop_front()? as usize;
            self.current = core;
            return Some(core);
        }
        let next = if self.is_clocked() {
            self.first_queued().map(|key| {
                let was_parked = self.cores[(key & ((1 << CORE_BITS) - 1)) as usize].state;
                let core = self.come_due(key);
                if matches!(was_parked, State::Parked(..)) {
                    // The core runs only after the cost of waking up has passed, too.
                    self.enqueue(core, self.cores[core].clock);
                    return None;
                }
                Some(core)
            })
        } else {
            let chosen = self.chosen.take();
            chosen.or_else(|| self.choose(None, false)).map(Some)
        };
        match next {
            Some(Some(core)) => {
                self.enter(core);
                Some(core)
            }
            Some(None) => self.next(),
            None => {
                let waiting = self.parked();
                if waiting.is_empty() {
                    return None;
                }
                self.end_all(End::Deadlock { waiting });
                self.next()
            }
        }
    }

    fn enter(&mut self, core: usize) {
        self.switches += 1;
        self.current = core;
        if self.is_clocked() {
            self.now = self.cores[core].clock;
            let hard = self.limits.until_ps_hard << CORE_BITS;
            self.horizon = self.first_queued().unwrap_or(u64::MAX).min(hard);
        } else {
            self.now = self.now.max(self.cores[core].clock);
            self.horizon = 0;
        }
    }

    /// The parked cores, in the order of their numbers.
    pub(crate) fn parked(&self) -> Vec<ParkedCore> {
        let parked = self.cores.iter().enumerate().filter_map(|(number, core)| match core.state {
            State::Parked(key, since_ps) => {
                Some(ParkedCore { core: number, key, since_ns: since_ps / 1000, label: core.label })
            }
            _ => None,
        });
        parked.collect()
    }

    /// Sets the yielder through which a core's fiber suspends itself.
    pub(crate) fn set_yielder(&mut self, core: usize, yielder: *const Yielder<(), ()>) {
        self.cores[core].yielder = yielder;
    }

    /// Removes the core-local value that a core made last.
    pub(crate) fn pop_value(&mut self, core: usize) -> Option<Box<dyn std::any::Any>> {
        self.cores[core].values.pop()
    }

    /// Wakes up to `most` of the cores parked on a key, the longest parked first. Returns their number.
    pub(crate) fn wake(&mut self, key: usize, most: usize, woken: Woken) -> usize {
        let mut count = 0;
        while count < most {
            let Some(waiter) = self.waiting.get_mut(&key).and_then(VecDeque::pop_front) else { break };
            let waiter = waiter as usize;
            count += 1;
            self.now += self.memory.costs.unpark;
            self.cores[waiter].woken = woken;
            let running = self.now + self.memory.costs.wake;
            self.cores[waiter].clock = self.cores[waiter].clock.max(running);
            if !self.is_clocked() {
                // The schedule decides when the core runs; a late wake-up is one of its choices.
                self.cores[waiter].clock = self.now;
            }
            self.make_ready(waiter);
        }
        if self.waiting.get(&key).is_some_and(VecDeque::is_empty) {
            self.waiting.remove(&key);
        }
        count
    }

    /// Records a step of the current core and advances its clock.
    #[inline]
    pub(crate) fn record(&mut self, operation: Operation, line: Option<u32>, cost_ps: u64) {
        let core = self.current;
        let label = self.cores[core].label;
        let (number, at_ps) = (self.steps, self.now);
        self.trace.record(Step { number, at_ps, cost_ps, core, operation, line, label });
        if let Some(profiler) = &mut self.profiler {
            match operation {
                // Booked with what the access itself knows.
                Operation::Load | Operation::Store | Operation::ReadModifyWrite => {}
                Operation::Pause | Operation::Yield | Operation::Sleep | Operation::Park => {
                    profiler.book(core, Cause::Wait, label, at_ps, cost_ps);
                }
                _ => profiler.book(core, Cause::PrivateCache, label, at_ps, cost_ps),
            }
        }
        self.steps += 1;
        self.now += cost_ps;
    }

    /// Books a cost that the current core pays from now on.
    pub(crate) fn book(&mut self, cause: Cause, cost_ps: u64) {
        if let Some(profiler) = &mut self.profiler {
            profiler.book(self.current, cause, self.cores[self.current].label, self.now, cost_ps);
        }
    }

    /// Suspends the current core until a time. For runs in which a schedule decides.
    pub(crate) fn sleep_until(&mut self, at: u64) {
        let current = self.current;
        self.make_unready(current);
        self.cores[current].state = State::Sleeping;
        self.enqueue(current, at);
    }

    /// Parks the current core until it is woken or the deadline passes.
    pub(crate) fn park(&mut self, key: usize, deadline_ps: Option<u64>) {
        let current = self.current;
        self.make_unready(current);
        self.cores[current].state = State::Parked(key, self.now);
        self.waiting.entry(key).or_default().push_back(current as u32);
        if let Some(deadline) = deadline_ps {
            self.enqueue(current, deadline.max(self.now));
        }
    }

    /// The reason why the current core's parking ended.
    pub(crate) fn woken(&self) -> Woken {
        self.cores[self.current].woken
    }

    /// True if a schedule, and not the clocks, decides.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.schedule.is_some()
    }

    /// Removes the next fault that is due.
    ///
    /// No fault strikes a core that unwinds from a region: the standard library counts the panics that unwind in
    /// this thread, and would count one that never ends for ever.
    pub(crate) fn due_fault(&mut self) -> Option<Fault> {
        if self.htm.is_leaving(self.current) {
            return None;
        }
        let (_, fault) = self.faults.pop_if(|(step, _)| *step <= self.steps)?;
        Some(fault)
    }

    /// Checks the soft limit, and sets the step at which a limit or a fault is due next.
    pub(crate) fn set_attention(&mut self) {
        self.stopping |= self.steps >= self.limits.steps;
        let fault = self.faults.last().map_or(u64::MAX, |(step, _)| *step);
        let soft = if self.stopping { u64::MAX } else { self.limits.steps };
        self.attention_at = fault.min(soft).min(self.limits.steps_hard);
    }

    /// True if the current core may make its next step at once: no other core's turn, no limit, no fault.
    #[inline(always)]
    pub(crate) fn is_turn(&self) -> bool {
        self.key() < self.horizon && self.steps < self.attention_at
    }

    /// Makes the current core wait for its turn. Returns false if it need not wait.
    pub(crate) fn hand_over(&mut self, gives_way: bool) -> bool {
        let current = self.current;
        if self.is_clocked() {
            let is_late = self.key() >= self.horizon;
            if is_late {
                self.enqueue(current, self.now);
            }
            is_late
        } else {
            self.chosen = self.choose(Some(current), gives_way).filter(|next| *next != current);
            self.chosen.is_some()
        }
    }

    /// Saves the current core's clock and returns the yielder through which the core suspends itself.
    pub(crate) fn leave_current(&mut self) -> *const Yielder<(), ()> {
        let now = self.now;
        let core = &mut self.cores[self.current];
        core.clock = core.clock.max(now);
        core.yielder
    }
}
