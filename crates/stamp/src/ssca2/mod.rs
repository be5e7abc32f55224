//! ssca2: adjacency arrays of a graph are built from its edges (STAMP; kernel 1 of the benchmark SSCA2).
//!
//! The edges are sorted, so each worker writes down the successors of its share of the vertices alone. An edge without
//! one in the opposite direction is also entered at its other end, as an *implied* edge; there workers meet. A
//! transaction enters one implied edge: it raises the number of a vertex's implied edges and writes the edge into the
//! array of implied edges, which has as many elements for each vertex as a clique has vertices at most; further edges
//! go into a list. Two transactions conflict rarely, because there are many vertices.
//!
//! Weights of edges, of which this kernel makes no use, are left out.

mod edges;

use crate::application::{Application, Failure, Statistics, require};
use crate::options::options;
use crate::runner::{Runner, share};
use crate::store::{Cell, Counters, Lists, Store, Vector};
use edges::{Edge, clique_size_max};
use hotrow_sync::atomic::{AtomicU32, Ordering};

options! {
    /// Options of ssca2. STAMP's letters are in brackets.
    pub struct Ssca2Options {
        /// Logarithm of the number of vertices to base 2 (-s).
        scale: u32 = 17 in 1..=24,
        /// Share of the vertices that are connected to another clique's vertex at distance 1 (-i).
        inter_clique_share: f64 = 1.0 in 0.0..=1.0,
        /// Share of the edges that have none in the opposite direction (-u).
        one_way_share: f64 = 1.0 in 0.0..=1.0,
        /// Largest number of parallel edges (-p).
        parallel_edges_max: u32 = 3 in 1..=1_000,
        /// Seed of the random numbers.
        seed: u64 = 0 in 0..=0xffff_ffff_ffff_ffff,
    }
    presets {
        "simulator": "STAMP's parameters for simulators." {
            scale = 13, inter_clique_share = 1.0, one_way_share = 1.0, parallel_edges_max = 3,
        }
        "native": "STAMP's large parameters." {
            scale = 20, inter_clique_share = 1.0, one_way_share = 1.0, parallel_edges_max = 3,
        }
    }
    relations |_| Ok(());
}

/// Lists of numbers for each vertex, one after the other. A worker writes only those of its own vertices.
#[derive(Default)]
struct Adjacency {
    /// The place of each vertex's first number, and of the end.
    starts: Vec<usize>,
    numbers: Vec<AtomicU32>,
}

impl Adjacency {
    /// Makes room for as many numbers as `degrees` says.
    fn with_degrees(degrees: impl Iterator<Item = u32>) -> Self {
        let mut starts = vec![0];
        let mut end = 0;
        starts.extend(degrees.map(|degree| {
            end += degree as usize;
            end
        }));
        Self { starts, numbers: (0..end).map(|_| AtomicU32::new(0)).collect() }
    }

    fn of(&self, vertex: usize) -> &[AtomicU32] {
        &self.numbers[self.starts[vertex]..self.starts[vertex + 1]]
    }

    fn values(&self, vertex: usize) -> impl Iterator<Item = u32> {
        self.of(vertex).iter().map(|number| number.load(Ordering::Relaxed))
    }
}

/// ssca2 over a store.
pub struct Ssca2<S: Store> {
    store: S,
    clique_size_max: usize,
    edges: Vec<Edge>,
    vertex_max: S::Cell<u32>,
    out_edges: S::Counters,
    implied_degrees: S::Vector<u32>,
    implied: S::Vector<u32>,
    more_implied: S::Lists<u32, u32, ()>,
    /// The successors of each vertex.
    out: Adjacency,
    /// The first of the parallel edges to each successor.
    first_edges: Vec<AtomicU32>,
    /// The vertices from which an edge leads to each vertex and none leads back.
    incoming: Adjacency,
}

impl<S: Store> Ssca2<S> {
    /// Raises the number of the last vertex to the last one in a worker's share of the edges.
    fn find_last_vertex(&self, number: usize, workers: usize) {
        let mut worker = self.store.worker();
        let edges = &self.edges[share(self.edges.len(), number, workers)];
        let last = edges.iter().map(|(from, to)| *from.max(to)).max().unwrap_or(0);
        S::transact(&mut worker, |tx| self.vertex_max.update(tx, |max| *max = last.max(*max)));
    }

    /// Returns the successors of a vertex and the place of the first edge to each.
    fn successors(&self, vertex: usize, place: &mut usize) -> impl Iterator<Item = (u32, usize)> {
        let start = *place;
        *place += self.edges[start..].iter().take_while(|(from, _)| *from as usize == vertex).count();
        (start..*place)
            .filter(move |place| *place == start || self.edges[*place - 1].1 != self.edges[*place].1)
            .map(|place| (self.edges[place].1, place))
    }

    /// Returns the place of the first edge from a vertex or one after it.
    fn first_edge(&self, vertex: usize) -> usize {
        self.edges.partition_point(|(from, _)| (*from as usize) < vertex)
    }

    /// Counts the successors of a worker's share of the vertices.
    fn count_successors(&self, degrees: &[AtomicU32], number: usize, workers: usize) {
        let vertices = share(degrees.len(), number, workers);
        let mut place = self.first_edge(vertices.start);
        let mut sum = 0;
        for vertex in vertices {
            let degree = self.successors(vertex, &mut place).count();
            degrees[vertex].store(degree as u32, Ordering::Relaxed);
            sum += degree as i64;
        }
        S::transact(&mut self.store.worker(), |tx| self.out_edges.add(tx, 0, sum));
    }

    /// Writes down the successors of a worker's share of the vertices.
    fn write_successors(&self, vertices: usize, number: usize, workers: usize) {
        let vertices = share(vertices, number, workers);
        let mut place = self.first_edge(vertices.start);
        for vertex in vertices {
            let start = self.out.starts[vertex];
            for (offset, (to, edge)) in self.successors(vertex, &mut place).enumerate() {
                self.out.numbers[start + offset].store(to, Ordering::Relaxed);
                self.first_edges[start + offset].store(edge as u32, Ordering::Relaxed);
            }
        }
    }

    /// Enters the implied edges that follow from the successors of a worker's share of the vertices.
    fn enter_implied(&self, vertices: usize, number: usize, workers: usize) {
        let mut worker = self.store.worker();
        for from in share(vertices, number, workers) {
            for to in self.out.values(from) {
                if self.out.values(to as usize).any(|back| back as usize == from) {
                    continue;
                }
                S::transact(&mut worker, |tx| {
                    let to_index = to as usize;
                    let entered = self.implied_degrees.update(tx, to_index, |degree| {
                        *degree += 1;
                        *degree as usize - 1
                    })?;
                    if entered < self.clique_size_max {
                        self.implied.set(tx, to_index * self.clique_size_max + entered, from as u32)
                    } else {
                        self.more_implied.insert(tx, to, from as u32, ()).map(drop)
                    }
                });
            }
        }
    }

    /// Writes down the implied edges of a worker's share of the vertices.
    fn write_implied(&self, vertices: usize, number: usize, workers: usize) {
        let mut worker = self.store.worker();
        for vertex in share(vertices, number, workers) {
            let places = self.incoming.of(vertex);
            let inside = places.len().min(self.clique_size_max);
            let start = vertex * self.clique_size_max;
            S::transact(&mut worker, |tx| {
                let mut places = places.iter();
                self.implied.read_range(tx, start..start + inside, |from| {
                    if let Some(place) = places.next() {
                        place.store(*from, Ordering::Relaxed);
                    }
                })
            });
            if inside < places.len() {
                let more = S::transact(&mut worker, |tx| self.more_implied.get(tx, vertex as u32));
                for (place, (from, ())) in places[inside..].iter().zip(more.unwrap_or_default()) {
                    place.store(from, Ordering::Relaxed);
                }
            }
        }
    }
}

impl<S: Store> Application<S> for Ssca2<S> {
    type Options = Ssca2Options;

    fn prepare(store: S, options: &Ssca2Options) -> Self {
        Self {
            clique_size_max: clique_size_max(options.scale) as usize,
            edges: edges::generate(options),
            vertex_max: store.cell(0),
            out_edges: store.counters([0]),
            implied_degrees: store.vector([]),
            implied: store.vector([]),
            more_implied: store.lists(0, []),
            store,
            out: Adjacency::default(),
            first_edges: Vec::new(),
            incoming: Adjacency::default(),
        }
    }

    fn run<R: Runner<Self>>(&mut self, runner: &R) -> Statistics {
        let workers = runner.workers();
        runner.run(self, &|ssca2, number| ssca2.find_last_vertex(number, workers));
        let last = S::transact(&mut self.store.worker(), |tx| self.vertex_max.get(tx));
        let vertices = last as usize + 1;

        let degrees: Vec<AtomicU32> = (0..vertices).map(|_| AtomicU32::new(0)).collect();
        runner.run(self, &|ssca2, number| ssca2.count_successors(&degrees, number, workers));
        self.out = Adjacency::with_degrees(degrees.iter().map(|degree| degree.load(Ordering::Relaxed)));
        self.first_edges = (0..self.out.numbers.len()).map(|_| AtomicU32::new(0)).collect();
        runner.run(self, &|ssca2, number| ssca2.write_successors(vertices, number, workers));

        self.implied_degrees = self.store.vector((0..vertices).map(|_| 0));
        self.implied = self.store.vector((0..vertices * self.clique_size_max).map(|_| 0));
        runner.run(self, &|ssca2, number| ssca2.enter_implied(vertices, number, workers));
        // No transaction runs beside the copy.
        let mut degrees = Vec::new();
        S::transact(&mut self.store.worker(), |tx| self.implied_degrees.peek_all(tx, &mut degrees));
        self.incoming = Adjacency::with_degrees(degrees.into_iter());
        runner.run(self, &|ssca2, number| ssca2.write_implied(vertices, number, workers));

        let out_edges = S::transact(&mut self.store.worker(), |tx| self.out_edges.get(tx, 0));
        Statistics::new([
            ("vertices", vertices as u64),
            ("edges", self.edges.len() as u64),
            ("successors", out_edges as u64),
            ("implied_edges", self.incoming.numbers.len() as u64),
        ])
    }

    /// Checks the arrays against the edges.
    fn verify(&self) -> Result<(), Failure> {
        let mut distinct = self.edges.clone();
        distinct.dedup();
        let vertices = self.edges.iter().map(|(from, to)| *from.max(to) as usize + 1).max().unwrap_or(1);
        let found = self.out.starts.len().saturating_sub(1);
        require(found == vertices, || format!("the arrays have {found} vertices and the graph {vertices}"))?;
        let counted = S::transact(&mut self.store.worker(), |tx| self.out_edges.get(tx, 0));
        require(counted == distinct.len() as i64, || {
            format!("{counted} successors were counted; there are {}", distinct.len())
        })?;
        let mut starts = vec![0; vertices + 1];
        for (from, _) in &distinct {
            starts[*from as usize + 1] += 1;
        }
        for vertex in 0..vertices {
            starts[vertex + 1] += starts[vertex];
        }
        let edges_from = |vertex: usize| &distinct[starts[vertex]..starts[vertex + 1]];
        let mut expected_incoming = vec![Vec::new(); vertices];
        for (from, to) in &distinct {
            if edges_from(*to as usize).binary_search(&(*to, *from)).is_err() {
                expected_incoming[*to as usize].push(*from);
            }
        }
        for (vertex, expected_incoming) in expected_incoming.iter().enumerate() {
            let successors: Vec<u32> = self.out.values(vertex).collect();
            let expected = edges_from(vertex).iter().map(|(_, to)| to);
            require(successors.iter().eq(expected), || {
                format!("the successors of vertex {vertex} are wrong")
            })?;
            let mut incoming: Vec<u32> = self.incoming.values(vertex).collect();
            incoming.sort_unstable();
            require(incoming == *expected_incoming, || {
                format!("the implied edges of vertex {vertex} are wrong")
            })?;
            let first_edges = &self.first_edges[self.out.starts[vertex]..self.out.starts[vertex + 1]];
            for (to, first) in successors.iter().zip(first_edges) {
                let first = first.load(Ordering::Relaxed) as usize;
                let edge = (vertex as u32, *to);
                let is_first =
                    self.edges.get(first) == Some(&edge) && (first == 0 || self.edges[first - 1] != edge);
                require(is_first, || format!("edge {first} is not the first from {vertex} to {to}"))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::execute;
    use crate::plain::{GlobalLock, Sequential};
    use crate::runner::{OneThread, on_threads};

    fn small() -> Ssca2Options {
        Ssca2Options { scale: 7, one_way_share: 0.7, ..Ssca2Options::default() }
    }

    fn after_a_run() -> Ssca2<Sequential> {
        let mut ssca2 = Ssca2::prepare(Sequential::default(), &small());
        ssca2.run(&OneThread);
        ssca2.verify().unwrap();
        ssca2
    }

    #[test]
    fn runs_on_one_thread_and_on_several() {
        let outcome = execute::<Ssca2<_>, _, _>(Sequential::default(), &small(), &OneThread);
        assert_eq!(outcome.verification, Ok(()));
        assert!(outcome.statistics.counts().iter().all(|(_, count)| *count > 0), "{outcome:?}");
        let outcome = execute::<Ssca2<_>, _, _>(GlobalLock::default(), &small(), &on_threads(3));
        assert_eq!(outcome.verification, Ok(()));
    }

    #[test]
    fn more_implied_edges_than_a_clique_has_vertices_go_into_a_list() {
        let mut ssca2 = Ssca2::prepare(Sequential::default(), &small());
        ssca2.clique_size_max = 1;
        ssca2.run(&OneThread);
        assert_eq!(ssca2.verify(), Ok(()));
    }

    #[test]
    fn the_smallest_graph_works() {
        for inter_clique_share in [0.0, 1.0] {
            let options = Ssca2Options { scale: 1, inter_clique_share, ..small() };
            let outcome = execute::<Ssca2<_>, _, _>(GlobalLock::default(), &options, &on_threads(3));
            assert_eq!(outcome.verification, Ok(()));
        }
    }

    #[test]
    fn a_wrong_successor_is_found() {
        let ssca2 = after_a_run();
        ssca2.out.numbers[5].fetch_add(1, Ordering::Relaxed);
        assert!(ssca2.verify().unwrap_err().to_string().starts_with("the successors of vertex "));
    }

    #[test]
    fn a_wrong_first_edge_is_found() {
        let ssca2 = after_a_run();
        ssca2.first_edges[5].fetch_add(1, Ordering::Relaxed);
        assert!(ssca2.verify().unwrap_err().to_string().contains("is not the first"));
    }

    #[test]
    fn a_wrong_implied_edge_is_found() {
        let ssca2 = after_a_run();
        ssca2.incoming.numbers[5].fetch_add(1, Ordering::Relaxed);
        assert!(ssca2.verify().unwrap_err().to_string().starts_with("the implied edges of vertex "));
    }

    #[test]
    fn a_lost_implied_edge_is_found() {
        let mut ssca2 = after_a_run();
        let Ok(()) = ssca2.implied_degrees.update(&mut (), 5, |degree| *degree += 1);
        let mut degrees = Vec::new();
        let Ok(()) = ssca2.implied_degrees.peek_all(&mut (), &mut degrees);
        ssca2.incoming = Adjacency::with_degrees(degrees.into_iter());
        ssca2.write_implied(128, 0, 1);
        assert!(ssca2.verify().is_err());
    }
}
