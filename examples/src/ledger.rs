//! A durable ledger. Each payment has an idempotency key, so that a client may send it again; takes money from an account that must not be
//! overdrawn; and adds it to one settlement account, which is the hot row of all. An audit adds everything up beside it.
//!
//! - The settlement account is only added to (`add`), last, and never read: payments of different accounts do not abort each other.
//! - The account is debited by `subtract_if_enough`: it depends on there being enough and not on how much there is.
//! - The key is a row of its own. Two copies of a request that arrive together insert the same key, so that one of them finds the
//!   other's outcome.
//! - The audit runs on a snapshot: it sees one moment, and no payment waits for it or aborts.
//! - `transact` returns when the payment is on the device. Locks are released before, so one write serves many payments.
//!
//! Over a mutex ([`OverMutex`](rivals::OverMutex)) nothing survives the process. Over redb
//! ([`OverRedb`](rivals::OverRedb)) payments go one after the other, each with a write of its own.

use crate::Store;
use crate::load::{self, Scenario};
use crate::rivals::ledger as rivals;
use hotrow::durable::storage::Directory;
use hotrow::durable::{DurableBuilder, DurableDatabase, OpenError};
use hotrow::sync::random::Random;
use hotrow::{Column, Database, Direction, Error, Stored, Table, Value};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// The account that all payments go to.
pub(crate) const SETTLEMENT: u64 = 0;
/// Accounts that pay.
pub(crate) const ACCOUNTS: u64 = 1_000;
/// The balance of each in the beginning, in cents.
pub(crate) const FIRST_BALANCE: i64 = 100_000;

/// A payment that was made.
#[derive(Debug, Clone, PartialEq, Eq, Value, Stored)]
pub(crate) struct Payment {
    pub(crate) account: u64,
    pub(crate) amount: i64,
}

/// The account has less than the payment.
#[derive(Debug, thiserror::Error)]
#[error("account {account} has less than {amount}")]
struct Overdrawn {
    account: u64,
    amount: i64,
}

/// The ledger of a directory.
pub(crate) struct Ledger {
    db: Database,
    balances: Table<u64, i64>,
    payments: Table<String, Payment>,
}

impl Ledger {
    /// Opens the ledger of a directory; a new one has accounts with their first balances.
    pub(crate) fn open(directory: &Path) -> Result<Self, OpenError> {
        let db = Database::builder().checkpoint_after(64 << 20).open_at(directory)?;
        let balances = db.table("balances").load().expect("the program's only tables");
        if balances.is_new() {
            let accounts = (1..=ACCOUNTS).map(|account| (account, FIRST_BALANCE));
            for (account, balance) in accounts.chain([(SETTLEMENT, 0)]) {
                balances.insert(account, balance).expect("each account is there once");
            }
        }
        let balances = balances.finish().expect("the log takes it");
        let payments = db.table("payments").create().expect("the program's only tables");
        Ok(Self { db, balances, payments })
    }

    /// Makes a payment, or returns the one that was made with the same key.
    pub(crate) fn pay(&self, key: &str, account: u64, amount: i64) -> Result<Payment, Error> {
        self.db.transact(|tx| {
            if let Some(earlier) = self.payments.get(tx, key)? {
                return Ok(earlier);
            }
            let payment = Payment { account, amount };
            self.payments.insert(tx, key.to_owned(), payment.clone())?;
            let enough = self.balances.subtract_if_enough(tx, &account, Column::whole(), amount)?;
            tx.ensure(enough, Overdrawn { account, amount })?;
            self.balances.add(tx, &SETTLEMENT, Column::whole(), amount)?;
            Ok(payment)
        })
    }

    /// Adds up all balances and all payments, as they are at one moment.
    pub(crate) fn audit(&self) -> Result<Audit, Error> {
        self.db.snapshot_strict()?.transact(|tx| {
            let mut audit = Audit::default();
            self.balances.scan(tx, .., Direction::Ascending, |account, balance| {
                audit.balances += balance;
                if *account == SETTLEMENT {
                    audit.settled = *balance;
                }
                ControlFlow::Continue(())
            })?;
            self.payments.scan(tx, .., Direction::Ascending, |_, payment| {
                audit.paid += payment.amount;
                ControlFlow::Continue(())
            })?;
            Ok(audit)
        })
    }
}

/// The sums of an audit.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Audit {
    /// Sum of all balances.
    pub(crate) balances: i64,
    /// Balance of the settlement account.
    pub(crate) settled: i64,
    /// Sum of all payments.
    pub(crate) paid: i64,
}

impl Audit {
    /// Checks that no money came or went, and that the settlement account has what was paid.
    pub(crate) fn check(self) -> Result<String, String> {
        let expected = ACCOUNTS as i64 * FIRST_BALANCE;
        if self.balances == expected && self.settled == self.paid {
            Ok(format!("{} paid, and nothing came or went", self.paid))
        } else {
            Err(format!("{self:?}, but the balances should be {expected}"))
        }
    }
}

/// The next payment of a client: one in ten is sent again.
pub(crate) fn next_payment(thread: usize, number: u64, random: &mut Random) -> (String, u64, i64) {
    let number = if number % 10 == 9 { number - 1 } else { number };
    (format!("{thread}-{number}"), 1 + random.below(ACCOUNTS), 1 + random.below(100) as i64)
}

/// The ledger under load, in a directory of its own.
struct UnderLoad {
    ledger: Ledger,
    directory: TempDir,
}

impl Scenario for UnderLoad {
    fn one(&self, thread: usize, number: u64, random: &mut Random) -> bool {
        let (key, account, amount) = next_payment(thread, number, random);
        match self.ledger.pay(&key, account, amount) {
            Ok(_) => true,
            Err(Error::Rollback(_)) => false,
            Err(error) => panic!("{error}"),
        }
    }

    fn beside(&self) -> Option<Duration> {
        let audit = self.ledger.audit().expect("a snapshot");
        audit.check().expect("the audit of a moment");
        Some(Duration::from_millis(50))
    }

    fn check(&self) -> Result<String, String> {
        let before = self.ledger.audit().map_err(|error| error.to_string())?.check()?;
        // A backup of the running database is a database, too.
        let copy = self.directory.path().join("backup");
        let to = Directory::new(&copy).map_err(|error| error.to_string())?;
        self.ledger.db.backup(&to).map_err(|error| error.to_string())?;
        drop(to);
        let again = Ledger::open(&copy).map_err(|error| error.to_string())?;
        let after = again.audit().map_err(|error| error.to_string())?.check()?;
        if before == after {
            Ok(format!("{after}, in a backup, too"))
        } else {
            Err(format!("{before}; {after}"))
        }
    }

    fn conflicts(&self) -> Option<String> {
        Some(load::report(&self.ledger.db))
    }
}

pub(crate) const STORES: &[Store] = &[
    Store {
        name: "hotrow",
        make: || {
            let directory = tempfile::tempdir()?;
            let ledger = Ledger::open(&directory.path().join("ledger"))?;
            Ok(Box::new(UnderLoad { ledger, directory }))
        },
    },
    Store { name: "mutex", make: || Ok(Box::new(rivals::OverMutex::new())) },
    Store { name: "redb", make: || Ok(Box::new(rivals::OverRedb::new()?)) },
];
