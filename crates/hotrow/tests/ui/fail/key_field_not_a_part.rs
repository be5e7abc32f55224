use hotrow::Key;

#[derive(Debug, Clone, PartialEq, PartialOrd, Key)]
struct Measurement {
    number: u64,
    value: f64,
}

fn main() {}
