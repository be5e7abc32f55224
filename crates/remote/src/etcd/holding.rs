//! Versions that are held, and compaction.
//!
//! # Protocol
//!
//! etcd compacts when it is told to. A hold is a key under `hotrow-hold/` with the version as its value, and with a lease that the client keeps
//! alive, so that it goes when the client does. [`compact_below`] first raises `hotrow-compacted` to the version below which it wants to compact,
//! then looks for holds, and compacts as far as they allow. A client that holds a version writes its key and reads `hotrow-compacted` in one
//! transaction. If that transaction comes before the look for holds, its key is found. If it comes after, it finds the version that was
//! raised before, and knows that it may be too late.
//!
//! An etcd server with automatic compaction knows of no holds.

use super::inner::{COMPACTED, Inner, Lease, ranges, revision};
use super::messages::{
    CompactionRequest, CompactionResponse, DeleteRangeRequest, LeaseGrantRequest, LeaseGrantResponse,
    LeaseKeepAliveRequest, LeaseKeepAliveResponse, PutRequest, RangeRequest, Request, TXN, TxnRequest,
    TxnResponse, operation,
};
use crate::marker::until;
use crate::store::{At, Commit, Hold, Mutation, Outcome, Span, StoreError, Version};
use hotrow_sync::clock::{Duration, Instant, now};
use hotrow_sync::{Arc, lock};

const COMPACT: &str = "/etcdserverpb.KV/Compact";
const GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
const KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";

const HOLDS: &[u8] = b"hotrow-hold/";

/// The time after which etcd forgets the holds of a client that it does not hear of.
const LEASE_SECONDS: u64 = if cfg!(test) { 3 } else { 30 };

/// The client's lease, and the number of a new hold.
fn lease(inner: &Arc<Inner>, deadline: Instant) -> Result<(i64, u64), StoreError> {
    let known = lock(&inner.lease).as_ref().map(|lease| lease.id);
    if known.is_none() {
        let request = LeaseGrantRequest { ttl: LEASE_SECONDS as i64 };
        let granted: LeaseGrantResponse =
            inner.client.call(GRANT, request, deadline).map_err(|error| error.of_read(0))?;
        let mut lease = lock(&inner.lease);
        // If another thread was faster, nobody keeps this lease alive.
        if lease.is_none() {
            *lease = Some(Lease { id: granted.id, next: 0 });
            drop(lease);
            keep_alive(inner, granted.id);
        }
    }
    match &mut *lock(&inner.lease) {
        Some(lease) => {
            lease.next += 1;
            Ok((lease.id, lease.next))
        }
        None => Err(StoreError::Unreachable { reason: "the lease of holds has expired".to_owned() }),
    }
}

/// Keeps a lease alive as long as the store is used.
fn keep_alive(inner: &Arc<Inner>, id: i64) {
    let weak = Arc::downgrade(inner);
    inner.client.spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(LEASE_SECONDS) / 5).await;
            let Some(inner) = weak.upgrade() else { return };
            let deadline = now() + Duration::from_secs(LEASE_SECONDS) / 5;
            let answer =
                inner.client.caller().exchange(KEEP_ALIVE, LeaseKeepAliveRequest { id }, deadline).await;
            if let Ok(LeaseKeepAliveResponse { ttl: ..=0 }) = answer {
                // It has expired. The next hold gets a new one.
                lock(&inner.lease).take_if(|lease| lease.id == id);
                return;
            }
        }
    });
}

/// Holds a version.
pub(super) fn hold(inner: &Arc<Inner>, at: Version, deadline: Instant) -> Result<Hold, StoreError> {
    let (lease, number) = lease(inner, deadline)?;
    let key = [HOLDS, &lease.to_be_bytes(), &number.to_be_bytes()].concat();
    let put = PutRequest { key: key.clone(), value: at.to_be_bytes().to_vec(), lease };
    let range = RangeRequest { key: COMPACTED.to_vec(), ..RangeRequest::default() };
    let success = vec![operation(Request::Put(put)), operation(Request::Range(range))];
    let request = TxnRequest { success, ..TxnRequest::default() };
    // From here on the key may be there, whatever the answer.
    let weak = Arc::downgrade(inner);
    let hold = Hold::new(at, move || {
        let Some(inner) = weak.upgrade() else { return };
        let deleting = Arc::clone(&inner);
        inner.client.spawn(async move {
            let delete = operation(Request::Delete(DeleteRangeRequest { key }));
            let request = TxnRequest { success: vec![delete], ..TxnRequest::default() };
            // If it fails, the lease's end deletes the key.
            let _: Result<TxnResponse, _> =
                deleting.client.caller().call(TXN, request, now() + Duration::from_secs(5)).await;
        });
    });
    let answer = inner.txn(request, deadline);
    let answer = answer.map_err(|error| {
        // The lease may have expired.
        lock(&inner.lease).take_if(|known| known.id == lease);
        error.of_read(at)
    })?;
    let raised = ranges(answer).nth(1).and_then(|range| range.kvs.into_iter().next());
    let raised = raised.and_then(|kv| kv.value.try_into().ok()).map_or(0, Version::from_be_bytes);
    if raised > at { Err(StoreError::Compacted { version: at }) } else { Ok(hold) }
}

/// Compacts states below a version, as far as no client holds one.
pub(super) fn compact_below(inner: &Inner, below: Version, deadline: Instant) -> Result<Version, StoreError> {
    let raised = until(deadline, || raise(inner, below, deadline))?;
    let held = held(inner, deadline)?;
    let lowest = held.into_iter().fold(raised, Version::min);
    let request = CompactionRequest { revision: revision(lowest) };
    let answer: Result<CompactionResponse, _> = inner.client.call(COMPACT, request, deadline);
    match answer.map_err(|error| error.of_read(lowest)) {
        // Somebody has compacted more before.
        Ok(_) | Err(StoreError::Compacted { .. }) => Ok(lowest),
        Err(error) => Err(error),
    }
}

/// Raises the version below which states may be compacted. Returns the highest one.
fn raise(inner: &Inner, below: Version, deadline: Instant) -> Result<Version, StoreError> {
    let found = inner.get_many(&[COMPACTED.to_vec()], At::Newest, deadline)?;
    let newest = found.version;
    let below = below.min(newest);
    let found = found.values.into_iter().next().flatten();
    let before = found.as_ref().map_or(0, |found| found.version);
    let raised = found.and_then(|found| found.value.try_into().ok()).map_or(0, Version::from_be_bytes);
    if raised >= below {
        return Ok(raised);
    }
    let put = Mutation::Put { key: COMPACTED.to_vec(), value: below.to_be_bytes().to_vec() };
    let commit =
        Commit { keys: vec![(COMPACTED.to_vec(), before)], mutations: vec![put], ..Commit::default() };
    match inner.commit(&commit, deadline) {
        Ok(Outcome::Committed(_)) => Ok(below),
        Ok(Outcome::Conflict(_)) | Err(StoreError::Unknown { .. }) => {
            Err(StoreError::Unreachable { reason: "others compact".to_owned() })
        }
        Err(error) => Err(error),
    }
}

/// All versions that are held.
fn held(inner: &Inner, deadline: Instant) -> Result<Vec<Version>, StoreError> {
    let mut rest = Span::of_prefix(HOLDS);
    let mut held = Vec::new();
    loop {
        let page = until(deadline, || inner.page(&rest, At::Newest, 1000, deadline))?;
        let versions = page.rows.iter().filter_map(|(_, found)| found.value.as_slice().try_into().ok());
        held.extend(versions.map(Version::from_be_bytes));
        match page.rows.last().filter(|_| page.has_more) {
            Some((last, _)) => rest.start = [&**last, &[0]].concat(),
            None => return Ok(held),
        }
    }
}
