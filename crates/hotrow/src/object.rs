//! Your own datatype: what its author needs, and users do not.
//!
//! A datatype says what conflicts. Its value lies in *segments*, and two operations conflict only if they touch the same
//! segment, and one of them writes it. So choose the segments such that operations that should run side by side touch
//! different ones. Locks, versions and validation are the protocol's: a datatype names none, and runs under all.
//!
//! Ask first if you need one. A function that takes a transaction and calls operations of [`TBox`](crate::TBox),
//! [`TArray`](crate::TArray) and [`Table`](crate::Table) is a transactional operation, too; all that it does commits or
//! rolls back together. A datatype of your own gives it a type, a name in the conflict report, and only the operations that
//! keep its rules.
//!
//! # A datatype over segments
//!
//! If a fixed number of segments will do, there is nothing unsafe in it. [`SingleSegment`] holds one, [`SegmentArray`]
//! several, of any type that is a [`Value`](crate::Value). An operation takes the [`Transaction`](crate::Transaction), enters a
//! segment, and then reads, writes or updates it, now or deferred. It enters once for each of these. An error is passed up with `?`, as in any body.
//!
//! This register keeps the highest value that it was ever given:
//!
//! ```
//! use hotrow::object::SingleSegment;
//! use hotrow::{Abort, Engine, Occ, Protocol, Transaction};
//!
//! /// The highest value so far.
//! pub struct HighWater<P: Protocol> {
//!     mark: SingleSegment<u64, P>,
//! }
//!
//! impl<P: Protocol> HighWater<P> {
//!     pub fn new(engine: &Engine<P>, name: &str) -> Self {
//!         Self { mark: SingleSegment::new(engine, name, 0) }
//!     }
//!
//!     pub fn get(&self, tx: &mut Transaction<'_, P>) -> Result<u64, Abort> {
//!         self.mark.enter(tx)?.read(|mark| *mark)
//!     }
//!
//!     /// True if `value` is the highest so far. Otherwise it only reads, so that it conflicts with no other such call.
//!     pub fn raise(&self, tx: &mut Transaction<'_, P>, value: u64) -> Result<bool, Abort> {
//!         let higher = value > self.get(tx)?;
//!         if higher {
//!             self.mark.enter(tx)?.write(value)?;
//!         }
//!         Ok(higher)
//!     }
//! }
//!
//! let engine = Engine::<Occ>::new();
//! let peak = HighWater::new(&engine, "peak");
//! std::thread::scope(|scope| {
//!     for thread in 0..4 {
//!         let (engine, peak) = (&engine, &peak);
//!         scope.spawn(move || {
//!             for value in 0..100 {
//!                 engine.transact(|tx| peak.raise(tx, value * 4 + thread)).unwrap();
//!             }
//!         });
//!     }
//! });
//! assert_eq!(engine.transact(|tx| peak.get(tx)), Ok(399));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! `TBox` and `TArray` are no more than that. An object may consist of several such parts, which then appear under their own
//! names in the conflict report. If the number of segments changes, [`SegmentSlots`] holds them, and a segment beside it says
//! how many there are ([`TVector`](crate::TVector)).
//!
//! # A datatype whose operations commute
//!
//! With segments alone, two transactions that take a seat of the same flight conflict: both read the number of free seats and
//! write it. But they need not, as long as two are free. Implement [`Commuting`] to say so, and put it into a
//! [`CommutingSegment`]. Its author names three types:
//!
//! - the **value**, which transactions share;
//! - a **change**: what one transaction will do to the value. It is applied when the transaction commits, so the transaction
//!   depends on nothing by making it. Changes of one transaction are merged into one;
//! - a **condition**: what the transaction has seen of the value, as far as its outcome depends on it. The commit judges it
//!   again. Others may change the value meanwhile, as long as the condition holds of it (an optimistic predicate, sto §3.5).
//!
//! The value is a [`Value`](crate::Value) of at most one word (`u64`, `[u32; 2]`), or boxed, as all are that do not derive
//! `#[value(inline)]`. Changes and conditions are `Clone + Default + Send + 'static`: the default change does nothing, and the
//! default condition always holds.
//!
//! Nothing in it is unsafe. This is the class of goods of STAMP's vacation (sto §5.4): customers reserve if one is free, and
//! give back; the agency adds goods. A reservation needs to know only that one was free.
//!
//! ```
//! use hotrow::object::{Commuting, CommutingSegment, Seen};
//! use hotrow::{Abort, Engine, Occ, Protocol, Transaction};
//!
//! /// Goods of one kind, of which so many are free.
//! pub struct Goods<P: Protocol> {
//!     free: CommutingSegment<Free, P>,
//! }
//!
//! struct Free;
//!
//! /// The least and the greatest number of free goods for which all tests of the transaction come out as they did.
//! #[derive(Clone, Copy)]
//! struct Between(i64, i64);
//!
//! impl Default for Between {
//!     fn default() -> Self {
//!         Self(i64::MIN, i64::MAX)
//!     }
//! }
//!
//! impl Commuting for Free {
//!     type Value = i64;
//!     /// The number of goods added or given back, minus those reserved.
//!     type Change = i64;
//!     type Condition = Between;
//!
//!     fn holds(&self, condition: &Between, _: Option<&i64>, free: &i64) -> bool {
//!         (condition.0..=condition.1).contains(free)
//!     }
//!
//!     fn apply(&self, change: i64, free: &mut i64) {
//!         *free += change;
//!     }
//! }
//!
//! impl<P: Protocol> Goods<P> {
//!     pub fn new(engine: &Engine<P>, free: i64) -> Self {
//!         Self { free: CommutingSegment::of(engine, "goods", Free, free) }
//!     }
//!
//!     /// Adds goods, or gives some back. It never conflicts with another such call.
//!     pub fn add(&self, tx: &mut Transaction<'_, P>, amount: i64) -> Result<(), Abort> {
//!         self.free.enter(tx)?.change(|change| *change += amount)
//!     }
//!
//!     /// Reserves one if one is free. It conflicts only with what would make the answer another one.
//!     pub fn reserve(&self, tx: &mut Transaction<'_, P>) -> Result<bool, Abort> {
//!         let look = |seen: Seen<'_, Free>| (*seen.value, seen.change.copied().unwrap_or_default());
//!         let is_free = self.free.enter(tx)?.test(look, |(free, own), condition| {
//!             // The condition is of the value itself, without the transaction's own change.
//!             let is_free = free + own > 0;
//!             if is_free {
//!                 condition.0 = condition.0.max(1 - own);
//!             } else {
//!                 condition.1 = condition.1.min(-own);
//!             }
//!             is_free
//!         })?;
//!         if is_free {
//!             self.add(tx, -1)?;
//!         }
//!         Ok(is_free)
//!     }
//! }
//!
//! let engine = Engine::<Occ>::new();
//! let rooms = Goods::new(&engine, 2);
//! let reserved = engine.transact(|tx| Ok([rooms.reserve(tx)?, rooms.reserve(tx)?, rooms.reserve(tx)?]))?;
//! assert_eq!(reserved, [true, true, false]);
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! The type that implements `Commuting` may hold more than the value, a tree behind a mutex, say, which `apply` changes too
//! ([`TQueue`](crate::TQueue), which shares one between two segments). `test` and `read` look at it inside of a load that the
//! protocol checks, so that they see one state of it. A lock of its own guards it in `apply`, `holds` and where operations look;
//! nothing is cloned or dropped under it that is users' code. A value that is boxed and shares its parts with earlier versions
//! needs no lock at all ([`TPriorityQueue`](crate::TPriorityQueue)). Each operation has a deferred form: [`CommutingAccess::defer`] takes the same access later.
//!
//! # The rules
//!
//! sto §4.1 has six rules for datatypes. Four are kept for you by what this module offers. Two are yours:
//!
//! | rule | kept by |
//! |---|---|
//! | 1. All that is observed is covered by a version. | **you**, if the datatype holds more than its value: only `apply` may change it |
//! | 2. No two transactions hold the lock of the same segment. | the protocol |
//! | 3. A condition fails if the state has changed so that it matters. | **you**: what a test returns must follow from the condition that it leaves. An operation that notes less than it tells is wrong |
//! | 4. A check fails if the segment is locked or its version has changed. | the protocol |
//! | 5. Changes are invisible to others before the commit. | changes are kept apart until then |
//! | 6. Locks of the data structure cause no deadlock. | **you**, if there are any: who holds one waits for nothing else |
//!
//! And one more: a condition outlives the change. If a [part](crate::Transaction::savepoint) of the body is undone, its changes go,
//! and what it has seen still counts. So nothing that the transaction has seen belongs into the change.
//!
//! # Testing it
//!
//! Crate `hotrow-check` has a [test kit](https://docs.rs/hotrow-check/latest/hotrow_check/datatype/). Describe the operations, and
//! a plain model, for which a collection of the standard library will do. The kit runs transactions alone, in schedules
//! stepped by hand, and on threads, under every protocol, and looks for a serial order of the model that explains all
//! results. It finds a forgotten condition in a second:
//!
//! ```
//! # use hotrow::object::{Commuting, CommutingSegment};
//! use hotrow::{Abort, Engine, Protocol, TCounter, Transaction};
//! use hotrow_check::datatype::{Datatype, Effort, check_datatype};
//!
//! /// A counter that is never negative, as a datatype under test.
//! struct Stock;
//!
//! #[derive(Debug, Clone)]
//! enum Operation {
//!     Add,
//!     Take,
//! }
//!
//! impl Datatype for Stock {
//!     type Model = i64;
//!     type Operation = Operation;
//!     type Output = bool;
//!     type Object<P: Protocol> = TCounter<P>;
//!
//!     fn states() -> Vec<i64> {
//!         vec![0, 1, 2]
//!     }
//!
//!     fn operations() -> Vec<Operation> {
//!         vec![Operation::Add, Operation::Take]
//!     }
//!
//!     fn apply(stock: &mut i64, operation: &Operation) -> bool {
//!         match operation {
//!             Operation::Add => *stock += 1,
//!             Operation::Take if *stock == 0 => return false,
//!             Operation::Take => *stock -= 1,
//!         }
//!         true
//!     }
//!
//!     fn make<P: Protocol>(engine: &Engine<P>, stock: &i64) -> TCounter<P> {
//!         TCounter::new(engine, *stock)
//!     }
//!
//!     fn operate<P: Protocol>(
//!         stock: &TCounter<P>,
//!         tx: &mut Transaction<'_, P>,
//!         operation: &Operation,
//!     ) -> Result<bool, Abort> {
//!         let amount = match operation {
//!             Operation::Add => 1,
//!             Operation::Take if !stock.is_at_least(tx, 1)? => return Ok(false),
//!             Operation::Take => -1,
//!         };
//!         stock.add(tx, amount)?;
//!         Ok(true)
//!     }
//!
//!     fn state<P: Protocol>(stock: &TCounter<P>, tx: &mut Transaction<'_, P>) -> Result<i64, Abort> {
//!         stock.get(tx)
//!     }
//! }
//!
//! check_datatype::<Stock>(Effort { combinations: 5, rounds: 2, ..Effort::SHORT });
//! ```
//!
//! The kit does not know which operations should commute. To test that, hold a transaction open
//! ([`Worker::begin`](crate::Worker::begin)), commit another one of another worker within it, and see if the first one commits.
//!
//! # A datatype with concurrency control of its own
//!
//! A datatype may have its effects at once, keep others away by locks of its own, and take the effects back if the transaction
//! does not commit: boosting. [`ObjectAccess::on_undo`] and [`ObjectAccess::at_end`] call it back, and
//! [`ObjectAccess::conflict_over`] gives up. [`TBoostedMap`](crate::TBoostedMap) is such a datatype, without `unsafe`; it also
//! shows why each lock should be a segment, too.
//!
//! # A datatype of another kind
//!
//! A datatype whose segments come and go with its keys (an index, say) works on headers and items itself. Its author promises
//! what the compiler cannot check, so this takes `unsafe`. It has these parts:
//!
//! 1. *Shared state* in an [`EpochBox`]: an [`ObjectMeta`], and for each segment a
//!    [`Header`](crate::Protocol::Header) with the value beside it, as atomic words or in a [cell](crate::cell). An attempt
//!    still points to what has been dropped meanwhile; the epoch frees it afterwards.
//! 2. *Operations*. Each begins with [`Transaction::enter`](crate::Transaction::enter), which makes the checks that every
//!    operation needs and returns the [`ObjectAccess`]. That has everything else: reads, writes, predicates, deferred work,
//!    misuse. What the attempt knows of a segment, such as the pending write, is its [`Item`]; the datatype chooses the type
//!    of the item's payload.
//! 3. *The commit's side*: an `unsafe impl` of [`Object`] for the shared state. It installs a pending write, drops it,
//!    saves and restores it for [savepoints](crate::Transaction::savepoint), checks predicates, and names keys. It takes no
//!    locks: when it is called, the protocol holds them.
//!
//! The unsafe methods of `ObjectAccess` share one contract, stated at [`ObjectAccess::read`]; that of the trait is at
//! [`Object`]. In short: the segment is the object's; both are freed through the epoch only; a payload has the type that the
//! object's functions expect. That an operation has entered need not be promised, because there is no other way to an
//! `ObjectAccess`; that it has entered *this* object still is.
//!
//! Users never see any of this: the methods are not on the transaction that bodies get.
//!
//! ```compile_fail,E0599
//! use hotrow::{Engine, Occ};
//!
//! let engine = Engine::<Occ>::new();
//! engine.transact(|tx| tx.deferral_mut().settle()).unwrap(); // A method of `ObjectAccess`.
//! ```

#[doc(inline)]
pub use hotrow_core::{
    Access, Addition, Applied, CommitTimeChange, CommitTimeChanges, Commuting, CommutingAccess,
    CommutingArray, CommutingSegment, Elements, EpochBox, Flags, Item, ItemId, Keeper, LogSegment, Object,
    ObjectAccess, ObjectMeta, Observed, OnSnapshot, OutOfRange, Pin, ReadValue, SavedWrite, Saver, Seen,
    Segment, SegmentAccess, SegmentArray, SegmentObject, SegmentSlots, Segments, SingleSegment, Slots,
    StructureChange, StructureVersion, Valued, contained,
};
#[doc(inline)]
pub use hotrow_core::{graph::By, history::WriteKind};
