//! Report on a history: verdicts and anomalies.

use std::collections::HashSet;
use std::fmt;

/// End of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    /// It committed.
    Committed,
    /// It lost a conflict.
    Aborted,
    /// Its body asked for a rollback, or panicked.
    RolledBack,
    /// Its end is not in the history.
    Unfinished,
}

/// The name of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    /// Number of its worker.
    pub worker: u32,
    /// Position among the worker's attempts, from 1.
    pub position: u32,
    /// End of the attempt.
    pub outcome: AttemptEnd,
}

impl fmt::Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction {}.{}", self.worker, self.position)
    }
}

impl Transaction {
    /// Returns the name with its explanation.
    fn introduced(&self) -> String {
        let ending = match (self.position % 10, self.position % 100) {
            (1, hundred) if hundred != 11 => "st",
            (2, hundred) if hundred != 12 => "nd",
            (3, hundred) if hundred != 13 => "rd",
            _ => "th",
        };
        let outcome = match self.outcome {
            AttemptEnd::Committed => "",
            AttemptEnd::Aborted => ", aborted",
            AttemptEnd::RolledBack => ", rolled back",
            AttemptEnd::Unfinished => ", unfinished",
        };
        format!("{self} (worker {}, its {}{ending} attempt{outcome})", self.worker, self.position)
    }
}

/// Property that an anomaly violates. Each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Serializability.
    Serializable,
    /// Strict serializability.
    Strict,
    /// Opacity.
    Opaque,
}

impl Level {
    /// All levels, the weakest first.
    pub const ALL: [Level; 3] = [Level::Serializable, Level::Strict, Level::Opaque];

    /// Returns the adjective for a history that reaches the level.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Serializable => "serializable",
            Level::Strict => "strictly serializable",
            Level::Opaque => "opaque",
        }
    }
}

/// Anomalies, by the names of Adya's thesis and the common names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum AnomalyKind {
    /// G0: transactions replaced each other's versions in a cycle.
    DirtyWrite,
    /// G1a: a transaction read a version that an attempt without effect had installed.
    AbortedRead,
    /// G1b: a transaction read a version that its own writer replaced.
    IntermediateRead,
    /// G1c: a cycle of write-write and write-read dependencies.
    CircularInformationFlow,
    /// G-single over one key: a transaction read it, another replaced it, and the first then wrote on top of that.
    LostUpdate,
    /// G-single over one key: a transaction read it twice, before and after another replaced it.
    UnrepeatableRead,
    /// G-single: any other cycle with exactly one read-write dependency. Read skew, fractured reads.
    ReadSkew,
    /// G-single whose read-write dependency comes from a range read.
    PhantomRead,
    /// G2-item: a cycle with several read-write dependencies, none of which needs a range read.
    WriteSkew,
    /// G2: a cycle with several read-write dependencies, of which at least one comes from a range read.
    Phantom,
    /// A range read missed a key that had always been present.
    LostKey,
    /// Operations of one transaction on one key ran in another order than that of the program.
    OwnOrderReversed,
    /// A transaction read another's version of a key that it had changed itself.
    OwnChangeUnseen,
    /// A transaction read or passed over a version that had been replaced before the transaction began.
    StaleRead,
    /// Any other cycle that needs real time.
    RealTime,
    /// An attempt without effect saw a state that fits no order of the committed ones.
    InconsistentState,
}

impl AnomalyKind {
    /// Returns the name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            AnomalyKind::DirtyWrite => "dirty write (G0)",
            AnomalyKind::AbortedRead => "aborted read (G1a)",
            AnomalyKind::IntermediateRead => "intermediate read (G1b)",
            AnomalyKind::CircularInformationFlow => "circular information flow (G1c)",
            AnomalyKind::LostUpdate => "lost update (G-single)",
            AnomalyKind::UnrepeatableRead => "unrepeatable read (G-single)",
            AnomalyKind::ReadSkew => "read skew (G-single)",
            AnomalyKind::PhantomRead => "phantom (G-single over a range)",
            AnomalyKind::WriteSkew => "write skew (G2-item)",
            AnomalyKind::Phantom => "phantom (G2)",
            AnomalyKind::LostKey => "key lost by a range read",
            AnomalyKind::OwnOrderReversed => "a transaction's own order reversed",
            AnomalyKind::OwnChangeUnseen => "a transaction's own change unseen",
            AnomalyKind::StaleRead => "stale read (not strict)",
            AnomalyKind::RealTime => "order in real time violated (not strict)",
            AnomalyKind::InconsistentState => "inconsistent state seen by an attempt without effect",
        }
    }
}

impl fmt::Display for AnomalyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reason why one transaction comes before another. Keys have the form for people: `accounts[7]`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dependency {
    /// The second replaced a version that the first had written.
    WriteWrite {
        /// The key.
        key: String,
        /// Version of the first.
        replaced: u64,
        /// Version of the second.
        version: u64,
    },
    /// The second read a version that the first had written.
    WriteRead {
        /// The key.
        key: String,
        /// The version.
        version: u64,
    },
    /// The second replaced a version that the first had read.
    ReadWrite {
        /// The key.
        key: String,
        /// Version that was read.
        read: u64,
        /// Version of the second.
        version: u64,
    },
    /// The first wrote the version before changes that commute, and the second made one of these; or the first made
    /// one of these, and the second wrote the version after them. Others of these changes lie between the two.
    WriteCommute {
        /// The key.
        key: String,
        /// Version of the first.
        first: u64,
        /// Version of the second.
        second: u64,
    },
    /// The second read a version that contains a change by the first, because all changes in between commute.
    CommuteRead {
        /// The key.
        key: String,
        /// Version of the first.
        version: u64,
        /// Version that the second read.
        read: u64,
    },
    /// The first read a version without a change by the second. All changes in between commute, so that their own
    /// order does not matter.
    ReadCommute {
        /// The key.
        key: String,
        /// Version that the first read.
        read: u64,
        /// Version of the second.
        version: u64,
    },
    /// A range read of the second missed a key that the first had deleted.
    WriteRange {
        /// The key.
        key: String,
        /// Version that the deletion made.
        version: u64,
    },
    /// A range read of the first missed a key that the second inserted.
    RangeWrite {
        /// The key.
        key: String,
        /// Version that the insertion made.
        version: u64,
    },
    /// The first had ended before the second began.
    Time {
        /// Stamp of the end.
        ended: u64,
        /// Stamp of the beginning.
        began: u64,
    },
    /// The first installed a version without taking effect, and the second read it.
    AbortedRead {
        /// The key.
        key: String,
        /// The version.
        version: u64,
    },
    /// The first replaced a version of its own that the second read.
    IntermediateRead {
        /// The key.
        key: String,
        /// Version that was read.
        version: u64,
        /// Version that replaced it.
        later: u64,
    },
    /// First and second are the same transaction; its range read missed a key that had always been present.
    LostKey {
        /// The key.
        key: String,
    },
    /// First and second are the same transaction; of its operations on a key, a later one ran before an earlier
    /// one.
    OwnOrder {
        /// The key.
        key: String,
        /// Place in the program of the operation that ran first.
        ran: u32,
        /// Place in the program of the operation that ran after it.
        then: u32,
    },
    /// First and second are the same transaction; it read another's version of a key that it had changed itself.
    OwnChangeUnseen {
        /// The key.
        key: String,
        /// Version that was read.
        version: u64,
    },
    /// The graph has an edge without a reason in the events. Should not happen.
    Unexplained,
}

/// One edge of a cycle, or a dependency that is an anomaly by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Transaction that comes first.
    pub first: Transaction,
    /// Transaction that comes second.
    pub second: Transaction,
    /// Reason for the order.
    pub dependency: Dependency,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Step { first, second, dependency } = self;
        match dependency {
            Dependency::WriteWrite { key, replaced, version } => {
                write!(
                    f,
                    "{first} wrote version {replaced} of {key}; {second} replaced it with version {version}"
                )
            }
            Dependency::WriteRead { key, version } => {
                write!(f, "{first} wrote version {version} of {key}; {second} read it")
            }
            Dependency::ReadWrite { key, read, version } => {
                let read = Read(*read);
                write!(f, "{first} read {read} of {key}; {second} replaced it with version {version}")
            }
            Dependency::WriteCommute { key, first: before, second: after } => write!(
                f,
                "{first} wrote version {before} of {key}; {second} wrote version {after}, and only changes that \
                 commute lie between"
            ),
            Dependency::CommuteRead { key, version, read } => write!(
                f,
                "{first} wrote version {version} of {key}; {second} read version {read}, which contains that change"
            ),
            Dependency::ReadCommute { key, read, version } => {
                let read = Read(*read);
                write!(
                    f,
                    "{first} read {read} of {key}; {second} changed it after that with version {version}, and only \
                     changes that commute lie between"
                )
            }
            Dependency::WriteRange { key, version } => {
                write!(
                    f,
                    "{first} deleted {key} as version {version}; {second} did not find it through a range read"
                )
            }
            Dependency::RangeWrite { key, version } => {
                write!(
                    f,
                    "{first} did not find {key} through a range read; {second} inserted it as version {version}"
                )
            }
            Dependency::Time { ended, began } => {
                write!(f, "{first} had ended (stamp {ended}) when {second} began (stamp {began})")
            }
            Dependency::AbortedRead { key, version } => {
                let outcome = match first.outcome {
                    AttemptEnd::Committed => "committed",
                    AttemptEnd::Aborted => "aborted",
                    AttemptEnd::RolledBack => "was rolled back",
                    AttemptEnd::Unfinished => "never ended",
                };
                write!(f, "{second} read version {version} of {key}, and {first}, which wrote it, {outcome}")
            }
            Dependency::IntermediateRead { key, version, later } => write!(
                f,
                "{second} read version {version} of {key}, and {first}, which wrote it, replaced it itself with \
                 version {later}"
            ),
            Dependency::LostKey { key } => {
                write!(f, "{first} did not find {key} through a range read, though it had always been there")
            }
            Dependency::OwnOrder { key, ran, then } => write!(
                f,
                "{first} ran its operation {ran} on {key} before its operation {then} on it, and one of them changes \
                 the key"
            ),
            Dependency::OwnChangeUnseen { key, version } => {
                let read = Read(*version);
                write!(f, "{first} read {read} of {key}, which it had changed itself, and not its own change")
            }
            Dependency::Unexplained => write!(f, "{first} comes before {second}"),
        }
    }
}

/// A version, displayed as part of a sentence.
struct Read(u64);

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("the initial version"),
            version => write!(f, "version {version}"),
        }
    }
}

/// A violation that a correct history does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly {
    /// Name of the anomaly.
    pub kind: AnomalyKind,
    /// Weakest property that it violates.
    pub violates: Level,
    /// The cycle: each step's second transaction is the first of the next step, and the last step's second is the
    /// first step's first. An anomaly that is not a cycle has one step.
    pub steps: Vec<Step>,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.kind)?;
        let mut introduced = HashSet::new();
        for step in &self.steps {
            for transaction in [step.first, step.second] {
                if introduced.insert((transaction.worker, transaction.position)) {
                    let lead = if introduced.len() == 1 { " " } else { ", " };
                    write!(f, "{lead}{}", transaction.introduced())?;
                }
            }
        }
        self.steps.iter().try_for_each(|step| write!(f, "\n  {step}."))
    }
}

/// Counts of a history and its graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// All attempts.
    pub attempts: u64,
    /// Attempts that committed.
    pub committed: u64,
    /// Attempts that lost a conflict.
    pub aborted: u64,
    /// Attempts that were rolled back.
    pub rolled_back: u64,
    /// Attempts whose end is not in the history.
    pub unfinished: u64,
    /// Reads of single keys.
    pub reads: u64,
    /// Writes that were installed.
    pub writes: u64,
    /// Range reads.
    pub range_reads: u64,
    /// Edges of the graph from a writer to the attempt that replaced its version.
    pub write_write_edges: u64,
    /// Edges from a writer to a reader.
    pub write_read_edges: u64,
    /// Edges from a reader to the attempt that replaced the version read.
    pub read_write_edges: u64,
    /// Edges from range reads; many of them stand for more than one dependency.
    pub range_edges: u64,
    /// Edges of the order in real time.
    pub time_edges: u64,
}

/// The verdicts on a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Protocol that made the history.
    pub protocol: String,
    /// True if the protocol claims to be opaque.
    pub claims_opacity: bool,
    /// True if the protocol claims that its serial order agrees with real time.
    pub claims_strictness: bool,
    /// True if the history has all attempts; otherwise the verdicts are about the attempts that it has.
    pub complete: bool,
    /// True if the committed attempts have the effect of some serial order.
    pub serializable: bool,
    /// True if some such order agrees with real time.
    pub strictly_serializable: bool,
    /// True if in some such order the attempts without effect, too, saw a consistent state.
    pub opaque: bool,
    /// Counts of the history and its graph.
    pub counts: Counts,
    /// Anomalies found, by level from the weakest, at most one hundred per level.
    pub anomalies: Vec<Anomaly>,
    /// Number of further anomalies found. More may exist, because the search is limited to some cycles per set of
    /// transactions that reach each other.
    pub not_listed: u64,
}

impl Report {
    /// True if the history reaches a level.
    pub fn is(&self, level: Level) -> bool {
        match level {
            Level::Serializable => self.serializable,
            Level::Strict => self.strictly_serializable,
            Level::Opaque => self.opaque,
        }
    }

    /// Returns the level that the protocol claims: opaque, strict or only serializable.
    pub fn claimed(&self) -> Level {
        match (self.claims_opacity, self.claims_strictness) {
            (true, _) => Level::Opaque,
            (false, true) => Level::Strict,
            (false, false) => Level::Serializable,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.counts;
        writeln!(
            f,
            "{} attempts ({} committed, {} aborted, {} rolled back, {} unfinished) of protocol {}",
            counts.attempts,
            counts.committed,
            counts.aborted,
            counts.rolled_back,
            counts.unfinished,
            self.protocol,
        )?;
        writeln!(f, "{} reads, {} writes, {} range reads", counts.reads, counts.writes, counts.range_reads)?;
        writeln!(
            f,
            "edges: {} write-write, {} write-read, {} read-write, {} of range reads, {} of real time",
            counts.write_write_edges,
            counts.write_read_edges,
            counts.read_write_edges,
            counts.range_edges,
            counts.time_edges,
        )?;
        if !self.complete {
            writeln!(
                f,
                "The history was cut at its bound: attempts that began later are missing, and the verdicts do not cover them."
            )?;
        }
        writeln!(f)?;
        let answer = |holds| if holds { "yes" } else { "NO" };
        writeln!(f, "serializable           {}", answer(self.serializable))?;
        // Almost every protocol claims strictness, so that only a protocol without the claim is mentioned.
        let strict = match (self.claimed() >= Level::Strict, self.serializable, self.strictly_serializable) {
            (false, true, false) => " (and the protocol does not claim to be)",
            _ => "",
        };
        writeln!(f, "strictly serializable  {}{strict}", answer(self.strictly_serializable))?;
        let claim = match (self.claims_opacity, self.opaque) {
            (true, false) => " (and the protocol claims to be)",
            (false, false) => " (and the protocol does not claim to be)",
            _ => "",
        };
        write!(f, "opaque                 {}{claim}", answer(self.opaque))?;
        self.anomalies.iter().try_for_each(|anomaly| write!(f, "\n\n{anomaly}"))?;
        match self.not_listed {
            0 => Ok(()),
            more => write!(f, "\n\n{more} more found"),
        }
    }
}
