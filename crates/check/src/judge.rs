//! From the graph to verdicts and cycles.
//!
//! One pass over the whole graph finds whether it has any cycle. Only if it has are its parts looked at: the
//! dependencies of effective attempts (serializable), the same with real time (strictly serializable), and all
//! attempts (opaque). In each component of the first the most specific cycle is looked for: of write-write
//! edges alone, then of those and write-read edges, then with exactly one read-write edge, then any.

use crate::components::components;
use crate::cycle::{ALL, DEPENDENCIES, FLOW, Path, Search, WRITES};
use crate::graph::{Graph, Kind, Part};
use crate::report::Level;

/// Cycles of one component that are reported.
const CYCLES_MAX: usize = 10;

/// Nodes of one component from which a short cycle is looked for when any will do.
const TRIES: usize = 8;

/// A cycle of attempts: each with the kind of edge that leads to the next.
#[derive(Debug)]
pub(crate) struct Cycle {
    pub(crate) violates: Level,
    pub(crate) path: Path,
}

/// What the graph says.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    pub(crate) cycles: Vec<Cycle>,
    /// Of each level: whether there is a cycle.
    pub(crate) broken: [bool; 3],
}

/// Judges a graph whose first nodes are attempts. `effective` says which of them took effect, `times` when each
/// began and ended.
pub(crate) fn judge(graph: &Graph, effective: &[bool], times: (&[u64], &[u64])) -> Judgement {
    let all = Part { graph, kinds: ALL, nodes: None };
    let mut judgement = Judgement::default();
    let knots = components(all);
    if knots.is_empty() {
        return judgement;
    }
    let mut judge = Judge {
        attempts: effective.len() as u32,
        begin: times.0,
        end: times.1,
        search: Search::new(all),
        numbers: vec![0; graph.nodes()],
        cycles: Vec::new(),
    };
    let serial = Part { graph, kinds: DEPENDENCIES, nodes: Some(effective) };
    let strict = Part { graph, kinds: ALL, nodes: Some(effective) };
    let mut taken = vec![false; graph.nodes()];
    let found = components(serial);
    judgement.broken[0] = !found.is_empty();
    judge.serial(serial, &found);
    found.iter().flatten().for_each(|node| taken[*node as usize] = true);

    let found = components(strict);
    judgement.broken[1] = !found.is_empty();
    judge.number(&found);
    for component in &found {
        if !component.iter().any(|node| taken[*node as usize]) {
            judge.strict(strict, component);
        }
    }
    found.iter().flatten().for_each(|node| taken[*node as usize] = true);

    judgement.broken[2] = true;
    judge.number(&knots);
    for component in &knots {
        if !component.iter().any(|node| taken[*node as usize]) {
            judge.opaque(all, component, effective);
        }
    }
    judgement.cycles = judge.cycles;
    judgement
}

struct Judge<'a> {
    attempts: u32,
    begin: &'a [u64],
    end: &'a [u64],
    search: Search,
    /// Of each node: the number of its component, from 1.
    numbers: Vec<u32>,
    cycles: Vec<Cycle>,
}

impl Judge<'_> {
    fn number(&mut self, components: &[Vec<u32>]) {
        self.numbers.fill(0);
        for (number, component) in components.iter().enumerate() {
            component.iter().for_each(|node| self.numbers[*node as usize] = number as u32 + 1);
        }
    }

    /// Keeps a cycle, without its auxiliary nodes.
    fn report(&mut self, violates: Level, mut path: Path) {
        path.retain(|(node, _)| *node < self.attempts);
        self.cycles.push(Cycle { violates, path });
    }

    fn attempts_of<'b>(&self, component: &'b [u32]) -> impl Iterator<Item = u32> + use<'b> {
        let attempts = self.attempts;
        component.iter().copied().filter(move |node| *node < attempts)
    }

    /// The shortest of a few cycles through nodes of a component.
    fn any(&mut self, part: Part<'_>, component: &[u32]) -> Option<Path> {
        let mut best: Option<Path> = None;
        let length = |path: &Path| path.iter().filter(|(_, kind)| *kind != Kind::Wire).count();
        for (tries, node) in self.attempts_of(component).take(TRIES).enumerate() {
            let found = match tries {
                // Each component has one search that is not bounded: together they are linear.
                0 => self.search.cycle(part, &self.numbers, node),
                _ => self.search.path_within_budget(part, &self.numbers, node, node),
            };
            if let Some(found) = found
                && best.as_ref().is_none_or(|best| length(&found) < length(best))
            {
                best = Some(found);
            }
        }
        best
    }

    fn serial(&mut self, part: Part<'_>, found: &[Vec<u32>]) {
        if found.is_empty() {
            return;
        }
        // Of each node: whether its component of the whole part has been explained.
        let mut explained = vec![false; part.graph.nodes()];
        for kinds in [WRITES, FLOW] {
            let part = Part { kinds, ..part };
            let inner = components(part);
            self.number(&inner);
            for component in inner.iter().filter(|component| !explained[component[0] as usize]) {
                if let Some(path) = self.any(part, component) {
                    self.report(Level::Serializable, path);
                }
            }
            // All components within one of the whole part count, so it is marked only afterwards.
            inner.iter().flatten().for_each(|node| explained[*node as usize] = true);
            for component in found {
                if component.iter().any(|node| explained[*node as usize]) {
                    component.iter().for_each(|node| explained[*node as usize] = true);
                }
            }
        }
        self.number(found);
        for component in found.iter().filter(|component| !explained[component[0] as usize]) {
            if !self.singles(part, component)
                && let Some(path) = self.any(part, component)
            {
                self.report(Level::Serializable, path);
            }
        }
    }

    /// Looks for cycles with one read-write edge; the rest is information flow.
    fn singles(&mut self, part: Part<'_>, component: &[u32]) -> bool {
        let flow = Part { kinds: FLOW, ..part };
        let mut used = std::collections::HashSet::new();
        let before = self.cycles.len();
        for wanted in [Kind::ReadWrite, Kind::RangeWrite] {
            for reader in self.attempts_of(component) {
                for (writer, kind) in part.graph.from(reader) {
                    let within = part.has_node(writer)
                        && self.numbers[writer as usize] == self.numbers[reader as usize];
                    let old = used.contains(&reader) && (used.contains(&writer) || writer >= self.attempts);
                    if kind != wanted || !within || old {
                        continue;
                    }
                    let path = self.search.path_within_budget(flow, &self.numbers, writer, reader);
                    if let Some(mut path) = path {
                        path.insert(0, (reader, kind));
                        used.extend(path.iter().map(|(node, _)| *node));
                        self.report(Level::Serializable, path);
                    }
                    if self.search.is_spent() || self.cycles.len() - before >= CYCLES_MAX {
                        return self.cycles.len() > before;
                    }
                }
            }
        }
        self.cycles.len() > before
    }

    /// A component that only real time makes one. An edge to an attempt that had ended before says it best.
    fn strict(&mut self, part: Part<'_>, component: &[u32]) {
        let before = self.cycles.len();
        let mut used = std::collections::HashSet::new();
        for later in self.attempts_of(component) {
            for edge in part.graph.from(later) {
                let (earlier, kind) = edge;
                let dependency = !matches!(kind, Kind::Time | Kind::Wire) && earlier < self.attempts;
                if !dependency || !part.has(edge) || used.contains(&later) || used.contains(&earlier) {
                    continue;
                }
                if self.end[earlier as usize] < self.begin[later as usize] {
                    used.extend([later, earlier]);
                    self.report(Level::Strict, vec![(later, kind), (earlier, Kind::Time)]);
                }
            }
            if self.cycles.len() - before >= CYCLES_MAX {
                return;
            }
        }
        if self.cycles.len() == before
            && let Some(path) = self.any(part, component)
        {
            self.report(Level::Strict, path);
        }
    }

    /// A component that only attempts without effect make one.
    fn opaque(&mut self, part: Part<'_>, component: &[u32], effective: &[bool]) {
        let readers = self.attempts_of(component).filter(|node| !effective[*node as usize]);
        let mut found = 0;
        for reader in readers {
            let path = match found {
                0 => self.search.cycle(part, &self.numbers, reader),
                _ => self.search.path_within_budget(part, &self.numbers, reader, reader),
            };
            if let Some(path) = path {
                self.report(Level::Opaque, path);
                found += 1;
            }
            if found == CYCLES_MAX || self.search.is_spent() {
                return;
            }
        }
    }
}
