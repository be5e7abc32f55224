//! Attempts of a history: the nodes of the graph.
//!
//! The number of an attempt counts the `Begin` events, in the order of the history's workers. Events are not kept:
//! [`walk`] decodes them again whenever they are needed. This costs less memory than a list of events, and little
//! time.

use crate::report::{AttemptEnd, Counts, Transaction};
use crate::{Malformed, graph};
use hotrow_core::history::{Ended, Event, History};
use hotrow_sync::hashing::KeyHashing;
use std::collections::HashMap;

/// Properties of each attempt, by its number.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    pub(crate) begin: Vec<u64>,
    /// Stamp of the end; `u64::MAX` if the attempt has not ended.
    pub(crate) end: Vec<u64>,
    pub(crate) outcome: Vec<AttemptEnd>,
    /// True if the attempt's writes take effect: it committed, or it was committing when another attempt read its
    /// version.
    pub(crate) effective: Vec<bool>,
    /// True if the attempt has range reads.
    pub(crate) ranged: Vec<bool>,
    /// Latest end stamp among the range reads of the attempt that is being decoded.
    ranges_until: u64,
    /// Per list of events: number of its first attempt, its worker, and the position of that attempt among the
    /// worker's.
    lists: Vec<(u32, u32, u32)>,
}

/// Visits all events of a history with well-formed events, with the number of their attempt.
pub(crate) fn walk<'a>(history: &'a History, mut visit: impl FnMut(u32, Event<'a>)) {
    let mut next = 0u32;
    for worker in &history.workers {
        for event in worker.events().map_while(Result::ok) {
            if matches!(event, Event::Begin { .. }) {
                next += 1;
            }
            visit(next.wrapping_sub(1), event);
        }
    }
}

impl Attempts {
    /// Decodes all attempts and checks each event on its own. Also returns all versions that were written, in no
    /// particular order.
    pub(crate) fn read(history: &History, counts: &mut Counts) -> Result<(Self, Vec<u64>), Malformed> {
        let mut attempts = Attempts::default();
        let mut written = Vec::new();
        // Number of attempts so far, by worker.
        let mut positions: HashMap<u32, u32, KeyHashing> = HashMap::default();
        for worker in &history.workers {
            let first = attempts.begin.len() as u32;
            let position = positions.entry(worker.worker).or_default();
            attempts.lists.push((first, worker.worker, *position));
            let mut inside = false;
            for (count, event) in worker.events().enumerate() {
                let event = event.map_err(|malformed| Malformed::Event {
                    worker: worker.worker,
                    offset: malformed.offset,
                })?;
                if let Event::Begin { stamp, .. } = event {
                    attempts.begin.push(stamp);
                    attempts.end.push(u64::MAX);
                    attempts.outcome.push(AttemptEnd::Unfinished);
                    attempts.ranged.push(false);
                    attempts.ranges_until = 0;
                    inside = true;
                    if attempts.begin.len() > graph::NODES_MAX {
                        return Err(Malformed::TooLarge { what: "attempts", most: graph::NODES_MAX });
                    }
                    continue;
                }
                if !inside {
                    return Err(Malformed::OutsideAttempt { worker: worker.worker, event: count + 1 });
                }
                inside = attempts.event(history, event, counts, &mut written)?;
            }
            *position += attempts.begin.len() as u32 - first;
        }
        attempts.effective =
            attempts.outcome.iter().map(|outcome| *outcome == AttemptEnd::Committed).collect();
        for outcome in &attempts.outcome {
            *match outcome {
                AttemptEnd::Committed => &mut counts.committed,
                AttemptEnd::Aborted => &mut counts.aborted,
                AttemptEnd::RolledBack => &mut counts.rolled_back,
                AttemptEnd::Unfinished => &mut counts.unfinished,
            } += 1;
        }
        counts.attempts = attempts.begin.len() as u64;
        Ok((attempts, written))
    }

    /// Processes one event of the latest attempt. Returns true if the attempt goes on.
    fn event(
        &mut self,
        history: &History,
        event: Event<'_>,
        counts: &mut Counts,
        written: &mut Vec<u64>,
    ) -> Result<bool, Malformed> {
        let attempt = self.begin.len() - 1;
        let known = |key: u32| {
            let keys = history.keys.len();
            if (key as usize) < keys {
                return Ok(());
            }
            Err(Malformed::UnknownKey { transaction: self.transaction(attempt as u32), key, keys })
        };
        match event {
            Event::Begin { .. } => {}
            Event::Read { key, .. } => {
                counts.reads += 1;
                known(key)?;
            }
            Event::Intend { key } | Event::OwnRead { key } | Event::Change { key } => known(key)?,
            Event::Operation { .. } => {}
            Event::Write { key, version, .. } => {
                counts.writes += 1;
                known(key)?;
                if version == 0 {
                    let transaction = self.transaction(attempt as u32);
                    return Err(Malformed::VersionZero { transaction, key: key_name(history, key) });
                }
                written.push(version);
            }
            Event::Range { object, from, to, .. } => {
                counts.range_reads += 1;
                let objects = history.objects.len();
                if object as usize >= objects {
                    return Err(Malformed::UnknownObject { object, objects });
                }
                self.forwards(attempt, from, to)?;
                self.ranged[attempt] = true;
                self.ranges_until = self.ranges_until.max(to);
            }
            Event::End { outcome, stamp } => {
                self.forwards(attempt, self.begin[attempt], stamp)?;
                self.end[attempt] = stamp;
                if self.ranges_until > stamp {
                    let transaction = self.transaction(attempt as u32);
                    return Err(Malformed::RangeBeyondEnd { transaction, to: self.ranges_until, end: stamp });
                }
                self.outcome[attempt] = match outcome {
                    Ended::Committed => AttemptEnd::Committed,
                    Ended::Aborted(_) => AttemptEnd::Aborted,
                    Ended::RolledBack => AttemptEnd::RolledBack,
                };
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn forwards(&self, attempt: usize, from: u64, to: u64) -> Result<(), Malformed> {
        if from <= to {
            return Ok(());
        }
        Err(Malformed::Backwards { transaction: self.transaction(attempt as u32), from, to })
    }

    pub(crate) fn len(&self) -> usize {
        self.begin.len()
    }

    /// Returns the name of an attempt.
    pub(crate) fn transaction(&self, attempt: u32) -> Transaction {
        // A list without attempts has the same first attempt as the next list; the last of them contains the
        // attempt.
        let list = self.lists.partition_point(|list| list.0 <= attempt) - 1;
        let (first, worker, position) = self.lists[list];
        let outcome = self.outcome[attempt as usize];
        Transaction { worker, position: position + (attempt - first) + 1, outcome }
    }
}

/// Returns the name of a key, for people.
pub(crate) fn key_name(history: &History, key: u32) -> String {
    let Some(name) = history.keys.get(key) else { return format!("key number {key}") };
    let text = String::from_utf8_lossy(name.text);
    match history.objects.get(name.object as usize) {
        Some(object) => format!("{object}[{text}]"),
        None => format!("object number {}[{text}]", name.object),
    }
}
