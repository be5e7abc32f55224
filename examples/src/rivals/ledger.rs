//! The ledger over a mutex, in memory, and over redb.

use crate::ledger::{ACCOUNTS, Audit, FIRST_BALANCE, Payment, SETTLEMENT, next_payment};
use crate::load::Scenario;
use crate::rivals::store::Store;
use hotrow::sync::random::Random;
use redb::{ReadableTable, TableDefinition};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Everything behind one mutex. Nothing survives the process.
pub(crate) struct OverMutex(Mutex<Books>);

struct Books {
    balances: Vec<i64>,
    payments: HashMap<String, Payment>,
}

impl OverMutex {
    pub(crate) fn new() -> Self {
        let mut balances = vec![FIRST_BALANCE; ACCOUNTS as usize + 1];
        balances[SETTLEMENT as usize] = 0;
        Self(Mutex::new(Books { balances, payments: HashMap::new() }))
    }

    fn audit(&self) -> Audit {
        let books = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Audit {
            balances: books.balances.iter().sum(),
            settled: books.balances[SETTLEMENT as usize],
            paid: books.payments.values().map(|payment| payment.amount).sum(),
        }
    }
}

impl Scenario for OverMutex {
    fn one(&self, thread: usize, number: u64, random: &mut Random) -> bool {
        let (key, account, amount) = next_payment(thread, number, random);
        let mut books = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if books.payments.contains_key(&key) {
            return true;
        }
        if books.balances[account as usize] < amount {
            return false;
        }
        books.balances[account as usize] -= amount;
        books.balances[SETTLEMENT as usize] += amount;
        books.payments.insert(key, Payment { account, amount });
        true
    }

    fn beside(&self) -> Option<Duration> {
        self.audit().check().expect("the audit of a moment");
        Some(Duration::from_millis(50))
    }

    fn check(&self) -> Result<String, String> {
        self.audit().check()
    }
}

const BALANCES: TableDefinition<'_, u64, i64> = TableDefinition::new("balances");
/// Account and amount.
const PAYMENTS: TableDefinition<'_, &str, (u64, i64)> = TableDefinition::new("payments");

/// A store each of whose commits is on the device when it returns.
pub(crate) struct OverRedb(Store);

impl OverRedb {
    pub(crate) fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let store = Store::synced()?;
        let accounts = (1..=ACCOUNTS).map(|account| (account, FIRST_BALANCE));
        store.fill(BALANCES, std::iter::once((SETTLEMENT, 0)).chain(accounts))?;
        store.fill(PAYMENTS, [])?;
        Ok(Self(store))
    }

    fn pay(&self, key: &str, account: u64, amount: i64) -> Result<bool, redb::Error> {
        let mut was_paid = false;
        let paid = self.0.write(|tx| {
            let mut payments = tx.open_table(PAYMENTS)?;
            was_paid = payments.get(key)?.is_some();
            let mut balances = tx.open_table(BALANCES)?;
            let balance = balances.get(account)?.map_or(0, |balance| balance.value());
            if was_paid || balance < amount {
                return Ok(None);
            }
            let settled = balances.get(SETTLEMENT)?.map_or(0, |balance| balance.value());
            balances.insert(account, balance - amount)?;
            balances.insert(SETTLEMENT, settled + amount)?;
            payments.insert(key, (account, amount))?;
            Ok(Some(()))
        })?;
        Ok(was_paid || paid.is_some())
    }

    fn audit(&self) -> Result<Audit, redb::Error> {
        let tx = self.0.read()?;
        let mut audit = Audit::default();
        for entry in tx.open_table(BALANCES)?.iter()? {
            let (account, balance) = entry?;
            audit.balances += balance.value();
            if account.value() == SETTLEMENT {
                audit.settled = balance.value();
            }
        }
        for entry in tx.open_table(PAYMENTS)?.iter()? {
            audit.paid += entry?.1.value().1;
        }
        Ok(audit)
    }
}

impl Scenario for OverRedb {
    fn one(&self, thread: usize, number: u64, random: &mut Random) -> bool {
        let (key, account, amount) = next_payment(thread, number, random);
        self.pay(&key, account, amount).expect("a payment")
    }

    fn beside(&self) -> Option<Duration> {
        let audit = self.audit().expect("a read transaction");
        audit.check().expect("the audit of a moment");
        Some(Duration::from_millis(50))
    }

    fn check(&self) -> Result<String, String> {
        self.audit().map_err(|error| error.to_string())?.check()
    }
}
