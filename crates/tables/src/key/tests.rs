//! Images against `Ord`, on random keys.

use super::*;
use hotrow_sync::atomic::{AtomicU8, AtomicU64};
use proptest::prelude::*;

/// Bytes that matter to the encoding, mostly.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0), Just(1), Just(0xff), Just(b'a'), any::<u8>()];
    prop::collection::vec(byte, 0..12)
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof!["[a\0\u{1}é]{0,10}", ".{0,60}"]
}

/// Numbers at borders, mostly.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![Just(i64::MIN), Just(-1), Just(0), Just(1), Just(i64::MAX), any::<i64>()]
}

/// Images and names have the order of keys, and no name begins another one's.
fn check<K: Key>(a: &K, b: &K) -> Result<(), TestCaseError> {
    let (x, y) = (a.image(), b.image());
    prop_assert_eq!(a.cmp(b), K::Image::compare(&x, &y), "{:?} {:?}", a, b);
    prop_assert_eq!(a.cmp(b), K::Image::own(&x).cmp(&K::Image::own(&y)));
    let (mut p, mut q) = (Vec::new(), Vec::new());
    put_name(a, &mut p);
    put_name(b, &mut q);
    prop_assert_eq!(a.cmp(b), p.cmp(&q), "{:?} {:?}", a, b);
    prop_assert!(a == b || !q.starts_with(&p), "{:?} {:?}", a, b);
    Ok(())
}

/// The same of the image of a derived key that consists of one part.
fn check_part<P: KeyPart + Ord + Debug, const LONG: bool, const WORDS: usize>(
    a: &P,
    b: &P,
) -> Result<(), TestCaseError>
where
    DerivedImage<LONG, WORDS>: MakeImage,
{
    assert_eq!((P::BITS == super::LONG, LONG || words(P::BITS) == WORDS), (LONG, true));
    let image = <DerivedImage<LONG, WORDS> as MakeImage>::image;
    prop_assert_eq!(a.cmp(b), image(a).cmp(&image(b)), "{:?} {:?}", a, b);
    let long = <DerivedImage<true, 0> as MakeImage>::image;
    prop_assert_eq!(a.cmp(b), long(a).cmp(&long(b)), "{:?} {:?}", a, b);
    Ok(())
}

proptest! {
    #[test]
    fn images_of_one_part_have_the_order_of_keys(
        a in (string(), bytes(), any::<u128>(), any::<i128>(), any::<char>(), number()),
        b in (string(), bytes(), any::<u128>(), any::<i128>(), any::<char>(), number()),
    ) {
        check(&a.0, &b.0)?;
        check(&a.0.clone().into_boxed_str(), &b.0.clone().into_boxed_str())?;
        check(&a.1, &b.1)?;
        check(&a.1.clone().into_boxed_slice(), &b.1.clone().into_boxed_slice())?;
        check(&a.2, &b.2)?;
        check(&a.3, &b.3)?;
        check(&a.4, &b.4)?;
        check(&(a.5 > 0), &(b.5 > 0))?;
        check(&(a.5 > 0).then_some(a.5), &(b.5 > 0).then_some(b.5))?;
        check(&(a.5 > 0).then_some(a.0), &(b.5 > 0).then_some(b.0))?;
    }

    #[test]
    fn images_of_composite_keys_have_the_order_of_keys(
        a in (string(), bytes(), number(), string()),
        b in (string(), bytes(), number(), string()),
        same in 0..4,
    ) {
        // Keys that differ late.
        let mut b = b;
        if same > 0 { b.0 = a.0.clone(); }
        if same > 1 { b.1 = a.1.clone(); }
        if same > 2 { b.2 = a.2; }
        check(&(a.0.clone(), a.2), &(b.0.clone(), b.2))?;
        check(&(a.2, a.0.clone()), &(b.2, b.0.clone()))?;
        check(&(a.1.clone(), a.3.clone()), &(b.1.clone(), b.3.clone()))?;
        check(&((a.0.clone(), a.1.clone()), Some(a.3.clone())), &((b.0.clone(), b.1.clone()), Some(b.3.clone())))?;
        check(&(Some(a.1.clone()), a.2, a.2 > 0), &(Some(b.1.clone()), b.2, b.2 > 0))?;
        check(&a, &b)?;
        check_part::<_, true, 0>(&(a.0.clone(), a.2, Some(a.1.clone())), &(b.0.clone(), b.2, Some(b.1.clone())))?;
        check_part::<_, false, 4>(&(Some(a.2), a.2 as i128, a.2 > 0), &(Some(b.2), b.2 as i128, b.2 > 0))?;
        check_part::<_, false, 1>(&((a.2 > 0).then_some('x'), a.2 as i8), &((b.2 > 0).then_some('x'), b.2 as i8))?;
    }

    #[test]
    fn the_edges_of_a_first_part_are_around_all_its_pairs(
        a in (string(), number(), bytes()),
        b in (string(), number(), bytes()),
    ) {
        fn check<A: Key, B: Key>(first: &A, pair: &(A, B)) -> Result<(), TestCaseError> {
            let edge = |behind| A::Image::edge::<B::Image>(first.image(), behind);
            let is_before = <(A, B) as Key>::Image::compare(&pair.image(), &edge(false)).is_lt();
            let is_behind = <(A, B) as Key>::Image::compare(&pair.image(), &edge(true)).is_gt();
            prop_assert_eq!((is_before, is_behind), (pair.0 < *first, pair.0 > *first));
            Ok(())
        }
        check(&a.0, &(b.0.clone(), b.1))?;
        check(&a.0, &(a.0.clone(), b.2.clone()))?;
        check(&a.1, &(b.1, b.2.clone()))?;
        check(&a.1, &(a.1, b.2.clone()))?;
        check(&a.1, &(b.1, b.1))?;
        check(&a.2, &(b.2.clone(), a.0.clone()))?;
        check(&(a.1, a.2.clone()), &((b.1, b.2.clone()), b.0.clone()))?;
    }
}

#[test]
fn fixed_images_are_what_they_were() {
    assert_eq!((7u32.image(), (-1i8).image(), true.image(), 'a'.image()), (7, (1 << 63) - 1, 1, 97));
    assert_eq!((1u8, -1i32, 2u64).image(), (1, ((1 << 63) - 1, 2)));
    assert_eq!((Some(5u8).image(), None::<u8>.image()), ((1, 5), (0, 0)));
    assert_eq!((1u128 << 64 | 3).image(), [1, 3]);
    let slot = <(u64, [u64; 2]) as Fixed>::Atomic::default();
    Fixed::store((7, [1, 2]), &slot);
    assert_eq!(<(u64, [u64; 2])>::load(&slot), (7, [1, 2]));
}

#[cfg(feature = "uuid")]
#[test]
fn uuids_have_their_order() {
    let uuids = [0, 1, 1 << 63, 1 << 64, u128::MAX].map(uuid::Uuid::from_u128);
    for a in uuids {
        for b in uuids {
            check(&a, &b).unwrap();
            check_part::<_, false, 2>(&a, &b).unwrap();
        }
    }
}

#[test]
fn an_only_separator_replaces_the_shared_bytes_of_an_earlier_one() {
    let (slots, rests) = ([const { AtomicU64::new(0) }], [Default::default()]);
    let (shared, begin) = (AtomicU8::new(0), Default::default());
    let separators: [&[u8]; 6] =
        [b"abc", b"xyz", b"bcd", b"0123456789abcdefghij", b"0123456789ABCDEFGHIJ", b"0123456789abcdefghij"];
    for separator in separators {
        let separator = Bytes::separator(&Encoded::new(separator));
        // SAFETY: no other thread has the node; the separators that it owned are not used any more.
        unsafe {
            Bytes::store_separator(separator, 0, &slots, &rests, &shared, &begin);
            let bytes = Bytes::image_of(separator).bytes().to_vec();
            let bound = |image: &[u8]| {
                let node = NodeSlots { slots: &slots, shared: &shared, begin: Some(&begin) };
                Bytes::upper_bound(node, &Encoded::new(image), |_| Some(Bytes::image_of(separator)))
            };
            for other in separators {
                for image in [other.to_vec(), [other, b"and more"].concat()] {
                    assert_eq!(bound(&image), Some(usize::from(image >= bytes)), "{}", image.escape_ascii());
                }
            }
            Bytes::free_separator(separator);
        }
    }
}
