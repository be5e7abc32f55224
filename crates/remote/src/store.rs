//! The contract of a store.

use hotrow_sync::clock::Instant;
use std::fmt;
use std::ops::RangeInclusive;

/// The number of a state of a store. 0 is the empty state before the first commit, and the version of a key that is absent.
pub type Version = u64;

/// A store of keys and values with versions, which is read at a version and changed under conditions.
///
/// Keys and values are bytes. All functions block, until `deadline` at the latest.
///
/// # States
///
/// A commit makes a new state, with a *version* greater than those of all states before it. The state at a version holds the
/// effects of all commits up to it, in the order of their versions, each whole. The version of a *key* in a state is that of
/// the commit that has put it last, or added to it; a key that is absent, or was deleted, has version 0.
///
/// Commits may make one state together, and have one version, if none changes what another one changes or has conditions on.
///
/// # Promises
///
/// 1. *Newest* reads ([`At::Newest`], [`Freshness::Newest`]) are answered at a version that is not smaller than any that a
///    call returned, on any client, before this call began: neither one that a commit was given nor one that was read at.
/// 2. Reads at a version return that state, whatever was committed since; or [`StoreError::Compacted`].
/// 3. A commit is atomic: all its conditions hold in the state directly before its own, or it has no effect.
/// 4. A commit that was acknowledged stays. It is applied once, between the call and its answer.
/// 5. A commit that failed with [`StoreError::Unknown`] is applied once or never; perhaps *later*, but only if its conditions
///    hold then.
/// 6. After all other errors, and after [`Outcome::Conflict`], the commit has no effect and never will.
///
/// # No promises
///
/// - A condition on a range need not notice that a key of it was deleted.
/// - [`Freshness::Any`] may be answered with any version that was once the newest.
/// - A watch may report a change where there was none.
///
/// The crate's documentation says how strict serializability follows.
pub trait Store: Send + Sync {
    /// The sizes that the store takes.
    fn limits(&self) -> Limits;

    /// The version to read at.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unreachable`].
    fn read_version(&self, freshness: Freshness, deadline: Instant) -> Result<Version, StoreError>;

    /// The values of keys, all in one state. There are as many answers as keys, in their order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unreachable`]; [`StoreError::Compacted`]; [`StoreError::Refused`] if there are more keys, or more bytes of them, than
    /// [`limits`](Self::limits) allow.
    fn get_many(&self, keys: &[Vec<u8>], at: At, deadline: Instant) -> Result<Read, StoreError>;

    /// The first keys of a range, at most `limit` of them, in ascending order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unreachable`]; [`StoreError::Compacted`].
    fn range(&self, span: &Span, at: At, limit: usize, deadline: Instant) -> Result<Page, StoreError>;

    /// Applies mutations if all conditions hold: every key of [`Commit::keys`] has the version given, and no key in one of
    /// [`Commit::spans`] has a version above [`Commit::read_at`]. The [`Marker`] is a condition and a mutation like others.
    ///
    /// An addition needs a value of 8 bytes, an `i64` with the lowest byte first; if the key is absent, has another value, or the
    /// sum is not in the range given, the outcome is a conflict at that key. It depends on nothing else: a store that reads and writes the sum
    /// repeats that by itself.
    ///
    /// No key may be in two mutations.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unknown`] if the outcome is; [`StoreError::Unreachable`] if there is certainly no effect;
    /// [`StoreError::Refused`] if it is larger than [`limits`](Self::limits) allow.
    fn commit(&self, commit: &Commit, deadline: Instant) -> Result<Outcome, StoreError>;

    /// Waits until one of the keys, or of those in the ranges, was changed after `from`, deletions included. Returns the version
    /// at which it was, or a later one; `None` if the deadline passed before.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unreachable`]; [`StoreError::Compacted`] if the changes after `from` are not known any more.
    fn watch(
        &self,
        keys: &[Vec<u8>],
        spans: &[Span],
        from: Version,
        deadline: Instant,
    ) -> Result<Option<Version>, StoreError>;

    /// Holds compaction back: until the result is dropped, reads at the version and at later ones are not
    /// [`StoreError::Compacted`]. A store may end a hold whose client it has not heard of for a while.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unreachable`]; [`StoreError::Compacted`] if it is too late.
    fn hold(&self, at: Version, deadline: Instant) -> Result<Hold, StoreError>;
}

/// How new a version must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Not older than all that was acknowledged before the call.
    Newest,
    /// Any that was the newest once. It may cost less.
    Any,
}

/// The state that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The newest; the answer says its version.
    Newest,
    /// The one with this version.
    Version(Version),
}

/// A value, and the version of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamped {
    /// The key's version.
    pub version: Version,
    /// The value.
    pub value: Vec<u8>,
}

/// The values of some keys in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The state's version.
    pub version: Version,
    /// The values; `None` for a key that is absent.
    pub values: Vec<Option<Stamped>>,
}

/// The first keys of a range in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The state's version.
    pub version: Version,
    /// The keys, in ascending order, and their values.
    pub rows: Vec<(Vec<u8>, Stamped)>,
    /// True if there may be more keys in the range. Then there is one at least here.
    pub has_more: bool,
}

/// A range of keys: `start` and all above it that are below `end`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The lowest key.
    pub start: Vec<u8>,
    /// The key above the highest.
    pub end: Vec<u8>,
}

impl Span {
    /// The range that has one key.
    pub fn of_key(key: &[u8]) -> Self {
        Self { start: key.to_vec(), end: [key, &[0]].concat() }
    }

    /// The range of all keys that begin with these bytes. They must not all be `0xff`.
    pub fn of_prefix(prefix: &[u8]) -> Self {
        let mut end = prefix.to_vec();
        while end.pop_if(|last| *last == u8::MAX).is_some() {}
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        Self { start: prefix.to_vec(), end }
    }

    /// True if the key is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && *key < *self.end
    }

    /// True if there can be no key in it.
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }
}

/// A change of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mutation {
    /// Gives the key a value.
    Put {
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
    },
    /// Deletes the key, which may be absent.
    Delete {
        /// The key.
        key: Vec<u8>,
    },
    /// Adds to the key's value.
    Add {
        /// The key.
        key: Vec<u8>,
        /// The number to add.
        amount: i64,
        /// The range in which the sum must be.
        within: RangeInclusive<i64>,
    },
}

impl Mutation {
    /// The key that is changed.
    pub fn key(&self) -> &[u8] {
        match self {
            Self::Put { key, .. } | Self::Delete { key } | Self::Add { key, .. } => key,
        }
    }

    /// The number of bytes of the key and the value.
    pub fn bytes(&self) -> usize {
        self.key().len()
            + match self {
                Self::Put { value, .. } => value.len(),
                Self::Delete { .. } => 0,
                Self::Add { .. } => 8,
            }
    }
}

/// The key by which a commit whose answer was lost is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The key.
    pub key: Vec<u8>,
    /// The version that it must have.
    pub replaces: Version,
    /// The value that it gets.
    pub value: Vec<u8>,
}

/// Mutations, and the conditions under which they are applied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commit {
    /// The version above which keys of `spans` must not have changed.
    pub read_at: Version,
    /// Keys, and the versions that they must have.
    pub keys: Vec<(Vec<u8>, Version)>,
    /// Ranges in which no key must have changed.
    pub spans: Vec<Span>,
    /// The changes.
    pub mutations: Vec<Mutation>,
    /// The marker.
    pub marker: Option<Marker>,
}

impl Commit {
    /// All conditions on keys, the marker's included.
    pub fn key_conditions(&self) -> impl Iterator<Item = (&[u8], Version)> {
        let marker = self.marker.iter().map(|marker| (&*marker.key, marker.replaces));
        self.keys.iter().map(|(key, version)| (&**key, *version)).chain(marker)
    }

    /// The number of conditions.
    pub fn conditions(&self) -> usize {
        self.keys.len() + self.spans.len() + usize::from(self.marker.is_some())
    }

    /// The number of additions.
    pub fn additions(&self) -> usize {
        self.mutations.iter().filter(|mutation| matches!(mutation, Mutation::Add { .. })).count()
    }

    /// The number of changes, the marker's included.
    pub fn changes(&self) -> usize {
        self.mutations.len() + usize::from(self.marker.is_some())
    }

    /// The number of bytes of all keys and values. An addition is a condition, too.
    pub fn bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(|(key, _)| key.len() + 8).sum();
        let spans: usize = self.spans.iter().map(|span| span.start.len() + span.end.len()).sum();
        let marker = self.marker.iter().map(|marker| 2 * marker.key.len() + marker.value.len() + 8);
        let is_addition = |mutation: &&Mutation| matches!(mutation, Mutation::Add { .. });
        let additions = self.mutations.iter().filter(is_addition).map(|addition| addition.key().len() + 8);
        let mutations = self.mutations.iter().map(Mutation::bytes);
        keys + spans + mutations.chain(additions).chain(marker).sum::<usize>()
    }
}

/// The outcome of a commit that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was applied, and made the state of this version.
    Committed(Version),
    /// A condition did not hold. The key at which it did not, if the store tells.
    Conflict(Option<Vec<u8>>),
}

/// The sizes that a store takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most conditions and additions of a commit, and the most keys that are read together.
    pub conditions_max: usize,
    /// The most changes of a commit.
    pub changes_max: usize,
    /// The most bytes of a commit, as [`Commit::bytes`] counts them, and of keys that are read together.
    pub bytes_max: usize,
}

impl Limits {
    /// Checks keys that are to be read together.
    ///
    /// # Errors
    ///
    /// The limit that they exceed, in words.
    pub fn check_keys(&self, keys: &[Vec<u8>]) -> Result<(), String> {
        match self.first_together(keys) {
            count if count == keys.len() => Ok(()),
            _ => {
                let bytes: usize = keys.iter().map(Vec::len).sum();
                Err(format!(
                    "{} keys of {bytes} bytes are read together, and the store takes {} of {}",
                    keys.len(),
                    self.conditions_max,
                    self.bytes_max
                ))
            }
        }
    }

    /// The number of the first keys that can be read together.
    pub(crate) fn first_together(&self, keys: &[Vec<u8>]) -> usize {
        let mut bytes = 0;
        let fit = keys.iter().take(self.conditions_max).take_while(|key| {
            bytes += key.len();
            bytes <= self.bytes_max
        });
        fit.count()
    }

    /// Checks a commit.
    ///
    /// # Errors
    ///
    /// The limit that it exceeds, in words.
    pub fn check(&self, commit: &Commit) -> Result<(), String> {
        let parts = [
            ("conditions and additions", commit.conditions() + commit.additions(), self.conditions_max),
            ("changes", commit.changes(), self.changes_max),
            ("bytes", commit.bytes(), self.bytes_max),
        ];
        match parts.into_iter().find(|(_, count, max)| count > max) {
            None => Ok(()),
            Some((name, count, max)) => {
                Err(format!("the transaction has {count} {name}, and the store takes {max}"))
            }
        }
    }
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store does not answer, and the call had and will have no effect.
    #[error("the store does not answer: {reason}")]
    Unreachable {
        /// The reason.
        reason: String,
    },
    /// The answer to a commit was lost.
    #[error("the answer to a commit was lost: {reason}")]
    Unknown {
        /// The reason.
        reason: String,
    },
    /// The state that was to be read is not kept any more.
    #[error("version {version} is not kept any more")]
    Compacted {
        /// The version.
        version: Version,
    },
    /// The store does not take the request, and would not the next time.
    #[error("the store refuses the request: {reason}")]
    Refused {
        /// The reason.
        reason: String,
    },
    /// The store does not let the client do this until somebody changes the store or the client's options: the client is not trusted, or does not
    /// trust the store; or the store has no space left.
    #[error("the store denies the request: {reason}")]
    Denied {
        /// The reason.
        reason: String,
    },
}

/// A version from which on states are kept, until this is dropped.
#[must_use = "the version is held until this is dropped"]
pub struct Hold {
    version: Version,
    release: Option<Box<dyn FnOnce() + Send>>,
}

impl Hold {
    /// A hold that ends by this call.
    pub fn new(version: Version, release: impl FnOnce() + Send + 'static) -> Self {
        Self { version, release: Some(Box::new(release)) }
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.version
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release();
        }
    }
}
