//! A bank under all protocols: transfers, additions at the commit, conditional ones, tickets with a unique index, and scans, with
//! rollbacks, savepoints and connections that are dropped. The recorded history is judged, and the sums are checked.

use crate::support::{connect, instance, run};
use hotrow::protocols::PROTOCOLS;
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow_sql::{Connection, Instance};

const THREADS: u64 = 4;
const TRANSACTIONS: usize = 16;
const ACCOUNTS: u64 = 6;
const HISTORY_BYTES: usize = 64 << 20;

/// The codes that a client may be told at any time: of lost conflicts, deadlocks and lock timeouts.
fn is_lost(result: &[String]) -> bool {
    result.last().is_some_and(|last| matches!(last.as_str(), "40001" | "40P01" | "55P03"))
}

/// Runs the statements of a block, until one has lost; true if all have run. The function sees the result of each.
fn block(connection: &mut Connection, texts: &[String], mut look: impl FnMut(&[String]) -> bool) -> bool {
    run(connection, "BEGIN");
    for text in texts {
        let result = run(connection, text);
        if is_lost(&result) || !look(&result) {
            run(connection, "ROLLBACK");
            return false;
        }
    }
    true
}

fn commit(connection: &mut Connection) -> bool {
    let result = run(connection, "COMMIT");
    assert!(result == ["COMMIT"] || is_lost(&result), "{result:?}");
    result == ["COMMIT"]
}

fn add(amount: i64, account: u64) -> String {
    format!("UPDATE account SET balance = balance + {amount} WHERE id = {account}")
}

fn run_one(instance: &Instance, connection: &mut Connection, random: &mut Random) {
    let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
    let amount = 1 + random.below(9) as i64;
    match random.below(7) {
        // A transfer of values that the client computes.
        0 => {
            let mut balance = 0;
            let read = format!("SELECT balance FROM account WHERE id = {from}");
            let ran = block(connection, &[read], |result| {
                balance = result[0].parse::<i64>().unwrap();
                true
            });
            let less = format!("UPDATE account SET balance = {} WHERE id = {from}", balance - amount);
            if ran && ![less, add(amount, to)].iter().any(|text| is_lost(&run(connection, text))) {
                match random.below(4) {
                    0 => assert_eq!(run(connection, "ROLLBACK"), ["ROLLBACK"]),
                    1 => *connection = connect(instance),
                    _ => drop(commit(connection)),
                }
            } else if ran {
                run(connection, "ROLLBACK");
            }
        }
        // One text is one transaction, which does not lose.
        1 => {
            let result = run(connection, &format!("{}; {}", add(-amount, from), add(amount, to)));
            assert!(result == ["UPDATE 1", "UPDATE 1"] || is_lost(&result), "{result:?}");
        }
        2 => {
            let less = format!("{} AND balance >= {amount}", add(-amount, from));
            let mut has_paid = false;
            let ran = block(connection, &[less], |result| {
                has_paid = result == ["UPDATE 1"];
                true
            });
            if !ran || (has_paid && is_lost(&run(connection, &add(amount, to)))) {
                run(connection, "ROLLBACK");
            } else {
                commit(connection);
            }
        }
        // A ticket, whose code may be there already.
        3 => {
            let insert = format!("INSERT INTO ticket (code, owner) VALUES ({}, {from})", random.below(12));
            let texts = ["SAVEPOINT s".to_owned(), insert];
            let mut is_there = false;
            if block(connection, &texts, |result| {
                is_there = result == ["23505"];
                assert!(is_there || !result[0].starts_with("23"), "{result:?}");
                true
            }) {
                if is_there {
                    assert_eq!(run(connection, "ROLLBACK TO s"), ["ROLLBACK"]);
                }
                commit(connection);
            }
        }
        4 => {
            let code = random.below(12);
            let text = format!("DELETE FROM ticket WHERE code = {code}");
            let result = run(connection, &text);
            assert!(["DELETE 0", "DELETE 1"].contains(&result[0].as_str()) || is_lost(&result), "{result:?}");
            let text = format!("UPDATE ticket SET code = {} WHERE code = {}", code + 12, (code + 1) % 12);
            let result = run(connection, &text);
            assert!(result[0].starts_with("UPDATE") || result == ["23505"] || is_lost(&result), "{result:?}");
        }
        5 => {
            let texts = [
                "SAVEPOINT s".to_owned(),
                add(-50, from),
                "ROLLBACK TO s".to_owned(),
                add(-1, from),
                add(1, to),
            ];
            if block(connection, &texts, |_| true) {
                commit(connection);
            }
        }
        _ => {
            let sum = "SELECT sum(balance), count(*) FROM account".to_owned();
            assert_eq!(run(connection, &sum), ["600,6"]);
            let pairs =
                "SELECT count(*) FROM ticket a JOIN ticket b ON a.code = b.code AND a.id <> b.id".to_owned();
            let mut seen = Vec::new();
            if block(connection, &[sum, pairs], |result| {
                seen.push(result[0].clone());
                true
            }) && commit(connection)
            {
                assert_eq!(seen, ["600,6", "0"]);
            }
        }
    }
}

fn run_bank(protocol: &str) {
    let instance = instance(protocol);
    let mut connection = connect(&instance);
    run(&mut connection, "CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL)");
    run(&mut connection, "INSERT INTO account SELECT n, 100 FROM generate_series(0, 5) n");
    // Without a primary key; the numbers tell rows apart.
    run(&mut connection, "CREATE TABLE ticket (id serial, code int UNIQUE, owner int)");
    let recording = instance.database().record_history(HISTORY_BYTES).unwrap();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let instance = &instance;
            scope.spawn(move || {
                let mut random = Random::stream(1, number);
                let mut connection = connect(instance);
                for _ in 0..TRANSACTIONS {
                    run_one(instance, &mut connection, &mut random);
                }
            });
        }
    });
    let report = hotrow_check::check(&recording.finish()).unwrap();
    assert!(report.is(report.claimed()), "{protocol}: {report}");
    assert!(report.complete && report.counts.committed > 0, "{protocol}: {report}");
    assert_eq!(run(&mut connection, "SELECT sum(balance) FROM account"), ["600"]);
    let by_rows = run(&mut connection, "SELECT count(*), count(DISTINCT code), sum(code) FROM ticket");
    let by_index = run(
        &mut connection,
        "SELECT count(*), count(DISTINCT code), sum(code) FROM ticket WHERE code BETWEEN 0 AND 99",
    );
    assert_eq!(by_rows, by_index, "{protocol}");
}

#[test]
fn all_protocols_keep_the_sums_and_are_serializable() {
    for protocol in PROTOCOLS.iter().filter(|protocol| protocol.concurrent) {
        run_bank(protocol.name);
    }
}
