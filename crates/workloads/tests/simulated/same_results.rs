//! Procedures whose operations others run return and leave behind the results of a serial execution.
//!
//! Each transaction first counts on a row that all want, which numbers the transactions in their serial order. Afterwards
//! those that have committed are run again in that order, one after the other, on the same data under `2pl-mcs`.
use hotrow::Any;
use hotrow::sync::random::Random;
use hotrow::{
    Context, Counter, Database, Direction, Engine, Error, IndexRef, Operations, Procedure, Procedures,
    TableRef, Worker,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Keys of each table; every third has no row to begin with.
const KEYS: u64 = 12;

/// The row that all transactions want first.
const HOT: u64 = 1_000;

struct Data {
    database: Database<Any>,
    /// Rows that are held inline, with a hash index.
    numbers: TableRef<u64, u64>,
    /// Boxed rows, in order.
    words: TableRef<u64, String>,
    /// Rows that are found by what they hold, too.
    members: TableRef<u64, u64>,
    groups: IndexRef<u64, u64, u64>,
}

impl Data {
    fn new(engine: &Engine<Any>) -> Self {
        let database = Database::on(engine);
        let numbers = database.table("numbers").hash(64).create().unwrap();
        let numbers = numbers.reference();
        let words = database.table("words").create().unwrap();
        let words = words.reference();
        let mut members = database.table("members");
        let groups = members.secondary("groups", |_, row| row % 4);
        let members = members.create().unwrap().reference();
        let groups = groups.reference();
        database.table_of(numbers).bulk_insert([(HOT, 0)]).unwrap();
        for key in (0..KEYS).filter(|key| key % 3 != 2) {
            database.table_of(numbers).bulk_insert([(key, key)]).unwrap();
            database.table_of(words).bulk_insert([(key, key.to_string())]).unwrap();
            database.table_of(members).bulk_insert([(key, key)]).unwrap();
        }
        Self { database, numbers, words, members, groups }
    }

    /// All rows of all tables, as text.
    fn rows(&self, worker: &mut Worker<Any>) -> BTreeMap<(&'static str, u64), String> {
        let mut rows = BTreeMap::new();
        let Self { database, numbers, words, members, .. } = self;
        let mut note = |table, key: &u64, row: String| _ = rows.insert((table, *key), row);
        let visited = [
            database.table_of(*numbers).for_each(worker, |key, row| note("numbers", key, row.to_string())),
            database.table_of(*words).for_each(worker, |key, row| note("words", key, row.clone())),
            database.table_of(*members).for_each(worker, |key, row| note("members", key, row.to_string())),
        ];
        let visited: u64 = visited.into_iter().map(|visited| visited.expect("nobody else is there")).sum();
        assert_eq!(visited, rows.len() as u64);
        rows
    }
}

/// Declares the operations, and a list of them.
macro_rules! operations {
    ($($what:ident),* $(,)?) => {
        #[derive(Debug, Clone, Copy)]
        enum What {
            $($what),*
        }

        use What::*;

        const EVERYTHING: &[What] = &[$($what),*];
    };
}

operations! {
    ReadNumber,
    ReadWord,
    UpdateNumber,
    UpdateWord,
    ReplaceNumber,
    ReplaceWord,
    CommuteNumber,
    InsertNumber,
    InsertWord,
    DeleteNumber,
    DeleteWord,
    InsertNumberAtValue,
    InsertWordAtValue,
    ReadNumberAtValue,
    UpdateEachNumber,
    UpdateEachWord,
    ScanWords,
    TakeFirstWord,
    ReadMember,
    UpdateMember,
    InsertMember,
    DeleteMember,
    ScanGroup,
    Force,
    Require,
}

/// One step. It is given the value of an earlier one, or none.
#[derive(Debug, Clone, Copy)]
struct Step {
    what: What,
    key: u64,
    from: Option<usize>,
}

struct Steps<'a> {
    data: &'a Data,
    steps: Vec<Step>,
}

fn mix(a: u64, b: u64) -> u64 {
    (a.wrapping_mul(31).wrapping_add(b)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7
}

fn worth(word: &str) -> u64 {
    word.bytes().fold(word.len() as u64, |sum, byte| mix(sum, u64::from(byte)))
}

/// A row long enough to have memory of its own.
fn word(value: u64) -> String {
    format!("{value}:{}", "x".repeat((value % 40) as usize))
}

impl Procedure for Steps<'_> {
    type Output = Vec<u64>;

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Vec<u64>>, C::Stop> {
        let Data { numbers, words, members, groups, .. } = *self.data;
        let (key, input) = (cx.value(HOT), cx.value(1));
        let turn = cx.update(numbers, key, input, |row, one: u64| {
            *row += one;
            *row
        })?;
        let mut values = vec![cx.map(turn, |turn| turn.expect("it is never deleted"))];
        for Step { what, key, from } in self.steps.iter().copied() {
            let input = match from {
                Some(from) => values[from % values.len()].clone(),
                None => cx.value(7),
            };
            let at = cx.value(key);
            let value = match what {
                ReadNumber => {
                    let row = cx.read(numbers, at, |row| *row)?;
                    let both = cx.zip(row, input);
                    cx.map(both, |(row, input)| row.map_or(1, |row| mix(row, input)))
                }
                ReadWord => {
                    let row = cx.read(words, at, |row| worth(row))?;
                    cx.map(row, |row| row.unwrap_or(1))
                }
                UpdateNumber => {
                    let row = cx.update(numbers, at, input, |row, input| {
                        *row = mix(*row, input);
                        *row
                    })?;
                    cx.map(row, |row| row.unwrap_or(2))
                }
                UpdateWord => {
                    let row = cx.update(words, at, input, |row, input| {
                        *row = word(mix(worth(row), input));
                        row.len() as u64
                    })?;
                    cx.map(row, |row| row.unwrap_or(2))
                }
                ReplaceNumber => {
                    let replaced = cx.replace(numbers, at, input)?;
                    cx.map(replaced, u64::from)
                }
                ReplaceWord => {
                    let row = cx.map(input, word);
                    let replaced = cx.replace(words, at, row)?;
                    cx.map(replaced, u64::from)
                }
                CommuteNumber => {
                    cx.commute(numbers, at, input.clone(), |row, input| *row = row.wrapping_add(input))?;
                    input
                }
                InsertNumber => {
                    let inserted = cx.insert(numbers, at, input)?;
                    cx.map(inserted, u64::from)
                }
                InsertWord => {
                    let row = cx.map(input, word);
                    let inserted = cx.insert(words, at, row)?;
                    cx.map(inserted, u64::from)
                }
                DeleteNumber => {
                    let deleted = cx.delete(numbers, at)?;
                    cx.map(deleted, u64::from)
                }
                DeleteWord => {
                    let deleted = cx.delete(words, at)?;
                    cx.map(deleted, u64::from)
                }
                InsertNumberAtValue => {
                    let at = cx.map(input.clone(), |value| value % KEYS);
                    let inserted = cx.insert(numbers, at, input)?;
                    cx.map(inserted, u64::from)
                }
                InsertWordAtValue => {
                    let at = cx.map(input.clone(), |value| value % KEYS);
                    let row = cx.map(input, word);
                    let inserted = cx.insert_grouped(words, 0, at, row)?;
                    cx.map(inserted, u64::from)
                }
                ReadNumberAtValue => {
                    let at = cx.map(input, |value| value % KEYS);
                    let row = cx.read(numbers, at, |row| *row)?;
                    cx.map(row, |row| row.unwrap_or(3))
                }
                UpdateEachNumber => {
                    let keys = cx.value(vec![key, (key + 5) % KEYS, (key + 1) % KEYS, key]);
                    cx.update_each(numbers, keys, input, 9, |sum, row, input| {
                        *row = mix(*row, input);
                        *sum = mix(*sum, *row);
                    })?
                }
                UpdateEachWord => {
                    let keys = cx.map(input.clone(), move |value| [key, value % KEYS]);
                    cx.update_each(words, keys, input, 9, |sum, row, input| {
                        *row = word(mix(worth(row), input));
                        *sum = mix(*sum, worth(row));
                    })?
                }
                ScanWords => {
                    let range = cx.value((key..=key + 3).into());
                    cx.scan(words, range, Direction::Ascending, 5, |sum, key, row| {
                        *sum = mix(mix(*sum, *key), worth(row));
                        ControlFlow::Continue(())
                    })?
                }
                TakeFirstWord => {
                    let range = cx.value((key..=key + 3).into());
                    let taken = cx.take_first(words, 0, range)?;
                    cx.map(taken, |key| key.unwrap_or(99))
                }
                ReadMember => {
                    let row = cx.read(members, at, |row| *row)?;
                    cx.map(row, |row| row.unwrap_or(1))
                }
                UpdateMember => {
                    let row = cx.update(members, at, input, |row, input| {
                        *row = mix(*row, input);
                        *row
                    })?;
                    cx.map(row, |row| row.unwrap_or(2))
                }
                InsertMember => {
                    let inserted = cx.insert(members, at, input)?;
                    cx.map(inserted, u64::from)
                }
                DeleteMember => {
                    let deleted = cx.delete(members, at)?;
                    cx.map(deleted, u64::from)
                }
                ScanGroup => {
                    let range = cx.map(input, |value| (value % 4..=value % 4).into());
                    cx.scan_index(groups, range, Direction::Descending, 5, |sum, group, key| {
                        *sum = mix(mix(*sum, *group), *key);
                        ControlFlow::Continue(())
                    })?
                }
                Force => {
                    let value = cx.force(input)?;
                    cx.value(value)
                }
                Require => {
                    let holds = cx.map(input, |value| value % 8 != 3);
                    cx.require(holds)?;
                    cx.value(4)
                }
            };
            values.push(value);
        }
        let mut all = cx.value(Vec::new());
        for value in values {
            let both = cx.zip(all, value);
            all = cx.map(both, |(mut all, value)| {
                all.push(value);
                all
            });
        }
        Ok(all)
    }
}

fn steps(random: &mut Random, among: &[What], count: u64) -> Vec<Step> {
    let step = |_| Step {
        what: among[random.below(among.len() as u64) as usize],
        key: random.below(KEYS),
        from: (random.below(3) != 0).then(|| random.below(20) as usize),
    };
    (0..count).map(step).collect()
}

/// Runs transactions of such steps on some cores, in the schedule of this seed, and then one after the other. How many
/// operations were stolen.
fn compare(protocol: &str, among: &[What], count: u64, cores: usize, seed: u64) -> u64 {
    let engine = crate::simulated::engine(protocol);
    let data = Data::new(&engine);
    // Rows of tables with indexes are loaded in transactions.
    let loaded = engine.statistics().commits;
    let results = crate::simulated::crew::run(&engine, cores, seed, |core, worker| {
        let mut random = Random::stream(seed, core as u64);
        let mut committed = Vec::new();
        for _ in 0..3 {
            let procedure = Steps { data: &data, steps: steps(&mut random, among, count) };
            match data.database.execute_on(worker, &procedure) {
                Ok(values) => committed.push((values, procedure.steps)),
                Err(Error::Rollback(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        committed
    });
    let mut committed: Vec<_> = results.into_iter().flatten().collect();
    committed.sort_by_key(|(values, _)| values[0]);
    let again = crate::simulated::engine("2pl-mcs");
    let expected = Data::new(&again);
    let mut worker = again.worker().unwrap();
    for (values, steps) in &committed {
        let procedure = Steps { data: &expected, steps: steps.clone() };
        let alone = expected.database.execute_eagerly(&mut worker, &procedure);
        assert_eq!(Ok(values), alone.as_ref(), "{protocol}, seed {seed}: {steps:?}");
    }
    let statistics = engine.statistics();
    assert_eq!(
        data.rows(&mut engine.worker().unwrap()),
        expected.rows(&mut worker),
        "{protocol}, seed {seed}"
    );
    assert_eq!(statistics.commits - loaded, committed.len() as u64);
    statistics.count(&Counter::STOLEN_OPERATIONS)
}

/// Compares in so many schedules. Some operations must have been stolen, or nothing is shown.
fn compare_all(protocol: &str, among: &[What], count: u64, schedules: std::ops::Range<u64>) {
    let mut stolen = 0;
    for seed in schedules.clone() {
        stolen += compare(protocol, among, count, 2 + (seed % 3) as usize, seed);
    }
    assert!(stolen > schedules.end - schedules.start, "{protocol}: {stolen} operations were stolen");
}

#[test]
fn changes_of_rows_give_what_they_give_one_after_the_other() {
    let among =
        [ReadNumber, UpdateNumber, UpdateNumber, ReadWord, UpdateWord, UpdateEachNumber, ReplaceNumber];
    for protocol in crate::simulated::stealing() {
        compare_all(&protocol, &among, 8, 0..300);
    }
}

#[test]
fn changes_that_move_entries_of_indexes_give_what_they_give_one_after_the_other() {
    let among = [UpdateMember, UpdateMember, ReadMember, ScanGroup, UpdateNumber];
    for protocol in crate::simulated::stealing() {
        compare_all(&protocol, &among, 6, 0..300);
    }
}

#[test]
fn everything_gives_what_it_gives_one_after_the_other() {
    for protocol in crate::simulated::stealing() {
        compare_all(&protocol, EVERYTHING, 10, 0..300);
    }
}

#[test]
fn insertions_and_deletions_on_few_keys_give_what_they_give_one_after_the_other() {
    let among = [
        InsertNumber,
        ReadNumber,
        DeleteNumber,
        UpdateNumber,
        InsertNumberAtValue,
        InsertWordAtValue,
        ReadWord,
        DeleteWord,
        UpdateWord,
    ];
    for protocol in crate::simulated::stealing() {
        compare_all(&protocol, &among, 9, 0..300);
    }
}

#[test]
#[ignore = "long: run with -- --ignored"]
fn everything_gives_what_it_gives_one_after_the_other_in_many_schedules() {
    for protocol in crate::simulated::stealing() {
        compare_all(&protocol, EVERYTHING, 14, 1_000..11_000);
    }
}
