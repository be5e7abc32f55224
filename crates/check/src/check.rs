//! The steps from a history to its report.

use crate::Malformed;
use crate::attempts::{Attempts, key_name, walk};
use crate::cycle::{ALL, DEPENDENCIES};
use crate::explain::Explainer;
use crate::graph::{Edges, Kind, Part};
use crate::judge::judge;
use crate::order;
use crate::own_order::{self, Violation};
use crate::ranges::{Lost, Ranges};
use crate::report::{Anomaly, AnomalyKind, Counts, Dependency, Level, Report, Step, Transaction};
use crate::runs::Runs;
use crate::versions::{Known, NONE, Read, Source, Versions};
use hotrow_core::history::{Event, History, ReadKind, WriteKind};

/// Number of reads that are looked up together.
const BATCH: usize = 256;

/// Number of anomalies kept per level.
const KEPT: usize = 100;

/// Judges a history.
///
/// The time is linear in the number of events, except for sorting (the keys of objects with range reads, and events
/// within blocks of them) and a logarithm for each range read. The crate's documentation says what is checked.
///
/// # Errors
///
/// If the history contradicts itself. There is then no verdict on the system that made it.
pub fn check(history: &History) -> Result<Report, Malformed> {
    judge_history(history, false).map(|(report, _)| report)
}

/// A transaction in a serial order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// The transaction.
    pub transaction: Transaction,
    /// Number of transactions at the beginning of the order that must precede it. It may stand anywhere between
    /// these and its own place, while all others stay where they are: the history does not contradict it.
    pub earliest: usize,
}

/// Judges a history as [`check`] does, and also returns a serial order of its committed transactions that explains
/// it: executed one after the other in this order, they read and write what the history says. A version in a run of
/// changes that commute is then the set of the run's changes so far. The order is `None`
/// if the dependencies have a cycle. If the history is not serializable for another reason, there is an order, but
/// it does not explain the history.
///
/// The order follows real time if the history is strictly serializable. It is one of many. If nothing orders two
/// transactions, their last installed versions do (or the end of a transaction that wrote nothing).
///
/// If a key came and went several times during a range read, the history does not say which of its absences the
/// read saw. The order assumes the latest one, which is right for a store that validates its range reads at the
/// commit. Where a store reads the state of an earlier moment, a transaction may have to stand
/// [earlier](Placed::earliest).
///
/// The time is that of [`check`], and a logarithm for each transaction.
///
/// ```
/// use hotrow_check::{HistoryBuilder, serial_order};
///
/// let mut history = HistoryBuilder::new("mine");
/// let accounts = history.object("accounts");
/// let account = history.key(accounts, &[7], "7");
/// let (writer, reader) = (history.begin(1), history.begin(2));
/// history.write(writer, account);
/// history.read_version(reader, account, 0);
/// history.commit(writer);
/// history.commit(reader);
/// let (report, order) = serial_order(&history.finish())?;
/// assert!(report.serializable);
/// let workers: Vec<u32> = order.unwrap().iter().map(|placed| placed.transaction.worker).collect();
/// assert_eq!(workers, [2, 1]);
/// # Ok::<(), hotrow_check::Malformed>(())
/// ```
///
/// # Errors
///
/// The errors of [`check`].
pub fn serial_order(history: &History) -> Result<(Report, Option<Vec<Placed>>), Malformed> {
    judge_history(history, true)
}

fn judge_history(history: &History, wants_order: bool) -> Result<(Report, Option<Vec<Placed>>), Malformed> {
    let mut counts = Counts::default();
    let (mut attempts, written) = Attempts::read(history, &mut counts)?;
    let versions = Versions::read(history, &mut attempts, written)?;
    let mut edges = Edges::between(attempts.len());
    let mut runs = Runs::read(&versions, &attempts);
    for rank in versions.effective(&attempts) {
        if let Some(before) = versions.before(rank) {
            runs.add_write(&versions, (before, rank), &mut edges);
        }
    }
    let mut singles = Singles { history, attempts: &attempts, found: Default::default(), more: 0 };
    let mut ranges = (counts.range_reads > 0).then(|| Ranges::new(history, &versions));
    add_reads(history, &attempts, (&versions, &mut runs), &mut edges, &mut singles, ranges.as_mut())?;
    if let Some(ranges) = ranges {
        ranges.lost(&mut edges).into_iter().for_each(|lost| singles.lost(lost));
    }
    own_order::violations(history, &attempts).into_iter().for_each(|violation| singles.own(violation));
    add_time(&attempts, &mut edges);
    counts.write_write_edges = edges.count(Kind::WriteWrite);
    counts.write_read_edges = edges.count(Kind::WriteRead);
    counts.read_write_edges = edges.count(Kind::ReadWrite);
    counts.range_edges = edges.count(Kind::WriteRange) + edges.count(Kind::RangeWrite);
    counts.time_edges = edges.count(Kind::Time);
    let graph = edges.into_graph()?;
    let judgement = judge(&graph, &attempts.effective, (&attempts.begin, &attempts.end));
    let order = if wants_order {
        let kinds = if judgement.broken[1] { DEPENDENCIES } else { ALL };
        let part = Part { graph: &graph, kinds, nodes: Some(&attempts.effective) };
        let order = order::serial_order(part, &order::moments(&attempts, &versions));
        debug_assert_eq!(order.is_none(), judgement.broken[0], "an order exists unless there is a cycle");
        order
    } else {
        None
    };
    drop(graph);

    let Singles { mut found, mut more, .. } = singles;
    let mut broken = judgement.broken;
    for level in 0..3 {
        broken[level] |= !found[level].is_empty();
    }
    let mut room = [0, 1, 2].map(|level: usize| KEPT - found[level].len());
    let mut cycles = judgement.cycles;
    cycles.retain(|cycle| {
        let room = &mut room[cycle.violates as usize];
        let kept = *room > 0;
        *room -= usize::from(kept);
        more += u64::from(!kept);
        kept
    });
    let explainer = Explainer::new(history, &attempts, (&versions, &runs), &cycles);
    for cycle in &cycles {
        found[cycle.violates as usize].push(explainer.anomaly(cycle));
    }
    let placed = |(attempt, earliest)| Placed { transaction: attempts.transaction(attempt), earliest };
    let order = order.map(|order| order.into_iter().map(placed).collect());
    let report = Report {
        protocol: history.protocol.clone(),
        claims_opacity: history.opaque,
        claims_strictness: history.strict,
        complete: history.complete,
        serializable: !broken[0],
        strictly_serializable: !broken[0] && !broken[1],
        opaque: !broken.contains(&true),
        counts,
        anomalies: found.into_iter().flatten().collect(),
        not_listed: more,
    };
    Ok((report, order))
}

/// Anomalies that are not cycles, by the level that they violate.
struct Singles<'a> {
    history: &'a History,
    attempts: &'a Attempts,
    found: [Vec<Anomaly>; 3],
    more: u64,
}

impl Singles<'_> {
    fn push(&mut self, kind: AnomalyKind, first: u32, second: u32, dependency: impl FnOnce() -> Dependency) {
        let effective = self.attempts.effective[second as usize];
        let violates = if effective { Level::Serializable } else { Level::Opaque };
        let level = &mut self.found[violates as usize];
        if level.len() == KEPT {
            self.more += 1;
            return;
        }
        let (first, second) = (self.attempts.transaction(first), self.attempts.transaction(second));
        let steps = vec![Step { first, second, dependency: dependency() }];
        level.push(Anomaly { kind, violates, steps });
    }

    fn own(&mut self, Violation { attempt, dependency }: Violation) {
        let kind = match dependency {
            Dependency::OwnOrder { .. } => AnomalyKind::OwnOrderReversed,
            _ => AnomalyKind::OwnChangeUnseen,
        };
        self.push(kind, attempt, attempt, || dependency);
    }

    fn lost(&mut self, Lost { attempt, key }: Lost) {
        let history = self.history;
        let dependency = || Dependency::LostKey { key: key_name(history, key) };
        self.push(AnomalyKind::LostKey, attempt, attempt, dependency);
    }
}

/// Adds the edges of all reads, of single keys and of ranges.
fn add_reads(
    history: &History,
    attempts: &Attempts,
    (versions, runs): (&Versions, &mut Runs),
    edges: &mut Edges,
    singles: &mut Singles<'_>,
    mut ranges: Option<&mut Ranges<'_>>,
) -> Result<(), Malformed> {
    let mut failed = None;
    let mut current = NONE;
    let mut batch = Vec::with_capacity(BATCH);
    let mut known = Vec::with_capacity(BATCH);
    let mut flush = |batch: &mut Vec<Read>, edges: &mut Edges| {
        versions.look_up(batch, &mut known);
        for (read, known) in batch.drain(..).zip(known.drain(..)) {
            if let Err(error) = add_read(history, attempts, (versions, runs), edges, singles, read, known) {
                failed.get_or_insert(error);
            }
        }
    };
    walk(history, |attempt, event| {
        if let Some(ranges) = ranges.as_deref_mut() {
            if attempt != current {
                ranges.end_attempt(edges);
                current = attempt;
            }
            if attempts.ranged[attempt as usize] {
                ranges.event(attempt, event);
            }
        }
        if let Event::Read { key, version, kind } = event {
            batch.push(Read { attempt, key, version, is_condition: kind == ReadKind::Predicate });
            if batch.len() == BATCH {
                flush(&mut batch, edges);
            }
        }
    });
    flush(&mut batch, edges);
    if let Some(ranges) = ranges {
        ranges.end_attempt(edges);
    }
    failed.map_or(Ok(()), Err)
}

/// Adds the edges of one read.
fn add_read(
    history: &History,
    attempts: &Attempts,
    (versions, runs): (&Versions, &mut Runs),
    edges: &mut Edges,
    singles: &mut Singles<'_>,
    Read { attempt: reader, key, version, is_condition }: Read,
    known: Option<Known>,
) -> Result<(), Malformed> {
    let Known { source, next, replacer } = match known {
        Some(known) => known,
        None => versions.look_up_one(history, key, version)?,
    };
    if is_condition && replacer == reader && next != NONE && versions.kind(next) == WriteKind::Commute {
        // The condition is that there is something to change. It does not depend on changes that commute; the edges of
        // the reader's own write say the rest.
        return Ok(());
    }
    if let Source::Written(rank, writer) = source {
        if writer == reader && !runs.has(versions, rank) {
            // The edges of the reader's own write say all. It may have written the version in an earlier piece, so
            // that another attempt may have replaced it by now.
            return Ok(());
        }
        let key = || key_name(history, key);
        if writer != reader && !attempts.effective[writer as usize] {
            let dependency = || Dependency::AbortedRead { key: key(), version };
            singles.push(AnomalyKind::AbortedRead, writer, reader, dependency);
            return Ok(());
        }
        if !runs.add_seen(versions, rank, reader, edges) {
            edges.add(writer, reader, Kind::WriteRead);
        }
        if writer != reader && replacer == writer {
            let later = versions.index.version(next);
            let dependency = || Dependency::IntermediateRead { key: key(), version, later };
            singles.push(AnomalyKind::IntermediateRead, writer, reader, dependency);
            return Ok(());
        }
    }
    if replacer != NONE && !runs.add_unseen(versions, next, reader, edges) {
        edges.add(reader, replacer, Kind::ReadWrite);
    }
    Ok(())
}

/// Adds the real-time order: a chain of auxiliary nodes, one for each end, in the order of their stamps. An edge
/// leads from each attempt to the node of its end. Another leads to each attempt from the last end before it began.
fn add_time(attempts: &Attempts, edges: &mut Edges) {
    let ended = |attempt: &u32| attempts.end[*attempt as usize] != u64::MAX;
    let mut ends: Vec<u32> = (0..attempts.len() as u32).filter(ended).collect();
    ends.sort_unstable_by_key(|attempt| attempts.end[*attempt as usize]);
    let mut stamps = Vec::with_capacity(ends.len());
    let mut nodes: Vec<u32> = Vec::with_capacity(ends.len());
    for attempt in ends {
        let node = edges.node();
        edges.add(attempt, node, Kind::Time);
        if let Some(before) = nodes.last() {
            edges.add(*before, node, Kind::Wire);
        }
        stamps.push(attempts.end[attempt as usize]);
        nodes.push(node);
    }
    for (attempt, begin) in attempts.begin.iter().enumerate() {
        // An end precedes a beginning if its stamp is smaller than the counter was at the beginning.
        let before = stamps.partition_point(|stamp| stamp < begin);
        if let Some(last) = before.checked_sub(1) {
            edges.add(nodes[last], attempt as u32, Kind::Wire);
        }
    }
}
