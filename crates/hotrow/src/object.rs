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
//! segment, and then reads, writes or updates it, now or deferred. An error is passed up with `?`, as in any body.
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
//! names in the conflict report.
//!
//! # A datatype of another kind
//!
//! A datatype that merges writes (increments of a counter), has predicates, or grows, works on headers and items itself.
//! Its author promises what the compiler cannot check, so this takes `unsafe`. [`TCounter`](crate::TCounter) is such a
//! datatype, of four hundred lines. It has these parts:
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
//! engine.transact(|tx| tx.settle()).unwrap(); // A method of `ObjectAccess`.
//! ```

#[doc(inline)]
pub use hotrow_core::{
    Access, Elements, EpochBox, Flags, Item, ItemId, Object, ObjectAccess, ObjectMeta, Observed, Pin,
    ReadValue, SavedWrite, Saver, Segment, SegmentAccess, SegmentArray, SegmentObject, Segments,
    SingleSegment, StructureChange, StructureVersion, contained,
};
#[doc(inline)]
pub use hotrow_core::{graph::By, history::WriteKind};
