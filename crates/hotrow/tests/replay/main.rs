//! Random programs on several threads, under every protocol, compared with a serial replay.
//!
//! A program is data ([`program`]): reads, changes, insertions, deletions, scans, takings from queues, conditions and
//! panics, on few keys, whose keys and rows come from earlier operations. It runs as a procedure in the context that the
//! protocol has for it, as an eager one, or as a closure with deferred operations among others. The run is recorded,
//! [`hotrow_check::serial_order`] finds the serial order, and the programs that committed run once more, one after the
//! other in that order, on plain maps ([`model`]) that know nothing of the library. What each operation gave, and what
//! all tables, secondary indexes and objects hold at the end, must be the same.
//!
//! A program that rolls back or panics counts only if it runs alone: a body that reads an inconsistent state may do so
//! for no good reason, under a protocol that is not opaque. One that has no reason at all to do so must commit.
//!
//! A binary of its own, because its long run is built with optimization, which takes minutes for all other tests.
//!
//! The seed of a failure draws the same programs; which transactions meet differs from run to run.

mod closure;
mod failure;
mod hooks;
mod model;
mod procedure;
mod program;
mod round;
mod tables;

use hotrow::protocols::{PROTOCOLS, Visitor, for_each_protocol, with_protocol};
use hotrow::sync::clock;
use hotrow::{Counter, Protocol};
use round::Round;

/// Rounds until so many programs have committed.
#[derive(Clone, Copy)]
struct Rounds {
    threads: u64,
    programs: u64,
    commits: u64,
    first_seed: u64,
}

impl Visitor for Rounds {
    type Output = Result<(), String>;

    fn visit<P: Protocol>(self, name: &str) -> Result<(), String> {
        let begin = clock::now();
        let (mut commits, mut aborts, mut tame, mut stolen) = (0, 0, 0, 0);
        let mut seed = self.first_seed;
        while commits < self.commits {
            let round = Round { seed, threads: self.threads, programs: self.programs };
            let statistics = round.judge::<P>(name)?;
            commits += statistics.commits;
            aborts += statistics.aborts;
            tame += statistics.count(&Counter::TAME_COMMITS);
            stolen += statistics.count(&Counter::STOLEN_OPERATIONS);
            seed += 1;
        }
        let rate = commits as f64 / begin.elapsed().as_secs_f64();
        println!(
            "{name}: {commits} commits ({tame} tame), {aborts} aborts, {stolen} stolen operations, seeds {}..{seed}, \
             {rate:.0} commits/s",
            self.first_seed
        );
        Ok(())
    }
}

impl Rounds {
    /// Runs them under every protocol, and fails if any differs from its replay.
    fn judge_all(self) {
        let judged = for_each_protocol(self.threads as u32 + 1, self);
        let failed: Vec<_> = judged.into_iter().filter_map(|(_, result)| result.err()).collect();
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }
}

#[test]
fn programs_that_run_alone_give_what_they_give_in_plain_maps() {
    Rounds { threads: 1, programs: 200, commits: 2_500, first_seed: 1 }.judge_all();
}

#[test]
fn programs_on_several_threads_give_what_their_serial_replay_gives() {
    Rounds { threads: 4, programs: 60, commits: 2_500, first_seed: 1 }.judge_all();
}

/// The commits of all protocols together: `HOTROW_REPLAY_COMMITS`, unless a million. `HOTROW_REPLAY_SEED` is the first
/// seed, unless 1000; `HOTROW_REPLAY_PROTOCOL` is the one protocol that runs, unless all do.
#[test]
#[ignore = "long: run with -- --ignored"]
fn very_many_programs_give_what_their_serial_replay_gives() {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let commits = number("HOTROW_REPLAY_COMMITS", 1_000_000);
    let first_seed = number("HOTROW_REPLAY_SEED", 1_000);
    let rounds = Rounds { threads: 4, programs: 1_000, commits, first_seed };
    if let Ok(protocol) = std::env::var("HOTROW_REPLAY_PROTOCOL") {
        let judged = with_protocol(&protocol, rounds).expect("a protocol");
        return judged.unwrap_or_else(|words| panic!("{words}"));
    }
    let protocols = PROTOCOLS.iter().filter(|protocol| protocol.workers_max >= 4).count();
    Rounds { commits: commits.div_ceil(protocols as u64), ..rounds }.judge_all();
}
