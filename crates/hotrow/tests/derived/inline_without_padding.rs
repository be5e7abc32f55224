use hotrow::Value;

#[derive(Clone, Copy, Value)]
#[value(inline)]
struct Row {
    first: u8,
    wide: u64,
    second: [u8; 3],
    half: u32,
}

#[derive(Clone, Copy, Value)]
#[value(inline)]
#[expect(dead_code, reason = "only its layout counts")]
struct Nested(Row, u64);

#[derive(Clone, Copy, Value)]
#[value(inline)]
#[repr(i16)]
enum State {
    Open,
    Closed = -5,
}

pub(super) fn main() {
    assert_eq!(size_of::<Nested>(), 24);
    let _ = (State::Open, State::Closed);
}
