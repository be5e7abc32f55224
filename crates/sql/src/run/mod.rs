//! Running of plans, inside of a transaction.

mod aggregate;
mod define;

mod entries;
mod environment;
pub(crate) mod evaluate;
#[cfg(test)]
mod hot_tests;
mod join;
mod keys;
pub(crate) mod modify;
mod query;
mod scan;
mod series;

pub(crate) use keys::{key_of, row_key};

use crate::catalog::{Catalog, CatalogChanges};
use crate::connection::SessionState;
use crate::error::SqlError;
use crate::hashing::Map;
use crate::instance::Shared;
use crate::plan::select::TableSource;
use crate::row::Row;
use crate::values::Datum;
use hotrow::{Abort, Any, Transaction};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Why a statement does not go on.
#[derive(Debug)]
pub enum Stop {
    /// The transaction has lost, or is over.
    Abort(Abort),
    /// An error of the statement's own.
    Sql(SqlError),
}

impl From<Abort> for Stop {
    fn from(abort: Abort) -> Self {
        Self::Abort(abort)
    }
}

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

/// The rows of a query's sources, in their order.
pub(crate) type Tuple = Vec<Row>;

/// Rows by the values of some expressions.
pub(crate) type HashedRows = Map<Vec<u8>, Vec<Row>>;

/// The running of one statement.
pub(crate) struct Run<'t, 'w> {
    pub(crate) tx: &'t mut Transaction<'w, Any>,
    pub(crate) shared: &'t Shared,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) session: &'t SessionState,
    pub(crate) parameters: &'t [Datum],
    pub(crate) changes: &'t RefCell<CatalogChanges>,
    /// The tuples of the queries around the one that runs, the nearest last.
    outer: Vec<Tuple>,
    /// The results of queries with names.
    with: HashMap<usize, Rc<Vec<Row>>>,
    /// Hash tables of sources.
    hashed: HashMap<usize, Rc<HashedRows>>,
    /// The results of queries that need nothing around them, by their place in the plan.
    results: HashMap<usize, Rc<Vec<Row>>>,
    /// Changes that are made when the statement has read all that it reads, by the parts of the statement.
    put_off: Vec<(Arc<TableSource>, Vec<modify::Change>)>,
    /// True while queries with names run, which may change rows.
    is_one_of_several: bool,
    steps: u32,
    bytes: usize,
}

/// The number of bytes of rows that one statement may hold at a time, by an estimate.
const BYTES_MAX: usize = 1 << 30;

impl<'t, 'w> Run<'t, 'w> {
    /// Begins a statement.
    pub(crate) fn new(
        tx: &'t mut Transaction<'w, Any>,
        shared: &'t Shared,
        catalog: Arc<Catalog>,
        session: &'t SessionState,
        parameters: &'t [Datum],
        changes: &'t RefCell<CatalogChanges>,
    ) -> Self {
        Self {
            tx,
            shared,
            catalog,
            session,
            parameters,
            changes,
            outer: Vec::new(),
            with: HashMap::new(),
            hashed: HashMap::new(),
            results: HashMap::new(),
            put_off: Vec::new(),
            is_one_of_several: false,
            steps: 0,
            bytes: 0,
        }
    }

    /// Changes the catalog. The function returns the numbers of the entries that it has changed or removed.
    pub(crate) fn change_catalog(
        &mut self,
        change: impl FnOnce(&mut Catalog) -> Result<Vec<u32>, SqlError>,
    ) -> Result<(), Stop> {
        let mut catalog = (*self.catalog).clone();
        let changed = change(&mut catalog)?;
        let catalog = Arc::new(catalog);
        self.shared.put_catalog(self.tx, catalog.clone(), &changed)?;
        self.catalog = catalog;
        Ok(())
    }

    /// Counts a step, and stops if the statement was told to.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<(), Stop> {
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(256) {
            self.session.check_cancelled()?;
        }
        Ok(())
    }

    /// Counts a row that is kept until the statement ends.
    pub(crate) fn keep(&mut self, row: &[Datum]) -> Result<(), Stop> {
        self.bytes += 64 + row.len() * 32 + row.iter().map(text_bytes).sum::<usize>();
        if self.bytes > BYTES_MAX {
            return Err(SqlError::new("54000", "the statement's rows need more than 1 GB").into());
        }
        Ok(())
    }
}

fn text_bytes(value: &Datum) -> usize {
    match value {
        Datum::Text(text) => text.len(),
        Datum::Bytes(bytes) => bytes.len(),
        // Its digits are in an allocation of their own.
        Datum::Numeric(_) => 96,
        Datum::Array(elements) => elements.iter().map(|element| 32 + text_bytes(element)).sum(),
        _ => 0,
    }
}
