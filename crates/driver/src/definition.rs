//! Definition of a workload: its description, its options, and the function that loads its data.
//!
//! A workload is a module with a type for its options, which implements [`WorkloadDefinition`]. [`WorkloadOptions`]
//! holds a value of any such type behind a trait object, so that the command treats all workloads alike. The trait
//! object is called once per run, before the data are loaded. It knows its own type and asks the protocols'
//! registry for the type behind the protocol's name. Everything from loading to the report is compiled for these
//! two types, so that no transaction pays for a call through the trait object.

use crate::error::BenchError;
use crate::observer::{Host, Observer};
use crate::options::{OptionError, OptionInfo, OptionValues};
use crate::run::{BaselineRun, RunOutcome, RunSpec, run_defined};
use crate::workload::Workload;
use hotrow::chopping::Chopping;
use hotrow::{Database, Protocol};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// Description of a workload, available without choosing its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadInfo {
    /// Name, as given to the command.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// Paper or specification, with the section.
    pub source: &'static str,
    /// True if all its transactions are procedures. A run can then delay each of their operations
    /// ([`Workload::database_of_procedures`]).
    pub runs_procedures: bool,
    /// True if its tables are durable: their types are [stored](hotrow::Stored), so that a run can log its commits.
    pub is_durable: bool,
    /// Options of the workload.
    pub options: &'static [OptionInfo],
    /// Baselines of the workload.
    pub baselines: &'static [BaselineInfo],
    /// Example of options on the command line.
    pub example: &'static str,
}

/// Description of a baseline: another way to do a workload's work, without Hotrow, to compare protocols with. It has the
/// same inputs, is measured by the same driver, and passes the same checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaselineInfo {
    /// Name, as given to the command in place of a protocol's. No protocol has it.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
}

/// How far procedures are chopped (dbx-tc §6.2, Figures 10 and 11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refinement {
    /// With reordering and commutative changes only.
    Default,
    /// Transactions that only read run on snapshots, besides.
    Snapshots,
    /// The workload's declarations, besides: changes that are published later, rows that belong to others.
    Full,
}

/// Options of a workload: the only type that a workload defines beside its implementation of [`Workload`].
///
/// Reports show the options as they are serialized: an object whose keys are the names of [`WorkloadInfo::options`]
/// in their order, with `_` for `-`.
pub trait WorkloadDefinition: fmt::Debug + Serialize + Send + Sync + Sized + 'static {
    /// The workload with its data loaded into an engine.
    type Loaded<P: Protocol>: Workload<P>;

    /// Description of the workload.
    const INFO: WorkloadInfo;
    /// True if runs without concurrency control are the limit against which its protocols are measured: then `none` is compiled for it as
    /// a type of its own ([`with_measured_protocol`](hotrow::protocols::with_measured_protocol)).
    const MEASURES_LIMIT: bool = false;

    /// Reads the options from their values; an option that was not given has its default.
    ///
    /// # Errors
    ///
    /// [`OptionError`] if an option does not admit its value.
    fn parse(values: &OptionValues<'_>) -> Result<Self, OptionError>;

    /// Reads the options from the values `given`: names without dashes, and values.
    ///
    /// # Errors
    ///
    /// [`OptionError`] if there is no such option, or the option does not admit the value.
    fn from_given(given: &[(&str, &str)]) -> Result<Self, OptionError> {
        Self::parse(&OptionValues::new(Self::INFO.name, Self::INFO.options, given)?)
    }

    /// Estimates the memory in use for the data once they are loaded, in bytes.
    fn data_bytes_estimate(&self) -> u64;

    /// Loads the data into a new database, with up to `threads` threads.
    ///
    /// # Errors
    ///
    /// [`BenchError`] if the data could not be loaded.
    fn load<P: Protocol>(
        &self,
        database: &Database<P>,
        threads: usize,
        seed: u64,
        observer: &dyn Observer,
    ) -> Result<Self::Loaded<P>, BenchError>;

    /// Traces the workload's procedures, to be chopped. `None` if its transactions are no procedures, or were not described.
    ///
    /// # Errors
    ///
    /// [`BenchError`] if the traces could not be made.
    fn chopping(&self, _refinement: Refinement) -> Option<Result<Chopping, BenchError>> {
        None
    }

    /// Makes the workload's data for one of its [`WorkloadInfo::baselines`] and runs it. `None` if there is no baseline of
    /// this name.
    ///
    /// # Errors
    ///
    /// As [`BaselineRun::run`].
    fn run_baseline(&self, _name: &str, _run: BaselineRun<'_>) -> Option<Result<RunOutcome, BenchError>> {
        None
    }

    /// Loads the workload's data into a distributed store, and runs it there. `None` if its tables cannot be in one.
    ///
    /// # Errors
    ///
    /// As [`BaselineRun::run_in_store`]; [`BenchError::Load`] if the address is none, or the data could not be loaded.
    fn run_in_store(&self, _address: &str, _run: BaselineRun<'_>) -> Option<Result<RunOutcome, BenchError>> {
        None
    }
}

/// A workload with its options, of any type.
#[derive(Clone)]
pub struct WorkloadOptions(Arc<dyn AnyOptions>);

impl WorkloadOptions {
    /// Parses the options of the workload `W` from `given`: names without dashes, and values.
    ///
    /// # Errors
    ///
    /// [`OptionError`] if `W` has no such option, or the option does not admit the value.
    pub fn parse_as<W: WorkloadDefinition>(given: &[(&str, &str)]) -> Result<Self, OptionError> {
        W::from_given(given).map(Self::from)
    }

    /// Returns the workload's description.
    pub fn info(&self) -> &'static WorkloadInfo {
        self.0.info()
    }

    /// Returns the values of the options, for reports.
    pub fn to_json(&self) -> Map<String, Value> {
        self.0.to_json()
    }

    /// Traces the workload's procedures: [`WorkloadDefinition::chopping`].
    pub fn chopping(&self, refinement: Refinement) -> Option<Result<Chopping, BenchError>> {
        self.0.chopping(refinement)
    }

    /// Estimates the memory in use by the process once the data are loaded, in bytes.
    pub fn resident_bytes_estimate(&self) -> u64 {
        self.0.data_bytes_estimate().saturating_add(BASE_BYTES)
    }

    /// Loads and runs the workload; these options must be the ones in `spec`.
    pub(crate) fn run(
        &self,
        spec: &RunSpec,
        host: &dyn Host,
        observer: &dyn Observer,
    ) -> Result<RunOutcome, BenchError> {
        self.0.run(spec, host, observer)
    }
}

/// Memory in use under every workload, in bytes.
const BASE_BYTES: u64 = 20_000_000;

impl<W: WorkloadDefinition> From<W> for WorkloadOptions {
    fn from(options: W) -> Self {
        Self(Arc::new(options))
    }
}

impl fmt::Debug for WorkloadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// [`WorkloadDefinition`] as a trait object. It has the functions without a protocol's type, and a run, which looks
/// that type up itself.
trait AnyOptions: fmt::Debug + Send + Sync {
    fn info(&self) -> &'static WorkloadInfo;
    fn to_json(&self) -> Map<String, Value>;
    fn data_bytes_estimate(&self) -> u64;
    fn chopping(&self, refinement: Refinement) -> Option<Result<Chopping, BenchError>>;
    fn run(&self, spec: &RunSpec, host: &dyn Host, observer: &dyn Observer)
    -> Result<RunOutcome, BenchError>;
}

impl<W: WorkloadDefinition> AnyOptions for W {
    fn info(&self) -> &'static WorkloadInfo {
        const { &W::INFO }
    }

    fn to_json(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(values)) => values,
            other => {
                unreachable!("the options of {} are serialized as {other:?}, not as an object", W::INFO.name)
            }
        }
    }

    fn data_bytes_estimate(&self) -> u64 {
        WorkloadDefinition::data_bytes_estimate(self)
    }

    fn chopping(&self, refinement: Refinement) -> Option<Result<Chopping, BenchError>> {
        WorkloadDefinition::chopping(self, refinement)
    }

    fn run(
        &self,
        spec: &RunSpec,
        host: &dyn Host,
        observer: &dyn Observer,
    ) -> Result<RunOutcome, BenchError> {
        run_defined(self, spec, host, observer)
    }
}
