//! Running users' code where it must not unwind: at the end of an attempt, when others have to be released and dropped.
//!
//! # Locks and users' code
//!
//! From the first lock that a commit takes to the last unlock there are checks and installs, which neither clone nor drop a value, because users'
//! code may panic, block or call back. For the same reason none runs under a mutex of Hotrow's: keys are named before. The exceptions:
//!
//! - [`Commuting::holds`](crate::Commuting) and `apply`, whose panics are contained; [`Value::heap_bytes`](crate::Value), which must not panic;
//! - closures that change a value at the commit: they run between the halves, once, on a copy, and a panic rolls the transaction back;
//! - intentions and constraints under `drp`, while lines are held;
//! - bodies, under protocols that lock at operations.

use hotrow_sync::region;
use hotrow_sync::thread;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Runs users' code (a `Drop`, a key's hash) and contains its panic. The panic hook has run by then, and the panic is
/// reported to nobody else: the caller is not its cause, and could not undo anything.
pub fn contained<R>(code: impl FnOnce() -> R) -> Option<R> {
    let (mut code, mut result) = (Some(code), None);
    contain_all(&mut || result = code.take().map(|code| code()));
    result
}

/// Is compiled once for all code.
fn contain_all(code: &mut dyn FnMut()) {
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(()) => {}
        Err(panic) if region::leaves(&*panic) => resume_unwind(panic),
        Err(panic) => drop_payload(panic),
    }
}

/// The first panic of users' code since an attempt's outcome was decided.
#[derive(Default)]
pub(crate) struct Panics(Option<Box<dyn Any + Send>>);

impl Panics {
    /// Runs users' code. The caller goes on even if it panics.
    pub(crate) fn contain(&mut self, code: impl FnOnce()) {
        match (catch_unwind(AssertUnwindSafe(code)), &self.0) {
            (Ok(()), _) => {}
            (Err(panic), _) if region::leaves(&*panic) => resume_unwind(panic),
            (Err(panic), None) => self.0 = Some(panic),
            (Err(panic), Some(_)) => drop_payload(panic),
        }
    }

    /// Takes the first panic out, to be passed on.
    pub(crate) fn take(&mut self) -> Option<Box<dyn Any + Send>> {
        self.0.take()
    }

    /// Runs work that contains panics, and passes the first one on when all is done, so that everything is released by
    /// then. During another panic it is dropped instead, because a second one would end the process.
    pub(crate) fn passing_on<R>(work: impl FnOnce(&mut Self) -> R) -> R {
        let mut panics = Self::default();
        let result = work(&mut panics);
        match panics.0.take() {
            Some(panic) if thread::panicking() => drop_payload(panic),
            Some(panic) => resume_unwind(panic),
            None => {}
        }
        result
    }
}

// INVARIANT 10: No panic leaves an attempt that has committed, and none stops a rollback half-way.
impl Drop for Panics {
    /// Drops the panic: the attempt has committed, and a panic would make the caller think that it has not.
    fn drop(&mut self) {
        if let Some(panic) = self.0.take() {
            drop_payload(panic);
        }
    }
}

/// The message of a panic.
pub(crate) fn panic_message(panic: Box<dyn Any + Send>) -> String {
    let message = message_of(&*panic);
    drop_payload(panic);
    message
}

/// The message of a panic that is going to be passed on.
pub(crate) fn message_of(panic: &(dyn Any + Send)) -> String {
    if let Some(words) = panic.downcast_ref::<&str>() {
        (*words).to_owned()
    } else if let Some(words) = panic.downcast_ref::<String>() {
        words.clone()
    } else {
        String::from("something that is no text")
    }
}

/// Drops the payload of a panic. If that panics again, the second panic is ignored, because other transactions may be
/// waiting for the caller.
pub(crate) fn drop_payload(panic: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
}
