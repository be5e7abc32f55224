//! `hotrow explore`: runs many schedules of the stress workload on virtual cores, and checks each history.

use clap::Command;

#[cfg(feature = "sim")]
pub(crate) use with_simulator::{Exploration, command, plan, run};

/// The subcommand in a build without the simulator.
#[cfg(not(feature = "sim"))]
pub(crate) fn command() -> Command {
    crate::arguments::without_feature("explore", "Checks many schedules on virtual cores", "sim")
}

#[cfg(feature = "sim")]
mod with_simulator {
    use super::Command;
    use crate::arguments::{Refusal, protocols, shortened};
    use crate::error::CommandError;
    use crate::progress::Progress;
    use crate::text;
    use crate::text::print;
    use clap::{ArgMatches, Args, FromArgMatches as _};
    use hotrow::Protocol;
    use hotrow::protocols::{ProtocolInfo, Visitor, with_protocol};
    use hotrow::sync::{Mutex, lock, thread};
    use hotrow_sim::forget_abandoned_cores;
    use hotrow_workloads::explore::{Drawn, Explored, Violation, explore};

    /// The protocols to explore, and the arguments.
    #[derive(Debug)]
    pub(crate) struct Exploration {
        protocols: Vec<&'static ProtocolInfo>,
        arguments: ExploreArguments,
    }

    #[derive(Debug, Args)]
    struct ExploreArguments {
        /// Protocols, separated by commas, or "all": those that admit several workers, also those for comparison (`hotrow list --all`)
        #[arg(long, value_name = "P[,P...]|all", default_value = "all")]
        protocol: String,
        /// Number of schedules of each protocol
        #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000), allow_negative_numbers = true)]
        schedules: u64,
        /// Seed of the first schedule; each further schedule takes the next number
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
        /// A core dies in one of N schedules; 0 for none
        #[arg(long, value_name = "N", default_value_t = 100)]
        kills_one_in: u64,
        /// The largest number of real threads that explore; 0 for the number of processors. Only one thread always
        /// repeats the same schedules: some locks choose their wait lists by memory addresses, which depend on the
        /// other threads
        #[arg(long, value_name = "N", default_value_t = 0)]
        threads: usize,
        /// Print, for each schedule, everything that its seed determines, and the last steps of each core
        #[arg(long)]
        trace: bool,
    }

    pub(crate) fn command() -> Command {
        ExploreArguments::augment_args(Command::new("explore"))
            .about("Checks many schedules of small random transactions on virtual cores")
            .after_help(
                "Each seed determines cores, keys, operations, schedule (random, or by priorities) and faults. The \
                 command records and checks the history of each schedule. At the first violation it prints the \
                 violation and the command that repeats it, and exits with status 1.\n\n\
                 Example:\n  hotrow explore --protocol occ --schedules 100000",
            )
    }

    pub(crate) fn plan(matches: &ArgMatches) -> Result<Exploration, Refusal> {
        let arguments = ExploreArguments::from_arg_matches(matches).map_err(shortened)?;
        // Schedules have up to four cores.
        let (protocols, _) = protocols(&arguments.protocol, Some(4), 4, &[])?;
        let protocols = protocols.into_iter().map(|(protocol, _)| protocol).collect();
        Ok(Exploration { protocols, arguments })
    }

    pub(crate) fn run(exploration: &Exploration) -> Result<(), CommandError> {
        for protocol in &exploration.protocols {
            let explorer = Explorer { arguments: &exploration.arguments };
            with_protocol(protocol.name, explorer).expect("the name comes from the registry")?;
        }
        Ok(())
    }

    struct Explorer<'a> {
        arguments: &'a ExploreArguments,
    }

    /// The number of seeds that a thread takes at a time.
    const SLICE: u64 = 64;

    /// The progress and the results of all threads.
    #[derive(Default)]
    struct ExploredSoFar {
        /// The next seed, as an offset from the first.
        next: u64,
        done: u64,
        sum: Explored,
        /// The violation of the lowest seed.
        violation: Option<Box<Violation>>,
    }

    impl Visitor for Explorer<'_> {
        type Output = Result<(), CommandError>;

        fn visit<P: Protocol>(self, name: &str) -> Self::Output {
            let ExploreArguments { schedules, seed, kills_one_in, threads, trace, .. } = *self.arguments;
            let threads = match threads {
                0 => thread::parallelism(),
                threads => threads.min(thread::parallelism()),
            };
            let shared = Mutex::new(ExploredSoFar::default());
            let progress = Progress::new(format!("schedules of {}", name));
            let work = || {
                loop {
                    let first = {
                        let mut shared = lock(&shared);
                        if shared.next >= schedules || shared.violation.is_some() {
                            return;
                        }
                        let first = shared.next;
                        shared.next += SLICE;
                        first
                    };
                    for distance in first..(first + SLICE).min(schedules) {
                        let drawn = Drawn::new(seed.wrapping_add(distance), kills_one_in);
                        let mut shown = Ok(());
                        let explored = explore::<P>(&drawn, name, TRACE_STEPS, |steps| {
                            if trace {
                                shown = print(&format!("{drawn:#?}\n{steps}\n"));
                            }
                        });
                        if shown.is_err() {
                            return;
                        }
                        let mut shared = lock(&shared);
                        shared.done += 1;
                        match explored {
                            Ok(explored) => shared.sum.add(&explored),
                            Err(violation) => {
                                let lowest = shared.violation.take();
                                let least = lowest.filter(|lowest| lowest.drawn.seed <= violation.drawn.seed);
                                shared.violation = Some(least.unwrap_or(violation));
                            }
                        }
                        progress.part(shared.done, schedules);
                    }
                    // SAFETY: what the cores of these schedules shared was dropped at the end of `explore`, or is leaked and never used again.
                    // It returns plain data, and the thread holds no pin.
                    unsafe { forget_abandoned_cores() };
                }
            };
            thread::scope(|scope| {
                for _ in 1..threads {
                    scope.spawn(work);
                }
                work();
            });
            drop(progress);
            let ExploredSoFar { done, sum, violation, .. } =
                shared.into_inner().unwrap_or_else(|error| error.into_inner());
            if let Some(violation) = violation {
                let seed = violation.drawn.seed;
                return Err(CommandError::Verdict(format!(
                    "{} violates its guarantees in schedule {}\n{}\n\nTo repeat it with a trace:\n  hotrow explore --protocol {} --schedules 1 --seed {seed} \
                     --kills-one-in {kills_one_in} --trace",
                    name,
                    seed.wrapping_sub(self.arguments.seed) + 1,
                    violation,
                    name,
                )));
            }
            print(&format!(
                "{}: {} schedules without a violation (seeds {seed} to {}; {} steps, {} commits, {} aborts; in {} \
                 a dead core stalled others; hash {:016x})\n",
                name,
                text::count(done),
                seed.wrapping_add(schedules - 1),
                text::count(sum.steps),
                text::count(sum.commits),
                text::count(sum.aborts),
                text::count(sum.stalled),
                sum.hash,
            ))?;
            Ok(())
        }
    }

    /// The number of steps of each core that a trace shows.
    const TRACE_STEPS: usize = 200;
}
