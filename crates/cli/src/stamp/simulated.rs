//! `hotrow sim stamp`: the STAMP applications on virtual cores, in virtual time.
//!
//! Each phase of an application is a simulation of its own, because an application asks for its workers once for each. Its
//! input is generated, and its result verified, outside of virtual time. Of what an application computes between its accesses to a store
//! only the most is charged, so there is no sequential version to compare with: variants are compared with each other.

use super::measuring::run_with_transactions;
use super::plan::{NAME, StoreArguments, Variant, options_help, protocols, variants};
use super::report::{self, StampRun};
use crate::arguments::{Format, Refusal, machine_called, shortened};
use crate::error::CommandError;
use crate::fidelity::Fidelity;
use crate::host::ThisHost;
use crate::progress::Progress;
use crate::text::{self, print};
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use hotrow_sim::{Config, Machine, Simulation};
use hotrow_stamp::Spawning;
use hotrow_stamp::registry::ApplicationOptions;
use hotrow_workloads::{BenchError, Host as _};
use serde_json::json;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

/// The runs that `hotrow sim stamp` makes.
#[derive(Debug)]
pub(crate) struct VirtualStampPlan {
    applications: Vec<ApplicationOptions>,
    /// The protocols, each with its variants, the words first if they are among them.
    stores: Vec<(&'static str, Vec<Variant>)>,
    cores: Vec<usize>,
    machine: Machine,
    /// The virtual time at which a run is given up.
    virtual_time_max: Duration,
    format: Format,
    preset: Option<String>,
    set: Vec<String>,
}

#[derive(Debug, Args)]
struct VirtualStampArguments {
    #[command(flatten)]
    stores: StoreArguments,
    /// Virtual cores, one worker each; several numbers, separated by commas, are several runs
    #[arg(long, value_name = "N[,N...]", default_value = "1,2,4,8", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024), allow_negative_numbers = true)]
    cores: Vec<u32>,
    /// The machine: a name from `hotrow list`, or a model's file
    #[arg(long, value_name = "NAME|FILE", default_value = "server-128")]
    machine: String,
    /// Virtual time after which a run that has not ended is given up, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 3_600_000, value_parser = clap::value_parser!(u64).range(1..=3_600_000), allow_negative_numbers = true)]
    virtual_ms_max: u64,
}

/// The subcommand of `hotrow sim`.
pub(crate) fn command() -> Command {
    VirtualStampArguments::augment_args(Command::new(NAME))
        .about("Runs STAMP applications over several stores on virtual cores and compares the stores")
        .after_help(format!(
            "An application runs to completion and verifies its result; the exit status is 1 if a verification fails. \
             Of what an application computes between its accesses to a store only the distances of kmeans, the routes of labyrinth and the \
             search of intruder take virtual time, so the variant sequential is left out.\n\n{}\nExample:\n  \
             hotrow sim stamp vacation --preset high --cores 1,2,4,8,16,32 --machine drp --variant words,predicates",
            options_help()
        ))
}

/// Reads the arguments.
pub(crate) fn plan(matches: &ArgMatches) -> Result<VirtualStampPlan, Refusal> {
    let (_, matches) = matches.subcommand().expect("the caller has seen the subcommand");
    let VirtualStampArguments { stores, cores, machine, virtual_ms_max } =
        VirtualStampArguments::from_arg_matches(matches).map_err(shortened)?;
    let cores: Vec<usize> = cores.into_iter().map(|cores| cores as usize).collect();
    let machine = machine_called(&machine)?;
    if let Some(cores) = cores.iter().find(|cores| **cores > machine.threads()) {
        return Err(Refusal::Message(format!(
            "machine {} has {} hardware threads, not {cores}",
            machine.name,
            machine.threads()
        )));
    }
    let applications = stores.applications()?;
    let StoreArguments { protocol, variant, preset, set, format, .. } = stores;
    let of_protocol = |protocol| {
        let mut variants = variants(&variant, protocol)?;
        variants.sort_by_key(|variant| *variant != Variant::Words);
        Ok((protocol, variants))
    };
    let stores = protocols(&protocol)?.into_iter().map(of_protocol).collect::<Result<_, Refusal>>()?;
    let virtual_time_max = Duration::from_millis(virtual_ms_max);
    Ok(VirtualStampPlan { applications, stores, cores, machine, virtual_time_max, format, preset, set })
}

/// One run on virtual cores.
struct VirtualRun {
    protocol: &'static str,
    variant: Variant,
    cores: usize,
    /// The run; its seconds are virtual.
    run: StampRun,
    /// The virtual time of the words under the same protocol on as many cores, divided by this run's.
    to_words: Option<f64>,
}

/// Runs the applications, one after the other.
pub(crate) fn run(plan: &VirtualStampPlan, host: &ThisHost) -> Result<(), CommandError> {
    let error = Fidelity::kept().in_words();
    let mut failed = Vec::new();
    for application in &plan.applications {
        let runs = run_application(plan, application, host, &error)?;
        if plan.format == Format::Table {
            print(&table(plan, application, &runs, &error))?;
        }
        for VirtualRun { protocol, variant, cores, run, .. } in &runs {
            if let Err(failure) = &run.verification {
                let setup = format!("{} under {protocol} on {cores} cores", variant.name());
                failed.push(format!("{} {setup}: {failure}", application.name()));
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(CommandError::Checks(failed)) }
}

fn run_application(
    plan: &VirtualStampPlan,
    application: &ApplicationOptions,
    host: &ThisHost,
    error: &str,
) -> Result<Vec<VirtualRun>, CommandError> {
    let mut runs = Vec::new();
    for (protocol, variants) in &plan.stores {
        for &cores in &plan.cores {
            let mut words = None;
            for &variant in variants {
                let label = format!("{} {} {protocol}, {cores} cores", application.name(), variant.name());
                let _progress = Progress::new(label);
                let run = run_once(plan, application, variant, protocol, cores)?;
                if variant == Variant::Words {
                    words = Some(run.seconds);
                }
                let to_words = words.map(|words| words / run.seconds);
                let run = VirtualRun { protocol, variant, cores, run, to_words };
                if plan.format == Format::Json {
                    print(&json_line(plan, application, &run, host, error))?;
                }
                runs.push(run);
            }
        }
    }
    Ok(runs)
}

/// The reason why a simulation did not finish: the payload with which the runner leaves the application.
struct Unfinished(String);

/// Runs an application on virtual cores. The result's seconds are virtual.
///
/// # Errors
///
/// [`BenchError::Simulation`] if a simulation does not finish: a core has panicked, cores wait for each other, or the limit of
/// virtual time has passed.
fn run_once(
    plan: &VirtualStampPlan,
    application: &ApplicationOptions,
    variant: Variant,
    protocol: &str,
    cores: usize,
) -> Result<StampRun, BenchError> {
    let virtual_ns = Cell::new(0);
    let limit_ns = hotrow::sync::clock::whole_nanoseconds(plan.virtual_time_max);
    let runner = Spawning::new(cores, |cores, job: &(dyn Fn(usize) + Sync)| {
        let mut config = Config::new(plan.machine.clone(), cores);
        config.until_ns_hard = Some(limit_ns.saturating_sub(virtual_ns.get()));
        let simulation = Simulation::new(config).expect("the machine has as many hardware threads");
        let report = simulation.try_run(job);
        if !report.end.is_finished() {
            // The application cannot go on without its workers. No panic: nothing is printed.
            resume_unwind(Box::new(Unfinished(report.end.to_string())));
        }
        virtual_ns.set(virtual_ns.get() + report.virtual_ns());
    });
    let run =
        catch_unwind(AssertUnwindSafe(|| run_with_transactions(application, variant, protocol, &runner)));
    match run {
        Ok(run) => Ok(StampRun { seconds: virtual_ns.get() as f64 / 1e9, ..run }),
        Err(payload) => match payload.downcast::<Unfinished>() {
            Ok(unfinished) => {
                let run =
                    format!("{} {} under {protocol} on {cores} cores", application.name(), variant.name());
                Err(BenchError::Simulation(format!("{run}: {}", unfinished.0)))
            }
            Err(payload) => resume_unwind(payload),
        },
    }
}

/// The table of an application.
fn table(
    plan: &VirtualStampPlan,
    application: &ApplicationOptions,
    runs: &[VirtualRun],
    error: &str,
) -> String {
    let rows = runs.iter().map(|VirtualRun { protocol, variant, cores, run, to_words }| {
        vec![
            variant.name().to_owned(),
            (*protocol).to_owned(),
            report::verdict(run),
            cores.to_string(),
            text::quantity(run.seconds * 1e3),
            to_words.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
            text::count(run.commits),
            text::count(run.aborts),
            text::count(run.items_max),
        ]
    });
    let header =
        ["variant", "protocol", "result", "cores", "virtual ms", "to words", "commits", "aborts", "items"];
    let table = text::table(3, &header, rows);
    format!("{} on virtual cores of {}\n{table}\n{error}\n", application.name(), plan.machine.name)
}

/// One run as a JSON object in a line.
fn json_line(
    plan: &VirtualStampPlan,
    application: &ApplicationOptions,
    run: &VirtualRun,
    host: &ThisHost,
    error: &str,
) -> String {
    let VirtualRun { protocol, variant, cores, run, to_words } = run;
    let line = json!({
        "workload": NAME,
        "application": application.name(),
        "variant": variant.name(),
        "protocol": protocol,
        "cores": cores,
        "virtual_seconds": run.seconds,
        "to_words": to_words,
        "commits": run.commits,
        "aborts": run.aborts,
        "items_max": run.items_max,
        "verified": run.verification.is_ok(),
        "failure": run.verification.as_ref().err().map(ToString::to_string),
        "counts": report::counts(run),
        "options": { "preset": plan.preset, "set": plan.set },
        "revision": host.revision(),
        "machine": plan.machine.name,
        "error_against_real_runs": error,
    });
    format!("{line}\n")
}
