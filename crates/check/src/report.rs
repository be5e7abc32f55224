//! What is said of a history.

use std::collections::HashSet;
use std::fmt;

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It committed.
    Committed,
    /// It lost a conflict.
    Aborted,
    /// Its body wanted it undone, or panicked.
    RolledBack,
    /// Its end is not in the history.
    Unfinished,
}

/// The name of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    /// The number of its worker.
    pub worker: u32,
    /// Which of the worker's attempts it is, counted from 1.
    pub position: u32,
    /// How it ended.
    pub outcome: Outcome,
}

impl fmt::Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction {}.{}", self.worker, self.position)
    }
}

impl Transaction {
    /// The name with its explanation.
    fn introduced(&self) -> String {
        let ending = match (self.position % 10, self.position % 100) {
            (1, hundred) if hundred != 11 => "st",
            (2, hundred) if hundred != 12 => "nd",
            (3, hundred) if hundred != 13 => "rd",
            _ => "th",
        };
        let outcome = match self.outcome {
            Outcome::Committed => "",
            Outcome::Aborted => ", aborted",
            Outcome::RolledBack => ", rolled back",
            Outcome::Unfinished => ", unfinished",
        };
        format!("{self} (worker {}, its {}{ending} attempt{outcome})", self.worker, self.position)
    }
}

/// What an anomaly rules out. Each level includes those before it.
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

    /// What a history is that reaches the level.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Serializable => "serializable",
            Level::Strict => "strictly serializable",
            Level::Opaque => "opaque",
        }
    }
}

/// The anomalies, by the names of Adya's thesis and the common ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum AnomalyKind {
    /// G0: transactions replaced each other's versions in a cycle.
    DirtyWrite,
    /// G1a: a version was read that an attempt without effect had installed.
    AbortedRead,
    /// G1b: a version was read that its own writer replaced.
    IntermediateRead,
    /// G1c: a cycle of write-write and write-read dependencies.
    CircularInformationFlow,
    /// G-single over one key: it was read, replaced by another, and then written on top of that.
    LostUpdate,
    /// G-single over one key: it was read twice, before and after another replaced it.
    UnrepeatableRead,
    /// G-single: any other cycle with exactly one read-write dependency. Read skew, fractured reads.
    ReadSkew,
    /// G-single whose read-write dependency comes from a range read.
    PhantomRead,
    /// G2-item: a cycle with several read-write dependencies, none of which needs a range read.
    WriteSkew,
    /// G2: a cycle with several read-write dependencies, of which at least one comes from a range read.
    Phantom,
    /// A range read did not find a key that had always been there.
    LostKey,
    /// Operations of one transaction on one key ran in another order than that of its program.
    OwnOrderReversed,
    /// A transaction read what others had written of a key that it had changed itself.
    OwnChangeUnseen,
    /// A version was read or passed over by a transaction that began after it had been replaced.
    StaleRead,
    /// Any other cycle that needs the order in real time.
    RealTime,
    /// An attempt without effect saw what fits no order of the committed ones.
    InconsistentState,
}

impl AnomalyKind {
    /// The name used in reports.
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

/// Why one transaction comes before another. Keys are given for people: `accounts[7]`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dependency {
    /// The second replaced what the first had written.
    WriteWrite {
        /// The key.
        key: String,
        /// The first one's version.
        replaced: u64,
        /// The second one's version.
        version: u64,
    },
    /// The second read what the first had written.
    WriteRead {
        /// The key.
        key: String,
        /// The version.
        version: u64,
    },
    /// The second replaced what the first had read.
    ReadWrite {
        /// The key.
        key: String,
        /// The version that was read.
        read: u64,
        /// The second one's version.
        version: u64,
    },
    /// The second did not find a key in a range read that the first had deleted.
    WriteRange {
        /// The key.
        key: String,
        /// The version that the deletion made.
        version: u64,
    },
    /// The first did not find a key in a range read that the second inserted.
    RangeWrite {
        /// The key.
        key: String,
        /// The version that the insertion made.
        version: u64,
    },
    /// The first had ended before the second began.
    Time {
        /// The stamp of the end.
        ended: u64,
        /// The stamp of the beginning.
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
        /// The version that was read.
        version: u64,
        /// The version that replaced it.
        later: u64,
    },
    /// Both are the same, whose range read did not find a key that had always been there.
    LostKey {
        /// The key.
        key: String,
    },
    /// Both are the same, of whose operations on a key a later one ran before an earlier one.
    OwnOrder {
        /// The key.
        key: String,
        /// The place in the program of the operation that ran first.
        ran: u32,
        /// The place of the one that ran after it.
        then: u32,
    },
    /// Both are the same, which read another's version of a key though it had changed the key.
    OwnChangeUnseen {
        /// The key.
        key: String,
        /// The version that was read.
        version: u64,
    },
    /// The graph has an edge whose reason was not found again. Should not happen.
    Unexplained,
}

/// One edge of a cycle, or a dependency that is an anomaly by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The transaction that comes first.
    pub first: Transaction,
    /// The transaction that comes second.
    pub second: Transaction,
    /// Why.
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
                    Outcome::Committed => "committed",
                    Outcome::Aborted => "aborted",
                    Outcome::RolledBack => "was rolled back",
                    Outcome::Unfinished => "never ended",
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

/// A version in a sentence.
struct Read(u64);

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("the initial version"),
            version => write!(f, "version {version}"),
        }
    }
}

/// Something that a correct history does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly {
    /// Its name.
    pub kind: AnomalyKind,
    /// The weakest property that it rules out.
    pub violates: Level,
    /// The cycle: each step's second transaction is the next one's first, and the last one's second is the
    /// first's first. One step for those anomalies that are no cycles.
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

/// How much there was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Attempts.
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
    /// Edges of the graph from a writer to whoever replaced its version.
    pub write_write_edges: u64,
    /// Edges from a writer to a reader.
    pub write_read_edges: u64,
    /// Edges from a reader to whoever replaced what it had read.
    pub read_write_edges: u64,
    /// Edges that come of range reads, many of them standing for more than one dependency.
    pub range_edges: u64,
    /// Edges in real time.
    pub time_edges: u64,
}

/// The verdicts on a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The protocol that made the history.
    pub protocol: String,
    /// Whether the protocol claims to be opaque.
    pub claims_opacity: bool,
    /// Whether the protocol claims that its serial order agrees with real time.
    pub claims_strictness: bool,
    /// Whether the history has all attempts; otherwise the verdicts are about those that it has.
    pub complete: bool,
    /// Whether the committed attempts have the effect of some serial order.
    pub serializable: bool,
    /// Whether that order can be one that agrees with real time.
    pub strictly_serializable: bool,
    /// Whether there is such an order in which attempts without effect, too, saw what was there.
    pub opaque: bool,
    /// How much there was.
    pub counts: Counts,
    /// What was found: the weakest property's violations first, and at most one hundred of each level's.
    pub anomalies: Vec<Anomaly>,
    /// How many more were found. There may be still more: not every cycle is looked for, only some in each
    /// set of transactions that reach each other.
    pub not_listed: u64,
}

impl Report {
    /// Whether the history reaches a level.
    pub fn is(&self, level: Level) -> bool {
        match level {
            Level::Serializable => self.serializable,
            Level::Strict => self.strictly_serializable,
            Level::Opaque => self.opaque,
        }
    }

    /// The level that the protocol claims: strict, unless it claims opacity, or not even that.
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
                "The history was cut at its bound: what began later is not in it, and the verdicts do not speak of it."
            )?;
        }
        writeln!(f)?;
        let answer = |holds| if holds { "yes" } else { "NO" };
        writeln!(f, "serializable           {}", answer(self.serializable))?;
        // What is claimed as a rule needs no word unless it is not claimed.
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
