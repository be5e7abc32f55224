//! The operations of a core: the functions that code calls from inside a simulation.
//!
//! Each *step* first waits for the core's turn and then charges its cost. The caller performs the real operation
//! when the function has returned, before any other core runs. Outside a simulation all of them do nothing, at
//! the cost of one read of a thread-local.

use crate::engine::{self, Engine};
use crate::htm;
use crate::memory::AccessKind;
use crate::profile::{Cause, Wait};
use crate::trace::Operation;
use crate::turn;
use crate::virtual_core::Woken;
use crate::work::Work;

/// The latest virtual time, in picoseconds: two and a half hours.
pub(crate) const TIME_MAX_PS: u64 = 1 << 53;

/// True if a simulation runs in this thread. Costs one read of a thread-local.
#[inline]
pub fn is_active() -> bool {
    !engine::active().is_null()
}

/// The number of the calling core, from 0; `None` outside a simulation.
#[inline]
pub fn current_core() -> Option<usize> {
    look(|engine| engine.current)
}

/// The number of the simulation that runs in this thread, which no other one of the thread has; 0 outside a simulation.
pub fn number() -> u64 {
    look(|engine| engine.number).unwrap_or_default()
}

/// The number of cores of the simulation; `None` outside a simulation.
pub fn cores() -> Option<usize> {
    look(|engine| engine.cores.len())
}

/// Announces an access to memory that the caller makes right after this call. A step for each cache line that
/// it touches; no other core runs between these steps.
#[inline]
pub fn access(address: usize, bytes: usize, kind: AccessKind) {
    let engine = engine::active();
    if !engine.is_null() {
        access_inside(engine, address, bytes, kind);
    }
}

/// As [`access`], for a change of these bytes: inside a region their content is [logged](crate::htm::log_write) besides, so that
/// an abort of the region restores it.
///
/// # Safety
///
/// As for [`log_write`](crate::htm::log_write).
#[inline]
pub unsafe fn access_to_change(address: *mut u8, bytes: usize, kind: AccessKind) {
    let engine = engine::active();
    if !engine.is_null() {
        access_inside(engine, address.addr(), bytes, kind);
        // SAFETY: as in `access_inside`; for the logging, this function's contract.
        unsafe {
            if (*engine).htm.is_active() {
                htm::log_write(address, bytes);
            }
        }
    }
}

/// A number for an address that is the same in each run of a simulation, wherever the allocator has put the thing that is there: lines
/// are counted in the order of first touch, and offsets in them kept. Costs nothing. Outside a simulation it is the address.
pub fn place(address: usize) -> usize {
    let engine = engine::active();
    if engine.is_null() {
        return address;
    }
    // SAFETY: as in `access_inside`.
    let memory = unsafe { &mut (*engine).memory };
    let unit = memory.unit();
    memory.number((address / unit) as u64) as usize * unit + address % unit
}

/// Separate from [`access`], so that this code is not inlined at every atomic operation.
#[inline(never)]
fn access_inside(engine: *mut Engine, address: usize, bytes: usize, kind: AccessKind) {
    // SAFETY: this is the current core's fiber, and no reference into the engine is alive: all references that
    // this module makes end before it calls foreign code or switches.
    unsafe {
        if !turn::begin_step(engine, false) {
            return;
        }
        let unit = (*engine).memory.unit();
        let first = (address / unit) as u64;
        let last = (address.saturating_add(bytes.max(1) - 1) / unit) as u64;
        for line in first..=last {
            let this = &mut *engine;
            if this.htm.is_active() {
                this.htm.access(this.current, line, kind != AccessKind::Load, this.now);
                turn::check_region(engine);
            }
            let this = &mut *engine;
            let cache = this.cores[this.current].cache;
            let (number, cost) = this.memory.access(cache, line, kind, this.now);
            let operation = match kind {
                AccessKind::Load => Operation::Load,
                AccessKind::Store => Operation::Store,
                AccessKind::ReadModifyWrite => Operation::ReadModifyWrite,
            };
            if let Some(profiler) = &mut this.profiler {
                let (served, busy) = this.memory.last();
                let label = this.cores[this.current].label;
                profiler.access(this.current, line, served, label, this.now, cost, busy);
            }
            this.record(operation, Some(number), cost);
        }
    }
}

/// A full fence. A step. (All operations are sequentially consistent anyway, so a fence only has a cost.)
#[inline]
pub fn fence() {
    step(false, |engine| {
        let cost = engine.memory.fence(engine.cores[engine.current].cache, engine.now);
        engine.record(Operation::Fence, None, cost);
    });
}

/// A spin hint. A step. Under a schedule that ignores the clocks, the core gives way.
#[inline]
pub fn pause() {
    htm::leave(htm::AbortCause::System);
    step(true, |engine| engine.record(Operation::Pause, None, engine.memory.costs.pause));
}

/// Spin hints for `ns` nanoseconds, at most a second, without a look at anything. One step, as [`pause`].
pub fn pause_for(ns: u64) {
    htm::leave(htm::AbortCause::System);
    step(true, |engine| engine.record(Operation::Pause, None, ns.min(1_000_000_000) * 1000));
}

/// A yield to the operating system. A step. Each core runs one thread only, so a yield only has a cost. Under a
/// schedule that ignores the clocks, the core gives way.
pub fn yield_now() {
    htm::leave(htm::AbortCause::System);
    step(true, |engine| engine.record(Operation::Yield, None, engine.memory.costs.yield_now));
}

/// Plain work of `units` units; the machine's model gives the cost of a unit. Not a step: other cores notice
/// only the time that it takes.
#[inline]
pub fn work(units: u64) {
    let engine = engine::active();
    if engine.is_null() {
        return;
    }
    // SAFETY: as in `access_inside`.
    let this: &mut Engine = unsafe { &mut *engine };
    let mut cost = units.saturating_mul(this.memory.costs.work);
    if this.cores[this.current].has_sibling {
        cost = cost.saturating_mul(100 + this.sibling_percent) / 100;
    }
    this.book(Cause::Work, cost);
    this.now = this.now.saturating_add(cost).min(TIME_MAX_PS);
}

/// Plain work of a kind, several times, at the machine's price. Not a step, as [`work`].
#[inline]
pub fn charge(kind: Work, times: u64) {
    if let Some(cycles) = look(|engine| engine.memory.cycles.of(kind)) {
        work(u64::from(cycles) * times);
    }
}

/// The virtual time in nanoseconds since the simulation began; 0 outside a simulation. Charges the cost of reading
/// a clock, but is not a step.
///
/// The clocks of the cores differ, as their work does. A core's own clock never goes back, and after a core has
/// seen an operation of another, its clock is later than that operation.
#[inline]
pub fn now() -> u64 {
    let engine = engine::active();
    if engine.is_null() {
        return 0;
    }
    // SAFETY: as in `access_inside`.
    let this: &mut Engine = unsafe { &mut *engine };
    this.book(Cause::PrivateCache, this.memory.costs.clock);
    this.now = (this.now + this.memory.costs.clock).min(TIME_MAX_PS);
    this.now / 1000
}

/// Sleeps for `ns` virtual nanoseconds. A step.
pub fn sleep(ns: u64) {
    htm::leave(htm::AbortCause::System);
    step(true, |engine| {
        let ps = ns.saturating_mul(1000).min(TIME_MAX_PS - engine.now.min(TIME_MAX_PS));
        engine.record(Operation::Sleep, None, engine.memory.costs.yield_now);
        if engine.is_scheduled() {
            engine.sleep_until((engine.now + ps).min(TIME_MAX_PS));
        } else {
            engine.book(Cause::Wait, ps);
            engine.now = (engine.now + ps).min(TIME_MAX_PS);
        }
    });
    let engine = engine::active();
    // SAFETY: as in `access_inside`; if a schedule decides, `sleep_until` has just made the core sleep.
    unsafe {
        if !engine.is_null() && !(*engine).quiet && (*engine).is_scheduled() {
            turn::suspend(engine);
        }
    }
}

/// Parks until another core wakes this key, or until the virtual time `deadline_ns`. A step.
///
/// As with a futex, a wake-up on a key on which no core is parked yet is lost. Use [`park_if`] if the reason to
/// park may go away in the meantime.
pub fn park_on(key: usize, deadline_ns: Option<u64>) -> Woken {
    park_if(key, deadline_ns, || true)
}

/// As [`park_on`], but parks only if `condition` holds; no other core runs between its check and the parking.
/// Steps that the condition makes have no effect and no cost.
pub fn park_if(key: usize, deadline_ns: Option<u64>, condition: impl FnOnce() -> bool) -> Woken {
    htm::leave(htm::AbortCause::System);
    let engine = engine::active();
    if engine.is_null() {
        return Woken::Refused;
    }
    // SAFETY: as in `access_inside`; no reference is alive while the condition runs or the core is suspended.
    unsafe {
        if !turn::begin_step(engine, true) {
            return Woken::TimedOut;
        }
        let holds = {
            let _quiet = Quiet::new(engine);
            condition()
        };
        let this = &mut *engine;
        let deadline_ps = deadline_ns.map(|ns| ns.saturating_mul(1000).min(TIME_MAX_PS));
        if !holds {
            this.record(Operation::Park, None, this.memory.costs.clock);
            return Woken::Refused;
        }
        if deadline_ps.is_some_and(|deadline| deadline <= this.now) {
            this.record(Operation::Park, None, this.memory.costs.yield_now);
            return Woken::TimedOut;
        }
        this.record(Operation::Park, None, this.memory.costs.park);
        this.park(key, deadline_ps);
        let since = this.now;
        turn::suspend(engine);
        let this = &mut *engine;
        let asleep = this.now.saturating_sub(since);
        this.now = since;
        this.book(Cause::Wait, asleep);
        this.now = since + asleep;
        (*engine).woken()
    }
}

/// Wakes the core that has been parked longest on this key. Returns true if there was one. A step.
pub fn unpark_one(key: usize) -> bool {
    unpark(key, 1) == 1
}

/// Wakes all cores that are parked on this key. Returns their number. A step.
pub fn unpark_all(key: usize) -> usize {
    unpark(key, usize::MAX)
}

fn unpark(key: usize, most: usize) -> usize {
    let mut woken = 0;
    step(false, |engine| {
        let before = engine.now;
        woken = engine.wake(key, most, Woken::Notified);
        let cost = engine.now - before + engine.memory.costs.clock;
        engine.now = before;
        engine.record(Operation::Unpark, None, cost);
    });
    woken
}

/// Runs `body`; its steps have no effect and no cost. For work that happens at no fixed point of the program (the
/// reclamation of memory), whose steps would make runs differ.
pub fn quietly<R>(body: impl FnOnce() -> R) -> R {
    let engine = engine::active();
    // SAFETY: as in `access`; no reference is alive while the body runs. The engine is active until then, as steps
    // that do nothing do not switch.
    unsafe {
        let _quiet = (!engine.is_null() && !(*engine).quiet).then(|| Quiet::new(engine));
        body()
    }
}

/// True if the core should finish: the requested time or number of steps is reached, or another core has
/// panicked. Not a step, and without virtual cost.
#[inline]
pub fn should_stop() -> bool {
    look(|engine| engine.stopping || engine.quiet || engine.now >= engine.limits.until_ps).unwrap_or(false)
}

/// Labels what the core does from now on, for the trace, the profile and reports of deadlock. Returns the label before.
#[inline]
pub fn label(label: &'static str) -> &'static str {
    let engine = engine::active();
    if !engine.is_null() {
        // SAFETY: as in `access_inside`.
        let this: &mut Engine = unsafe { &mut *engine };
        return std::mem::replace(&mut this.cores[this.current].label, label);
    }
    ""
}

/// Begins a wait of a kind for the thing at an address: what the core does until [`wait_ends`] is booked as this wait. False
/// if the core is in a wait already; then that goes on.
pub fn wait_begins(kind: &'static str, at: usize) -> bool {
    profile(|engine| {
        let (core, now) = (engine.current, engine.now);
        let profiler = engine.profiler.as_mut();
        profiler.is_some_and(|profiler| profiler.wait_begins(core, Wait { kind, at }, now))
    })
    .unwrap_or(false)
}

/// Ends the core's wait.
pub fn wait_ends() {
    profile(|engine| {
        let core = engine.current;
        if let Some(profiler) = &mut engine.profiler {
            profiler.wait_ends(core);
        }
    });
}

/// Begins an attempt of the core.
pub fn attempt_begins() {
    profile(|engine| {
        let core = engine.current;
        if let Some(profiler) = &mut engine.profiler {
            profiler.attempt_begins(core);
        }
    });
}

/// Ends the core's attempt, and releases what it [holds](hold).
pub fn attempt_ends(committed: bool) {
    profile(|engine| {
        let (core, now) = (engine.current, engine.now);
        if let Some(profiler) = &mut engine.profiler {
            profiler.attempt_ends(core, committed, now);
        }
    });
}

/// The core will access an index of the object with this number. `name` is asked for once.
#[inline]
pub fn enter_object(object: usize, name: impl FnOnce() -> String) {
    let enter = |engine: &mut Engine| {
        let core = engine.current;
        engine.profiler.as_mut().is_none_or(|profiler| profiler.enter_object(core, object))
    };
    if profile(enter) == Some(false) {
        let name = quietly(name);
        profile(|engine| engine.profiler.as_mut().map(|profiler| profiler.name_object(object, name)));
    }
}

/// The core accesses no object's memory from now on.
pub fn leave_objects() {
    profile(|engine| {
        let core = engine.current;
        if let Some(profiler) = &mut engine.profiler {
            profiler.leave_objects(core);
        }
    });
}

/// The core will access the segment at an address, of the object that it entered last. `key` is asked for once, and only
/// for a segment of whose lines the profile has something to tell. A new segment is not what was at its address before.
#[inline]
pub fn touch(address: usize, is_new: bool, key: impl FnOnce() -> String) {
    let touch = |engine: &mut Engine| {
        let core = engine.current;
        engine.profiler.as_mut().is_some_and(|profiler| profiler.touch(core, address, is_new))
    };
    if profile(touch) == Some(true) {
        let key = quietly(key);
        profile(|engine| engine.profiler.as_mut().map(|profiler| profiler.name_segment(address, key)));
    }
}

/// The core holds the lock at an address from now on, with others or alone.
pub fn hold(address: usize) {
    profile(|engine| {
        let (core, now) = (engine.current, engine.now);
        if let Some(profiler) = &mut engine.profiler {
            profiler.hold(core, address, now);
        }
    });
}

/// The core holds a lock no longer.
pub fn release(address: usize) {
    profile(|engine| {
        let (core, now) = (engine.current, engine.now);
        if let Some(profiler) = &mut engine.profiler {
            profiler.release(core, address, now);
        }
    });
}

/// The core holds no lock any more.
pub fn release_all() {
    profile(|engine| {
        let (core, now) = (engine.current, engine.now);
        if let Some(profiler) = &mut engine.profiler {
            profiler.release_all(core, now);
        }
    });
}

/// Calls `tell` if a simulation with a profile runs.
#[inline]
fn profile<R>(tell: impl FnOnce(&mut Engine) -> R) -> Option<R> {
    let engine = engine::active();
    if engine.is_null() {
        return None;
    }
    // SAFETY: as in `access_inside`; `tell` is this module's and calls no foreign code.
    let this: &mut Engine = unsafe { &mut *engine };
    (this.profiler.is_some() && !this.quiet).then(|| tell(this))
}

#[inline]
fn look<R>(look: impl FnOnce(&Engine) -> R) -> Option<R> {
    let engine = engine::active();
    // SAFETY: as in `access_inside`; `look` is this module's.
    (!engine.is_null()).then(|| look(unsafe { &*engine }))
}

#[inline]
fn step(gives_way: bool, charge: impl FnOnce(&mut Engine)) {
    let engine = engine::active();
    if engine.is_null() {
        return;
    }
    // SAFETY: as in `access_inside`; `charge` is this module's and calls no foreign code.
    unsafe {
        if turn::begin_step(engine, gives_way) {
            charge(&mut *engine);
        }
    }
}

/// A guard: steps do nothing while it lives.
struct Quiet(*mut Engine);

impl Quiet {
    /// # Safety
    ///
    /// The engine is active until this is dropped.
    unsafe fn new(engine: *mut Engine) -> Self {
        // SAFETY: this function's contract.
        unsafe { (*engine).quiet = true };
        Self(engine)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // SAFETY: the contract of `new`.
        unsafe { (*self.0).quiet = false };
    }
}
