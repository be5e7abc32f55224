use hotrow::{Database, Direction, Engine, Occ, Table};

fn main() {
    let engine = Engine::<Occ>::new();
    let names = Database::on(&engine).table::<String, u64>("names").create().unwrap();
    let numbers = Database::on(&engine).table::<u64, u64>("numbers").create().unwrap();
    let _ = engine.transact(|tx| {
        names.get(tx, &7u64)?;
        names.get(tx, &"alice")?;
        numbers.delete(tx, "alice")?;
        names.collect(tx, 1..2, Direction::Ascending, 9)?;
        names.collect(tx, "alice", Direction::Ascending, 9)?;
        Ok(())
    });
}
