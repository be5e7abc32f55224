use hotrow::Value;

#[derive(Value)]
struct Row {
    name: String,
}

fn main() {}
