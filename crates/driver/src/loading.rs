//! Loading of the initial data by several threads.

use crate::error::BenchError;
use crate::observer::Observer;
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::thread;
use hotrow::{Key, Loading, Protocol, Table, Value};

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
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            let loaded = thread.join().unwrap_or_else(|_| Err(String::from("a loading thread panicked")));
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
