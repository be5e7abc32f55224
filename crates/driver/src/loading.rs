//! Loading of the initial data by several threads.

use crate::error::BenchError;
use crate::observer::Observer;
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::thread::{self, ScopedJoinHandle};
use hotrow::{Key, Loading, Protocol, Table, Value};
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Loads the data part by part: several threads take the parts in order, and each passes its own to `load`.
///
/// # Errors
///
/// [`BenchError::Load`] with the message of a `load` that fails, or if one panics. The other threads go on until no
/// part is left.
pub fn load_parts<T: Sync>(
    parts: &[T],
    threads: usize,
    observer: &dyn Observer,
    load: impl Fn(&T) -> Result<(), String> + Sync,
) -> Result<(), BenchError> {
    load_numbered(parts.len() as u64, threads, observer, &|number| load(&parts[number as usize]))
}

/// Loads parts that are known by their numbers. Apart from [`load_parts`], so that it is compiled once.
fn load_numbered(
    total: u64,
    threads: usize,
    observer: &dyn Observer,
    load: &(dyn Fn(u64) -> Result<(), String> + Sync),
) -> Result<(), BenchError> {
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    observer.loading(0, total);
    let work = || -> Result<(), String> {
        // Relaxed, both: the counters hand out numbers; joining the threads orders the data.
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= total {
                return Ok(());
            }
            load(number)?;
            observer.loading(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        }
    };
    // This thread is one of them. What a thread frees as it ends races with what is allocated next, so one that loads alone starts none:
    // simulations that follow then find their data at the same places each time.
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = catch_unwind(AssertUnwindSafe(work));
        for loaded in iter::once(own).chain(others.into_iter().map(ScopedJoinHandle::join)) {
            let loaded = loaded.unwrap_or_else(|_| Err(String::from("a loading thread panicked")));
            loaded.map_err(BenchError::Load)?;
        }
        Ok(())
    })
}

/// Ends the loading of a table.
///
/// # Errors
///
/// [`BenchError::Load`] if it cannot be kept.
pub fn finish<K: Key, R: Value, P: Protocol>(
    loading: Loading<K, R, P>,
) -> Result<Table<K, R, P>, BenchError> {
    loading.finish().map_err(|error| BenchError::Load(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::Unobserved;
    use std::cell::Cell;

    #[test]
    fn one_thread_is_the_callers() {
        thread_local!(static LOADED: Cell<u64> = const { Cell::new(0) });
        let load = |part: &u64| {
            LOADED.set(LOADED.get() + part);
            Ok(())
        };
        load_parts(&[1, 2, 3], 1, &Unobserved, load).unwrap();
        assert_eq!(LOADED.get(), 6);
    }

    #[test]
    fn each_part_is_loaded_once_and_the_first_failure_is_told() {
        for threads in [1, 3] {
            let sum = AtomicU64::new(0);
            let load = |part: &u64| {
                sum.fetch_add(*part, Ordering::Relaxed);
                if *part == 2 { Err(String::from("two")) } else { Ok(()) }
            };
            let error = load_parts(&[1, 2, 4, 8], threads, &Unobserved, load).unwrap_err();
            assert!(matches!(error, BenchError::Load(message) if message == "two"));
            assert_eq!(sum.into_inner(), if threads == 1 { 3 } else { 15 });
            let panicked = load_parts(&[()], threads, &Unobserved, |()| panic!("of a part")).unwrap_err();
            assert!(matches!(panicked, BenchError::Load(message) if message == "a loading thread panicked"));
        }
    }
}
