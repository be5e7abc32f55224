//! Random values of TPC-C, revision 5.11: non-uniform numbers (clause 2.1.6) and the texts of the population
//! (clause 4.3.2).

use hotrow::Text;
use hotrow::sync::random::Random;

/// `A` of [`non_uniform`] for last names (clause 2.1.6).
const LAST_NAME_SPREAD: u64 = 255;
/// `A` of [`non_uniform`] for customer numbers.
const CUSTOMER_SPREAD: u64 = 1_023;
/// `A` of [`non_uniform`] for item numbers.
const ITEM_SPREAD: u64 = 8_191;

/// Number of last names: 0 to 999 (clause 4.3.2.3).
pub(crate) const LAST_NAMES: u16 = 1_000;

/// Draws a number in `low..=high` that favours some numbers: `NURand(spread, low, high)` with the constant `C`
/// (clause 2.1.6). Returns `low` if the range is empty.
pub(crate) fn non_uniform(random: &mut Random, constant: u64, spread: u64, low: u64, high: u64) -> u64 {
    if high <= low {
        return low;
    }
    let drawn = random.between(0, spread) | random.between(low, high);
    drawn.wrapping_add(constant) % (high - low + 1) + low
}

/// Constants `C` of one database and of one run on it (clause 2.1.6).
///
/// Last names have two constants: one for loading the database and one for the run. Their distance is within the
/// limits of clause 2.1.6.1, so that the names that are frequent in the database are not the names that the run
/// asks for most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Constants {
    /// `C-Load` of `C_LAST`.
    last_name_load: u64,
    /// `C-Run` of `C_LAST`.
    last_name_run: u64,
    /// `C` of `C_ID`.
    customer: u64,
    /// `C` of `OL_I_ID`.
    item: u64,
}

impl Constants {
    /// Draws the constants, the same ones for the same seed.
    pub(crate) fn seeded(seed: u64) -> Self {
        // The stream is separate from those of the population and the inputs.
        let random = &mut Random::stream(seed, u64::MAX);
        let last_name_load = random.between(0, LAST_NAME_SPREAD);
        let last_name_run = loop {
            let candidate = random.between(0, LAST_NAME_SPREAD);
            if Self::may_follow(last_name_load, candidate) {
                break candidate;
            }
        };
        Self {
            last_name_load,
            last_name_run,
            customer: random.between(0, CUSTOMER_SPREAD),
            item: random.between(0, ITEM_SPREAD),
        }
    }

    /// True if `run` may be `C-Run` for a database loaded with `load` as `C-Load` (clause 2.1.6.1).
    fn may_follow(load: u64, run: u64) -> bool {
        let distance = load.abs_diff(run);
        (65..=119).contains(&distance) && distance != 96 && distance != 112
    }

    /// Draws the last name of a customer to be loaded, in a district of `customers` customers.
    pub(crate) fn load_last_name(&self, random: &mut Random, customers: u16) -> Text<16> {
        Self::draw_last_name(random, self.last_name_load, customers)
    }

    /// Draws the last name that a transaction asks for, in a district of `customers` customers.
    pub(crate) fn run_last_name(&self, random: &mut Random, customers: u16) -> Text<16> {
        Self::draw_last_name(random, self.last_name_run, customers)
    }

    /// Draws a last name that some customer of each district has. The first customers have one name each, so a
    /// small district does not have all names.
    fn draw_last_name(random: &mut Random, constant: u64, customers: u16) -> Text<16> {
        let greatest = u64::from(customers.min(LAST_NAMES)).saturating_sub(1);
        last_name(non_uniform(random, constant, LAST_NAME_SPREAD, 0, greatest))
    }

    /// Draws a customer's number: `C_ID`, in `1..=customers`.
    pub(crate) fn customer(&self, random: &mut Random, customers: u16) -> u16 {
        non_uniform(random, self.customer, CUSTOMER_SPREAD, 1, u64::from(customers)) as u16
    }

    /// Draws an item's number: `OL_I_ID`, in `1..=items`.
    pub(crate) fn item(&self, random: &mut Random, items: u32) -> u32 {
        non_uniform(random, self.item, ITEM_SPREAD, 1, u64::from(items)) as u32
    }
}

/// Returns the last name with a number from 0 to 999: a syllable for each of the three digits (clause 4.3.2.3). Of
/// a larger number only the last three digits count.
pub(crate) fn last_name(number: u64) -> Text<16> {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let syllable = |unit: u64| SYLLABLES[(number / unit % 10) as usize];
    let name: String = [100, 10, 1].map(syllable).concat();
    Text::prefix_of(&name)
}

const LETTERS_AND_DIGITS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Fills `bytes` with letters and digits, all equally likely.
fn fill_with_letters(random: &mut Random, bytes: &mut [u8]) {
    // One draw of 64 random bits yields ten characters of six bits; the values 62 and 63 are skipped.
    let (mut bits, mut left) = (0, 0);
    for byte in bytes {
        *byte = loop {
            if left == 0 {
                (bits, left) = (random.bits(), 10);
            }
            let character = LETTERS_AND_DIGITS.get((bits & 63) as usize);
            bits >>= 6;
            left -= 1;
            if let Some(character) = character {
                break *character;
            }
        };
    }
}

/// Makes a text from ASCII bytes.
fn ascii<const N: usize>(bytes: &[u8]) -> Text<N> {
    Text::prefix_of(std::str::from_utf8(bytes).expect("ASCII is UTF-8"))
}

/// Draws an a-string: `low..=high` letters and digits (clause 4.3.2.2), at most `N`.
pub(crate) fn letters<const N: usize>(random: &mut Random, low: usize, high: usize) -> Text<N> {
    let mut bytes = [0; N];
    let length = (random.between(low as u64, high as u64) as usize).min(N);
    fill_with_letters(random, &mut bytes[..length]);
    ascii(&bytes[..length])
}

/// Draws an n-string of `length` digits (clause 4.3.2.2), at most `N`.
pub(crate) fn digits<const N: usize>(random: &mut Random, length: usize) -> Text<N> {
    let mut bytes = [0; N];
    let length = length.min(N);
    bytes[..length].fill_with(|| b'0' + random.below(10) as u8);
    ascii(&bytes[..length])
}

/// Draws a zip code: four random digits, then `11111` (clause 4.3.2.7).
pub(crate) fn zip(random: &mut Random) -> Text<10> {
    let mut bytes = *b"000011111";
    bytes[..4].fill_with(|| b'0' + random.below(10) as u8);
    ascii(&bytes)
}

/// Text that `I_DATA` and `S_DATA` may hold; a new order's output reports it with a `B` (clause 2.4.2.2).
pub(crate) const ORIGINAL: &str = "ORIGINAL";

/// Draws `I_DATA` or `S_DATA`: an a-string of 26 to 50 characters, with [`ORIGINAL`] at a random position if
/// `original` is true (clause 4.3.3.1).
pub(crate) fn data(random: &mut Random, original: bool) -> Text<52> {
    let mut bytes = [0; 50];
    let length = random.between(26, 50) as usize;
    fill_with_letters(random, &mut bytes[..length]);
    if original {
        let at = random.between(0, (length - ORIGINAL.len()) as u64) as usize;
        bytes[at..][..ORIGINAL.len()].copy_from_slice(ORIGINAL.as_bytes());
    }
    ascii(&bytes[..length])
}

/// Random choice of exactly a given number of rows while they are generated one after the other.
///
/// The probability of a row is the number of choices left divided by the number of rows left, which makes all sets
/// of this size equally likely (Knuth, The Art of Computer Programming, volume 2, algorithm 3.4.2 S).
#[derive(Debug, Clone)]
pub(crate) struct ExactChoice {
    choices_left: u64,
    rows_left: u64,
}

impl ExactChoice {
    /// Makes a choice of a tenth of `rows` rows, rounded down.
    pub(crate) fn tenth_of(rows: u64) -> Self {
        Self { choices_left: rows / 10, rows_left: rows }
    }

    /// True if the next row is chosen; false after the last row.
    pub(crate) fn takes_next(&mut self, random: &mut Random) -> bool {
        let chosen = random.below(self.rows_left) < self.choices_left;
        self.choices_left -= u64::from(chosen);
        self.rows_left = self.rows_left.saturating_sub(1);
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn last_names_are_those_of_the_specification() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(999), "EINGEINGEING");
        assert_eq!(last_name(777), "CALLYCALLYCALLY");
        assert_eq!((0..1_000).map(last_name).collect::<HashSet<_>>().len(), 1_000);
    }

    #[test]
    fn the_constant_of_the_run_keeps_its_distance_from_that_of_the_load() {
        let mut loads = HashSet::new();
        for seed in 0..2_000 {
            let constants = Constants::seeded(seed);
            let distance = constants.last_name_load.abs_diff(constants.last_name_run);
            assert!((65..=119).contains(&distance) && distance != 96 && distance != 112, "{constants:?}");
            assert!(constants.last_name_load <= 255 && constants.last_name_run <= 255);
            assert!(constants.customer <= 1_023 && constants.item <= 8_191);
            assert_eq!(constants, Constants::seeded(seed));
            loads.insert(constants.last_name_load);
        }
        assert_eq!(
            loads.len(),
            256,
            "every constant can be drawn, whatever the distance leaves for the other"
        );
    }

    #[test]
    fn non_uniform_numbers_fill_their_range_unevenly() {
        let random = &mut Random::seeded(1);
        let mut drawn = vec![0u32; 1_001];
        for _ in 0..200_000 {
            drawn[non_uniform(random, 123, 255, 1, 1_000) as usize] += 1;
        }
        assert_eq!(drawn[0], 0);
        drawn.sort_unstable();
        let most: u32 = drawn[801..].iter().sum();
        assert!(most > 90_000, "a fifth of the numbers gets far more than a fifth of the draws: {most}");
        assert_eq!(non_uniform(random, 7, 255, 3, 3), 3);
        assert_eq!(non_uniform(random, 7, 255, 3, 0), 3);
    }

    #[test]
    fn drawn_numbers_stay_within_small_districts() {
        let random = &mut Random::seeded(2);
        let constants = Constants::seeded(2);
        let names: HashSet<_> = (0..12).map(last_name).collect();
        for _ in 0..2_000 {
            assert!((1..=12).contains(&constants.customer(random, 12)));
            assert!((1..=7).contains(&constants.item(random, 7)));
            assert!(names.contains(&constants.load_last_name(random, 12)));
            assert!(names.contains(&constants.run_last_name(random, 12)));
        }
    }

    #[test]
    fn texts_have_the_characters_and_lengths_asked_for() {
        let random = &mut Random::seeded(3);
        let mut lengths = HashSet::new();
        let mut characters = HashSet::new();
        for _ in 0..500 {
            let text: Text<20> = letters(random, 10, 20);
            lengths.insert(text.len());
            characters.extend(text.as_bytes().to_vec());
            let number: Text<16> = digits(random, 16);
            assert!(number.len() == 16 && number.as_bytes().iter().all(u8::is_ascii_digit));
            let zip = zip(random);
            assert!(zip.len() == 9 && zip.as_str().ends_with("11111"));
            assert!(zip.as_bytes().iter().all(u8::is_ascii_digit));
        }
        assert_eq!(lengths, (10..=20).collect());
        assert_eq!(characters, LETTERS_AND_DIGITS.iter().copied().collect());
        assert_eq!(letters::<4>(random, 10, 20).len(), 4);
    }

    #[test]
    fn original_stands_where_it_was_asked_for_at_any_position() {
        let random = &mut Random::seeded(4);
        let mut positions = HashSet::new();
        for _ in 0..5_000 {
            let text = data(random, true);
            assert!((26..=50).contains(&text.len()));
            positions.insert(text.as_str().find(ORIGINAL).unwrap());
            assert!(!data(random, false).as_str().contains(ORIGINAL));
        }
        assert_eq!(positions, (0..=42).collect());
    }

    #[test]
    fn an_exact_choice_takes_a_tenth_of_the_rows_all_over_them() {
        let random = &mut Random::seeded(5);
        let mut often = [0u32; 100];
        for _ in 0..200 {
            let mut choice = ExactChoice::tenth_of(100);
            let chosen: Vec<bool> = (0..100).map(|_| choice.takes_next(random)).collect();
            assert_eq!(chosen.iter().filter(|chosen| **chosen).count(), 10);
            assert!(!choice.takes_next(random));
            for (count, chosen) in often.iter_mut().zip(chosen) {
                *count += u32::from(chosen);
            }
        }
        assert!(often.iter().all(|count| (3..=45).contains(count)), "{often:?}");
    }
}
