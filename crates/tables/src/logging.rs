//! The writes of a durable table's commits to its database's log.
//!
//! An insertion logs the row whole, and a deletion its key. A change of an inline row logs the fields that have changed, one by
//! one; the locks that the commit holds decide between the changes of a field, whether the row is one segment or
//! [split](crate::split). Of a split row the record logs the main columns alone, as the columns of groups that it has count for nothing, and each
//! part its own. Rows of other types are logged whole. Recovery takes the newest whole row, and then each field that is newer
//! (crate `hotrow-durable`).
//!
//! Changes at the commit are logged by their results, which the lock makes final, and which are installed.

use crate::companions::{RowLog, SplitRows};
use crate::index::Keyed;
use crate::key::Key;
use crate::record::{Pending, Record};
use crate::storage::{Shared, tag};
use hotrow_core::{Cell, Item, Pin, Protocol, Value};
use std::sync::Arc;

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Sets the way to the log. The table is new.
    pub(crate) fn set_log(&mut self, log: Arc<RowLog<K, R>>) {
        self.companions.split.iter_mut().for_each(|split| split.set_log(log.clone()));
        self.companions.log = Some(log);
    }

    /// Appends the entries of an item's pending write.
    ///
    /// # Safety
    ///
    /// As for [`Object::log`](hotrow_core::Object::log).
    pub(crate) unsafe fn log_write(
        &self,
        item: &Item<P>,
        pin: &Pin,
        entries: &mut Vec<u8>,
    ) -> Result<(), String> {
        let Some(log) = &self.companions.log else { return Ok(()) };
        // SAFETY: items of this object are for its records, which live until the attempt ends.
        let record = unsafe { Record::<K, R, P>::at(item.segment()) };
        let key = record.key();
        let elsewhere = self.split().map_or(0, SplitRows::logged_fields);
        match item.tag() {
            // SAFETY: an update has a payload of this type. The caller holds the lock, so that nothing is installed.
            tag::UPDATE => unsafe {
                let after = R::Cell::pending(&*item.payload::<Pending<R>>());
                log.put_changes(entries, key, (record.row(), after), elsewhere)
            },
            // SAFETY: the tag says what the payload is; the caller holds the lock.
            tag::CHANGES => unsafe {
                Self::changes_of(item).look_in(record.cell(), pin, |after| {
                    log.put_changes(entries, key, (record.row(), after), elsewhere)
                })
            },
            // SAFETY: the attempt holds the lock of a record that it made, so nothing is installed.
            tag::INSERTED => log.put(entries, key, unsafe { record.row() }),
            tag::DELETE => log.delete(entries, key),
            _ => Ok(()),
        }
    }
}
