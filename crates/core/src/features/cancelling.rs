//! Ends of transactions from outside: handles by which any thread ends one, and deadlines of its own.
//!
//! A handle knows the open attempt by its holder and the holder's word, which no later attempt has. So one that is told too late is told
//! nothing, and nobody has to say that an attempt has ended.

use crate::kernel::abort::Abort;
use crate::kernel::object_access::{ObjectAccess, Stop};
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::Transaction;
use crate::memory::retained::{Holder, Told};
use hotrow_sync::atomic::{AtomicBool, Ordering};
use hotrow_sync::{Arc, Mutex, lock};
use std::fmt;
use std::time::Duration;

/// Ends transactions from any thread: a [`Session`](crate::Session)'s, whose method makes it, or those that have
/// [asked for it](Transaction::cancelled_by).
#[derive(Clone, Default)]
pub struct Canceller {
    pub(super) switch: Arc<Switch>,
}

impl Canceller {
    /// A handle that no transaction has asked for yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the transaction, or all that have asked for it, and does not wait for that: at once if it is a session that idles; at the next
    /// operation of a body that runs, or at its end; within 8 milliseconds if it waits for a lock; when its next attempt begins if it
    /// stands back between two, or waits by [`retry`](Transaction::retry). It is rolled back, and its owner gets
    /// [`Error::Cancelled`](crate::Error::Cancelled). Has no effect once the transaction has ended, or its commit has begun. It is for
    /// good: transactions that ask for the handle later end, too.
    ///
    /// Under a protocol that orders transactions when they commit ([`Deferral`](crate::Deferral)), only the commit waits for
    /// others, and such a wait is not cut short.
    pub fn cancel(&self) {
        self.switch.cancel();
    }

    /// True once it was used.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.switch.is_cancelled()
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canceller").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

/// The part of a handle that its copies share. It knows no protocol.
#[derive(Default)]
pub(super) struct Switch {
    is_cancelled: AtomicBool,
    /// The holders of the attempts to end, and their words.
    attempts: Mutex<Vec<(&'static Holder, u64)>>,
}

impl Switch {
    /// Ends the attempts that it was shown.
    pub(super) fn cancel(&self) {
        // Release: what the canceller has done before happens before the end.
        self.is_cancelled.store(true, Ordering::Release);
        // An attempt that is shown later sees the flag: the mutex orders the two.
        for (holder, word) in lock(&self.attempts).drain(..) {
            holder.cancel(word);
        }
    }

    /// True if it was used.
    pub(super) fn is_cancelled(&self) -> bool {
        // Acquire: `cancel`'s store.
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Shows it an open attempt besides those that are open still.
    pub(super) fn show(&self, holder: &'static Holder) {
        let mut attempts = lock(&self.attempts);
        attempts.retain(|(other, word)| other.word() == *word && !std::ptr::eq(*other, holder));
        attempts.push((holder, holder.word()));
    }
}

impl<P: Protocol> Transaction<'_, P> {
    /// Lets a handle end this transaction, from any thread, from here on. Call it first in the body: each attempt has to ask anew.
    ///
    /// # Errors
    ///
    /// An abort that ends the transaction with [`Error::Cancelled`](crate::Error::Cancelled), if the handle was used already.
    pub fn cancelled_by(&mut self, canceller: &Canceller) -> Result<(), Abort> {
        self.0.cancelled_by(&canceller.switch)
    }

    /// Gives this transaction a [deadline](crate::RetryPolicy::deadline) of its own, if the policy's is not earlier. Call it first in the
    /// body: each attempt has to ask anew, and so has each statement of a session, whose waits it limits.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.0.attempt.course.lower_deadline(deadline);
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    fn cancelled_by(&mut self, switch: &Switch) -> Result<(), Abort> {
        self.attempt.course.may_be_told = true;
        switch.show(self.attempt.holder);
        if switch.is_cancelled() {
            return Err(self.stop(Stop::Told(Told::Cancelled { session: String::new() })));
        }
        Ok(())
    }
}
