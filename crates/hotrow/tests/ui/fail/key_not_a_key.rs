use hotrow::{Engine, Occ, Table};

struct Name(String);

fn main() {
    let engine = Engine::<Occ>::new();
    let _ = Table::<&'static str, u64, Occ>::ordered(&engine, "by a borrowed string");
    let _ = Table::<f64, u64, Occ>::ordered(&engine, "by a number without an order");
    let _ = Table::<Name, u64, Occ>::hash(&engine, "by a type that derives nothing", 1);
}
