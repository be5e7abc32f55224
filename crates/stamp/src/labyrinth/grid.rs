//! The grid's geometry, and the search for the cheapest path between two of its cells (Lee's algorithm).

use super::LabyrinthOptions;
use hotrow_sync::work::charge_cycles;
use std::iter::once;

/// The content of a free cell.
pub(crate) const FREE: u32 = 0;

/// The content of a cell where a wire is to start or to end.
pub(crate) const RESERVED: u32 = u32::MAX;

/// The cost of a step within a layer; a step to another layer costs twice as much, as in STAMP.
const STEP_COST: u32 = 1;
const LAYER_COST: u32 = 2;

/// The distance of a cell that has not been reached.
const UNREACHED: u32 = u32::MAX;

/// A grid's dimensions. A cell is given by its index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Geometry {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) layers: usize,
}

impl Geometry {
    pub(crate) fn new(options: &LabyrinthOptions) -> Self {
        Self { width: options.width, height: options.height, layers: options.layers }
    }

    /// The number of cells.
    pub(crate) fn cells(&self) -> usize {
        self.width * self.height * self.layers
    }

    /// Returns the neighbours of a cell, the cost of a step to each, and the step's direction.
    pub(crate) fn neighbours(&self, cell: usize) -> impl Iterator<Item = (usize, u32, usize)> {
        let layer = self.width * self.height;
        let (x, y, z) = (cell % self.width, cell / self.width % self.height, cell / layer);
        let steps = [
            (x + 1 < self.width, STEP_COST, cell.wrapping_add(1)),
            (x > 0, STEP_COST, cell.wrapping_sub(1)),
            (y + 1 < self.height, STEP_COST, cell.wrapping_add(self.width)),
            (y > 0, STEP_COST, cell.wrapping_sub(self.width)),
            (z + 1 < self.layers, LAYER_COST, cell.wrapping_add(layer)),
            (z > 0, LAYER_COST, cell.wrapping_sub(layer)),
        ];
        let inside = steps.into_iter().enumerate().filter(|(_, (is_inside, ..))| *is_inside);
        inside.map(|(direction, (_, cost, neighbour))| (neighbour, cost, direction))
    }

    /// Returns the cost of a path between two cells if nothing is in its way.
    pub(crate) fn cost(&self, from: usize, to: usize) -> u32 {
        let layer = self.width * self.height;
        let place = |cell: usize| [cell % self.width, cell / self.width % self.height, cell / layer];
        let costs = [STEP_COST, STEP_COST, LAYER_COST];
        let ends = place(from).into_iter().zip(place(to));
        ends.zip(costs).map(|((a, b), cost)| a.abs_diff(b) as u32 * cost).sum()
    }
}

/// The cycles for looking at a cell and its six neighbours, as far as no memory is shared; estimated.
const CYCLES: u32 = 30;

/// A search for paths, with the memory that it reuses.
pub(crate) struct Search {
    geometry: Geometry,
    /// The cost of the cheapest path from the start to each cell.
    distances: Vec<u32>,
    /// The cells to look at next, by distance modulo the number of lists.
    frontier: [Vec<usize>; LAYER_COST as usize + 1],
}

impl Search {
    pub(crate) fn new(geometry: Geometry) -> Self {
        Self { geometry, distances: vec![UNREACHED; geometry.cells()], frontier: Default::default() }
    }

    /// Returns the cells of a cheapest path between two cells, both included, through free cells of `grid`; `None` if
    /// there is no path.
    pub(crate) fn find(&mut self, grid: &[u32], from: usize, to: usize) -> Option<Vec<usize>> {
        self.expand(grid, from, to);
        (self.distances[to] != UNREACHED).then(|| self.trace_back(from, to))
    }

    /// Computes distances from the start, in their order, until the end is reached.
    fn expand(&mut self, grid: &[u32], from: usize, to: usize) {
        self.distances.fill(UNREACHED);
        self.distances[from] = 0;
        self.frontier.iter_mut().for_each(Vec::clear);
        self.frontier[0].push(from);
        let lists = self.frontier.len();
        let mut distance = 0;
        while self.frontier.iter().any(|cells| !cells.is_empty()) {
            let mut cells = std::mem::take(&mut self.frontier[distance as usize % lists]);
            charge_cycles(cells.len() as u32 * CYCLES);
            for cell in cells.drain(..) {
                if cell == to {
                    return;
                }
                // A shorter path has been found since.
                if self.distances[cell] != distance {
                    continue;
                }
                for (neighbour, cost, _) in self.geometry.neighbours(cell) {
                    let is_open = grid[neighbour] == FREE || neighbour == to;
                    if is_open && distance + cost < self.distances[neighbour] {
                        self.distances[neighbour] = distance + cost;
                        self.frontier[(distance + cost) as usize % lists].push(neighbour);
                    }
                }
            }
            self.frontier[distance as usize % lists] = cells;
            distance += 1;
        }
    }

    /// Follows the distances down from the end, straight on where it can.
    fn trace_back(&self, from: usize, to: usize) -> Vec<usize> {
        let mut path = vec![to];
        let mut direction = None;
        let mut cell = to;
        while cell != from {
            let before = |(neighbour, cost, _): &(usize, u32, usize)| {
                self.distances[*neighbour].checked_add(*cost) == Some(self.distances[cell])
            };
            let candidates = || self.geometry.neighbours(cell).filter(before);
            let straight = candidates().find(|(.., towards)| Some(*towards) == direction);
            let (neighbour, _, towards) = straight
                .or_else(|| candidates().next())
                .expect("a cell was reached from one of its neighbours");
            path.push(neighbour);
            (cell, direction) = (neighbour, Some(towards));
        }
        path.reverse();
        path
    }

    /// Returns the path if it is one: from one cell to the other, by steps to neighbours.
    pub(crate) fn is_connected(geometry: &Geometry, path: &[usize], from: usize, to: usize) -> bool {
        let is_step = |pair: &[usize]| geometry.neighbours(pair[0]).any(|(next, ..)| next == pair[1]);
        path.iter().copied().take(1).eq(once(from))
            && path.last() == Some(&to)
            && path.windows(2).all(is_step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry { width: 4, height: 3, layers: 2 };

    #[test]
    fn a_path_goes_straight_or_around_or_over() {
        let mut search = Search::new(GEOMETRY);
        let mut grid = vec![FREE; GEOMETRY.cells()];
        assert_eq!(search.find(&grid, 0, 3), Some(vec![0, 1, 2, 3]));
        assert_eq!(GEOMETRY.cost(0, 23), 3 + 2 + 2);
        grid[1] = 7;
        assert_eq!(search.find(&grid, 0, 3).unwrap().len(), 6);
        grid[5] = 7;
        grid[9] = 7;
        let path = search.find(&grid, 0, 3).unwrap();
        assert!(path.len() == 6 && path.contains(&13), "{path:?}");
        assert!(Search::is_connected(&GEOMETRY, &path, 0, 3));
        assert!(!Search::is_connected(&GEOMETRY, &path[1..], 0, 3));
        assert!(!Search::is_connected(&GEOMETRY, &[0, 2, 3], 0, 3));
    }

    #[test]
    fn a_wall_leaves_no_path() {
        let mut grid = vec![FREE; GEOMETRY.cells()];
        for cell in (1..GEOMETRY.cells()).step_by(4) {
            grid[cell] = RESERVED;
        }
        assert_eq!(Search::new(GEOMETRY).find(&grid, 0, 3), None);
    }
}
