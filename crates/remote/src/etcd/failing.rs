//! Calls that fail, and what that says of their effect.

use super::connecting::chain;
use crate::store::StoreError;
use std::error::Error;
use std::io;
use tonic::{Code, ConnectError, Status};

/// A failed call.
#[derive(Debug, Clone)]
pub(super) struct CallError {
    kind: Kind,
    reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It was not sent.
    NotSent,
    /// No answer came, or one that says nothing of the effect.
    Lost,
    /// The state that was to be read is forgotten.
    Compacted,
    /// The state that was to be read has not reached the server yet.
    Future,
    /// etcd takes no such request. No effect.
    Refused,
    /// The client is not allowed to call, or the server is none of etcd. No effect.
    Denied,
    /// One side has ended the connection because it does not trust the other one.
    Distrusted,
    /// etcd asks nobody to authenticate. No effect.
    Open,
    /// The client must authenticate again. No effect.
    Token,
    /// etcd has no space left. A change that notices it first takes effect all the same.
    Full,
}

impl CallError {
    /// A call to which the server at an address has answered with an error, or to which the connection has failed.
    pub(super) fn new(address: &str, status: &Status) -> Self {
        Self { kind: Kind::of(status), reason: format!("{address}: {}", text(status)) }
    }

    /// A call that was not answered in time.
    pub(super) fn late(address: &str) -> Self {
        Self { kind: Kind::Lost, reason: format!("{address}: no answer came in time") }
    }

    /// A call that was not made, because there was no time.
    pub(super) fn too_late() -> Self {
        Self { kind: Kind::NotSent, reason: "the deadline has passed".to_owned() }
    }

    /// A call that has panicked.
    pub(super) fn panicked() -> Self {
        Self { kind: Kind::Lost, reason: "a call has panicked".to_owned() }
    }

    /// An answer that is none to the request.
    pub(super) fn malformed() -> Self {
        Self { kind: Kind::Lost, reason: "etcd has answered something else".to_owned() }
    }

    /// A token that cannot be sent.
    pub(super) fn no_token() -> Self {
        Self { kind: Kind::Denied, reason: "etcd has given a token that is no text".to_owned() }
    }

    /// The error of a read of the state `version`, or of any other call without effect.
    pub(super) fn of_read(self, version: u64) -> StoreError {
        let reason = self.reason;
        match self.kind {
            Kind::Compacted => StoreError::Compacted { version },
            Kind::Refused => StoreError::Refused { reason },
            Kind::Denied | Kind::Distrusted | Kind::Full => StoreError::Denied { reason },
            Kind::NotSent | Kind::Lost | Kind::Future | Kind::Open | Kind::Token => {
                StoreError::Unreachable { reason }
            }
        }
    }

    /// The error of a commit.
    pub(super) fn of_commit(self) -> StoreError {
        let reason = self.reason;
        match self.kind {
            Kind::NotSent | Kind::Open | Kind::Token => StoreError::Unreachable { reason },
            Kind::Refused => StoreError::Refused { reason },
            Kind::Denied => StoreError::Denied { reason },
            Kind::Lost | Kind::Distrusted | Kind::Full | Kind::Compacted | Kind::Future => {
                StoreError::Unknown { reason }
            }
        }
    }

    pub(super) fn is_future(&self) -> bool {
        self.kind == Kind::Future
    }

    pub(super) fn is_full(&self) -> bool {
        self.kind == Kind::Full
    }

    /// True if etcd asks nobody to authenticate.
    pub(super) fn is_open(&self) -> bool {
        self.kind == Kind::Open
    }

    /// True if a new token may help.
    pub(super) fn may_want_token(&self) -> bool {
        matches!(self.kind, Kind::Token | Kind::Denied)
    }

    /// The error of a client that cannot authenticate.
    pub(super) fn without_user(self) -> Self {
        match self.kind {
            Kind::Token => Self { kind: Kind::Denied, ..self },
            _ => self,
        }
    }

    /// The error of a call that was to be made behind this one.
    pub(super) fn before_call(self) -> Self {
        match self.kind {
            Kind::Lost => Self { kind: Kind::NotSent, ..self },
            Kind::Distrusted => Self { kind: Kind::Denied, ..self },
            _ => self,
        }
    }

    /// True if etcd does not take the request, which has no effect.
    pub(super) fn is_of_request(&self) -> bool {
        matches!(self.kind, Kind::Refused | Kind::Denied)
    }

    /// True if another server may answer better.
    pub(super) fn is_of_server(&self) -> bool {
        matches!(self.kind, Kind::NotSent | Kind::Lost)
    }
}

impl Kind {
    fn of(status: &Status) -> Self {
        let message = status.message();
        let is = |part: &str| message.contains(part);
        let is_connecting = causes(status).any(|error| error.is::<ConnectError>());
        match (is_connecting, is_distrust(status)) {
            (true, true) => return Self::Denied,
            (true, false) => return Self::NotSent,
            (false, true) => return Self::Distrusted,
            (false, false) => {}
        }
        match status.code() {
            _ if is("has been compacted") => Self::Compacted,
            _ if is("future revision") => Self::Future,
            _ if is("database space exceeded") => Self::Full,
            _ if is("authentication is not enabled") => Self::Open,
            _ if is("invalid auth token") || is("revision of auth store is old") => Self::Token,
            // Authentication was enabled since, or there are no credentials.
            _ if is("user name is empty") => Self::Token,
            Code::PermissionDenied => Self::Denied,
            _ if is("authentication failed") => Self::Denied,
            // The server has no such call.
            Code::Unimplemented => Self::Denied,
            Code::InvalidArgument => Self::Refused,
            // The server has not read it.
            Code::ResourceExhausted if is("received message larger than max") => Self::Refused,
            _ => Self::Lost,
        }
    }
}

fn causes(status: &Status) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(status.source(), |error| (*error).source())
}

/// True if one side does not trust the other one: rustls says so by errors of this kind.
fn is_distrust(status: &Status) -> bool {
    let says = |error: &io::Error| error.kind() == io::ErrorKind::InvalidData;
    causes(status).any(|error| error.downcast_ref().is_some_and(says))
}

fn text(status: &Status) -> String {
    match status.source() {
        None => status.message().to_owned(),
        Some(source) => chain(source),
    }
}
