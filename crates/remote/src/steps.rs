//! Steps of operations: what is known of rows, what is read, what is written.

use crate::error::{Failure, Stopped};
use crate::layout::part;
use crate::marker::until;
use crate::rows::{Parts, RowForm};
use crate::shared::Counts;
use crate::store::{At, Span};
use crate::table::{PartSet, RemoteTable};
use crate::transaction::{Seen, Transaction};
use crate::writes::Write;
use hotrow_core::{Abort, Misuse, Value};
use hotrow_tables::TableMisuse;
use hotrow_tables::key::Key;
use std::collections::BTreeSet;
use std::ops::Bound;

impl Transaction<'_> {
    /// Notes that the attempt cannot go on.
    pub(crate) fn fail(&mut self, failure: impl Into<Failure>) -> Abort {
        self.failure.get_or_insert(failure.into());
        self.stopped()
    }

    /// The abort of an attempt that cannot go on.
    pub(crate) fn stopped(&self) -> Abort {
        Abort::because(Stopped)
    }

    pub(crate) fn refuse(&mut self, reason: String) -> Abort {
        self.fail(Misuse::Unsupported(format!("a row cannot be stored: {reason}")))
    }

    /// Ends the attempt with an error for the body.
    pub(crate) fn raise(&mut self, error: impl std::error::Error + Send + Sync + 'static) -> Abort {
        self.has_raised = true;
        Abort::because(error)
    }

    /// Makes changes that belong together: of a row and its entries in indexes. If that fails, or users' code in it panics, they must be undone
    /// behind a savepoint, or the attempt cannot commit.
    pub(crate) fn jointly(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        let had_raised = std::mem::replace(&mut self.has_raised, true);
        change(self)?;
        self.has_raised = had_raised;
        Ok(())
    }

    /// Ends the attempt as the body asks.
    pub(crate) fn roll_back(&mut self) -> Abort {
        self.has_raised = true;
        Abort::rollback()
    }

    pub(crate) fn malformed(&mut self, table: &str, reason: &str) -> Abort {
        self.fail(TableMisuse::Malformed { table: table.to_owned(), reason: reason.to_owned() })
    }

    pub(crate) fn check<K: Key, R: Value>(&mut self, table: &RemoteTable<K, R>) -> Result<(), Abort> {
        if self.failure.is_some() {
            return Err(self.stopped());
        }
        if !table.is_of(self.shared) {
            return Err(self.fail(Misuse::ForeignObject { object: table.name().to_owned() }));
        }
        Ok(())
    }

    pub(crate) fn check_write<K: Key, R: Value>(&mut self, table: &RemoteTable<K, R>) -> Result<(), Abort> {
        self.check(table)?;
        if self.is_read_only {
            return Err(self.fail(Misuse::ReadOnly { object: table.name().to_owned() }));
        }
        Ok(())
    }

    /// The state to read.
    fn state(&self) -> At {
        self.at.map_or(At::Newest, At::Version)
    }

    /// True if the key is in a range that was read.
    pub(crate) fn is_covered(&self, key: &[u8]) -> bool {
        self.spans.iter().any(|span| span.contains(key))
    }

    /// True if an operation on the part needs no answer of the store.
    pub(crate) fn is_known(&self, key: &[u8]) -> bool {
        self.reads.contains_key(key)
            || matches!(self.writes.get(key), Some(Write::Put(_) | Write::Delete))
            || self.is_covered(key)
    }

    /// Reads the parts that are not known, together.
    pub(crate) fn read(&mut self, mut keys: Vec<Vec<u8>>) -> Result<(), Abort> {
        keys.retain(|key| !self.is_known(key));
        let shared = self.shared;
        let (limits, mut rest) = (shared.store.limits(), &*keys);
        while !rest.is_empty() {
            // One that is too large alone is refused.
            let (keys, later) = rest.split_at(limits.first_together(rest).max(1));
            rest = later;
            let (at, deadline) = (self.state(), self.deadline);
            Counts::one(&shared.counts.asked);
            let read = until(deadline, || shared.store.get_many(keys, at, deadline));
            let read = read.map_err(|error| self.fail(error))?;
            self.at = Some(read.version);
            for (key, found) in keys.iter().zip(read.values) {
                self.reads.insert(key.clone(), Seen::new(found, false));
            }
        }
        Ok(())
    }

    /// Reads the beginning of a range. Returns the last key if there may be more, and adds those that were not known before.
    pub(crate) fn fetch(&mut self, span: &Span, added: &mut Vec<Vec<u8>>) -> Result<Option<Vec<u8>>, Abort> {
        let shared = self.shared;
        let (at, deadline, limit) = (self.state(), self.deadline, shared.settings.page.max(1));
        Counts::one(&shared.counts.asked);
        let page = until(deadline, || shared.store.range(span, at, limit, deadline));
        let page = page.map_err(|error| self.fail(error))?;
        self.at = Some(page.version);
        let last = page.rows.last().filter(|_| page.has_more).map(|(key, _)| key.clone());
        for (key, found) in page.rows {
            if !self.reads.contains_key(&key) {
                self.reads.insert(key.clone(), Seen::new(Some(found), true));
                added.push(key);
            }
        }
        Ok(last)
    }

    /// The main parts of all rows in a range that was read, own ones included.
    pub(crate) fn rows_between(&self, start: &[u8], end: &[u8]) -> BTreeSet<Vec<u8>> {
        if end <= start {
            return BTreeSet::new();
        }
        let bounds = (Bound::Included(start), Bound::Excluded(end));
        let keys = self.reads.range::<[u8], _>(bounds).map(|(key, _)| key);
        let own = self.writes.range::<[u8], _>(bounds).map(|(key, _)| key);
        keys.chain(own).filter(|key| key.last() == Some(&0)).cloned().collect()
    }

    /// The value of a part that is known.
    pub(crate) fn value(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Abort> {
        let read = self.reads.get(key).and_then(|seen| seen.value.as_ref());
        match (self.writes.get(key), read) {
            (Some(Write::Put(value)), _) => Ok(Some(value.clone())),
            (Some(Write::Delete), _) => Ok(None),
            (Some(Write::Add(addition)), read) => match read.and_then(|read| addition.to(read)) {
                Some(sum) => Ok(Some(sum)),
                None => Err(self.fail(Failure::Assumed)),
            },
            (None, read) => Ok(read.cloned()),
        }
    }

    /// Some parts of a row; `None` if it is not there.
    pub(crate) fn parts<K, R>(
        &mut self,
        form: &RowForm<K, R>,
        name: &[u8],
        wanted: PartSet,
    ) -> Result<Option<Parts>, Abort> {
        self.read(wanted.each().map(|number| part(name, number)).collect())?;
        let mut parts = vec![None; form.parts()];
        for number in wanted.each() {
            match self.value(&part(name, number))? {
                Some(value) => parts[number] = Some(value),
                None => return Ok(None),
            }
        }
        Ok(Some(parts))
    }

    /// The row that has these parts.
    pub(crate) fn decode<K: Key, R: Value>(
        &mut self,
        table: &RemoteTable<K, R>,
        name: &[u8],
        parts: &Parts,
    ) -> Result<R, Abort> {
        if !table.form().knows_a_row() && parts.iter().any(Option::is_none) {
            self.learn(table, name)?;
        }
        table.form().decode(parts).map_err(|malformed| self.malformed(table.name(), &malformed.to_string()))
    }

    /// Reads a row whole, so that the table knows one. The transaction does not depend on it.
    #[cold]
    fn learn<K: Key, R: Value>(&mut self, table: &RemoteTable<K, R>, name: &[u8]) -> Result<(), Abort> {
        let keys: Vec<_> = (0..table.form().parts()).map(|number| part(name, number)).collect();
        let (shared, at, deadline) = (self.shared, self.state(), self.deadline);
        let read = until(deadline, || shared.store.get_many(&keys, at, deadline));
        let read = read.map_err(|error| self.fail(error))?;
        let parts: Parts = read.values.into_iter().map(|found| Some(found?.value)).collect();
        let decoded = table.form().decode(&parts);
        decoded.map(drop).map_err(|malformed| self.malformed(table.name(), &malformed.to_string()))
    }

    /// Writes those of the parts before that have changed.
    pub(crate) fn put_changes(&mut self, name: &[u8], before: &Parts, after: Vec<Vec<u8>>) {
        for (number, (before, after)) in before.iter().zip(after).enumerate() {
            if before.as_ref().is_some_and(|before| *before != after) {
                self.writes.insert(part(name, number), Write::Put(after));
            }
        }
    }

    /// Deletes a part of a row.
    pub(crate) fn delete_part(&mut self, name: &[u8], number: usize) {
        let was_there = self.reads.get(&part(name, 0)).is_some_and(|seen| seen.value.is_some());
        if was_there {
            self.writes.insert(part(name, number), Write::Delete);
        } else {
            self.writes.remove(&part(name, number));
        }
    }

    /// Notes that a row was written, which is judged before the commit.
    pub(crate) fn note_judged<K: Key, R: Value>(&mut self, table: &RemoteTable<K, R>, name: Vec<u8>) {
        if let Some(judge) = table.judge() {
            self.judged.insert(name, judge);
        }
    }

    /// Judges the rows that were written.
    pub(crate) fn judge(&mut self) -> Result<(), Abort> {
        for (name, table) in std::mem::take(&mut self.judged) {
            table.judge(self, &name)?;
        }
        Ok(())
    }
}
