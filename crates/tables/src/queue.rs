//! Queues: groups of rows whose first row is taken.
//!
//! A deferred insertion lines up for its group's *tail*, and an operation that takes the first row lines up for its
//! *head*. The two do not conflict as long as rows are inserted in the order of their keys, behind all existing rows.
//! A taker that finds no row also lines up for the tail and looks again at its turn there; the rows of all earlier
//! insertions are present by then. An insertion that is not deferred, or whose key turns out not to be the last of
//! its group, lines up for both.
//!
//! The first row of a group is stable for an operation at its turn at the head, because every deletion of a row of
//! the group lines up for the head, whether it is deferred or not. Only rows that come in behind it change during the
//! search. Rows become present in the order of their keys. So if the search finds a row behind others that were not
//! present, it runs once more: all rows before that one are present by then.

use crate::companions::{Groups, HEADS, Queues};
use crate::index::{Direction, Keyed};
use crate::key::{Image, ImageRange, Key, KeyBounds, own_range};
use crate::record::{Record, State};
use crate::storage::{Shared, tag};
use crate::table::Table;
use hotrow_core::{
    Abort, Access, ContextAccess, Deferred, Misuse, ObjectAccess, Protocol, Reason, Transaction, Value,
};
use hotrow_sync::atomic::{Ordering, fence};
use std::ops::{Bound, ControlFlow};
use std::ptr::NonNull;

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Declares that a deletion that is not deferred will change a group.
    #[inline]
    pub(crate) fn leave_queue(&self, tx: &mut ObjectAccess<'_, P>, key: &K) -> Result<(), Abort> {
        match &self.companions.queues {
            Some(queues) if tx.allows_deferral() => {
                self.change_groups(tx, [self.companions.groups.head(queues.group_of(key))])
            }
            _ => Ok(()),
        }
    }

    /// Declares the same of an insertion, whose record is in the index. A deferred insertion is at its turn at the
    /// tail, and checks that its key is the last of its group.
    #[inline]
    pub(crate) fn enter_queue(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
    ) -> Result<(), Abort> {
        match &self.companions.queues {
            Some(queues) if tx.allows_deferral() => self.enter_queue_by(tx, record, queues),
            _ => Ok(()),
        }
    }

    fn enter_queue_by(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        queues: &Queues<K>,
    ) -> Result<(), Abort> {
        // SAFETY: the attempt has made the record, which is in memory until the attempt ends.
        let key = unsafe { record.as_ref() }.key();
        let group = queues.group_of(key);
        let (head, tail) = (self.companions.groups.head(group), self.companions.groups.tail(group));
        if !tx.deferral().is_at_turn() {
            return self.change_groups(tx, [head, tail]);
        }
        if tx.deferral().is_at_turn_of(tail) && self.comes_last(tx, key, group, queues) {
            return Ok(());
        }
        // SAFETY: the record is this table's.
        let id = unsafe { tx.item(self, Record::address(record)) };
        Err(tx.conflict(Reason::Undeclared, id))
    }

    /// Notes what an insertion would change besides its record, for an attempt that will not commit.
    #[cold]
    pub(crate) fn scout_insertion(&self, tx: &mut ObjectAccess<'_, P>, key: &K) -> Result<(), Abort> {
        tx.deferral_mut().scout_insertion();
        let Some(queues) = &self.companions.queues else { return Ok(()) };
        let group = queues.group_of(key);
        self.change_groups(tx, [self.companions.groups.head(group), self.companions.groups.tail(group)])
    }

    /// True if a key follows all others of its group. The caller is at its turn at the group's tail.
    fn comes_last(&self, tx: &ObjectAccess<'_, P>, key: &K, group: u64, queues: &Queues<K>) -> bool {
        let last = queues.last_key(group);
        let comes_last =
            last.is_before(key, group, &self.companions.groups) || !self.is_followed(tx, key, group, queues);
        if comes_last {
            last.set(key, group, &self.companions.groups);
        }
        comes_last
    }

    /// True if there is a later key in the same group.
    fn is_followed(&self, tx: &ObjectAccess<'_, P>, key: &K, group: u64, queues: &Queues<K>) -> bool {
        let behind = Bound::Excluded(key.image());
        let Some(mut cursor) =
            self.index.keys().record_cursor((behind, Bound::Unbounded), Direction::Ascending)
        else {
            return true;
        };
        while let Some(records) = cursor.next(tx.pin().guard()) {
            if let Some(next) = records.first() {
                // SAFETY: found in the index under the attempt's pinned epoch.
                return queues.group_of(unsafe { next.as_ref() }.key()) == group;
            }
        }
        false
    }

    /// Lines up for groups at commit, by writes that change nothing.
    fn change_groups<const N: usize>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        segments: [NonNull<P::Header>; N],
    ) -> Result<(), Abort> {
        for segment in segments {
            // SAFETY: the segment is the groups', both are in the table's shared state; `tx` is of the table's operation.
            let (id, pending) = unsafe { tx.write::<Groups<P>>(&self.companions.groups, segment) }?;
            tx.release_after_inserts(id);
            if !pending {
                // SAFETY: announced just now; groups expect no payload.
                unsafe { tx.set_write_without_payload(id) };
            }
        }
        Ok(())
    }

    /// Takes the first row of a range at once: finds and deletes it.
    pub(crate) fn take_first(
        &self,
        tx: &mut Transaction<'_, P>,
        range: ImageRange<'_, K>,
    ) -> Result<Option<K>, Abort> {
        self.check_has_first(tx)?;
        let first = self.scan_for_first(tx, range)?;
        if let Some(key) = &first {
            self.delete(tx, key)?;
        }
        Ok(first)
    }

    /// Ends the attempt if the table's keys are in no order.
    fn check_has_first(&self, tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        if self.index.is_ordered() {
            return Ok(());
        }
        let table = self.meta.name();
        Err(tx.misuse(Misuse::Unsupported(format!(
            "table {table} has a hash index, which has no first row: make it without `hash`"
        ))))
    }

    /// Finds the key of the first row of a range, and makes the attempt depend on it.
    fn scan_for_first(
        &self,
        tx: &mut Transaction<'_, P>,
        range: ImageRange<'_, K>,
    ) -> Result<Option<K>, Abort> {
        let mut first = None;
        self.scan_images(tx, range, Direction::Ascending, |key, _| {
            first = Some(key.clone());
            ControlFlow::Break(())
        })?;
        Ok(first)
    }

    /// Finds the key of the first row of a range, for an intention. An intention that runs early is not in line, so
    /// it scans.
    fn look_for_first(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        range: ImageRange<'_, K>,
        at_tail: bool,
    ) -> Result<Option<K>, Abort> {
        if tx.deferral().is_at_turn() {
            self.find_first(tx, range, at_tail)
        } else {
            self.scan_for_first(tx, range)
        }
    }

    /// Lines up to take the first row of a group.
    pub(crate) fn line_up_to_take_first(
        &self,
        tx: &mut Transaction<'_, P>,
        group: u64,
        range: ImageRange<'_, K>,
    ) -> Result<Deferred<Option<K>>, Abort> {
        self.check_has_first(tx)?;
        let tx = self.enter_to_change(tx)?;
        tx.deferral_mut().settle_structure(&self.companions.groups.meta)?;
        let (head, tail) = (self.companions.groups.head(group), self.companions.groups.tail(group));
        // The second row is known only after the first one has been taken, and a row that the attempt inserts itself
        // may be the first.
        if self.companions.queues.is_none()
            || tx.deferral().has_deferred(head)
            || tx.deferral().has_deferred(tail)
        {
            tx.deferral_mut().settle()?;
            let taken = self.take_first(tx, range)?;
            return Ok(tx.known(taken));
        }
        // The bounds outlive the operation that gave them.
        let (range, range_again) = (own_range::<K>(range.clone()), own_range::<K>(range));
        let this = NonNull::from(self);
        // SAFETY: the table is freed through the epoch, and recorded intentions run before the attempt ends.
        let table = move || unsafe { this.as_ref() };
        // SAFETY: the segment is the groups', which are in the table's shared state; `tx` is of the table's operation.
        let at_head = unsafe {
            let look = move |tx: &mut ObjectAccess<'_, P>, ()| table().look_for_first(tx, range, false);
            tx.defer(&self.companions.groups, head, Access::Write, (), look)
        }?;
        let found = tx.deferral_mut().defer_late(
            &self.meta,
            self.companions.groups.meta.rank_of(HEADS),
            at_head,
            move |tx, first| match first {
                Some(_) => Ok(tx.known(first)),
                // SAFETY: as above.
                None => unsafe {
                    let look =
                        move |tx: &mut ObjectAccess<'_, P>, ()| table().look_for_first(tx, range_again, true);
                    tx.defer(&table().companions.groups, tail, Access::Read, (), look)
                },
            },
        )?;
        let taken =
            tx.deferral_mut().defer_late(&self.meta, self.meta.rank_of(0), found, move |tx, first| {
                match first {
                    Some(key) => table().defer_delete_of(tx, head, key),
                    None => Ok(tx.known(None)),
                }
            })?;
        self.will_change_structure(tx);
        Ok(taken)
    }

    /// Finds the key of the first row of a range, at the attempt's turn at a group's head or tail. Each transaction
    /// before it in line has already deleted or inserted its rows.
    fn find_first(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        range: ImageRange<'_, K>,
        at_tail: bool,
    ) -> Result<Option<K>, Abort> {
        let from = tx.history_mut().begin_range();
        let mut first = self.first_present(tx, range.clone());
        if first.is_some_and(|(_, has_passed)| has_passed) {
            // A row that was absent when it was passed may have come before the row found. It is present by now.
            // Acquire: pairs with the release in `Record::set_state`.
            fence(Ordering::Acquire);
            first = self.first_present(tx, range.clone());
        }
        // The rows were found without their versions, so the attempt's other reads may be of an earlier state.
        tx.learn_absence(None)?;
        let first = first.map(|(key, _)| key);
        // At the head nothing is known of rows that come in behind the last one.
        if (first.is_some() || at_tail)
            && let Some(from) = from
        {
            let (low, mut high) = range;
            if let Some(first) = first {
                high = Bound::Excluded(K::Image::own(&first.image()));
            }
            self.record_covered(tx, (low, high), from);
        }
        Ok(first.cloned())
    }

    /// Finds the key of the first present row of a range. The flag is true if absent rows or whole leaves were passed
    /// before it.
    fn first_present<'t>(
        &'t self,
        tx: &ObjectAccess<'_, P>,
        range: ImageRange<'_, K>,
    ) -> Option<(&'t K, bool)> {
        let mut cursor = self.index.keys().record_cursor(range, Direction::Ascending)?;
        // A cache is read before the leaf in which the row may be found.
        let mut has_passed = self.index.is_cached();
        while let Some(records) = cursor.next(tx.pin().guard()) {
            for &key in records {
                // SAFETY: the table's index holds keys of its records; found under the attempt's pinned epoch.
                let record = unsafe { Record::<K, R, P>::of_key(key) };
                let address = Record::address(record);
                // SAFETY: as above.
                let record = unsafe { record.as_ref() };
                let is_present = match tx.own_write(address) {
                    Some(id) => matches!(tx.tag(id), tag::UPDATE | tag::INSERTED | tag::CHANGES),
                    None => record.state() == State::Present,
                };
                if is_present {
                    return Some((record.key(), has_passed));
                }
                has_passed = true;
            }
            has_passed = true;
        }
        None
    }
}

impl<K: Key, R: Value, P: Protocol> Table<K, R, P> {
    /// Deletes the first row of a range and returns its key; `None` if the range is empty.
    ///
    /// # Errors
    ///
    /// As [`scan`](Self::scan).
    pub fn take_first(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<K>,
    ) -> Result<Option<K>, Abort> {
        self.shared.take_first(tx, range.images())
    }
}
