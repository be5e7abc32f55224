//! The microbenchmark of vectors, sto §5.5: tests of the length, pushes, pops and searches.

use super::{equal, ran};
use hotrow::sync::random::Random;
use hotrow::{Database, Protocol, TVector, Worker};
use hotrow_driver::{
    BenchError, Check, Observer, OptionError, OptionInfo, OptionValues, Ran, Workload, WorkloadDefinition,
    WorkloadInfo,
};
use serde::Serialize;

/// The shape of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct VectorOptions {
    /// Operations per transaction, each of a kind chosen at random. The paper has 4.
    pub ops: usize,
    /// Number of elements at first.
    pub size: usize,
    /// True if the vector's operations depend on conditions of the length, false if on the exact length.
    pub predicates: bool,
}

/// A vector of numbers.
pub struct Vector<P: Protocol> {
    vector: TVector<u64, P>,
    options: VectorOptions,
}

#[derive(Debug, Clone, Copy)]
enum Operation {
    IsLongerThan(usize),
    Push(u64),
    /// Removes the last element without looking at it.
    DiscardLast,
    /// Searches for an element from the front.
    Find(u64),
}

/// Elements of the front that searches look for: they are found after a few steps.
const WANTED: u64 = 16;

/// One worker's next transaction, and the change of the length by those committed.
pub struct VectorClient {
    random: Random,
    operations: Vec<Operation>,
    grown: i64,
}

impl WorkloadDefinition for VectorOptions {
    type Loaded<P: Protocol> = Vector<P>;

    const INFO: WorkloadInfo = WorkloadInfo {
        name: "vector",
        summary: "tests of a vector's length, pushes, pops and searches",
        source: "sto §5.5",
        runs_procedures: false,
        is_durable: false,
        options: &[
            OptionInfo {
                name: "ops",
                value: "N",
                default: "4",
                summary: "Operations in a transaction, from 1 to 10000",
            },
            OptionInfo {
                name: "size",
                value: "N",
                default: "1000",
                summary: "Elements at first, from 16 to 10^9",
            },
            OptionInfo {
                name: "predicates",
                value: "yes|no",
                default: "yes",
                summary: "Whether operations depend on conditions of the length, or on the exact length",
            },
        ],
        baselines: &[],
        example: "--predicates no",
    };

    fn parse(values: &OptionValues<'_>) -> Result<Self, OptionError> {
        Ok(Self {
            ops: values.number("ops", 1..=10_000)?,
            size: values.number("size", WANTED as usize..=1_000_000_000)?,
            predicates: values.one_of("predicates", &[("yes", true), ("no", false)])?,
        })
    }

    fn data_bytes_estimate(&self) -> u64 {
        (self.size as u64).saturating_mul(64)
    }

    fn load<P: Protocol>(
        &self,
        database: &Database<P>,
        _threads: usize,
        _seed: u64,
        observer: &dyn Observer,
    ) -> Result<Vector<P>, BenchError> {
        observer.loading(0, 1);
        let vector = TVector::with_elements(database, 0..self.size as u64);
        let vector = if self.predicates { vector } else { vector.exact() };
        observer.loading(1, 1);
        Ok(Vector { vector, options: *self })
    }
}

impl<P: Protocol> Workload<P> for Vector<P> {
    type Client = VectorClient;

    fn kinds(&self) -> &'static [&'static str] {
        &["vector"]
    }

    fn client(&self, worker: usize, _workers: usize, seed: u64) -> VectorClient {
        VectorClient { random: Random::stream(seed, worker as u64), operations: Vec::new(), grown: 0 }
    }

    fn prepare(&self, client: &mut VectorClient) {
        let VectorClient { random, operations, .. } = client;
        operations.clear();
        operations.extend((0..self.options.ops).map(|_| match random.below(4) {
            0 => Operation::IsLongerThan(random.below(self.options.size as u64 / 2) as usize),
            1 => Operation::Push(random.bits()),
            2 => Operation::DiscardLast,
            _ => Operation::Find(random.below(WANTED)),
        }));
    }

    fn run_one(&self, worker: &mut Worker<P>, client: &mut VectorClient) -> Ran {
        let VectorClient { operations, grown, .. } = client;
        let result = worker.transact(|tx| {
            let (mut delta, mut found) = (0, 0);
            for operation in &*operations {
                match *operation {
                    Operation::IsLongerThan(length) => {
                        found += usize::from(self.vector.is_longer_than(tx, length)?);
                    }
                    Operation::Push(element) => {
                        self.vector.push(tx, element)?;
                        delta += 1;
                    }
                    Operation::DiscardLast => delta -= i64::from(self.vector.discard_last(tx)?),
                    Operation::Find(wanted) => {
                        let at = self.vector.position(tx, |element| *element == wanted)?;
                        found += at.unwrap_or_default();
                    }
                }
            }
            std::hint::black_box(found);
            Ok(delta)
        });
        ran(result, |delta| *grown += delta)
    }

    fn checks(&self, worker: &mut Worker<P>, clients: Vec<VectorClient>) -> Vec<Check> {
        let grown: i128 = clients.iter().map(|client| i128::from(client.grown)).sum();
        match worker.transact(|tx| self.vector.len(tx)) {
            Ok(length) => vec![equal(
                "length = elements at first + committed pushes - committed pops",
                length as i128,
                self.options.size as i128 + grown,
            )],
            Err(error) => vec![Check::new("reading the length", Err(error.to_string()))],
        }
    }

    fn payload_bytes(&self, worker: &mut Worker<P>) -> u64 {
        worker.transact(|tx| self.vector.len(tx)).map_or(0, |length| length as u64 * 8)
    }
}
