//! Stress: random transactions over a few hot keys of every kind of object, meant to provoke every failure.
//!
//! Its throughput is of no interest; every protocol must survive it. It covers
//!
//! - boxes (inline and boxed values), an array, counters that are only incremented and tested, counters that are
//!   also set, a hash table, an ordered table with a secondary index, and queues;
//! - rows whose columns are split, read and changed whole and in part;
//! - reads, blind writes, changes, inserts, deletes, and scans in both directions that stop early;
//! - deferred operations on boxes, the array and rows, alone or among others, with keys from earlier operations,
//!   forced values, requirements that fail, and intentions that panic;
//! - pairs of objects that are always written together, and transactions that fail if they find them different;
//! - transactions on snapshots, which only read;
//! - transactions that roll back, or undo a part of what they did; bodies that panic, and threads that yield in the middle.
//!
//! `hotrow check` judges its recorded histories (`--record`). Its own checks examine the values, which a history
//! does not show.

mod objects;
mod operation;
mod options;
mod rows;
mod twins;
mod values;

pub use options::StressOptions;

use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow::{Abort, Error, Isolation, Profile, Protocol, Transaction, Worker};
use hotrow_driver::{Check, End, Ran, Workload};
use objects::Objects;
use operation::{Operation, PLANNED, Temper};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use twins::DIFFERENT;
use values::ReadDigest;

/// The objects under stress.
pub struct Stress<P: Protocol> {
    objects: Objects<P>,
    options: StressOptions,
}

/// One worker's next transaction, and its counts so far.
pub struct StressClient {
    random: Random,
    /// Draws the parts, and the transactions on snapshots.
    parts: Random,
    plan: Plan,
    /// Sum of the committed increments of each counter.
    added: Vec<i64>,
    /// Number of torn values seen.
    torn: u64,
}

#[derive(Debug, Default)]
struct Plan {
    /// Operations, each with true if the thread yields after it.
    operations: Vec<(Operation, bool)>,
    /// Number of the operation before which the transaction ends early, and the kind of end.
    end: Option<(usize, Early)>,
    /// The operations that are a part of their own, and its end.
    part: Option<(Range<usize>, PartEnd)>,
    profile: Profile,
}

/// The end of a part of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartEnd {
    Kept,
    Failed,
    Panicked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Early {
    RollBack,
    Panic,
}

/// Runs operations as a part of a transaction that ends like this.
fn run_part<P: Protocol>(
    tx: &mut Transaction<'_, P>,
    end: PartEnd,
    run: impl FnOnce(&mut Transaction<'_, P>) -> Result<(), Abort>,
) -> Result<(), Abort> {
    let part = catch_unwind(AssertUnwindSafe(|| {
        tx.savepoint(|tx| {
            run(tx)?;
            match end {
                PartEnd::Kept => Ok(()),
                PartEnd::Failed => Err(Abort::rollback()),
                PartEnd::Panicked => resume_unwind(Box::new(Planned)),
            }
        })
    }));
    match part {
        Ok(part) => part.map(drop),
        Err(panic) if end == PartEnd::Panicked && panic.is::<Planned>() => Ok(()),
        Err(panic) => resume_unwind(panic),
    }
}

/// Payload of a planned panic in a body.
struct Planned;

impl<P: Protocol> Workload<P> for Stress<P> {
    type Client = StressClient;

    fn kinds(&self) -> &'static [&'static str] {
        &["stress"]
    }

    fn client(&self, worker: usize, _workers: usize, seed: u64) -> StressClient {
        StressClient {
            random: Random::stream(seed, worker as u64),
            parts: Random::stream(!seed, worker as u64),
            plan: Plan::default(),
            added: vec![0; self.options.keys as usize],
            torn: 0,
        }
    }

    fn prepare(&self, client: &mut StressClient) {
        let StressOptions { keys, ops, rollback_share, part_share, panic_share, yield_share, .. } =
            self.options;
        let StressClient { random, parts, plan, .. } = client;
        let count = random.between(1, ops.into()) as usize;
        let mut temper = Temper::draw(random);
        let mut write_share = self.options.write_share;
        plan.profile = Profile::UNKNOWN;
        if self.options.snapshot_share > 0.0 && parts.chance(self.options.snapshot_share) {
            let isolation = if parts.chance(0.5) { Isolation::StrictSnapshot } else { Isolation::Snapshot };
            plan.profile = Profile { isolation, ..Profile::READ_ONLY };
            (temper, write_share) = (Temper::Eager, 0.0);
        }
        plan.operations.clear();
        plan.operations.extend((0..count).map(|_| {
            let writes = random.chance(write_share);
            (Operation::draw(random, keys, writes, temper), random.chance(yield_share))
        }));
        let early = if random.chance(panic_share) {
            Some(Early::Panic)
        } else if random.chance(rollback_share) {
            Some(Early::RollBack)
        } else {
            None
        };
        plan.end = early.map(|early| (random.below(count as u64 + 1) as usize, early));
        plan.part = (early.is_none() && parts.chance(part_share)).then(|| {
            let from = parts.below(count as u64) as usize;
            let to = parts.between(from as u64 + 1, count as u64) as usize;
            let end = match parts.below(4) {
                0 => PartEnd::Kept,
                1 => PartEnd::Panicked,
                _ => PartEnd::Failed,
            };
            (from..to, end)
        });
    }

    fn run_one(&self, worker: &mut Worker<P>, client: &mut StressClient) -> Ran {
        let StressClient { plan, added, torn, .. } = client;
        let mut seen = ReadDigest::default();
        let ran = catch_unwind(AssertUnwindSafe(|| {
            worker.try_transact_as::<_, Abort>(plan.profile, |tx| {
                seen.sum = 0;
                seen.different.set(false);
                (seen.later, seen.source) = (None, None);
                let end = |at: usize| match plan.end {
                    Some((place, Early::RollBack)) if place == at => Err(Abort::rollback()),
                    // No message is printed for a panic that is resumed.
                    Some((place, Early::Panic)) if place == at => resume_unwind(Box::new(Planned)),
                    _ => Ok(()),
                };
                let mut run = |tx: &mut Transaction<'_, P>, range: Range<usize>| {
                    for (at, (operation, yields)) in plan.operations[range.clone()].iter().enumerate() {
                        end(range.start + at)?;
                        operation.run(&self.objects, tx, &mut seen)?;
                        if *yields {
                            thread::yield_now();
                        }
                    }
                    Ok(())
                };
                let all = 0..plan.operations.len();
                match plan.part.clone() {
                    None => run(tx, all.clone())?,
                    Some((range, part_end)) => {
                        run(tx, 0..range.start)?;
                        let rest = range.end..all.end;
                        run_part(tx, part_end, |tx| run(tx, range))?;
                        run(tx, rest)?;
                    }
                }
                end(all.end)
            })
        }));
        *torn += seen.torn;
        let end = match ran {
            Ok(Ok(())) => {
                let undone = match &plan.part {
                    Some((range, PartEnd::Failed | PartEnd::Panicked)) => range.clone(),
                    _ => 0..0,
                };
                for (at, (operation, _)) in plan.operations.iter().enumerate() {
                    if let Some((counter, amount)) = operation.added().filter(|_| !undone.contains(&at)) {
                        added[counter] = added[counter].wrapping_add(amount);
                    }
                }
                End::Committed
            }
            Ok(Err(Error::Rollback(_))) if seen.different.get() => {
                End::Failed(String::from("twins were different, and the rollback was believed"))
            }
            Ok(Err(Error::Rollback(_))) => End::RolledBack,
            Ok(Err(Error::Panicked { message })) if message == PLANNED => End::RolledBack,
            Ok(Err(error)) => End::Failed(error.to_string()),
            Err(panic) if panic.is::<Planned>() => End::RolledBack,
            Err(panic) if panic.downcast_ref::<&str>() == Some(&DIFFERENT) => {
                End::Failed(DIFFERENT.to_owned())
            }
            Err(panic) => resume_unwind(panic),
        };
        Ran { kind: 0, end }
    }

    fn checks(&self, worker: &mut Worker<P>, clients: Vec<StressClient>) -> Vec<Check> {
        let torn: u64 = clients.iter().map(|client| client.torn).sum();
        let whole = if torn == 0 { Ok(()) } else { Err(format!("{torn} values were torn")) };
        let added = (0..self.options.keys as usize)
            .map(|key| clients.iter().fold(0i64, |sum, client| sum.wrapping_add(client.added[key])))
            .collect::<Vec<_>>();
        vec![
            Check::new("every value was seen as it was written", whole),
            Check::new("counters = committed increments", self.objects.check_counters(worker, &added)),
            Check::new("the secondary index has each row once", self.objects.check_secondary(worker)),
        ]
    }

    fn payload_bytes(&self, _worker: &mut Worker<P>) -> u64 {
        self.objects.payload_bytes()
    }
}
