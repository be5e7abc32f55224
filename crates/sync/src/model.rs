//! Model checking, in builds with `--cfg loom` only.
//!
//! A [`Model`] runs a small piece of concurrent code in every interleaving of its threads, and with every value
//! that the language's memory model allows each load to return, as far as loom implements it. Threads come from
//! [`thread::spawn`](crate::thread::spawn): at most four, besides the model's own.
//!
//! # Sequentially consistent accesses
//!
//! loom implements the total order of `fence(SeqCst)`, but treats a sequentially consistent *access* as an acquire
//! or a release. The words of this build ([`atomic`]) therefore treat such an access in one of two ways:
//!
//! - By default it stays an acquire and a release. That is weaker than the language, so results of the model also
//!   hold under the language; and no fence is added that the code may have forgotten.
//! - In a [`totally_ordered`](Model::totally_ordered) model each access gets a `fence(SeqCst)`, so that of two such
//!   accesses of one thread all threads see the first before the second. Arguments from the total order use this
//!   fact. The model runs twice, once with the fence before each access and once with the fence after it: an access
//!   that should be sequentially consistent but is not goes unnoticed if the fence of a neighbouring access stands
//!   in its place. This is stronger than the language in two ways: the fence also orders the relaxed accesses around
//!   it, and any two such fences synchronize in loom. So such a model may miss a missing acquire or release; models
//!   of the default kind check those.
//!
//! # Every model must be able to fail
//!
//! [`Model::needs`] names a part that the code cannot do without, usually a class of orderings. After the code has
//! passed as written, it runs again without each of these parts. The model fails if no execution fails then.

use std::cell::Cell;
use std::env;
use std::fmt;
use std::ops::BitOr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

pub use loom::cell::UnsafeCell;

/// A part of the code that a model is run without.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Part(u8);

impl Part {
    /// Every load is relaxed.
    pub const LOADS: Self = Self(1);
    /// Every store is relaxed.
    pub const STORES: Self = Self(2);
    /// Every read-modify-write is relaxed.
    pub const UPDATES: Self = Self(4);
    /// No acquire fences.
    pub const ACQUIRE_FENCES: Self = Self(8);
    /// No release fences.
    pub const RELEASE_FENCES: Self = Self(16);
    /// No total order: sequentially consistent accesses and fences only acquire and release.
    pub const TOTAL_ORDER: Self = Self(32);
    /// The step that the model itself leaves out when [`step_is_left_out`] says so.
    pub const STEP: Self = Self(64);

    fn contain(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::LOADS, "loads"),
            (Self::STORES, "stores"),
            (Self::UPDATES, "updates"),
            (Self::ACQUIRE_FENCES, "acquire fences"),
            (Self::RELEASE_FENCES, "release fences"),
            (Self::TOTAL_ORDER, "the total order"),
            (Self::STEP, "the step"),
        ];
        let contained = names.iter().filter(|(part, _)| self.contain(*part));
        formatter.write_str(&contained.map(|(_, name)| *name).collect::<Vec<_>>().join(" and "))
    }
}

impl BitOr for Part {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The fences that stand beside sequentially consistent accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddedFences {
    None,
    Before,
    After,
}

/// The treatment of orderings by the words and fences of the model that runs on this thread. (loom runs all threads
/// of a model on the thread that started it.)
#[derive(Clone, Copy)]
struct OrderingRules {
    fences: AddedFences,
    without: Part,
}

thread_local! {
    static RULES: Cell<OrderingRules> =
        const { Cell::new(OrderingRules { fences: AddedFences::None, without: Part(0) }) };
}

/// True if this run must leave out the step that [`Part::STEP`] stands for.
pub fn step_is_left_out() -> bool {
    RULES.get().without.contain(Part::STEP)
}

/// A model and its options.
#[derive(Debug, Clone, Default)]
pub struct Model {
    totally_ordered: bool,
    preemptions: Option<usize>,
    needs: Vec<Part>,
}

impl Model {
    /// A model in which sequentially consistent accesses only acquire and release.
    pub fn new() -> Self {
        Self::default()
    }

    /// A model in which sequentially consistent accesses have a total order.
    pub fn totally_ordered() -> Self {
        Self { totally_ordered: true, ..Self::default() }
    }

    /// Limits the model to executions with at most `most` preemptions (a switch away from a waiting thread does not
    /// count).
    pub fn preemptions(self, most: usize) -> Self {
        Self { preemptions: Some(most), ..self }
    }

    /// Demands that some execution fails without this part. May be called several times.
    pub fn needs(mut self, part: Part) -> Self {
        self.needs.push(part);
        self
    }

    /// Runs a model. Call it once in a test, on the test's own thread.
    ///
    /// # Panics
    ///
    /// If an execution panics, deadlocks or has a data race on a word or an [`UnsafeCell`], or if no execution fails
    /// without a part that the model needs.
    pub fn check(self, model: impl Fn() + Send + Sync + 'static) {
        let variants: &[AddedFences] = if self.totally_ordered {
            &[AddedFences::Before, AddedFences::After]
        } else {
            &[AddedFences::None]
        };
        let without = env::var(WITHOUT).map(|bits| bits.parse().expect("set by `fails_without`"));
        let without = Part(without.unwrap_or(0));
        let model = Arc::new(model);
        let executions =
            variants.iter().map(|&fences| self.run(OrderingRules { fences, without }, model.clone()));
        let executions: usize = executions.sum();
        if without != Part(0) {
            return;
        }
        assert!(executions > variants.len(), "there is only one execution: nothing in it is concurrent");
        let mut shown = format!("{executions} executions");
        for &part in &self.needs {
            assert!(fails_without(part), "none of {executions} executions fails without {part:?}");
            shown += &format!(", one fails without {part:?}");
        }
        eprintln!("{shown}");
    }

    /// Runs all executions and returns their number.
    fn run(&self, rules: OrderingRules, model: Arc<impl Fn() + Send + Sync + 'static>) -> usize {
        RULES.set(rules);
        let executions = Arc::new(AtomicUsize::new(0));
        let counted = executions.clone();
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(self.preemptions);
        builder.check(move || {
            counted.fetch_add(1, atomic::Ordering::Relaxed);
            model();
        });
        executions.load(atomic::Ordering::Relaxed)
    }
}

/// The environment variable that names the part to leave out.
const WITHOUT: &str = "HOTROW_MODEL_WITHOUT";

/// Returns true if the running test fails without this part.
///
/// Runs the test in a process of its own, because destructors that run while loom unwinds a failed execution may
/// panic again.
fn fails_without(part: Part) -> bool {
    let thread = std::thread::current();
    let test = thread.name().filter(|name| *name != "main").expect("a test on a thread of its own");
    let output = Command::new(env::current_exe().expect("the test's program"))
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(WITHOUT, part.0.to_string())
        .output()
        .expect("the test's program runs once more");
    let errors = String::from_utf8_lossy(&output.stderr);
    // A process that is killed, or an execution that is too long, does not count as a failure of the model.
    let has_panicked =
        errors.contains("panicked at") && !errors.contains("exceeded maximum number of branches");
    assert!(output.status.success() || has_panicked, "{errors}");
    !output.status.success()
}

/// loom's atomic words and fences, whose orderings the running [`Model`] adapts.
pub mod atomic {
    use super::{AddedFences, Part, RULES};
    use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
    use loom::sync::atomic as words;
    pub use loom::sync::atomic::Ordering;

    /// A fence.
    pub fn fence(ordering: Ordering) {
        let without = RULES.get().without;
        match ordering {
            Acquire if without.contain(Part::ACQUIRE_FENCES) => {}
            Release if without.contain(Part::RELEASE_FENCES) => {}
            SeqCst if without.contain(Part::TOTAL_ORDER) => words::fence(AcqRel),
            _ => words::fence(ordering),
        }
    }

    /// Makes loads of one word conflict, so that loom tries both orders of any two.
    ///
    /// loom derives the executions that it must still try from the last access of a word that conflicts with the
    /// next one, and forgets a load when another load follows. So if one thread loads a word and another loads and
    /// then changes it, loom never tries the change before the first load. Each load is therefore preceded by a
    /// store to a second word, which conflicts with the store of every other load. No thread loads that second
    /// word, so it orders nothing.
    #[derive(Debug)]
    struct LoadConflict(words::AtomicBool);

    impl LoadConflict {
        #[track_caller]
        fn new() -> Self {
            Self(words::AtomicBool::new(false))
        }

        #[track_caller]
        fn store(&self) {
            self.0.store(false, Relaxed);
        }
    }

    /// The fence before a sequentially consistent access.
    fn before(ordering: Ordering) {
        if ordering == SeqCst && RULES.get().fences == AddedFences::Before {
            fence(SeqCst);
        }
    }

    /// The fence after a sequentially consistent access.
    fn after(ordering: Ordering) {
        if ordering == SeqCst && RULES.get().fences == AddedFences::After {
            fence(SeqCst);
        }
    }

    fn without(part: Part, ordering: Ordering, otherwise: Ordering) -> Ordering {
        let relaxed = ordering == Relaxed || RULES.get().without.contain(part);
        if relaxed { Relaxed } else { otherwise }
    }

    /// The ordering of a read-modify-write that has written.
    fn of_update(ordering: Ordering) -> Ordering {
        without(Part::UPDATES, ordering, if ordering == SeqCst { AcqRel } else { ordering })
    }

    /// The ordering of a compare-and-swap that has failed, and so is only a load.
    fn of_failure(ordering: Ordering) -> Ordering {
        without(Part::UPDATES, ordering, Acquire)
    }

    macro_rules! word {
        ($name:ident $(<$parameter:ident>)?, $value:ty) => {
            /// A word that the model checker sees.
            #[derive(Debug)]
            pub struct $name $(<$parameter>)? {
                word: words::$name $(<$parameter>)?,
                load_conflict: LoadConflict,
            }

            impl $(<$parameter>)? $name $(<$parameter>)? {
                /// A word that holds `value`.
                #[track_caller]
                pub fn new(value: $value) -> Self {
                    Self { word: words::$name::new(value), load_conflict: LoadConflict::new() }
                }

                /// Reads the word.
                #[track_caller]
                pub fn load(&self, ordering: Ordering) -> $value {
                    before(ordering);
                    self.load_conflict.store();
                    let value = self.word.load(without(Part::LOADS, ordering, Acquire));
                    after(ordering);
                    value
                }

                /// Writes the word.
                #[track_caller]
                pub fn store(&self, value: $value, ordering: Ordering) {
                    before(ordering);
                    self.word.store(value, without(Part::STORES, ordering, Release));
                    after(ordering);
                }

                /// Exchanges the word's value.
                #[track_caller]
                pub fn swap(&self, value: $value, ordering: Ordering) -> $value {
                    before(ordering);
                    let old = self.word.swap(value, of_update(ordering));
                    after(ordering);
                    old
                }

                /// Writes the word if it has the value `current`.
                #[track_caller]
                pub fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    before(success);
                    let result =
                        self.word.compare_exchange(current, new, of_update(success), of_failure(failure));
                    after(if result.is_ok() { success } else { failure });
                    result
                }

                /// As [`compare_exchange`](Self::compare_exchange); here it never fails spuriously.
                #[track_caller]
                pub fn compare_exchange_weak(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    self.compare_exchange(current, new, success, failure)
                }
            }

            impl $(<$parameter>)? Default for $name $(<$parameter>)? {
                #[track_caller]
                fn default() -> Self {
                    Self { word: Default::default(), load_conflict: LoadConflict::new() }
                }
            }
        };
    }

    macro_rules! number {
        ($name:ident, $value:ty) => {
            word!($name, $value);

            impl $name {
                update!($value, fetch_add, "Adds to the word and returns its previous value.");
                update!($value, fetch_sub, "Subtracts from the word and returns its previous value.");
                update!($value, fetch_max, "Raises the word to a value and returns its previous value.");
                update!(
                    $value,
                    fetch_and,
                    "Clears all other bits of the word and returns its previous value."
                );
                update!($value, fetch_or, "Sets these bits of the word and returns its previous value.");
            }
        };
    }

    macro_rules! update {
        ($value:ty, $update:ident, $doc:literal) => {
            #[doc = $doc]
            #[track_caller]
            pub fn $update(&self, value: $value, ordering: Ordering) -> $value {
                before(ordering);
                let old = self.word.$update(value, of_update(ordering));
                after(ordering);
                old
            }
        };
    }

    word!(AtomicBool, bool);
    number!(AtomicU8, u8);
    number!(AtomicU16, u16);
    number!(AtomicU32, u32);
    number!(AtomicU64, u64);
    number!(AtomicUsize, usize);
    word!(AtomicPtr<T>, *mut T);
}
