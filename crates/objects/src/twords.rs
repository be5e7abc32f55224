//! Words of memory: a word-based STM, for code that has no datatype (sto §4.2, `TGeneric`).
//!
//! A program that keeps its data in words of a [`TWords`] has what conventional software transactional memories give it: each
//! word is a segment, and a structure made of words conflicts wherever its words do, pointers and counters included. What a
//! datatype that knows its semantics is worth shows beside it (sto §5.2).
//!
//! Deviations from the paper: the memory is the object's own and not the process's, because safe Rust has no words of others;
//! and each word has a header of its own, where the paper's versions are shared by the words with the same hash.

use hotrow_core::{Abort, Engine, Misuse, ObjectMeta, Protocol, SegmentArray, Transaction};
use hotrow_protocols::Occ;
use hotrow_sync::OnceLock;
use hotrow_sync::atomic::{AtomicU64, Ordering};
use std::fmt;

/// Transactional memory: words with addresses, which are allocated and never freed before the object is.
///
/// ```
/// use hotrow_core::Engine;
/// use hotrow_objects::TWords;
/// use hotrow_protocols::Occ;
///
/// let engine = Engine::<Occ>::new();
/// let memory = TWords::new(&engine);
/// let node = memory.allocate(2);
/// let sum = engine.transact(|tx| {
///     memory.write(tx, node, 40)?;
///     memory.write(tx, node + 1, 2)?;
///     Ok(memory.read(tx, node)? + memory.read(tx, node + 1)?)
/// })?;
/// assert_eq!(sum, 42);
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct TWords<P: Protocol = Occ> {
    meta: ObjectMeta,
    engine: Engine<P>,
    chunks: [OnceLock<SegmentArray<u64, P>>; CHUNKS],
    /// The address of the next word to be allocated.
    next: AtomicU64,
}

/// The number of words in the first chunk. Each further one has twice as many as the one before.
const FIRST: u64 = if cfg!(test) { 2 } else { 1 << 10 };

/// The number of chunks, enough for more words than memory can hold.
const CHUNKS: usize = 36;

/// Addresses are smaller.
const WORDS: u64 = FIRST * ((1 << CHUNKS) - 1);

impl<P: Protocol> fmt::Debug for TWords<P> {
    /// Shows the size only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TWords").field("words", &self.allocated()).finish_non_exhaustive()
    }
}

impl<P: Protocol> TWords<P> {
    /// Makes a memory without words.
    pub fn new(engine: &Engine<P>) -> Self {
        Self {
            meta: ObjectMeta::new(engine.id(), "words"),
            engine: engine.clone(),
            chunks: [const { OnceLock::new() }; CHUNKS],
            // Address 0 is no word's, so that programs can use it for no word.
            next: AtomicU64::new(1),
        }
    }

    /// Allocates words that lie side by side, and returns the address of the first. They are 0.
    ///
    /// It happens at once, also within a transaction: the words of one that does not commit stay unused. No word has address
    /// 0.
    ///
    /// # Panics
    ///
    /// If the addresses, 46 bits, are used up.
    pub fn allocate(&self, words: u64) -> u64 {
        let mut first = self.next.load(Ordering::Relaxed);
        loop {
            let behind = first.checked_add(words).filter(|behind| *behind <= WORDS);
            let behind = behind.expect("the memory of a `TWords` is used up");
            // Relaxed: only uniqueness matters. The chunk is made by whoever comes first.
            match self.next.compare_exchange_weak(first, behind, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => first = now,
            }
        }
        if words == 0 {
            return first;
        }
        for chunk in place(first).0..=place(first + words - 1).0 {
            self.chunks[chunk].get_or_init(|| {
                let zeros = std::iter::repeat_n(0, (FIRST << chunk) as usize);
                SegmentArray::new(&self.engine, format!("words from {}", FIRST * ((1 << chunk) - 1)), zeros)
            });
        }
        first
    }

    /// The number of words allocated so far.
    pub fn allocated(&self) -> u64 {
        self.next.load(Ordering::Relaxed) - 1
    }

    /// Reads a word.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`. An address of no word ends the transaction with
    /// [`Misuse::OutOfBounds`]. (Words are made in blocks, so some behind those allocated may be there, and are 0.)
    #[inline]
    pub fn read(&self, tx: &mut Transaction<'_, P>, address: u64) -> Result<u64, Abort> {
        let (words, at) = self.words(tx, address)?;
        words.enter(tx, at)?.read(|word| *word)
    }

    /// Writes a word.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    #[inline]
    pub fn write(&self, tx: &mut Transaction<'_, P>, address: u64, word: u64) -> Result<(), Abort> {
        let (words, at) = self.words(tx, address)?;
        words.enter(tx, at)?.write(word)
    }

    #[inline]
    fn words(
        &self,
        tx: &mut Transaction<'_, P>,
        address: u64,
    ) -> Result<(&SegmentArray<u64, P>, usize), Abort> {
        let (chunk, at) = place(address);
        match self.chunks.get(chunk).and_then(OnceLock::get) {
            Some(words) if address != 0 => Ok((words, at)),
            _ => Err(self.out_of_bounds(tx, address)),
        }
    }

    #[cold]
    fn out_of_bounds(&self, tx: &mut Transaction<'_, P>, address: u64) -> Abort {
        let (index, length) = (address as usize, self.next.load(Ordering::Relaxed) as usize);
        match tx.enter(&self.meta) {
            Ok(tx) => tx.misuse(Misuse::OutOfBounds { object: String::from("words"), index, length }),
            Err(abort) => abort,
        }
    }
}

/// Returns the chunk of an address, and the position in it.
#[inline]
fn place(address: u64) -> (usize, usize) {
    let Some(from_first) = address.checked_add(FIRST) else { return (CHUNKS, 0) };
    let chunk = (from_first / FIRST).ilog2();
    (chunk as usize, (from_first - (FIRST << chunk)) as usize)
}
