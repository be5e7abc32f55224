//! Counts of lost conflicts by key, in bounded memory.

use super::origin::Origins;
use crate::kernel::abort::Reason;
use crate::kernel::engine::Engine;
use crate::kernel::protocol::Protocol;
use crate::kernel::statistics::show_reasons;
use crate::memory::identity::Origin;
use hotrow_sync::lock;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Number of conflicts lost over one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HotKey {
    /// The object's or table's name.
    pub object: String,
    /// The key within it.
    pub key: String,
    /// Attempts lost over it. An upper bound if more keys had conflicts than the report keeps.
    pub conflicts: u64,
    /// The same by reason, in the order of [`Reason::ALL`].
    pub reasons: [u64; Reason::ALL.len()],
    /// The time of the lost attempts, each with the pause before it. A transaction's first attempt is not timed.
    pub lost_time: Duration,
    /// The transactions on both sides, the most frequent pairs first; empty if the engine does not
    /// [report both sides](crate::Engine::report_both_sides). An upper bound for each if there were more than sixteen pairs.
    pub rivalries: Vec<Rivalry>,
}

/// The conflicts over a key that transactions of one kind have lost to those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rivalry {
    /// The transaction that lost. `None` if it has no name: it was stepped by hand, or there are too many names.
    pub loser: Option<Origin>,
    /// The transaction that had the value, or had changed it. `None` if the protocol does not know: see
    /// [`Reports::rival`](crate::Reports::rival).
    pub winner: Option<Origin>,
    /// Attempts lost.
    pub conflicts: u64,
}

impl fmt::Display for Rivalry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show =
            |side: Option<Origin>| side.map_or_else(|| String::from("unknown"), |side| side.to_string());
        write!(f, "{} lost {} to {}", show(self.loser), self.conflicts, show(self.winner))
    }
}

impl fmt::Display for HotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: {} conflicts", self.object, self.key, self.conflicts)?;
        show_reasons(f, &self.reasons)?;
        for (at, rivalry) in self.rivalries.iter().take(3).enumerate() {
            write!(f, "{} {rivalry}", if at == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}

impl HotKey {
    /// Adds the counts of the same key.
    fn add(&mut self, other: &HotKey) {
        self.conflicts += other.conflicts;
        self.lost_time += other.lost_time;
        for (mine, others) in self.reasons.iter_mut().zip(other.reasons) {
            *mine += others;
        }
        other.rivalries.iter().for_each(|rivalry| self.add_rivalry(*rivalry));
        self.sort_rivalries();
    }

    fn add_rivalry(&mut self, rivalry: Rivalry) {
        let mut mine = self.rivalries.iter_mut();
        match mine.find(|mine| (mine.loser, mine.winner) == (rivalry.loser, rivalry.winner)) {
            Some(mine) => mine.conflicts += rivalry.conflicts,
            None => self.rivalries.push(rivalry),
        }
    }

    fn sort_rivalries(&mut self) {
        self.rivalries.sort_by_key(|rivalry| (u64::MAX - rivalry.conflicts, rivalry.loser, rivalry.winner));
    }
}

/// Number of keys that one worker's report keeps. Beyond that a new key replaces the least frequent one and inherits
/// its count (the space-saving sketch), so that a hot key is never missed.
const KEYS_MAX: usize = if cfg!(test) { 4 } else { 256 };

/// Number of pairs that one key of one worker's report keeps, in the same way.
const PAIRS_MAX: usize = 16;

/// A lost conflict, as it is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loss {
    pub(crate) reason: Reason,
    /// The time lost, where it is known.
    pub(crate) time: Duration,
    /// The numbers of the loser's and of the winner's origin, if both sides are reported.
    pub(crate) sides: Option<(u32, u32)>,
}

/// The counts of one key.
#[derive(Debug)]
struct Counted {
    object: String,
    key: String,
    conflicts: u64,
    reasons: [u64; Reason::ALL.len()],
    lost_time: Duration,
    pairs: Vec<((u32, u32), u64)>,
}

impl Counted {
    fn count(&mut self, loss: Loss) {
        self.conflicts += 1;
        self.reasons[loss.reason as usize] += 1;
        self.lost_time += loss.time;
        let Some(sides) = loss.sides else { return };
        if let Some((_, count)) = self.pairs.iter_mut().find(|(pair, _)| *pair == sides) {
            *count += 1;
        } else if self.pairs.len() < PAIRS_MAX {
            self.pairs.push((sides, 1));
        } else if let Some(least) = self.pairs.iter_mut().min_by_key(|(_, count)| *count) {
            *least = (sides, least.1 + 1);
        }
    }

    fn show(&self, origins: &Origins) -> HotKey {
        let mut shown = HotKey {
            object: self.object.clone(),
            key: self.key.clone(),
            conflicts: self.conflicts,
            reasons: self.reasons,
            lost_time: self.lost_time,
            rivalries: Vec::new(),
        };
        for ((loser, winner), conflicts) in &self.pairs {
            let (loser, winner) = (origins.origin(*loser), origins.origin(*winner));
            shown.add_rivalry(Rivalry { loser, winner, conflicts: *conflicts });
        }
        shown.sort_rivalries();
        shown
    }
}

/// One worker's conflicts by key. Ordered, so that each simulation replaces the same key.
#[derive(Debug, Default)]
pub(crate) struct ConflictTable {
    keys: BTreeMap<(u32, u64), Counted>,
}

impl ConflictTable {
    /// Counts a conflict over a key. False if the key is new: the caller must then describe it, without the table's
    /// lock, and count it with [`count_new`](Self::count_new).
    pub(crate) fn count(&mut self, object: u32, identity: u64, loss: Loss) -> bool {
        let Some(key) = self.keys.get_mut(&(object, identity)) else { return false };
        key.count(loss);
        true
    }

    /// Counts a conflict over a key that is new.
    pub(crate) fn count_new(&mut self, object: u32, identity: u64, loss: Loss, name: String, key: String) {
        let mut inherited = 0;
        if self.keys.len() >= KEYS_MAX {
            let least = self.keys.iter().min_by_key(|(_, key)| key.conflicts).map(|(at, _)| *at);
            let given_way = least.and_then(|least| self.keys.remove(&least));
            inherited = given_way.map_or(0, |key| key.conflicts);
        }
        let new = Counted {
            object: name,
            key,
            conflicts: inherited,
            reasons: [0; Reason::ALL.len()],
            lost_time: Duration::ZERO,
            pairs: Vec::new(),
        };
        self.keys.insert((object, identity), new);
        self.count(object, identity, loss);
    }

    /// Adds the counts to a report over all workers.
    pub(crate) fn add_to(&self, report: &mut BTreeMap<(u32, u64), HotKey>, origins: &Origins) {
        for (at, key) in &self.keys {
            let key = key.show(origins);
            match report.get_mut(at) {
                None => {
                    report.insert(*at, key);
                }
                Some(sum) => sum.add(&key),
            }
        }
    }
}

/// The entries with the most conflicts, the hottest first.
pub(crate) fn hottest(keys: impl Iterator<Item = HotKey>, limit: usize) -> Vec<HotKey> {
    let mut keys = merge_same_words(keys);
    keys.sort_by(|a, b| {
        b.conflicts.cmp(&a.conflicts).then_with(|| (&a.object, &a.key).cmp(&(&b.object, &b.key)))
    });
    keys.truncate(limit);
    keys
}

/// Merges entries with the same text: several leaves may have begun with the same key, one after the other.
fn merge_same_words(keys: impl Iterator<Item = HotKey>) -> Vec<HotKey> {
    let mut merged: BTreeMap<(String, String), HotKey> = BTreeMap::new();
    for key in keys {
        match merged.get_mut(&(key.object.clone(), key.key.clone())) {
            Some(sum) => sum.add(&key),
            None => {
                merged.insert((key.object.clone(), key.key.clone()), key);
            }
        }
    }
    merged.into_values().collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn loss(reason: Reason, sides: Option<(u32, u32)>) -> Loss {
        Loss { reason, time: Duration::from_micros(2), sides }
    }

    #[test]
    fn a_hot_key_is_kept_when_there_are_more_keys_than_places() {
        let mut table = ConflictTable::default();
        for round in 0..100u64 {
            let hot = loss(Reason::ReadChanged, None);
            if !table.count(1, 7, hot) {
                table.count_new(1, 7, hot, "t".into(), "hot".into());
            }
            let (identity, key) = (1_000 + round, format!("cold {round}"));
            let cold = loss(Reason::WriteLocked, None);
            assert!(!table.count(1, identity, cold));
            table.count_new(1, identity, cold, "t".into(), key);
        }
        let mut report = BTreeMap::new();
        table.add_to(&mut report, &Origins::default());
        assert_eq!(report.len(), KEYS_MAX);
        let hot = &report[&(1, 7)];
        assert_eq!(hot.key, "hot");
        assert_eq!(hot.reasons[Reason::ReadChanged as usize], 100);
        assert_eq!(hot.lost_time, Duration::from_micros(200));
        assert!(hot.conflicts >= 100 && hot.rivalries.is_empty());
    }

    #[test]
    fn a_frequent_pair_is_kept_when_there_are_more_pairs_than_places() {
        let (mut table, origins) = (ConflictTable::default(), Origins::default());
        let [buy, audit] = ["buy", "audit"].map(|name| origins.number(Origin::Name(name)));
        table.count_new(1, 7, loss(Reason::ReadLocked, Some((audit, buy))), "t".into(), "hot".into());
        for other in 0..100 {
            table.count(1, 7, loss(Reason::ReadLocked, Some((audit, buy))));
            table.count(1, 7, loss(Reason::ReadLocked, Some((buy, 1_000 + other))));
        }
        let mut report = BTreeMap::new();
        table.add_to(&mut report, &origins);
        table.add_to(&mut report, &origins);
        let hot = report.remove(&(1, 7)).unwrap();
        let first = hot.rivalries[0];
        assert_eq!((first.loser, first.winner), (Some(Origin::Name("audit")), Some(Origin::Name("buy"))));
        assert_eq!(first.conflicts, 202, "two workers, which have lost the same");
        assert!(hot.to_string().ends_with("audit lost 202 to buy, buy lost 200 to unknown"), "{hot}");
    }
}

impl<P: Protocol> Engine<P> {
    /// Sets whether reports of conflicts name both sides: the transaction that lost an attempt, and the one that had or had
    /// changed what it wanted. A transaction's name is its procedure's, or that of [`Worker::named`](crate::Worker::named), or else the place of the call
    /// that ran it. At first they do not.
    ///
    /// The protocol tells the winner's worker ([`Reports::rival`](crate::Reports::rival)), or does not know. If it tells the commit, too, the transaction is
    /// known exactly; otherwise it is the one that the worker runs when the loser looks, which may be one after the true one.
    pub fn report_both_sides(&self, on: bool) {
        self.shared.features.origins.turn(on);
    }

    /// True if reports of conflicts name both sides.
    pub fn reports_both_sides(&self) -> bool {
        self.shared.features.origins.is_on()
    }

    /// The keys with the most lost conflicts, most first, at most `limit`.
    pub fn hot_keys(&self, limit: usize) -> Vec<HotKey> {
        let mut report = BTreeMap::new();
        self.shared.each_place(|place| {
            lock(&place.conflicts).add_to(&mut report, &self.shared.features.origins);
        });
        hottest(report.into_values(), limit)
    }
}
