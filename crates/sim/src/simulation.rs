//! Running a simulation: the cores' fibers, and the loop that lets them run in turn.

use std::cell::{Cell, RefCell};
use std::mem::{self, ManuallyDrop};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::engine::{self, Engine, Limits, Parts};
use crate::fault::Faults;
use crate::machine::Machine;
use crate::memory::Memory;
use crate::operations::TIME_MAX_PS;
use crate::outcome::{End, Fate, Outcome};
use crate::regions::Htm;
use crate::schedule::{Priorities, RandomSwitches, Schedule};
use crate::trace::Trace;
use crate::turn::CoreEnded;
use crate::virtual_core::State;

/// Who goes on.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Order {
    /// The core with the least clock; the lower number if two are equal. For measuring.
    LeastClock,
    /// [`RandomSwitches`], seeded by the run.
    Random {
        /// The probability of a switch at each step, between 0 and 1.
        probability: f64,
    },
    /// [`Priorities`], seeded by the run.
    Priorities {
        /// How many ordered events the bugs looked for need; at least 1.
        depth: u32,
        /// How many steps a run has, about.
        steps_expected: u64,
    },
}

/// What becomes of cores that are in the middle of something when the run has to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// They are never resumed, and their stacks are kept (see [`free_abandoned_stacks`]). No code runs that
    /// does not expect it, so this is sound whatever the cores were doing.
    #[default]
    Abandon,
    /// Their next step unwinds. Destructors run; other cores run while a destructor waits (a spin hint, a
    /// yield). Code whose unsafe parts rely on an atomic operation not to panic must not be ended like this.
    /// A core that is just then unwinding from a panic of its own would unwind twice, which aborts the process.
    Unwind,
}

/// The options of a simulation. They and the program determine the run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The machine.
    pub machine: Machine,
    /// Virtual cores, at most the machine's hardware threads.
    pub cores: usize,
    /// Seeds the schedule, the faults and interrupts. Default 0.
    pub seed: u64,
    /// Who goes on. Default [`Order::LeastClock`].
    pub order: Order,
    /// Faults. Default none.
    pub faults: Faults,
    /// Whether caches are modelled. If not, each access costs a hit; virtual times mean little then, but do not
    /// depend on where the allocator puts things. Default true.
    pub caches: bool,
    /// From this virtual time on [`should_stop`](crate::should_stop) says so. Default none.
    pub until_ns: Option<u64>,
    /// At this virtual time the run is ended. Default: two and a half hours.
    pub until_ns_hard: Option<u64>,
    /// From this step on [`should_stop`](crate::should_stop) says so. Default none.
    pub steps_max: Option<u64>,
    /// How many steps more, after [`steps_max`](Self::steps_max) or another core's panic, until the run is
    /// ended. Default a million.
    pub grace_steps: u64,
    /// What becomes of cores that have not finished when the run is ended.
    pub ending: Ending,
    /// How many steps of each core the trace keeps. Default 64.
    pub trace_steps: usize,
    /// Bytes of each core's stack. Default 512 KiB; touched pages only cost memory.
    pub stack_bytes: usize,
}

impl Config {
    /// So many cores of this machine, everything else by default.
    pub fn new(machine: Machine, cores: usize) -> Self {
        Self {
            machine,
            cores,
            seed: 0,
            order: Order::LeastClock,
            faults: Faults::NONE,
            caches: true,
            until_ns: None,
            until_ns_hard: None,
            steps_max: None,
            grace_steps: 1_000_000,
            ending: Ending::default(),
            trace_steps: 64,
            stack_bytes: 512 * 1024,
        }
    }
}

/// Why a simulation cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No core, or more than the machine has.
    #[error("{cores} cores were asked for; machine {machine:?} runs 1 to {threads}")]
    Cores {
        /// How many were asked for.
        cores: usize,
        /// The machine.
        machine: String,
        /// Its hardware threads.
        threads: usize,
    },
    /// A probability that is none.
    #[error("the probability of a switch must be between 0 and 1")]
    Probability,
    /// Priorities of depth 0.
    #[error("the depth of a priority schedule must be at least 1")]
    Depth,
    /// A stack that is too small or too large to be one.
    #[error("a stack of {bytes} bytes was asked for; it must have 16 KiB to 1 GiB")]
    Stack {
        /// How many bytes were asked for.
        bytes: usize,
    },
}

/// A simulation that is ready to run. It can be run many times.
#[derive(Clone, Debug)]
pub struct Simulation {
    config: Config,
}

type Fiber = Coroutine<(), (), (), DefaultStack>;

thread_local! {
    /// Stacks of finished cores, for the next run.
    static SPARE: RefCell<Vec<(usize, DefaultStack)>> = const { RefCell::new(Vec::new()) };
    /// Fibers that were killed or abandoned. Never dropped, because that would unwind them.
    static ABANDONED: RefCell<Vec<ManuallyDrop<Fiber>>> = const { RefCell::new(Vec::new()) };
}

/// How many stacks of finished cores are kept.
const SPARE_MAX: usize = 1024;

/// Frees the stacks of all cores that were killed or abandoned in this thread, without running any destructor.
/// Returns how many there were.
///
/// Each keeps its mapping until then. A process has 65,530 mappings on Linux unless told otherwise, and a stack
/// takes two.
///
/// # Safety
///
/// Nothing that is still used points into these stacks: everything the cores of those runs shared has been
/// dropped.
pub unsafe fn free_abandoned_stacks() -> usize {
    let abandoned = ABANDONED.with(|abandoned| mem::take(&mut *abandoned.borrow_mut()));
    let count = abandoned.len();
    for mut fiber in abandoned {
        // SAFETY: nobody resumes the fiber any more, and its frames are forgotten, which the caller promises to
        // be no harm to others.
        unsafe { fiber.force_reset() };
        drop(ManuallyDrop::into_inner(fiber));
    }
    count
}

/// Resets the thread's engine whatever happens.
struct Active;

impl Drop for Active {
    fn drop(&mut self) {
        engine::set_active(std::ptr::null_mut());
    }
}

impl Simulation {
    /// Checks the options.
    ///
    /// # Errors
    ///
    /// If they contradict the machine or each other.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let threads = config.machine.threads();
        if config.cores == 0 || config.cores > threads {
            let machine = config.machine.name.clone();
            return Err(ConfigError::Cores { cores: config.cores, machine, threads });
        }
        match config.order {
            Order::Random { probability } if !(0.0..=1.0).contains(&probability) => {
                return Err(ConfigError::Probability);
            }
            Order::Priorities { depth: 0, .. } => return Err(ConfigError::Depth),
            _ => {}
        }
        if !(16 * 1024..=1 << 30).contains(&config.stack_bytes) {
            return Err(ConfigError::Stack { bytes: config.stack_bytes });
        }
        Ok(Self { config })
    }

    /// The options.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Runs `body` once on each core, with the core's number, until all have returned.
    ///
    /// The bodies run on this thread, each on its own stack, and switch at any step; a `RefCell` that one of
    /// them has borrowed over a step is borrowed for the others, too.
    ///
    /// A core that is killed or abandoned never leaves its frames, as if it had forgotten everything in them.
    /// So a body must not make steps inside calls that other *threads* rely on to wait for them: scoped threads
    /// of the standard library, whose scope would be gone without having waited.
    ///
    /// # Panics
    ///
    /// If a core panics, after the others have been ended, with the same payload. If called from inside a
    /// simulation. If there is no memory for the stacks.
    pub fn run<R>(&self, body: impl Fn(usize) -> R) -> Outcome<R> {
        let mut outcome = self.try_run(body);
        if let End::Panicked { payload, .. } = &mut outcome.end {
            let payload = mem::replace(payload, Box::new(()));
            resume_unwind(payload);
        }
        outcome
    }

    /// As [`run`](Self::run), but a core's panic is returned as [`End::Panicked`].
    pub fn try_run<R>(&self, body: impl Fn(usize) -> R) -> Outcome<R> {
        let Config { seed, cores, ref order, .. } = self.config;
        let schedule: Option<Box<dyn Schedule>> = match *order {
            Order::LeastClock => None,
            Order::Random { probability } => Some(Box::new(RandomSwitches::new(seed, probability))),
            Order::Priorities { depth, steps_expected } => {
                Some(Box::new(Priorities::new(seed, cores, depth, steps_expected)))
            }
        };
        self.try_run_by(schedule, body)
    }

    /// As [`try_run`](Self::try_run), by a schedule of the caller's instead of the one in the options.
    pub fn try_run_with<R>(&self, schedule: Box<dyn Schedule>, body: impl Fn(usize) -> R) -> Outcome<R> {
        self.try_run_by(Some(schedule), body)
    }

    fn try_run_by<R>(&self, schedule: Option<Box<dyn Schedule>>, body: impl Fn(usize) -> R) -> Outcome<R> {
        assert!(engine::active().is_null(), "a simulation cannot run inside another");
        let config = &self.config;
        let cores = config.cores;
        let picoseconds = |ns: Option<u64>| ns.unwrap_or(u64::MAX).saturating_mul(1000).min(TIME_MAX_PS);
        let steps = config.steps_max.unwrap_or(u64::MAX);
        let engine = Box::into_raw(Box::new(Engine::new(Parts {
            cores,
            physical_cores: config.machine.physical_cores(),
            memory: Memory::new(&config.machine, cores, config.caches),
            htm: Htm::new(&config.machine, cores, config.seed),
            trace: Trace::new(cores, config.trace_steps, config.caches),
            schedule,
            faults: config.faults.draw(config.seed),
            limits: Limits {
                steps,
                steps_hard: steps.saturating_add(config.grace_steps),
                until_ps: picoseconds(config.until_ns),
                until_ps_hard: picoseconds(config.until_ns_hard),
                grace_steps: config.grace_steps,
                unwinds: config.ending == Ending::Unwind,
            },
            sibling_percent: config.machine.percent.sibling_slowdown.round() as u64,
        })));
        let results: Vec<Cell<Option<R>>> = (0..cores).map(|_| Cell::new(None)).collect();
        let panicked = Cell::new(None);
        let (body, slots, panicked_ref) = (&body, &results, &panicked);
        let mut fibers: Vec<ManuallyDrop<Fiber>> = (0..cores)
            .map(|core| {
                let stack = stack(config.stack_bytes);
                let run = move |yielder: &Yielder<(), ()>, ()| {
                    // SAFETY: the engine is alive as long as fibers run; the reference ends here.
                    unsafe { (*engine).set_yielder(core, yielder) };
                    let result = catch_unwind(AssertUnwindSafe(|| {
                        let value = body(core);
                        drop_values(engine, core);
                        value
                    }));
                    let state = match result {
                        Ok(value) => {
                            slots[core].set(Some(value));
                            State::Finished
                        }
                        Err(payload) if payload.is::<CoreEnded>() => {
                            let _ = catch_unwind(AssertUnwindSafe(|| drop_values(engine, core)));
                            State::Abandoned
                        }
                        Err(payload) => {
                            panicked_ref.set(Some((core, payload)));
                            // SAFETY: as above.
                            unsafe { (*engine).stop_after_panic() };
                            let _ = catch_unwind(AssertUnwindSafe(|| drop_values(engine, core)));
                            State::Panicked
                        }
                    };
                    // SAFETY: as above.
                    unsafe { (*engine).core_finished(core, state) };
                };
                // SAFETY: what the fiber borrows (the body, the result slots) lives until this function
                // returns, and no fiber runs after that: it has either returned by then, or it is put away and
                // never resumed, so that it never touches what it borrowed.
                ManuallyDrop::new(unsafe { Fiber::with_stack_unchecked(stack, run) })
            })
            .collect();
        engine::set_active(engine);
        let active = Active;
        // SAFETY: the engine is alive, no fiber runs, and the reference ends with the call.
        while let Some(core) = unsafe { (*engine).next() } {
            match fibers[core].resume(()) {
                CoroutineResult::Yield(()) | CoroutineResult::Return(()) => {}
            }
        }
        drop(active);
        // SAFETY: made by `Box::into_raw` above. No fiber runs any more, so nobody uses the pointer.
        let mut engine = unsafe { Box::from_raw(engine) };
        put_away(fibers, config.stack_bytes);
        engine.cores.iter_mut().for_each(|core| core.values.forget());
        let end = match (panicked.take(), engine.end.take()) {
            (Some((core, payload)), _) => End::Panicked { core, payload },
            (None, end) => end.unwrap_or(End::Finished),
        };
        let fates: Vec<Fate> = (0..cores).map(|core| engine.fate(core)).collect();
        Outcome {
            end,
            results: results.into_iter().map(Cell::into_inner).collect(),
            fates,
            clocks_ns: engine.cores.iter().map(|core| core.clock / 1000).collect(),
            steps: engine.steps,
            switches: engine.switches,
            lines: engine.memory.lines(),
            accesses: engine.memory.accesses(),
            regions: engine.htm.counts(),
            trace: engine.trace,
        }
    }
}

/// Drops the values that a core has in [`CoreLocal`](crate::CoreLocal)s.
fn drop_values(engine: *mut Engine, core: usize) {
    // SAFETY: this is the core's fiber and the engine is alive; the reference ends before the value is dropped.
    while let Some(value) = unsafe { (*engine).pop_value(core) } {
        drop(value);
    }
}

fn stack(bytes: usize) -> DefaultStack {
    let spare = SPARE.with(|spare| {
        let mut spare = spare.borrow_mut();
        let at = spare.iter().rposition(|(size, _)| *size == bytes)?;
        Some(spare.swap_remove(at).1)
    });
    spare.unwrap_or_else(|| DefaultStack::new(bytes).expect("there is memory for the cores' stacks"))
}

/// Keeps the stacks of the finished for the next run, and those of the others for ever.
fn put_away(fibers: Vec<ManuallyDrop<Fiber>>, bytes: usize) {
    for fiber in fibers {
        if fiber.done() {
            let stack = ManuallyDrop::into_inner(fiber).into_stack();
            SPARE.with(|spare| {
                let mut spare = spare.borrow_mut();
                if spare.len() < SPARE_MAX {
                    spare.push((bytes, stack));
                }
            });
        } else if fiber.started() {
            ABANDONED.with(|abandoned| abandoned.borrow_mut().push(fiber));
        } else {
            // Its body was never entered; only what the closure captured is dropped.
            drop(ManuallyDrop::into_inner(fiber));
        }
    }
}
