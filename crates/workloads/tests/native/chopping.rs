//! TPC-C's chopping graph (dbx-tc §6.2, Figures 10 and 11).

use hotrow::chopping::{ChoppingError, ChoppingGraph, RankedGraph};
use hotrow_workloads::tpcc::TpccOptions;
use hotrow_workloads::{Refinement, WorkloadDefinition as _};

fn graph(refinement: Refinement) -> ChoppingGraph {
    let options = TpccOptions::from_given(&[]).unwrap();
    options.chopping(refinement).expect("described").expect("a small database").analyse().unwrap()
}

/// The pieces of a procedure in words, the conflicting one with a star.
fn pieces(graph: &ChoppingGraph, name: &str) -> Vec<String> {
    let procedure = graph.procedures.iter().find(|procedure| procedure.name == name).expect("a procedure");
    let piece = |piece: &hotrow::chopping::Piece| {
        let words: Vec<_> = piece.classes.iter().map(|class| procedure.classes[*class].to_string()).collect();
        format!("{}{}", if piece.conflicting { "* " } else { "" }, words.join("; "))
    };
    procedure.pieces.iter().map(piece).collect()
}

const NEW_ORDER: [&str; 4] = [
    "read ITEM",
    "* update DISTRICT (orders); insert ORDER; insert NEW-ORDER; update STOCK; insert ORDER-LINE",
    "read WAREHOUSE",
    "read CUSTOMER",
];

const PAYMENT: [&str; 7] = [
    "scan CUSTOMER.by_name",
    "* update CUSTOMER (account)",
    "read WAREHOUSE",
    "read DISTRICT",
    "insert HISTORY",
    "add to DISTRICT (year_to_date)",
    "add to WAREHOUSE (year_to_date)",
];

/// By default few transactions are chopped (dbx-tc §6.2): whatever Order-Status and Stock-Level read hangs together, and
/// Delivery is one piece, because it conflicts with Payment over the customer's balance (§3.2).
#[test]
fn the_default_graph_is_that_of_figure_10() {
    let graph = graph(Refinement::Default);
    assert_eq!(pieces(&graph, "new_order"), NEW_ORDER);
    assert_eq!(pieces(&graph, "payment"), PAYMENT);
    let delivery =
        "* scan NEW-ORDER; delete NEW-ORDER; update ORDER; update ORDER-LINE; add to CUSTOMER (account)";
    assert_eq!(pieces(&graph, "delivery"), [delivery]);
    let status = "* read CUSTOMER (account); scan ORDER.by_customer; read ORDER; scan ORDER-LINE";
    assert_eq!(pieces(&graph, "order_status"), ["scan CUSTOMER.by_name", status, "read CUSTOMER"]);
    assert_eq!(pieces(&graph, "stock_level"), ["* read DISTRICT (orders); scan ORDER-LINE; read STOCK"]);
}

/// Readers leave the graph, and with the customer's balance the accesses to ORDER and ORDER-LINE leave Delivery's conflicting
/// piece (dbx-tc §3.2, Figure 3).
#[test]
fn the_refined_graph_is_that_of_figure_11() {
    let graph = graph(Refinement::Full);
    assert_eq!(pieces(&graph, "new_order"), NEW_ORDER);
    assert_eq!(pieces(&graph, "payment"), PAYMENT);
    let delivery = [
        "* scan NEW-ORDER; delete NEW-ORDER",
        "update ORDER",
        "update ORDER-LINE",
        "add to CUSTOMER (account)",
    ];
    assert_eq!(pieces(&graph, "delivery"), delivery);
    for reader in ["order_status", "stock_level"] {
        let procedure = graph.procedures.iter().find(|procedure| procedure.name == reader).unwrap();
        assert!(
            procedure.on_snapshot && procedure.pieces.len() == 1 && procedure.conflicting_piece().is_none()
        );
    }
    // The dashed line: Delivery publishes, Payment subscribes.
    let published: Vec<_> = graph.edges.iter().filter(|edge| edge.published).collect();
    let names = |at: usize| graph.procedures[at].name.as_str();
    let ends: Vec<_> = published.iter().map(|edge| (names(edge.from.0), names(edge.to.0))).collect();
    assert_eq!(ends, [("payment", "delivery")]);
}

/// The pieces of a procedure by ranks.
fn ranked(graph: &RankedGraph, name: &str) -> Vec<String> {
    let procedure = graph.procedures.iter().find(|procedure| procedure.name == name).expect("a procedure");
    let piece = |piece: &hotrow::chopping::RankedPiece| {
        let words: Vec<_> = piece.classes.iter().map(|class| procedure.classes[*class].to_string()).collect();
        let ranks = piece.ranks.map_or(String::new(), |ranks| {
            assert_eq!(ranks.first, ranks.last, "no pieces were merged");
            format!("{}: ", ranks.first)
        });
        format!("{ranks}{}", words.join("; "))
    };
    procedure.pieces.iter().map(piece).collect()
}

/// The ranks of TPC-C's tables under `ic3`: DISTRICT, STOCK, NEW-ORDER with what belongs to it, CUSTOMER.
#[test]
fn transactions_have_a_piece_for_each_table_that_others_want() {
    let options = TpccOptions::from_given(&[]).unwrap();
    let graph = options.chopping(Refinement::Full).unwrap().unwrap().rank().unwrap();
    let new_order = [
        "read WAREHOUSE; read CUSTOMER; read ITEM",
        "0: update DISTRICT (orders)",
        "1: update STOCK",
        "2: insert ORDER; insert NEW-ORDER; insert ORDER-LINE",
    ];
    assert_eq!(ranked(&graph, "new_order"), new_order);
    let payment = [
        "read WAREHOUSE; read DISTRICT; scan CUSTOMER.by_name",
        "3: update CUSTOMER (account)",
        "insert HISTORY; add to DISTRICT (year_to_date); add to WAREHOUSE (year_to_date)",
    ];
    assert_eq!(ranked(&graph, "payment"), payment);
    let delivery = [
        "2: scan NEW-ORDER; delete NEW-ORDER",
        "3: update ORDER; update ORDER-LINE; add to CUSTOMER (account)",
    ];
    assert_eq!(ranked(&graph, "delivery"), delivery);
    assert!(graph.procedures[2..].iter().filter(|procedure| procedure.on_snapshot).count() == 2);
}

#[test]
fn a_balance_that_readers_see_beside_orders_cannot_be_published_later() {
    let options = TpccOptions::from_given(&[]).unwrap();
    let chopping = options.chopping(Refinement::Default).unwrap().unwrap();
    let error = chopping.publish("delivery", "CUSTOMER").analyse().unwrap_err();
    assert!(matches!(error, ChoppingError::Connected { .. }), "{error}");
}
