//! Threads.

use crate::local;
use std::cell::Cell;
use std::num::NonZeroUsize;

#[cfg(not(any(loom, feature = "sim")))]
pub(crate) use std::hint::spin_loop;
#[cfg(not(loom))]
pub use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle, panicking, scope, spawn};
#[cfg(not(any(loom, feature = "sim")))]
pub use std::thread::{sleep, yield_now};

#[cfg(loom)]
pub(crate) use loom::hint::spin_loop;
#[cfg(loom)]
pub use loom::thread::{Builder, JoinHandle, panicking, spawn, yield_now};

/// Lets other threads run; no time passes in a model.
#[cfg(loom)]
pub fn sleep(_: std::time::Duration) {
    yield_now();
}

#[cfg(all(feature = "sim", not(loom)))]
#[inline]
pub(crate) fn spin_loop() {
    if hotrow_sim::is_active() {
        hotrow_sim::pause();
    } else {
        std::hint::spin_loop();
    }
}

/// Spins for a time, and looks at nothing but the clock. In a simulation this is one step, not one for each turn.
pub(crate) fn spin_for(ns: u64) {
    #[cfg(all(feature = "sim", not(loom)))]
    if hotrow_sim::is_active() {
        return hotrow_sim::pause_for(ns);
    }
    let end = crate::clock::nanoseconds().saturating_add(ns);
    while crate::clock::nanoseconds() < end {
        spin_loop();
    }
}

/// Yields the processor; in a simulation, lets other cores go on.
#[cfg(all(feature = "sim", not(loom)))]
pub fn yield_now() {
    if hotrow_sim::is_active() {
        hotrow_sim::yield_now();
    } else {
        std::thread::yield_now();
    }
}

/// Sleeps; in a simulation, for as long in virtual time.
#[cfg(all(feature = "sim", not(loom)))]
pub fn sleep(duration: std::time::Duration) {
    if hotrow_sim::is_active() {
        hotrow_sim::sleep(crate::clock::whole_nanoseconds(duration));
    } else {
        std::thread::sleep(duration);
    }
}

/// The number of threads that this process can run at once; 1 if the system does not tell.
pub fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// The number of threads that run at once: the cores of the active simulation, otherwise the first result of
/// [`parallelism`].
#[inline]
pub fn running_at_once() -> usize {
    #[cfg(all(feature = "sim", not(loom)))]
    if let Some(cores) = hotrow_sim::cores() {
        return cores;
    }
    static PARALLELISM: crate::OnceLock<usize> = crate::OnceLock::new();
    *PARALLELISM.get_or_init(parallelism)
}

/// True if the calling code runs on a virtual core of a simulation.
#[inline(always)]
pub fn is_simulated() -> bool {
    #[cfg(all(feature = "sim", not(loom)))]
    return hotrow_sim::is_active();
    #[cfg(any(loom, not(feature = "sim")))]
    false
}

local! {
    static NUMBER: Cell<u64> = Cell::new(0);
}

/// A number of the calling thread that no other thread of the process has or has had, never 0.
pub fn number() -> u64 {
    match NUMBER.with(Cell::get) {
        0 => new_number(),
        number => number,
    }
}

#[cold]
fn new_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    // Of the standard library: no part of a model or a simulation.
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Relaxed: only uniqueness matters.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    NUMBER.with(|mine| mine.set(number));
    number
}

/// The calling thread's name; its identifier if it has none.
pub fn name() -> String {
    let thread = std::thread::current();
    thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_owned)
}

/// Runs `body` without steps of the simulation. For work that happens at no fixed point of the program (the
/// reclamation of memory).
#[inline(always)]
pub fn quietly<R>(body: impl FnOnce() -> R) -> R {
    #[cfg(all(feature = "sim", not(loom)))]
    return hotrow_sim::quietly(body);
    #[cfg(any(loom, not(feature = "sim")))]
    body()
}

/// Labels what the thread does from now on, for the trace of a simulation. Does nothing in other builds.
#[inline(always)]
pub fn label(label: &'static str) {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::label(label);
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = label;
}

/// Declares a static with one value for each thread, as `thread_local!` does; in a simulation, for each core.
///
/// ```
/// use std::cell::Cell;
///
/// hotrow_sync::local! {
///     static CALLS: Cell<u32> = Cell::new(0);
/// }
/// CALLS.with(|calls| calls.set(calls.get() + 1));
/// assert_eq!(CALLS.with(Cell::get), 1);
/// ```
#[cfg(any(loom, not(feature = "sim")))]
#[macro_export]
macro_rules! local {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;) => {
        // A constant, so that generic code that other crates compile finds the thread's value without a call.
        $(#[$attribute])*
        const $name: $crate::thread::Local<$type> = {
            std::thread_local! {
                static OUTSIDE: $type = const { $value };
            }
            $crate::thread::Local::new(&OUTSIDE, || $value)
        };
    };
}

/// A value of each thread's own, as `thread_local!` declares it; in a simulation, of each core's own.
#[cfg(all(feature = "sim", not(loom)))]
#[macro_export]
macro_rules! local {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;) => {
        // A static, as its address tells it from others.
        $(#[$attribute])*
        static $name: $crate::thread::Local<$type> = {
            std::thread_local! {
                static OUTSIDE: $type = const { $value };
            }
            $crate::thread::Local::new(&OUTSIDE, || $value)
        };
    };
}

#[cold]
fn dropped() -> ! {
    panic!("a value of a thread's own was used after the thread had dropped it")
}

/// The type of a static that [`local!`](crate::local) declares.
#[derive(Debug)]
pub struct Local<T: 'static> {
    outside: &'static std::thread::LocalKey<T>,
    #[cfg(all(feature = "sim", not(loom)))]
    inside: hotrow_sim::CoreLocal<T>,
}

impl<T: 'static> Local<T> {
    #[doc(hidden)]
    pub const fn new(outside: &'static std::thread::LocalKey<T>, inside: fn() -> T) -> Self {
        let _ = inside;
        Self {
            outside,
            #[cfg(all(feature = "sim", not(loom)))]
            inside: hotrow_sim::CoreLocal::new(inside),
        }
    }

    /// Calls `look` with the value.
    #[inline(always)]
    pub fn with<R>(&'static self, look: impl FnOnce(&T) -> R) -> R {
        #[cfg(all(feature = "sim", not(loom)))]
        if hotrow_sim::is_active() {
            return self.inside.with(look).expect("a simulation is active");
        }
        // Not `with`, which the standard library does not inline, so that a build without link-time optimization calls it.
        match self.outside.try_with(look) {
            Ok(result) => result,
            Err(_) => dropped(),
        }
    }

    /// Calls `look` with the value. Returns `None` if the thread is ending and has dropped the value.
    pub fn try_with<R>(&'static self, look: impl FnOnce(&T) -> R) -> Option<R> {
        #[cfg(all(feature = "sim", not(loom)))]
        if hotrow_sim::is_active() {
            return self.inside.with(look);
        }
        self.outside.try_with(look).ok()
    }
}
