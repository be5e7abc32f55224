//! Aborts: the reasons for which an attempt left no effect, and the errors of a transaction that gives up.

use crate::memory::identity::Origin;
use crate::memory::retained::{MemoryLimit, Told};
use crate::memory::thread_mark::note_rollback;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The reason for which an attempt was aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
pub enum Reason {
    /// A value to be read stayed locked by another transaction.
    ReadLocked,
    /// A value read before was changed, or locked, when it was validated.
    ReadChanged,
    /// A value to be written stayed locked by another transaction.
    WriteLocked,
    /// A bucket or leaf changed since it was observed: a phantom.
    StructureChanged,
    /// A predicate no longer held at commit.
    PredicateFailed,
    /// An older or more urgent transaction took the right to a value away.
    Wounded,
    /// A deferred operation had to touch more than it had declared. The next attempt defers nothing.
    Undeclared,
    /// Transactions waited for each other in a cycle, and this was the youngest of them.
    Deadlock,
    /// The deadline passed before the first attempt, while a transaction that had been aborted too often was let
    /// through. Counts of attempts have none of these.
    GateClosed,
    /// A transaction in pieces that must come before has not passed the piece's ranks.
    OutOfOrder,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Reason; 10] = [
        Reason::ReadLocked,
        Reason::ReadChanged,
        Reason::WriteLocked,
        Reason::StructureChanged,
        Reason::PredicateFailed,
        Reason::Wounded,
        Reason::Undeclared,
        Reason::Deadlock,
        Reason::GateClosed,
        Reason::OutOfOrder,
    ];

    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::ReadLocked => "read_locked",
            Reason::ReadChanged => "read_changed",
            Reason::WriteLocked => "write_locked",
            Reason::StructureChanged => "structure_changed",
            Reason::PredicateFailed => "predicate_failed",
            Reason::Wounded => "wounded",
            Reason::Undeclared => "undeclared",
            Reason::Deadlock => "deadlock",
            Reason::GateClosed => "gate_closed",
            Reason::OutOfOrder => "out_of_order",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::ReadLocked => "a value to be read stayed locked",
            Reason::ReadChanged => "a value that was read has changed",
            Reason::WriteLocked => "a value to be written stayed locked",
            Reason::StructureChanged => "a range or an absence that was observed has changed",
            Reason::PredicateFailed => "a predicate no longer held",
            Reason::Wounded => "an older transaction came first",
            Reason::Undeclared => "a deferred operation had to touch more than it had said",
            Reason::Deadlock => "transactions waited for each other in a circle, and this was the youngest",
            Reason::GateClosed => "a transaction that had been aborted too often was let through",
            Reason::OutOfOrder => "another transaction had to do a piece of its own first",
        })
    }
}

/// An error of any type.
pub type BoxedError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// The attempt ends without effect. Pass it up with `?`.
///
/// Either it cannot go on: it has lost a conflict, say. Then the engine knows the details and decides if it tries again; an
/// attempt whose body swallows the abort cannot commit. Or the body ends it with an error of its own, of any type: `?` makes
/// an abort of it, and the transaction ends with [`Error::Rollback`], which holds that error.
///
/// An error of the body's own may be caught behind a [savepoint](crate::Transaction::savepoint) only. If one becomes an abort
/// and the body returns a result all the same, the transaction ends with [`Misuse::CaughtError`], because what was written
/// before the error would stay. So make aborts only to return them: `ok_or_else` instead of `ok_or`.
///
/// (It is not an error of the standard library itself, because then `?` could not convert all others.)
#[must_use = "an attempt that was aborted cannot go on: pass it up with `?`"]
pub struct Abort(Option<Box<Rollback>>);

/// A rollback that the body wants, and its reason.
struct Rollback(Option<BoxedError>);

impl Abort {
    pub(crate) const INTERNAL: Abort = Abort(None);

    /// The abort of an attempt that cannot go on, for transactions that are kept elsewhere than in an engine.
    #[doc(hidden)]
    pub fn internal() -> Self {
        Self::INTERNAL
    }

    /// An abort that the body asks for without a reason: return it as the error to roll back.
    #[cold]
    pub fn rollback() -> Self {
        note_rollback();
        Self(Some(Box::new(Rollback(None))))
    }

    /// An abort that the body asks for, for this reason. It does for texts and boxed errors (`anyhow`'s, too) what `?` does for
    /// other errors: `.map_err(Abort::because)?`.
    #[cold]
    pub fn because(reason: impl Into<BoxedError>) -> Self {
        note_rollback();
        Self(Some(Box::new(Rollback(Some(reason.into())))))
    }

    /// True if the body has asked for it.
    pub fn is_rollback(&self) -> bool {
        self.0.is_some()
    }

    /// The body's reason.
    pub fn reason(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.0.as_deref()?.0.as_deref()
    }

    /// The body's reason, if it is of this type.
    pub fn downcast_ref<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.reason()?.downcast_ref()
    }

    /// Takes the body's reason out.
    ///
    /// # Errors
    ///
    /// The abort itself, if the body has given no reason of this type.
    pub fn downcast<E: std::error::Error + 'static>(self) -> Result<E, Self> {
        match self.0.map(|rollback| rollback.0) {
            Some(Some(reason)) => match reason.downcast() {
                Ok(reason) => Ok(*reason),
                Err(other) => Err(Self(Some(Box::new(Rollback(Some(other)))))),
            },
            Some(None) => Err(Self(Some(Box::new(Rollback(None))))),
            None => Err(Self::INTERNAL),
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Abort {
    #[cold]
    fn from(reason: E) -> Self {
        Self::because(reason)
    }
}

impl From<Abort> for BoxedError {
    fn from(abort: Abort) -> Self {
        let text = abort.to_string();
        match abort.0.and_then(|rollback| rollback.0) {
            Some(reason) => reason,
            None => text.into(),
        }
    }
}

/// Two aborts are equal if they are of the same kind, and their reasons have the same text.
impl PartialEq for Abort {
    fn eq(&self, other: &Self) -> bool {
        let text = |abort: &Self| abort.reason().map(|reason| reason.to_string());
        self.is_rollback() == other.is_rollback() && text(self) == text(other)
    }
}

impl Eq for Abort {}

impl fmt::Debug for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_rollback(), self.reason()) {
            (_, Some(reason)) => f.debug_tuple("Rollback").field(&reason).finish(),
            (true, None) => f.write_str("Rollback"),
            (false, None) => f.write_str("Abort"),
        }
    }
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_rollback(), self.reason()) {
            (_, Some(reason)) => fmt::Display::fmt(reason, f),
            (true, None) => f.write_str("as the body asked"),
            (false, None) => f.write_str("the attempt was aborted"),
        }
    }
}

/// The reason in an [`Error::Rollback`]: an error, or an [`Abort`] that holds one.
pub trait RollbackReason: fmt::Debug + fmt::Display {
    /// The error to which the chain of sources goes on.
    fn error(&self) -> Option<&(dyn std::error::Error + 'static)>;
}

impl<E: std::error::Error + 'static> RollbackReason for E {
    fn error(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self)
    }
}

impl RollbackReason for Abort {
    fn error(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.reason()?)
    }
}

/// The conflict that a transaction's last attempt lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The reason.
    pub reason: Reason,
    /// The object's or table's name; empty if no attempt was made.
    pub object: String,
    /// The key (or index, or range) within the object.
    pub key: String,
    /// Number of attempts made.
    pub attempts: u32,
    /// The time since the first attempt was lost.
    pub lost_time: Duration,
    /// The transaction itself, if the engine [reports both sides](crate::Engine::report_both_sides).
    pub loser: Option<Origin>,
    /// The transaction to which it lost, if the engine reports both sides and the protocol knows.
    pub winner: Option<Origin>,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, object, key, attempts, loser, winner, .. } = self;
        if *attempts == 0 {
            return write!(f, "{reason} all the time, no attempt was made");
        }
        write!(f, "{reason}: {object}[{key}], attempt {attempts}")?;
        if let Some(loser) = loser {
            write!(f, " of {loser}")?;
        }
        if let Some(winner) = winner {
            write!(f, ", lost to {winner}")?;
        }
        Ok(())
    }
}

/// A use that can never work, even if it is retried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misuse {
    /// A transaction was started, or a session used, inside another one on the same thread.
    #[error("a transaction was started inside another one of its thread: pass the outer `tx` on instead")]
    Nested,
    /// An object was used in a transaction of another engine.
    #[error("{object} belongs to another database or engine than the transaction: use one of the same")]
    ForeignObject {
        /// The object's name.
        object: String,
    },
    /// An object was used that has been dropped from its database.
    #[error("{object} has been dropped: make it again, and use what that returns")]
    Dropped {
        /// The object's name.
        object: String,
    },
    /// A history of the engine has been recorded, or is being recorded, already.
    #[error("the history of this engine is recorded already: use a new engine for another recording")]
    AlreadyRecorded,
    /// The protocol admits no more workers.
    #[error(
        "protocol {protocol} admits at most {workers_max} worker{} at a time: use fewer threads, or another protocol",
        if *workers_max == 1 { "" } else { "s" }
    )]
    TooManyWorkers {
        /// The protocol's name.
        protocol: String,
        /// The maximum number of workers that it admits.
        workers_max: u32,
    },
    /// A transaction that was declared read-only was about to write.
    #[error("a transaction declared as read-only was about to write {object}: leave the declaration out")]
    ReadOnly {
        /// The object's name.
        object: String,
    },
    /// An index beyond the end of an array.
    #[error("index {index} is beyond the end of {object}, which has {length} elements")]
    OutOfBounds {
        /// The object's name.
        object: String,
        /// The index asked for.
        index: usize,
        /// The number of elements.
        length: usize,
    },
    /// A deferred value of another attempt was used.
    #[error("a deferred value was used outside the attempt that made it: make it anew in each attempt")]
    ForeignDeferred,
    /// An input of a deferred operation had no value when the operation was to run: it belongs to another attempt, or
    /// its [`Input`](crate::Input) claimed wrongly to be known.
    #[error("a deferred operation has an input without a value: take inputs from the same attempt only")]
    UnknownInput,
    /// The body has made an error with which to end, and has returned a result all the same.
    #[error(
        "the body has returned a result although one of its operations had failed: pass the error up with `?`, or catch it behind a savepoint"
    )]
    CaughtError,
    /// The protocol that was asked for has no variant of this name, or none has it.
    #[error("there is no protocol named {name}; there are: {}", known.join(", "))]
    NoSuchVariant {
        /// The name.
        name: String,
        /// The names of the protocol's variants that stand for themselves. There is one at least.
        known: Vec<&'static str>,
    },
    /// The object offers no such operation.
    #[error("{0}")]
    Unsupported(String),
    /// A misuse of a kind that the datatype's own crate knows, as that of a table is. [`Misuse::downcast_ref`] has it.
    #[error("{0}")]
    Datatype(DatatypeMisuse),
    /// A mark of a session was used that the session does not have: it is another session's, or was given up.
    #[error("the session has no such mark: it is another session's, or was given up by a rollback")]
    UnknownMark,
    /// The body has called [`retry`](crate::Transaction::retry) where there is no other attempt: in a session, on a snapshot, in a
    /// transaction that is stepped by hand, in a later piece of a chopped procedure.
    #[error("a transaction with a single attempt cannot wait for a change: call `retry` in a closure")]
    CannotWait,
    /// The system gave no thread for a session.
    #[error("the system starts no thread for a session: {reason}")]
    NoThread {
        /// The system's reason.
        reason: String,
    },
}

impl Misuse {
    /// A misuse of a kind that a datatype's own crate knows.
    #[cold]
    pub fn of(kind: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Datatype(DatatypeMisuse(Arc::new(kind)))
    }

    /// The misuse that a datatype's own crate knows, if it is of this type.
    pub fn downcast_ref<T: std::error::Error + 'static>(&self) -> Option<&T> {
        match self {
            Self::Datatype(misuse) => misuse.0.downcast_ref(),
            _ => None,
        }
    }
}

/// The content of a [`Misuse::Datatype`].
#[derive(Debug, Clone)]
pub struct DatatypeMisuse(Arc<dyn std::error::Error + Send + Sync>);

impl fmt::Display for DatatypeMisuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Two are equal if they have the same text.
impl PartialEq for DatatypeMisuse {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for DatatypeMisuse {}

/// A transaction that was ended from outside: the session that it belonged to, and the cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancelled {
    /// The session's name; empty if it was not a session's.
    pub session: String,
    /// The cause.
    pub cause: CancelCause,
}

/// The cause for which a transaction was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelCause {
    /// Somebody called [`Canceller::cancel`](crate::Canceller::cancel).
    Requested,
    /// No statement came for as long as the session may idle.
    Idle {
        /// The session's limit.
        idle_max: Duration,
    },
}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session, cause } = self;
        match cause {
            CancelCause::Requested if session.is_empty() => {
                f.write_str("the transaction was cancelled by a call")
            }
            CancelCause::Requested => write!(f, "session {session} was cancelled by a call"),
            CancelCause::Idle { idle_max } => {
                write!(f, "session {session} was idle for longer than its limit of {idle_max:?}")
            }
        }
    }
}

/// The cause why a transaction that waits by [`retry`](crate::Transaction::retry) would wait for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockedForever {
    /// The body has read nothing that can change.
    NothingRead,
    /// The protocol admits one worker, which is the one that waits.
    OnlyWorker,
    /// Every worker of the engine waits, and nobody has a handle by which to make another one. This is looked for when a
    /// transaction begins to wait.
    AllWait,
}

impl fmt::Display for BlockedForever {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BlockedForever::NothingRead => {
                "the body waits for a change, and has read nothing that can change"
            }
            BlockedForever::OnlyWorker => "the only worker that the protocol admits waits for a change",
            BlockedForever::AllWait => "all workers wait for a change, and nobody can make another one",
        })
    }
}

/// The reason for which a transaction did not commit. `E` is the body's own error, passed through unchanged; an [`Abort`]
/// holds one of any type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error<E = Abort> {
    /// The attempts that the retry policy allows were used up, or a session's only one was lost.
    Conflict(Box<Conflict>),
    /// The retry policy's deadline passed; the conflict is the last attempt's.
    Timeout(Box<Conflict>),
    /// The body asked for a rollback with this error.
    Rollback(E),
    /// The transaction can never work.
    Misuse(Misuse),
    /// A deferred operation panicked, or a condition that was checked at the commit, or an earlier statement of the
    /// session. The transaction had no effect.
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// More memory is retained than the engine's limit. Either the transaction could not begin, or it was the oldest of
    /// all and was told to end.
    MemoryLimit(Box<MemoryLimit>),
    /// The transaction of a [`Session`](crate::Session) was ended from outside, or because it idled for too long.
    Cancelled(Cancelled),
    /// The body has waited for a change by [`retry`](crate::Transaction::retry), and its time is up: the policy's deadline, or the
    /// body's own limit.
    RetryTimeout {
        /// The time since the transaction has first waited.
        waited: Duration,
    },
    /// The body waits for a change by [`retry`](crate::Transaction::retry), and none can come.
    BlockedForever(BlockedForever),
    /// The log takes no more, so that the transaction was rolled back; or it has committed, and is perhaps not durable.
    NotDurable(NotDurable),
}

impl<E> Error<E> {
    /// True if the same transaction may succeed if it is run again. One that was told to end because it retained too
    /// much memory would retain as much the next time, and one that was cancelled by a call is not wanted. A body's own error is
    /// its answer: it was checked that it is none to a race that was lost (in a [`Session`](crate::Session), as far as
    /// [`Session::run`](crate::Session::run) says).
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Conflict(_) | Error::Timeout(_) | Error::RetryTimeout { .. } => true,
            Error::MemoryLimit(limit) => !limit.was_told,
            Error::Cancelled(cancelled) => cancelled.cause != CancelCause::Requested,
            Error::Rollback(_)
            | Error::Misuse(_)
            | Error::Panicked { .. }
            | Error::BlockedForever(_)
            | Error::NotDurable(_) => false,
        }
    }

    /// Turns the body's own error into another one.
    pub fn map_rollback<F>(self, rollback: impl FnOnce(E) -> F) -> Error<F> {
        match self {
            Error::Conflict(conflict) => Error::Conflict(conflict),
            Error::Timeout(conflict) => Error::Timeout(conflict),
            Error::Rollback(error) => Error::Rollback(rollback(error)),
            Error::Misuse(misuse) => Error::Misuse(misuse),
            Error::Panicked { message } => Error::Panicked { message },
            Error::MemoryLimit(limit) => Error::MemoryLimit(limit),
            Error::Cancelled(cancelled) => Error::Cancelled(cancelled),
            Error::RetryTimeout { waited } => Error::RetryTimeout { waited },
            Error::BlockedForever(cause) => Error::BlockedForever(cause),
            Error::NotDurable(failure) => Error::NotDurable(failure),
        }
    }
}

impl Error<Infallible> {
    /// The error of a transaction whose body did not end it, whatever the type of the body's own errors.
    pub(crate) fn of_any_body<E>(self) -> Error<E> {
        self.map_rollback(|never| match never {})
    }
}

impl Error {
    /// The error with which the body ended the transaction, if it is of this type.
    pub fn downcast_ref<T: std::error::Error + 'static>(&self) -> Option<&T> {
        match self {
            Error::Rollback(abort) => abort.downcast_ref(),
            _ => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Conflict(conflict) => write!(f, "conflict: {conflict}"),
            Error::Timeout(conflict) => write!(f, "deadline passed: {conflict}"),
            Error::Rollback(error) => write!(f, "rolled back: {error}"),
            Error::Misuse(misuse) => write!(f, "misuse: {misuse}"),
            Error::Panicked { message } => write!(f, "a part of the transaction panicked: {message}"),
            Error::MemoryLimit(limit) => write!(f, "memory limit: {limit}"),
            Error::Cancelled(cancelled) => write!(f, "cancelled: {cancelled}"),
            Error::RetryTimeout { waited } => {
                write!(f, "nothing changed in {waited:?} that the body waited for")
            }
            Error::BlockedForever(cause) => write!(f, "blocked for ever: {cause}"),
            Error::NotDurable(failure) => write!(f, "not durable: {failure}"),
        }
    }
}

/// The error's text has its cause's text in it. So its [source](std::error::Error::source) is that of the cause.
impl<E: RollbackReason> std::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Rollback(reason) => reason.error()?.source(),
            _ => None,
        }
    }
}

impl<E> From<Told> for Error<E> {
    fn from(told: Told) -> Self {
        match told {
            Told::MemoryLimit(limit) => Error::MemoryLimit(limit),
            Told::Cancelled { session } => {
                Error::Cancelled(Cancelled { session, cause: CancelCause::Requested })
            }
        }
    }
}

impl<E> From<Misuse> for Error<E> {
    fn from(misuse: Misuse) -> Self {
        Error::Misuse(misuse)
    }
}

/// The log could not make a transaction durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotDurable {
    /// The log's reason.
    pub reason: String,
    /// True if the transaction has committed: others may have read its writes, and a crash may undo them. False if it had no
    /// effect.
    pub has_committed: bool,
}

impl fmt::Display for NotDurable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, has_committed } = self;
        match has_committed {
            true => write!(f, "committed in memory, but perhaps not on the device: {reason}"),
            false => write!(f, "rolled back, because the log takes no more: {reason}"),
        }
    }
}

impl std::error::Error for NotDurable {}
