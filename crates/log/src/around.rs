//! Waits of threads inside a function of the program's.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A function that runs each wait of a thread for the log, so that an executor can go on with other tasks meanwhile: a `transact` in an
/// asynchronous handler then holds up no other handler while it waits. The function gets the wait, which it runs once:
/// `AroundWaits::new(|wait| tokio::task::block_in_place(wait))`.
#[derive(Clone)]
pub struct AroundWaits(Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>);

impl AroundWaits {
    /// The surroundings that a function gives to each wait. If the function does not run the wait, or panics before, the wait follows without
    /// it. The panic is reported, and passed on to nobody, because the transaction that waits has committed.
    pub fn new(around: impl Fn(&mut dyn FnMut()) + Send + Sync + 'static) -> Self {
        Self(Arc::new(around))
    }

    /// Runs a wait, inside the function if there is one.
    pub(crate) fn run<R>(this: Option<&Self>, mut wait: impl FnMut() -> R) -> R {
        let Some(Self(function)) = this else { return wait() };
        let mut result = None;
        let around = || function(&mut || result = Some(wait()));
        // Unwind safe: of what the function has seen only its own data is left.
        drop(catch_unwind(AssertUnwindSafe(around)));
        result.unwrap_or_else(wait)
    }
}

impl fmt::Debug for AroundWaits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AroundWaits").finish_non_exhaustive()
    }
}
