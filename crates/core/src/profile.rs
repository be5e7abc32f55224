//! What is known of a transaction before it begins.

/// What a transaction says of itself beforehand. Nothing need be said; what is said must be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Profile {
    /// It writes nothing; an attempt to is [`Misuse::ReadOnly`](crate::Misuse::ReadOnly). A protocol may then read
    /// in a cheaper way (plor §4.1.3).
    pub read_only: bool,
    /// How far it must be kept apart from others.
    pub isolation: Isolation,
    /// How many records it will touch, about; 0 if that is not known. Some protocols give transactions with fewer
    /// records the right of way over those that began shortly before (plor §6.4); 0 counts as fewest.
    pub records: u32,
}

/// How far a transaction is kept apart from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// As if transactions ran one after the other.
    #[default]
    Serializable,
    /// Each read sees something that was committed, and that is all: two reads may see two states, and keys may
    /// come and go between them. What is read in order to change it is still protected until the end.
    ///
    /// Locks for reading are released at once, versions not checked at commit (plor §6.1, Stock-Level). Reads of
    /// such transactions are not recorded in histories: nothing is claimed of them.
    ReadCommitted,
}

impl Profile {
    /// A transaction that writes nothing.
    pub const READ_ONLY: Profile = Profile { read_only: true, ..Profile::UNKNOWN };
    /// A transaction of which nothing is known.
    pub const UNKNOWN: Profile = Profile { read_only: false, isolation: Isolation::Serializable, records: 0 };
}
