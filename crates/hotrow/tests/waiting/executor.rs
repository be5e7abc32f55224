//! A small executor: threads that poll tasks from one queue.

use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::event::Event;
use hotrow::sync::thread;
use hotrow::sync::{Arc, Mutex, lock};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Wake, Waker};

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Default)]
struct Queue {
    ready: Mutex<VecDeque<Arc<Task>>>,
    added: Event,
    /// Tasks that have not ended.
    open: AtomicU64,
    polls: AtomicU64,
}

struct Task {
    work: Mutex<Option<Work>>,
    queue: Arc<Queue>,
    /// 1 if it is in the queue.
    is_queued: AtomicU64,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if self.is_queued.swap(1, Ordering::AcqRel) == 0 {
            lock(&self.queue.ready).push_back(self.clone());
            self.queue.added.notify_all();
        }
    }
}

/// The executor. Cloning gives another handle.
#[derive(Clone, Default)]
pub(crate) struct Executor(Arc<Queue>);

impl Executor {
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.open.fetch_add(1, Ordering::AcqRel);
        let work = Mutex::new(Some(Box::pin(work) as Work));
        Arc::new(Task { work, queue: self.0.clone(), is_queued: AtomicU64::new(0) }).wake();
    }

    /// Polls tasks on this thread until all have ended.
    pub(crate) fn work(&self) {
        while !self.has_ended() {
            if !self.poll_next() {
                self.0.added.wait_until(|| self.has_ended() || !lock(&self.0.ready).is_empty());
            }
        }
    }

    /// Polls the first task that is ready. False if there is none.
    fn poll_next(&self) -> bool {
        let queue = &*self.0;
        let Some(task) = lock(&queue.ready).pop_front() else { return false };
        task.is_queued.store(0, Ordering::Release);
        let waker = Waker::from(task.clone());
        let mut work = lock(&task.work);
        let Some(future) = work.as_mut() else { return true };
        let is_ready = future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        queue.polls.fetch_add(1, Ordering::Relaxed);
        if is_ready {
            *work = None;
            queue.open.fetch_sub(1, Ordering::AcqRel);
            queue.added.notify_all();
        }
        true
    }

    /// Polls tasks on this thread until none is ready.
    pub(crate) fn work_off(&self) {
        while self.poll_next() {}
    }

    /// True if all tasks have ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.open.load(Ordering::Acquire) == 0
    }

    /// Polls tasks on so many threads until all have ended.
    pub(crate) fn run(&self, threads: usize) {
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| self.work());
            }
        });
    }

    /// The number of polls so far.
    pub(crate) fn polls(&self) -> u64 {
        self.0.polls.load(Ordering::Relaxed)
    }
}

/// Polls a future on this thread until it is ready.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    #[derive(Default)]
    struct Woken {
        is_woken: AtomicU64,
        event: Event,
    }
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.is_woken.store(1, Ordering::Release);
            self.event.notify_all();
        }
    }
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        woken.event.wait_until(|| woken.is_woken.swap(0, Ordering::AcqRel) == 1);
    }
}
