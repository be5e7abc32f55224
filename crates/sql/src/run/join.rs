//! Joins: tuples of rows of several sources.

use super::scan::{Each, Flow};
use super::{Run, Stop, Tuple};
use crate::plan::select::{Join, Source};
use crate::row::Row;

impl<'t, 'w> Run<'t, 'w> {
    /// Calls a function with each tuple of a tree of joins.
    pub(crate) fn join(
        &mut self,
        sources: &[Source],
        join: &Join,
        tuple: &mut Tuple,
        each: &mut Each<'_, 't, 'w>,
    ) -> Result<Flow, Stop> {
        match join {
            Join::Nothing => each(self, tuple),
            Join::Scan { source, access, filter } => {
                self.scan(sources, (*source, access), filter, tuple, each)
            }
            Join::Inner { left, right, filter } => self.join(sources, left, tuple, &mut |run, tuple| {
                run.join(sources, right, tuple, &mut |run, tuple| {
                    if run.all_hold(filter, tuple)? { each(run, tuple) } else { Ok(Flow::Continue(())) }
                })
            }),
            Join::Left { left, right, on, nulls } => self.join(sources, left, tuple, &mut |run, tuple| {
                let mut has_partner = false;
                let flow = run.join(sources, right, tuple, &mut |run, tuple| {
                    if !run.all_hold(on, tuple)? {
                        return Ok(Flow::Continue(()));
                    }
                    has_partner = true;
                    each(run, tuple)
                })?;
                if has_partner || flow.is_break() {
                    return Ok(flow);
                }
                fill(tuple, nulls);
                each(run, tuple)
            }),
            Join::Full { left, right, on, nulls, left_nulls } => {
                let rights = self.tuples(sources, right, tuple, nulls)?;
                let mut has_partner = vec![false; rights.len()];
                let flow = self.join(sources, left, tuple, &mut |run, tuple| {
                    let mut is_alone = true;
                    for (right, has_partner) in rights.iter().zip(&mut has_partner) {
                        for ((source, _), row) in nulls.iter().zip(right) {
                            tuple[*source] = row.clone();
                        }
                        run.step()?;
                        if run.all_hold(on, tuple)? {
                            is_alone = false;
                            *has_partner = true;
                            if each(run, tuple)?.is_break() {
                                return Ok(Flow::Break(()));
                            }
                        }
                    }
                    if !is_alone {
                        return Ok(Flow::Continue(()));
                    }
                    fill(tuple, nulls);
                    each(run, tuple)
                })?;
                if flow.is_break() {
                    return Ok(flow);
                }
                fill(tuple, left_nulls);
                for (right, _) in rights.iter().zip(&has_partner).filter(|(_, has_partner)| !**has_partner) {
                    for ((source, _), row) in nulls.iter().zip(right) {
                        tuple[*source] = row.clone();
                    }
                    if each(self, tuple)?.is_break() {
                        return Ok(Flow::Break(()));
                    }
                }
                Ok(Flow::Continue(()))
            }
        }
    }

    /// The rows of some sources in all tuples of a tree.
    fn tuples(
        &mut self,
        sources: &[Source],
        join: &Join,
        tuple: &mut Tuple,
        of: &[(usize, usize)],
    ) -> Result<Vec<Vec<Row>>, Stop> {
        let mut all = Vec::new();
        let _ = self.join(sources, join, tuple, &mut |run, tuple| {
            run.keep(&[])?;
            all.push(of.iter().map(|(source, _)| tuple[*source].clone()).collect());
            Ok(Flow::Continue(()))
        })?;
        Ok(all)
    }
}

/// Gives sources rows of nulls.
fn fill(tuple: &mut Tuple, nulls: &[(usize, usize)]) {
    for (source, width) in nulls {
        tuple[*source] = Row::nulls(*width);
    }
}
