use super::super::Chopping;
use super::super::tests::{free, operation, trace};
use super::{RankedGraph, RankedPiece, RankedProcedure};
use crate::trace::OperationId;
use hotrow_tables::operations::OperationKind::{Commutative, Delete, Insert, Read, Scan, Write};

/// The pieces of each procedure in words: the ranks, if it may conflict, then its operations.
fn pieces(graph: &RankedGraph) -> Vec<Vec<String>> {
    let of = |procedure: &RankedProcedure| {
        let piece = |piece: &RankedPiece| {
            let words: Vec<_> =
                piece.classes.iter().map(|class| procedure.classes[*class].to_string()).collect();
            let ranks = match piece.ranks {
                None => String::new(),
                Some(ranks) if ranks.first == ranks.last => format!("{}: ", ranks.first),
                Some(ranks) => format!("{}-{}: ", ranks.first, ranks.last),
            };
            format!("{ranks}{}", words.join(" + "))
        };
        procedure.pieces.iter().map(piece).collect()
    };
    graph.procedures.iter().map(of).collect()
}

#[test]
fn transactions_that_share_two_tables_have_a_piece_for_each() {
    let graph = Chopping::new()
        .procedure("one", trace(vec![free("A", Write), free("B", Write)]))
        .procedure("two", trace(vec![free("B", Write), free("A", Write)]))
        .rank()
        .unwrap();
    let expected = ["0: update A", "1: update B"];
    assert_eq!(pieces(&graph), [expected, expected], "independent operations are reordered");
}

#[test]
fn tables_from_which_data_flow_both_ways_are_one_node() {
    let one = vec![free("A", Read), operation("B", Write, &[], &[0])];
    let two = vec![free("B", Read), operation("A", Write, &[], &[0]), free("C", Write)];
    let graph = Chopping::new().procedure("one", trace(one)).procedure("two", trace(two)).rank().unwrap();
    assert_eq!(pieces(&graph), [vec!["0: read A + update B"], vec!["0: read B + update A", "1: update C"]]);
}

#[test]
fn a_circle_over_operations_without_conflict_is_one_too() {
    let one = vec![free("A", Write), operation("X", Read, &[0], &[]), operation("B", Write, &[], &[1])];
    let two = vec![free("B", Write), operation("Y", Read, &[0], &[]), operation("A", Write, &[], &[1])];
    let graph = Chopping::new().procedure("one", trace(one)).procedure("two", trace(two)).rank().unwrap();
    assert_eq!(pieces(&graph), [["0: update A + read X + update B"], ["0: update B + read Y + update A"]]);
}

#[test]
fn data_flow_gives_the_order_of_ranks() {
    let one = vec![free("C", Write), operation("A", Write, &[0], &[])];
    let two = vec![free("A", Write), free("B", Write), operation("C", Write, &[1], &[])];
    let graph = Chopping::new().procedure("two", trace(two)).procedure("one", trace(one)).rank().unwrap();
    let expected = [vec!["0: update B", "1: update C", "2: update A"], vec!["1: update C", "2: update A"]];
    assert_eq!(pieces(&graph), expected);
}

#[test]
fn nothing_is_exposed_before_the_last_decision() {
    let mut decided = free("D", Write);
    decided.control = vec![OperationId(1)];
    let operations = vec![free("A", Write), free("B", Write), free("log", Read), decided, free("E", Write)];
    let mut traces = trace(operations);
    traces[0].decisions = vec![OperationId(1)];
    let graph = Chopping::new().procedure("decide", traces).rank().unwrap();
    assert_eq!(pieces(&graph), [["0-1: update A + update B + read log", "2: update D", "3: update E"]]);
    assert_eq!(graph.procedures[0].kept, [false, true, false, false, false]);
}

#[test]
fn decisions_upon_what_never_changes_come_first_and_alone() {
    let mut traces = trace(vec![free("A", Write), free("immutable", Read), free("B", Write)]);
    traces[0].decisions = vec![OperationId(1)];
    let graph = Chopping::new().procedure("decide", traces).rank().unwrap();
    assert_eq!(pieces(&graph), [["read immutable", "0: update A", "1: update B"]]);
}

#[test]
fn operations_without_conflict_come_as_late_as_they_may() {
    let operations = vec![
        free("log", Insert),
        free("A", Write),
        operation("note", Insert, &[], &[1]),
        operation("lookup", Read, &[1], &[]),
        operation("B", Write, &[], &[3]),
        free("sums", Commutative),
    ];
    let graph = Chopping::new().procedure("late", trace(operations)).rank().unwrap();
    let expected = ["0: update A", "1: read lookup + update B", "insert log + insert note + add to sums"];
    assert_eq!(pieces(&graph), [expected]);
    assert_eq!(graph.procedures[0].kept, [false, true, false, false, false, false]);
}

#[test]
fn rows_that_belong_to_others_come_in_with_them() {
    let order =
        vec![free("counter", Write), free("order", Insert), free("stock", Write), free("queue", Insert)];
    let deliver = vec![
        free("queue", Scan),
        operation("queue", Delete, &[0], &[]),
        operation("order", Write, &[1], &[]),
    ];
    let chopping = Chopping::new()
        .procedure("order", trace(order))
        .procedure("deliver", trace(deliver))
        .belongs("order", "queue");
    let graph = chopping.rank().unwrap();
    let of_order = ["0: update counter", "1: update stock", "2: insert order + insert queue"];
    assert_eq!(pieces(&graph)[0].len(), 3);
    let mut found = pieces(&graph)[0].clone();
    found.sort_by_key(|piece| piece.contains("queue"));
    assert!(found[2].ends_with(": insert order + insert queue"), "{found:?} and not {of_order:?}");
    assert!(pieces(&graph)[1][0].ends_with(": scan queue + delete queue"));
    assert_eq!(pieces(&graph)[1][1], "update order", "nobody else has it any more");
}

#[test]
fn readers_on_snapshots_take_no_part() {
    let chopping = Chopping::new()
        .procedure("read", trace(vec![free("A", Read), operation("B", Read, &[0], &[])]))
        .procedure("write", trace(vec![free("B", Commutative), free("A", Commutative)]));
    let ordered = pieces(&chopping.rank().unwrap());
    assert_eq!(ordered[1], ["0: add to A", "1: add to B"]);
    let graph = chopping.readers_on_snapshots().rank().unwrap();
    assert!(graph.procedures[0].on_snapshot && graph.edges.is_empty());
    assert_eq!(pieces(&graph), [["read A + read B"], ["add to B + add to A"]]);
}
