//! Running a simulation: the cores' fibers, and the loop that resumes them in turn.

use std::cell::{Cell, RefCell};
use std::mem::{self, ManuallyDrop};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use crossbeam_epoch as epoch;

use crate::engine::{self, Engine, EngineParts, RunLimits};
use crate::fault::Faults;
use crate::machine::Machine;
use crate::memory::Memory;
use crate::operations::TIME_MAX_PS;
use crate::outcome::{End, Fate, SimulationReport};
use crate::profile::Profiler;
use crate::regions::Htm;
use crate::schedule::{Priorities, RandomSwitches, Schedule};
use crate::trace::Trace;
use crate::turn::CoreEnded;
use crate::virtual_core::State;

/// The order in which cores make their steps.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Order {
    /// The core with the least clock goes first; of equal clocks, the lower core number. For measuring.
    LeastClock,
    /// [`RandomSwitches`], seeded by the run.
    Random {
        /// The probability of a switch at each step, between 0 and 1.
        probability: f64,
    },
    /// [`Priorities`], seeded by the run.
    Priorities {
        /// The number of ordered events that the sought bugs need; at least 1.
        depth: u32,
        /// The approximate number of steps of a run.
        steps_expected: u64,
    },
}

impl Order {
    /// One of three kinds, by the seed, for the exploration of schedules: rare random switches, frequent ones, or priorities with one to
    /// four ordered events.
    pub fn by_seed(seed: u64, steps_expected: u64) -> Self {
        match seed % 3 {
            0 => Self::Random { probability: 0.02 },
            1 => Self::Random { probability: 0.3 },
            _ => Self::Priorities { depth: 1 + (seed / 3 % 4) as u32, steps_expected },
        }
    }
}

/// The treatment of unfinished cores when the run must end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// The cores are never resumed, and their stacks are kept (see [`forget_abandoned_cores`]). None of their
    /// code runs any more, so this is sound whatever the cores were doing.
    #[default]
    Abandon,
    /// The cores unwind at their next step. Destructors run; other cores run while a destructor waits (a spin
    /// hint, a yield). Unsound for code whose unsafe parts rely on atomic operations not to panic. A core that is
    /// already unwinding from a panic of its own would unwind twice, which aborts the process.
    Unwind,
}

/// The options of a simulation. Together with the program they determine the run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The machine.
    pub machine: Machine,
    /// Virtual cores, at most the machine's hardware threads.
    pub cores: usize,
    /// The seed of the schedule, the faults and the interrupts. Default: 0.
    pub seed: u64,
    /// The order in which cores make their steps. Default: [`Order::LeastClock`].
    pub order: Order,
    /// The faults. Default: none.
    pub faults: Faults,
    /// The step inside a region at which that region is aborted, as by an interrupt: steps inside regions are counted from 0, over
    /// all cores, and the commit of a region is one. `None` for none. Default: none.
    pub region_abort_at: Option<u64>,
    /// True if caches are modelled. Otherwise each access costs a hit: virtual times then mean little, but do not
    /// depend on the allocator's placement. Default: true.
    pub caches: bool,
    /// The virtual time from which [`should_stop`](crate::should_stop) returns true. Default: none.
    pub until_ns: Option<u64>,
    /// The virtual time at which the run is ended. Default: two and a half hours.
    pub until_ns_hard: Option<u64>,
    /// The step from which [`should_stop`](crate::should_stop) returns true. Default: none.
    pub steps_max: Option<u64>,
    /// The number of steps from [`steps_max`](Self::steps_max), or from a core's panic, until the run is ended.
    /// Default: a million.
    pub grace_steps: u64,
    /// The treatment of unfinished cores when the run is ended. Default: [`Ending::Abandon`].
    pub ending: Ending,
    /// The number of steps of each core that the trace keeps. Default: 64.
    pub trace_steps: usize,
    /// The virtual time, in nanoseconds, from which the run is profiled, until [`until_ns`](Self::until_ns); `None` for no
    /// profile. Default: none.
    pub profile_from_ns: Option<u64>,
    /// The size of each core's stack, in bytes. Only touched pages take memory. Default: 512 KiB.
    pub stack_bytes: usize,
}

impl Config {
    /// The default options for `cores` cores of this machine.
    pub fn new(machine: Machine, cores: usize) -> Self {
        Self {
            machine,
            cores,
            seed: 0,
            order: Order::LeastClock,
            faults: Faults::NONE,
            region_abort_at: None,
            caches: true,
            until_ns: None,
            until_ns_hard: None,
            steps_max: None,
            grace_steps: 1_000_000,
            ending: Ending::default(),
            trace_steps: 64,
            profile_from_ns: None,
            stack_bytes: 512 * 1024,
        }
    }
}

/// The reason why a simulation cannot run with its options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No core, or more than the machine has.
    #[error("{cores} cores were asked for; machine {machine:?} runs 1 to {threads}")]
    Cores {
        /// The requested number of cores.
        cores: usize,
        /// The machine.
        machine: String,
        /// The machine's hardware threads.
        threads: usize,
    },
    /// A probability outside 0 to 1.
    #[error("the probability of a switch must be between 0 and 1")]
    Probability,
    /// Priorities of depth 0.
    #[error("the depth of a priority schedule must be at least 1")]
    Depth,
    /// A stack that is too small or too large.
    #[error("a stack of {bytes} bytes was asked for; it must have 16 KiB to 1 GiB")]
    Stack {
        /// The requested size.
        bytes: usize,
    },
}

/// A simulation that is ready to run. It can run many times.
#[derive(Clone, Debug)]
pub struct Simulation {
    config: Config,
}

type Fiber = Coroutine<(), (), (), DefaultStack>;

thread_local! {
    /// Stacks of finished cores, for the next run.
    static SPARE: RefCell<Vec<(usize, DefaultStack)>> = const { RefCell::new(Vec::new()) };
    /// The fibers of killed and abandoned cores. Never dropped, because that would unwind them.
    static ABANDONED: RefCell<Vec<ManuallyDrop<Fiber>>> = const { RefCell::new(Vec::new()) };
}

/// The most stacks of finished cores that are kept.
const SPARE_MAX: usize = 1024;

/// Frees the stacks of all cores that were killed or abandoned in this thread, without running any destructor, and gives up the pins of
/// epochs that they held. Returns their number.
///
/// Until then each stack keeps its memory mappings. By default Linux allows a process 65,530 mappings, and a
/// stack takes two. And the thread stays pinned, so that no thread frees what it retires.
///
/// # Safety
///
/// Nothing that is still used points into these stacks: everything that the cores of those runs shared has been
/// dropped, or is leaked and never used again. The thread itself holds no pin, and neither does what the runs returned.
pub unsafe fn forget_abandoned_cores() -> usize {
    let abandoned = ABANDONED.with(|abandoned| mem::take(&mut *abandoned.borrow_mut()));
    let count = abandoned.len();
    for mut fiber in abandoned {
        // SAFETY: nothing resumes the fiber any more. Its frames are forgotten; the caller promises that nothing
        // still used points into them.
        unsafe { fiber.force_reset() };
        drop(ManuallyDrop::into_inner(fiber));
    }
    while count > 0 && epoch::is_pinned() {
        let own = ManuallyDrop::new(epoch::pin());
        // SAFETY: a thread's guards are all alike: each counts as one pin of it, and its drop takes one away. This copy takes away that of a
        // core that is never resumed.
        let of_dead_core = unsafe { ptr::read(&*own) };
        drop((of_dead_core, ManuallyDrop::into_inner(own)));
    }
    count
}

/// A guard: its drop resets the thread's active engine, also when a panic unwinds.
struct Active;

impl Drop for Active {
    fn drop(&mut self) {
        engine::set_active(std::ptr::null_mut());
    }
}

impl Simulation {
    /// Checks the options and makes a simulation.
    ///
    /// # Errors
    ///
    /// If an option does not fit the machine or is out of its range.
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

    /// Runs `body` once on each core, with the core's number, until all have returned.
    ///
    /// The bodies run on this thread, each on its own stack, and may switch at any step. If one of them holds a
    /// `RefCell` borrowed across a step, the `RefCell` is borrowed for the others, too.
    ///
    /// A core that is killed or abandoned never leaves its frames, as if it had forgotten everything in them. So a
    /// body must not make steps inside a call that must return before other *threads* are safe: the scope of the
    /// standard library's scoped threads would vanish without having waited for them.
    ///
    /// # Panics
    ///
    /// With the same payload if a core panics, after the other cores have ended. If called from inside a
    /// simulation. If there is no memory for the stacks.
    pub fn run<R>(&self, body: impl Fn(usize) -> R) -> SimulationReport<R> {
        let mut outcome = self.try_run(body);
        if let End::Panicked { payload, .. } = &mut outcome.end {
            let payload = mem::replace(payload, Box::new(()));
            resume_unwind(payload);
        }
        outcome
    }

    /// As [`run`](Self::run), but a core's panic is returned as [`End::Panicked`].
    pub fn try_run<R>(&self, body: impl Fn(usize) -> R) -> SimulationReport<R> {
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

    /// As [`try_run`](Self::try_run), but with the caller's schedule instead of the order in the options.
    pub fn try_run_with<R>(
        &self,
        schedule: Box<dyn Schedule>,
        body: impl Fn(usize) -> R,
    ) -> SimulationReport<R> {
        self.try_run_by(Some(schedule), body)
    }

    fn try_run_by<R>(
        &self,
        schedule: Option<Box<dyn Schedule>>,
        body: impl Fn(usize) -> R,
    ) -> SimulationReport<R> {
        assert!(engine::active().is_null(), "a simulation cannot run inside another");
        let config = &self.config;
        let cores = config.cores;
        let picoseconds = |ns: Option<u64>| ns.unwrap_or(u64::MAX).saturating_mul(1000).min(TIME_MAX_PS);
        let steps = config.steps_max.unwrap_or(u64::MAX);
        let engine = Box::into_raw(Box::new(Engine::new(EngineParts {
            cores,
            physical_cores: config.machine.physical_cores(),
            memory: Memory::new(&config.machine, cores, config.caches),
            htm: Htm::new(&config.machine, cores, config.seed, config.region_abort_at, config.caches),
            trace: Trace::new(cores, config.trace_steps, config.caches),
            schedule,
            faults: config.faults.draw(config.seed),
            limits: RunLimits {
                steps,
                steps_hard: steps.saturating_add(config.grace_steps),
                until_ps: picoseconds(config.until_ns),
                until_ps_hard: picoseconds(config.until_ns_hard),
                grace_steps: config.grace_steps,
                unwinds: config.ending == Ending::Unwind,
            },
            sibling_percent: config.machine.percent.sibling_slowdown.round() as u64,
            profiler: config
                .profile_from_ns
                .map(|from| Profiler::new(cores, picoseconds(Some(from)), picoseconds(config.until_ns))),
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
                // SAFETY: what the fiber borrows (the body, the result slots) lives until this function returns,
                // and no fiber runs after that: by then it has either returned, or it is put away and never
                // resumed, so that it never touches what it borrowed.
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
        // SAFETY: made by `Box::into_raw` above. No fiber runs any more, so nothing else uses the pointer.
        let mut engine = unsafe { Box::from_raw(engine) };
        put_away(fibers, config.stack_bytes);
        engine.cores.iter_mut().for_each(|core| core.values.forget());
        let end = match (panicked.take(), engine.end.take()) {
            (Some((core, payload)), _) => End::Panicked { core, payload },
            (None, end) => end.unwrap_or(End::Finished),
        };
        let fates: Vec<Fate> = (0..cores).map(|core| engine.fate(core)).collect();
        SimulationReport {
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
            profile: engine.profiler.map(|profiler| profiler.report()),
        }
    }
}

/// Drops a core's values of all [`CoreLocal`](crate::CoreLocal)s.
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
    spare.unwrap_or_else(|| DefaultStack::new(bytes).expect("no memory for the cores' stacks"))
}

/// Keeps the stacks of finished cores for the next run, and the fibers of the others until
/// [`forget_abandoned_cores`].
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
            // The fiber never entered its body; the drop only drops what the closure captured.
            drop(ManuallyDrop::into_inner(fiber));
        }
    }
}
