//! `COPY` between a client and a table.
//!
//! Data that fit into memory are collected first, so that their insertion can be retried like any other statement's. Longer ones are
//! inserted as they come, in a session that has one attempt: they come once.

use super::Connection;
use super::block::Phase;
use super::copy_options::Form;
pub(super) use super::copy_options::{CopyOptions, options};
use super::copy_rows::{CopyColumn, CopyShape, Progress, RowReader, write_rows};
use super::executor::{Executor, Work};
use super::prepared::Prepared;
use crate::error::SqlError;
use crate::outcome::{Client, Outcome};
use crate::plan::{CopyPlan, Plan};
use crate::run::{Run, Stop};
use hotrow::{Any, Transaction};
use std::rc::Rc;

/// The number of bytes that are collected before they are inserted.
const COLLECTED_MAX: usize = if cfg!(test) { 4_096 } else { 64 << 20 };

/// The number of bytes that are inserted at a time, if there are more.
const BATCH: usize = if cfg!(test) { 512 } else { 1 << 20 };

/// The longest record.
const RECORD_MAX: usize = 256 << 20;

impl Connection {
    /// Runs `COPY`.
    pub(super) fn copy(
        &mut self,
        prepared: &Rc<Prepared>,
        options: &CopyOptions,
        client: &mut dyn Client,
    ) -> Result<Outcome, SqlError> {
        let plan = self.plan(prepared)?;
        let copy = plan.copy.as_ref().ok_or_else(|| SqlError::not_supported("this COPY"))?;
        if copy.is_in {
            self.copy_in(prepared, copy, options, client)
        } else {
            self.copy_out(prepared, copy, options)
        }
    }

    fn copy_out(
        &mut self,
        prepared: &Rc<Prepared>,
        copy: &CopyPlan,
        options: &CopyOptions,
    ) -> Result<Outcome, SqlError> {
        let table = if copy.query { String::new() } else { copy.relation.name.clone() };
        let work = Work::Plan { prepared: prepared.clone(), parameters: Rc::new([]) };
        let Outcome::Rows { fields, rows, .. } = self.run_work(&work)? else {
            return Err(SqlError::new("42601", "COPY query must have a RETURNING clause"));
        };
        let column = |field: &crate::outcome::Field| CopyColumn {
            name: field.name.to_string(),
            ty: field.ty,
            modifier: field.modifier,
        };
        let columns: Vec<_> = fields.iter().map(column).collect();
        let (count, width) = (rows.len(), columns.len());
        let shape = CopyShape { table, columns, options: options.clone() };
        Ok(Outcome::CopyOut {
            columns: width,
            is_binary: options.form == Form::Binary,
            data: write_rows(&shape, rows),
            tag: format!("COPY {count}"),
        })
    }

    fn copy_in(
        &mut self,
        prepared: &Rc<Prepared>,
        copy: &CopyPlan,
        options: &CopyOptions,
        client: &mut dyn Client,
    ) -> Result<Outcome, SqlError> {
        self.executor.check_may_write(prepared)?;
        let shape = shape_of(copy, options);
        client.begin_copy_in(shape.columns.len(), options.form == Form::Binary)?;
        let mut data = Vec::new();
        let is_end = loop {
            match client.copy_data()? {
                Some(chunk) => data.extend_from_slice(&chunk),
                None => break true,
            }
            if data.len() > COLLECTED_MAX {
                break false;
            }
            self.executor.state.check_cancelled()?;
        };
        let executor = &self.executor;
        let insertion = Insertion { executor, prepared, shape: &shape };
        let count = if !is_end {
            self.copy_on(prepared, &shape, data, client)?
        } else if self.block.phase() == Phase::Idle {
            executor.retried(false, |tx| {
                let mut rows = RowReader::new(&shape, &data, true, Progress::default());
                insertion.insert(tx, &mut rows)
            })?
        } else {
            let mut rows = RowReader::new(&shape, &data, true, Progress::default());
            self.block.run(executor, |tx| insertion.insert(tx, &mut rows))?
        };
        Ok(Outcome::Done { tag: format!("COPY {count}") })
    }

    /// Inserts data as they come.
    fn copy_on(
        &mut self,
        prepared: &Rc<Prepared>,
        shape: &CopyShape,
        mut data: Vec<u8>,
        client: &mut dyn Client,
    ) -> Result<u64, SqlError> {
        let is_alone = self.block.phase() == Phase::Idle;
        self.block.begin_implicit(&self.executor);
        let insertion = Insertion { executor: &self.executor, prepared, shape };
        let (mut count, mut progress, mut is_end) = (0, Progress::default(), false);
        loop {
            self.executor.state.check_cancelled()?;
            let mut rows = RowReader::new(shape, &data, is_end, progress);
            count += self.block.run(&self.executor, |tx| insertion.insert(tx, &mut rows))?;
            progress = rows.progress;
            data.drain(..progress.at);
            progress.at = 0;
            if is_end {
                break;
            }
            if data.len() > RECORD_MAX {
                return Err(SqlError::new("54000", "a record of COPY is too long"));
            }
            let enough = data.len() + BATCH;
            while !is_end && data.len() < enough {
                match client.copy_data()? {
                    Some(chunk) => data.extend_from_slice(&chunk),
                    None => is_end = true,
                }
            }
        }
        if is_alone {
            self.block.commit(&self.executor)?;
        }
        Ok(count)
    }
}

/// The insertion of rows into a table.
struct Insertion<'a> {
    executor: &'a Executor,
    prepared: &'a Prepared,
    shape: &'a CopyShape,
}

impl Insertion<'_> {
    fn insert(&self, tx: &mut Transaction<'_, Any>, rows: &mut RowReader<'_>) -> Result<u64, Stop> {
        let executor = self.executor;
        let catalog = executor.shared.catalog.get(tx)?;
        let plan = self.prepared.plan(&catalog, &executor.state)?;
        let copy = plan.copy.as_ref().ok_or_else(|| SqlError::not_supported("this COPY"))?;
        // Somebody may have changed the table since the client was told of its columns.
        let now = shape_of(copy, &self.shape.options);
        let same =
            now.columns.len() == self.shape.columns.len()
                && now.columns.iter().zip(&self.shape.columns).all(|(now, then)| {
                    (&now.name, now.ty, now.modifier) == (&then.name, then.ty, then.modifier)
                });
        if !same {
            return Err(SqlError::new("0A000", "cached plan must not change result type").into());
        }
        let mut run = Run::new(tx, &executor.shared, catalog, &executor.state, &[], &executor.changes);
        Plan::insert_rows(&mut run, copy, rows)
    }
}

fn shape_of(copy: &CopyPlan, options: &CopyOptions) -> CopyShape {
    let column = |place: &usize| {
        let column = &copy.relation.columns[*place];
        CopyColumn { name: column.name.clone(), ty: column.ty, modifier: column.modifier }
    };
    CopyShape {
        table: copy.relation.name.clone(),
        columns: copy.columns.iter().map(column).collect(),
        options: options.clone(),
    }
}
