//! Every part of a stored type is stored.

use hotrow::Stored;

struct Unknown;

#[derive(Stored)]
struct Row {
    number: u32,
    unknown: Unknown,
}

#[derive(Stored)]
enum Choice {
    One(u32),
    Other { unknown: Vec<Unknown> },
}

fn main() {}
