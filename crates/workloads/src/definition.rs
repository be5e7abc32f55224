//! The definition of a workload: its description, its options, and the way to its data.
//!
//! A workload is a module with a type for its options, which implements [`WorkloadDefinition`]. [`WorkloadOptions`] is
//! a value of any such type behind a trait object, so that the command treats all workloads alike. The trait object
//! is called once per run, before the data are loaded: it knows its own type, asks the protocols' registry for the
//! type behind the protocol's name, and everything from loading to the report is compiled for these two types. So no
//! transaction pays for a call through the trait object.

use crate::error::BenchError;
use crate::observer::{Host, Observer};
use crate::options::{OptionError, OptionInfo, OptionValues};
use crate::run::{Outcome, RunSpec, run_defined};
use crate::workload::Workload;
use hotrow::{Engine, Protocol};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// The description of a workload, known without choosing its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadInfo {
    /// The name, as given to the command.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The paper or specification, with the section.
    pub source: &'static str,
    /// True if all its transactions are procedures, whose operations can be made to arrive one at a time
    /// ([`Workload::database_mut`]).
    pub runs_procedures: bool,
    /// Its options.
    pub options: &'static [OptionInfo],
    /// Options as an example.
    pub example: &'static str,
}

/// The options of a workload: the one type that a workload has to define beside [`Workload`] itself.
///
/// Reports show the options as they are serialized: an object whose keys are the names of [`WorkloadInfo::options`] in
/// their order, with `_` for `-`.
pub trait WorkloadDefinition: fmt::Debug + Serialize + Send + Sync + Sized + 'static {
    /// The workload with its data in an engine.
    type Loaded<P: Protocol>: Workload<P>;

    /// The description.
    const INFO: WorkloadInfo;

    /// Reads the options from their values, each given or the default.
    ///
    /// # Errors
    ///
    /// [`OptionError`] if an option cannot have its value.
    fn parse(values: &OptionValues<'_>) -> Result<Self, OptionError>;

    /// Estimates how much memory the data will have in use once they are loaded, in bytes.
    fn data_bytes_estimate(&self) -> u64;

    /// Loads the data into a new engine, with up to `threads` threads.
    ///
    /// # Errors
    ///
    /// [`BenchError`] if the data could not be loaded.
    fn load<P: Protocol>(
        &self,
        engine: &Engine<P>,
        threads: usize,
        seed: u64,
        observer: &dyn Observer,
    ) -> Result<Self::Loaded<P>, BenchError>;
}

/// A workload with its options, whatever their type.
#[derive(Clone)]
pub struct WorkloadOptions(Arc<dyn AnyOptions>);

impl WorkloadOptions {
    /// The workload `W` with the options `given`: names without dashes, and values.
    ///
    /// # Errors
    ///
    /// [`OptionError`] if there is no such option, or it cannot have the value.
    pub fn parse_as<W: WorkloadDefinition>(given: &[(&str, &str)]) -> Result<Self, OptionError> {
        W::parse(&OptionValues::new(W::INFO.name, W::INFO.options, given)?).map(Self::from)
    }

    /// The workload's description.
    pub fn info(&self) -> &'static WorkloadInfo {
        self.0.info()
    }

    /// The values of the options, for reports.
    pub fn to_json(&self) -> Map<String, Value> {
        self.0.to_json()
    }

    /// Estimates how much memory the process will have in use once the data are loaded, in bytes.
    pub fn resident_bytes_estimate(&self) -> u64 {
        self.0.data_bytes_estimate().saturating_add(BASE_BYTES)
    }

    /// Loads and runs the workload; `spec` is the one that these options are a part of.
    pub(crate) fn run(
        &self,
        spec: &RunSpec,
        host: &dyn Host,
        observer: &dyn Observer,
    ) -> Result<Outcome, BenchError> {
        self.0.run(spec, host, observer)
    }
}

/// Memory in use whatever the workload, in bytes.
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

/// [`WorkloadDefinition`] as a trait object: what needs no protocol's type, and a run, which finds that type itself.
trait AnyOptions: fmt::Debug + Send + Sync {
    fn info(&self) -> &'static WorkloadInfo;
    fn to_json(&self) -> Map<String, Value>;
    fn data_bytes_estimate(&self) -> u64;
    fn run(&self, spec: &RunSpec, host: &dyn Host, observer: &dyn Observer) -> Result<Outcome, BenchError>;
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

    fn run(&self, spec: &RunSpec, host: &dyn Host, observer: &dyn Observer) -> Result<Outcome, BenchError> {
        run_defined(self, spec, host, observer)
    }
}
