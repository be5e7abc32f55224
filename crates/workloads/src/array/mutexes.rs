//! The array without Hotrow: a mutex for each element, locked in the order of elements.

use super::{ArrayClient, ArrayOptions, KINDS, check_sum};
use hotrow::sync::{Mutex, MutexGuard, lock};
use hotrow::{Protocol, Worker};
use hotrow_driver::{BaselineInfo, Check, Ran, Workload};

pub(super) const ORDERED_MUTEXES: BaselineInfo = BaselineInfo {
    name: "ordered-mutexes",
    summary: "a mutex for each element, locked in order and held until the end",
};

/// An array of mutexes.
///
/// A transaction knows its elements beforehand. So it sorts them, locks one after the other, and cannot deadlock.
pub(super) struct OrderedMutexes {
    elements: Vec<Mutex<u64>>,
    options: ArrayOptions,
}

impl OrderedMutexes {
    pub(super) fn new(options: ArrayOptions) -> Self {
        Self { elements: (0..options.size).map(|_| Mutex::new(0)).collect(), options }
    }

    /// Does operations that are sorted by their elements. Returns the sum of what they have read.
    fn run(&self, operations: &[(usize, bool)]) -> u64 {
        let mut held: Vec<MutexGuard<'_, u64>> = Vec::with_capacity(operations.len());
        let mut locked = None;
        let mut sum: u64 = 0;
        for (element, increments) in operations {
            if locked != Some(element) {
                held.push(lock(&self.elements[*element]));
                locked = Some(element);
            }
            let value = held.last_mut().expect("locked just now");
            if *increments {
                **value += 1;
            } else {
                sum = sum.wrapping_add(**value);
            }
        }
        sum
    }
}

impl<P: Protocol> Workload<P> for OrderedMutexes {
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

    fn run_one(&self, _worker: &mut Worker<P>, client: &mut ArrayClient) -> Ran {
        client.operations.sort_unstable_by_key(|(element, _)| *element);
        let sum = self.run(&client.operations);
        client.committed(sum)
    }

    fn checks(&self, _worker: &mut Worker<P>, clients: Vec<ArrayClient>) -> Vec<Check> {
        let sum = self.elements.iter().map(|element| *lock(element)).fold(0, u64::wrapping_add);
        vec![check_sum(sum, &clients)]
    }

    fn payload_bytes(&self, _worker: &mut Worker<P>) -> u64 {
        (self.elements.len() * size_of::<u64>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Increment;
    use hotrow::{Engine, Occ};

    const OPTIONS: ArrayOptions =
        ArrayOptions { size: 3, ops: 8, increment_share: 0.5, increment: Increment::Update };

    #[test]
    fn an_element_that_comes_several_times_is_locked_once() {
        let array = OrderedMutexes::new(OPTIONS);
        let mut operations = [(2, true), (0, true), (2, false), (2, true), (0, false)];
        operations.sort_by_key(|(element, _)| *element);
        assert_eq!(array.run(&operations), 1 + 1);
        assert_eq!(array.elements.iter().map(|element| *lock(element)).collect::<Vec<_>>(), [1, 0, 2]);
    }

    #[test]
    fn the_check_notices_a_lost_increment() {
        let engine = Engine::<Occ>::new();
        let mut worker = engine.worker().unwrap();
        for lost in [0, 1] {
            let array = OrderedMutexes::new(OPTIONS);
            let mut client = OPTIONS.client(0, 7);
            for _ in 0..20 {
                Workload::<Occ>::prepare(&array, &mut client);
                array.run_one(&mut worker, &mut client);
            }
            *lock(&array.elements[1]) -= lost;
            let checks = array.checks(&mut worker, vec![client]);
            assert_eq!((checks.len(), checks[0].passed), (1, lost == 0), "{checks:?}");
        }
    }
}
