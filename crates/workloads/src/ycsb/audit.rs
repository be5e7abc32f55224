//! Checks after a run.
//!
//! 1. Every record exists, and no value is torn: one writer wrote it, from its first byte to its last.
//! 2. No last write is lost. For the hottest records: a record holds the last write of some client that wrote it,
//!    and a record that some client has written is not as it was loaded.
//! 3. No read-modify-write is lost: the counts of changes in the values add up to the committed read-modify-writes.
//!    A blind write resets a value's count, so this check needs a run without blind writes.

use super::client::{Committed, REMEMBERED, writer};
use super::keys::Scramble;
use super::rows::Inspected;
use hotrow_driver::Check;
use std::collections::HashMap;

/// Reads all values, one after the other, and judges them.
#[derive(Debug)]
pub(super) struct Audit<'a> {
    records: u64,
    clients: Vec<&'a Committed>,
    /// Ranks of the hottest keys, by key.
    hot: HashMap<u64, usize>,
    seen: u64,
    changes: u64,
    broken: Option<String>,
    lost: Option<String>,
}

impl<'a> Audit<'a> {
    /// Makes an audit of `records` records that `clients` have written.
    pub(super) fn new(records: u64, clients: Vec<&'a Committed>) -> Self {
        let scramble = Scramble::new(records);
        let hot = (0..records.min(REMEMBERED)).map(|rank| (scramble.key(rank), rank as usize)).collect();
        Self { records, clients, hot, seen: 0, changes: 0, broken: None, lost: None }
    }

    /// Takes a record's value, inspected, or the contradiction found in it.
    pub(super) fn record(&mut self, key: u64, value: Result<Inspected, String>) {
        self.seen += 1;
        match value {
            Err(wrong) => {
                self.broken.get_or_insert_with(|| format!("record {key}: {wrong}"));
            }
            Ok(Inspected { stamp, changes }) => {
                self.changes += changes;
                if let Some(rank) = self.hot.get(&key)
                    && let Err(lost) = self.judge_last_write(*rank, stamp)
                {
                    self.lost.get_or_insert_with(|| format!("record {key}: {lost}"));
                }
            }
        }
    }

    fn judge_last_write(&self, rank: usize, stamp: u64) -> Result<(), String> {
        let last = |client: &Committed| client.last_writes.get(rank).copied().unwrap_or(0);
        let Some((number, sequence)) = writer(stamp) else {
            return match self.clients.iter().position(|client| last(client) != 0) {
                None => Ok(()),
                Some(number) => Err(format!("as loaded, but client {number} has written it")),
            };
        };
        let Some(client) = self.clients.get(number) else {
            return Err(format!("written by client {number}, which does not exist"));
        };
        if last(client) == sequence {
            return Ok(());
        }
        Err(format!(
            "written by transaction {sequence} of client {number}, whose last transaction to write it was {}",
            last(client)
        ))
    }

    /// Returns the verdicts.
    pub(super) fn finish(self) -> Vec<Check> {
        let whole = match self.broken {
            Some(broken) => Err(broken),
            None if self.seen != self.records => {
                Err(format!("{} records of {} are there", self.seen, self.records))
            }
            None => Ok(()),
        };
        let mut checks = vec![
            Check::new("every record is there, its value whole", whole),
            Check::new(
                "the hottest records hold their last writers' last writes",
                self.lost.map_or(Ok(()), Err),
            ),
        ];
        if self.clients.iter().all(|client| client.blind_writes == 0) {
            let committed: u64 = self.clients.iter().map(|client| client.read_modify_writes).sum();
            let found = if self.changes == committed {
                Ok(())
            } else {
                Err(format!("the values were changed {} times, {committed} changes committed", self.changes))
            };
            checks.push(Check::new("changes of all values = committed read-modify-writes", found));
        }
        checks
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::stamp;
    use super::*;

    /// Makes a client that wrote the four records last in the transactions given.
    fn client(last_writes: [u64; 4], read_modify_writes: u64, blind_writes: u64) -> Committed {
        Committed { read_modify_writes, blind_writes, last_writes: Box::new(last_writes) }
    }

    /// Returns the verdicts on values given by rank.
    fn verdicts(clients: &[Committed], values: &[(u64, u64)]) -> Vec<Option<String>> {
        let mut audit = Audit::new(4, clients.iter().collect());
        let scramble = Scramble::new(4);
        for (rank, (stamp, changes)) in (0..).zip(values) {
            audit.record(scramble.key(rank), Ok(Inspected { stamp: *stamp, changes: *changes }));
        }
        audit.finish().into_iter().map(|check| check.detail).collect()
    }

    #[test]
    fn correct_results_pass_all_checks() {
        let clients = [client([3, 0, 9, 0], 3, 0), client([2, 0, 10, 0], 2, 0)];
        let values = [(stamp(0, 3), 2), (0, 0), (stamp(1, 10), 3), (0, 0)];
        assert_eq!(verdicts(&clients, &values), [None, None, None]);
    }

    #[test]
    fn a_lost_write_is_noticed() {
        let clients = [client([3, 0, 0, 0], 0, 2)];
        let overwritten = verdicts(&clients, &[(stamp(0, 2), 0), (0, 0), (0, 0), (0, 0)]);
        assert!(overwritten[1].as_ref().is_some_and(|words| words.contains("was 3")), "{overwritten:?}");
        let vanished = verdicts(&clients, &[(0, 0), (0, 0), (0, 0), (0, 0)]);
        assert!(vanished[1].as_ref().is_some_and(|words| words.contains("as loaded")), "{vanished:?}");
        let rolled_back = verdicts(&clients, &[(stamp(0, 3), 0), (stamp(0, 4), 0), (0, 0), (0, 0)]);
        assert!(rolled_back[1].as_ref().is_some_and(|words| words.contains("was 0")), "{rolled_back:?}");
        assert_eq!(rolled_back.len(), 2, "with blind writes, changes cannot be counted");
    }

    #[test]
    fn a_lost_change_is_noticed() {
        let clients = [client([2, 0, 0, 0], 2, 0), client([1, 0, 0, 0], 1, 0)];
        let verdicts = verdicts(&clients, &[(stamp(0, 2), 2), (0, 0), (0, 0), (0, 0)]);
        assert!(verdicts[2].as_ref().is_some_and(|words| words.contains("3 changes")), "{verdicts:?}");
    }

    #[test]
    fn a_missing_record_and_a_broken_value_are_noticed() {
        let verdicts = verdicts(&[], &[(0, 0); 3]);
        assert_eq!(verdicts[0].as_deref(), Some("3 records of 4 are there"));
        let mut audit = Audit::new(1, Vec::new());
        audit.record(0, Err(String::from("torn")));
        assert_eq!(audit.finish()[0].detail.as_deref(), Some("record 0: torn"));
    }
}
