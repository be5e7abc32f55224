use super::{Chopping, ChoppingError, ChoppingGraph};
use crate::trace::{OperationId, ProcedureTrace, TracedOperation};
use hotrow_tables::operations::OperationKind;

/// An operation on a table without column groups, with the operations from which its key and its input come.
pub(super) fn operation(table: &str, kind: OperationKind, keys: &[u32], inputs: &[u32]) -> TracedOperation {
    let ids = |ids: &[u32]| ids.iter().map(|id| OperationId(*id)).collect::<Vec<_>>();
    TracedOperation {
        table: table.to_owned(),
        index: None,
        part: table.bytes().map(u32::from).sum(),
        key: "1".to_owned(),
        kind,
        groups: 1,
        group_names: vec!["main"],
        immutable: table == "immutable",
        group: None,
        data: ids(&[keys, inputs].concat()),
        key_data: ids(keys),
        control: Vec::new(),
    }
}

pub(super) fn free(table: &str, kind: OperationKind) -> TracedOperation {
    operation(table, kind, &[], &[])
}

pub(super) fn trace(operations: Vec<TracedOperation>) -> [ProcedureTrace; 1] {
    [ProcedureTrace { operations, ..ProcedureTrace::default() }]
}

/// The pieces of each procedure in words: operations joined by plus signs, a star before the conflicting piece.
fn pieces(graph: &ChoppingGraph) -> Vec<Vec<String>> {
    let of = |procedure: &super::ChoppedProcedure| {
        let piece = |piece: &super::Piece| {
            let words: Vec<_> =
                piece.classes.iter().map(|class| procedure.classes[*class].to_string()).collect();
            format!("{}{}", if piece.conflicting { "*" } else { "" }, words.join(" + "))
        };
        procedure.pieces.iter().map(piece).collect()
    };
    graph.procedures.iter().map(of).collect()
}

use OperationKind::{Commutative, Delete, Insert, Read, Scan, Write};

#[test]
fn transactions_that_share_two_tables_are_not_chopped() {
    // dbx-tc, Figure 2: two transactions that conflict on A and on B, and one that conflicts with both on B.
    let graph = Chopping::new()
        .procedure("one", trace(vec![free("A", Write), free("B", Write)]))
        .procedure("two", trace(vec![free("A", Write), free("B", Write)]))
        .procedure("three", trace(vec![free("B", Read), free("C", Read)]))
        .analyse()
        .unwrap();
    let expected = [vec!["*update A + update B"], vec!["*update A + update B"], vec!["*read B", "read C"]];
    assert_eq!(pieces(&graph), expected);
}

#[test]
fn commutative_changes_and_immutable_tables_join_no_pieces() {
    let operations =
        vec![free("A", Commutative), free("B", Write), free("immutable", Read), free("C", Insert)];
    let graph = Chopping::new().procedure("sale", trace(operations)).analyse().unwrap();
    let expected = ["*update B", "add to A", "read immutable", "insert C"];
    assert_eq!(pieces(&graph), [expected]);
}

#[test]
fn a_cycle_over_a_third_procedure_is_found() {
    // `across` conflicts with the two halves of `pair` at its two ends, over `middle`, and so joins them.
    let chopping = |third: bool| {
        let mut chopping = Chopping::new()
            .procedure("pair", trace(vec![free("A", Read), free("B", Read)]))
            .procedure("left", trace(vec![free("A", Commutative), free("C", Commutative)]))
            .procedure("right", trace(vec![free("B", Commutative), free("D", Commutative)]));
        if third {
            chopping = chopping.procedure("middle", trace(vec![free("C", Read), free("D", Read)]));
        }
        pieces(&chopping.analyse().unwrap())
    };
    let halves = chopping(false);
    assert_eq!(halves[0].len(), 1, "two instances of `pair` meet over `left` and over `right`: {halves:?}");
    let without_pair = Chopping::new()
        .procedure("one", trace(vec![free("A", Read), free("B", Read)]))
        .procedure("left", trace(vec![free("A", Commutative)]))
        .analyse()
        .unwrap();
    assert_eq!(pieces(&without_pair)[0], ["*read A", "read B"]);
    assert_eq!(chopping(true)[1], ["*add to A + add to C"], "A and C are joined over the others");
}

#[test]
fn whatever_lies_between_two_parts_of_a_piece_belongs_to_it() {
    // B depends on A, and C on B: A and C conflict, so B cannot be executed apart.
    let operations =
        vec![free("A", Write), operation("B", Read, &[0], &[]), operation("C", Write, &[1], &[])];
    let graph = Chopping::new().procedure("chain", trace(operations)).analyse().unwrap();
    assert_eq!(pieces(&graph), [["*update A + read B + update C"]]);
}

#[test]
fn decisions_come_first() {
    let mut decided = free("B", Insert);
    decided.control = vec![OperationId(0)];
    let mut traces = trace(vec![free("log", Read), free("A", Write), decided]);
    traces[0].decisions = vec![OperationId(0)];
    let graph = Chopping::new().procedure("decide", traces).analyse().unwrap();
    let firsts: Vec<bool> = graph.procedures[0].pieces.iter().map(|piece| piece.first).collect();
    assert_eq!(pieces(&graph), [["read log", "*update A", "insert B"]]);
    assert_eq!(firsts, [true, true, false]);
}

#[test]
fn insertions_conflict_if_their_results_are_used() {
    let graph = |output: Vec<OperationId>| {
        let mut traces = trace(vec![free("A", Insert)]);
        traces[0].output = output;
        pieces(&Chopping::new().procedure("insert", traces).analyse().unwrap())
    };
    assert_eq!(graph(Vec::new()), [["insert A"]]);
    assert_eq!(graph(vec![OperationId(0)]), [["*insert A"]]);
}

fn producer_and_consumer() -> Chopping {
    let produce = vec![
        free("number", Write),
        operation("parent", Insert, &[0], &[]),
        operation("child", Insert, &[0], &[]),
    ];
    let consume = vec![
        free("parent", Scan),
        operation("parent", Delete, &[0], &[]),
        operation("child", Write, &[1], &[]),
    ];
    Chopping::new().procedure("produce", trace(produce)).procedure("consume", trace(consume))
}

#[test]
fn rows_that_belong_to_a_row_taken_out_conflict_with_nobody() {
    let graph = producer_and_consumer().belongs("child", "parent").analyse().unwrap();
    let expected = [
        vec!["*update number + insert parent + insert child"],
        vec!["*scan parent + delete parent", "update child"],
    ];
    assert_eq!(pieces(&graph), expected);
    let without = producer_and_consumer().analyse().unwrap();
    assert_eq!(pieces(&without)[1], ["*scan parent + delete parent + update child"]);
}

#[test]
fn a_row_belongs_only_to_who_has_taken_its_parent_out() {
    let other = || trace(vec![free("child", Write), free("other", Write)]);
    let graph =
        producer_and_consumer().belongs("child", "parent").procedure("other", other()).analyse().unwrap();
    assert_eq!(pieces(&graph)[1], ["*scan parent + delete parent + update child"]);
}

#[test]
fn published_changes_must_be_all_that_connects_their_procedures() {
    let publisher = || trace(vec![free("queue", Write), operation("account", Commutative, &[], &[0])]);
    let subscriber = |more: Vec<TracedOperation>| {
        let mut operations = vec![free("account", Write)];
        operations.extend(more);
        trace(operations)
    };
    let chopping = |more| {
        Chopping::new()
            .procedure("deliver", publisher())
            .procedure("pay", subscriber(more))
            .publish("deliver", "account")
            .analyse()
    };
    assert_eq!(pieces(&chopping(Vec::new()).unwrap())[0], ["*update queue", "add to account"]);
    let (publisher, table, subscriber) = ("deliver".to_owned(), "account".to_owned(), "pay".to_owned());
    let connected = ChoppingError::Connected { publisher, table, subscriber };
    assert_eq!(chopping(vec![free("queue", Read)]), Err(connected));
}

#[test]
fn wrong_declarations_are_refused() {
    let one = || Chopping::new().procedure("one", trace(vec![free("A", Write)]));
    assert_eq!(one().procedure("none", []).analyse(), Err(ChoppingError::NoTrace("none".into())));
    let same = one().procedure("one", trace(vec![free("A", Read)]));
    assert_eq!(same.analyse(), Err(ChoppingError::SameName("one".into())));
    let (procedure, table) = ("one".to_owned(), "A".to_owned());
    assert_eq!(
        one().publish("one", "A").analyse(),
        Err(ChoppingError::NothingToPublish { procedure, table })
    );
}
