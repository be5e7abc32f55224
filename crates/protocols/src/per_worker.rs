//! A value for each worker of an engine, found by the worker's number.

use crossbeam_utils::CachePadded;
use hotrow_sync::OnceLock;
use hotrow_sync::profile::name_slice;
use std::any::type_name;

const CHUNK: usize = if cfg!(test) { 2 } else { 64 };

/// Values that are made in chunks, when the first worker of a chunk asks.
#[derive(Debug)]
pub(crate) struct PerWorker<T> {
    chunks: Box<[OnceLock<Box<[CachePadded<T>]>>]>,
}

impl<T: Default> PerWorker<T> {
    /// Makes room for workers with numbers below `workers_max`.
    pub(crate) fn new(workers_max: u32) -> Self {
        Self { chunks: (0..(workers_max as usize).div_ceil(CHUNK)).map(|_| OnceLock::new()).collect() }
    }

    /// Returns a worker's value.
    #[inline]
    pub(crate) fn of(&self, worker: u32) -> &T {
        let worker = worker as usize;
        let chunk = self.chunks[worker / CHUNK].get_or_init(|| {
            let values: Box<[CachePadded<T>]> = (0..CHUNK).map(|_| CachePadded::new(T::default())).collect();
            name_slice(&values, || format!("{} of a worker", short_name(type_name::<T>())));
            values
        });
        &chunk[worker % CHUNK]
    }
}

/// The last part of a type's path; of the path of its elements, for an array.
fn short_name(name: &str) -> &str {
    let name = name.split(';').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name)
}
