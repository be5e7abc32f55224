use hotrow::Value;

#[derive(Clone, Value)]
struct Row<T: Default, const N: usize>
where
    T: PartialEq,
{
    values: [T; N],
}

fn assert_value<V: Value>() {}

pub(super) fn main() {
    assert_value::<Row<String, 3>>();
}
