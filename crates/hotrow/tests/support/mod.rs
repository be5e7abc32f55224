//! Helpers that the tests of the facade share: every protocol, other threads, and rows that are counted.

#![allow(dead_code, unused_macros, unused_imports, reason = "each test binary uses a part of it")]

pub(crate) mod numbers;
pub(crate) mod stamps;
pub(crate) mod steps;

use hotrow::sync::Arc;
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::thread;
use hotrow::{
    Abort, Database, Engine, Error, Key, Protocol, RetryPolicy, Table, TableBuilder, Transaction, Value,
    Worker,
};
use std::cell::RefCell;
use std::time::Duration;

/// An error type of the user's own.
#[derive(Debug, PartialEq)]
pub(crate) enum Refused {
    SoldOut,
    Aborted,
}

impl From<Abort> for Refused {
    fn from(_: Abort) -> Self {
        Self::Aborted
    }
}

/// Runs a block once for every protocol that admits so many workers, with the protocol as a type:
/// `for_each_protocol!(1, |P| { ... })`. A failure names the protocol.
macro_rules! for_each_protocol {
    ($workers:expr, |$protocol:ident| $body:block) => {
        crate::support::for_each_protocol!(for_each_protocol, $workers, |$protocol| $body)
    };
    ($function:ident, $workers:expr, |$protocol:ident| $body:block) => {{
        #[derive(Clone, Copy)]
        struct EachProtocol;
        impl hotrow::protocols::Visitor for EachProtocol {
            type Output = ();
            fn visit<$protocol: hotrow::Protocol>(self, name: &str) {
                // Shown only if the test fails.
                eprintln!("protocol {name}");
                crate::support::choose(name);
                $body
            }
        }
        let ran = hotrow::protocols::$function($workers, EachProtocol);
        assert!(!ran.is_empty(), "no protocol admits so many workers");
    }};
}
pub(crate) use for_each_protocol;

/// As [`for_each_protocol!`], for the protocols that run transactions at the same time.
macro_rules! for_each_concurrent_protocol {
    ($workers:expr, |$protocol:ident| $body:block) => {
        crate::support::for_each_protocol!(for_each_concurrent_protocol, $workers, |$protocol| $body)
    };
}
pub(crate) use for_each_concurrent_protocol;

/// Compares values of a type by their field `number`, whatever else they have.
macro_rules! by_number {
    ($type:ident) => {
        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                self.number == other.number
            }
        }
        impl Eq for $type {}
        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }
        impl Ord for $type {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.number.cmp(&other.number)
            }
        }
    };
}
pub(crate) use by_number;

hotrow::sync::local! {
    static CHOSEN: RefCell<String> = RefCell::new(String::new());
}

/// Says of which variant this thread's [`engine`]s are.
pub(crate) fn choose(name: &str) {
    CHOSEN.with(|chosen| name.clone_into(&mut chosen.borrow_mut()));
}

/// The name of the variant that `for_each_protocol!` has come to.
pub(crate) fn chosen() -> String {
    CHOSEN.with(|chosen| chosen.borrow().clone())
}

/// The description of the variant that `for_each_protocol!` has come to.
fn information() -> &'static hotrow::protocols::ProtocolInfo {
    hotrow::protocols::find(&chosen()).expect("called inside for_each_protocol!")
}

/// True if its operations can be deferred.
pub(crate) fn defers() -> bool {
    information().defers
}

/// True if it runs transactions at the same time.
pub(crate) fn is_concurrent() -> bool {
    information().concurrent
}

/// True if its serial order agrees with real time.
pub(crate) fn is_strict() -> bool {
    information().strict
}

/// True if it locks buckets and leaves.
pub(crate) fn locks_ranges() -> bool {
    information().locks_ranges
}

/// True if the variant that `for_each_protocol!` has come to is opaque.
pub(crate) fn is_opaque<P: Protocol>() -> bool {
    P::is_opaque(&P::options(&chosen()).expect("called inside for_each_protocol!"))
}

/// A new engine of the variant that `for_each_protocol!` has come to.
pub(crate) fn engine<P: Protocol>() -> Engine<P> {
    engine_with(RetryPolicy::default())
}

/// As [`engine`], with a policy.
pub(crate) fn engine_with<P: Protocol>(policy: RetryPolicy) -> Engine<P> {
    Engine::named(&chosen(), policy).expect("called inside for_each_protocol!")
}

/// Makes a table of these rows, without transactions.
pub(crate) fn loaded<K: Key, R: Value, P: Protocol>(
    builder: TableBuilder<K, R, P>,
    rows: impl IntoIterator<Item = (K, R)>,
) -> Table<K, R, P> {
    let loading = builder.load().unwrap();
    rows.into_iter().for_each(|(key, row)| loading.insert(key, row).unwrap());
    loading.finish().unwrap()
}

/// Does something on another thread and waits for it: the other transaction of a hand-stepped interleaving.
pub(crate) fn elsewhere<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    let (mut work, mut result) = (Some(work), None);
    elsewhere_by(&mut || result = work.take().map(|work| work()));
    result.expect("it has not panicked")
}

/// Is compiled once for all that tests do elsewhere.
fn elsewhere_by(work: &mut (dyn FnMut() + Send)) {
    thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
}

/// An engine whose transactions give up soon after they had to wait or were aborted, for interleavings that are
/// stepped by hand.
pub(crate) fn impatient<P: Protocol>() -> Engine<P> {
    engine_with(RetryPolicy {
        attempts_max: 40,
        deadline: Some(Duration::from_millis(5)),
        ..RetryPolicy::default()
    })
}

/// Runs a transaction on another thread, in the midst of one on this thread. False if the protocol held it off
/// until it gave up (the engine is [`impatient`]): what it wants is locked.
pub(crate) fn overtake<P: Protocol>(
    engine: &Engine<P>,
    body: impl Fn(&mut Transaction<'_, P>) -> Result<(), Abort> + Sync,
) -> bool {
    match elsewhere(|| engine.transact(&body)) {
        Ok(()) => true,
        Err(error) if error.is_retryable() => false,
        Err(error) => panic!("{error}"),
    }
}

/// Runs a transaction of an [`impatient`] engine in whose midst another one runs, and runs it again if the deadline has
/// passed. The deadline is for the other one, which must not wait for ever; on a busy machine it may pass for this one,
/// too, between the attempt that was overtaken and the next.
pub(crate) fn whatever_time_it_takes<R, E: std::fmt::Debug>(
    mut run: impl FnMut() -> Result<R, Error<E>>,
) -> Result<R, Error<E>> {
    let mut ran = run();
    for _ in 0..50 {
        if !matches!(ran, Err(Error::Timeout(_))) {
            break;
        }
        ran = run();
    }
    ran
}

/// Runs a transaction whose first attempt is overtaken by another thread's when its body is at its end, and
/// returns how many attempts it took; `None` if the other one was held off.
pub(crate) fn attempts<P: Protocol>(
    engine: &Engine<P>,
    mut body: impl FnMut(&mut Transaction<'_, P>) -> Result<(), Abort>,
    other: impl Fn(&mut Transaction<'_, P>) -> Result<(), Abort> + Sync,
) -> Option<u32> {
    let (mut overtaken, mut begun) = (false, 0);
    let attempts = whatever_time_it_takes(|| {
        engine.transact(|tx| {
            begun += 1;
            body(tx)?;
            if begun == 1 {
                overtaken = overtake(engine, &other);
            }
            Ok(begun)
        })
    });
    let attempts = attempts.unwrap();
    assert!(overtaken || attempts == 1, "held off and yet in the way");
    overtaken.then_some(attempts)
}

/// Runs `work` on so many threads, each with a worker and a number of its own, and returns what they return.
pub(crate) fn on_threads<P: Protocol, R: Send>(
    engine: &Engine<P>,
    threads: u64,
    work: impl Fn(u64, &mut Worker<P>) -> R + Sync,
) -> Vec<R> {
    thread::scope(|scope| {
        let started: Vec<_> = (0..threads)
            .map(|number| {
                let work = &work;
                scope.spawn(move || work(number, &mut engine.worker().unwrap()))
            })
            .collect();
        started
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// The kinds of indexes that tables have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableKind {
    Hash,
    Ordered,
    /// Hash, with a cache in which each of a few keys has a bucket.
    CachedHash,
    /// Ordered, with such a cache.
    Cached,
    /// Ordered, with a cache in which all keys have one bucket.
    CachedTogether,
}

impl TableKind {
    pub(crate) const ALL: [Self; 5] =
        [Self::Hash, Self::Ordered, Self::CachedHash, Self::Cached, Self::CachedTogether];

    pub(crate) fn is_ordered(self) -> bool {
        !matches!(self, Self::Hash | Self::CachedHash)
    }

    /// Makes a table one of this kind.
    pub(crate) fn of<K: Key, R: Value, P: Protocol>(
        self,
        table: TableBuilder<K, R, P>,
    ) -> TableBuilder<K, R, P> {
        match self {
            Self::Hash => table.hash(1),
            Self::Ordered => table,
            Self::CachedHash => table.hash(1).cached(0),
            Self::Cached => table.cached(0),
            Self::CachedTogether => table.cached(64),
        }
    }
}

/// Runs `work` and returns the message it panicked with.
pub(crate) fn panic_of<R>(work: impl FnOnce() -> R) -> String {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(_) => panic!("it should have panicked"),
        Err(panic) => match panic.downcast::<String>() {
            Ok(message) => *message,
            Err(panic) => (*panic.downcast::<&str>().expect("a message")).to_owned(),
        },
    }
}

/// How many counted values are alive: clones and drops balance out, so what is left is what is held.
#[derive(Debug, Clone, Default)]
pub(crate) struct Census(Arc<AtomicU64>);

impl Census {
    pub(crate) fn alive(&self) -> i64 {
        self.0.load(Ordering::SeqCst).cast_signed()
    }

    /// A new value that is counted.
    pub(crate) fn value(&self, number: u64) -> Counted {
        self.0.fetch_add(1, Ordering::SeqCst);
        Counted { number, mark: ALIVE, census: self.clone() }
    }

    /// Lets epochs pass until exactly `expected` values are alive.
    ///
    /// Other tests of the same process hold epochs back while they are pinned, so this may take a while; it
    /// gives up after half a minute.
    pub(crate) fn settle<P: Protocol>(&self, engine: &Engine<P>, expected: i64) {
        let churn = Database::on(engine).table::<u64, String>("churn").create().unwrap();
        for round in 0..30_000 {
            if self.alive() == expected {
                return;
            }
            // Each transaction pins an epoch, and retired values make the epoch move on.
            for key in 0..64 {
                engine.transact(|tx| churn.upsert(tx, key, String::new())).unwrap();
            }
            if round > 100 {
                thread::sleep(Duration::from_millis(1));
            }
        }
        assert_eq!(self.alive(), expected, "values that nobody dropped, or that were dropped twice");
    }
}

/// A boxed value that knows how many of its kind are alive and notices a second drop.
#[derive(Debug, Value)]
pub(crate) struct Counted {
    pub(crate) number: u64,
    mark: u64,
    census: Census,
}

const ALIVE: u64 = 0xa11_5e11;

impl Clone for Counted {
    fn clone(&self) -> Self {
        assert_eq!(self.mark, ALIVE, "cloned after it was dropped");
        self.census.value(self.number)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        assert_eq!(std::mem::replace(&mut self.mark, 0), ALIVE, "dropped twice");
        self.census.0.fetch_sub(1, Ordering::SeqCst);
    }
}
