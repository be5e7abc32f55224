//! The runs of `hotrow bench stamp`.

use super::plan::{Setup, StampPlan, Variant};
use super::report::{self, StampRun};
use crate::arguments::Format;
use crate::error::CommandError;
use crate::host::ThisHost;
use crate::progress::Progress;
use crate::text::print;
use hotrow::{Any, Engine, Occ, Protocol, RetryPolicy};
use hotrow_stamp::registry::ApplicationOptions;
use hotrow_stamp::{OneThread, Sequential, Spawning, Tracked, Typed, TypedOptions, Words, on_threads};

/// Runs the applications, one after the other, each with its rounds.
pub(crate) fn run(plan: &StampPlan, host: &ThisHost) -> Result<(), CommandError> {
    let mut failed = Vec::new();
    for application in &plan.applications {
        let runs = run_application(plan, application, host)?;
        if plan.format == Format::Table {
            print(&report::table(plan, application, &runs))?;
        }
        for run in &runs {
            if let Err(failure) = &run.verification {
                failed.push(format!("{} {}: {failure}", application.name(), plan.setups[run.setup]));
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(CommandError::Checks(failed)) }
}

/// Runs the rounds of an application.
fn run_application(
    plan: &StampPlan,
    application: &ApplicationOptions,
    host: &ThisHost,
) -> Result<Vec<StampRun>, CommandError> {
    let mut runs = Vec::new();
    let total = u64::from(plan.repeat) * plan.setups.len() as u64;
    let progress = Progress::new(application.name().to_owned());
    for round in 0..plan.repeat {
        let mut sequential_seconds = f64::NAN;
        for (setup, what) in plan.setups.iter().enumerate() {
            progress.part(runs.len() as u64, total);
            let mut run = run_once(application, *what);
            (run.setup, run.round) = (setup, round);
            if *what == Setup::Sequential {
                sequential_seconds = run.seconds;
            }
            run.speed_up = sequential_seconds / run.seconds;
            if plan.format == Format::Json {
                print(&report::json_line(plan, application, &run, host))?;
            }
            runs.push(run);
        }
    }
    Ok(runs)
}

fn run_once(application: &ApplicationOptions, setup: Setup) -> StampRun {
    let Setup::Transactional { variant, protocol, threads } = setup else {
        return StampRun::of(application.execute(Sequential::default(), &OneThread));
    };
    run_with_transactions(application, variant, protocol, &on_threads(threads))
}

/// Runs an application over a store, under a protocol, on the workers of a runner.
pub(super) fn run_with_transactions<F: Fn(usize, &(dyn Fn(usize) + Sync))>(
    application: &ApplicationOptions,
    variant: Variant,
    protocol: &str,
    runner: &Spawning<F>,
) -> StampRun {
    match protocol {
        "occ" => run_under::<Occ, F>(application, variant, protocol, runner),
        _ => run_under::<Any, F>(application, variant, protocol, runner),
    }
}

fn run_under<P: Protocol, F: Fn(usize, &(dyn Fn(usize) + Sync))>(
    application: &ApplicationOptions,
    variant: Variant,
    protocol: &str,
    runner: &Spawning<F>,
) -> StampRun {
    let engine = Engine::<P>::named(protocol, RetryPolicy::default()).expect("the protocol has the name");
    let tracked = Tracked::new(engine);
    let typed = |options| application.execute(Typed::new(tracked.clone(), options), runner);
    let outcome = match variant {
        Variant::Words => application.execute(Words::new(tracked.clone()), runner),
        Variant::Datatypes => typed(TypedOptions::default()),
        Variant::Predicates => typed(TypedOptions { predicates: true, ..TypedOptions::default() }),
        Variant::Boosted => typed(TypedOptions { boosted: true, ..TypedOptions::default() }),
        Variant::Deferred => {
            typed(TypedOptions { predicates: true, deferred: true, ..TypedOptions::default() })
        }
    };
    let statistics = tracked.engine().statistics();
    StampRun {
        commits: statistics.commits,
        aborts: statistics.aborts,
        items_max: tracked.items_max() as u64,
        ..StampRun::of(outcome)
    }
}
