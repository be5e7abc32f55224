//! bayes: the structure of a Bayesian network is learned from records (STAMP).
//!
//! Each variable has at most one task in a priority queue: the change of an edge to it that raises the network's score
//! most. A worker takes the best task, checks it against the network as it is now, changes the network, and looks for
//! the variable's next task. Checks and searches read much of the network, and a search computes likelihoods; so
//! transactions are long and conflict often, as in STAMP.
//!
//! The score is the logarithm of the records' likelihood, less a penalty for each edge. A task is dropped if the
//! parents for which it was computed have changed, so each change raises the score.

mod network;
mod records;
mod search;

use crate::application::{Application, Failure, Statistics, require};
use crate::options::options;
use crate::runner::{Runner, share};
use crate::store::{Cell, Counters, Queue, Store, Vector};
use hotrow_sync::{Mutex, lock};
use network::{Network, Operation, has_cycle, only};
use records::{Likelihoods, Records, Variables, members};
use search::{Base, Task};
use std::collections::BTreeMap;

options! {
    /// Options of bayes. STAMP's letters are in brackets.
    pub struct BayesOptions {
        /// Variables (-v).
        variables: usize = 32 in 1..=64,
        /// Records (-r).
        records: usize = 32_768 in 1..=100_000_000,
        /// Largest number of parents in the network from which the records are drawn (-n).
        parents_max: u32 = 10 in 0..=20,
        /// Percentage of these parents that there are (-p).
        parent_percent: u32 = 40 in 0..=100,
        /// Factor of the penalty for a new edge, times the number of the variable's parents (-i).
        insert_penalty: u32 = 2 in 1..=1_000,
        /// Largest number of parents that a variable learns (-e).
        edges_max: u32 = 8 in 0..=20,
        /// Seed of the random numbers (-s).
        seed: u64 = 1 in 0..=0xffff_ffff_ffff_ffff,
    }
    presets {
        "simulator": "STAMP's parameters for simulators." {
            variables = 32, records = 1_024, parents_max = 2, parent_percent = 20, insert_penalty = 2,
            edges_max = 2, seed = 0,
        }
        "native": "STAMP's large parameters." {
            variables = 32, records = 4_096, parents_max = 10, parent_percent = 40, insert_penalty = 2,
            edges_max = 8, seed = 1,
        }
    }
    relations |_| Ok(());
}

/// The work of one or all workers.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    inserted: u64,
    removed: u64,
    reversed: u64,
    dropped: u64,
}

/// bayes over a store.
pub struct Bayes<S: Store> {
    store: S,
    options: BayesOptions,
    records: Records,
    network: Network<S>,
    /// The likelihood of each variable, given its parents.
    likelihoods: S::Vector<f64>,
    /// The sum of all likelihoods.
    likelihood: S::Cell<f64>,
    /// The number of edges.
    edges: S::Counters,
    tasks: S::PriorityQueue<Task>,
}

impl<S: Store> Bayes<S> {
    /// Computes the likelihoods of a worker's share of the variables, without edges, and makes their first tasks.
    fn make_first_tasks(&self, number: usize, workers: usize) {
        let mut worker = self.store.worker();
        let mut likelihoods = Likelihoods::new(&self.records);
        let mut sum = 0.0;
        let own = share(self.records.variables(), number, workers);
        for variable in own.clone() {
            let likelihood = likelihoods.of(variable, 0);
            sum += likelihood;
            S::transact(&mut worker, |tx| self.likelihoods.set(tx, variable, likelihood));
        }
        let likelihood = S::transact(&mut worker, |tx| {
            self.likelihood.update(tx, |total| {
                *total += sum;
                *total
            })
        });
        let base = Base { edges: 0, likelihood };
        for variable in own {
            let task =
                S::transact(&mut worker, |tx| self.best_insertion(tx, variable, base, &mut likelihoods));
            if let Some(task) = task {
                S::transact(&mut worker, |tx| self.tasks.push(tx, task));
            }
        }
    }

    /// Carries out tasks until none is waiting.
    fn learn(&self) -> Work {
        let mut worker = self.store.worker();
        let mut likelihoods = Likelihoods::new(&self.records);
        let mut work = Work::default();
        while let Some(task) = S::transact(&mut worker, |tx| self.tasks.pop(tx)) {
            let is_done = S::transact(&mut worker, |tx| self.carry_out(tx, &task));
            let mut rise = 0.0;
            if is_done {
                let (edges, affected) = match task.operation {
                    Operation::Insert => (1, &[task.to][..]),
                    Operation::Remove => (-1, &[task.to][..]),
                    Operation::Reverse => (0, &[task.to, task.from][..]),
                };
                for variable in affected {
                    rise += S::transact(&mut worker, |tx| {
                        self.update_likelihood(tx, *variable, &mut likelihoods)
                    });
                }
                S::transact(&mut worker, |tx| self.edges.add(tx, 0, edges));
            }
            match (is_done, task.operation) {
                (false, _) => work.dropped += 1,
                (true, Operation::Insert) => work.inserted += 1,
                (true, Operation::Remove) => work.removed += 1,
                (true, Operation::Reverse) => work.reversed += 1,
            }
            let base = S::transact(&mut worker, |tx| {
                let likelihood = self.likelihood.update(tx, |total| {
                    *total += rise;
                    *total
                })?;
                Ok(Base { edges: self.edges.get(tx, 0)?, likelihood })
            });
            let to = task.to;
            let searches = [
                S::transact(&mut worker, |tx| self.best_insertion(tx, to, base, &mut likelihoods)),
                S::transact(&mut worker, |tx| self.best_removal(tx, to, base, &mut likelihoods)),
                S::transact(&mut worker, |tx| self.best_reversal(tx, to, base, &mut likelihoods)),
            ];
            if let Some(task) = searches.into_iter().flatten().max() {
                S::transact(&mut worker, |tx| self.tasks.push(tx, task));
            }
        }
        work
    }

    /// Changes the network, if the task is still valid.
    fn carry_out(&self, tx: &mut S::Tx<'_>, task: &Task) -> Result<bool, S::Abort> {
        let parents = [self.network.parents.get(tx, task.from)?, self.network.parents.get(tx, task.to)?];
        // Only a reversal concerns the parents of the edge's beginning.
        let is_valid = parents[1] == task.parents[1]
            && (task.operation != Operation::Reverse || parents == task.parents);
        Ok(is_valid && self.network.change(tx, task.operation, task.from, task.to)?)
    }

    /// Computes a variable's likelihood anew, and returns by how much it has risen.
    fn update_likelihood(
        &self,
        tx: &mut S::Tx<'_>,
        variable: usize,
        likelihoods: &mut Likelihoods<'_>,
    ) -> Result<f64, S::Abort> {
        let parents = self.network.parents.get(tx, variable)?;
        let likelihood = likelihoods.of(variable, parents);
        let before = self.likelihoods.get(tx, variable)?;
        self.likelihoods.set(tx, variable, likelihood)?;
        Ok(likelihood - before)
    }

    /// Returns the likelihood of a variable, given its parents, computed record by record.
    fn likelihood_by_records(&self, variable: usize, parents: Variables) -> f64 {
        let mut counts: BTreeMap<Vec<bool>, [u32; 2]> = BTreeMap::new();
        for record in 0..self.records.count() {
            let combination = members(parents).map(|parent| self.records.value(record, parent)).collect();
            counts.entry(combination).or_default()[usize::from(self.records.value(record, variable))] += 1;
        }
        let term = |part: u32, all: u32| match part {
            0 => 0.0,
            _ => f64::from(part) * (f64::from(part) / f64::from(all)).ln(),
        };
        let sums =
            counts.values().map(|[zeros, ones]| term(*zeros, zeros + ones) + term(*ones, zeros + ones));
        sums.sum::<f64>() / self.records.count() as f64
    }
}

impl<S: Store> Application<S> for Bayes<S> {
    type Options = BayesOptions;

    fn prepare(store: S, options: &BayesOptions) -> Self {
        Self {
            records: Records::generate(options),
            network: Network::new(&store, options.variables),
            likelihoods: store.vector((0..options.variables).map(|_| 0.0)),
            likelihood: store.cell(0.0),
            edges: store.counters([0]),
            tasks: store.priority_queue([]),
            store,
            options: options.clone(),
        }
    }

    fn run<R: Runner<Self>>(&mut self, runner: &R) -> Statistics {
        let workers = runner.workers();
        runner.run(self, &|bayes, number| bayes.make_first_tasks(number, workers));
        let total = Mutex::new(Work::default());
        runner.run(self, &|bayes, _| {
            let work = bayes.learn();
            let mut total = lock(&total);
            total.inserted += work.inserted;
            total.removed += work.removed;
            total.reversed += work.reversed;
            total.dropped += work.dropped;
        });
        let work = *lock(&total);
        Statistics::new([
            ("edges", work.inserted - work.removed),
            ("inserted", work.inserted),
            ("removed", work.removed),
            ("reversed", work.reversed),
            ("dropped", work.dropped),
        ])
    }

    /// Checks that the network has no cycle and not too many edges, that all sums agree with it, and that its score is
    /// at least that of the network without edges. Likelihoods are computed anew, in another way.
    fn verify(&self) -> Result<(), Failure> {
        let mut worker = self.store.worker();
        let variables = self.records.variables();
        let mut read = |vector: &S::Vector<Variables>| -> Vec<Variables> {
            (0..variables).map(|index| S::transact(&mut worker, |tx| vector.get(tx, index))).collect()
        };
        let (parents, children) = (read(&self.network.parents), read(&self.network.children));
        require(!has_cycle(&parents), || "the network has a cycle".to_owned())?;
        let mut edges = 0;
        let (mut likelihood, mut likelihood_without_edges) = (0.0, 0.0);
        for (variable, set) in parents.iter().enumerate() {
            edges += i64::from(set.count_ones());
            require(set.count_ones() <= self.options.edges_max, || {
                format!("variable {variable} has too many parents")
            })?;
            let as_children = (0..variables).filter(|child| parents[*child] & only(variable) != 0);
            let as_children = as_children.fold(0, |children, child| children | only(child));
            require(as_children == children[variable], || {
                format!("the children of variable {variable} do not have it as parent, or others do")
            })?;
            let kept = S::transact(&mut worker, |tx| self.likelihoods.get(tx, variable));
            let counted = self.likelihood_by_records(variable, *set);
            require((kept - counted).abs() < 1e-9, || {
                format!("the likelihood of variable {variable} is {counted}, not {kept}")
            })?;
            likelihood += counted;
            likelihood_without_edges += self.likelihood_by_records(variable, 0);
        }
        let (kept_edges, kept) =
            S::transact(&mut worker, |tx| Ok((self.edges.get(tx, 0)?, self.likelihood.get(tx)?)));
        require(kept_edges == edges, || format!("there are {edges} edges; {kept_edges} were counted"))?;
        require((kept - likelihood).abs() < 1e-6, || {
            format!("the network's likelihood is {likelihood}, not {kept}")
        })?;
        let (score, before) =
            (self.score(edges as f64, likelihood), self.score(0.0, likelihood_without_edges));
        require(score >= before - 1e-6, || {
            format!("the score is {score}; without any edge it would be {before}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::execute;
    use crate::plain::{GlobalLock, Sequential};
    use crate::runner::{OneThread, on_threads};

    fn small() -> BayesOptions {
        BayesOptions {
            variables: 8,
            records: 200,
            parents_max: 3,
            edges_max: 3,
            seed: 6,
            ..BayesOptions::default()
        }
    }

    fn after_a_run() -> Bayes<Sequential> {
        let mut bayes = Bayes::prepare(Sequential::default(), &small());
        bayes.run(&OneThread);
        bayes.verify().unwrap();
        bayes
    }

    fn failure(bayes: &Bayes<Sequential>) -> String {
        bayes.verify().unwrap_err().to_string()
    }

    #[test]
    fn runs_on_one_thread_and_on_several() {
        let outcome = execute::<Bayes<_>, _, _>(Sequential::default(), &small(), &OneThread);
        assert_eq!(outcome.verification, Ok(()));
        assert!(outcome.statistics.count("edges") > 1, "{outcome:?}");
        let outcome = execute::<Bayes<_>, _, _>(GlobalLock::default(), &small(), &on_threads(3));
        assert_eq!(outcome.verification, Ok(()));
    }

    #[test]
    fn the_smallest_and_the_widest_networks_work() {
        for (variables, records) in [(1, 1), (2, 1), (64, 64)] {
            let options = BayesOptions { variables, records, ..small() };
            let outcome = execute::<Bayes<_>, _, _>(GlobalLock::default(), &options, &on_threads(2));
            assert_eq!(outcome.verification, Ok(()), "{options:?}");
        }
    }

    #[test]
    fn a_cycle_is_found() {
        let bayes = after_a_run();
        let Ok(()) = bayes.network.parents.set(&mut (), 3, only(3));
        assert_eq!(failure(&bayes), "the network has a cycle");
    }

    #[test]
    fn a_lost_child_is_found() {
        let bayes = after_a_run();
        let Ok(children) = bayes.network.children.get(&mut (), 0);
        let Ok(()) = bayes.network.children.set(&mut (), 0, children ^ only(1));
        assert!(failure(&bayes).starts_with("the children of variable 0"));
    }

    #[test]
    fn wrong_sums_are_found() {
        let bayes = after_a_run();
        let Ok(()) = bayes.edges.add(&mut (), 0, 1);
        assert!(failure(&bayes).ends_with("were counted"));
        let bayes = after_a_run();
        let Ok(()) = bayes.likelihood.update(&mut (), |likelihood| *likelihood += 0.01);
        assert!(failure(&bayes).starts_with("the network's likelihood is"));
        let bayes = after_a_run();
        let Ok(()) = bayes.likelihoods.update(&mut (), 4, |likelihood| *likelihood += 0.01);
        assert!(failure(&bayes).starts_with("the likelihood of variable 4 is"));
    }

    #[test]
    fn a_network_worse_than_none_is_found() {
        let bayes = Bayes::prepare(Sequential::default(), &BayesOptions { parents_max: 0, ..small() });
        let mut likelihoods = Likelihoods::new(&bayes.records);
        let mut sum = 0.0;
        for variable in 0..8 {
            // Each variable has the one before it as parent, which says nothing about it.
            if variable > 0 {
                let Ok(true) = bayes.network.change(&mut (), Operation::Insert, variable - 1, variable)
                else {
                    panic!("a chain has no cycle")
                };
                let Ok(()) = bayes.edges.add(&mut (), 0, 1);
            }
            let Ok(rise) = bayes.update_likelihood(&mut (), variable, &mut likelihoods);
            sum += rise;
        }
        let Ok(()) = bayes.likelihood.set(&mut (), sum);
        assert!(failure(&bayes).contains("without any edge it would be"));
    }
}
