//! The microbenchmark of priority queues, sto §5.5: most transactions push one number, the others pop the top three.

use super::heap::Heap;
use super::{equal, ran};
use hotrow::sync::random::Random;
use hotrow::{Abort, Database, Protocol, TPriorityQueue, Transaction, Worker};
use hotrow_driver::{
    BenchError, Check, Observer, OptionError, OptionInfo, OptionValues, Ran, Workload, WorkloadDefinition,
    WorkloadInfo,
};
use serde::Serialize;

/// The implementation of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// The datatype made for it.
    PriorityQueue,
    /// A binary heap over a transactional vector.
    Heap,
}

/// The size of the queue and the mix of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PriorityQueueOptions {
    /// Number of elements at first.
    pub size: usize,
    /// Share of transactions that push a number, from 0 to 1; the others pop. The paper has three quarters.
    pub push_share: f64,
    /// Numbers that a transaction pops. The paper has 3.
    pub pops: usize,
    /// The implementation.
    pub queue: Queue,
}

/// A priority queue of numbers.
pub struct PriorityQueue<P: Protocol> {
    form: Form<P>,
    /// The sum of the elements at first.
    sum: i128,
    options: PriorityQueueOptions,
}

enum Form<P: Protocol> {
    PriorityQueue(TPriorityQueue<u64, P>),
    Heap(Heap<P>),
}

/// One worker's next transaction, and what those committed have changed.
pub struct PriorityQueueClient {
    random: Random,
    /// The number to be pushed; `None` to pop.
    pushes: Option<u64>,
    grown: i128,
    sum: i128,
}

/// Numbers are below this.
const BOUND: u64 = 1 << 32;

impl WorkloadDefinition for PriorityQueueOptions {
    type Loaded<P: Protocol> = PriorityQueue<P>;

    const INFO: WorkloadInfo = WorkloadInfo {
        name: "priority-queue",
        summary: "pushes to a priority queue, and pops of its top three",
        source: "sto §5.5",
        runs_procedures: false,
        is_durable: false,
        options: &[
            OptionInfo {
                name: "size",
                value: "N",
                default: "10000",
                summary: "Elements at first, from 0 to 10^9",
            },
            OptionInfo {
                name: "push-share",
                value: "S",
                default: "0.75",
                summary: "The share of transactions that push one number, from 0 to 1; the others pop",
            },
            OptionInfo {
                name: "pops",
                value: "N",
                default: "3",
                summary: "Numbers that a transaction pops, from 1 to 10000",
            },
            OptionInfo {
                name: "queue",
                value: "Q",
                default: "priority-queue",
                summary: "priority-queue, or heap: a binary heap over a transactional vector",
            },
        ],
        baselines: &[],
        example: "--queue heap",
    };

    fn parse(values: &OptionValues<'_>) -> Result<Self, OptionError> {
        Ok(Self {
            size: values.number("size", 0..=1_000_000_000)?,
            push_share: values.number("push-share", 0.0..=1.0)?,
            pops: values.number("pops", 1..=10_000)?,
            queue: values
                .one_of("queue", &[("priority-queue", Queue::PriorityQueue), ("heap", Queue::Heap)])?,
        })
    }

    fn data_bytes_estimate(&self) -> u64 {
        (self.size as u64).saturating_mul(64)
    }

    fn load<P: Protocol>(
        &self,
        database: &Database<P>,
        _threads: usize,
        seed: u64,
        observer: &dyn Observer,
    ) -> Result<PriorityQueue<P>, BenchError> {
        observer.loading(0, 1);
        let mut random = Random::seeded(seed);
        let elements: Vec<_> = (0..self.size).map(|_| random.below(BOUND)).collect();
        let sum = elements.iter().map(|element| i128::from(*element)).sum();
        let form = match self.queue {
            Queue::PriorityQueue => Form::PriorityQueue(TPriorityQueue::with_elements(database, elements)),
            Queue::Heap => Form::Heap(Heap::new(database, elements.into_iter())),
        };
        observer.loading(1, 1);
        Ok(PriorityQueue { form, sum, options: *self })
    }
}

impl<P: Protocol> Form<P> {
    fn push(&self, tx: &mut Transaction<'_, P>, element: u64) -> Result<(), Abort> {
        match self {
            Self::PriorityQueue(queue) => queue.push(tx, element),
            Self::Heap(heap) => heap.push(tx, element),
        }
    }

    fn pop(&self, tx: &mut Transaction<'_, P>) -> Result<Option<u64>, Abort> {
        match self {
            Self::PriorityQueue(queue) => queue.pop(tx),
            Self::Heap(heap) => heap.pop(tx),
        }
    }

    fn len(&self, tx: &mut Transaction<'_, P>) -> Result<usize, Abort> {
        match self {
            Self::PriorityQueue(queue) => queue.len(tx),
            Self::Heap(heap) => heap.len(tx),
        }
    }
}

impl<P: Protocol> Workload<P> for PriorityQueue<P> {
    type Client = PriorityQueueClient;

    fn kinds(&self) -> &'static [&'static str] {
        &["priority_queue"]
    }

    fn client(&self, worker: usize, _workers: usize, seed: u64) -> PriorityQueueClient {
        // Not the stream of the elements at first.
        let random = Random::stream(seed, worker as u64 + 1);
        PriorityQueueClient { random, pushes: None, grown: 0, sum: 0 }
    }

    fn prepare(&self, client: &mut PriorityQueueClient) {
        let pushes = client.random.chance(self.options.push_share);
        client.pushes = pushes.then(|| client.random.below(BOUND));
    }

    fn run_one(&self, worker: &mut Worker<P>, client: &mut PriorityQueueClient) -> Ran {
        let PriorityQueueClient { pushes, grown, sum, .. } = client;
        let result = worker.transact(|tx| {
            if let Some(element) = *pushes {
                self.form.push(tx, element)?;
                return Ok((1, i128::from(element)));
            }
            let mut popped = (0, 0);
            for _ in 0..self.options.pops {
                if let Some(element) = self.form.pop(tx)? {
                    popped = (popped.0 - 1, popped.1 - i128::from(element));
                }
            }
            Ok(popped)
        });
        ran(result, |(number, amount)| {
            *grown += number;
            *sum += amount;
        })
    }

    fn checks(&self, worker: &mut Worker<P>, clients: Vec<PriorityQueueClient>) -> Vec<Check> {
        const BATCH: usize = 256;
        let (mut number, mut sum, mut last) = (0, 0, u64::MAX);
        let mut is_ordered = true;
        loop {
            let batch = worker.transact(|tx| {
                let mut elements = Vec::with_capacity(BATCH);
                while elements.len() < BATCH
                    && let Some(element) = self.form.pop(tx)?
                {
                    elements.push(element);
                }
                Ok(elements)
            });
            let elements = match batch {
                Ok(elements) if elements.is_empty() => break,
                Ok(elements) => elements,
                Err(error) => return vec![Check::new("popping all elements", Err(error.to_string()))],
            };
            for element in elements {
                is_ordered &= element <= last;
                last = element;
                number += 1;
                sum += i128::from(element);
            }
        }
        let grown: i128 = clients.iter().map(|client| client.grown).sum();
        let added: i128 = clients.iter().map(|client| client.sum).sum();
        let ordered = if is_ordered { Ok(()) } else { Err(String::from("a greater element came later")) };
        vec![
            equal(
                "elements = those at first + committed pushes - committed pops",
                number,
                self.options.size as i128 + grown,
            ),
            equal("their sum is that of those not popped", sum, self.sum + added),
            Check::new("they come in order", ordered),
        ]
    }

    fn payload_bytes(&self, worker: &mut Worker<P>) -> u64 {
        worker.transact(|tx| self.form.len(tx)).map_or(0, |length| length as u64 * 8)
    }
}
