//! The hub of notifications: who listens to which channel, and what waits for whom.

use crate::error::SqlError;
use crate::instance::Shared;
use hotrow::sync::{Arc, Mutex, OnceLock, Weak, lock};
use std::collections::{HashMap, VecDeque};

/// The largest number of notifications that wait for one connection.
const WAITING_MAX: usize = 65_536;

/// The largest number of channels that one connection listens to.
const CHANNELS_MAX: usize = 10_000;

/// Something that happens when a transaction commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pending {
    Listen(String),
    /// Ends listening to one channel, or to all.
    Unlisten(Option<String>),
    /// Tells a channel a payload.
    Notify(String, String),
}

/// A notification: the process that has sent it, the channel and the payload.
type Notification = (i32, String, String);

/// Notifications that wait for one connection.
pub(super) struct Mailbox {
    waiting: Mutex<VecDeque<Notification>>,
    waker: Arc<dyn Fn() + Send + Sync>,
}

impl Mailbox {
    pub(super) fn new(waker: Arc<dyn Fn() + Send + Sync>) -> Arc<Self> {
        Arc::new(Self { waiting: Mutex::default(), waker })
    }

    /// Takes all that waits.
    pub(super) fn take(&self) -> Vec<Notification> {
        lock(&self.waiting).drain(..).collect()
    }
}

/// The hubs of all instances.
type Hubs = Vec<(Weak<Shared>, Arc<Hub>)>;

/// The listeners of an instance, by channel.
#[derive(Default)]
pub(super) struct Hub {
    channels: Mutex<HashMap<String, Vec<Arc<Mailbox>>>>,
}

impl Hub {
    /// The hub of an instance.
    pub(super) fn of(shared: &Arc<Shared>) -> Arc<Self> {
        static HUBS: OnceLock<Mutex<Hubs>> = OnceLock::new();
        let mut hubs = lock(HUBS.get_or_init(Mutex::default));
        hubs.retain(|(of, _)| of.strong_count() > 0);
        if let Some((_, hub)) = hubs.iter().find(|(of, _)| of.as_ptr() == Arc::as_ptr(shared)) {
            return hub.clone();
        }
        let hub = Arc::new(Self::default());
        hubs.push((Arc::downgrade(shared), hub.clone()));
        hub
    }

    /// Checks, before a commit, that those who are told can take more, and that the listener does not listen to too much.
    pub(super) fn check(&self, pending: &[Pending], mailbox: &Arc<Mailbox>) -> Result<(), SqlError> {
        let channels = lock(&self.channels);
        for one in pending {
            match one {
                Pending::Notify(channel, _) => {
                    let listeners = channels.get(channel).map(Vec::as_slice).unwrap_or_default();
                    if listeners.iter().any(|listener| lock(&listener.waiting).len() >= WAITING_MAX) {
                        return Err(SqlError::new("54000", "too many notifications in the NOTIFY queue"));
                    }
                }
                Pending::Listen(_) => {
                    let listens = |listeners: &&Vec<Arc<Mailbox>>| {
                        listeners.iter().any(|listener| Arc::ptr_eq(listener, mailbox))
                    };
                    if channels.values().filter(listens).count() >= CHANNELS_MAX {
                        return Err(SqlError::new("54000", "too many channels to listen to"));
                    }
                }
                Pending::Unlisten(_) => {}
            }
        }
        Ok(())
    }

    /// Does what a transaction has put off until its commit.
    pub(super) fn commit(&self, pending: Vec<Pending>, process: i32, mailbox: &Arc<Mailbox>) {
        let mut woken: Vec<Arc<Mailbox>> = Vec::new();
        let mut channels = lock(&self.channels);
        for one in pending {
            match one {
                Pending::Listen(channel) => {
                    let listeners = channels.entry(channel).or_default();
                    if !listeners.iter().any(|listener| Arc::ptr_eq(listener, mailbox)) {
                        listeners.push(mailbox.clone());
                    }
                }
                Pending::Unlisten(channel) => channels.retain(|name, listeners| {
                    if channel.as_ref().is_none_or(|channel| channel == name) {
                        listeners.retain(|listener| !Arc::ptr_eq(listener, mailbox));
                    }
                    !listeners.is_empty()
                }),
                Pending::Notify(channel, payload) => {
                    for listener in channels.get(&channel).map(Vec::as_slice).unwrap_or_default() {
                        lock(&listener.waiting).push_back((process, channel.clone(), payload.clone()));
                        if !woken.iter().any(|known| Arc::ptr_eq(known, listener)) {
                            woken.push(listener.clone());
                        }
                    }
                }
            }
        }
        drop(channels);
        woken.iter().for_each(|listener| (listener.waker)());
    }

    /// Forgets a connection.
    pub(super) fn leave(&self, mailbox: &Arc<Mailbox>) {
        self.commit(vec![Pending::Unlisten(None)], 0, mailbox);
    }
}
