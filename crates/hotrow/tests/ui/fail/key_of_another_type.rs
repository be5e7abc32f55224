use hotrow::{Database, Direction};

fn main() {
    let db = Database::open().unwrap();
    let names = db.table::<String, u64>("names").create().unwrap();
    let numbers = db.table::<u64, u64>("numbers").create().unwrap();
    let _ = db.transact(|tx| {
        names.get(tx, &7u64)?;
        names.get(tx, &"alice")?;
        numbers.delete(tx, "alice")?;
        names.collect(tx, 1..2, Direction::Ascending, 9)?;
        names.collect(tx, "alice", Direction::Ascending, 9)?;
        Ok(())
    });
}
