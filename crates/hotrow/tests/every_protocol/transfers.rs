//! Money moved between accounts by more threads than there are cores: no sum ever changes.

use crate::support;
use crate::support::{for_each_protocol, on_threads};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::random::Random;
use hotrow::{Abort, Database, Direction, Engine, Protocol, TArray, TBox, Table, Transaction};
use std::ops::ControlFlow;

const ACCOUNTS: u64 = 12;
const BALANCE: i64 = 1_000;

/// Accounts in each kind of object there is.
enum Bank<P: Protocol> {
    Boxes(Vec<TBox<i64, P>>),
    Array(TArray<i64, P>),
    Hash(Table<u64, i64, P>),
    Ordered(Table<u64, i64, P>),
    Texts(Vec<TBox<String, P>>),
}

impl<P: Protocol> Bank<P> {
    fn all(engine: &Engine<P>) -> Vec<Self> {
        let hash = Database::on(engine).table("hash").hash(4).create().unwrap();
        let ordered = Database::on(engine).table("ordered").create().unwrap();
        (0..ACCOUNTS).for_each(|account| {
            assert!(
                hash.bulk_insert([(account, BALANCE)]).is_ok()
                    && ordered.bulk_insert([(account, BALANCE)]).is_ok()
            )
        });
        vec![
            Bank::Boxes((0..ACCOUNTS).map(|_| TBox::new(engine, BALANCE)).collect()),
            Bank::Array(TArray::new(engine, ACCOUNTS as usize, |_| BALANCE)),
            Bank::Hash(hash),
            Bank::Ordered(ordered),
            Bank::Texts((0..ACCOUNTS).map(|_| TBox::new(engine, BALANCE.to_string())).collect()),
        ]
    }

    fn get(&self, tx: &mut Transaction<'_, P>, account: u64) -> Result<i64, Abort> {
        match self {
            Bank::Boxes(boxes) => boxes[account as usize].get(tx),
            Bank::Array(array) => array.get(tx, account as usize),
            Bank::Hash(table) | Bank::Ordered(table) => Ok(table.get(tx, &account)?.expect("an account")),
            Bank::Texts(texts) => texts[account as usize].read(tx, |text| text.parse().expect("a number")),
        }
    }

    fn add(&self, tx: &mut Transaction<'_, P>, account: u64, amount: i64) -> Result<(), Abort> {
        match self {
            Bank::Boxes(boxes) => boxes[account as usize].update(tx, |balance| *balance += amount),
            Bank::Array(array) => array.update(tx, account as usize, |balance| *balance += amount),
            Bank::Hash(table) | Bank::Ordered(table) => {
                table.update_if_present(tx, &account, |balance| *balance += amount)?.expect("an account");
                Ok(())
            }
            Bank::Texts(_) => {
                let balance = self.get(tx, account)?;
                let Bank::Texts(texts) = self else { unreachable!() };
                texts[account as usize].set(tx, (balance + amount).to_string())
            }
        }
    }

    fn sum(&self, tx: &mut Transaction<'_, P>) -> Result<i64, Abort> {
        if let Bank::Ordered(table) = self {
            let mut sum = 0;
            table.scan(tx, .., Direction::Descending, |_, balance| {
                sum += balance;
                ControlFlow::Continue(())
            })?;
            return Ok(sum);
        }
        (0..ACCOUNTS).map(|account| self.get(tx, account)).sum()
    }
}

fn move_money<P: Protocol>(threads: u64, rounds: u64) {
    let engine = support::engine::<P>();
    for bank in Bank::all(&engine) {
        let sums = AtomicU64::new(0);
        on_threads(&engine, threads, |number, worker| {
            let mut random = Random::stream(1, number);
            for round in 0..rounds {
                if round % 8 == 0 {
                    let sum = worker.transact(|tx| {
                        let sum = bank.sum(tx)?;
                        if engine.is_opaque() {
                            assert_eq!(sum, ACCOUNTS as i64 * BALANCE, "an attempt that saw two states");
                        }
                        Ok(sum)
                    });
                    assert_eq!(sum, Ok(ACCOUNTS as i64 * BALANCE), "a transaction that saw two states");
                    sums.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                // Few accounts are hot.
                let hot = if random.chance(0.5) { 2 } else { ACCOUNTS };
                let (from, to, amount) = (random.below(hot), random.below(ACCOUNTS), random.below(50) as i64);
                let gives_up = random.chance(0.1);
                let moved = worker.transact(|tx| {
                    bank.add(tx, from, -amount)?;
                    bank.add(tx, to, amount)?;
                    if engine.is_opaque() && round % 64 == 1 {
                        assert_eq!(bank.sum(tx)?, ACCOUNTS as i64 * BALANCE, "its own writes, others' none");
                    }
                    if gives_up { Err(Abort::rollback()) } else { Ok(()) }
                });
                assert_eq!(moved.is_err(), gives_up);
            }
        });
        assert_eq!(engine.transact(|tx| bank.sum(tx)), Ok(ACCOUNTS as i64 * BALANCE));
        assert_eq!(sums.into_inner(), threads * rounds.div_ceil(8));
    }
}

#[test]
fn the_sum_of_all_accounts_is_the_same_in_every_transaction() {
    for_each_protocol!(6, |P| { move_money::<P>(6, 800) });
}

#[test]
#[ignore = "long: run with -- --ignored"]
fn the_sum_of_all_accounts_is_the_same_in_very_many_transactions() {
    for_each_protocol!(8, |P| { move_money::<P>(8, 60_000) });
}

/// Two accounts may be overdrawn as long as the other one covers it: each withdrawal reads both, writes one.
fn overdraw<P: Protocol>(threads: u64, rounds: u64) {
    const PAIRS: usize = 3;
    let engine = support::engine::<P>();
    let pairs = TArray::new(&engine, PAIRS * 2, |_| 10i64);
    let withdrawn: i64 = on_threads(&engine, threads, |number, worker| {
        let mut random = Random::stream(2, number);
        let mut withdrawn = 0;
        for _ in 0..rounds {
            let pair = random.below(PAIRS as u64) as usize * 2;
            let side = random.below(2) as usize;
            // More goes than comes, so that the border is always near.
            let amount = if random.chance(0.7) { 7 } else { -10 };
            let done = worker.transact(|tx| {
                let rest = pairs.get(tx, pair)? + pairs.get(tx, pair + 1)?;
                if rest < amount {
                    return Ok(0);
                }
                pairs.update(tx, pair + side, |balance| *balance -= amount)?;
                Ok(amount)
            });
            withdrawn += done.unwrap();
            let sum = worker.transact(|tx| Ok(pairs.get(tx, pair)? + pairs.get(tx, pair + 1)?)).unwrap();
            assert!(sum >= 0, "a write skew: {sum}");
        }
        withdrawn
    })
    .into_iter()
    .sum();
    let rest: i64 = engine.transact(|tx| (0..PAIRS * 2).map(|at| pairs.get(tx, at)).sum()).unwrap();
    assert_eq!(rest + withdrawn, PAIRS as i64 * 20);
}

#[test]
fn two_accounts_that_cover_each_other_are_never_both_overdrawn() {
    for_each_protocol!(6, |P| { overdraw::<P>(6, 2_000) });
}

#[test]
fn no_increment_is_lost() {
    for_each_protocol!(8, |P| {
        let engine = support::engine::<P>();
        let numbers = TArray::new(&engine, 3, |_| 0u64);
        let table = Database::on(&engine).table::<u64, u64>("rows").hash(1).create().unwrap();
        let read_back = on_threads(&engine, 8, |number, worker| {
            (0..500)
                .map(|round| {
                    worker
                        .transact(|tx| {
                            let seen = numbers.get(tx, 0)?;
                            numbers.set(tx, 0, seen + 1)?;
                            numbers.update(tx, 1 + (round + number as usize) % 2, |n| *n += 1)?;
                            if table.update_if_present(tx, &(round as u64 % 5), |n| *n += 1)?.is_none() {
                                table.insert_if_absent(tx, round as u64 % 5, 1)?;
                            }
                            Ok(seen)
                        })
                        .unwrap()
                })
                .collect::<Vec<_>>()
        });
        let mut seen: Vec<u64> = read_back.into_iter().flatten().collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..4_000), "each transaction saw the one before it");
        let sums = engine
            .transact(|tx| {
                let rows: Vec<_> = (0..5).map(|key| table.get(tx, &key)).collect::<Result<_, _>>()?;
                Ok((numbers.get(tx, 1)? + numbers.get(tx, 2)?, rows))
            })
            .unwrap();
        assert_eq!(sums, (4_000, vec![Some(800); 5]));
    });
}
