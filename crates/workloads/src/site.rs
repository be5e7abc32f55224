//! The places where workloads run procedures.

use hotrow::{Database, Error, Key, Procedure, Procedures, Protocol, TableRef, Value, Worker};

/// A place where procedures run: a database of this process, or tables elsewhere.
pub(crate) trait Site {
    /// Runs a procedure to its end.
    fn execute<T: Procedure>(&mut self, procedure: &T) -> Result<T::Output, Failure>;

    /// As [`execute`](Self::execute), each operation at once.
    fn execute_eagerly<T: Procedure>(&mut self, procedure: &T) -> Result<T::Output, Failure>;

    /// True if operations may be deferred.
    fn defers(&self) -> bool;

    /// Visits all rows of a table, while nothing else runs.
    fn for_each<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        visit: impl FnMut(&K, &R),
    ) -> Result<u64, Failure>;
}

/// A procedure that did not commit.
#[derive(Debug)]
pub(crate) struct Failure {
    /// True if it has rolled itself back.
    pub(crate) is_rollback: bool,
    pub(crate) message: String,
}

impl From<Error> for Failure {
    #[cold]
    fn from(error: Error) -> Self {
        Self { is_rollback: matches!(error, Error::Rollback(_)), message: error.to_string() }
    }
}

/// A database of this process, and a worker of it.
pub(crate) struct Here<'a, P: Protocol> {
    pub(crate) database: &'a Database<P>,
    pub(crate) worker: &'a mut Worker<P>,
}

impl<P: Protocol> Site for Here<'_, P> {
    #[inline(always)]
    fn execute<T: Procedure>(&mut self, procedure: &T) -> Result<T::Output, Failure> {
        Ok(self.database.execute_on(self.worker, procedure)?)
    }

    #[inline(always)]
    fn execute_eagerly<T: Procedure>(&mut self, procedure: &T) -> Result<T::Output, Failure> {
        Ok(self.database.execute_eagerly(self.worker, procedure)?)
    }

    #[inline(always)]
    fn defers(&self) -> bool {
        self.database.allows_deferral()
    }

    fn for_each<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        visit: impl FnMut(&K, &R),
    ) -> Result<u64, Failure> {
        Ok(self.database.table_of(table).for_each(self.worker, visit)?)
    }
}
