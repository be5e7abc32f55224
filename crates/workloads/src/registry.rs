//! Registry of workloads: the only place where a workload's name becomes its type.
//!
//! Adding a workload takes one new module and one line in the call of `registry!` below. The command's parser, help
//! and lists use the registry.

use crate::array::ArrayOptions;
use crate::articles::ArticlesOptions;
use crate::datatypes::{HashtableOptions, PriorityQueueOptions, VectorOptions};
use crate::tables32::Tables32Options;
use crate::tickets::TicketsOptions;
use crate::tpcc::TpccOptions;
use crate::ycsb::YcsbOptions;
use hotrow_driver::{OptionError, WorkloadDefinition, WorkloadInfo, WorkloadOptions};
use hotrow_stress::StressOptions;

macro_rules! registry {
    ($($options:ty $(=> $parse:path)?),* $(,)?) => {
        /// All workloads, the main one first.
        pub const WORKLOADS: &[WorkloadInfo] = &[$(<$options>::INFO),*];

        /// Parses the options of the workload `name` from `given`: names without dashes, and values.
        ///
        /// # Errors
        ///
        /// [`OptionError`] if there is no such workload or option, or the option does not admit the value.
        pub fn parse(name: &str, given: &[(&str, &str)]) -> Result<WorkloadOptions, OptionError> {
            $(if name == <$options>::INFO.name {
                return registry!(@parse $options $(=> $parse)?)(given);
            })*
            let known = WORKLOADS.iter().map(|workload| workload.name).collect();
            Err(OptionError::UnknownWorkload { name: name.to_owned(), known })
        }
    };
    (@parse $options:ty) => { WorkloadOptions::parse_as::<$options> };
    (@parse $options:ty => $parse:path) => { $parse };
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
    // Compiled for each protocol in its own crate, which is not optimized as the others are.
    StressOptions => hotrow_stress::parse,
}
