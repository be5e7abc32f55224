//! Code of the user's where it must not unwind: when an attempt ends, and others have to be released and dropped.

use hotrow_sync::thread;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Runs code of the user's (a `Drop`, a key's hash) and goes on, even if it panics. The panic hook has had its say then,
/// and nobody else is told: whoever called is not the cause, and could not undo anything.
pub fn contained<R>(code: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(result) => Some(result),
        Err(panic) => {
            drop_payload(panic);
            None
        }
    }
}

/// The first panic of the code of the user's that an attempt has run since its outcome was decided.
#[derive(Default)]
pub(crate) struct Panics(Option<Box<dyn Any + Send>>);

impl Panics {
    /// Runs code of the user's. If it panics, what comes next is done all the same.
    pub(crate) fn contain(&mut self, code: impl FnOnce()) {
        match (catch_unwind(AssertUnwindSafe(code)), &self.0) {
            (Ok(()), _) => {}
            (Err(panic), None) => self.0 = Some(panic),
            (Err(panic), Some(_)) => drop_payload(panic),
        }
    }

    /// Does something that contains panics, and passes the first one on when all is done: nothing has happened then, and all
    /// is released. Where another one is passing on already, a second one would end the process.
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

impl Drop for Panics {
    /// The panic goes no further: the attempt has committed, and who called would think that it has not.
    fn drop(&mut self) {
        if let Some(panic) = self.0.take() {
            drop_payload(panic);
        }
    }
}

/// The message of a panic.
pub(crate) fn panic_message(panic: Box<dyn Any + Send>) -> String {
    let words = if let Some(words) = panic.downcast_ref::<&str>() {
        (*words).to_owned()
    } else if let Some(words) = panic.downcast_ref::<String>() {
        words.clone()
    } else {
        String::from("something that is no text")
    };
    drop_payload(panic);
    words
}

/// Drops the payload of a panic, which may panic again. Nobody is told then: other transactions may be waiting for the caller.
pub(crate) fn drop_payload(panic: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
}
