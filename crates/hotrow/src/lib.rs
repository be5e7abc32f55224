//! Transactions on shared memory that stay fast, fair and correct when every thread wants the same row.
//!
//! ```
//! use hotrow::{Engine, Error, Occ, Table};
//!
//! fn main() -> Result<(), Error> {
//!     let engine = Engine::<Occ>::new(); // The protocol is a type: `Tl2` would do as well.
//!     let accounts = Table::<String, i64, Occ>::hash(&engine, "accounts", 4);
//!     for name in ["shop", "ada", "bob", "eve"] {
//!         accounts.bulk_insert(name.to_owned(), 1_000);
//!     }
//!     std::thread::scope(|scope| {
//!         for payer in ["ada", "bob", "eve"] {
//!             let (engine, accounts) = (&engine, &accounts);
//!             scope.spawn(move || {
//!                 let pay = || engine.run(|tx| {
//!                     let left = accounts.update(tx, payer, |balance| { *balance -= 1; *balance })?;
//!                     tx.ensure(left >= Some(0), "overdrawn")?; // Otherwise all is rolled back.
//!                     accounts.update(tx, "shop", |balance| *balance += 1) // Everybody's hot row.
//!                 });
//!                 (0..1_000).for_each(|_| assert!(pay().is_ok())); // Run again until it commits.
//!                 assert_eq!(pay().unwrap_err().to_string(), "rolled back: overdrawn");
//!             });
//!         }
//!     });
//!     assert_eq!(engine.run(|tx| accounts.get(tx, "shop"))?, Some(4_000));
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
//! 7. [Transaction profiles](#transaction-profiles)
//! 8. [Deferred operations](#deferred-operations)
//! 9. [The conflict report](#the-conflict-report)
//! 10. [Recording and checking a run](#recording-and-checking-a-run)
//! 11. [Guarantees, and rules for bodies](#guarantees-and-rules-for-bodies)
//!
//! # Engines and protocols
//!
//! An [`Engine`] has one protocol for its whole life: the type parameter. Objects and tables are made for an engine
//! and belong to it. These protocols exist:
//!
//! | type | name | behaviour | choose it when |
//! |---|---|---|---|
//! | [`Occ`] | `occ` | reads lock nothing; at commit it locks the writes and checks the reads; no shared clock | first |
//! | [`Plor`] | `plor` | readers ignore write locks; the commit settles conflicts, where the older transaction goes first; no transaction starves | rows are hot and tail latency counts |
//! | [`Drp`] | `drp` | runs [deferred operations](#deferred-operations) after the point where the transaction can no longer fail, in a pipeline ordered by rank; a transaction whose operations are all deferred is aborted in [three rare cases](#deferred-operations) only | rows are hot, and transactions can declare their operations before they know the values |
//! | the same | `deferred-2pl` | the same without the pipeline: acquires locks in the order of ranks and holds them until the end | to compare with |
//! | [`TicToc`] | `tictoc` | optimistic, in logical time: a commit chooses a timestamp that fits its reads and writes; serializable, but not in the order of real time | a read should not abort because another transaction overwrites the row meanwhile |
//! | [`Mocc`] | `mocc` | as `occ` for cold rows; locks a hot row, one that has often made attempts fail, as soon as it is read | a few rows are hot, and all transactions matter equally |
//! | [`TwoPhaseLocking`] | `no-wait` | locks everything that it reads or writes; a transaction that meets another's lock aborts | no transaction should ever wait, or to compare with |
//! | the same | `wait-die` | the same; the older transaction waits, the younger one aborts | others should not stop half-done work |
//! | the same | `wound-wait` | the same; the older transaction takes the lock, the younger one waits | of these three, when tail latency counts |
//! | [`McsLocking`] | `steal` | locks everything that it reads or writes, and queues for held locks; a waiting transaction runs operations of the lock holder; a deadlock aborts the youngest | most transactions go through one row, and most of their other work conflicts with nobody |
//! | the same | `steal-basic` | the same, with operations taken from one place for all | to compare with |
//! | the same | `2pl-mcs` | the same, but no transaction runs operations of another | to compare with: plain two-phase locking |
//! | [`Tl2`] | `tl2` | as `occ`, with a global clock: even an attempt that will abort has seen one consistent state | bodies rely on their reads before they commit |
//! | [`Serial`] | `serial` | one lock around the database: one transaction at a time, without concurrency control | one or two threads do all the work |
//! | [`NoProtocol`] | `none` | no concurrency control, one worker only | one thread is enough, or as the upper bound to measure against |
//!
//! Some types have several *variants*. [`Variants::Options`] tells them apart, and each has a name.
//! [`TwoPhaseLocking`] and [`McsLocking`] have the three above, [`Plor`] those of
//! [`PlorOptions`](protocols::PlorOptions) (`plor+dwa`, `plor+optimistic`, `plor+deadline=20`, ...), [`Drp`] those of
//! [`DrpOptions`](protocols::DrpOptions) (`drp+opaque`, `drp+exclusive`, ...). [`Engine::new`] makes the first
//! variant in [`Variants::VARIANTS`], and [`Engine::named`] the variant of a name:
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
//! Under `no-wait`, `wait-die`, `wound-wait`, `2pl-mcs`, `steal` and `plor` a transaction *holds locks while its body
//! runs*: keep bodies short, and compute outside of them. Under all of these but `no-wait`, a transaction keeps its
//! age over retries, so that the oldest one gets through. A wait for a lock has no time limit, except the deadline of
//! the [`RetryPolicy`], if it has one.
//!
//! Code that is generic over [`Protocol`] works with all of them. Where the name comes from outside (an argument, a
//! configuration), a [`Visitor`](protocols::Visitor) turns it into the type:
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
//! for name in ["occ", "plor", "drp", "tictoc", "mocc", "no-wait", "wait-die", "wound-wait", "steal", "2pl-mcs", "tl2", "serial", "none"] {
//!     assert_eq!(with_protocol(name, CountToTen).unwrap(), Ok(10));
//! }
//! assert_eq!(with_protocol("plor+dwa+deadline=20", CountToTen).unwrap(), Ok(10));
//! let unknown = with_protocol("2pl", CountToTen).unwrap_err();
//! assert!(unknown.to_string().contains("wound-wait, wait-die, no-wait"), "it says which there are");
//! ```
//!
//! # Boxes, arrays, counters
//!
//! [`TBox`] holds one value. [`TArray`] holds a fixed number of values, each of which conflicts on its own. A
//! transaction sees its own writes. Others see them only after the commit, all or none.
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
//! [`TCounter`] is for a number that many threads change and few read exactly. Increments do not read the counter, so
//! they never make each other abort. Tests ([`is_at_least`](TCounter::is_at_least) and its siblings) are
//! *predicates*: the transaction depends on the answer, not on the value. An exact [`get`](TCounter::get) conflicts
//! with every change.
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
//! A [`Table`] maps keys of one type to rows of one type, under a hash index or an ordered index. Integers, `bool`,
//! `char`, `String`, `Vec<u8>`, arrays of bytes, [`Text`], options and tuples of keys are keys already, and UUIDs with the
//! feature `uuid`; for a struct or an enum, derive [`Key`](macro@Key). Tables with `String` keys are looked up by `&str`, and
//! those with `Vec<u8>` keys by `&[u8]`, without an allocation.
//!
//! ```
//! use hotrow::{Direction, Engine, Occ, Table};
//!
//! let engine = Engine::<Occ>::new();
//! let accounts = Table::<String, i64, Occ>::ordered(&engine, "accounts");
//! accounts.bulk_insert("anna@example.com".into(), 10);
//! accounts.bulk_insert("ben@example.com".into(), 20);
//! let (left, first) = engine.run(|tx| {
//!     let left = accounts.update(tx, "anna@example.com", |balance| {
//!         *balance -= 3;
//!         *balance
//!     })?;
//!     Ok((left, accounts.collect(tx, "a".."b", Direction::Ascending, 10)?))
//! })?;
//! assert_eq!(left, Some(7));
//! assert_eq!(first, [("anna@example.com".into(), 7)]);
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! A key of fixed size costs a little less than one of any length. A [`Text`] is a short string of fixed size.
//!
//! Rows derive [`Value`](macro@Value), which decides their placement in memory:
//!
//! - *inline* (`#[value(inline)]`): plain `Copy` data without padding, stored in the record itself and copied to be
//!   read. Use it for small rows that change often. A type that is not plain, or has padding, does not compile.
//! - *boxed* (the default): stored behind a pointer that a commit swaps, so that a read never copies a large row. A
//!   change copies the row. Use it for large rows, strings, vectors, anything that is `Clone + Send + Sync`.
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
//! A failed lookup reads a fact: the key is missing. A scan reads one, too: the range holds no other keys than those
//! visited. If another transaction inserts or deletes there, the commit fails and the body runs again, so neither
//! index admits phantoms. Only an ordered table can be scanned ([`Table::scan`], or [`Table::collect`] with a limit).
//! Such facts are checked per bucket or leaf, so the insertion of a neighbouring key may also abort a transaction
//! whose lookup found nothing. Where several keys of a large hash table are known beforehand, [`Table::prefetch`]
//! fetches them together; it changes no result.
//!
//! Where a transaction needs a few fields of a large inline row, [`Table::read_columns`] copies these only:
//!
//! ```
//! use hotrow::{Engine, Occ, Table, Text, Value, column};
//!
//! #[derive(Debug, Clone, Copy, Value)]
//! #[value(inline)]
//! struct Item {
//!     price: i64,
//!     sold: u32,
//!     description: Text<500>,
//! }
//!
//! let engine = Engine::<Occ>::new();
//! let items = Table::<u32, Item, Occ>::hash(&engine, "items", 1_000);
//! let row = Item { price: 300, sold: 7, description: "a lamp".try_into()? };
//! assert!(items.bulk_insert(1, row));
//! let columns = (column!(Item, price), column!(Item, sold));
//! assert_eq!(engine.run(|tx| items.read_columns(tx, &1, columns))?, Some((300, 7)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A *secondary index* finds rows by something other than their key. The transaction that changes a row also updates
//! the index, and several rows may have the same secondary key. A table declared *immutable* (immutable) is loaded once
//! and then read without any tracking. A transaction that tries to change it ends with [`Misuse::ImmutableTable`].
//!
//! ```
//! use hotrow::{Direction, Engine, Error, Misuse, Occ, Table};
//! use std::ops::ControlFlow;
//!
//! let engine = Engine::<Occ>::new();
//! let mut builder = Table::<u32, String, Occ>::builder(&engine, "people").hash(1_000);
//! let by_name = builder.secondary("by_name", |_number, name| name.clone());
//! let people = builder.build();
//! for (number, name) in [(1, "cole"), (2, "able"), (3, "cole")] {
//!     people.bulk_insert(number, name.into()); // Outside of any transaction, to fill the table.
//! }
//! let coles = engine.run(|tx| {
//!     let mut numbers = Vec::new();
//!     by_name.scan_keys(tx, "cole"..="cole", Direction::Ascending, |_name, number| {
//!         numbers.push(*number);
//!         ControlFlow::Continue(())
//!     })?;
//!     Ok(numbers)
//! })?;
//! assert_eq!(coles, [1, 3]);
//!
//! let prices = Table::<u32, u64, Occ>::builder(&engine, "prices").hash(10).immutable().build();
//! prices.bulk_insert(7, 99);
//! assert_eq!(engine.run(|tx| prices.get(tx, &7))?, Some(99));
//! let refused = engine.run(|tx| prices.insert(tx, 8, 100));
//! assert!(matches!(refused, Err(Error::Misuse(Misuse::ImmutableTable { .. }))));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # Procedures and contexts
//!
//! A closure is the short form of a transaction. A [`Procedure`] is the long form: it is written once against an
//! abstract [`Context`], so that other interpreters than direct execution can run it. It names tables by references
//! from a [`Database`], which do not depend on the protocol. Values inside it belong to the context
//! ([`Context::Val`]). Where a key or a branch depends on a value, [`force`](Context::force) turns it into a plain
//! one.
//!
//! *Eager*, the simplest context, runs each operation at once, as a closure would, and compiles to the same code;
//! [`commute`](Context::commute) is an ordinary update there. *Tracing* runs the procedure, rolls it back, and
//! returns its operations in order. For each it lists the table, the key, the kind, and the operations on whose
//! results it depends. Under a protocol that defers or shares operations, [`Database::execute`] uses a context made
//! for that ([`Deferring`](context::Deferring), [`Graph`](context::Graph)).
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
//! database.table(accounts).bulk_insert(1, 100);
//! database.table(accounts).bulk_insert(2, 0);
//!
//! let mut worker = engine.worker()?;
//! let transfer = Transfer { accounts, from: 1, to: 2, amount: 70 };
//! let trace = database.trace(&mut worker, &transfer)?; // Changes nothing.
//! assert_eq!(trace.to_string(), "  0 Write accounts[1]\n  1 Commutative accounts[2] if 0\n");
//! assert_eq!(database.execute(&mut worker, &transfer), Ok(true));
//! assert!(database.execute(&mut worker, &transfer).is_err(), "30 are left");
//! assert_eq!(engine.run(|tx| database.table(accounts).get(tx, &2))?, Some(70));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! Closures given to a context must depend only on their arguments and on plain captured data, and must have no side
//! effects: a context may run them late or more than once.
//!
//! # Errors, retries, rollback, panics
//!
//! Operations return [`Abort`] when the attempt cannot go on; pass it up with `?`. The engine then rolls the attempt
//! back and runs the body again, as its [`RetryPolicy`] says. By default it does so for ever: it first spins for a
//! short time, then pauses for random times of at most 100 microseconds. The transaction holds nothing during these
//! pauses. (A deadline also ends waits for locks.)
//!
//! A transaction that was aborted 24 times, or lost a second by aborts, asks the others to let it through: while it
//! has a *window*, no other attempt begins. A window first lasts at most 100 milliseconds, and longer each time it
//! was too short for the transaction's attempts. Between two windows each of the others makes an attempt. So a
//! transaction of any size ends under every protocol, whatever runs beside it. The others wait a few times as long as
//! one of its attempts takes. A transaction that sleeps in its body makes them wait once.
//!
//! [`Engine::run`] returns an [`Error`] only if the transaction did not commit:
//!
//! | error | when | worth running again |
//! |---|---|---|
//! | [`Error::Conflict`] | the policy's attempts are used up; names the last abort's reason and key | yes |
//! | [`Error::Timeout`] | the policy's time is used up; names the same | yes |
//! | [`Error::Rollback`] | the body returned an error of its own, which is inside; or a [condition](Transaction::require) did not hold | no |
//! | [`Error::Panicked`] | a deferred operation panicked | no |
//! | [`Error::MemoryLimit`] | more memory is retained than the engine's limit, if it has one; names the transaction that retains it | yes, unless that was this transaction |
//! | [`Error::Misuse`] | the transaction can never succeed: a nested transaction, an object of another engine, an index out of bounds, an error caught without a savepoint, a change of an immutable table, a scan of a hash table, a write in a read-only transaction, too many workers, a deferred value of another transaction | no |
//!
//! A body may end with an error of any type: `?` passes it up, everything is rolled back, and the error comes back inside
//! [`Error::Rollback`], with its whole chain of sources. [`ensure`](Transaction::ensure) does so unless a condition holds. For
//! texts and for boxed errors (`anyhow`'s, too) there is [`Abort::because`]. (A body whose errors are all of one type that
//! implements `From<Abort>` may run with [`try_run`](Engine::try_run), which returns them unboxed.)
//!
//! ```
//! use hotrow::{Engine, Error, Occ, RetryPolicy, TBox};
//! use std::time::Duration;
//!
//! #[derive(Debug, PartialEq, thiserror::Error)]
//! #[error("{missing} more would be needed")]
//! struct Overdrawn {
//!     missing: i64,
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
//! let refused = engine.run(|tx| {
//!     let left = account.update(tx, |balance| { *balance -= 30; *balance })?;
//!     tx.ensure(left >= 0, Overdrawn { missing: -left })?;
//!     Ok(left)
//! });
//! let refused = refused.unwrap_err();
//! assert_eq!(refused.downcast_ref(), Some(&Overdrawn { missing: 20 }));
//! assert_eq!(refused.to_string(), "rolled back: 20 more would be needed");
//! assert_eq!(engine.run(|tx| account.get(tx)), Ok(10), "rolled back");
//!
//! let parsed = engine.run(|_| Ok("ten".parse::<i64>()?));
//! assert!(matches!(parsed, Err(Error::Rollback(_))));
//! ```
//!
//! A part of a body that may fail alone runs behind a [`savepoint`](Transaction::savepoint): if it returns an error, its
//! writes are undone, and the body goes on. [`or_else`](Transaction::or_else) runs another part in its stead. The reads of
//! an undone part still count, because the body goes on as it does only for that reason. An error that the body catches
//! without a savepoint would leave behind what was written before it, so it ends the transaction with
//! [`Misuse::CaughtError`].
//!
//! ```
//! use hotrow::{Abort, Engine, Error, Misuse, Occ, Table, Transaction};
//!
//! let engine = Engine::<Occ>::new();
//! let seats = Table::<u8, u32, Occ>::hash(&engine, "free seats", 2);
//! let orders = Table::<u64, u8, Occ>::hash(&engine, "orders", 100);
//! let (stalls, balcony) = (1, 2);
//! seats.bulk_insert(stalls, 0);
//! seats.bulk_insert(balcony, 3);
//!
//! let order = |tx: &mut Transaction<'_, Occ>, number: u64, place: u8| {
//!     orders.insert(tx, number, place)?;
//!     let took = seats.update(tx, &place, |free| {
//!         let is_free = *free > 0;
//!         *free -= u32::from(is_free);
//!         is_free
//!     })?;
//!     tx.ensure(took == Some(true), "sold out")?;
//!     Ok::<_, Abort>(place)
//! };
//! let took = engine.run(|tx| tx.or_else(|tx| order(tx, 1, stalls), |tx| order(tx, 1, balcony)));
//! assert_eq!(took, Ok(balcony), "and the order of the stalls is undone");
//!
//! let caught = engine.run(|tx| Ok(order(tx, 2, stalls).unwrap_or(0)));
//! assert_eq!(caught, Err(Error::Misuse(Misuse::CaughtError)));
//! ```
//!
//! A replaced value stays in memory until every transaction that was open at that time has ended, whatever its
//! engine, so one long transaction makes the process grow. [`Engine::retained_memory`] returns how much is retained
//! and by which transaction. [`Engine::set_retained_bytes_max`] sets a limit. Above it, transactions that write wait
//! and then fail, and the transaction that retains most is told to end.
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
//! A panic in a body rolls the attempt back, releases everything, and propagates to the caller. The engine and other
//! threads go on.
//!
//! A call that panics has not committed. After a commit only little user code is left to run, and a panic in it can
//! no longer undo anything: the panic hook reports it, and it does not propagate. This is
//!
//! - a key's `Hash`, or its image, when a deleted row is removed from its index. After a panic the row stays in the
//!   index, dead, until another operation meets it there or the table is dropped;
//! - the `Drop` of what deferred operations captured;
//! - the `Drop` of replaced or deleted values and keys, of any transaction, that are freed at this time. Any thread
//!   may drop such a value, and a panic in one does not stop the others from being dropped. (Two panics *within* one
//!   value or row end the process, as everywhere in Rust.)
//!
//! When an attempt is rolled back, a panic in the first two (its inserted rows are removed from their index)
//! propagates after everything has been released. A key whose `Debug` panics is reported as a key that cannot be
//! shown.
//!
//! A leaked transaction ([`std::mem::forget`] of an [`OpenTransaction`]) never ends. Like a dead thread, it keeps all
//! that it holds: its locks, its insertions, its deferred operations, and the memory that others retire from then on.
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
//! A [`Worker`] owns the resources of an attempt (item set, arena, the protocol's state) and runs one transaction at
//! a time. [`Engine::run`] keeps one worker for each thread that calls it, until the thread ends. A thread that runs
//! many transactions can hold its own and save the look-up:
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
//! There may be more threads than cores. A wait for a lock is short and then gives the attempt up; under protocols
//! whose transactions wait for each other, it parks the thread. Pauses yield or sleep, and a thread that waits for an
//! older transaction parks. Objects and tables may be dropped at any time, even during a transaction. Their memory is
//! freed through the epoch, when no thread can still read it. Replaced and deleted memory is freed in the same way,
//! so a body that never ends keeps the process from freeing anything.
//!
//! # Transaction profiles
//!
//! A transaction needs no declaration. A [`Profile`], given to [`Worker::try_run_as`] or returned by
//! [`Procedure::profile`], may declare the following; a declaration must be true:
//!
//! - The transaction *only reads*. `plor` then reads without registering as a reader, except a transaction that has
//!   lost three times; the other protocols treat it as any other. A write in it is [`Misuse::ReadOnly`].
//! - *[Read committed](Isolation::ReadCommitted)* is enough: each read sees committed data, and no more is
//!   guaranteed. This is for large reports that need not be exact. Under every protocol, they then never abort
//!   because a row that they have read changed, and they block others only during a single read.
//! - The approximate number of *records* that it touches: under `plor+deadline` small transactions go before large
//!   ones for a while.
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
//! A transaction that adds to a hot counter need not know its value at once. A *deferred* operation declares its work
//! and returns a [`Deferred`] value, a handle for the result. Handles are inputs of other deferred operations;
//! operators and comparisons on them give [expressions](Expression), which are inputs too. The body returns the
//! handle of the transaction's result to [`run_deferred`](Engine::run_deferred), which returns the value.
//!
//! The paper's example (drp §2, §6.2) moves money and counts the transfers:
//!
//! ```
//! use hotrow::{Counter, Drp, Engine, Error, TArray, TCounter};
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
//! assert_eq!(engine.statistics().count(&Counter::TAME_COMMITS), 1); // Under `Drp`; others defer nothing.
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! Under [`Drp`] deferred operations run when the transaction commits. A transaction that has read nothing before
//! then is *tame*: it acquires its place in line on every segment that it will touch, and can no longer lose it. It is
//! still aborted, and runs again, in three rare cases: its worker had met nobody for a while and ran it at once (`drp+tame`
//! never does that, and its next attempt does not); a row that was there when its operation was deferred has been
//! deleted before its turn ([`Reason::ReadChanged`]), or an operation had to touch more than it had declared
//! ([`Reason::Undeclared`]; the next attempt then defers nothing).
//!
//! Under every other protocol a deferred operation runs at once. So one source serves all protocols, and only the
//! speed differs.
//!
//! - **Operations that are not deferred** may be mixed in. They see what was deferred before on the same object, and
//!   [`force`](Transaction::force) returns a deferred value at once. Both run everything that was deferred so far. A
//!   transaction that reads in this way is *wild*: it may be aborted and run again, as under other protocols.
//! - **A computation** ([`compute`](Transaction::compute), [`map`](Deferred::map)) gets values and returns one. It
//!   owns what it captures, and must not begin a transaction ([`Misuse::Nested`]).
//! - **A panic** in a deferred operation is [`Error::Panicked`] under every protocol. Like a
//!   [condition](Transaction::require) that does not hold, it rolls the whole transaction back. Other transactions go
//!   on.
//! - **A handle** is valid in its own attempt only; elsewhere it is [`Misuse::ForeignDeferred`].
//! - **Ranks** ([`TBox::set_rank`] and its siblings) define the order in which transactions acquire segments (*line
//!   up*). Give the most contended objects the highest ranks: they are then held for the shortest time.
//!
//! # The conflict report
//!
//! Every engine always counts, in release builds too: commits, aborts by [`Reason`], and the keys over which attempts
//! were lost. The names of objects and tables appear here.
//!
//! ```
//! use hotrow::{Engine, Occ, Reason, Table};
//!
//! let engine = Engine::<Occ>::new();
//! let stock = Table::<(u16, u32), u64, Occ>::hash(&engine, "stock", 10);
//! stock.bulk_insert((1, 77), 0);
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
//! # Recording and checking a run
//!
//! An engine can record the version of each key that each attempt read or wrote ([`history`]), including failed
//! lookups and scanned ranges. Crate `hotrow-check` judges the result: whether some order of the committed
//! transactions explains it, whether that order agrees with real time, and whether aborted attempts, too, saw one
//! state.
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
//! An engine that does not record pays no measurable cost. While it records, each operation looks its key up in a
//! map, so such a run is slower and is no benchmark.
//!
//! # Guarantees, and rules for bodies
//!
//! - **Serializability**, under every protocol, unless a transaction declares that it needs less
//!   ([`Isolation::ReadCommitted`]): committed transactions have the effects, and their bodies the results, of some
//!   serial order. Failed lookups and scanned ranges are included.
//! - **That order agrees with real time** (strict serializability) where [`Protocol::STRICT`] is true, that is,
//!   everywhere but under `tictoc`. There a transaction may precede, in the order, another one that ended before it
//!   began. If one of two transactions reads what the other wrote, or overwrites what it read, they are never
//!   reversed by themselves; that takes others that overlap them.
//! - **No torn values**, under every protocol: a body never sees half of another transaction's write of one
//!   value or row, not even in an attempt that aborts.
//! - **Opacity** only where [`Variants::is_opaque`] is true (`tl2`, `drp+opaque`, and trivially `serial` and
//!   `none`): an attempt sees one consistent state from its first read to its end, even if it aborts.
//!
//! Under the other protocols an attempt that is going to abort may have read two values that never existed together.
//! The commit detects this. Until then the body must not do anything that makes sense only in a consistent state,
//! because nothing validates its reads before the commit:
//!
//! - **No endless loops** on an assumption such as "these two are equal".
//!
//! A panic, an error or a rollback of such a body does no harm. Every protocol validates the attempt's reads first,
//! and propagates it only if they are one consistent state. Otherwise the body runs again. (The panic hook has
//! printed its message by then.) The same holds for conditions and panics of [deferred
//! operations](#deferred-operations).
//!
//! Under every protocol a body may run several times, so it must obey two more rules:
//!
//! - **No effects outside** (files, messages, plain shared variables) that may not happen more than once.
//! - **No waiting** for a transaction of another thread: that transaction may have to wait until this one has ended,
//!   and under protocols that lock it may wait for a lock of this one. (The example of the conflict report waits in
//!   this way to show a conflict. That works only because nothing else runs.)
//!
//! # Limits
//!
//! Nothing is durable: data live in the memory of one process. There is no network, no SQL, no distribution, and not
//! yet a way to wait in a transaction until something changes.

pub mod object;

/// The placement of values: the cells behind [`Value`], and the plain data that can be inline.
pub use hotrow_core::cell;
/// All protocols: their types, and the registry that finds them by name.
#[doc(inline)]
pub use hotrow_protocols as protocols;
/// Atomics, waiting, time, random numbers and threads, as Hotrow itself uses them.
#[doc(inline)]
pub use hotrow_sync as sync;
/// The contexts, which interpret procedures.
pub use hotrow_tables::context;
/// The parts of keys: order-preserving images, and the packing of structs into them.
pub use hotrow_tables::key;

/// The history of a run: the versions that each attempt read and wrote.
#[doc(inline)]
pub use hotrow_core::history;
/// Recorded operations: deferred values, inputs, and the expressions that operators on deferred values make.
#[doc(inline)]
pub use hotrow_core::operations;
#[doc(inline)]
pub use hotrow_core::{
    Abort, Access, BoxedError, Column, Columns, CommitStamp, CommitSteps, Committing, Conflict, Counter,
    CounterPlace, CounterValue, Deferred, Engine, EngineId, Error, Expression, HolderKind, HotKey, Input,
    Isolation, MemoryHolder, MemoryLimit, Misuse, NamedCounts, OpenTransaction, Plain, Profile, Protocol,
    Reason, RetainedMemory, RetryPolicy, RollbackReason, Statistics, Transaction, Value, Variant, Variants,
    Worker, WorkerId, column, retained_bytes,
};
#[doc(inline)]
pub use hotrow_derive::{Key, Value};
#[doc(inline)]
pub use hotrow_objects::{TArray, TBox, TCounter};
#[doc(inline)]
pub use hotrow_protocols::{
    Drp, McsLocking, Mocc, NoProtocol, Occ, Plor, Serial, TicToc, Tl2, TwoPhaseLocking,
};
#[doc(inline)]
pub use hotrow_tables::{
    Context, Data, Database, Direction, IndexRef, Key, KeyRange, Operation, OperationId, OperationKind,
    Procedure, ProcedureTrace, SecondaryIndex, Table, TableBuilder, TableMemory, TableRef, Text, TextError,
};

/// The names that most programs use: `use hotrow::prelude::*;`.
///
/// [`crate::Error`] is not included, as programs have errors of their own.
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
