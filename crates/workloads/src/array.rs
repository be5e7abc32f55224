//! The microbenchmark of sto §5.1: reads and increments of random elements of an array of integers.

mod mutexes;

use hotrow::sync::random::Random;
use hotrow::{Database, Protocol, TArray, Worker};
use hotrow_driver::{
    BaselineRun, BenchError, Check, End, Observer, OptionError, OptionInfo, OptionValues, Ran, RunOutcome,
    Workload, WorkloadDefinition, WorkloadInfo,
};
use mutexes::{ORDERED_MUTEXES, OrderedMutexes};
use serde::Serialize;

/// The size of the array and the shape of its transactions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ArrayOptions {
    /// Number of elements, at least 1. The paper has a million.
    pub size: usize,
    /// Operations per transaction. The paper has 10 and 50.
    pub ops: usize,
    /// Share of operations that increment, from 0 to 1; the others read. The paper has a half.
    pub increment_share: f64,
    /// How the increments are made.
    pub increment: Increment,
}

/// How an element is incremented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Increment {
    /// By an update, which reads the element.
    Update,
    /// By an addition at the commit, which does not.
    AtCommit,
}

/// An array of integers, all zero at first.
pub struct Array<P: Protocol> {
    array: TArray<u64, P>,
    options: ArrayOptions,
}

/// One worker's next transaction, and its count of committed increments.
pub struct ArrayClient {
    random: Random,
    /// Pairs of an element's index and a flag; the flag is true if the operation increments.
    operations: Vec<(usize, bool)>,
    /// The number of those that increment.
    drawn: u64,
    increments: u64,
}

/// Number of values of half a draw.
const HALF: u64 = 1 << 32;

/// Memory in use per element, in bytes: the integer and at most as much for the protocol.
const ELEMENT_BYTES: u64 = 16;

impl WorkloadDefinition for ArrayOptions {
    type Loaded<P: Protocol> = Array<P>;

    const INFO: WorkloadInfo = WorkloadInfo {
        name: "array",
        summary: "reads and increments of random elements of an array of integers",
        source: "sto §5.1",
        runs_procedures: false,
        is_durable: false,
        options: &[
            OptionInfo { name: "size", value: "N", default: "1000000", summary: "Elements, from 1 to 10^12" },
            OptionInfo {
                name: "ops",
                value: "N",
                default: "10",
                summary: "Operations in a transaction, from 1 to 10000",
            },
            OptionInfo {
                name: "increment-share",
                value: "S",
                default: "0.5",
                summary: "The share of operations that increment, from 0 to 1; the others read",
            },
            OptionInfo {
                name: "increment",
                value: "update|at-commit",
                default: "update",
                summary: "How they increment: by an update, or by an addition at the commit, without reading",
            },
        ],
        baselines: &[ORDERED_MUTEXES],
        example: "--size 1000 --increment-share 0.2",
    };
    const MEASURES_LIMIT: bool = true;

    fn parse(values: &OptionValues<'_>) -> Result<Self, OptionError> {
        Ok(Self {
            size: values.number("size", 1..=1_000_000_000_000)?,
            ops: values.number("ops", 1..=10_000)?,
            increment_share: values.number("increment-share", 0.0..=1.0)?,
            increment: values
                .one_of("increment", &[("update", Increment::Update), ("at-commit", Increment::AtCommit)])?,
        })
    }

    fn data_bytes_estimate(&self) -> u64 {
        (self.size as u64).saturating_mul(ELEMENT_BYTES)
    }

    fn load<P: Protocol>(
        &self,
        database: &Database<P>,
        _threads: usize,
        _seed: u64,
        observer: &dyn Observer,
    ) -> Result<Array<P>, BenchError> {
        observer.loading(0, 1);
        let array = TArray::named(database, "array", self.size, |_| 0);
        observer.loading(1, 1);
        Ok(Array { array, options: *self })
    }

    fn run_baseline(&self, name: &str, run: BaselineRun<'_>) -> Option<Result<RunOutcome, BenchError>> {
        (name == ORDERED_MUTEXES.name).then(|| run.run(|| OrderedMutexes::new(*self)))
    }
}

impl ArrayOptions {
    fn client(&self, worker: usize, seed: u64) -> ArrayClient {
        let operations = Vec::with_capacity(self.ops);
        ArrayClient { random: Random::stream(seed, worker as u64), operations, drawn: 0, increments: 0 }
    }

    /// Draws the operations of the client's next transaction.
    fn draw(&self, client: &mut ArrayClient) {
        let Self { size, ops, increment_share, .. } = *self;
        let ArrayClient { random, operations, drawn, .. } = client;
        operations.clear();
        *drawn = 0;
        // One draw for each operation: its upper half chooses the element, its lower half the kind. So drawing costs less
        // than what is measured. An array that is larger than the half can tell takes a draw of its own.
        let increments_below = (increment_share * HALF as f64) as u64;
        operations.extend((0..ops).map(move |_| {
            let bits = random.bits();
            let increments = bits % HALF < increments_below;
            *drawn += u64::from(increments);
            match size as u64 {
                size @ ..=HALF => ((((bits / HALF) * size) / HALF) as usize, increments),
                size => (random.below(size) as usize, increments),
            }
        }));
    }
}

impl ArrayClient {
    /// Counts the transaction that has committed. Its sum of what it has read is discarded; without `black_box` the
    /// compiler could remove the reads.
    fn committed(&mut self, sum: u64) -> Ran {
        std::hint::black_box(sum);
        self.increments += self.drawn;
        Ran { kind: 0, end: End::Committed }
    }
}

/// Checks the sum of all elements.
fn check_sum(sum: u64, clients: &[ArrayClient]) -> Check {
    let committed: u64 = clients.iter().map(|client| client.increments).sum();
    let found = if sum == committed {
        Ok(())
    } else {
        Err(format!("the elements' sum is {sum}, the committed increments are {committed}"))
    };
    Check::new("sum of elements = committed increments", found)
}

/// The types of transactions.
const KINDS: &[&str] = &["array"];

impl<P: Protocol> Workload<P> for Array<P> {
    type Client = ArrayClient;

    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn client(&self, worker: usize, _workers: usize, seed: u64) -> ArrayClient {
        self.options.client(worker, seed)
    }

    fn prepare(&self, client: &mut ArrayClient) {
        self.options.draw(client);
    }

    fn run_one(&self, worker: &mut Worker<P>, client: &mut ArrayClient) -> Ran {
        let operations = &client.operations;
        let at_commit = self.options.increment == Increment::AtCommit;
        let ran = worker.transact(|tx| {
            let mut sum: u64 = 0;
            for (element, increments) in operations {
                if at_commit && *increments {
                    self.array.add(tx, *element, 1)?;
                } else if tx.defers() {
                    if *increments {
                        self.array.defer_update(tx, *element, (), |value, ()| *value += 1)?;
                    } else {
                        self.array.defer_read(tx, *element, |value| std::hint::black_box(*value))?;
                    }
                } else if *increments {
                    self.array.update(tx, *element, |value| *value += 1)?;
                } else {
                    sum = sum.wrapping_add(self.array.get(tx, *element)?);
                }
            }
            Ok(sum)
        });
        match ran {
            Ok(sum) => client.committed(sum),
            Err(error) => Ran { kind: 0, end: End::Failed(error.to_string()) },
        }
    }

    fn checks(&self, worker: &mut Worker<P>, clients: Vec<ArrayClient>) -> Vec<Check> {
        const BATCH: usize = 1_024;
        let mut sum: u64 = 0;
        for begin in (0..self.array.len()).step_by(BATCH) {
            let end = (begin + BATCH).min(self.array.len());
            let batch = worker.transact(|tx| {
                (begin..end).try_fold(0u64, |sum, element| Ok(sum.wrapping_add(self.array.get(tx, element)?)))
            });
            match batch {
                Ok(batch) => sum = sum.wrapping_add(batch),
                Err(error) => return vec![Check::new("reading all elements", Err(error.to_string()))],
            }
        }
        vec![check_sum(sum, &clients)]
    }

    fn payload_bytes(&self, _worker: &mut Worker<P>) -> u64 {
        (self.array.len() * size_of::<u64>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_are_read_and_reported() {
        let array =
            ArrayOptions::from_given(&[("size", "7"), ("ops", "2"), ("increment-share", "0.25")]).unwrap();
        assert_eq!(
            json!(array),
            json!({ "size": 7, "ops": 2, "increment_share": 0.25, "increment": "update" })
        );
    }

    #[test]
    fn more_elements_are_expected_to_take_more_memory() {
        assert!(
            ArrayOptions::from_given(&[("size", "1000000000000")]).unwrap().data_bytes_estimate()
                >= 16_000_000_000_000
        );
    }
}
