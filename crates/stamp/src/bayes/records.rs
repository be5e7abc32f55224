//! The records from which the network is learned, and likelihoods of variables.
//!
//! A variable is 0 or 1. Records are kept in columns, one bit for each record, so that a count of records is a count of
//! bits. (STAMP keeps counts in a tree, an *ADtree*, which answers the same questions.)

use super::BayesOptions;
use hotrow_sync::random::Random;

/// A set of variables: a bit for each.
pub(crate) type Variables = u64;

/// Returns the variables of a set.
pub(crate) fn members(set: Variables) -> impl Iterator<Item = usize> {
    (0..Variables::BITS as usize).filter(move |variable| set >> variable & 1 == 1)
}

/// The records.
pub(crate) struct Records {
    /// The values of each variable in all records.
    columns: Vec<Vec<u64>>,
    /// The number of records.
    count: usize,
}

impl Records {
    /// Draws a network, and records from it. Each variable has some of the earlier ones of a random order as parents,
    /// and each combination of the parents' values has its own probability.
    pub(crate) fn generate(options: &BayesOptions) -> Self {
        let mut random = Random::seeded(options.seed);
        let mut order: Vec<usize> = (0..options.variables).collect();
        random.shuffle(&mut order);
        let nodes: Vec<(usize, Vec<usize>, Vec<f64>)> = (0..order.len())
            .map(|position| {
                let parents = draw_parents(&order[..position], options, &mut random);
                let probabilities = (0..1 << parents.len()).map(|_| random.unit()).collect();
                (order[position], parents, probabilities)
            })
            .collect();
        let words = options.records.div_ceil(64);
        let mut columns = vec![vec![0; words]; options.variables];
        for record in 0..options.records {
            for (variable, parents, probabilities) in &nodes {
                let value = |parent: &usize| (columns[*parent][record / 64] >> (record % 64) & 1) as usize;
                let combination =
                    parents.iter().fold(0, |combination, parent| combination << 1 | value(parent));
                let is_one = random.chance(probabilities[combination]);
                columns[*variable][record / 64] |= u64::from(is_one) << (record % 64);
            }
        }
        Self { columns, count: options.records }
    }

    /// The number of variables.
    pub(crate) fn variables(&self) -> usize {
        self.columns.len()
    }

    /// The number of records.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The value of a variable in a record.
    pub(crate) fn value(&self, record: usize, variable: usize) -> bool {
        self.columns[variable][record / 64] >> (record % 64) & 1 == 1
    }
}

/// Draws up to `parents_max` different parents, each place being filled with the probability `parent_percent`.
fn draw_parents(earlier: &[usize], options: &BayesOptions, random: &mut Random) -> Vec<usize> {
    let mut candidates = earlier.to_vec();
    random.shuffle(&mut candidates);
    candidates.truncate(options.parents_max as usize);
    candidates.retain(|_| random.below(100) < u64::from(options.parent_percent));
    candidates
}

/// A computation of likelihoods, with the memory that it reuses.
pub(crate) struct Likelihoods<'r> {
    records: &'r Records,
    /// For each number of parents: the records with the parents' values so far.
    selected: Vec<Vec<u64>>,
}

impl<'r> Likelihoods<'r> {
    pub(crate) fn new(records: &'r Records) -> Self {
        let mut all = vec![u64::MAX; records.count.div_ceil(64)];
        if !records.count.is_multiple_of(64) {
            all[records.count / 64] = (1 << (records.count % 64)) - 1;
        }
        Self { records, selected: vec![all] }
    }

    /// Returns the logarithm of the likelihood of a variable's values, given those of its parents, per record.
    pub(crate) fn of(&mut self, variable: usize, parents: Variables) -> f64 {
        let parents: Vec<usize> = members(parents).collect();
        let words = self.selected[0].len();
        self.selected.resize(self.selected.len().max(parents.len() + 1), vec![0; words]);
        self.sum(variable, &parents, 0) / self.records.count as f64
    }

    /// Sums over all values of the parents from number `depth` on, among the selected records.
    fn sum(&mut self, variable: usize, parents: &[usize], depth: usize) -> f64 {
        if depth == parents.len() {
            let pairs = || self.selected[depth].iter().zip(&self.records.columns[variable]);
            let count: u32 = pairs().map(|(selected, _)| selected.count_ones()).sum();
            let ones: u32 = pairs().map(|(selected, column)| (selected & column).count_ones()).sum();
            let term = |part: u32| match part {
                0 => 0.0,
                _ => f64::from(part) * (f64::from(part) / f64::from(count)).ln(),
            };
            return term(ones) + term(count - ones);
        }
        let mut sum = 0.0;
        for flip in [u64::MAX, 0] {
            let (before, after) = self.selected.split_at_mut(depth + 1);
            let column = &self.records.columns[parents[depth]];
            let mut any = 0;
            for ((selected, all), column) in after[0].iter_mut().zip(&before[depth]).zip(column) {
                *selected = all & (column ^ flip);
                any |= *selected;
            }
            if any != 0 {
                sum += self.sum(variable, parents, depth + 1);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(columns: [u64; 2], count: usize) -> Records {
        Records { columns: columns.map(|column| vec![column]).to_vec(), count }
    }

    #[test]
    fn a_variable_is_certain_given_its_copy_and_independent_of_chance() {
        let copies = records([0b1010, 0b1010], 4);
        let mut likelihoods = Likelihoods::new(&copies);
        assert_eq!(likelihoods.of(0, 0), 0.5_f64.ln());
        assert_eq!(likelihoods.of(0, 0b10), 0.0);
        let independent = records([0b1010, 0b1100], 4);
        assert_eq!(Likelihoods::new(&independent).of(0, 0b10), 0.5_f64.ln());
    }

    #[test]
    fn the_same_seed_draws_the_same_records() {
        let options = BayesOptions { records: 70, ..BayesOptions::default() };
        let (first, second) = (Records::generate(&options), Records::generate(&options));
        assert_eq!(first.columns, second.columns);
        assert_eq!(first.columns[0].len(), 2);
        assert!(first.columns.iter().all(|column| column[1] >> 6 == 0));
    }
}
