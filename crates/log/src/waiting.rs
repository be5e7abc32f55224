//! Waiting until a commit is durable: on a thread, or as a future.

use crate::Failure;
use crate::around::AroundWaits;
use crate::shared::Shared;
use hotrow_sync::atomic::Ordering;
use hotrow_sync::lock;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The wakers of futures, by the epoch that they wait for and a number of their own.
#[derive(Default)]
pub(crate) struct Wakers {
    next: u64,
    waiting: BTreeMap<(u64, u64), Waker>,
}

impl Shared {
    /// Asks the logger to make an epoch durable at once.
    pub(crate) fn want(&self, epoch: u64) {
        // Release: pairs with the acquire in `is_urgent`.
        if self.wanted.fetch_max(epoch, Ordering::Release) < epoch {
            self.wake_logger();
        }
    }

    /// The result of a wait for an epoch, if it is over.
    fn durability(&self, epoch: u64) -> Option<Result<(), Failure>> {
        // Before the epoch: whatever was made durable was so before the logger's end.
        let over = self.check();
        if self.durable_epoch() >= epoch {
            return Some(Ok(()));
        }
        over.is_err().then_some(over)
    }

    /// Waits until an epoch is durable.
    pub(crate) fn wait_durable(&self, epoch: u64) -> Result<(), Failure> {
        if self.durable_epoch() >= epoch {
            return Ok(());
        }
        self.check_process()?;
        self.want(epoch);
        AroundWaits::run(self.options.around_waits.as_ref(), || self.wait_written(epoch))
    }

    /// Waits until an epoch is durable, whenever the logger writes it.
    pub(crate) fn wait_written(&self, epoch: u64) -> Result<(), Failure> {
        let mut result = Ok(());
        self.progress.wait_until(|| match self.durability(epoch) {
            Some(over) => {
                result = over;
                true
            }
            None => false,
        });
        result
    }

    /// Wakes the futures whose wait is over.
    pub(crate) fn wake_futures(&self) {
        let over = self.check().is_err();
        let mut ready = BTreeMap::new();
        {
            let mut wakers = lock(&self.wakers);
            if wakers.waiting.is_empty() {
                return;
            }
            if over {
                std::mem::swap(&mut ready, &mut wakers.waiting);
            } else if let Some(later) = self.durable_epoch().checked_add(1) {
                let rest = wakers.waiting.split_off(&(later, 0));
                ready = std::mem::replace(&mut wakers.waiting, rest);
            }
        }
        // Not under the lock: a waker is foreign code.
        ready.into_values().for_each(Waker::wake);
    }
}

/// Future that is ready once all commits of an epoch are durable, or the log has failed. Needs no executor of a
/// particular kind. The logger works for it from the first poll on.
#[must_use = "a future does nothing until it is polled"]
pub struct WhenDurable {
    shared: Arc<Shared>,
    epoch: u64,
    /// The number of its waker, once it has one.
    number: Option<u64>,
}

impl WhenDurable {
    pub(crate) fn new(shared: Arc<Shared>, epoch: u64) -> Self {
        Self { shared, epoch, number: None }
    }

    /// The epoch waited for.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
}

impl Future for WhenDurable {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Some(result) = this.shared.durability(this.epoch) {
            return Poll::Ready(result);
        }
        if let Err(forked) = this.shared.check_process() {
            return Poll::Ready(Err(forked));
        }
        let replaced = {
            let mut wakers = lock(&this.shared.wakers);
            let number = *this.number.get_or_insert_with(|| {
                wakers.next += 1;
                wakers.next
            });
            wakers.waiting.insert((this.epoch, number), context.waker().clone())
        };
        drop(replaced);
        this.shared.want(this.epoch);
        // The logger may have looked for wakers before this one came. It takes the mutex after publishing, so either it
        // has found the waker, or this check finds what it has published.
        match this.shared.durability(this.epoch) {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        }
    }
}

impl Drop for WhenDurable {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let waker = lock(&self.shared.wakers).waiting.remove(&(self.epoch, number));
            drop(waker);
        }
    }
}

impl std::fmt::Debug for WhenDurable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WhenDurable").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}
