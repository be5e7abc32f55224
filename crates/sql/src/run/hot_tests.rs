//! Statements on hot rows: additions at the commit, and conditional ones.

use crate::virtual_tables::transcript::{ask, connect};
use crate::{Instance, InstanceOptions};
use hotrow::sync::thread;

fn instance(protocol: &str) -> Instance {
    Instance::open(InstanceOptions { protocol: protocol.to_owned(), ..InstanceOptions::default() }).unwrap()
}

#[test]
fn an_addition_happens_at_the_commit_and_says_what_it_would_have_said() {
    let instance = instance("occ");
    let connection = &mut connect(&instance);
    ask(connection, "create table hot (id int primary key, n int, b bigint, s smallint)");
    ask(connection, "insert into hot values (1, 0, 5, 32760)");
    let plan = ask(connection, "explain update hot set n = n + 2, b = b - 1 where id = 1");
    assert!(plan.contains("Addition at commit"), "{plan}");
    assert_eq!(ask(connection, "update hot set n = n + 2, b = b - 1 where id = 1"), "UPDATE 1");
    assert_eq!(ask(connection, "update hot set n = n + 2 where id = 2"), "UPDATE 0");
    assert_eq!(
        ask(connection, "begin; update hot set n = 1 + n where id = 1; end"),
        "BEGIN; UPDATE 1; COMMIT"
    );
    assert_eq!(ask(connection, "select n, b from hot"), "3|4");
    assert!(ask(connection, "update hot set s = s + 10 where id = 1").starts_with("22003: "));
    assert!(ask(connection, "update hot set n = n + 2147483647 where id = 1").starts_with("22003: "));
    assert_eq!(ask(connection, "update hot set n = n + null where id = 1"), "UPDATE 1");
    // A later statement reads the addition, too.
    ask(connection, "update hot set n = 7 where id = 1");
    let seen = ask(connection, "begin; update hot set n = n + 1 where id = 1; select n from hot; rollback");
    assert!(seen.contains('8'), "{seen}");
    // Columns of keys, of indexes and of checks need the row.
    ask(connection, "create index hot_n on hot (n)");
    assert!(!ask(connection, "explain update hot set n = n + 1 where id = 1").contains("at commit"));
}

#[test]
fn what_is_taken_under_a_condition_never_falls_below_it() {
    for protocol in ["occ", "plor", "tictoc", "drp", "wound-wait", "tl2", "2pl-mcs"] {
        let instance = instance(protocol);
        ask(&mut connect(&instance), "create table stock (id int primary key, left_over int)");
        ask(&mut connect(&instance), "insert into stock values (1, 50)");
        let taken: usize = thread::scope(|scope| {
            let take = || {
                let connection = &mut connect(&instance);
                let take = "update stock set left_over = left_over - 2 where id = 1 and left_over >= 2";
                (0..40).filter(|_| ask(connection, take) == "UPDATE 1").count()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(taken, 25, "{protocol}");
        let connection = &mut connect(&instance);
        assert!(ask(connection, "select left_over = 0 from stock").contains('t'), "{protocol}");
        let plan = ask(
            connection,
            "explain update stock set left_over = left_over - 2 where id = 1 and left_over >= 2",
        );
        assert!(plan.contains("at commit"), "{plan}");
    }
}
