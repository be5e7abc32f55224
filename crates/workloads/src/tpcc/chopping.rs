//! TPC-C's procedures for chopping (dbx-tc §3 and §6.2).

use super::TpccOptions;
use super::client::Client;
use super::input::{Input, TransactionKind};
use super::options::Factors;
use super::population::Scale;
use super::procedures::{
    DeliveryProcedure, NewOrderProcedure, OrderStatusProcedure, PaymentProcedure, StockLevelProcedure,
};
use super::schema::{DISTRICTS_PER_WAREHOUSE, HistoryKey};
use crate::traces::{load_small, trace};
use hotrow::Isolation;
use hotrow::chopping::Chopping;
use hotrow_driver::{BenchError, Refinement};

/// Number of inputs of each type for which a procedure is traced. All ways through the procedures are among them: a customer is
/// found by number or by name, and a line's warehouse makes no difference.
const INPUTS: usize = 40;

/// Traces the five transactions on a small database, and declares what dbx-tc §3.2 declares of them.
pub(super) fn chopping(options: &TpccOptions, refinement: Refinement) -> Result<Chopping, BenchError> {
    const SEED: u64 = 1;
    let small = TpccOptions { warehouses: 1, scale: Scale::SMALL, ..*options };
    let loaded = load_small(&small)?;
    let (database, tables) = (loaded.database(), *loaded.tables());
    let constants = loaded.population.constants();
    let mut client = Client::new(0, 1, small.scale, constants, small.mix, SEED);
    let mut traces = |kind: TransactionKind| {
        let drawn = (0..INPUTS).map(|_| match client.input(kind, 1) {
            Input::NewOrder(input) => trace(database, &NewOrderProcedure { tables, input }),
            Input::Payment(input) => {
                let history = HistoryKey { worker: 0, sequence: 0 };
                trace(database, &PaymentProcedure { tables, input, history })
            }
            Input::OrderStatus(input) => trace(database, &OrderStatusProcedure { tables, input }),
            Input::Delivery(input) => {
                let districts = (1, DISTRICTS_PER_WAREHOUSE);
                trace(database, &DeliveryProcedure { tables, input, districts })
            }
            Input::StockLevel(input) => {
                let isolation = Isolation::Serializable;
                trace(database, &StockLevelProcedure { tables, input, isolation })
            }
        });
        drawn.collect::<Result<Vec<_>, _>>()
    };
    let mut chopping = Chopping::new();
    for (name, kind) in [
        ("new_order", TransactionKind::NewOrder),
        ("payment", TransactionKind::Payment),
        ("order_status", TransactionKind::OrderStatus),
        ("delivery", TransactionKind::Delivery),
        ("stock_level", TransactionKind::StockLevel),
    ] {
        chopping = chopping.procedure(name, traces(kind)?);
    }
    match options.chop {
        Factors::Full | Factors::Default => {}
        Factors::WithoutCommuting => chopping = chopping.without_commuting(),
        Factors::WithoutGroups => chopping = chopping.without_column_groups(),
    }
    if refinement >= Refinement::Snapshots && options.readers != Isolation::Serializable {
        chopping = chopping.readers_on_snapshots();
    }
    if refinement >= Refinement::Full && options.chop == Factors::Full {
        // Delivery finds an order by the row of NEW-ORDER that it has taken out, and its customer's balance need not be seen at
        // once.
        chopping = chopping
            .belongs("ORDER", "NEW-ORDER")
            .belongs("ORDER-LINE", "NEW-ORDER")
            .publish("delivery", "CUSTOMER");
    }
    Ok(chopping)
}
