//! Threads.

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

/// Lets others run; no time passes in a model.
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

/// Gives the processor away, or, in a simulation, lets other cores go on.
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
        hotrow_sim::sleep(duration.as_nanos() as u64);
    } else {
        std::thread::sleep(duration);
    }
}

/// How many threads this process can run at once (1 where the system does not say).
pub fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// How many threads run at once: the cores of the simulation that is active, or else what [`parallelism`] said when
/// it was first asked here.
#[inline]
pub fn running_at_once() -> usize {
    #[cfg(all(feature = "sim", not(loom)))]
    if let Some(cores) = hotrow_sim::cores() {
        return cores;
    }
    static PARALLELISM: crate::OnceLock<usize> = crate::OnceLock::new();
    *PARALLELISM.get_or_init(parallelism)
}

/// Runs what happens at no particular moment of the program (the reclamation of memory): no step of a simulation.
#[inline(always)]
pub fn quietly<R>(body: impl FnOnce() -> R) -> R {
    #[cfg(all(feature = "sim", not(loom)))]
    return hotrow_sim::quietly(body);
    #[cfg(any(loom, not(feature = "sim")))]
    body()
}

/// Names what the thread does from now on, for the trace of a simulation. Nothing in other builds.
#[inline(always)]
pub fn label(words: &'static str) {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::label(words);
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = words;
}

/// Work that touches no shared memory, in processor cycles: what a simulation
/// charges for what it cannot see. Nothing in other builds.
#[inline(always)]
pub fn work(cycles: u32) {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::work(cycles.into());
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = cycles;
}

/// A value of each thread's own, as `thread_local!` declares it; in a simulation, of each core's own.
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
#[macro_export]
macro_rules! local {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr;) => {
        $(#[$attribute])*
        static $name: $crate::thread::Local<$type> = {
            std::thread_local! {
                static OUTSIDE: $type = const { $value };
            }
            $crate::thread::Local::new(&OUTSIDE, || $value)
        };
    };
}

/// See [`local!`](crate::local).
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

    /// Gives the value to `look`.
    #[inline(always)]
    pub fn with<R>(&'static self, look: impl FnOnce(&T) -> R) -> R {
        #[cfg(all(feature = "sim", not(loom)))]
        if hotrow_sim::is_active() {
            return self.inside.with(look).expect("a simulation is active");
        }
        self.outside.with(look)
    }

    /// Gives the value to `look`; `None` once the thread is ending and the value is gone.
    pub fn try_with<R>(&'static self, look: impl FnOnce(&T) -> R) -> Option<R> {
        #[cfg(all(feature = "sim", not(loom)))]
        if hotrow_sim::is_active() {
            return self.inside.with(look);
        }
        self.outside.try_with(look).ok()
    }
}
