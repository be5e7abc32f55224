//! The state that a store's handles and its holds share, and its reads.

use super::adding::KnownCounters;
use super::client::Client;
use super::failing::CallError;
use super::gathering::Gatherer;
use super::messages::{
    KeyValue, RangeRequest, RangeResponse, Request, Response, ResponseHeader, TXN, TxnRequest, TxnResponse,
    operation,
};
use super::options::EtcdOptions;
use crate::store::{At, Freshness, Page, Read, Span, Stamped, StoreError, Version};
use hotrow_sync::Mutex;
use hotrow_sync::clock::Instant;

const RANGE: &str = "/etcdserverpb.KV/Range";

/// The key of the version below which states may have been forgotten.
pub(super) const COMPACTED: &[u8] = b"hotrow-compacted";

/// A store in etcd.
pub(super) struct Inner {
    pub(super) client: Client,
    pub(super) reads: Gatherer,
    pub(super) commits: Gatherer,
    pub(super) options: EtcdOptions,
    pub(super) counters: KnownCounters,
    pub(super) lease: Mutex<Option<Lease>>,
}

/// The lease of a client's holds.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) id: i64,
    /// The number of the next hold.
    pub(super) next: u64,
}

pub(super) fn revision(version: Version) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

pub(super) fn version(revision: i64) -> Version {
    Version::try_from(revision).unwrap_or(0)
}

pub(super) fn header(header: Option<ResponseHeader>) -> Version {
    version(header.map_or(0, |header| header.revision))
}

pub(super) fn stamped(kv: KeyValue) -> Stamped {
    Stamped { version: version(kv.mod_revision), value: kv.value }
}

impl Inner {
    /// Calls `read`, told if the server may answer by itself. One that may, and lacks the state, is asked again.
    pub(super) fn read_at<T>(
        &self,
        at: At,
        read: impl Fn(i64, bool) -> Result<T, CallError>,
    ) -> Result<T, StoreError> {
        let wanted = match at {
            At::Newest => return read(0, false).map_err(|error| error.of_read(0)),
            At::Version(version) => version,
        };
        match read(revision(wanted), true) {
            Err(error) if error.is_future() => read(revision(wanted), false),
            answer => answer,
        }
        .map_err(|error| error.of_read(wanted))
    }

    pub(super) fn range(&self, request: RangeRequest, deadline: Instant) -> Result<RangeResponse, CallError> {
        self.client.call(RANGE, request, deadline)
    }

    pub(super) fn txn(&self, request: TxnRequest, deadline: Instant) -> Result<TxnResponse, CallError> {
        self.client.call(TXN, request, deadline)
    }

    pub(super) fn read_version(
        &self,
        freshness: Freshness,
        deadline: Instant,
    ) -> Result<Version, StoreError> {
        let serializable = freshness == Freshness::Any;
        let request = RangeRequest {
            key: COMPACTED.to_vec(),
            count_only: true,
            serializable,
            ..RangeRequest::default()
        };
        let answer = self.range(request, deadline).map_err(|error| error.of_read(0))?;
        Ok(header(answer.header))
    }

    pub(super) fn get_many(&self, keys: &[Vec<u8>], at: At, deadline: Instant) -> Result<Read, StoreError> {
        if let ([], At::Newest) = (keys, at) {
            return Ok(Read { version: self.read_version(Freshness::Newest, deadline)?, values: Vec::new() });
        }
        let (found, values): (Version, Vec<_>) = self.read_at(at, |revision, serializable| {
            let range = |key: &Vec<u8>| {
                let key = key.clone();
                RangeRequest { key, revision, serializable, ..RangeRequest::default() }
            };
            let success = keys.iter().map(|key| operation(Request::Range(range(key)))).collect();
            let request = TxnRequest { success, ..TxnRequest::default() };
            let bytes = keys.iter().map(Vec::len).sum();
            // The error of a read at a version is its own.
            let answer = match at {
                At::Newest => self.reads.call(&self.client, request, bytes, deadline),
                At::Version(_) => self.txn(request, deadline),
            }?;
            let version = header(answer.header);
            Ok((version, ranges(answer).map(|range| range.kvs.into_iter().next().map(stamped)).collect()))
        })?;
        let version = if let At::Version(version) = at { version } else { found };
        if values.len() != keys.len() {
            return Err(StoreError::Unreachable { reason: "etcd has answered something else".to_owned() });
        }
        Ok(Read { version, values })
    }

    pub(super) fn page(
        &self,
        span: &Span,
        at: At,
        limit: usize,
        deadline: Instant,
    ) -> Result<Page, StoreError> {
        if span.is_empty() {
            let Read { version, .. } = self.get_many(&[], at, deadline)?;
            return Ok(Page { version, rows: Vec::new(), has_more: false });
        }
        let answer = self.read_at(at, |revision, serializable| {
            let (key, range_end) = (span.start.clone(), span.end.clone());
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let request =
                RangeRequest { key, range_end, limit, revision, serializable, ..RangeRequest::default() };
            self.range(request, deadline)
        })?;
        let found = header(answer.header);
        let rows = answer.kvs.into_iter().map(|mut kv| (std::mem::take(&mut kv.key), stamped(kv))).collect();
        let version = if let At::Version(version) = at { version } else { found };
        Ok(Page { version, rows, has_more: answer.more })
    }
}

/// The answers of ranges in a transaction.
pub(super) fn ranges(answer: TxnResponse) -> impl Iterator<Item = RangeResponse> {
    answer.responses.into_iter().map(|operation| match operation.response {
        Some(Response::Range(range)) => range,
        _ => RangeResponse::default(),
    })
}
