//! The slots of features in workers: their state from one transaction to the next, and the moments between attempts.

use super::{Inside, TransactionEnd, Worker};
use crate::kernel::abort::{Error, NotDurable};
use crate::kernel::profile::Profile;
use crate::kernel::slots::Slots;
use crate::memory::identity::Origin;
use hotrow_sync::clock::{Duration, Instant};
use std::convert::Infallible;
use std::panic::Location;

/// A protocol whose workers have slots for features: every one. The features implement it once, for all.
pub(crate) trait WorkerSlots: Slots {
    /// Their state in one worker, from one transaction to the next.
    type OfWorker: Default;
    /// Keeps others out while a transaction runs that must not run beside it.
    type Barrier;
    /// Knowledge of the waits of one transaction.
    type Waits: Default;

    /// A transaction is about to be admitted, by a call at this place. False if it is in nobody's way, so that it needs no admission.
    fn entering(worker: &mut Worker<Self>, profile: &Profile, place: &'static Location<'static>) -> bool;
    /// Keeps others out, if that is necessary.
    fn barrier(worker: &Worker<Self>) -> Option<Self::Barrier>;
    /// A transaction was admitted. It may wait here: nothing is held.
    fn entered(worker: &mut Worker<Self>, profile: &Profile);
    /// A transaction is stepped by hand, and waits for nothing before it begins.
    fn by_hand(worker: &mut Worker<Self>);
    /// The transactions that follow have this name.
    fn names(worker: &mut Worker<Self>, origin: Origin);
    /// A transaction begins, by a call at this place.
    fn begins(worker: &mut Worker<Self>, place: &'static Location<'static>);
    /// An attempt is opened next. It may wait here: nothing is held.
    fn attempting(worker: &mut Worker<Self>);
    /// The body waits for a change, within limits of the policy and of its own.
    ///
    /// # Errors
    ///
    /// If it cannot wait, or has waited too long.
    fn waits(
        worker: &mut Worker<Self>,
        waits: &mut Self::Waits,
        limits: (Option<(Instant, Duration)>, Option<Duration>),
        inside: &mut Inside<Self>,
    ) -> Result<(), Error<Infallible>>;
    /// A transaction has ended. It may wait here: nothing is held.
    ///
    /// # Errors
    ///
    /// That its caller cannot be told that it has committed.
    fn ends(worker: &mut Worker<Self>, end: TransactionEnd) -> Result<(), NotDurable>;
    /// A panic ends a transaction, and is passed on afterwards.
    fn panicked(worker: &mut Worker<Self>);
    /// The worker is dropped.
    fn leaves(worker: &Worker<Self>);
}
