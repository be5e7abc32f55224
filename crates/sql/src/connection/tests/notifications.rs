use super::*;

#[test]
fn notifications_come_when_the_transaction_commits() {
    let instance = instance();
    let ((mut listener, wakes), mut notifier) = (connect_counting(&instance), connect(&instance));
    assert_eq!(run(&mut listener, "LISTEN news"), ["LISTEN"]);
    run(&mut notifier, "BEGIN");
    assert_eq!(run(&mut notifier, "NOTIFY news, 'one'"), ["NOTIFY"]);
    run(
        &mut notifier,
        "SAVEPOINT a; NOTIFY news, 'undone'; ROLLBACK TO a; NOTIFY news, 'two'; NOTIFY news, 'two'",
    );
    assert_eq!(wakes.load(Ordering::SeqCst), 0);
    run(&mut notifier, "COMMIT");
    assert_eq!(wakes.load(Ordering::SeqCst), 1);
    let told = |payload: &str| (7, "news".to_owned(), payload.to_owned());
    assert_eq!(listener.take_notifications(), [told("one"), told("two")]);
    run(&mut notifier, "BEGIN; NOTIFY news; ROLLBACK");
    assert_eq!(listener.take_notifications(), []);
    // None within a block.
    run(&mut listener, "BEGIN");
    run(&mut notifier, "NOTIFY news");
    assert_eq!(listener.take_notifications(), []);
    run(&mut listener, "COMMIT");
    assert_eq!(listener.take_notifications(), [told("")]);
    run(
        &mut notifier,
        "BEGIN; SELECT pg_notify('news', 'undone'); ROLLBACK; SELECT pg_notify('news', 'three')",
    );
    assert_eq!(listener.take_notifications(), [told("three")]);
    run(&mut listener, "UNLISTEN *");
    run(&mut notifier, "NOTIFY news");
    assert_eq!(listener.take_notifications(), []);
}

#[test]
fn a_connection_that_is_gone_is_told_nothing() {
    let instance = instance();
    let (mut listener, mut notifier) = (connect(&instance), connect(&instance));
    run(&mut listener, "LISTEN news");
    let mailbox = Arc::downgrade(&listener.executor.mailbox);
    drop(listener);
    assert!(mailbox.upgrade().is_none());
    assert_eq!(run(&mut notifier, "NOTIFY news"), ["NOTIFY"]);
}
