//! Model checking, in builds with `--cfg loom` only.
//!
//! A [`Model`] runs a small piece of concurrent code in every interleaving of its threads, and with every
//! value that the language's memory model lets each load return, as far as loom knows it. A thread comes
//! from [`thread::spawn`](crate::thread::spawn), at most four beside the model's own.
//!
//! # Sequentially consistent accesses
//!
//! loom knows the total order of `fence(SeqCst)` but takes a sequentially consistent *access* for an acquire
//! or a release. The words of this build ([`atomic`]) therefore do one of two things with such an access:
//!
//! - By default they leave it at acquire and release. That is weaker than the language, so what a model
//!   shows holds all the more; and no fence that the code forgot is put in.
//! - In a model that is [`totally_ordered`](Model::totally_ordered) they put a `fence(SeqCst)` beside each, so
//!   that of two such accesses on one thread the first is before the second for everybody; that is what
//!   arguments from the total order use. The model is run twice, once with the fence before each access and
//!   once with the fence behind it, for an access that is not sequentially consistent but should be is
//!   noticed only where the fence is not its neighbour's. This is stronger than the language in two ways: the
//!   fence orders the relaxed accesses around it as well, and loom lets any two such fences synchronize. So
//!   such a model may not notice that an acquire or release is missing; that is for the models of the other
//!   kind.
//!
//! # A model that cannot fail shows nothing
//!
//! [`Model::needs`] names what the code must break without, mostly a class of orderings. After the code as
//! written has passed, it is run again without each of these, and the model fails if no execution does.

use std::cell::Cell;
use std::env;
use std::fmt;
use std::ops::BitOr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

pub use loom::cell::UnsafeCell;

/// What a model is run without.
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

/// How sequentially consistent accesses are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    None,
    FencesBefore,
    FencesAfter,
}

/// What the words and fences of the model that runs on this thread do. (loom runs all threads of a model on
/// the thread that started it.)
#[derive(Clone, Copy)]
struct Memory {
    order: Order,
    without: Part,
}

thread_local! {
    static MEMORY: Cell<Memory> = const { Cell::new(Memory { order: Order::None, without: Part(0) }) };
}

/// Whether this run is the one that [`Part::STEP`] asks for.
pub fn step_is_left_out() -> bool {
    MEMORY.get().without.contain(Part::STEP)
}

/// How a model is run.
#[derive(Debug, Clone, Default)]
pub struct Model {
    totally_ordered: bool,
    preemptions: Option<usize>,
    needs: Vec<Part>,
}

impl Model {
    /// A model in which sequentially consistent accesses acquire and release, and no more.
    pub fn new() -> Self {
        Self::default()
    }

    /// A model in which sequentially consistent accesses have a total order.
    pub fn totally_ordered() -> Self {
        Self { totally_ordered: true, ..Self::default() }
    }

    /// Looks only at executions in which a thread is stopped in favour of another at most so often (threads
    /// that wait do not count).
    pub fn preemptions(self, most: usize) -> Self {
        Self { preemptions: Some(most), ..self }
    }

    /// Says that without this some execution fails. May be called several times.
    pub fn needs(mut self, part: Part) -> Self {
        self.needs.push(part);
        self
    }

    /// Runs a model. Once in a test, and on the test's own thread.
    ///
    /// # Panics
    ///
    /// If an execution panics, deadlocks or has a data race on a word or an [`UnsafeCell`], or if none does
    /// without what the model needs.
    pub fn check(self, model: impl Fn() + Send + Sync + 'static) {
        let orders: &[Order] =
            if self.totally_ordered { &[Order::FencesBefore, Order::FencesAfter] } else { &[Order::None] };
        let without = env::var(WITHOUT).map(|bits| bits.parse().expect("set by `fails_without`"));
        let without = Part(without.unwrap_or(0));
        let model = Arc::new(model);
        let executions = orders.iter().map(|&order| self.run(Memory { order, without }, model.clone()));
        let executions: usize = executions.sum();
        if without != Part(0) {
            return;
        }
        assert!(executions > orders.len(), "there is only one execution: nothing in it is concurrent");
        let mut shown = format!("{executions} executions");
        for &part in &self.needs {
            assert!(fails_without(part), "none of {executions} executions fails without {part:?}");
            shown += &format!(", one fails without {part:?}");
        }
        eprintln!("{shown}");
    }

    /// Returns the number of executions.
    fn run(&self, memory: Memory, model: Arc<impl Fn() + Send + Sync + 'static>) -> usize {
        MEMORY.set(memory);
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

/// Tells a process what to leave out.
const WITHOUT: &str = "HOTROW_MODEL_WITHOUT";

/// Whether the running test fails without this.
///
/// In a process of its own: destructors that run while loom unwinds a failed execution may panic again.
fn fails_without(part: Part) -> bool {
    let thread = std::thread::current();
    let test = thread.name().filter(|name| *name != "main").expect("a test on a thread of its own");
    let output = Command::new(env::current_exe().expect("the test's program"))
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(WITHOUT, part.0.to_string())
        .output()
        .expect("the test's program runs once more");
    let said = String::from_utf8_lossy(&output.stderr);
    // To be killed is not to fail, and neither is to run on for too long.
    let has_panicked = said.contains("panicked at") && !said.contains("exceeded maximum number of branches");
    assert!(output.status.success() || has_panicked, "{said}");
    !output.status.success()
}

/// loom's atomic words and fences, with what the running [`Model`] says of their orderings.
pub mod atomic {
    use super::{MEMORY, Order, Part};
    use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
    use loom::sync::atomic as words;
    pub use loom::sync::atomic::Ordering;

    /// A fence.
    pub fn fence(ordering: Ordering) {
        let without = MEMORY.get().without;
        match ordering {
            Acquire if without.contain(Part::ACQUIRE_FENCES) => {}
            Release if without.contain(Part::RELEASE_FENCES) => {}
            SeqCst if without.contain(Part::TOTAL_ORDER) => words::fence(AcqRel),
            _ => words::fence(ordering),
        }
    }

    /// Makes loads of one word conflict, so that loom tries both orders of any two.
    ///
    /// loom looks for the executions still to be tried by the last access of a word that conflicts with the
    /// next one, and forgets a load when another follows. So where one thread loads a word and another loads
    /// and then changes it, it never tries the change before the first load. Each load is therefore preceded
    /// by a store to a word beside, which conflicts with that of every other load. Nobody loads that word, so
    /// it orders nothing.
    #[derive(Debug)]
    struct Turn(words::AtomicBool);

    impl Turn {
        #[track_caller]
        fn new() -> Self {
            Self(words::AtomicBool::new(false))
        }

        #[track_caller]
        fn take(&self) {
            self.0.store(false, Relaxed);
        }
    }

    /// The fence before a sequentially consistent access.
    fn before(ordering: Ordering) {
        if ordering == SeqCst && MEMORY.get().order == Order::FencesBefore {
            fence(SeqCst);
        }
    }

    /// The fence behind a sequentially consistent access.
    fn after(ordering: Ordering) {
        if ordering == SeqCst && MEMORY.get().order == Order::FencesAfter {
            fence(SeqCst);
        }
    }

    fn without(part: Part, ordering: Ordering, otherwise: Ordering) -> Ordering {
        let relaxed = ordering == Relaxed || MEMORY.get().without.contain(part);
        if relaxed { Relaxed } else { otherwise }
    }

    /// The ordering of an update that has taken place.
    fn of_update(ordering: Ordering) -> Ordering {
        without(Part::UPDATES, ordering, if ordering == SeqCst { AcqRel } else { ordering })
    }

    /// The ordering of an update that has turned out to be a load.
    fn of_failure(ordering: Ordering) -> Ordering {
        without(Part::UPDATES, ordering, Acquire)
    }

    macro_rules! word {
        ($name:ident $(<$parameter:ident>)?, $value:ty) => {
            /// A word that a model follows.
            #[derive(Debug)]
            pub struct $name $(<$parameter>)? {
                word: words::$name $(<$parameter>)?,
                turn: Turn,
            }

            impl $(<$parameter>)? $name $(<$parameter>)? {
                /// A word that holds `value`.
                #[track_caller]
                pub fn new(value: $value) -> Self {
                    Self { word: words::$name::new(value), turn: Turn::new() }
                }

                /// Reads the word.
                #[track_caller]
                pub fn load(&self, ordering: Ordering) -> $value {
                    before(ordering);
                    self.turn.take();
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

                /// As [`compare_exchange`](Self::compare_exchange): here it never fails for nothing.
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
                    Self { word: Default::default(), turn: Turn::new() }
                }
            }
        };
    }

    macro_rules! number {
        ($name:ident, $value:ty) => {
            word!($name, $value);

            impl $name {
                update!($value, fetch_add, "Adds to the word and returns what it was.");
                update!($value, fetch_sub, "Subtracts from the word and returns what it was.");
                update!($value, fetch_max, "Raises the word to a value and returns what it was.");
                update!($value, fetch_and, "Keeps these bits of the word only and returns what it was.");
                update!($value, fetch_or, "Sets these bits of the word and returns what it was.");
            }
        };
    }

    macro_rules! update {
        ($value:ty, $update:ident, $what:literal) => {
            #[doc = $what]
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
