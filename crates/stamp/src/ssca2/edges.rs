//! The input: the edges of a graph of cliques, as the benchmark SSCA2 describes it.

use super::Ssca2Options;
use hotrow_sync::random::Random;

/// A directed edge: its first and its second vertex.
pub(crate) type Edge = (u32, u32);

/// The largest size of a clique.
pub(crate) fn clique_size_max(scale: u32) -> u32 {
    (f64::from(scale) / 3.0).exp2().ceil() as u32
}

/// Draws the edges and sorts them. The numbers of the vertices are mixed, so that they say nothing about cliques.
pub(crate) fn generate(options: &Ssca2Options) -> Vec<Edge> {
    let mut random = Random::seeded(options.seed);
    let vertices = 1_u32 << options.scale;
    let mut numbers: Vec<u32> = (0..vertices).collect();
    random.shuffle(&mut numbers);
    let mut edges = Edges { edges: Vec::new(), numbers, random, options };

    let mut clique_of = vec![0; vertices as usize];
    let mut first = 0;
    while first < vertices {
        let size = edges.random.between(1, clique_size_max(options.scale).into()) as u32;
        let end = (first + size).min(vertices);
        clique_of[first as usize..end as usize].fill(first);
        for from in first..end {
            for to in from + 1..end {
                edges.add(from, to);
            }
        }
        first = end;
    }
    edges.connect_cliques(&clique_of);

    let mut edges = edges.edges;
    if edges.is_empty() {
        edges.push((0, vertices - 1));
    }
    edges.sort_unstable();
    edges
}

struct Edges<'o> {
    edges: Vec<Edge>,
    /// The final number of each vertex.
    numbers: Vec<u32>,
    random: Random,
    options: &'o Ssca2Options,
}

impl Edges<'_> {
    /// Adds parallel edges between two vertices, in one direction or in both.
    fn add(&mut self, from: u32, to: u32) {
        let mut ends = (self.numbers[from as usize], self.numbers[to as usize]);
        if self.random.chance(0.5) {
            ends = (ends.1, ends.0);
        }
        self.add_parallel(ends);
        if !self.random.chance(self.options.one_way_share) {
            self.add_parallel((ends.1, ends.0));
        }
    }

    fn add_parallel(&mut self, edge: Edge) {
        for _ in 0..self.random.between(1, self.options.parallel_edges_max.into()) {
            self.edges.push(edge);
        }
    }

    /// Connects vertices of different cliques: those at distances 1, 2, 4 and so on, less and less probably.
    fn connect_cliques(&mut self, clique_of: &[u32]) {
        let vertices = clique_of.len() as u32;
        for from in 0..vertices {
            let mut share = self.options.inter_clique_share;
            let mut distance = 1;
            while distance < vertices {
                let to = (from + distance) % vertices;
                if clique_of[from as usize] != clique_of[to as usize] && self.random.chance(share) {
                    self.add(from, to);
                }
                share /= 2.0;
                distance *= 2;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_connect_different_vertices_of_the_graph() {
        let options = Ssca2Options { scale: 6, ..Ssca2Options::default() };
        let edges = generate(&options);
        assert!(edges.len() > 64 && edges.is_sorted());
        assert!(edges.iter().all(|(from, to)| from != to && *from < 64 && *to < 64));
    }
}
