//! A test kit for transactional datatypes: compares one with a plain model of it, under every protocol.
//!
//! The author implements [`Datatype`]: which operations there are, what each does to the model, and what each does to the object
//! in a transaction. [`check_datatype`] then runs, under each variant of each protocol:
//!
//! - **alone**: transactions of many operations, one after the other, some with parts that are undone or as a whole rolled
//!   back. Each result must be the model's.
//! - **schedules**: two or three small transactions on one thread, one step of one of them after the other, in many orders.
//!   There must be a serial order of those that committed in which the model gives the same results and ends in the same
//!   state; under a strict protocol it agrees with which of them ended before others began. Under an opaque one what an
//!   aborted one has seen must be explained by such an order, too. Transactions that do not overlap must all commit.
//! - **threads**: the same with transactions that threads run at the same time, again and again until they commit.
//!
//! In schedules and on threads, some operations run in parts of the body that are undone: what they gave still counts. And some
//! steps read or write a register beside the object, the *witness*: what a transaction has seen of the two must be of one
//! state.
//!
//! With feature `sim`, `explore_datatype` runs such transactions on virtual cores, too, in schedules that seeds determine.
//!
//! The search for a serial order tries them all, so nothing is assumed about the datatype.
//!
//! ```
//! use hotrow_check::datatype::{Datatype, Effort, check_datatype};
//! use hotrow_core::{Abort, Engine, Protocol, SingleSegment, Transaction};
//!
//! struct Register;
//!
//! #[derive(Debug, Clone)]
//! enum Operation {
//!     Get,
//!     Set(u64),
//! }
//!
//! impl Datatype for Register {
//!     type Model = u64;
//!     type Operation = Operation;
//!     type Output = Option<u64>;
//!     type Object<P: Protocol> = SingleSegment<u64, P>;
//!
//!     fn states() -> Vec<u64> {
//!         vec![0]
//!     }
//!
//!     fn operations() -> Vec<Operation> {
//!         vec![Operation::Get, Operation::Set(1), Operation::Set(2)]
//!     }
//!
//!     fn apply(model: &mut u64, operation: &Operation) -> Option<u64> {
//!         match operation {
//!             Operation::Get => return Some(*model),
//!             Operation::Set(value) => *model = *value,
//!         }
//!         None
//!     }
//!
//!     fn make<P: Protocol>(engine: &Engine<P>, state: &u64) -> Self::Object<P> {
//!         SingleSegment::new(engine, "register", *state)
//!     }
//!
//!     fn operate<P: Protocol>(
//!         register: &Self::Object<P>,
//!         tx: &mut Transaction<'_, P>,
//!         operation: &Operation,
//!     ) -> Result<Option<u64>, Abort> {
//!         match operation {
//!             Operation::Get => return register.enter(tx)?.read(|value| Some(*value)),
//!             Operation::Set(value) => register.enter(tx)?.write(*value)?,
//!         }
//!         Ok(None)
//!     }
//!
//!     fn state<P: Protocol>(register: &Self::Object<P>, tx: &mut Transaction<'_, P>) -> Result<u64, Abort> {
//!         register.enter(tx)?.read(|value| *value)
//!     }
//! }
//!
//! check_datatype::<Register>(Effort::SHORT);
//! ```

mod concurrent;
mod crew;
#[cfg(feature = "sim")]
mod explored;
mod serial;
#[cfg(test)]
mod tests;

#[cfg(feature = "sim")]
pub use explored::explore_datatype;
use hotrow_core::{Abort, Engine, Error, Misuse, Protocol, RetryPolicy, Transaction};
use hotrow_protocols::{Visitor, for_each_protocol};
use hotrow_sync::random::Random;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::time::Duration;

/// A datatype under test, and its plain model.
pub trait Datatype: 'static {
    /// The plain model: the whole state of an object.
    type Model: Clone + PartialEq + Debug + Send + Sync;

    /// One operation, with its arguments.
    type Operation: Clone + Debug + Send + Sync;

    /// The result of an operation: all that a transaction learns by it.
    type Output: PartialEq + Debug + Send;

    /// The object under test.
    type Object<P: Protocol>: Send + Sync;

    /// True if [`state`](Self::state) can be read on a snapshot: the datatype keeps versions, and the function writes nothing.
    /// Operations that only read are tested on snapshots in any case, if the datatype does not refuse them.
    const HAS_SNAPSHOTS: bool = true;

    /// States in which tests find the object.
    fn states() -> Vec<Self::Model>;

    /// Operations of which tests choose. Few of them that meet often find more than many.
    fn operations() -> Vec<Self::Operation>;

    /// Applies an operation to the model.
    fn apply(model: &mut Self::Model, operation: &Self::Operation) -> Self::Output;

    /// Makes an object in this state. It runs no transaction: under `none` the kit's worker is the only one there may be.
    fn make<P: Protocol>(engine: &Engine<P>, state: &Self::Model) -> Self::Object<P>;

    /// Does an operation.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on.
    fn operate<P: Protocol>(
        object: &Self::Object<P>,
        tx: &mut Transaction<'_, P>,
        operation: &Self::Operation,
    ) -> Result<Self::Output, Abort>;

    /// Returns the object's state.
    ///
    /// # Errors
    ///
    /// As [`operate`](Self::operate).
    fn state<P: Protocol>(
        object: &Self::Object<P>,
        tx: &mut Transaction<'_, P>,
    ) -> Result<Self::Model, Abort>;
}

/// The amount of testing under each variant of a protocol.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Number of transactions that run alone.
    pub alone: u32,
    /// Number of combinations of small transactions whose schedules are run.
    pub combinations: u32,
    /// The most schedules of each combination.
    pub schedules_max: u32,
    /// Number of rounds in which threads run transactions at the same time.
    pub rounds: u32,
    /// The seed of all that is random but the threads' timing.
    pub seed: u64,
}

impl Effort {
    /// A second or so for each datatype: for tests that run often.
    pub const SHORT: Self = Self { alone: 50, combinations: 40, schedules_max: 20, rounds: 20, seed: 1 };

    /// Minutes for each datatype, in a release build.
    pub const LONG: Self =
        Self { alone: 2_000, combinations: 1_000, schedules_max: 100, rounds: 500, seed: 1 };
}

/// Checks a datatype under every variant of every protocol.
///
/// # Panics
///
/// If a check fails. The message tells the protocol, the operations and their results.
pub fn check_datatype<D: Datatype>(effort: Effort) {
    struct EachProtocol<D>(Effort, PhantomData<D>);
    impl<D> Clone for EachProtocol<D> {
        fn clone(&self) -> Self {
            *self
        }
    }
    impl<D> Copy for EachProtocol<D> {}
    impl<D: Datatype> Visitor for EachProtocol<D> {
        type Output = ();
        fn visit<P: Protocol>(self, name: &str) {
            check_datatype_under::<D, P>(name, self.0);
        }
    }
    for_each_protocol(1, EachProtocol::<D>(effort, PhantomData));
}

/// Checks a datatype under one variant of a protocol.
///
/// # Panics
///
/// As [`check_datatype`]; also if the protocol has no variant of this name.
pub fn check_datatype_under<D: Datatype, P: Protocol>(variant: &str, effort: Effort) {
    let engine = |policy| Engine::<P>::named(variant, policy).expect("a variant of the protocol");
    // A datatype whose conditions never hold fails, rather than try for ever.
    let alone_policy = RetryPolicy { attempts_max: ATTEMPTS_MAX_ALONE, ..RetryPolicy::default() };
    alone::<D, P>(&engine(alone_policy), variant, effort);
    let options = P::options(variant).expect("a variant of the protocol");
    if P::workers_max(&options) > 1 {
        let is_opaque = P::is_opaque(&options);
        concurrent::schedules::<D, P>(variant, is_opaque, effort);
        let policy = RetryPolicy { deadline: Some(THREADS_DEADLINE), ..RetryPolicy::default() };
        crew::threads::<D, P>(&engine(policy), variant, (effort.rounds, effort.seed));
    }
}

/// The most attempts of a transaction that nobody disturbs.
const ATTEMPTS_MAX_ALONE: u32 = 16;

/// The time after which a transaction among others has failed. It is long, because tests run on loaded machines.
const THREADS_DEADLINE: Duration = Duration::from_secs(60);

/// Chooses one of several.
fn one_of<'a, T>(random: &mut Random, all: &'a [T]) -> &'a T {
    &all[random.below(all.len() as u64) as usize]
}

/// Runs transactions one after the other.
fn alone<D: Datatype, P: Protocol>(engine: &Engine<P>, variant: &str, effort: Effort) {
    const OPERATIONS_MAX: u64 = 8;
    const PER_OBJECT: u32 = 10;
    let mut random = Random::seeded(effort.seed);
    let operations = D::operations();
    let states = D::states();
    let mut worker = engine.worker().expect("the only worker");
    for _ in 0..effort.alone.div_ceil(PER_OBJECT) {
        let mut model = one_of(&mut random, &states).clone();
        let object = D::make(engine, &model);
        let mut snapshots = Vec::new();
        for number in 0..PER_OBJECT {
            if number % 3 == 0 {
                let snapshot = engine.snapshot_strict().expect("outside of transactions");
                snapshots.push((snapshot, model.clone()));
            }
            let before = model.clone();
            let mut done = Vec::new();
            let rolls_back = random.chance(0.2);
            let result = worker.transact(|tx| {
                model.clone_from(&before);
                done.clear();
                for _ in 0..=random.below(OPERATIONS_MAX) {
                    let is_undone = random.chance(0.2);
                    let around = model.clone();
                    let part = tx.savepoint(|tx| {
                        for _ in 0..=random.below(2) {
                            let operation = one_of(&mut random, &operations).clone();
                            let output = D::operate(&object, tx, &operation)?;
                            let expected = D::apply(&mut model, &operation);
                            done.push((operation, is_undone));
                            assert_eq!(output, expected, "{variant}: from {before:?}, after {done:?}");
                        }
                        if is_undone { Err(Abort::because("undone")) } else { Ok(()) }
                    })?;
                    match part {
                        Ok(()) => {}
                        Err(_) if is_undone => model = around,
                        Err(abort) => return Err(abort),
                    }
                }
                if rolls_back { Err(Abort::because("rolled back")) } else { Ok(()) }
            });
            assert_eq!(result.is_err(), rolls_back, "{variant}: {result:?} after {done:?}");
            if rolls_back {
                model.clone_from(&before);
            }
            let state = worker.transact(|tx| D::state(&object, tx)).expect("nobody else is there");
            assert_eq!(state, model, "{variant}: from {before:?}, after {done:?}, rolled back: {rolls_back}");
            for (snapshot, then) in &snapshots {
                let operation = one_of(&mut random, &operations);
                let output = worker.transact_on(snapshot, |tx| D::operate(&object, tx, operation));
                let expected = D::apply(&mut then.clone(), operation);
                match output {
                    Err(Error::Misuse(Misuse::ReadOnly { .. } | Misuse::Unsupported(_))) => {}
                    output => assert_eq!(
                        output.expect("a snapshot can be read at any time"),
                        expected,
                        "{variant}: {operation:?} on a snapshot of {then:?}, after {done:?}"
                    ),
                }
                if D::HAS_SNAPSHOTS {
                    let state = worker.transact_on(snapshot, |tx| D::state(&object, tx));
                    let state = state.expect("a snapshot can be read at any time");
                    assert_eq!(state, *then, "{variant}: a snapshot, after {done:?}");
                }
            }
        }
    }
}
