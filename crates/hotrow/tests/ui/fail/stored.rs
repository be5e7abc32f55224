//! What could not be read back does not compile.

use hotrow::Stored;

#[derive(Stored)]
#[stored(untagged)]
enum Untagged {
    Number(u32),
}

#[derive(Stored)]
struct Skipping {
    #[stored(skip_serializing_if = "Option::is_none")]
    number: Option<u32>,
}

#[derive(Stored)]
struct Numbered(#[stored(default)] u32, u8);

#[derive(Stored)]
struct Twice {
    one: u8,
    #[stored(alias = "one")]
    two: u8,
}

#[derive(Stored)]
enum Moved {
    One,
    #[stored(alias = "One")]
    Two,
}

#[derive(Stored)]
struct Borrowed<'a> {
    text: &'a str,
}

#[derive(Stored)]
union Either {
    one: u8,
    two: i8,
}

#[derive(Stored)]
enum Never {}

fn main() {}
