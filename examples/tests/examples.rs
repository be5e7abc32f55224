//! Runs each example under load, over each store that it has.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    let run = Command::new(env!("CARGO_BIN_EXE_hotrow-examples")).args(arguments).output();
    run.expect("the examples start")
}

/// Runs an example over all its stores by turns. What must hold is checked after each run, and there is a conflict report.
fn works(example: &str, stores: &str) {
    let output = run(&[example, "--over", stores, "--seconds", "0.2", "--rounds", "2", "--threads", "3"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let stores = stores.split(',').count();
    assert_eq!(text.matches("  checked: ").count(), 2 * stores, "{text}");
    assert_eq!(text.matches("  conflicts: ").count(), 2, "{text}");
    assert_eq!(text.matches("hotrow to ").count(), stores - 1, "{text}");
}

#[test]
fn the_ticket_shop_sells_as_many_tickets_as_seats() {
    works("ticket-shop", "hotrow,mutex,redb");
}

#[test]
fn the_inventory_loses_no_piece() {
    works("inventory", "hotrow,mutex,redb");
}

#[test]
fn the_ledger_keeps_all_money() {
    works("ledger", "hotrow,mutex,redb");
}

#[test]
fn the_book_is_never_crossed() {
    works("order-matching", "hotrow,mutex,redb");
}

#[test]
fn each_job_is_done_once() {
    works("job-queue", "hotrow,mutex,redb");
}

#[test]
fn the_limiter_admits_no_more_than_its_limits() {
    works("rate-limiter", "hotrow,mutex,redb");
}

#[test]
fn the_leaderboard_has_all_points() {
    works("leaderboard", "hotrow,mutex,redb");
}

#[test]
fn each_order_that_committed_has_one_mail() {
    works("outbox", "hotrow");
}

#[test]
fn the_dashboard_shows_what_the_database_counts() {
    works("dashboard", "hotrow");
}

#[test]
fn bad_input_gets_one_line() {
    for (arguments, words) in [
        (&["ledgers"][..], "error: unknown example \"ledgers\"; there are: ticket-shop, inventory"),
        (
            &["inventory", "--over", "sqlite"],
            "error: inventory does not run over \"sqlite\"; there are: hotrow, mutex, redb",
        ),
        (&["inventory", "--seconds", "-1"], "unexpected argument '-1'"),
        (&["inventory", "--seconds=-1"], "error: -1 is no number of seconds"),
        (&["inventory", "--threads", "0"], "invalid value '0' for '--threads"),
        (
            &["ledger", "--serve", "127.0.0.1:0"],
            "error: --serve is for ticket-shop and dashboard; ledger is not on HTTP",
        ),
    ] {
        let output = run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(words), "{arguments:?}: {error}");
    }
}
