//! The driver on virtual cores.
//!
//! Each core has a worker and a client, as each thread has in the real driver. Each core decides by its own clock
//! whether a transaction counts as measured.

use super::{Counts, Measurement};
use crate::error::BenchError;
use crate::report::WorkingSet;
use crate::workload::Workload;
use hotrow::sync::clock::{Duration, whole_nanoseconds};
use hotrow::{Engine, Protocol, Worker};
use hotrow_sim::htm::{RegionLines, Regions};
use hotrow_sim::profile::ProfileReport;
use hotrow_sim::{Config, End, LINE_BYTES, Machine, Simulation, SimulationReport};
use std::cell::RefCell;

/// Settings of a run on virtual cores.
#[derive(Debug, Clone)]
pub struct VirtualSettings {
    /// Model of the machine.
    pub machine: Machine,
    /// Number of cores that run workers.
    pub cores: usize,
    /// Virtual time to run before measuring, so that caches fill and conflicts begin.
    pub warmup: Duration,
    /// Virtual time to measure.
    pub measured: Duration,
    /// Seed of the clients' inputs and of the simulation.
    pub seed: u64,
    /// True if the measured time is profiled.
    pub profiles: bool,
}

/// A measurement, one of the workers, and the profile if one was asked for.
pub(crate) type Profiled<P, W> = (Measurement<<W as Workload<P>>::Client>, Worker<P>, Option<ProfileReport>);

/// Runs `workload` on virtual cores.
///
/// # Errors
///
/// The errors of [`measure`](super::measure), and [`BenchError::Simulation`].
pub(crate) fn measure<P: Protocol, W: Workload<P>>(
    engine: &Engine<P>,
    workload: &W,
    settings: &VirtualSettings,
) -> Result<Profiled<P, W>, BenchError> {
    let VirtualSettings { machine, cores, warmup, measured, seed, profiles } = settings;
    let mut config = Config::new(machine.clone(), *cores);
    let end = warmup.saturating_add(*measured);
    config.seed = *seed;
    config.until_ns = Some(whole_nanoseconds(end));
    config.profile_from_ns = profiles.then_some(whole_nanoseconds(*warmup));
    // A transaction that began in time may finish; the hard limit leaves it 19 times the length of the run.
    config.until_ns_hard = Some(whole_nanoseconds(end.saturating_mul(20)));
    let simulation = Simulation::new(config).map_err(|error| BenchError::Simulation(error.to_string()))?;

    let kinds = workload.kinds();
    let mut crew = Vec::with_capacity(*cores);
    for number in 0..*cores {
        crew.push(RefCell::new(Some((engine.worker()?, workload.client(number, *cores, *seed)))));
    }
    let outcome = simulation.try_run(|core| {
        let (mut worker, mut client) = crew[core].take().expect("each core has its own");
        let mut counts = Counts::new(kinds.len());
        while !hotrow_sim::should_stop() {
            let is_measured = *warmup <= Duration::from_nanos(hotrow_sim::now());
            counts.run_one(workload, &mut worker, &mut client, is_measured, None).map_err(
                |(kind, message)| BenchError::Transaction { kind: kinds[kind], worker: core, message },
            )?;
        }
        counts.count_measured(&worker);
        Ok::<_, BenchError>((worker, client, counts))
    });
    let SimulationReport { end, results, regions, profile, .. } = outcome;
    if let End::Panicked { core, .. } = end {
        return Err(BenchError::Panicked { worker: core, message: end.to_string() });
    }
    if !end.is_finished() {
        return Err(BenchError::Simulation(end.to_string()));
    }
    let mut sum = Counts::new(kinds.len());
    let mut clients = Vec::with_capacity(*cores);
    let mut first = None;
    for result in results {
        let (worker, client, counts) = result.expect("the core has finished")?;
        sum.add(&counts);
        clients.push(client);
        first.get_or_insert(worker);
    }
    let worker = first.expect("there is at least one core");
    let working_set = working_set(regions);
    Ok((Measurement { elapsed: *measured, counts: sum, clients, working_set }, worker, profile))
}

/// The mean working set of the regions that committed.
fn working_set(regions: Regions) -> Option<WorkingSet> {
    let mean = |lines: u64| (lines * LINE_BYTES as u64) as f64 / regions.commits as f64;
    let RegionLines { read, written, all } = regions.lines;
    (regions.commits > 0).then(|| WorkingSet {
        read_bytes: mean(read),
        written_bytes: mean(written),
        bytes: mean(all),
    })
}
