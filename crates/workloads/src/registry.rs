//! Registry of workloads: the only place where a workload's name becomes its type.
//!
//! Adding a workload takes one new module and one line in the call of `registry!` below. The command's parser, help
//! and lists use the registry.

use crate::array::ArrayOptions;
use crate::articles::ArticlesOptions;
use crate::datatypes::{HashtableOptions, PriorityQueueOptions, VectorOptions};
use crate::stress::StressOptions;
use crate::tables32::Tables32Options;
use crate::tickets::TicketsOptions;
use crate::tpcc::TpccOptions;
use crate::ycsb::YcsbOptions;
use hotrow_driver::{OptionError, WorkloadDefinition, WorkloadInfo, WorkloadOptions};

macro_rules! registry {
    ($($options:ty),* $(,)?) => {
        /// All workloads, the main one first.
        pub const WORKLOADS: &[WorkloadInfo] = &[$(<$options>::INFO),*];

        /// Parses the options of the workload `name` from `given`: names without dashes, and values.
        ///
        /// # Errors
        ///
        /// [`OptionError`] if there is no such workload or option, or the option does not admit the value.
        pub fn parse(name: &str, given: &[(&str, &str)]) -> Result<WorkloadOptions, OptionError> {
            $(if name == <$options>::INFO.name {
                return WorkloadOptions::parse_as::<$options>(given);
            })*
            let known = WORKLOADS.iter().map(|workload| workload.name).collect();
            Err(OptionError::UnknownWorkload { name: name.to_owned(), known })
        }
    };
}

// Its tests are in `tests/native`: in a unit test they would compile each workload for each protocol once more.
registry! {
    TpccOptions,
    YcsbOptions,
    ArticlesOptions,
    Tables32Options,
    ArrayOptions,
    TicketsOptions,
    HashtableOptions,
    VectorOptions,
    PriorityQueueOptions,
    StressOptions,
}
