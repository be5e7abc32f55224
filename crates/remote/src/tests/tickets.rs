//! A sale of tickets by several clients. Each ticket has a number, a buyer, and the buyer's number for it, so that a sale that is lost or made
//! twice is noticed. The takings are added up in a hot counter, to which all buyers of a client add together.

use crate::{Cluster, ClusterError, MemoryStore, RemoteTable};
use hotrow::{Stored, Value, column_of};
use hotrow_sync::clock::{Instant, now};
use hotrow_sync::{Arc, thread};

/// The price of a ticket.
const PRICE: i64 = 7;

#[derive(Debug, Clone, Copy, PartialEq, Stored, Value)]
#[value(inline)]
struct Sale {
    sold: u64,
    tickets: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Stored, Value)]
#[value(inline)]
struct Ticket {
    buyer: u64,
    /// The number of the buyer's purchases before.
    purchase: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Stored, Value)]
#[value(inline)]
struct Takings {
    #[value(group = "money")]
    money: i64,
}

/// A sale, as a client has it.
struct Office {
    cluster: Cluster,
    sales: RemoteTable<u8, Sale>,
    tickets: RemoteTable<u64, Ticket>,
    takings: RemoteTable<u8, Takings>,
}

/// A sale of several clients.
pub(crate) struct Tickets {
    offices: Vec<Office>,
}

impl Tickets {
    /// Opens the sale of so many tickets in a cluster, of which each client has a handle.
    ///
    /// # Errors
    ///
    /// An error of the cluster.
    pub(crate) fn open(clients: &[Cluster], tickets: u64) -> Result<Self, ClusterError> {
        let open = |cluster: &Cluster| {
            let (sales, rows) =
                (cluster.table("sales").create_or_open()?, cluster.table("tickets").create_or_open()?);
            let takings = cluster.table("takings").create_or_open()?;
            Ok(Office { cluster: cluster.clone(), sales, tickets: rows, takings })
        };
        let offices = clients.iter().map(open).collect::<Result<Vec<_>, ClusterError>>()?;
        let first = &offices[0];
        first.cluster.transact(|tx| {
            tx.insert(&first.sales, 1, Sale { sold: 0, tickets })?;
            tx.insert(&first.takings, 1, Takings { money: 0 })
        })?;
        Ok(Self { offices })
    }

    /// The purchases of a buyer, until all tickets are sold, or until `end`. Returns their number. Each is paid by a transaction of its own.
    ///
    /// # Errors
    ///
    /// An error of the cluster.
    pub(crate) fn buy(&self, buyer: u64, end: Option<Instant>) -> Result<u64, ClusterError> {
        let Office { cluster, sales, tickets, takings } = &self.offices[buyer as usize % self.offices.len()];
        let mut purchases = 0;
        while end.is_none_or(|end| now() < end) {
            let has_bought = cluster.transact(|tx| {
                let sold = tx.update(sales, &1, |sale| {
                    let is_left = sale.sold < sale.tickets;
                    sale.sold += u64::from(is_left);
                    is_left.then_some(sale.sold)
                })?;
                let Some(number) = sold else { return Ok(false) };
                tx.insert(tickets, number, Ticket { buyer, purchase: purchases })?;
                Ok(true)
            })?;
            if !has_bought {
                break;
            }
            purchases += 1;
            cluster.transact(|tx| tx.add(takings, &1, column_of!(Takings, money), PRICE))?;
        }
        Ok(purchases)
    }

    /// Judges what is left in the end, when each buyer has been acknowledged so many tickets.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub(crate) fn judge(&self, purchases: &[u64]) -> Result<(), String> {
        let Office { cluster, sales, tickets, takings } = &self.offices[0];
        let read =
            cluster.transact(|tx| Ok((tx.get(sales, &1)?, tx.rows(tickets, ..)?, tx.get(takings, &1)?)));
        let (sale, rows, takings) = read.map_err(|error| error.to_string())?;
        let bought: u64 = purchases.iter().sum();
        let numbers: Vec<u64> = rows.iter().map(|(number, _)| *number).collect();
        if sale.map(|sale| sale.sold) != Some(bought) || numbers != (1..=bought).collect::<Vec<_>>() {
            return Err(format!("{bought} purchases were acknowledged, and the tickets are {numbers:?}"));
        }
        for (buyer, acknowledged) in (0..).zip(purchases) {
            let of_buyer = rows.iter().filter(|(_, ticket)| ticket.buyer == buyer);
            let found: Vec<u64> = of_buyer.map(|(_, ticket)| ticket.purchase).collect();
            if found != (0..*acknowledged).collect::<Vec<_>>() {
                return Err(format!(
                    "buyer {buyer} was acknowledged {acknowledged} tickets, and has {found:?}"
                ));
            }
        }
        let money = takings.map(|takings| takings.money);
        if money != Some(bought as i64 * PRICE) {
            return Err(format!("{bought} tickets were paid, and the takings are {money:?}"));
        }
        Ok(())
    }
}

#[test]
fn all_tickets_are_sold_once() {
    let store = Arc::new(MemoryStore::new());
    let clients = [super::cluster_over(&store), super::cluster_over(&store)];
    let recording = clients[0].record().unwrap();
    clients[1].record_with(&recording).unwrap();
    let tickets = Tickets::open(&clients, 100).unwrap();
    let purchases: Vec<u64> = thread::scope(|scope| {
        let buy = |buyer| {
            scope.spawn({
                let tickets = &tickets;
                move || tickets.buy(buyer, None).unwrap()
            })
        };
        let buyers: Vec<_> = (0..4).map(buy).collect();
        buyers.into_iter().map(|buyer| buyer.join().unwrap()).collect()
    });
    assert_eq!(purchases.iter().sum::<u64>(), 100);
    tickets.judge(&purchases).unwrap();
    let mut wrong = purchases;
    wrong[0] += 1;
    assert!(tickets.judge(&wrong).is_err());
    super::bank::judge(recording).unwrap();
}
