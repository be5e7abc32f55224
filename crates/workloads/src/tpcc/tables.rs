//! The nine tables in a database, and their loading.

use super::population::{Population, Scale};
use super::references::Tables;
use super::schema::{
    Customer, CustomerByNameKey, CustomerKey, DISTRICTS_PER_WAREHOUSE, District, DistrictKey, History,
    HistoryKey, Item, ItemKey, NewOrder, NewOrderKey, Order, OrderByCustomerKey, OrderKey, OrderLine,
    OrderLineKey, Stock, StockKey, Warehouse, WarehouseKey,
};
use super::{Caches, Ranks, TpccOptions};
use hotrow::{Database, Key, Loading, Protocol, SecondaryIndex, TableBuilder, Value, column_of};
use hotrow_driver::{BenchError, Observer, finish, load_parts};

/// The tables while they are loaded.
pub(super) struct LoadingTables<P: Protocol> {
    warehouse: Loading<WarehouseKey, Warehouse, P>,
    district: Loading<DistrictKey, District, P>,
    customer: Loading<CustomerKey, Customer, P>,
    customer_by_name: SecondaryIndex<CustomerByNameKey, CustomerKey, Customer, P>,
    history: Loading<HistoryKey, History, P>,
    new_order: Loading<NewOrderKey, NewOrder, P>,
    order: Loading<OrderKey, Order, P>,
    order_by_customer: SecondaryIndex<OrderByCustomerKey, OrderKey, Order, P>,
    order_line: Loading<OrderLineKey, OrderLine, P>,
    item: Loading<ItemKey, Item, P>,
    stock: Loading<StockKey, Stock, P>,
}

/// Begins to make the tables. Those that transactions scan are ordered, the others hashed: clauses 2.6.2.2, 2.7.4.2 and
/// 2.8.2.2 scan ORDER, NEW-ORDER and ORDER-LINE.
pub(super) fn begin<P: Protocol>(database: &Database<P>, options: &TpccOptions) -> LoadingTables<P> {
    let Scale { items, customers_per_district, .. } = options.scale;
    let warehouses = options.warehouses as usize;
    let districts = warehouses * usize::from(DISTRICTS_PER_WAREHOUSE);
    let customers = districts * usize::from(customers_per_district);

    let rank = |tuned: u16| match options.ranks {
        Ranks::Tuned => tuned,
        Ranks::Equal => u16::MAX,
    };
    // With equal ranks, a commit takes the locks of rows in the order in which their tables are made here. Delivery
    // needs this order: rows of NEW-ORDER, ORDER and ORDER-LINE give it keys and values for the tables that follow.
    let warehouse = database.table("WAREHOUSE").hash(warehouses).rank(rank(7)).load().expect("a new name");
    let district = database.table("DISTRICT").hash(districts).rank(rank(6)).load().expect("a new name");
    let group_of = |NewOrderKey { warehouse, district, .. }: &NewOrderKey| {
        DistrictKey { warehouse: *warehouse, district: *district }.group()
    };
    // A bucket of a cache for the new orders of a district, among which a Delivery looks for the first; for an order; and for its lines.
    let new_order =
        cached(database.table("NEW-ORDER").rank(rank(2)), options, NewOrderKey::DISTRICT_TAIL_BITS);
    let new_order = new_order.queues(group_of).load().expect("a new name");
    let mut order = cached(database.table("ORDER").rank(rank(3)), options, 0);
    let order_by_customer = order.secondary("by_customer", OrderByCustomerKey::of);
    let order = order.load().expect("a new name");
    let order_line =
        cached(database.table("ORDER-LINE").rank(rank(4)), options, OrderLineKey::ORDER_TAIL_BITS);
    let order_line = order_line.load().expect("a new name");
    let mut customer = database.table("CUSTOMER").hash(customers).rank(rank(5));
    let name = (column_of!(Customer, last), column_of!(Customer, first));
    let customer_by_name = customer.immutable_secondary_on("by_name", name, CustomerByNameKey::of);
    let customer = customer.load().expect("a new name");
    let history = cached(database.table("HISTORY").hash(customers), options, 0);
    let history = history.load().expect("a new name");
    let item = database.table("ITEM").hash(items as usize).immutable().load().expect("a new name");
    let stock = database.table("STOCK").hash(warehouses * items as usize).rank(rank(1));
    let stock = stock.load().expect("a new name");

    LoadingTables {
        warehouse,
        district,
        customer,
        customer_by_name,
        history,
        new_order,
        order,
        order_by_customer,
        order_line,
        item,
        stock,
    }
}

impl<P: Protocol> LoadingTables<P> {
    /// Ends the loading: the tables are in their database.
    pub(super) fn finish(self) -> Result<Tables, BenchError> {
        Ok(Tables {
            warehouse: finish(self.warehouse)?.reference(),
            district: finish(self.district)?.reference(),
            customer: finish(self.customer)?.reference(),
            customer_by_name: self.customer_by_name.reference(),
            history: finish(self.history)?.reference(),
            new_order: finish(self.new_order)?.reference(),
            order: finish(self.order)?.reference(),
            order_by_customer: self.order_by_customer.reference(),
            order_line: finish(self.order_line)?.reference(),
            item: finish(self.item)?.reference(),
            stock: finish(self.stock)?.reference(),
        })
    }
}

/// Puts a cache in front of a table into which transactions insert, if the options say so.
fn cached<K: Key, R: Value, P: Protocol>(
    table: TableBuilder<K, R, P>,
    options: &TpccOptions,
    tail_bits: u32,
) -> TableBuilder<K, R, P> {
    match options.caches {
        Caches::None => table,
        Caches::Inserted => table.cached(tail_bits),
    }
}

/// Unit of loading, for one thread.
#[derive(Debug, Clone, Copy)]
enum Part {
    Items,
    Stock(u16),
    District(DistrictKey),
}

/// Loads the initial population with several threads. What was recovered has its rows.
pub(super) fn load<P: Protocol>(
    tables: &LoadingTables<P>,
    population: Population,
    warehouses: u16,
    threads: usize,
    observer: &dyn Observer,
) -> Result<(), BenchError> {
    let mut parts = vec![Part::Items];
    for warehouse in 1..=warehouses {
        parts.push(Part::Stock(warehouse));
        for district in 1..=DISTRICTS_PER_WAREHOUSE {
            parts.push(Part::District(DistrictKey { warehouse, district }));
        }
    }
    load_parts(&parts, threads, observer, |part| load_part(tables, &population, *part))
}

fn load_part<P: Protocol>(
    tables: &LoadingTables<P>,
    population: &Population,
    part: Part,
) -> Result<(), String> {
    match part {
        Part::Items => fill(&tables.item, population.items()),
        Part::Stock(warehouse) => {
            fill(&tables.warehouse, [population.warehouse(warehouse)])?;
            fill(&tables.district, population.districts(warehouse))?;
            fill(&tables.stock, population.stock(warehouse))
        }
        Part::District(district) => {
            fill(&tables.customer, population.customers(district))?;
            fill(&tables.history, population.history(district))?;
            fill(&tables.order, population.orders(district))?;
            fill(&tables.order_line, population.order_lines(district))?;
            fill(&tables.new_order, population.new_orders(district))
        }
    }
}

fn fill<K: Key, R: Value, P: Protocol>(
    table: &Loading<K, R, P>,
    rows: impl IntoIterator<Item = (K, R)>,
) -> Result<(), String> {
    if table.is_new() { fill_from(table, &mut rows.into_iter()) } else { Ok(()) }
}

/// Fills a table. Takes the rows through a pointer, so that what makes them is compiled once for all protocols.
fn fill_from<K: Key, R: Value, P: Protocol>(
    table: &Loading<K, R, P>,
    rows: &mut dyn Iterator<Item = (K, R)>,
) -> Result<(), String> {
    for (key, row) in rows {
        table.insert(key, row).map_err(|error| error.to_string())?;
    }
    Ok(())
}
