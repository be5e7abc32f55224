//! Versions of a history: their writers, and the version order of each key.
//!
//! A key's version order is its chain: each write names the version that it replaced. A chain links effective
//! versions only; it skips versions of attempts without effect (aborted ones, if a protocol has let them install
//! anything).
//!
//! An unfinished attempt counts as effective if another attempt has read one of its versions, or a version that
//! contains its change because all changes in between commute. It was committing then, and opacity allows to
//! complete such an attempt by its commit (Guerraoui and Kapałka 2008).

use crate::Malformed;
use crate::attempts::{Attempts, key_name, walk};
use crate::report::AttemptEnd;
use crate::version_index::VersionIndex;
use hotrow_core::history::{Event, History, WriteKind};
use hotrow_sync::hashing::KeyHashing;
use std::collections::HashMap;

/// No version: the end of a chain, or the state before the history.
pub(crate) const NONE: u32 = u32::MAX;

/// A version that is missing from the history, in [`Version::before`].
const GAP: u32 = u32::MAX - 1;

/// A version. Its number is its rank among all versions, so that numbers compare as versions do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Version {
    pub(crate) writer: u32,
    pub(crate) key: u32,
    /// Effective version that replaced it, or `NONE`.
    pub(crate) next: u32,
    /// Effective version that it replaced, or `NONE`, or `GAP`.
    before: u32,
}

/// All versions.
#[derive(Debug)]
pub(crate) struct Versions {
    pub(crate) index: VersionIndex,
    all: Vec<Version>,
    kinds: Vec<WriteKind>,
    /// First effective version of each key.
    first: Vec<u32>,
    /// Effective versions that replaced an unrecorded one.
    gaps: HashMap<(u32, u64), u32, KeyHashing>,
    /// Per key: true if its chain is not the plain one of a correct store: it differs from the order of the
    /// versions' numbers, or has gaps or versions without effect.
    odd: Vec<bool>,
}

/// A read of a version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Read {
    pub(crate) attempt: u32,
    pub(crate) key: u32,
    pub(crate) version: u64,
    /// True if only a condition was tested.
    pub(crate) is_condition: bool,
}

/// Origin of a version that was read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    /// It is the state before the history, or was not recorded.
    Before,
    /// It was written in the history: its rank and its writer.
    Written(u32, u32),
}

/// Relations of a version that was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) source: Source,
    /// Effective version that replaced it, or `NONE`.
    pub(crate) next: u32,
    /// Writer of that version, or `NONE`.
    pub(crate) replacer: u32,
}

impl Versions {
    /// Finds the versions' writers and order. Completes `attempts.effective`.
    pub(crate) fn read(
        history: &History,
        attempts: &mut Attempts,
        written: Vec<u64>,
    ) -> Result<Self, Malformed> {
        if written.len() >= GAP as usize {
            return Err(Malformed::TooLarge { what: "writes", most: GAP as usize });
        }
        let index = VersionIndex::new(written).map_err(|version| written_twice(history, version))?;
        let blank = Version { writer: NONE, key: NONE, next: NONE, before: NONE };
        let keys = history.keys.len();
        let mut versions = Versions {
            all: vec![blank; index.len()],
            kinds: vec![WriteKind::Update; index.len()],
            index,
            first: vec![NONE; keys],
            gaps: HashMap::default(),
            odd: vec![false; keys],
        };
        let replaced = versions.take_writes(history)?;
        versions.complete_seen_commits(history, attempts);
        versions.link(history, attempts, &replaced)?;
        Ok(versions)
    }

    /// Stores the content of each write. Returns the replaced versions that are not recorded.
    fn take_writes(&mut self, history: &History) -> Result<HashMap<u32, u64, KeyHashing>, Malformed> {
        let mut replaced_gaps = HashMap::default();
        let mut failed = None;
        walk(history, |writer, event| {
            let Event::Write { key, replaced, version, kind } = event else { return };
            let Some(rank) = self.index.rank(version) else { return };
            let before = match self.index.rank(replaced) {
                _ if replaced == 0 => NONE,
                Some(before) => before,
                None if history.complete => {
                    let key = key_name(history, key);
                    failed.get_or_insert(Malformed::Incomplete { key, version: replaced });
                    GAP
                }
                None => GAP,
            };
            if before == GAP {
                replaced_gaps.insert(rank, replaced);
                self.odd[key as usize] = true;
            }
            self.all[rank as usize] = Version { writer, key, next: NONE, before };
            self.kinds[rank as usize] = kind;
        });
        failed.map_or(Ok(replaced_gaps), Err)
    }

    /// Marks unfinished attempts as effective if another attempt has read one of their changes: they were
    /// committing.
    fn complete_seen_commits(&self, history: &History, attempts: &mut Attempts) {
        let unfinished =
            |version: &Version| attempts.outcome[version.writer as usize] == AttemptEnd::Unfinished;
        if !self.all.iter().any(unfinished) {
            return;
        }
        // Per version: true if another attempt has read its change.
        let mut seen = vec![false; self.all.len()];
        walk(history, |reader, event| {
            let Event::Read { version, .. } = event else { return };
            let Some(rank) = self.index.rank(version) else { return };
            let Version { writer, before, .. } = self.all[rank as usize];
            if writer != reader {
                seen[rank as usize] = true;
            } else if before < GAP && self.kind(rank) == WriteKind::Commute {
                seen[before as usize] = true;
            }
        });
        // A change that commutes is on top of the one before, so that a read of the later one sees both.
        for rank in (0..self.all.len()).rev().filter(|rank| self.kinds[*rank] == WriteKind::Commute) {
            let before = self.all[rank].before;
            if before < GAP {
                seen[before as usize] |= seen[rank];
            }
        }
        for (version, _) in self.all.iter().zip(&seen).filter(|(_, seen)| **seen) {
            if attempts.outcome[version.writer as usize] == AttemptEnd::Unfinished {
                attempts.effective[version.writer as usize] = true;
            }
        }
    }

    fn link(
        &mut self,
        history: &History,
        attempts: &Attempts,
        replaced: &HashMap<u32, u64, KeyHashing>,
    ) -> Result<(), Malformed> {
        let mut backwards = false;
        for rank in 0..self.all.len() as u32 {
            let Version { writer, key, mut before, .. } = self.all[rank as usize];
            if !attempts.effective[writer as usize] {
                self.odd[key as usize] = true;
                continue;
            }
            let mut replaced_by_us = rank;
            let mut steps = 0;
            while before < GAP {
                let other = self.all[before as usize];
                if other.key != key {
                    return Err(self.other_key(history, before, key));
                }
                if attempts.effective[other.writer as usize] {
                    break;
                }
                (replaced_by_us, before) = (before, other.before);
                steps += 1;
                if steps > self.all.len() {
                    return Err(self.circle(history, rank));
                }
            }
            self.all[rank as usize].before = before;
            let (place, version) = match before {
                NONE => (&mut self.first[key as usize], 0),
                GAP => {
                    let version = replaced[&replaced_by_us];
                    (self.gaps.entry((key, version)).or_insert(NONE), version)
                }
                _ => {
                    if before > rank {
                        backwards = true;
                        self.odd[key as usize] = true;
                    }
                    (&mut self.all[before as usize].next, self.index.version(before))
                }
            };
            if *place != NONE {
                let (first, second) = (*place, rank);
                return Err(Malformed::ReplacedTwice {
                    key: key_name(history, key),
                    replaced: version,
                    first: self.index.version(first),
                    second: self.index.version(second),
                });
            }
            *place = rank;
        }
        if backwards { self.find_circle(history, attempts) } else { Ok(()) }
    }

    /// Finds versions that no chain from its beginning reaches. Every circle has a step backwards.
    fn find_circle(&self, history: &History, attempts: &Attempts) -> Result<(), Malformed> {
        let mut reached = vec![false; self.all.len()];
        for mut rank in self.first.iter().chain(self.gaps.values()).copied() {
            while rank != NONE {
                reached[rank as usize] = true;
                rank = self.all[rank as usize].next;
            }
        }
        let lost = |rank: &u32| {
            let version = self.all[*rank as usize];
            !reached[*rank as usize] && attempts.effective[version.writer as usize]
        };
        match (0..self.all.len() as u32).find(lost) {
            Some(rank) => Err(self.circle(history, rank)),
            None => Ok(()),
        }
    }

    fn circle(&self, history: &History, rank: u32) -> Malformed {
        let key = key_name(history, self.all[rank as usize].key);
        Malformed::Circle { key, version: self.index.version(rank) }
    }

    fn other_key(&self, history: &History, rank: u32, named: u32) -> Malformed {
        Malformed::OtherKey {
            version: self.index.version(rank),
            named: key_name(history, named),
            written: key_name(history, self.all[rank as usize].key),
        }
    }

    /// Looks up a version that an event names as one of a key.
    pub(crate) fn look_up_one(&self, history: &History, key: u32, version: u64) -> Result<Known, Malformed> {
        let (source, next) = match self.index.rank(version) {
            _ if version == 0 => (Source::Before, self.first[key as usize]),
            Some(rank) => {
                let found = self.all[rank as usize];
                if found.key != key {
                    return Err(self.other_key(history, rank, key));
                }
                (Source::Written(rank, found.writer), found.next)
            }
            None if history.complete => {
                return Err(Malformed::Incomplete { key: key_name(history, key), version });
            }
            None => (Source::Before, self.gaps.get(&(key, version)).copied().unwrap_or(NONE)),
        };
        let replacer = if next == NONE { NONE } else { self.writer(next) };
        Ok(Known { source, next, replacer })
    }

    /// Looks up many reads, step by step, so that the processor fetches many addresses at once: one after the
    /// other, these accesses would take longer than the rest of the check. Where the result is `None`,
    /// [`look_up_one`](Self::look_up_one) gives the explanation.
    pub(crate) fn look_up(&self, reads: &[Read], known: &mut Vec<Option<Known>>) {
        known.clear();
        known.extend(reads.iter().map(|read| {
            let rank = if read.version == 0 { NONE } else { self.index.rank(read.version)? };
            Some(Known { source: Source::Written(rank, NONE), next: NONE, replacer: NONE })
        }));
        for (read, place) in reads.iter().zip(known.iter_mut()) {
            let Some(Known { source: Source::Written(rank, _), .. }) = *place else { continue };
            *place = if rank == NONE {
                Some(Known { source: Source::Before, next: self.first[read.key as usize], replacer: NONE })
            } else {
                let found = self.all[rank as usize];
                let source = Source::Written(rank, found.writer);
                (found.key == read.key).then_some(Known { source, next: found.next, replacer: NONE })
            };
        }
        for known in known.iter_mut().flatten().filter(|known| known.next != NONE) {
            known.replacer = self.writer(known.next);
        }
    }

    pub(crate) fn get(&self, rank: u32) -> Version {
        self.all[rank as usize]
    }

    pub(crate) fn kind(&self, rank: u32) -> WriteKind {
        self.kinds[rank as usize]
    }

    pub(crate) fn writer(&self, rank: u32) -> u32 {
        self.all[rank as usize].writer
    }

    /// Returns the effective version that this one replaced, if it is recorded.
    pub(crate) fn before(&self, rank: u32) -> Option<u32> {
        let before = self.all[rank as usize].before;
        (before < GAP).then_some(before)
    }

    pub(crate) fn first(&self, key: u32) -> u32 {
        self.first[key as usize]
    }

    pub(crate) fn is_odd(&self, key: u32) -> bool {
        self.odd[key as usize]
    }

    /// Iterates over the numbers of all linked versions: those with an effect.
    pub(crate) fn effective<'a>(&'a self, attempts: &'a Attempts) -> impl Iterator<Item = u32> + 'a {
        let effective = |rank: &u32| attempts.effective[self.writer(*rank) as usize];
        (0..self.all.len() as u32).filter(effective)
    }
}

/// Makes the error for a version that occurs twice.
fn written_twice(history: &History, twice: u64) -> Malformed {
    let mut keys = Vec::new();
    walk(history, |_, event| {
        if let Event::Write { key, version, .. } = event
            && version == twice
        {
            keys.push(key);
        }
    });
    let name = |at: usize| keys.get(at).map(|key| key_name(history, *key)).unwrap_or_default();
    Malformed::WrittenTwice { version: twice, first: name(0), second: name(1) }
}
