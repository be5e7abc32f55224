//! The execution of procedures.

use super::Remote;
use crate::cluster::Cluster;
use crate::error::ClusterError;
use hotrow_procedures::Procedure;

impl Cluster {
    /// Runs a procedure as a transaction. Its operations are recorded, and those that do not depend on each other ask the store together;
    /// [`force`](hotrow_procedures::Context::force) waits for all before it. Tables are named by
    /// [`RemoteTable::reference`](crate::RemoteTable::reference).
    ///
    /// # Errors
    ///
    /// As [`transact`](Self::transact); [`Error::Rollback`](hotrow_core::Error::Rollback) if the procedure asked for it.
    pub fn execute<T: Procedure>(&self, procedure: &T) -> Result<T::Output, ClusterError> {
        let only_reads = procedure.profile().only_reads();
        self.attempt(only_reads, |tx| {
            let mut context = Remote::new(tx);
            let output = procedure.run(&mut context)?;
            context.settle(&output)
        })
    }
}
