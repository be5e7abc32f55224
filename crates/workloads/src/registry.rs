//! Registry of workloads: the only place where a workload's name becomes its type.
//!
//! Adding a workload takes one new module and one line in the call of `registry!` below. The command's parser, help
//! and lists use the registry.

use crate::array::ArrayOptions;
use crate::definition::{WorkloadDefinition, WorkloadInfo, WorkloadOptions};
use crate::options::OptionError;
use crate::stress::StressOptions;
use crate::tables32::Tables32Options;
use crate::tpcc::TpccOptions;
use crate::ycsb::YcsbOptions;

macro_rules! registry {
    ($($options:ty),* $(,)?) => {
        /// All workloads, the main one first.
        pub const WORKLOADS: &[WorkloadInfo] = &[$(<$options>::INFO),*];

        impl WorkloadOptions {
            /// Parses the options of the workload `name` from `given`: names without dashes, and values.
            ///
            /// # Errors
            ///
            /// [`OptionError`] if there is no such workload or option, or the option does not admit the value.
            pub fn parse(name: &str, given: &[(&str, &str)]) -> Result<Self, OptionError> {
                $(if name == <$options>::INFO.name {
                    return Self::parse_as::<$options>(given);
                })*
                Err(OptionError::UnknownWorkload { name: name.to_owned() })
            }
        }
    };
}

registry! {
    TpccOptions,
    YcsbOptions,
    Tables32Options,
    ArrayOptions,
    StressOptions,
}

/// Returns the names of all workloads.
pub(crate) fn names() -> Vec<&'static str> {
    WORKLOADS.iter().map(|workload| workload.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_can_be_had_with_its_defaults_and_reports_all_its_options() {
        for workload in WORKLOADS {
            let options = WorkloadOptions::parse(workload.name, &[]).unwrap();
            assert_eq!(options.info(), workload);
            let reported = options.to_json();
            let names = workload.options.iter().map(|option| option.name.replace('-', "_"));
            assert!(names.eq(reported.keys().cloned()), "{reported:?}");
        }
    }

    #[test]
    fn no_two_workloads_have_one_name() {
        let mut names = names();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), WORKLOADS.len());
    }

    #[test]
    fn an_unknown_workload_is_answered_with_those_there_are() {
        let words = WorkloadOptions::parse("articles", &[]).unwrap_err().to_string();
        assert_eq!(words, "unknown workload \"articles\"; there are: tpcc, ycsb, tables32, array, stress");
    }
}
