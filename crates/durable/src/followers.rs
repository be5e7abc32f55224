//! Functions that are called when commits are on the device, for callers that do not wait for that.
//!
//! They may wait for the log, so its own thread cannot call them. A thread is started when the first one comes, and ends when there is none
//! left.

use hotrow_core::LogFollowers;
use hotrow_log::Log;
use hotrow_sync::{Arc, Mutex, lock, thread};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Function = Box<dyn FnOnce() + Send>;

/// The functions of a database.
#[derive(Clone)]
pub(crate) struct Followers {
    log: Log,
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    /// By epoch, and then in their order.
    waiting: BTreeMap<(u64, u64), Function>,
    next: u64,
    /// True if a thread calls them.
    is_served: bool,
}

impl Followers {
    pub(crate) fn new(log: Log) -> Self {
        Self { log, queue: Arc::default() }
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// Calls the functions until there is none left.
    fn serve(&self) {
        loop {
            let first = {
                let mut queue = lock(&self.queue);
                let first = queue.waiting.pop_first();
                queue.is_served = first.is_some();
                first
            };
            let Some(((epoch, _), function)) = first else { return };
            let is_durable = self.log.wait_written(epoch).is_ok();
            // The panic hook has reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| if is_durable { function() } else { drop(function) }));
        }
    }
}

impl LogFollowers for Followers {
    fn when_durable(&self, epoch: u64, function: Function) {
        let epoch = self.log.last_appended(epoch);
        {
            let mut queue = lock(&self.queue);
            queue.next += 1;
            let place = (epoch, queue.next);
            queue.waiting.insert(place, function);
            if std::mem::replace(&mut queue.is_served, true) {
                return;
            }
        }
        let served = self.clone();
        if thread::is_simulated() {
            // A simulated core has no threads of its own.
            served.serve();
        } else {
            thread::spawn(move || served.serve());
        }
    }
}
