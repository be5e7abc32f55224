//! The engine: whose turn it is, and what happens at a step.
//!
//! # Turns
//!
//! Each core has a clock. The core that runs keeps the clock of the next one at hand (`horizon`). A step first
//! compares: as long as the running core is the earliest, it goes on without a switch. Otherwise it puts itself
//! into the heap of those that are ready and suspends; the loop in `simulation.rs` resumes the earliest. Then
//! the step charges its cost and returns, and the caller does the real operation. So operations happen one at
//! a time, in the order of the clocks at which they begin; ties go to the lower number.
//!
//! With a [`Schedule`] the clocks do not decide. Each step asks the schedule, and there is one time for all:
//! the sum of all costs.
//!
//! # Sharing
//!
//! The engine is reached from the fibers through a pointer. All fibers and the loop run on one thread of the
//! operating system, and no reference into the engine is held across a switch.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::panic::resume_unwind;
use std::ptr;

use corosensei::Yielder;

use crate::core_local::Values;
use crate::fault::Fault;
use crate::htm::Htm;
use crate::memory::Memory;
use crate::outcome::{End, Fate, Waiting};
use crate::schedule::{Choice, Schedule};
use crate::trace::{Operation, Step, Trace};

/// Bits of a key that hold the core's number; the rest is the clock.
const CORE_BITS: u32 = 10;
const NOT_QUEUED: u64 = u64::MAX;
const NOT_RUNNABLE: u32 = u32::MAX;

thread_local! {
    /// The engine of the simulation that runs in this thread, or null.
    static ACTIVE: Cell<*mut Engine> = const { Cell::new(ptr::null_mut()) };
}

/// The engine of the simulation that runs in this thread, or null.
#[inline(always)]
pub(crate) fn active() -> *mut Engine {
    ACTIVE.get()
}

pub(crate) fn set_active(engine: *mut Engine) {
    ACTIVE.set(engine);
}

/// What unwinds a core that must end. Nobody but the fiber's root should catch it.
pub(crate) struct CoreEnded;

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
    queued: u64,
    /// Its place among the runnable, where a schedule decides.
    position: u32,
    woken: Woken,
    pub(crate) yielder: *const Yielder<(), ()>,
    pub(crate) label: &'static str,
    pub(crate) cache: usize,
    /// Another core shares its physical core.
    pub(crate) has_sibling: bool,
    /// It was told to unwind.
    told: bool,
    steps_after_end: u64,
    pub(crate) values: Values,
}

/// The limits of a run.
pub(crate) struct Limits {
    pub(crate) steps: u64,
    pub(crate) steps_hard: u64,
    pub(crate) until_ps: u64,
    pub(crate) until_ps_hard: u64,
    pub(crate) grace_steps: u64,
    pub(crate) unwinds: bool,
}

pub(crate) struct Engine {
    /// The clock of the current core.
    pub(crate) now: u64,
    pub(crate) current: usize,
    /// The current core goes on while its key is below this.
    horizon: u64,
    pub(crate) steps: u64,
    /// The step at which a limit or a fault is due.
    attention_at: u64,
    /// Steps do nothing: a condition is being checked, or the run has ended.
    pub(crate) quiet: bool,
    pub(crate) memory: Memory,
    pub(crate) trace: Trace,
    pub(crate) htm: Htm,
    pub(crate) cores: Vec<Core>,
    /// Keys of the cores that are ready, or wait until a time.
    queue: BinaryHeap<Reverse<u64>>,
    schedule: Option<Box<dyn Schedule>>,
    runnable: Vec<u32>,
    chosen: Option<usize>,
    waiting: HashMap<usize, VecDeque<u32>>,
    faults: Vec<(u64, Fault)>,
    pub(crate) limits: Limits,
    pub(crate) stopping: bool,
    pub(crate) end: Option<End>,
    /// Who is still to unwind.
    unwinding: VecDeque<u32>,
    pub(crate) switches: u64,
    pub(crate) sibling_percent: u64,
}

impl Engine {
    #[expect(clippy::too_many_arguments, reason = "called once, from the one place that has them all")]
    pub(crate) fn new(
        cores: usize,
        physical_cores: usize,
        memory: Memory,
        htm: Htm,
        trace: Trace,
        schedule: Option<Box<dyn Schedule>>,
        faults: Vec<(u64, Fault)>,
        limits: Limits,
        sibling_percent: u64,
    ) -> Self {
        let core = |number: usize| Core {
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
        };
        let mut engine = Self {
            now: 0,
            current: 0,
            horizon: 0,
            steps: 0,
            attention_at: 0,
            quiet: false,
            memory,
            trace,
            htm,
            cores: (0..cores).map(core).collect(),
            queue: BinaryHeap::new(),
            schedule,
            runnable: Vec::new(),
            chosen: None,
            waiting: HashMap::new(),
            faults,
            limits,
            stopping: false,
            end: None,
            unwinding: VecDeque::new(),
            switches: 0,
            sibling_percent,
        };
        (0..cores).for_each(|core| engine.make_ready(core));
        engine
    }

    #[inline(always)]
    fn key(&self) -> u64 {
        self.now << CORE_BITS | self.current as u64
    }

    fn is_clocked(&self) -> bool {
        self.schedule.is_none()
    }

    /// Puts a core into the heap, to go on at its clock or, if it is parked, to time out then.
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

    /// Takes a core from the runnable ones, where a schedule decides.
    fn make_unready(&mut self, core: usize) {
        let position = std::mem::replace(&mut self.cores[core].position, NOT_RUNNABLE);
        if position != NOT_RUNNABLE {
            self.runnable.swap_remove(position as usize);
            if let Some(moved) = self.runnable.get(position as usize) {
                self.cores[*moved as usize].position = position;
            }
        }
    }

    /// The least key in the heap that is not stale.
    fn first_queued(&mut self) -> Option<u64> {
        while let Some(Reverse(key)) = self.queue.peek().copied() {
            if self.cores[(key & ((1 << CORE_BITS) - 1)) as usize].queued == key {
                return Some(key);
            }
            self.queue.pop();
        }
        None
    }

    /// Lets the core go on whose time has come: asleep, parked until then, or ready.
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

    /// Who goes on, by the schedule. None if nobody ever can.
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

    /// Who is to be resumed next; the engine is then at that core. None when the run is over.
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
                    // It runs only after the time to wake up has passed, too.
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

    /// The cores that are parked, by number.
    pub(crate) fn parked(&self) -> Vec<Waiting> {
        let parked = self.cores.iter().enumerate().filter_map(|(number, core)| match core.state {
            State::Parked(key, since_ps) => {
                Some(Waiting { core: number, key, since_ns: since_ps / 1000, label: core.label })
            }
            _ => None,
        });
        parked.collect()
    }

    /// Ends the run for all cores. Those that are to unwind get their turn by [`next`](Self::next).
    pub(crate) fn end_all(&mut self, end: End) {
        self.htm.abort_all();
        self.end.get_or_insert(end);
        self.quiet = true;
        for (number, core) in self.cores.iter_mut().enumerate() {
            if matches!(core.state, State::Ready | State::Sleeping | State::Parked(..)) {
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

    /// The core's fiber runs, and suspends itself through this.
    pub(crate) fn set_yielder(&mut self, core: usize, yielder: *const Yielder<(), ()>) {
        self.cores[core].yielder = yielder;
    }

    /// Takes the core-local value made last from a core.
    pub(crate) fn pop_value(&mut self, core: usize) -> Option<Box<dyn std::any::Any>> {
        self.cores[core].values.pop()
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

    /// Wakes up to `most` of those parked on a key, the longest parked first. Returns how many.
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
                // The schedule decides when it runs; being late is one of its choices.
                self.cores[waiter].clock = self.now;
            }
            self.make_ready(waiter);
        }
        if self.waiting.get(&key).is_some_and(VecDeque::is_empty) {
            self.waiting.remove(&key);
        }
        count
    }

    /// Records a step that the current core makes and lets its clock go on.
    #[inline]
    pub(crate) fn record(&mut self, operation: Operation, line: Option<u32>, cost_ps: u64) {
        let core = self.current;
        let label = self.cores[core].label;
        let (number, at_ps) = (self.steps, self.now);
        self.trace.record(Step { number, at_ps, cost_ps, core, operation, line, label });
        self.steps += 1;
        self.now += cost_ps;
    }
}

/// What every step begins with: waits for the core's turn. False if the step is to have no effect.
///
/// # Safety
///
/// `engine` is the active engine, the caller runs in the fiber of its current core and holds no reference into
/// it.
#[inline(always)]
pub(crate) unsafe fn turn(engine: *mut Engine, gives_way: bool) -> bool {
    // SAFETY: the engine outlives its fibers' running, and nobody else refers to it now (this function's
    // contract); the reference ends before any switch.
    let (is_quiet, is_turn) = unsafe {
        let engine = &*engine;
        (engine.quiet, engine.key() < engine.horizon && engine.steps < engine.attention_at)
    };
    if is_quiet {
        // SAFETY: this function's contract.
        unsafe { quiet_step(engine, gives_way) };
        return false;
    }
    if !is_turn {
        // SAFETY: this function's contract.
        return unsafe { wait_for_turn(engine, gives_way) };
    }
    true
}

/// # Safety
///
/// As [`turn`].
#[cold]
#[inline(never)]
unsafe fn wait_for_turn(engine: *mut Engine, gives_way: bool) -> bool {
    // SAFETY: the contract of `turn`, which is this one's; references end before each switch.
    unsafe {
        attend(engine);
        if (*engine).quiet {
            quiet_step(engine, gives_way);
            return false;
        }
        let this = &mut *engine;
        let current = this.current;
        if this.is_clocked() {
            if this.key() >= this.horizon {
                this.enqueue(current, this.now);
                suspend(engine);
            }
        } else {
            match this.choose(Some(current), gives_way) {
                Some(next) if next != current => {
                    this.chosen = Some(next);
                    suspend(engine);
                }
                _ => {}
            }
        }
        !(*engine).quiet
    }
}

/// Limits and faults that are due.
///
/// # Safety
///
/// As [`turn`].
unsafe fn attend(engine: *mut Engine) {
    // SAFETY: the contract of `turn`, which is this one's; references end before each switch.
    unsafe {
        let this = &mut *engine;
        if this.now >= this.limits.until_ps_hard {
            return end_run(engine, End::TimeLimit);
        }
        if this.steps < this.attention_at {
            return;
        }
        if this.steps >= this.limits.steps_hard {
            return end_run(engine, End::StepLimit);
        }
        if this.steps >= this.limits.steps {
            this.stopping = true;
        }
        while let Some((step, fault)) = this.faults.last().copied()
            && step <= this.steps
        {
            this.faults.pop();
            strike(engine, fault);
        }
        let this = &mut *engine;
        let fault = this.faults.last().map_or(u64::MAX, |(step, _)| *step);
        let soft = if this.stopping { u64::MAX } else { this.limits.steps };
        this.attention_at = fault.min(soft).min(this.limits.steps_hard);
    }
}

/// # Safety
///
/// As [`turn`].
unsafe fn strike(engine: *mut Engine, fault: Fault) {
    // SAFETY: the contract of `turn`, which is this one's; references end before each switch.
    unsafe {
        let this = &mut *engine;
        let current = this.current;
        match fault {
            Fault::Stop(ps) => {
                this.record(Operation::Stopped, None, ps);
                this.htm.doom(current, crate::htm::AbortCause::System);
                if !this.is_clocked() {
                    this.now -= ps;
                    this.sleep_until(this.now + ps);
                    suspend(engine);
                } else {
                    check_region(engine);
                }
            }
            Fault::Kill => {
                let alive =
                    |core: &&Core| !matches!(core.state, State::Finished | State::Panicked | State::Killed);
                if this.cores.iter().filter(alive).count() < 2 {
                    return;
                }
                this.record(Operation::Killed, None, 0);
                this.htm.doom(current, crate::htm::AbortCause::System);
                this.htm.forget(current);
                this.make_unready(current);
                this.cores[current].state = State::Killed;
                suspend(engine);
                unreachable!("a killed core is never resumed");
            }
        }
    }
}

impl Engine {
    /// Takes the current core off until a time, where a schedule decides.
    pub(crate) fn sleep_until(&mut self, at: u64) {
        let current = self.current;
        self.make_unready(current);
        self.cores[current].state = State::Sleeping;
        self.enqueue(current, at);
    }

    /// Takes the current core off until it is woken or the time has come.
    pub(crate) fn park(&mut self, key: usize, deadline_ps: Option<u64>) {
        let current = self.current;
        self.make_unready(current);
        self.cores[current].state = State::Parked(key, self.now);
        self.waiting.entry(key).or_default().push_back(current as u32);
        if let Some(deadline) = deadline_ps {
            self.enqueue(current, deadline.max(self.now));
        }
    }

    /// How the current core's parking ended.
    pub(crate) fn woken(&self) -> Woken {
        self.cores[self.current].woken
    }

    /// Whether the schedule, and not the clocks, decides.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.schedule.is_some()
    }
}

/// Suspends the current core. Unwinds, when it is resumed, if it must end or has lost its region.
///
/// # Safety
///
/// As [`turn`].
pub(crate) unsafe fn suspend(engine: *mut Engine) {
    // SAFETY: the contract of `turn`, which is this one's. The yielder lives on the fiber's own stack and was
    // set before the body began; the engine is at this core again when the fiber is resumed.
    unsafe {
        let this = &mut *engine;
        let core = &mut this.cores[this.current];
        core.clock = core.clock.max(this.now);
        let yielder = core.yielder;
        (*yielder).suspend(());
        if (*engine).quiet {
            quiet_step(engine, false);
        }
        check_region(engine);
    }
}

/// Unwinds to the beginning of the current core's region if it was aborted.
///
/// # Safety
///
/// As [`turn`].
pub(crate) unsafe fn check_region(engine: *mut Engine) {
    // SAFETY: the contract of `turn`; the reference ends here.
    if unsafe { (*engine).htm.must_leave((*engine).current) } {
        resume_unwind(Box::new(crate::htm::RegionAborted));
    }
}

/// Ends the run from within a core.
///
/// # Safety
///
/// As [`turn`].
unsafe fn end_run(engine: *mut Engine, end: End) {
    // SAFETY: the contract of `turn`; references end before each switch.
    unsafe {
        (*engine).end_all(end);
        let this = &mut *engine;
        let current = this.current as u32;
        this.unwinding.retain(|core| *core != current);
        quiet_step(engine, false);
    }
}

/// A step in a run that has ended (or in a condition that is being checked): it has no effect, but unwinds the
/// core the first time.
///
/// # Safety
///
/// As [`turn`].
#[cold]
unsafe fn quiet_step(engine: *mut Engine, gives_way: bool) {
    // SAFETY: the contract of `turn`; references end before each switch.
    unsafe {
        let this = &mut *engine;
        if this.end.is_none() {
            return;
        }
        let (grace, current) = (this.limits.grace_steps, this.current);
        let unwinds = this.limits.unwinds;
        let core = &mut this.cores[current];
        core.steps_after_end += 1;
        if !unwinds || core.steps_after_end > grace {
            core.state = State::Abandoned;
            (*core.yielder).suspend(());
            unreachable!("an abandoned core is never resumed");
        }
        if !core.told {
            core.told = true;
            resume_unwind(Box::new(CoreEnded));
        }
        if gives_way {
            // A destructor waits for another core, which has to unwind for that.
            let yielder = core.yielder;
            this.unwinding.push_back(current as u32);
            (*yielder).suspend(());
        }
    }
}
