//! One run on virtual cores, as it is reported.

use hotrow_sim::profile::ProfileReport;
use hotrow_workloads::RunReport;

/// One run on virtual cores.
#[derive(Debug)]
pub(crate) struct VirtualRun {
    /// The factor by which the machine's transfer costs were multiplied.
    pub(crate) factor: f64,
    /// The report of the run.
    pub(crate) report: RunReport,
    /// The profile of the run, if one was asked for.
    pub(crate) profile: Option<ProfileReport>,
}
