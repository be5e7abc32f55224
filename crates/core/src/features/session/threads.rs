//! The process's pool of threads on which sessions run.
//!
//! A thread serves one session at a time, and parks behind it for [`KEPT_FOR`] to serve the next one. The thread that was
//! parked last is used first, so that those that are not needed end. Nobody joins the threads: they do not keep the process
//! from ending.

use crate::memory::users_code::contained;
use hotrow_sync::event::Event;
use hotrow_sync::instrument::{Mutex, lock};
use hotrow_sync::{Arc, thread};
use std::io;
use std::time::Duration;

/// The time after which a parked thread ends.
const KEPT_FOR: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });

/// Number of threads that are parked at most.
const KEPT_MAX: usize = if cfg!(test) { 2 } else { 64 };

pub(super) type Task = Box<dyn FnOnce() + Send>;

/// A parked thread.
#[derive(Default)]
struct Parked {
    task: Mutex<Option<Task>>,
    given: Event,
}

// Not of the model checker's: it lives in a static.
static PARKED: Mutex<Vec<Arc<Parked>>> = Mutex::new(Vec::new());

/// Runs a task on a thread of the pool.
///
/// # Errors
///
/// The system's error, if it gave no thread.
pub(super) fn run(task: Task) -> io::Result<()> {
    let parked = lock(&PARKED).pop();
    match parked {
        Some(parked) => {
            *lock(&parked.task) = Some(task);
            parked.given.notify_all();
            Ok(())
        }
        None => thread::Builder::new().name("hotrow-session".into()).spawn(move || live(task)).map(drop),
    }
}

/// Runs tasks until there has been none for long.
fn live(first: Task) {
    let me = Arc::new(Parked::default());
    let mut next = Some(first);
    while let Some(task) = next {
        contained(task);
        next = park(&me);
    }
}

fn park(me: &Arc<Parked>) -> Option<Task> {
    let mut parked = lock(&PARKED);
    if parked.len() >= KEPT_MAX {
        return None;
    }
    parked.push(me.clone());
    drop(parked);
    let is_given = || lock(&me.task).is_some();
    if !me.given.wait_timeout(KEPT_FOR, is_given) {
        let mut parked = lock(&PARKED);
        if let Some(at) = parked.iter().position(|other| Arc::ptr_eq(other, me)) {
            parked.remove(at);
            return None;
        }
        drop(parked);
        // Somebody has taken it out, and is about to give it a task.
        me.given.wait_until(is_given);
    }
    lock(&me.task).take()
}

/// Number of threads that are parked now.
#[cfg(all(test, not(loom)))]
pub(super) fn parked() -> usize {
    lock(&PARKED).len()
}
