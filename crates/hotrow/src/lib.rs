//! Transactions on shared memory that stay fast, fair and correct when every thread wants the same row.
//!
//! ```
//! use hotrow::{Engine, Error, Occ, Table};
//!
//! fn main() -> Result<(), Error> {
//!     let engine = Engine::<Occ>::new(); // The protocol is a type: `Tl2` would do as well.
//!     let accounts = Table::<u32, i64, Occ>::hash(&engine, "accounts", 4);
//!     for account in 0..4 {
//!         accounts.load(account, 1_000);
//!     }
//!     std::thread::scope(|scope| {
//!         for payer in 1..4 {
//!             let (engine, accounts) = (&engine, &accounts);
//!             scope.spawn(move || {
//!                 for _ in 0..1_000 {
//!                     let paid = engine.run(|tx| {
//!                         accounts.update(tx, &payer, |balance| *balance -= 1)?;
//!                         accounts.update(tx, &0, |balance| *balance += 1) // Everybody's hot row.
//!                     });
//!                     paid.expect("tried again until it commits");
//!                 }
//!             });
//!         }
//!     });
//!     assert_eq!(engine.run(|tx| accounts.get(tx, &0))?, Some(4_000));
//!     Ok(())
//! }
//! ```
//!
//! The rest of this page is the guide; every block in it is a test.
//!
//! 1. [Engines and protocols](#engines-and-protocols)
//! 2. [Boxes, arrays, counters](#boxes-arrays-counters)
//! 3. [Tables, keys, rows](#tables-keys-rows)
//! 4. [Procedures and contexts](#procedures-and-contexts)
//! 5. [Errors, retries, rollback, panics](#errors-retries-rollback-panics)
//! 6. [Workers and threads](#workers-and-threads)
//! 7. [What a transaction says of itself](#what-a-transaction-says-of-itself)
//! 8. [Deferred operations](#deferred-operations)
//! 9. [The conflict report](#the-conflict-report)
//! 10. [Recording a run and having it judged](#recording-a-run-and-having-it-judged)
//! 11. [What is guaranteed, and what bodies must not do](#what-is-guaranteed-and-what-bodies-must-not-do)
//!
//! # Engines and protocols
//!
//! An [`Engine`] has one protocol for its whole life: the type parameter. Objects and tables are made for an
//! engine and belong to it. These protocols exist:
//!
//! | type | name | what it does | choose it when |
//! |---|---|---|---|
//! | [`Occ`] | `occ` | reads lock nothing; at commit it locks the writes and checks the reads; no shared clock | first |
//! | [`Plor`] | `plor` | locks that readers look past; conflicts are settled at commit, where the older transaction goes first; nobody starves | rows are hot and the slowest transactions count |
//! | [`Drp`] | `drp` | runs [deferred operations](#deferred-operations) after the point where nothing can go wrong any more, in a pipeline ordered by rank; who has only deferred never aborts for a conflict | rows are hot, and transactions can say what they will do before they know the values |
//! | the same | `deferred-2pl` | the same without the pipeline: locks are taken in the order of ranks and held until the end | to compare with |
//! | [`TicToc`] | `tictoc` | optimistic, in logical time: a commit takes whatever moment suits what it read and wrote; serializable, but not in the order of real time | reads that others overwrite meanwhile should not abort |
//! | [`Mocc`] | `mocc` | as `occ` where it is cold; what has failed often is locked as soon as it is read | a few rows are hot, and transactions equal |
//! | [`TwoPhaseLocking`] | `no-wait` | locks what it reads and writes; who meets another's lock aborts | nobody should ever wait, or to compare with |
//! | the same | `wait-die` | the same; the older one waits, the younger one aborts | work that is half done should not be stopped by others |
//! | the same | `wound-wait` | the same; the older one takes the lock, the younger one waits | of these three, where the slowest transactions count |
//! | [`McsLocking`] | `steal` | locks what it reads and writes, and queues for what others hold; a waiting transaction runs operations of the one that it waits for; a deadlock costs the youngest | most transactions go through one row, and do much that is in nobody's way |
//! | the same | `steal-basic` | the same, with operations taken from one place for all | to compare with |
//! | the same | `2pl-mcs` | the same, but nobody runs operations of others | to compare with: plain two-phase locking |
//! | [`Tl2`] | `tl2` | as `occ`, with a global clock: even an attempt that will abort has seen one consistent state | bodies rely on what they have read before they commit |
//! | [`NoProtocol`] | `none` | no concurrency control, one worker only | one thread is enough, or as the limit to measure against |
//!
//! Some types have several *variants*, told apart by [`Protocol::Options`], each with a name:
//! [`TwoPhaseLocking`] and [`McsLocking`] the three above, [`Plor`] those that
//! [`PlorOptions`](protocols::PlorOptions) describes (`plor+dwa`, `plor+optimistic`, `plor+deadline=20`, ...), [`Drp`]
//! those of [`DrpOptions`](protocols::DrpOptions) (`drp+opaque`, `drp+exclusive`, ...).
//! [`Engine::new`] makes the first one that [`Variants::VARIANTS`] lists, [`Engine::named`] that of a name:
//!
//! ```
//! use hotrow::protocols::{Plor, TwoPhaseLocking};
//! use hotrow::{Engine, RetryPolicy, TBox};
//!
//! let engine = Engine::<TwoPhaseLocking>::named("wound-wait", RetryPolicy::default()).unwrap();
//! let number = TBox::new(&engine, 1);
//! assert_eq!(engine.run(|tx| number.update(tx, |number| { *number += 1; *number })), Ok(2));
//! assert!(Engine::<Plor>::named("plor+dwa", RetryPolicy::default()).is_some());
//! assert!(Engine::<Plor>::named("wound-wait", RetryPolicy::default()).is_none(), "not one of its variants");
//! ```
//!
//! Under `no-wait`, `wait-die`, `wound-wait`, `2pl-mcs`, `steal` and `plor` a transaction *holds locks while its body runs*: keep bodies
//! short, and think outside of them. Under all but the first a transaction keeps its age over retries, so that the
//! oldest one gets through, and who waits for a lock waits as long as it takes, or until the deadline of the
//! [`RetryPolicy`], if it has one.
//!
//! Code that is generic over [`Protocol`] serves all of them. Where the name comes from outside (an argument,
//! a configuration), a [`Visitor`](protocols::Visitor) turns it into the type:
//!
//! ```
//! use hotrow::protocols::{Visitor, with_protocol};
//! use hotrow::{Engine, Error, Protocol, RetryPolicy, TBox};
//!
//! struct CountToTen;
//!
//! impl Visitor for CountToTen {
//!     type Output = Result<u64, Error>;
//!     fn visit<P: Protocol>(self, name: &str) -> Self::Output {
//!         let engine = Engine::<P>::named(name, RetryPolicy::default()).expect("chosen by this name");
//!         let number = TBox::new(&engine, 0u64);
//!         for _ in 0..10 {
//!             engine.run(|tx| number.update(tx, |number| *number += 1))?;
//!         }
//!         engine.run(|tx| number.get(tx))
//!     }
//! }
//!
//! for name in ["occ", "plor", "drp", "tictoc", "mocc", "no-wait", "wait-die", "wound-wait", "steal", "2pl-mcs", "tl2", "none"] {
//!     assert_eq!(with_protocol(name, CountToTen).unwrap(), Ok(10));
//! }
//! assert_eq!(with_protocol("plor+dwa+deadline=20", CountToTen).unwrap(), Ok(10));
//! let unknown = with_protocol("2pl", CountToTen).unwrap_err();
//! assert!(unknown.to_string().contains("wound-wait, wait-die, no-wait"), "it says which there are");
//! ```
//!
//! # Boxes, arrays, counters
//!
//! [`TBox`] holds one value, [`TArray`] a fixed number of them, each of which conflicts on its own.
//! Transactions see their own writes; others see them once the transaction has committed, all or none.
//!
//! ```
//! use hotrow::{Engine, Occ, TArray, TBox};
//!
//! let engine = Engine::<Occ>::new();
//! let title = TBox::new(&engine, String::from("draft"));
//! let votes = TArray::new(&engine, 3, |_| 0u64);
//!
//! let seen = engine.run(|tx| {
//!     title.set(tx, String::from("final"))?;
//!     votes.update(tx, 2, |votes| *votes += 1)?;
//!     let length = title.read(tx, |title| title.len())?; // Looks at the value without copying it.
//!     Ok((length, votes.get(tx, 2)?))
//! })?;
//! assert_eq!(seen, (5, 1));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! [`TCounter`] is for what many threads change and few read exactly. Increments do not look at the counter,
//! so they never make each other abort. Tests ([`is_at_least`](TCounter::is_at_least) and its siblings) are
//! *predicates*: what the transaction depends on is the answer, not the value. An exact
//! [`get`](TCounter::get) conflicts with every change.
//!
//! ```
//! use hotrow::{Engine, Occ, TCounter};
//!
//! let engine = Engine::<Occ>::new();
//! let tickets = TCounter::new(&engine, 2);
//! let mut buy = || {
//!     engine.run(|tx| {
//!         if !tickets.is_at_least(tx, 1)? {
//!             return Ok(false);
//!         }
//!         tickets.add(tx, -1)?;
//!         Ok(true)
//!     })
//! };
//! assert_eq!([buy()?, buy()?, buy()?], [true, true, false]);
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # Tables, keys, rows
//!
//! A [`Table`] maps keys of one type to rows of one type, under a hash index or an ordered one. Integers,
//! tuples of up to four keys and [`Text`] are keys as they are; for a struct, derive [`Key`](macro@Key). A
//! key has a fixed size: there are no `String` keys, a [`Text`] takes their place.
//!
//! Rows derive [`Value`](macro@Value), which decides how they are held:
//!
//! - *inline* (`#[value(inline)]`): plain `Copy` data without padding, kept in the record itself and copied
//!   to be read. For small rows that change often. What is not plain, or has padding, does not compile.
//! - *boxed* (the default): behind a pointer that a commit swaps, so that a large row is never copied to be
//!   read. A change copies the row. For large rows, strings, vectors, anything that is `Clone + Send + Sync`.
//!
//! ```
//! use hotrow::{Direction, Engine, Key, Occ, Table, Text, Value};
//! use std::ops::ControlFlow;
//!
//! /// Ordered by the first field, then the second.
//! #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
//! struct OrderKey {
//!     district: u16,
//!     order: u32,
//! }
//!
//! #[derive(Debug, Clone, Copy, PartialEq, Value)]
//! #[value(inline)]
//! struct Order {
//!     amount: i64,
//!     customer: Text<8>,
//! }
//!
//! let engine = Engine::<Occ>::new();
//! let orders = Table::<OrderKey, Order, Occ>::ordered(&engine, "orders");
//! let anna = Order { amount: 30, customer: "anna".try_into()? };
//! let ben = Order { amount: 50, customer: "ben".try_into()? };
//!
//! engine.run(|tx| {
//!     // Keys that exist and rows that are missing are ordinary results, not errors.
//!     assert!(orders.insert(tx, OrderKey { district: 1, order: 1 }, anna)?);
//!     assert!(!orders.insert(tx, OrderKey { district: 1, order: 1 }, ben)?);
//!     assert!(orders.upsert(tx, OrderKey { district: 1, order: 2 }, ben)?);
//!     let raised = orders.update(tx, &OrderKey { district: 1, order: 2 }, |order| {
//!         order.amount += 1;
//!         order.amount
//!     })?;
//!     assert_eq!(raised, Some(51));
//!     assert_eq!(orders.get(tx, &OrderKey { district: 9, order: 9 })?, None);
//!     assert!(!orders.delete(tx, &OrderKey { district: 9, order: 9 })?);
//!     Ok(())
//! })?;
//!
//! // The newest order of district 1: a scan downwards that stops at the first row.
//! let newest = engine.run(|tx| {
//!     let district = OrderKey { district: 1, order: 0 }..=OrderKey { district: 1, order: u32::MAX };
//!     let mut newest = None;
//!     orders.scan(tx, district, Direction::Descending, |key, order| {
//!         newest = Some((key.order, order.amount));
//!         ControlFlow::Break(())
//!     })?;
//!     Ok(newest)
//! })?;
//! assert_eq!(newest, Some((2, 51)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! That a key is missing, and that a range holds no other keys than those visited, are facts like any other:
//! if another transaction inserts or deletes there, the commit fails and the body runs again. There are no
//! phantoms, in either index. Only an ordered table can be scanned ([`Table::scan`], or
//! [`Table::collect`] with a limit). The conflicts of such facts are as wide as a bucket or a leaf, so a failed
//! lookup may also be disturbed by an insert of a neighbouring key. Where several keys of a large hash table
//! are known beforehand, [`Table::prefetch`] fetches them together; it changes no result.
//!
//! A *secondary index* finds rows by something else. It is kept up to date in the same transaction as the
//! row, and several rows may have the same secondary key. A table declared *fixed* is loaded once and then
//! read without any tracking; whoever tries to change it gets [`Misuse::StaticTable`].
//!
//! ```
//! use hotrow::{Direction, Engine, Error, Misuse, Occ, Table, Text};
//! use std::ops::ControlFlow;
//!
//! let engine = Engine::<Occ>::new();
//! let mut builder = Table::<u32, Text<16>, Occ>::builder(&engine, "people").hash(1_000);
//! let by_name = builder.secondary("by_name", |_number, name| *name);
//! let people = builder.build();
//! for (number, name) in [(1, "cole"), (2, "able"), (3, "cole")] {
//!     people.load(number, Text::truncated(name)); // Outside of any transaction, to fill the table.
//! }
//! let coles = engine.run(|tx| {
//!     let name = Text::truncated("cole");
//!     let mut numbers = Vec::new();
//!     by_name.scan_keys(tx, name..=name, Direction::Ascending, |_name, number| {
//!         numbers.push(*number);
//!         ControlFlow::Continue(())
//!     })?;
//!     Ok(numbers)
//! })?;
//! assert_eq!(coles, [1, 3]);
//!
//! let prices = Table::<u32, u64, Occ>::builder(&engine, "prices").hash(10).fixed().build();
//! prices.load(7, 99);
//! assert_eq!(engine.run(|tx| prices.get(tx, &7))?, Some(99));
//! let refused = engine.run(|tx| prices.insert(tx, 8, 100));
//! assert!(matches!(refused, Err(Error::Misuse(Misuse::StaticTable { .. }))));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # Procedures and contexts
//!
//! A closure is the short form of a transaction. A [`Procedure`] is the long one: written once against an
//! abstract [`Context`], so that something other than the CPU can read it. It names tables by references that
//! a [`Database`] hands out and that know nothing of protocols. Values inside it are the context's
//! ([`Context::Val`]); [`force`](Context::force) turns one into a plain value where a key or a branch depends
//! on it.
//!
//! Two contexts exist. *Eager* runs each operation at once, as a closure would, and the compiler leaves
//! nothing of the detour; [`commute`](Context::commute) is an ordinary update there. *Recording* runs the
//! procedure, rolls it back, and yields its operations in order: table, key, kind, and which operations'
//! results each depends on.
//!
//! ```
//! use hotrow::{Context, Database, Engine, Occ, Procedure, Table, TableRef};
//!
//! /// Moves money; says whether there was enough of it.
//! struct Transfer {
//!     accounts: TableRef<u32, i64>,
//!     from: u32,
//!     to: u32,
//!     amount: i64,
//! }
//!
//! impl Procedure for Transfer {
//!     type Output = bool;
//!     fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<bool>, C::Stop> {
//!         let (key, amount) = (cx.value(self.from), cx.value(self.amount));
//!         let covered = cx.update(self.accounts, key, amount.clone(), |balance, amount| {
//!             let covered = *balance >= amount;
//!             if covered {
//!                 *balance -= amount;
//!             }
//!             covered
//!         })?;
//!         let covered = cx.map(covered, |covered| covered == Some(true));
//!         cx.require(covered.clone())?; // Rolls back unless it holds.
//!         let key = cx.value(self.to);
//!         cx.commute(self.accounts, key, amount, |balance, amount| *balance += amount)?;
//!         Ok(covered)
//!     }
//! }
//!
//! let engine = Engine::<Occ>::new();
//! let mut database = Database::new(&engine);
//! let accounts = database.add_table(Table::hash(&engine, "accounts", 10));
//! database.table(accounts).load(1, 100);
//! database.table(accounts).load(2, 0);
//!
//! let mut worker = engine.worker()?;
//! let transfer = Transfer { accounts, from: 1, to: 2, amount: 70 };
//! let recorded = database.record(&mut worker, &transfer)?; // Changes nothing.
//! assert_eq!(recorded.to_string(), "  0 Write accounts[1]\n  1 Commutative accounts[2] if 0\n");
//! assert_eq!(database.execute(&mut worker, &transfer), Ok(true));
//! assert!(database.execute(&mut worker, &transfer).is_err(), "30 are left");
//! assert_eq!(engine.run(|tx| database.table(accounts).get(tx, &2))?, Some(70));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! Closures given to a context must depend on their arguments and on plain captured data only, and have no
//! effects of their own: a context may run them late or more than once.
//!
//! # Errors, retries, rollback, panics
//!
//! Operations return [`Abort`] when the attempt cannot go on; pass it up with `?`. The engine then rolls
//! the attempt back and runs the body again, as its [`RetryPolicy`] says: by default for ever, first
//! after a short spin, then after random pauses of at most 100 microseconds, during all of which the
//! transaction holds nothing. (A deadline ends waits for locks, too.) One
//! that was aborted 24 times, or lost a second by it, asks the others to let it through: while it has a *window*, no
//! attempt begins but its own. A window lasts 100 milliseconds at most at first, and longer each time it was too short
//! for the transaction's attempts; between two windows each of the others makes an attempt. So a transaction of any
//! size ends, beside any others, under every protocol. Others wait a few times as long as one of its attempts takes;
//! one that falls asleep in its body makes them wait once.
//!
//! What comes out of [`Engine::run`] is an [`Error`] only if the transaction did not commit:
//!
//! | error | when | worth running again |
//! |---|---|---|
//! | [`Error::Conflict`] | the policy's attempts are used up; says what was lost last, and over which key | yes |
//! | [`Error::Timeout`] | the policy's time is used up; likewise | yes |
//! | [`Error::Rollback`] | the body returned an error of its own, which is inside; or a [condition](Transaction::require) did not hold | no |
//! | [`Error::Panicked`] | a deferred operation panicked | no |
//! | [`Error::MemoryLimit`] | more memory is retained than the engine's limit, if it has one; names who keeps it | yes, unless it was the one that kept it |
//! | [`Error::Misuse`] | it can never work: a nested transaction, an object of another engine, an index out of bounds, a change of a fixed table, a scan of a hash table, a write in a transaction that said it only reads, too many workers, a deferred value of another transaction | no |
//!
//! A body with an error type of its own runs with [`try_run`](Engine::try_run); the type must be
//! `From<Abort>` for the sake of `?`.
//!
//! ```
//! use hotrow::{Abort, Engine, Error, Occ, RetryPolicy, TBox};
//! use std::time::Duration;
//!
//! #[derive(Debug, PartialEq)]
//! enum Refused {
//!     TooLittle { balance: i64 },
//!     Aborted,
//! }
//!
//! impl From<Abort> for Refused {
//!     fn from(_: Abort) -> Self {
//!         Refused::Aborted // The engine runs the body again: this comes back only for `Abort::rollback`.
//!     }
//! }
//!
//! let policy = RetryPolicy {
//!     attempts_max: 1_000,
//!     deadline: Some(Duration::from_secs(1)),
//!     ..RetryPolicy::default()
//! };
//! let engine = Engine::<Occ>::with_policy(policy);
//! let account = TBox::new(&engine, 10i64);
//!
//! let refused = engine.try_run(|tx| {
//!     account.update(tx, |balance| *balance -= 30)?;
//!     match account.get(tx)? {
//!         balance if balance < 0 => Err(Refused::TooLittle { balance }),
//!         balance => Ok(balance),
//!     }
//! });
//! assert_eq!(refused, Err(Error::Rollback(Refused::TooLittle { balance: -20 })));
//! assert_eq!(engine.run(|tx| account.get(tx)), Ok(10), "rolled back");
//!
//! // Without a reason of one's own:
//! let refused: Result<(), Error> = engine.run(|_| Err(Abort::rollback()));
//! assert!(matches!(refused, Err(Error::Rollback(_))));
//! ```
//!
//! A value that was replaced stays in memory until every transaction has ended that was open by then, of whichever
//! engine: one that stays open for long makes the process grow. [`Engine::retained_memory`] says how much is retained and
//! which transaction keeps it, and [`Engine::set_retained_bytes_max`] sets a limit: above it, transactions
//! that write wait and then fail, and the one that keeps most is told to end.
//!
//! ```
//! # use hotrow::{Engine, Occ, TBox};
//! # let engine = Engine::<Occ>::new();
//! # let number = TBox::new(&engine, 1);
//! engine.set_retained_bytes_max(Some(256 << 20));
//! engine.run(|tx| {
//!     number.get(tx)?;
//!     let memory = engine.retained_memory();
//!     let oldest = memory.oldest().expect("this transaction, at least");
//!     println!("{} bytes are retained; {oldest}", memory.bytes);
//!     Ok(())
//! })?;
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! A panic in a body rolls the attempt back, releases everything, and passes on to the caller. The engine,
//! and other threads, go on.
//!
//! A call that panics has not committed. Once a transaction has committed, only little code of yours is left to run, and
//! a panic in it can undo nothing any more: the panic hook reports it, and it goes no further. That is
//!
//! - a key's `Hash`, or its image, when a deleted row is taken out of its index. The row stays in the index, dead, until
//!   somebody meets it there or the table is dropped;
//! - the `Drop` of what deferred operations held;
//! - the `Drop` of values and keys that were replaced or deleted, by whomever, and that are freed now. Each is dropped on
//!   whatever thread comes by, and a panic in one does not keep the others. (Two that panic *within* one value or row
//!   end the process, as everywhere in Rust.)
//!
//! When an attempt is rolled back, a panic in the first two (the rows that it had inserted are taken out) passes on, after
//! everything has been released. A key whose `Debug` panics is reported as a key that cannot be shown.
//!
//! A transaction that is never ended because it was leaked ([`std::mem::forget`] of an [`OpenTransaction`]) keeps what it
//! holds, as a thread does that has died: its locks, its insertions, what it has deferred, and the memory that others
//! retire from then on.
//!
//! ```
//! # use hotrow::{Engine, Occ, TBox};
//! # use std::panic::{AssertUnwindSafe, catch_unwind};
//! # let engine = Engine::<Occ>::new();
//! # let number = TBox::new(&engine, 1);
//! let panicked = catch_unwind(AssertUnwindSafe(|| {
//!     engine.run(|tx| {
//!         number.set(tx, 2)?;
//!         if number.get(tx)? == 2 {
//!             panic!("on second thoughts");
//!         }
//!         Ok(())
//!     })
//! }));
//! assert!(panicked.is_err());
//! assert_eq!(engine.run(|tx| number.get(tx)), Ok(1));
//! ```
//!
//! # Workers and threads
//!
//! A [`Worker`] owns what an attempt needs (item set, arena, the protocol's state) and runs one transaction
//! at a time. [`Engine::run`] keeps one for each thread that calls it, until the thread ends. A thread that
//! runs many transactions can hold its own and save the look-up:
//!
//! ```
//! use hotrow::{Engine, Error, Misuse, NoProtocol, Occ, TArray};
//!
//! let engine = Engine::<Occ>::new();
//! let slots = TArray::new(&engine, 8, |_| 0u32);
//! std::thread::scope(|scope| {
//!     for slot in 0..8 {
//!         let (mut worker, slots) = (engine.worker().expect("occ admits many"), &slots);
//!         scope.spawn(move || {
//!             for _ in 0..100 {
//!                 worker.run(|tx| slots.update(tx, slot, |value| *value += 1)).unwrap();
//!             }
//!         });
//!     }
//! });
//! assert_eq!(engine.statistics().commits, 800);
//!
//! // A transaction inside another one is an error, not a deadlock.
//! engine.run(|tx| {
//!     assert_eq!(engine.run(|tx| slots.get(tx, 0)), Err(Error::Misuse(Misuse::Nested)));
//!     slots.get(tx, 0)
//! })?;
//!
//! // `none` admits one worker at a time.
//! let single = Engine::<NoProtocol>::new();
//! let only = single.worker()?;
//! assert!(matches!(single.worker(), Err(Misuse::TooManyWorkers { workers_max: 1, .. })));
//! drop(only);
//! assert!(single.worker().is_ok());
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! More threads than cores is normal: a wait for a lock is short and ends with the attempt given up, or parks
//! under protocols whose transactions wait for each other; pauses yield or sleep, and whoever waits for an older
//! transaction parks. Objects and tables may be dropped at
//! any time, in the middle of a transaction too: their memory is freed through the epoch, when nobody can
//! still look at it. Memory that a transaction replaced or deleted is freed in the same way, so a body that
//! never ends keeps the process from freeing anything.
//!
//! # What a transaction says of itself
//!
//! Nothing need be known of a transaction before it runs. What is known can be said in a [`Profile`], to
//! [`Worker::try_run_as`] or in [`Procedure::profile`], and must be true:
//!
//! - that it *only reads*. `plor` then reads without leaving a trace, and only a transaction that has lost three times
//!   enters as a reader; the other protocols make no difference. A write in it is [`Misuse::ReadOnly`].
//! - that *[read committed](Isolation::ReadCommitted)* is enough for it: each read sees something that was committed,
//!   and no more is promised. For large reports that need not be exact; under every protocol they then neither abort
//!   because what they have read has changed, nor hold others off for longer than a look takes.
//! - about how many *records* it touches: under `plor+deadline` small transactions go before large ones for a while.
//!
//! ```
//! use hotrow::protocols::Plor;
//! use hotrow::{Abort, Engine, Error, Misuse, Profile, TArray, Transaction};
//!
//! let engine = Engine::<Plor>::new();
//! let accounts = TArray::new(&engine, 3, |_| 100);
//! let mut worker = engine.worker()?;
//!
//! let total = |tx: &mut Transaction<'_, Plor>| {
//!     (0..3).try_fold(0, |sum, account| Ok::<_, Abort>(sum + accounts.get(tx, account)?))
//! };
//! assert_eq!(worker.try_run_as(Profile::READ_ONLY, total), Ok(300));
//!
//! let refused = worker.try_run_as::<_, Abort>(Profile::READ_ONLY, |tx| accounts.set(tx, 0, 0));
//! assert!(matches!(refused, Err(Error::Misuse(Misuse::ReadOnly { .. }))));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # Deferred operations
//!
//! Whoever adds to a hot counter need not know the counter at once. A *deferred* operation says what is to be done and
//! gives a [`Deferred`] value, a handle for the result. Handles are inputs of other deferred operations; operators and
//! comparisons on them give [expressions](Expression), which are inputs too. What the whole transaction comes to is a
//! handle that the body returns to [`run_deferred`](Engine::run_deferred), which returns the value.
//!
//! The paper's example (drp §2, §6.2) moves money and counts the transfers:
//!
//! ```
//! use hotrow::{Drp, Engine, Error, TArray, TCounter};
//!
//! let engine = Engine::<Drp>::new(); // Under any other protocol the result is the same.
//! let accounts = TArray::new(&engine, 10, |_| 100i64);
//! let transfers = TCounter::new(&engine, 0);
//!
//! let transfer = |from: usize, to: usize, amount: i64| {
//!     engine.run_deferred(|tx| {
//!         let balance = accounts.defer_read(tx, from, |balance| *balance)?;
//!         tx.require(balance.at_least(amount))?; // Rolls back unless it holds.
//!         accounts.defer_set(tx, from, balance - amount)?;
//!         transfers.defer_add(tx, 1)?;
//!         // Any code will do. It gets its inputs when they are known; here there are none.
//!         accounts.defer_update(tx, to, (), move |balance, ()| {
//!             *balance += amount;
//!             *balance
//!         })
//!     })
//! };
//! assert_eq!(transfer(1, 2, 70)?, 170);
//! assert!(matches!(transfer(1, 2, 70), Err(Error::Rollback(_))), "30 are left");
//! assert_eq!(engine.run(|tx| Ok((accounts.get(tx, 1)?, transfers.get(tx)?)))?, (30, 1));
//!
//! let tame = engine.statistics().tame;
//! assert_eq!((tame.commits, tame.aborts), (1, 0)); // Under `Drp`; others defer nothing.
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! Under [`Drp`] deferred operations run when the transaction commits. If it has read nothing before, it is *tame*: it
//! takes its place in line on all that it will touch, and nothing can take that away. Under every other protocol a
//! deferred operation runs at once. So transactions are written once, and only the speed tells the difference.
//!
//! - **Operations that are not deferred** may be mixed in. They see what was deferred before on the same object, and
//!   [`force`](Transaction::force) gives a deferred value at once. Both run what has been deferred so far, and a
//!   transaction that so reads is *wild*: it may be aborted, and run again, as under other protocols.
//! - **What is computed** ([`compute`](Transaction::compute), [`map`](Deferred::map)) gets values and returns one. It
//!   owns what it captures, and must not begin a transaction ([`Misuse::Nested`]).
//! - **A panic** in a deferred operation is [`Error::Panicked`], under every protocol, and like a
//!   [condition](Transaction::require) that does not hold, it undoes the whole transaction. Others go on.
//! - **A handle** is of use in its own attempt only; elsewhere it is [`Misuse::ForeignDeferred`].
//! - **Ranks** ([`TBox::set_rank`] and its siblings) say in which order transactions line up. What many want is best
//!   ranked last: it is then held shortest.
//!
//! # The conflict report
//!
//! Every engine counts, in release builds too, and always: commits, aborts by [`Reason`], and the
//! keys that attempts were lost over. Names given to objects and tables appear here.
//!
//! ```
//! use hotrow::{Engine, Occ, Reason, Table};
//!
//! let engine = Engine::<Occ>::new();
//! let stock = Table::<(u16, u32), u64, Occ>::hash(&engine, "stock", 10);
//! stock.load((1, 77), 0);
//!
//! // A transaction that another one overtakes once.
//! let mut overtaken = false;
//! engine.run(|tx| {
//!     let seen = stock.get(tx, &(1, 77))?.unwrap_or(0);
//!     if !std::mem::replace(&mut overtaken, true) {
//!         let overtake = || engine.run(|tx| stock.update(tx, &(1, 77), |row| *row = 10));
//!         std::thread::scope(|scope| scope.spawn(overtake).join().unwrap().unwrap());
//!     }
//!     stock.update(tx, &(1, 77), |row| *row = seen + 1)
//! })?;
//! assert_eq!(engine.run(|tx| stock.get(tx, &(1, 77)))?, Some(11));
//!
//! let statistics = engine.statistics();
//! assert_eq!((statistics.aborts, statistics.aborts_for(Reason::ReadChanged)), (1, 1));
//! let hottest = &engine.hot_keys(10)[0];
//! assert_eq!((hottest.object.as_str(), hottest.key.as_str()), ("stock", "(1, 77)"));
//! assert_eq!(hottest.conflicts, 1);
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # Recording a run and having it judged
//!
//! An engine can record which version of which key each attempt read and wrote ([`history`]), failed lookups and
//! scanned ranges included. Crate `hotrow-check` judges the result: is there an order of the committed
//! transactions that explains it, does it agree with real time, and have aborted attempts seen one state, too?
//!
//! ```
//! use hotrow::{Engine, Occ, TBox};
//!
//! let engine = Engine::<Occ>::new();
//! let recording = engine.record_history(100_000_000)?; // At most about so many bytes of memory.
//! let (left, right) = (TBox::named(&engine, "left", 0u64), TBox::named(&engine, "right", 0u64));
//! std::thread::scope(|scope| {
//!     for (from, to) in [(&left, &right), (&right, &left)] {
//!         let engine = &engine;
//!         scope.spawn(move || {
//!             for _ in 0..100 {
//!                 engine.run(|tx| { let seen = from.get(tx)?; to.set(tx, seen + 1) }).unwrap();
//!             }
//!         });
//!     }
//! });
//! let report = hotrow_check::check(&recording.finish()).unwrap();
//! assert!(report.is(report.claimed()), "{report}"); // The report tells each violation in sentences.
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! Until an engine records, recording costs nothing that could be measured. While it records, each operation looks
//! up its key in a map, so such a run is slower and no benchmark.
//!
//! # What is guaranteed, and what bodies must not do
//!
//! - **Serializability**, under every protocol, unless a transaction says that it needs less
//!   ([`Isolation::ReadCommitted`]): committed transactions have the effects, and their bodies
//!   the results, of some order in which they ran one after the other. Failed lookups and scanned ranges are
//!   included.
//! - **That order agrees with real time** (strict serializability) where [`Protocol::STRICT`] says so, which is
//!   everywhere but under `tictoc`: there a transaction may come, in the order, before another that ended before it
//!   began. Two transactions of which one reads what the other wrote, or overwrites what it read, are never so
//!   reversed by themselves; it takes others that overlap them.
//! - **No torn values**, under every protocol: a body never sees half of another transaction's write of one
//!   value or row, not even in an attempt that aborts.
//! - **Opacity** only where [`Variants::is_opaque`] says so (`tl2`, `drp+opaque`, and trivially `none`): an attempt
//!   sees one consistent state from its first read to its end, even if it aborts.
//!
//! Under the others an attempt that is going to abort may have read two values that never were there together.
//! The commit finds out. Until then the body must not do anything that only makes sense in a consistent
//! state, because what it does before the commit is not checked first:
//!
//! - **No endless loops** on an assumption such as "these two are equal".
//!
//! A panic, an error or a rollback of such a body does no harm: under every protocol they pass on only if all that the
//! attempt has read is one consistent state, which is validated first. Otherwise the body runs again. (The panic hook has
//! printed its message by then.) The same holds of conditions and panics of [deferred operations](#deferred-operations).
//!
//! And under every protocol, as a body may run several times:
//!
//! - **No effects outside** (files, messages, plain shared variables) that may not happen more than once.
//! - **No waiting** for a transaction of another thread: it may be held back until this one has ended, and under
//!   protocols that lock it may be waiting for what this one holds. (The
//!   example of the conflict report does so to show a conflict, and only because nothing else is going on.)
//!
//! # What is not there
//!
//! Nothing is durable: data live in the memory of one process. There is no network, no SQL, no distribution,
//! and no way yet to wait in a transaction until something changes. Keys have a fixed size.

/// How values are held: the cells behind [`Value`] and the plain data that can be inline.
pub use hotrow_core::cell;
/// All protocols: their types, and the registry that finds them by name.
#[doc(inline)]
pub use hotrow_protocols as protocols;
/// Atomics, waiting, time, random numbers and threads, as Hotrow itself uses them.
#[doc(inline)]
pub use hotrow_sync as sync;
/// What a procedure is interpreted by: the contexts there are.
pub use hotrow_tables::context;
/// What keys are made of: order-preserving images, and how structs are packed into them.
pub use hotrow_tables::key;

/// Deferred operations: inputs, and the expressions that operators on deferred values make.
#[doc(inline)]
pub use hotrow_core::deferred;
/// What each attempt of a run read and wrote, by version.
#[doc(inline)]
pub use hotrow_core::history;
#[doc(inline)]
pub use hotrow_core::{
    Abort, Access, CommitStamp, CommitSteps, Committing, Conflict, Deferred, Drawn, Engine, EngineId, Error,
    Expression, HolderKind, HotKey, Input, Isolation, MemoryHolder, MemoryLimit, Misuse, OpenTransaction,
    OperationCounts, Plain, Profile, Protocol, Reason, RetainedMemory, RetryPolicy, Statistics, Tame,
    Transaction, Value, Variant, Variants, Worker, WorkerId, retained_bytes,
};
#[doc(inline)]
pub use hotrow_derive::{Key, Value};
#[doc(inline)]
pub use hotrow_objects::{TArray, TBox, TCounter};
#[doc(inline)]
pub use hotrow_protocols::{Drp, McsLocking, Mocc, NoProtocol, Occ, Plor, TicToc, Tl2, TwoPhaseLocking};
#[doc(inline)]
pub use hotrow_tables::{
    Context, Data, Database, Direction, IndexRef, Key, KeyRange, Operation, OperationId, OperationKind,
    Procedure, Recorded, SecondaryIndex, Table, TableBuilder, TableMemory, TableRef, Text, TextError,
};

/// What most programs name: `use hotrow::prelude::*;`.
///
/// [`crate::Error`] is not in it, as programs have errors of their own.
///
/// ```
/// use hotrow::prelude::*;
///
/// let engine = Engine::<Tl2>::new();
/// let words = Table::<u32, String, Tl2>::ordered(&engine, "words");
/// let inserted = engine.run(|tx| words.insert(tx, 1, "one".into()));
/// assert_eq!(inserted, Ok(true));
/// ```
pub mod prelude {
    pub use crate::{
        Abort, Context, Database, Deferred, Direction, Drp, Engine, Key, Occ, Procedure, Protocol, TArray,
        TBox, TCounter, Table, TableRef, Text, Tl2, Transaction, Value, Worker,
    };
}

/// The README's program, tested.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
