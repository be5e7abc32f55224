use hotrow::{Direction, Engine, Occ, Table};

fn main() {
    let engine = Engine::<Occ>::new();
    let names = Table::<String, u64, Occ>::ordered(&engine, "names");
    let numbers = Table::<u64, u64, Occ>::ordered(&engine, "numbers");
    let _ = engine.run(|tx| {
        names.get(tx, &7u64)?;
        names.get(tx, &"alice")?;
        numbers.delete(tx, "alice")?;
        names.collect(tx, 1..2, Direction::Ascending, 9)?;
        names.collect(tx, "alice", Direction::Ascending, 9)?;
        Ok(())
    });
}
