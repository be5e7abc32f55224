//! Groups of tuples and their aggregates.

use super::query::{by_value, key};
use super::scan::Flow;
use super::{Run, Stop, Tuple};
use crate::functions::Accumulator;
use crate::hashing::{Map, Set};
use crate::plan::select::{AggregateCall, Select};
use crate::row::Row;
use crate::values::{Datum, Type};

/// One group, as far as its tuples are known.
struct Group {
    keys: Vec<Datum>,
    accumulators: Vec<Collected>,
}

/// The input of one aggregate so far.
enum Collected {
    Running(Box<dyn Accumulator>),
    /// Inputs that are to be told apart: those that were there.
    Distinct(Box<dyn Accumulator>, Set<Vec<u8>>),
    /// Inputs that are to be sorted first: what they are sorted by, and the arguments.
    Sorted(Box<dyn Accumulator>, Vec<(Vec<Datum>, Vec<Datum>)>),
}

impl Collected {
    fn new(call: &AggregateCall) -> Self {
        let accumulator = call.aggregate.start();
        match () {
            () if !call.order.is_empty() => Self::Sorted(accumulator, Vec::new()),
            () if call.is_distinct => Self::Distinct(accumulator, Set::default()),
            () => Self::Running(accumulator),
        }
    }
}

impl Run<'_, '_> {
    /// The rows of a query's groups: keys, then aggregates. The order is that in which the groups were met.
    pub(super) fn groups(&mut self, select: &Select, tuple: &mut Tuple) -> Result<Vec<Row>, Stop> {
        let grouping = select.grouping.as_ref().expect("the query has groups");
        let types: Vec<Type> = grouping.keys.iter().map(|key| key.ty).collect();
        let mut groups: Vec<Group> = Vec::new();
        let mut places: Map<Vec<u8>, usize> = Map::default();
        let start =
            |keys| Group { keys, accumulators: grouping.aggregates.iter().map(Collected::new).collect() };
        if grouping.keys.is_empty() {
            groups.push(start(Vec::new()));
        }
        let _ = self.join(&select.sources, &select.from, tuple, &mut |run, tuple| {
            if !run.all_hold(&select.filter, tuple)? {
                return Ok(Flow::Continue(()));
            }
            let mut at = 0;
            if !grouping.keys.is_empty() {
                let mut keys = Vec::with_capacity(grouping.keys.len());
                for key in &grouping.keys {
                    keys.push(run.evaluate(key, tuple)?);
                }
                at = *places.entry(key(&keys, &types)).or_insert(groups.len());
                if at == groups.len() {
                    run.keep(&keys)?;
                    groups.push(start(keys));
                }
            }
            for (call, collected) in grouping.aggregates.iter().zip(&mut groups[at].accumulators) {
                run.collect(call, collected, tuple)?;
            }
            Ok(Flow::Continue(()))
        })?;
        let mut rows = Vec::with_capacity(groups.len());
        for Group { keys: mut values, accumulators } in groups {
            for (call, collected) in grouping.aggregates.iter().zip(accumulators) {
                values.push(finish(call, collected)?);
            }
            rows.push(Row::new(values));
        }
        Ok(rows)
    }

    fn collect(
        &mut self,
        call: &AggregateCall,
        collected: &mut Collected,
        tuple: &[Row],
    ) -> Result<(), Stop> {
        if let Some(filter) = &call.filter
            && !self.holds(filter, tuple)?
        {
            return Ok(());
        }
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            arguments.push(self.evaluate(argument, tuple)?);
        }
        match collected {
            Collected::Running(accumulator) => accumulator.step(&arguments)?,
            Collected::Distinct(accumulator, seen) => {
                let types: Vec<Type> = call.arguments.iter().map(|argument| argument.ty).collect();
                if seen.insert(key(&arguments, &types)) {
                    self.keep(&arguments)?;
                    accumulator.step(&arguments)?;
                }
            }
            Collected::Sorted(_, inputs) => {
                let mut by = Vec::with_capacity(call.order.len());
                for (order, ..) in &call.order {
                    by.push(self.evaluate(order, tuple)?);
                }
                self.keep(&arguments)?;
                inputs.push((by, arguments));
            }
        }
        Ok(())
    }
}

fn finish(call: &AggregateCall, collected: Collected) -> Result<Datum, Stop> {
    let (mut accumulator, mut inputs) = match collected {
        Collected::Running(accumulator) | Collected::Distinct(accumulator, _) => (accumulator, Vec::new()),
        Collected::Sorted(accumulator, inputs) => (accumulator, inputs),
    };
    inputs.sort_by(|(left, _), (right, _)| {
        call.order.iter().zip(left.iter().zip(right)).fold(
            std::cmp::Ordering::Equal,
            |known, ((order, descending, nulls_first), (left, right))| {
                known.then_with(|| by_value(order.ty, left, right, *descending, *nulls_first))
            },
        )
    });
    let types: Vec<Type> = call.arguments.iter().map(|argument| argument.ty).collect();
    let mut seen = Set::default();
    for (_, arguments) in inputs {
        if !call.is_distinct || seen.insert(key(&arguments, &types)) {
            accumulator.step(&arguments)?;
        }
    }
    Ok(accumulator.finish()?)
}
