//! labyrinth: wires are laid in a maze of several layers without crossing each other (STAMP).
//!
//! A worker takes a pair of cells to connect. In one transaction it copies the grid, searches the copy for a cheapest
//! path, and occupies the path's cells in the grid. The copy detects no conflicts
//! ([`Vector::peek_all`]), because the path depends only on its own cells: they are
//! read again, and if one is no longer free, the transaction changes nothing and the worker starts over. Cells are
//! never freed, so a pair without a path in an old copy has none now.

mod grid;

use crate::application::{Application, Failure, Statistics, require};
use crate::options::{invalid, options};
use crate::runner::Runner;
use crate::store::{Queue, Store, Vector};
use grid::{FREE, Geometry, RESERVED, Search};
use hotrow_sync::random::Random;
use hotrow_sync::{Mutex, lock};
use std::cmp::Reverse;

options! {
    /// Options of labyrinth. STAMP reads the grid from files, which are named after these numbers.
    pub struct LabyrinthOptions {
        /// Cells of the grid in the first direction (x).
        width: usize = 192 in 1..=100_000,
        /// Cells of the grid in the second direction (y).
        height: usize = 192 in 1..=100_000,
        /// Layers of the grid (z).
        layers: usize = 3 in 1..=1_000,
        /// Pairs of cells to connect (n).
        pairs: usize = 256 in 1..=100_000_000,
        /// Seed of the random numbers.
        seed: u64 = 0 in 0..=0xffff_ffff_ffff_ffff,
    }
    presets {
        "simulator": "STAMP's parameters for simulators." {
            width = 32, height = 32, layers = 3, pairs = 96,
        }
        "native": "STAMP's large parameters." {
            width = 512, height = 512, layers = 7, pairs = 512,
        }
    }
    relations |options: &LabyrinthOptions| {
        let cells = options.width * options.height * options.layers;
        if cells > 1 << 31 {
            return Err(invalid("width", options.width, "expected a grid of at most 2147483648 cells"));
        }
        if 2 * options.pairs > cells {
            return Err(invalid("pairs", options.pairs, "expected at most half as many pairs as cells"));
        }
        Ok(())
    };
}

/// A laid wire.
struct Wire {
    pair: u32,
    cells: Vec<usize>,
}

/// The end of an attempt to lay a wire.
enum Laid {
    /// The wire lies in these cells.
    In(Vec<usize>),
    /// There is no path.
    Blocked,
    /// Another wire has been laid across the path in the meantime.
    Overtaken,
}

/// The work of one or all workers.
#[derive(Default)]
struct Work {
    wires: Vec<Wire>,
    blocked: Vec<u32>,
    overtaken: u64,
}

/// labyrinth over a store.
pub struct Labyrinth<S: Store> {
    store: S,
    geometry: Geometry,
    /// The cells to connect, all different.
    pairs: Vec<(usize, usize)>,
    /// The content of each cell: [`FREE`], [`RESERVED`], or the number of the wire's pair plus one.
    grid: S::Vector<u32>,
    waiting: S::Queue<u32>,
    work: Work,
}

impl<S: Store> Labyrinth<S> {
    /// Tries once to lay the wire of a pair.
    fn lay(
        &self,
        tx: &mut S::Tx<'_>,
        pair: u32,
        search: &mut Search,
        copy: &mut Vec<u32>,
    ) -> Result<Laid, S::Abort> {
        let (from, to) = self.pairs[pair as usize];
        self.grid.peek_all(tx, copy)?;
        let Some(path) = search.find(copy, from, to) else { return Ok(Laid::Blocked) };
        let inner = &path[1..path.len() - 1];
        for cell in inner {
            if self.grid.get(tx, *cell)? != FREE {
                return Ok(Laid::Overtaken);
            }
        }
        for cell in inner {
            self.grid.set(tx, *cell, pair + 1)?;
        }
        Ok(Laid::In(path))
    }

    /// Lays wires until no pair is waiting.
    fn lay_all(&self) -> Work {
        let mut worker = self.store.worker();
        let mut search = Search::new(self.geometry);
        let mut copy = Vec::new();
        let mut work = Work::default();
        while let Some(pair) = S::transact(&mut worker, |tx| self.waiting.pop(tx)) {
            loop {
                match S::transact(&mut worker, |tx| self.lay(tx, pair, &mut search, &mut copy)) {
                    Laid::In(cells) => work.wires.push(Wire { pair, cells }),
                    Laid::Blocked => work.blocked.push(pair),
                    Laid::Overtaken => {
                        work.overtaken += 1;
                        continue;
                    }
                }
                break;
            }
        }
        work
    }

    fn read_grid(&self) -> Vec<u32> {
        let mut worker = self.store.worker();
        let cells = 0..self.geometry.cells();
        cells.map(|cell| S::transact(&mut worker, |tx| self.grid.get(tx, cell))).collect()
    }
}

impl<S: Store> Application<S> for Labyrinth<S> {
    type Options = LabyrinthOptions;

    fn prepare(store: S, options: &LabyrinthOptions) -> Self {
        let geometry = Geometry::new(options);
        let mut random = Random::seeded(options.seed);
        let mut grid = vec![FREE; geometry.cells()];
        let mut draw_end = || {
            let mut end = random.below(geometry.cells() as u64) as usize;
            while grid[end] != FREE {
                end = (end + 1) % geometry.cells();
            }
            grid[end] = RESERVED;
            end
        };
        let mut pairs: Vec<(usize, usize)> = (0..options.pairs).map(|_| (draw_end(), draw_end())).collect();
        // As in STAMP, long wires come first.
        pairs.sort_by_key(|(from, to)| Reverse(geometry.cost(*from, *to)));
        Self {
            grid: store.vector(grid),
            waiting: store.queue(0..pairs.len() as u32),
            store,
            geometry,
            pairs,
            work: Work::default(),
        }
    }

    fn run<R: Runner<Self>>(&mut self, runner: &R) -> Statistics {
        let total = Mutex::new(Work::default());
        runner.run(self, &|labyrinth, _| {
            let work = labyrinth.lay_all();
            let mut total = lock(&total);
            total.wires.extend(work.wires);
            total.blocked.extend(work.blocked);
            total.overtaken += work.overtaken;
        });
        self.work = std::mem::take(&mut lock(&total));
        Statistics::new([
            ("wires", self.work.wires.len() as u64),
            ("blocked", self.work.blocked.len() as u64),
            ("overtaken", self.work.overtaken),
        ])
    }

    /// Checks that each wire leads through neighbouring cells from one end to the other, that no two wires share a
    /// cell, that the grid has these wires and nothing else, and that the other pairs have no path.
    fn verify(&self) -> Result<(), Failure> {
        let mut expected = vec![FREE; self.geometry.cells()];
        for (from, to) in &self.pairs {
            expected[*from] = RESERVED;
            expected[*to] = RESERVED;
        }
        let mut times = vec![0_u32; self.pairs.len()];
        for Wire { pair, cells } in &self.work.wires {
            times[*pair as usize] += 1;
            let (from, to) = self.pairs[*pair as usize];
            require(Search::is_connected(&self.geometry, cells, from, to), || {
                format!("wire {pair} does not connect its ends")
            })?;
            for cell in &cells[1..cells.len() - 1] {
                require(expected[*cell] == FREE, || format!("wire {pair} uses cell {cell}, which is taken"))?;
                expected[*cell] = pair + 1;
            }
        }
        let grid = self.read_grid();
        let wrong = grid.iter().zip(&expected).position(|(found, expected)| found != expected);
        require(wrong.is_none(), || {
            format!("cell {} of the grid has another content than the wires", wrong.unwrap_or_default())
        })?;
        let mut search = Search::new(self.geometry);
        for pair in &self.work.blocked {
            times[*pair as usize] += 1;
            let (from, to) = self.pairs[*pair as usize];
            require(search.find(&grid, from, to).is_none(), || {
                format!("pair {pair} has a path but no wire")
            })?;
        }
        require(times.iter().all(|times| *times == 1), || "a pair was left out or connected twice".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::execute;
    use crate::options::Options;
    use crate::plain::{GlobalLock, Sequential};
    use crate::runner::{OneThread, on_threads};

    fn small() -> LabyrinthOptions {
        LabyrinthOptions { width: 12, height: 10, layers: 2, pairs: 20, seed: 1 }
    }

    fn after_a_run() -> Labyrinth<Sequential> {
        let mut labyrinth = Labyrinth::prepare(Sequential::default(), &small());
        labyrinth.run(&OneThread);
        labyrinth.verify().unwrap();
        labyrinth
    }

    #[test]
    fn runs_on_one_thread_and_on_several() {
        let outcome = execute::<Labyrinth<_>, _, _>(Sequential::default(), &small(), &OneThread);
        assert_eq!(outcome.verification, Ok(()));
        assert!(outcome.statistics.count("wires") > 5, "{outcome:?}");
        assert!(outcome.statistics.count("blocked") > 0, "{outcome:?}");
        let outcome = execute::<Labyrinth<_>, _, _>(GlobalLock::default(), &small(), &on_threads(3));
        assert_eq!(outcome.verification, Ok(()));
    }

    #[test]
    fn the_smallest_and_the_fullest_grid_work() {
        for (width, height, layers, pairs) in [(2, 1, 1, 1), (3, 2, 2, 6)] {
            let options = LabyrinthOptions { width, height, layers, pairs, seed: 0 };
            options.check().unwrap();
            let outcome = execute::<Labyrinth<_>, _, _>(GlobalLock::default(), &options, &on_threads(2));
            assert_eq!(outcome.verification, Ok(()));
        }
    }

    #[test]
    fn impossible_grids_are_refused() {
        let error = LabyrinthOptions { pairs: 121, ..small() }.check().unwrap_err();
        assert_eq!(error.to_string(), "pairs=121: expected at most half as many pairs as cells");
        let huge = LabyrinthOptions { width: 100_000, height: 100_000, ..small() };
        assert!(
            huge.check().unwrap_err().to_string().starts_with("width=100000: expected a grid of at most")
        );
    }

    #[test]
    fn a_crossing_is_found() {
        let mut labyrinth = after_a_run();
        let longest = labyrinth.work.wires.iter().max_by_key(|wire| wire.cells.len()).unwrap();
        let (pair, cells) = (labyrinth.work.blocked[0], longest.cells.clone());
        labyrinth.pairs[pair as usize] = (cells[0], cells[cells.len() - 1]);
        labyrinth.work.wires.push(Wire { pair, cells });
        assert!(labyrinth.verify().unwrap_err().to_string().ends_with("which is taken"));
    }

    #[test]
    fn a_broken_wire_is_found() {
        let mut labyrinth = after_a_run();
        let longest = labyrinth.work.wires.iter_mut().max_by_key(|wire| wire.cells.len()).unwrap();
        longest.cells.remove(1);
        assert!(labyrinth.verify().unwrap_err().to_string().ends_with("does not connect its ends"));
    }

    #[test]
    fn a_cell_without_a_wire_is_found() {
        let labyrinth = after_a_run();
        let cell = labyrinth.read_grid().iter().position(|content| *content == FREE).unwrap();
        let Ok(()) = labyrinth.grid.set(&mut (), cell, 3);
        assert!(labyrinth.verify().unwrap_err().to_string().starts_with(&format!("cell {cell} of the grid")));
    }

    #[test]
    fn a_pair_left_out_or_wrongly_blocked_is_found() {
        let mut labyrinth = after_a_run();
        let pair = labyrinth.work.blocked.pop().unwrap();
        assert!(labyrinth.verify().unwrap_err().to_string().starts_with("a pair was left out"));
        labyrinth.work.blocked.push(pair);
        labyrinth.work.wires.retain(|wire| wire.cells.len() > 2);
        let wire = labyrinth.work.wires.pop().unwrap();
        for cell in &wire.cells[1..wire.cells.len() - 1] {
            let Ok(()) = labyrinth.grid.set(&mut (), *cell, FREE);
        }
        labyrinth.work.blocked.push(wire.pair);
        assert!(labyrinth.verify().unwrap_err().to_string().ends_with("has a path but no wire"));
    }
}
