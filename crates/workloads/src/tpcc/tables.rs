//! The nine tables in a database, and their loading.

use super::population::{Population, Scale};
use super::schema::{
    Customer, CustomerByNameKey, CustomerKey, DISTRICTS_PER_WAREHOUSE, District, DistrictKey, History,
    HistoryKey, Item, ItemKey, NewOrder, NewOrderKey, Order, OrderByCustomerKey, OrderKey, OrderLine,
    OrderLineKey, Stock, StockKey, Warehouse, WarehouseKey,
};
use super::{Caches, Ranks, TpccOptions};
use hotrow::{Database, IndexRef, Key, Protocol, Table, TableBuilder, TableRef, Value, column_of};
use hotrow_driver::{BenchError, Observer, load_parts};

/// The tables and secondary indexes, by their references in procedures.
#[derive(Debug, Clone, Copy)]
pub struct Tables {
    /// WAREHOUSE.
    pub warehouse: TableRef<WarehouseKey, Warehouse>,
    /// DISTRICT.
    pub district: TableRef<DistrictKey, District>,
    /// CUSTOMER.
    pub customer: TableRef<CustomerKey, Customer>,
    /// CUSTOMER by last and first name.
    pub customer_by_name: IndexRef<CustomerByNameKey, CustomerKey, Customer>,
    /// HISTORY.
    pub history: TableRef<HistoryKey, History>,
    /// NEW-ORDER.
    pub new_order: TableRef<NewOrderKey, NewOrder>,
    /// ORDER.
    pub order: TableRef<OrderKey, Order>,
    /// ORDER by customer.
    pub order_by_customer: IndexRef<OrderByCustomerKey, OrderKey, Order>,
    /// ORDER-LINE.
    pub order_line: TableRef<OrderLineKey, OrderLine>,
    /// ITEM, which is immutable.
    pub item: TableRef<ItemKey, Item>,
    /// STOCK.
    pub stock: TableRef<StockKey, Stock>,
}

/// Makes the tables. Those that transactions scan are ordered, the others hashed: clauses 2.6.2.2, 2.7.4.2 and
/// 2.8.2.2 scan ORDER, NEW-ORDER and ORDER-LINE.
pub(super) fn create<P: Protocol>(database: &Database<P>, options: &TpccOptions) -> Tables {
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
    let warehouse =
        database.table("WAREHOUSE").hash(warehouses).rank(rank(7)).durable().create().expect("a new name");
    let district =
        database.table("DISTRICT").hash(districts).rank(rank(6)).durable().create().expect("a new name");
    let group_of = |NewOrderKey { warehouse, district, .. }: &NewOrderKey| {
        DistrictKey { warehouse: *warehouse, district: *district }.group()
    };
    // A bucket of a cache for the new orders of a district, among which a Delivery looks for the first; for an order; and for its lines.
    let new_order =
        cached(database.table("NEW-ORDER").rank(rank(2)), options, NewOrderKey::DISTRICT_TAIL_BITS);
    let new_order = new_order.queues(group_of).durable().create().expect("a new name");
    let mut order = cached(database.table("ORDER").rank(rank(3)), options, 0);
    let by_customer = order.secondary("by_customer", OrderByCustomerKey::of);
    let order = order.durable().create().expect("a new name");
    let order_line =
        cached(database.table("ORDER-LINE").rank(rank(4)), options, OrderLineKey::ORDER_TAIL_BITS);
    let order_line = order_line.durable().create().expect("a new name");
    let mut customer = database.table("CUSTOMER").hash(customers).rank(rank(5));
    let name = (column_of!(Customer, last), column_of!(Customer, first));
    let by_name = customer.immutable_secondary_on("by_name", name, CustomerByNameKey::of);
    let customer = customer.durable().create().expect("a new name");
    let history = cached(database.table("HISTORY").hash(customers), options, 0);
    let history = history.durable().create().expect("a new name");
    let item =
        database.table("ITEM").hash(items as usize).immutable().durable().create().expect("a new name");
    let stock = database
        .table("STOCK")
        .hash(warehouses * items as usize)
        .rank(rank(1))
        .durable()
        .create()
        .expect("a new name");

    Tables {
        warehouse: warehouse.reference(),
        district: district.reference(),
        customer: customer.reference(),
        customer_by_name: by_name.reference(),
        history: history.reference(),
        new_order: new_order.reference(),
        order: order.reference(),
        order_by_customer: by_customer.reference(),
        order_line: order_line.reference(),
        item: item.reference(),
        stock: stock.reference(),
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

/// True if the tables have been recovered with their rows.
pub(super) fn has_data<P: Protocol>(database: &Database<P>, tables: &Tables) -> Result<bool, BenchError> {
    if database.open_report().is_none() {
        return Ok(false);
    }
    let warehouse = database.table_of(tables.warehouse);
    let found = database.transact(|tx| warehouse.get(tx, &WarehouseKey { warehouse: 1 }));
    found.map(|row| row.is_some()).map_err(|error| BenchError::Load(error.to_string()))
}

/// Unit of loading, for one thread.
#[derive(Debug, Clone, Copy)]
enum Part {
    Items,
    Stock(u16),
    District(DistrictKey),
}

/// Loads the initial population with several threads.
pub(super) fn load<P: Protocol>(
    database: &Database<P>,
    tables: &Tables,
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
    load_parts(&parts, threads, observer, |part| load_part(database, tables, &population, *part))
}

fn load_part<P: Protocol>(
    database: &Database<P>,
    tables: &Tables,
    population: &Population,
    part: Part,
) -> Result<(), String> {
    match part {
        Part::Items => fill(database, tables.item, population.items()),
        Part::Stock(warehouse) => {
            fill(database, tables.warehouse, [population.warehouse(warehouse)])?;
            fill(database, tables.district, population.districts(warehouse))?;
            fill(database, tables.stock, population.stock(warehouse))
        }
        Part::District(district) => {
            fill(database, tables.customer, population.customers(district))?;
            fill(database, tables.history, population.history(district))?;
            fill(database, tables.order, population.orders(district))?;
            fill(database, tables.order_line, population.order_lines(district))?;
            fill(database, tables.new_order, population.new_orders(district))
        }
    }
}

fn fill<K: Key, R: Value, P: Protocol>(
    database: &Database<P>,
    table: TableRef<K, R>,
    rows: impl IntoIterator<Item = (K, R)>,
) -> Result<(), String> {
    fill_from(database.table_of(table), &mut rows.into_iter())
}

/// Fills a table. Takes the rows through a pointer, so that what makes them is compiled once for all protocols.
fn fill_from<K: Key, R: Value, P: Protocol>(
    table: &Table<K, R, P>,
    rows: &mut dyn Iterator<Item = (K, R)>,
) -> Result<(), String> {
    for (key, row) in rows {
        let name = key.clone();
        if !table.bulk_insert(key, row) {
            return Err(format!("{}[{name:?}] exists twice", table.name()));
        }
    }
    Ok(())
}
