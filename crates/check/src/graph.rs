//! Graph of a history: attempts, auxiliary nodes, and edges with their kinds, in two arrays.
//!
//! An edge is one `u32`: the target node, with the kind in the upper bits. Edges are first gathered in a list. A
//! counting sort then moves them into one array with the start of each node's edges (compressed sparse rows). No
//! other form is small enough for the hundred million edges of a long run.

use crate::Malformed;

/// Number of bits of a node's number.
const NODE_BITS: u32 = 29;

/// Largest number of nodes.
pub(crate) const NODES_MAX: usize = 1 << NODE_BITS;

/// Reason why one attempt comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The first wrote the version that the second replaced.
    WriteWrite,
    /// The first wrote the version that the second read.
    WriteRead,
    /// The first read the version that the second replaced.
    ReadWrite,
    /// The first deleted a key that the second's range read missed.
    WriteRange,
    /// The first's range read missed a key that the second inserted.
    RangeWrite,
    /// The first ended before the second began.
    Time,
    /// Edge out of an auxiliary node; the edge into the first auxiliary node has the kind.
    Wire,
}

/// All kinds, by number.
const KINDS: [Kind; 7] = [
    Kind::WriteWrite,
    Kind::WriteRead,
    Kind::ReadWrite,
    Kind::WriteRange,
    Kind::RangeWrite,
    Kind::Time,
    Kind::Wire,
];

/// A set of kinds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KindSet(u8);

impl KindSet {
    pub(crate) const fn of(kinds: &[Kind]) -> Self {
        let mut set = 0;
        let mut at = 0;
        while at < kinds.len() {
            set |= 1 << kinds[at] as u8;
            at += 1;
        }
        KindSet(set)
    }

    pub(crate) const fn and(self, kind: Kind) -> Self {
        KindSet(self.0 | 1 << kind as u8)
    }

    pub(crate) const fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

/// Edges gathered for a graph.
#[derive(Debug, Default)]
pub(crate) struct Edges {
    list: Vec<(u32, u32)>,
    nodes: usize,
    counts: [u64; KINDS.len()],
}

impl Edges {
    /// Makes an empty list of edges between `nodes` nodes.
    pub(crate) fn between(nodes: usize) -> Self {
        Edges { nodes, ..Edges::default() }
    }

    /// Adds an auxiliary node. [`into_graph`](Self::into_graph) reports if there are too many.
    pub(crate) fn node(&mut self) -> u32 {
        self.nodes += 1;
        (self.nodes - 1).min(NODES_MAX - 1) as u32
    }

    /// Adds an edge, unless it leads from a node to itself.
    pub(crate) fn add(&mut self, from: u32, to: u32, kind: Kind) {
        if from != to {
            self.counts[kind as usize] += 1;
            self.list.push((from, to | (kind as u32) << NODE_BITS));
        }
    }

    pub(crate) fn count(&self, kind: Kind) -> u64 {
        self.counts[kind as usize]
    }

    pub(crate) fn into_graph(self) -> Result<Graph, Malformed> {
        if self.nodes > NODES_MAX {
            return Err(Malformed::TooLarge { what: "nodes of its graph", most: NODES_MAX });
        }
        let mut ends = vec![0usize; self.nodes + 1];
        for (from, _) in &self.list {
            ends[*from as usize + 1] += 1;
        }
        for node in 0..self.nodes {
            ends[node + 1] += ends[node];
        }
        let mut targets = vec![0u32; self.list.len()];
        // `ends[node]` is the place of the next edge of `node`, and in the end that of its last edge plus one.
        for (from, to) in &self.list {
            let at = &mut ends[*from as usize];
            targets[*at] = *to;
            *at += 1;
        }
        Ok(Graph { ends, targets })
    }
}

/// A graph.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Per node: the end of its edges. They begin at the end of the edges of the node before.
    ends: Vec<usize>,
    targets: Vec<u32>,
}

impl Graph {
    pub(crate) fn nodes(&self) -> usize {
        self.ends.len() - 1
    }

    pub(crate) fn edges(&self) -> usize {
        self.targets.len()
    }

    /// Returns the begin and the end of a node's edges.
    pub(crate) fn places(&self, node: u32) -> (usize, usize) {
        let begin = (node as usize).checked_sub(1).map_or(0, |before| self.ends[before]);
        (begin, self.ends[node as usize])
    }

    /// Returns the edge at a place.
    pub(crate) fn edge(&self, place: usize) -> (u32, Kind) {
        let target = self.targets[place];
        (target & (NODES_MAX as u32 - 1), KINDS[(target >> NODE_BITS) as usize])
    }

    /// Iterates over the edges that leave a node.
    pub(crate) fn from(&self, node: u32) -> impl Iterator<Item = (u32, Kind)> + '_ {
        let (begin, end) = self.places(node);
        (begin..end).map(|place| self.edge(place))
    }
}

/// A part of a graph: edges of some kinds, between all attempts or only the effective ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) kinds: KindSet,
    /// Per attempt: true if it belongs to the part. Nodes beyond are auxiliary and belong to every part.
    pub(crate) nodes: Option<&'a [bool]>,
}

impl Part<'_> {
    pub(crate) fn has_node(&self, node: u32) -> bool {
        self.nodes.is_none_or(|nodes| nodes.get(node as usize).is_none_or(|has| *has))
    }

    pub(crate) fn has(&self, (to, kind): (u32, Kind)) -> bool {
        self.kinds.has(kind) && self.has_node(to)
    }
}
