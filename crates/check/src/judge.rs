//! Judgement: finds the verdicts and the cycles to report in a graph.
//!
//! One pass over the whole graph decides if it has any cycle. Only then are its parts examined: the dependencies of
//! effective attempts (serializable), these with real time (strictly serializable), and all attempts (opaque). In
//! each component of the first part the most specific cycle is reported: one of write-write edges alone, then one
//! of write-write and write-read edges, then one with exactly one read-write edge, then any.

use crate::components::components;
use crate::cycle::{ALL, DEPENDENCIES, FLOW, Path, Search, WRITES};
use crate::graph::{Graph, Kind, Part};
use crate::report::Level;

/// Largest number of reported cycles per component.
const CYCLES_MAX: usize = 10;

/// Number of nodes of a component at which a search for any short cycle begins.
const TRIES: usize = 8;

/// A cycle of attempts: each with the kind of the edge that leads to the next.
#[derive(Debug)]
pub(crate) struct Cycle {
    pub(crate) violates: Level,
    pub(crate) path: Path,
}

/// Verdicts and cycles of a graph.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    pub(crate) cycles: Vec<Cycle>,
    /// Per level: true if there is a cycle.
    pub(crate) broken: [bool; 3],
}

/// Judges a graph whose first nodes are attempts. `effective` is true for attempts that took effect; `times` holds
/// their begins and ends.
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
    /// Per node: the number of its component, from 1.
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

    /// Records a cycle, without its auxiliary nodes.
    fn report(&mut self, violates: Level, mut path: Path) {
        path.retain(|(node, _)| *node < self.attempts);
        self.cycles.push(Cycle { violates, path });
    }

    fn attempts_of<'b>(&self, component: &'b [u32]) -> impl Iterator<Item = u32> + use<'b> {
        let attempts = self.attempts;
        component.iter().copied().filter(move |node| *node < attempts)
    }

    /// Returns the shortest of a few cycles through nodes of a component.
    fn any(&mut self, part: Part<'_>, component: &[u32]) -> Option<Path> {
        let mut best: Option<Path> = None;
        let length = |path: &Path| path.iter().filter(|(_, kind)| *kind != Kind::Wire).count();
        for (tries, node) in self.attempts_of(component).take(TRIES).enumerate() {
            let found = match tries {
                // One search per component is without a budget; together these are linear.
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
        // Per node: true if its component of the whole part has been explained.
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
            // All inner components of one component count, so they are marked only after the loop.
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

    /// Searches for cycles with one read-write edge; all other edges are information flow.
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

    /// Explains a component that needs real time. The clearest cycle has a dependency on an attempt that had ended
    /// before.
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

    /// Explains a component that needs attempts without effect.
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
