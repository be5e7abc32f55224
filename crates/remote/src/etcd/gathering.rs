//! Requests of several threads, gathered into one.
//!
//! etcd's work for a request is mostly the same whatever is in it: a message, an entry of the log, its replication, an answer. So small requests that
//! wait while others are on their way go together. Reads become one transaction of ranges. Commits become transactions in a transaction,
//! each with its conditions, so that each succeeds or fails by itself.
//!
//! etcd looks at all conditions before it changes anything. Commits in one request are serializable therefore only if none changes what another one
//! has conditions on, or changes. Those that do so go alone. The others have the same version, and any order.

use super::client::{Caller, Client};
use super::failing::CallError;
use super::messages::{Request, RequestOp, Response, TXN, TxnRequest, TxnResponse, operation};
use hotrow_sync::Arc;
use hotrow_sync::clock::{Instant, now};
use std::collections::BTreeSet;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

/// The most requests in one.
const GATHERED_MAX: usize = 64;

/// The most operations, and the most conditions, of a request that goes with others. With [`GATHERED_MAX`] it is less than etcd's least
/// limit.
const OPERATIONS_MAX: usize = 8;

/// The most bytes of a request that goes with others.
const BYTES_MAX: usize = 8 * 1024;

/// The most requests that are on their way at a time. With fewer, more would go together, and wait for longer.
const ON_THE_WAY: usize = 4;

/// A small request, and who waits for its answer.
struct Small {
    request: TxnRequest,
    deadline: Instant,
    answer: oneshot::Sender<Result<TxnResponse, CallError>>,
}

impl Small {
    /// Sends it alone.
    async fn send(self, caller: &Caller) {
        let answer = caller.call(TXN, self.request, self.deadline).await;
        // Whoever waits no more does not want the answer.
        let _ = self.answer.send(answer);
    }
}

/// The way of small requests.
pub(super) struct Gatherer {
    small: UnboundedSender<Small>,
}

impl Gatherer {
    /// A gatherer of reads, which are transactions of ranges without conditions.
    pub(super) fn of_reads(client: &Client) -> Self {
        Self::new(client, Kind::Reads)
    }

    /// A gatherer of transactions.
    pub(super) fn of_commits(client: &Client) -> Self {
        Self::new(client, Kind::Commits)
    }

    fn new(client: &Client, kind: Kind) -> Self {
        let (small, waiting) = unbounded_channel();
        client.spawn(gather(Arc::clone(client.caller()), kind, waiting));
        Self { small }
    }

    /// Calls etcd with a transaction of so many bytes, together with others if it is small.
    pub(super) fn call(
        &self,
        client: &Client,
        request: TxnRequest,
        bytes: usize,
        deadline: Instant,
    ) -> Result<TxnResponse, CallError> {
        let operations = request.compare.len().max(request.success.len()).max(request.failure.len());
        if operations > OPERATIONS_MAX || bytes > BYTES_MAX {
            return client.call(TXN, request, deadline);
        }
        let (answer, answered) = oneshot::channel();
        let small = Small { request, deadline, answer };
        let late = deadline.saturating_duration_since(now());
        if late.is_zero() {
            return Err(CallError::too_late());
        }
        if self.small.send(small).is_err() {
            return Err(CallError::panicked());
        }
        client.wait(async move {
            match timeout(late, answered).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) => Err(CallError::panicked()),
                // It may be sent yet.
                Err(_) => Err(CallError::late("etcd")),
            }
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Reads,
    Commits,
}

/// Sends what waits, until nobody can send any more.
async fn gather(caller: Arc<Caller>, kind: Kind, mut waiting: UnboundedReceiver<Small>) {
    let on_the_way = Arc::new(Semaphore::new(ON_THE_WAY));
    while let Some(first) = waiting.recv().await {
        let Ok(permit) = Arc::clone(&on_the_way).acquire_owned().await else { return };
        let mut gathered = Gathered::new(kind, first);
        while gathered.requests.len() < GATHERED_MAX {
            let Ok(small) = waiting.try_recv() else { break };
            if let Some(small) = gathered.add(small) {
                // Most will conflict, and must not hold up others.
                let caller = Arc::clone(&caller);
                tokio::spawn(async move { small.send(&caller).await });
            }
        }
        let caller = Arc::clone(&caller);
        tokio::spawn(async move {
            gathered.send(&caller).await;
            drop(permit);
        });
    }
}

/// Requests that go together.
struct Gathered {
    kind: Kind,
    requests: Vec<Small>,
    touched: Touched,
}

impl Gathered {
    fn new(kind: Kind, first: Small) -> Self {
        let touched = Touched::by(&first.request);
        Self { kind, requests: vec![first], touched }
    }

    /// Adds a request, or returns one that must not go together with these.
    fn add(&mut self, small: Small) -> Option<Small> {
        if self.kind == Kind::Commits {
            let touched = Touched::by(&small.request);
            if self.touched.interferes(&touched) {
                return Some(small);
            }
            self.touched.extend(touched);
        }
        self.requests.push(small);
        None
    }

    /// Sends all, and hands out the answers.
    async fn send(mut self, caller: &Caller) {
        let Some(deadline) = self.requests.iter().map(|small| small.deadline).max() else { return };
        if let [_] = *self.requests {
            self.requests.remove(0).send(caller).await;
            return;
        }
        let (mut request, mut counts) = (TxnRequest::default(), Vec::new());
        for small in &self.requests {
            let one = small.request.clone();
            counts.push(one.success.len());
            match self.kind {
                Kind::Reads => request.success.extend(one.success),
                Kind::Commits => request.success.push(operation(Request::Txn(one))),
            }
        }
        let answer: Result<TxnResponse, CallError> = caller.call(TXN, request, deadline).await;
        let mut answer = match answer {
            Ok(answer) => answer,
            // It may be due to one of them.
            Err(error) if error.is_of_request() => {
                for small in self.requests {
                    small.send(caller).await;
                }
                return;
            }
            Err(error) => {
                self.requests.into_iter().for_each(|small| drop(small.answer.send(Err(error.clone()))));
                return;
            }
        };
        let mut responses = std::mem::take(&mut answer.responses).into_iter();
        for (small, count) in self.requests.into_iter().zip(counts) {
            let one = match self.kind {
                Kind::Reads => Some(TxnResponse {
                    responses: responses.by_ref().take(count).collect(),
                    ..answer.clone()
                }),
                Kind::Commits => match responses.next().and_then(|response| response.response) {
                    Some(Response::Txn(one)) => Some(TxnResponse { header: answer.header, ..one }),
                    _ => None,
                },
            };
            let _ = small.answer.send(one.ok_or_else(CallError::malformed));
        }
    }
}

/// The keys that transactions change, and those that they have conditions on.
#[derive(Default)]
struct Touched {
    changed: BTreeSet<Vec<u8>>,
    compared: BTreeSet<Vec<u8>>,
    ranges: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Touched {
    fn by(request: &TxnRequest) -> Self {
        let mut touched = Self::default();
        for compare in &request.compare {
            if compare.range_end.is_empty() {
                touched.compared.insert(compare.key.clone());
            } else {
                touched.ranges.push((compare.key.clone(), compare.range_end.clone()));
            }
        }
        for RequestOp { request } in &request.success {
            match request {
                Some(Request::Put(put)) => drop(touched.changed.insert(put.key.clone())),
                Some(Request::Delete(delete)) => drop(touched.changed.insert(delete.key.clone())),
                Some(Request::Range(_) | Request::Txn(_)) | None => {}
            }
        }
        touched
    }

    /// True if one changes what the other one has conditions on, or changes.
    fn interferes(&self, other: &Self) -> bool {
        self.changes_any(other) || other.changes_any(self) || !self.changed.is_disjoint(&other.changed)
    }

    fn changes_any(&self, other: &Self) -> bool {
        let is_in = |(start, end): &(Vec<u8>, Vec<u8>)| {
            start < end && self.changed.range(start.clone()..end.clone()).next().is_some()
        };
        !self.changed.is_disjoint(&other.compared) || other.ranges.iter().any(is_in)
    }

    fn extend(&mut self, other: Self) {
        self.changed.extend(other.changed);
        self.compared.extend(other.compared);
        self.ranges.extend(other.ranges);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::messages::{Compare, PutRequest};

    /// A commit with a condition on a key, or on a range if there is an end, that changes a key.
    fn commit(compared: &str, end: &str, changed: &str) -> Small {
        let (key, range_end) = (compared.into(), end.into());
        let compare = vec![Compare { key, range_end, ..Compare::default() }];
        let put = PutRequest { key: changed.into(), ..PutRequest::default() };
        let request = TxnRequest { compare, success: vec![operation(Request::Put(put))], failure: vec![] };
        Small { request, deadline: now(), answer: oneshot::channel().0 }
    }

    #[test]
    fn commits_of_which_one_changes_what_the_other_one_compares_or_changes_do_not_go_together() {
        let go_together = |one: Small, other: Small| {
            let mut gathered = Gathered::new(Kind::Commits, one);
            gathered.add(other).is_none()
        };
        assert!(go_together(commit("a", "", "a"), commit("b", "", "b")));
        assert!(go_together(commit("a", "", "b"), commit("a", "", "c")), "both only compare");
        assert!(!go_together(commit("a", "", "a"), commit("a", "", "b")));
        assert!(!go_together(commit("a", "", "b"), commit("b", "", "a")), "write skew");
        assert!(!go_together(commit("a", "", "b"), commit("b", "", "c")));
        assert!(!go_together(commit("b", "", "c"), commit("a", "", "b")));
        assert!(!go_together(commit("a", "", "c"), commit("b", "", "c")));
        assert!(!go_together(commit("a", "d", "x"), commit("y", "", "c")), "a key comes into a range");
        assert!(!go_together(commit("y", "", "c"), commit("a", "d", "x")));
        assert!(go_together(commit("a", "d", "x"), commit("y", "", "d")), "a range has no end");
    }
}
