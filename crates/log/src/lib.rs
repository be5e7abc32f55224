//! The durable log of Hotrow: redo records in batches, checkpoints, and recovery.
//!
//! # Commits, stamps and epochs
//!
//! Each commit has a [`Stamp`]. If a commit must come after another, its stamp is larger. A worker appends the record of
//! its commit to a [`Buffer`] of its own while it holds its locks; that neither waits nor fails. One thread, the logger,
//! does all the writing, as in SiloR (Zheng et al., OSDI 2014) and dbx-tc §5:
//!
//! 1. It asks the engine for an epoch `e` below which every commit has been appended ([`Epochs::advance`]).
//! 2. It takes the records from all buffers. Those of epoch `e` or later stay for the next batch.
//! 3. It writes all others as one *frame* with a checksum, and syncs the file.
//! 4. It publishes epoch `e - 1` as durable and wakes all that waited for it.
//!
//! A frame survives whole or not at all, and frames are written one after the other. So what survives is always all
//! commits below some epoch: if a commit is there, all that it depends on is there, too.
//!
//! With [`Mode::Group`] the next batch begins the moment the device is free if somebody waits for it, and holds all that came
//! meanwhile. If nobody waits, the logger gathers records for [`GATHERING`], because each batch costs the processor a write and a sync,
//! however few records it has. Small frames are written over zeros that were written ahead, so that a sync does not change the file's length: it
//! takes 100 µs in place of 170 on the ext4 where that was measured.
//!
//! # Failures
//!
//! After a failed write or sync the log has failed for good ([`Failure`]): nobody knows what is on the device, so nothing
//! is written after it, and nothing that was not durable is acknowledged. A full disk is such a failure. Reading is
//! harmless, so failed reads are tried again a few times.
//!
//! # Recovery
//!
//! [`Log::open`] looks at the files and changes none. [`Opened::replay`] hands out the rows that survive, and
//! [`Opened::start`] starts the logger, after it has written the last file again if the log was not closed. docs/log-format.md describes the files byte by byte, and
//! how a torn tail is told from damage to acknowledged data.
//!
//! # Example
//!
//! ```
//! use hotrow_log::storage::Faulty;
//! use hotrow_log::{CatalogEntry, Epochs, Log, Options, Stamp, entry};
//! use std::sync::Arc;
//!
//! /// An engine whose only commit was made in epoch 1.
//! struct Engine(u64);
//! impl Epochs for Engine {
//!     fn advance(&mut self) -> u64 {
//!         self.0 += 1;
//!         self.0
//!     }
//! }
//!
//! let storage = Arc::new(Faulty::new(0));
//! let log = Log::open(storage.clone(), Options::default())?.start(Box::new(Engine(1)))?;
//! log.put_catalog(CatalogEntry { structure: 0, name: "accounts".into(), shape: Vec::new() })?;
//!
//! let mut record = Vec::new();
//! let bytes = |bytes: &'static [u8]| move |out: &mut Vec<u8>| Ok::<(), ()>(out.extend_from_slice(bytes));
//! entry::put(&mut record, 0, bytes(b"a0"), bytes(b"1000")).unwrap();
//! let mut buffer = log.buffer();
//! buffer.admit()?;
//! buffer.append(Stamp { epoch: 1, order: 0 }, &record);
//! log.wait_durable(1)?;
//!
//! let after_power_loss = Arc::new(storage.power_loss(7));
//! let mut opened = Log::open(after_power_loss, Options::default())?;
//! let last = opened.replay(1, &|_| (), &|row| assert_eq!((row.key, row.value), (&b"a0"[..], &b"1000"[..])))?;
//! assert!(last >= Stamp { epoch: 1, order: 0 });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod around;
mod backup;
mod buffer;
mod catalog;
mod checkpoint;
pub mod entry;
mod error;
mod files;
mod inspect;
mod layout;
mod log;
mod logger;
mod recovery;
mod shared;
pub mod storage;
mod waiting;

pub use around::AroundWaits;
pub use buffer::Buffer;
pub use catalog::CatalogEntry;
pub use checkpoint::CheckpointWriter;
pub use error::{BackupError, CheckpointError, DumpError, Failure, OpenError};
pub use inspect::{VerifyReport, dump, verify};
pub use log::{Log, Report};
pub use logger::{Epochs, Logger};
pub use recovery::{OpenReport, Opened, Progress, RecoveredRow, TornTail};
pub use waiting::WhenDurable;

use std::time::Duration;

/// The largest number of bytes of one record's entries.
pub const RECORD_BYTES_MAX: usize = 64 << 20;

/// Place of a commit in the order of commits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Stamp {
    /// The epoch, 1 or larger.
    pub epoch: u64,
    /// The place within the epoch.
    pub order: u64,
}

/// Time between the beginnings of two batches of [`Mode::Group`] for which nobody waits.
pub const GATHERING: Duration = Duration::from_millis(1);

/// The moment at which batches are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// As soon as somebody waits and the device is free. Every [`GATHERING`] if nobody waits, and earlier if a buffer is half full: a
    /// commit for which nobody waits is on the device that much later.
    Group,
    /// At intervals, and at once if somebody waits or a buffer is half full. A crash loses the commits of the last
    /// `interval`, and of the time that writing one batch takes, unless somebody has waited for them.
    Async {
        /// Time between the beginnings of two batches.
        interval: Duration,
    },
}

/// Options of a log.
#[derive(Clone, Debug)]
pub struct Options {
    /// The moment at which batches are written. Default: [`Mode::Group`].
    pub mode: Mode,
    /// Bytes after which a new segment (file) is begun. A smaller number lets checkpoints free space in smaller steps.
    /// Default: 64 MiB.
    pub segment_bytes: u64,
    /// Bytes that all segments together may have, and the records that are not written yet: [`Buffer::admit`] holds commits back before. A
    /// worker is expected to write no longer record than the last few; one that is longer may exceed the limit by the difference, as may
    /// what is appended without asking. Default: no limit.
    pub space_bytes_max: u64,
    /// Bytes that one worker's buffer may have before [`Buffer::admit`] waits. Default: 4 MiB.
    pub buffer_bytes_max: usize,
    /// Longest time that [`Buffer::admit`] waits for a checkpoint to begin when the log has no space left. While one is being
    /// written it waits for that one's end, however long it takes. Default: 1 s.
    pub space_wait: Duration,
    /// The surroundings of each wait of a thread for the log. Default: none.
    pub around_waits: Option<AroundWaits>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Group,
            segment_bytes: 64 << 20,
            space_bytes_max: u64::MAX,
            buffer_bytes_max: 4 << 20,
            space_wait: Duration::from_secs(1),
            around_waits: None,
        }
    }
}
