//! Facts about a transaction that are known before it begins.

/// A transaction's declaration about itself. It may be empty, but must be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Profile {
    /// It writes nothing; a write fails with [`Misuse::ReadOnly`](crate::Misuse::ReadOnly). A protocol may then read in
    /// a cheaper way (plor §4.1.3).
    pub read_only: bool,
    /// Its isolation from others. One that is less than serializable is for transactions that only read, whether or not
    /// [`read_only`](Self::read_only) says so.
    pub isolation: Isolation,
    /// The approximate number of records that it will touch; 0 if unknown. Some protocols give transactions with fewer
    /// records the right of way over those that began shortly before (plor §6.4); 0 counts as fewest.
    pub records: u32,
    /// When its caller is told that it has committed.
    pub durability: Durability,
}

/// The isolation of a transaction from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// As if transactions ran one after the other.
    #[default]
    Serializable,
    /// A transaction that only reads, and of which each call returns one committed fact: a value, a row, the absence of a
    /// key, the length of a queue. Two calls may see two states, and keys may come and go between them; a scan sees each row
    /// by itself. It never aborts because what it has read has changed.
    ///
    /// Read locks are released at once, and versions not checked at commit (plor §6.1, Stock-Level). Reads of such
    /// transactions are not recorded in histories, because nothing is promised about them together. A row with column groups is
    /// read group by group: each group is a fact of its own.
    ReadCommitted,
    /// A transaction that only reads, on a [snapshot](crate::Engine::snapshot): it sees all commits up to a moment that may lie
    /// a millisecond back, and never aborts.
    Snapshot,
    /// As [`Snapshot`](Self::Snapshot), on one that has everything of which anybody was told before the transaction began: see
    /// [`Engine::snapshot_strict`](crate::Engine::snapshot_strict).
    StrictSnapshot,
}

impl Isolation {
    /// True if the transaction reads on a snapshot.
    #[inline(always)]
    pub fn is_on_snapshot(self) -> bool {
        matches!(self, Self::Snapshot | Self::StrictSnapshot)
    }
}

impl Profile {
    /// True if the transaction writes nothing: it says so, or it declares an isolation that only readers have. A write in it
    /// fails with [`Misuse::ReadOnly`](crate::Misuse::ReadOnly).
    #[inline(always)]
    pub const fn only_reads(&self) -> bool {
        self.read_only || !matches!(self.isolation, Isolation::Serializable)
    }

    /// A transaction that writes nothing.
    pub const READ_ONLY: Profile = Profile { read_only: true, ..Profile::UNKNOWN };
    /// A transaction about which nothing is known.
    pub const UNKNOWN: Profile = Profile {
        read_only: false,
        isolation: Isolation::Serializable,
        records: 0,
        durability: Durability::OfDatabase,
    };
}

/// When a transaction's caller is told that it has committed. What has no log is never durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// As soon as the log says so: when its record is on the device, unless the log itself is only buffered.
    #[default]
    OfDatabase,
    /// At once. A crash may undo it, and then all that has read from it.
    Buffered,
}
