use hotrow::Database;

struct Name(String);

fn main() {
    let db = Database::open().unwrap();
    let _ = db.table::<&'static str, u64>("by a borrowed string").create().unwrap();
    let _ = db.table::<f64, u64>("by a number without an order").create().unwrap();
    let _ = db.table::<Name, u64>("by a type that derives nothing").hash(1).create().unwrap();
}
