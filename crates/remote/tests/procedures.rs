//! Procedures over a cluster: they do what they do in a database, in few round trips.

use hotrow::{
    Context, Database, Direction, Key, KeyRange, Operations, Procedure, Procedures, Profile, Stored,
    TableRef, Value, column_of,
};
use hotrow_remote::{Cluster, MemoryStore};
use std::ops::ControlFlow;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
struct Row {
    left: i64,
    #[value(group = "right")]
    right: i64,
}

/// A key of a few, so that operations meet.
fn near(number: i64) -> u64 {
    number.rem_euclid(8) as u64
}

/// An operation of a random program, on a key that an earlier value decides or on one that is given.
#[derive(Debug, Clone, Copy)]
struct Step {
    kind: u8,
    key: u64,
    from: Option<usize>,
    amount: i64,
}

/// A random program over two tables.
#[derive(Debug, Clone)]
struct Program {
    tables: [TableRef<u64, Row>; 2],
    steps: Vec<Step>,
}

impl Procedure for Program {
    type Output = Vec<i64>;

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Vec<i64>>, C::Stop> {
        let mut values: Vec<C::Val<i64>> = Vec::new();
        for Step { kind, key, from, amount } in self.steps.iter().copied() {
            let table = self.tables[(key % 2) as usize];
            let number = match from {
                Some(from) if from < values.len() => values[from].clone(),
                _ => cx.value(key as i64),
            };
            let at = cx.map(number.clone(), near);
            let value = match kind {
                0 => {
                    let read = cx.read(table, at, |row| row.left + row.right)?;
                    cx.map(read, |read| read.unwrap_or(-1))
                }
                1 => {
                    let changed = cx.update(table, at, number, move |row, number| {
                        row.left += number % 100 + amount;
                        row.left
                    })?;
                    cx.map(changed, |changed| changed.unwrap_or(-2))
                }
                2 => {
                    let row = cx.map(number, move |number| Row { left: number % 100, right: amount });
                    let inserted = cx.insert(table, at, row)?;
                    cx.map(inserted, i64::from)
                }
                3 => {
                    let deleted = cx.delete(table, at)?;
                    cx.map(deleted, i64::from)
                }
                4 => {
                    let range = cx.map(at, |at| KeyRange::from(at..=at + 3));
                    let taken = cx.take_first(table, 0, range)?;
                    cx.map(taken, |taken| taken.map_or(-3, |key| key as i64))
                }
                5 => {
                    let range = cx.map(at, |at| KeyRange::from(at..=at + 4));
                    let direction =
                        if amount % 2 == 0 { Direction::Ascending } else { Direction::Descending };
                    cx.scan(table, range, direction, 0, |sum: &mut i64, key: &u64, row: &Row| {
                        *sum = (*sum * 3 + *key as i64 + row.right) % 1_000;
                        if *sum % 7 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    })?
                }
                6 => {
                    let keys =
                        cx.map(number.clone(), |number| [near(number), near(number + 3), near(number / 2)]);
                    let input = cx.value(amount);
                    cx.update_each(table, keys, input, 0, |sum: &mut i64, row: &mut Row, input| {
                        row.right += input;
                        *sum += row.right;
                    })?
                }
                7 => {
                    let amount = cx.value(amount);
                    cx.add(table, at, column_of!(Row, right), amount)?;
                    cx.value(0)
                }
                8 => {
                    let row = cx.map(number, |number| Row { left: number % 100, right: -1 });
                    let replaced = cx.replace(table, at, row)?;
                    cx.map(replaced, i64::from)
                }
                9 => {
                    let plain = cx.force(number)?;
                    cx.value(plain % 50)
                }
                10 => {
                    let right = cx.read_columns(table, at, column_of!(Row, right))?;
                    let holds = cx.map(right, |right| right != Some(7));
                    cx.require(holds)?;
                    cx.value(1)
                }
                _ => {
                    let amount = cx.value(amount);
                    cx.commute_columns(table, at, column_of!(Row, left), amount, |left, amount| {
                        *left -= amount
                    })?;
                    cx.value(2)
                }
            };
            values.push(value);
        }
        let mut all = cx.value(Vec::new());
        for value in values {
            let both = cx.zip(all, value);
            all = cx.map(both, |(mut all, value)| {
                all.push(value);
                all
            });
        }
        Ok(all)
    }
}

fn cluster() -> Cluster {
    Cluster::over(Arc::new(MemoryStore::new()))
}

#[test]
fn random_procedures_do_what_they_do_in_a_database() {
    let mut random = fastrand::Rng::with_seed(17);
    for round in 0..90 {
        let (database, cluster) = (Database::open().unwrap(), cluster());
        let names = ["one", "two"];
        let local = names.map(|name| {
            let mut builder = database.table::<u64, Row>(name);
            if round % 3 > 0 {
                builder.unique("by_left", |_, row| row.left);
            }
            if round % 3 > 1 {
                builder = builder.check("not 5", |_, row| row.right != 5);
            }
            builder.create().unwrap()
        });
        let remote = names.map(|name| {
            let mut builder = cluster.table::<u64, Row>(name);
            if round % 3 > 0 {
                builder.unique("by_left", |_, row| row.left);
            }
            if round % 3 > 1 {
                builder = builder.check("not 5", |_, row| row.right != 5);
            }
            builder.create_or_open().unwrap()
        });
        for _ in 0..20 {
            let count = random.usize(1..14);
            let step = |random: &mut fastrand::Rng| Step {
                kind: random.u8(0..12),
                key: random.u64(0..16),
                from: random.bool().then(|| random.usize(0..14)),
                amount: random.i64(-9..10),
            };
            let steps: Vec<Step> = (0..count).map(|_| step(&mut random)).collect();
            let tables = [local[0].reference(), local[1].reference()];
            let expected = database.execute(&Program { tables, steps: steps.clone() });
            let tables = [remote[0].reference(), remote[1].reference()];
            let found = cluster.execute(&Program { tables, steps: steps.clone() });
            match (&expected, &found) {
                (Ok(expected), Ok(found)) => assert_eq!(expected, found, "{steps:?}"),
                (Err(_), Err(_)) => {}
                _ => panic!("{expected:?} and {found:?} of {steps:?}"),
            }
            for (local, remote) in local.iter().zip(&remote) {
                let expected = database.transact(|tx| {
                    let mut rows = Vec::new();
                    local.scan(tx, .., Direction::Ascending, |key, row| {
                        rows.push((*key, *row));
                        ControlFlow::Continue(())
                    })?;
                    Ok(rows)
                });
                let found = cluster.transact(|tx| tx.rows(remote, ..)).unwrap();
                assert_eq!(expected.unwrap(), found, "{steps:?}");
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key, Stored)]
struct LineKey {
    order: u64,
    line: u64,
}

/// An order of several lines: it takes a number, reads and changes articles, and inserts lines.
struct Order {
    numbers: TableRef<u64, Row>,
    articles: TableRef<u64, Row>,
    lines: TableRef<LineKey, Row>,
    count: u64,
}

impl Procedure for Order {
    type Output = u64;

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<u64>, C::Stop> {
        let (key, nothing) = (cx.value(0), cx.value(()));
        let number = cx.update(self.numbers, key, nothing, |row, ()| {
            row.left += 1;
            row.left as u64
        })?;
        let number = cx.map(number, Option::unwrap_or_default);
        for line in 0..self.count {
            let (key, nothing) = (cx.value(line), cx.value(()));
            let left = cx.update(self.articles, key, nothing, |row, ()| {
                row.left -= 1;
                row.left
            })?;
            let enough = cx.map(left.clone(), |left| left.is_some_and(|left| left >= 0));
            cx.require(enough)?;
            let key = cx.map(number.clone(), move |order| LineKey { order, line });
            let row = cx.map(left, |left| Row { left: left.unwrap_or(0), right: 1 });
            cx.insert(self.lines, key, row)?;
        }
        Ok(number)
    }
}

#[test]
fn an_order_of_twenty_lines_waits_for_the_store_three_times() {
    let cluster = cluster();
    let numbers = cluster.table::<u64, Row>("numbers").create_or_open().unwrap();
    let articles = cluster.table::<u64, Row>("articles").create_or_open().unwrap();
    let lines = cluster.table::<LineKey, Row>("lines").create_or_open().unwrap();
    let fill = cluster.transact(|tx| {
        tx.insert(&numbers, 0, Row { left: 0, right: 0 })?;
        (0..20).try_for_each(|article| tx.insert(&articles, article, Row { left: 2, right: 0 }))
    });
    fill.unwrap();
    let order = Order {
        numbers: numbers.reference(),
        articles: articles.reference(),
        lines: lines.reference(),
        count: 20,
    };
    for number in 1..=2 {
        let before = cluster.counts();
        assert_eq!(cluster.execute(&order).unwrap(), number);
        let after = cluster.counts();
        assert_eq!((after.asked - before.asked, after.sent - before.sent), (2, 1));
    }
    assert!(cluster.execute(&order).unwrap_err().to_string().contains("rolled back"), "there are no more");
    assert_eq!(cluster.transact(|tx| Ok(tx.rows(&lines, ..)?.len())).unwrap(), 40);
    assert_eq!(cluster.transact(|tx| tx.get(&numbers, &0)).unwrap().unwrap().left, 2);
}

/// Gives the name of one row to another one, of which it knows that it is absent before it has read the first.
struct Succession(TableRef<u64, Row>);

impl Procedure for Succession {
    type Output = bool;

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<bool>, C::Stop> {
        let (heir, nothing) = (cx.value(2), cx.value(()));
        let heirs = cx.read(self.0, heir, |row| row.left)?;
        if cx.force(heirs)?.is_some() {
            return Ok(cx.value(false));
        }
        for key in [1, 3] {
            let (key, nothing) = (cx.value(key), nothing.clone());
            cx.update(self.0, key, nothing, |row, ()| row.left += 100)?;
        }
        let (heir, row) = (cx.value(2), cx.value(Row { left: 1, right: 0 }));
        cx.insert(self.0, heir, row)
    }
}

#[test]
fn writes_of_a_table_with_a_unique_index_keep_their_order_and_are_read_together() {
    let people = |builder: &mut hotrow_remote::RemoteTableBuilder<u64, Row>| {
        builder.unique("by_left", |_, row| row.left)
    };
    let cluster = cluster();
    let mut builder = cluster.table::<u64, Row>("people");
    let by_left = people(&mut builder);
    let table = builder.create_or_open().unwrap();
    let fill = cluster.transact(|tx| {
        [1, 3].into_iter().try_for_each(|key| tx.insert(&table, key, Row { left: key as i64, right: 0 }))
    });
    fill.unwrap();
    let before = cluster.counts().asked;
    assert!(cluster.execute(&Succession(table.reference())).unwrap());
    // The heir, the two others together, the names that they take.
    assert_eq!(cluster.counts().asked - before, 4);
    let owner = cluster.transact(|tx| by_left.get_key(tx, &1)).unwrap();
    assert_eq!(owner, Some(2));
}

/// Computes a value from a row in many steps.
struct Chain(TableRef<u64, Row>);

impl Procedure for Chain {
    type Output = i64;

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<i64>, C::Stop> {
        let key = cx.value(1);
        let left = cx.read(self.0, key, |row| row.left)?;
        let is_there = cx.map(left.clone(), |left| left.is_some());
        cx.require(is_there)?;
        let mut sum = cx.map(left, |left| left.unwrap_or(0));
        for _ in 0..50_000 {
            let both = cx.zip(sum.clone(), sum);
            sum = cx.map(both, |(one, other)| (one + other) % 1_009 + 1);
        }
        Ok(sum)
    }
}

#[test]
fn a_value_may_come_from_a_row_in_many_steps() {
    let cluster = cluster();
    let table = cluster.table::<u64, Row>("numbers").create_or_open().unwrap();
    let chain = Chain(table.reference());
    assert!(cluster.execute(&chain).unwrap_err().to_string().contains("rolled back"));
    cluster.transact(|tx| tx.insert(&table, 1, Row { left: 4, right: 0 })).unwrap();
    let mut expected = 4;
    (0..50_000).for_each(|_| expected = (expected + expected) % 1_009 + 1);
    assert_eq!(cluster.execute(&chain).unwrap(), expected);
}

/// Demands a row, and then relies on it in plain code.
struct Demanding(TableRef<u64, Row>);

impl Procedure for Demanding {
    type Output = i64;

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<i64>, C::Stop> {
        let key = cx.value(1);
        let row = cx.read(self.0, key, |row| row.left)?;
        let row = cx.force(row)?;
        let is_there = cx.value(row.is_some());
        cx.require(is_there)?;
        Ok(cx.value(row.expect("it was required")))
    }
}

#[test]
fn a_procedure_does_not_go_on_behind_what_it_has_required_in_vain() {
    let cluster = cluster();
    let table = cluster.table::<u64, Row>("numbers").create_or_open().unwrap();
    let demanding = Demanding(table.reference());
    assert!(cluster.execute(&demanding).unwrap_err().to_string().contains("rolled back"));
    cluster.transact(|tx| tx.insert(&table, 1, Row { left: 4, right: 0 })).unwrap();
    assert_eq!(cluster.execute(&demanding).unwrap(), 4);
}

/// Says that it only reads, and writes.
struct Liar(TableRef<u64, Row>);

impl Procedure for Liar {
    type Output = bool;

    fn profile(&self) -> Profile {
        Profile::READ_ONLY
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<bool>, C::Stop> {
        let key = cx.value(1);
        cx.delete(self.0, key)
    }
}

#[test]
fn a_procedure_that_said_it_only_reads_and_a_foreign_table_are_misuses() {
    let (one, other) = (cluster(), cluster());
    let table = one.table::<u64, Row>("numbers").create_or_open().unwrap();
    let error = one.execute(&Liar(table.reference())).unwrap_err();
    assert!(matches!(error.misuse(), Some(hotrow::Misuse::ReadOnly { .. })), "{error}");
    let error = other.execute(&Liar(table.reference())).unwrap_err();
    assert!(matches!(error.misuse(), Some(hotrow::Misuse::ForeignObject { .. })), "{error}");
    let local = Database::open().unwrap().table::<u64, Row>("numbers").create().unwrap();
    let error = one.execute(&Liar(local.reference())).unwrap_err();
    assert!(matches!(error.misuse(), Some(hotrow::Misuse::ForeignObject { .. })), "{error}");
}
