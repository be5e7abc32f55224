//! Clients: a client draws the transactions of one worker and remembers its committed writes.

use super::keys::{Scramble, Zipfian};
use super::options::YcsbOptions;
use super::procedure::{Action, Operation};
use hotrow::sync::random::Random;

/// Number of the hottest ranks whose last write a client remembers: most conflicts are over these.
pub(crate) const REMEMBERED: u64 = 1_024;

/// Bits of a stamp that hold the number of the client's transaction.
const SEQUENCE_BITS: u32 = 40;

/// Makes the stamp of the values that a client's transaction writes. No two transactions have the same stamp, and
/// none has 0, the stamp of values as they were loaded.
pub(crate) fn stamp(client: usize, sequence: u64) -> u64 {
    ((client as u64 + 1) << SEQUENCE_BITS) | sequence
}

/// Returns the client and its transaction's number; `None` for a value as it was loaded.
pub(crate) fn writer(stamp: u64) -> Option<(usize, u64)> {
    let client = (stamp >> SEQUENCE_BITS).checked_sub(1)?;
    Some((client as usize, stamp & ((1 << SEQUENCE_BITS) - 1)))
}

/// One worker's next transaction, and a summary of its commits.
#[derive(Debug, Clone)]
pub struct YcsbClient {
    random: Random,
    number: usize,
    zipfian: Zipfian,
    scramble: Scramble,
    sequence: u64,
    is_big: bool,
    ranks: Vec<u64>,
    operations: Vec<Operation>,
    pub(super) committed: Committed,
}

/// Summary of a client's committed transactions.
#[derive(Debug, Clone)]
pub(crate) struct Committed {
    /// Number of read-modify-writes.
    pub read_modify_writes: u64,
    /// Number of blind writes.
    pub blind_writes: u64,
    /// Number of the last transaction that wrote the record, by rank; 0 if none did.
    pub last_writes: Box<[u64]>,
}

impl YcsbClient {
    /// Makes the client of a worker.
    pub(crate) fn new(worker: usize, options: &YcsbOptions, seed: u64) -> Self {
        let remembered = options.records.min(REMEMBERED) as usize;
        let most = options.ops.max(options.big_ops) as usize;
        Self {
            random: Random::stream(seed, worker as u64),
            number: worker,
            zipfian: Zipfian::new(options.records, options.theta),
            scramble: Scramble::new(options.records),
            sequence: 0,
            is_big: false,
            ranks: Vec::with_capacity(most),
            operations: Vec::with_capacity(most),
            committed: Committed {
                read_modify_writes: 0,
                blind_writes: 0,
                last_writes: vec![0; remembered].into_boxed_slice(),
            },
        }
    }

    /// Draws the next transaction.
    pub(crate) fn draw(&mut self, options: &YcsbOptions) {
        self.sequence += 1;
        self.is_big = options.big_share > 0.0 && self.random.chance(options.big_share);
        let count = if self.is_big { options.big_ops } else { options.ops };
        self.ranks.clear();
        self.operations.clear();
        for _ in 0..count {
            let rank = self.draw_rank(options.records);
            self.ranks.push(rank);
            let action = if self.random.chance(options.read_ratio) {
                Action::Read
            } else if self.random.chance(options.rmw_share) {
                Action::ReadModifyWrite
            } else {
                Action::BlindWrite
            };
            self.operations.push(Operation { key: self.scramble.key(rank), action });
        }
    }

    /// Draws a rank that is not in the transaction yet.
    ///
    /// A rank that is in it already is drawn again, so that each transaction has as many operations as the options say.
    /// (DBx1000 drops such an operation: its transactions are shorter where few records are hot.) With few records and a high
    /// theta, the likely ranks may all be in it. After some draws, the hottest rank that is not in it is therefore taken.
    fn draw_rank(&mut self, records: u64) -> u64 {
        const DRAWS_MAX: u32 = 100;
        for _ in 0..DRAWS_MAX {
            let rank = self.zipfian.rank(&mut self.random);
            if !self.ranks.contains(&rank) {
                return rank;
            }
        }
        // The options admit no transaction with more operations than records.
        (0..records).find(|rank| !self.ranks.contains(rank)).unwrap_or(0)
    }

    /// Returns the operations of the drawn transaction, in the order in which they were drawn.
    pub(crate) fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// True if the drawn transaction is a big one.
    pub fn is_big(&self) -> bool {
        self.is_big
    }

    /// Returns the stamp of the values that the drawn transaction writes.
    pub(crate) fn stamp(&self) -> u64 {
        stamp(self.number, self.sequence)
    }

    /// Records that the drawn transaction has committed.
    pub(crate) fn commit(&mut self) {
        let Committed { read_modify_writes, blind_writes, last_writes } = &mut self.committed;
        for (rank, Operation { action, .. }) in self.ranks.iter().zip(&self.operations) {
            match action {
                Action::Read => continue,
                Action::BlindWrite => *blind_writes += 1,
                Action::ReadModifyWrite => *read_modify_writes += 1,
            }
            if let Some(last) = last_writes.get_mut(*rank as usize) {
                *last = self.sequence;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::Preset;
    use super::*;

    fn drawn(options: &YcsbOptions, transactions: usize) -> Vec<(bool, Vec<Operation>)> {
        let mut client = YcsbClient::new(3, options, 5);
        let draw = |_| {
            client.draw(options);
            (client.is_big(), client.operations().to_vec())
        };
        (0..transactions).map(draw).collect()
    }

    #[test]
    fn transactions_have_the_sizes_and_the_shares_of_actions_that_were_asked_for() {
        const TRANSACTIONS: usize = 20_000;
        let options =
            YcsbOptions { rmw_share: 0.25, records: 1_000, value_bytes: 10, ..YcsbOptions::of(Preset::A) };
        let drawn = drawn(&options, TRANSACTIONS);
        let big = drawn.iter().filter(|(is_big, _)| *is_big).count();
        assert!(big.abs_diff(TRANSACTIONS / 10) < TRANSACTIONS / 100, "{big} big ones");
        assert!(drawn.iter().all(|(is_big, list)| list.len() == if *is_big { 16 } else { 4 }));
        let actions: Vec<Action> =
            drawn.iter().flat_map(|(_, list)| list.iter().map(|operation| operation.action)).collect();
        for (action, share) in
            [(Action::Read, 0.5), (Action::BlindWrite, 0.375), (Action::ReadModifyWrite, 0.125)]
        {
            let found =
                actions.iter().filter(|drawn| **drawn == action).count() as f64 / actions.len() as f64;
            assert!((found - share).abs() < 0.01, "{action:?}: {found} instead of {share}");
        }
    }

    #[test]
    fn the_records_of_a_transaction_are_distinct_and_in_no_order() {
        for (records, ops) in [(1_000_000, 16), (16, 16), (16, 8)] {
            let options =
                YcsbOptions { theta: 1.4, records, ops, big_share: 0.0, ..YcsbOptions::of(Preset::F) };
            let mut sorted = 0;
            for (_, list) in drawn(&options, 500) {
                let keys: Vec<u64> = list.iter().map(|operation| operation.key).collect();
                let mut in_order = keys.clone();
                in_order.sort_unstable();
                sorted += usize::from(in_order == keys);
                in_order.dedup();
                assert_eq!(in_order.len(), ops as usize);
                assert!(in_order.iter().all(|key| *key < records));
            }
            assert!(sorted < 50);
        }
    }

    #[test]
    fn stamps_name_the_client_and_its_transaction() {
        assert_eq!(writer(stamp(0, 1)), Some((0, 1)));
        assert_eq!(writer(stamp(16_383, (1 << SEQUENCE_BITS) - 1)), Some((16_383, (1 << SEQUENCE_BITS) - 1)));
        assert_eq!(writer(0), None);
    }

    #[test]
    fn a_client_remembers_its_last_write_of_each_hot_record() {
        let options =
            YcsbOptions { records: 4, ops: 4, big_share: 0.0, read_ratio: 0.0, ..YcsbOptions::of(Preset::F) };
        let mut client = YcsbClient::new(0, &options, 1);
        client.draw(&options);
        client.commit();
        client.draw(&options);
        assert_eq!((client.committed.read_modify_writes, client.committed.blind_writes), (4, 0));
        assert_eq!(*client.committed.last_writes, [1; 4]);
        client.commit();
        assert_eq!(*client.committed.last_writes, [2; 4]);
    }
}
