//! Tasks, and the search for the best change of the edges to a variable.

use super::Bayes;
use super::network::{Operation, only};
use super::records::{Likelihoods, Variables, members};
use crate::encode::encode;
use crate::store::{Element, Store, Vector};
use hotrow::Value;
use std::cmp::Ordering;

/// The smallest rise of the score for which the network is changed. It keeps rounding from turning edges to and fro.
const RISE_MIN: f64 = 1e-6;

/// A change that is to be made.
#[derive(Debug, Clone, Copy, Value)]
pub(crate) struct Task {
    /// The network's score after the change, when the task was made.
    score: f64,
    pub(super) operation: Operation,
    pub(super) from: usize,
    pub(super) to: usize,
    /// The parents of `from` and `to` when the task was made.
    pub(super) parents: [Variables; 2],
}

impl Element for Task {}

encode!(Task { score, operation, from, to, parents });

impl Ord for Task {
    fn cmp(&self, other: &Self) -> Ordering {
        let rest = |task: &Self| (task.operation, task.to, task.from, task.parents);
        self.score.total_cmp(&other.score).then_with(|| rest(self).cmp(&rest(other)))
    }
}

impl PartialOrd for Task {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Task {}

/// The network's state by which tasks are scored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Base {
    pub(super) edges: i64,
    pub(super) likelihood: f64,
}

impl<S: Store> Bayes<S> {
    /// The score of a network with so many edges and such a likelihood per record.
    pub(super) fn score(&self, edges: f64, likelihood: f64) -> f64 {
        let records = self.records.count() as f64;
        records * likelihood - 0.5 * records.ln() * edges
    }

    /// Returns the best of the tasks with their parents, if it raises the score.
    fn best(&self, tasks: impl Iterator<Item = Task>, base: Base) -> Option<Task> {
        let score = self.score(base.edges as f64, base.likelihood);
        tasks.max().filter(|task| task.score > score + RISE_MIN)
    }

    /// Finds the best edge to add to those to a variable.
    pub(super) fn best_insertion(
        &self,
        tx: &mut S::Tx<'_>,
        to: usize,
        base: Base,
        likelihoods: &mut Likelihoods<'_>,
    ) -> Result<Option<Task>, S::Abort> {
        let parents = self.network.parents.get(tx, to)?;
        let parents_after = parents.count_ones() + 1;
        if parents_after > self.options.edges_max {
            return Ok(None);
        }
        let excluded = self.network.descendants(tx, to, 0)? | parents | only(to);
        let before = self.likelihoods.get(tx, to)?;
        let edges = base.edges as f64 + f64::from(parents_after * self.options.insert_penalty);
        let candidates = (0..self.records.variables()).filter(|from| excluded & only(*from) == 0);
        let tasks = candidates.map(|from| {
            let rise = likelihoods.of(to, parents | only(from)) - before;
            let score = self.score(edges, base.likelihood + rise);
            Task { score, operation: Operation::Insert, from, to, parents: [0, parents] }
        });
        Ok(self.best(tasks, base))
    }

    /// Finds the best edge to remove from those to a variable.
    pub(super) fn best_removal(
        &self,
        tx: &mut S::Tx<'_>,
        to: usize,
        base: Base,
        likelihoods: &mut Likelihoods<'_>,
    ) -> Result<Option<Task>, S::Abort> {
        let parents = self.network.parents.get(tx, to)?;
        let before = self.likelihoods.get(tx, to)?;
        let edges = (base.edges - 1) as f64;
        let tasks = members(parents).map(|from| {
            let rise = likelihoods.of(to, parents & !only(from)) - before;
            let score = self.score(edges, base.likelihood + rise);
            Task { score, operation: Operation::Remove, from, to, parents: [0, parents] }
        });
        Ok(self.best(tasks, base))
    }

    /// Finds the best edge to turn around of those to a variable.
    pub(super) fn best_reversal(
        &self,
        tx: &mut S::Tx<'_>,
        to: usize,
        base: Base,
        likelihoods: &mut Likelihoods<'_>,
    ) -> Result<Option<Task>, S::Abort> {
        let parents = self.network.parents.get(tx, to)?;
        let before = self.likelihoods.get(tx, to)?;
        let mut tasks = Vec::new();
        for from in members(parents) {
            let parents_of_from = self.network.parents.get(tx, from)?;
            let is_full = parents_of_from.count_ones() >= self.options.edges_max;
            if is_full || self.network.descendants(tx, from, only(to))? & only(to) != 0 {
                continue;
            }
            let before_of_from = self.likelihoods.get(tx, from)?;
            let rise = likelihoods.of(to, parents & !only(from)) - before
                + likelihoods.of(from, parents_of_from | only(to))
                - before_of_from;
            let score = self.score(base.edges as f64, base.likelihood + rise);
            let parents = [parents_of_from, parents];
            tasks.push(Task { score, operation: Operation::Reverse, from, to, parents });
        }
        Ok(self.best(tasks.into_iter(), base))
    }
}
