use hotrow::{Database, Engine, Occ, Table};

struct Name(String);

fn main() {
    let engine = Engine::<Occ>::new();
    let _ = Database::on(&engine).table::<&'static str, u64>("by a borrowed string").create().unwrap();
    let _ = Database::on(&engine).table::<f64, u64>("by a number without an order").create().unwrap();
    let _ = Database::on(&engine).table::<Name, u64>("by a type that derives nothing").hash(1).create().unwrap();
}
