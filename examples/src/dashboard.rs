//! A dashboard of a database under load: which rows are hot now, and who loses to whom. A program of one's own needs three lines of it:
//! [`Publisher::new`] and [`Publisher::publish`] for Prometheus, and [`Engine::hot_keys`](hotrow::Engine::hot_keys) for the page.
//!
//! - `GET /metrics` is what Prometheus scrapes: the counts are published when it asks.
//! - `GET /state` is the conflict report as JSON, with both sides of each conflict.
//! - `GET /` is a page that asks for the state every second and shows throughput and the hottest rows as they move.
//!
//! The load: purchases of twenty articles, of which one is bought most; price changes that read before they write, so that purchases
//! overtake them; and an audit of all articles as an ordinary transaction, which loses to both (on a snapshot it would not).
//!
//! ```sh
//! hotrow-examples dashboard --serve 127.0.0.1:8080 &
//! curl http://127.0.0.1:8080/metrics
//! ```

use crate::load::{self, Scenario};
use crate::ticket_shop::Client;
use crate::{Store, web};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use hotrow::metrics::Publisher;
use hotrow::sync::random::Random;
use hotrow::{Database, Error, HotKey, Occ, RetainedMemory, Statistics, Table, Value, column_of};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Number of shops that this process has opened.
static SHOPS: AtomicU64 = AtomicU64::new(0);

/// Articles for sale.
const ARTICLES: u32 = 20;
/// Pieces of each in the beginning.
const PIECES: u64 = 1_000_000_000;

/// An article.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value)]
#[value(inline)]
struct Article {
    price: u64,
    pieces: u64,
}

/// The shop, and what shows it.
struct Shop {
    db: Database,
    name: String,
    articles: Table<u32, Article>,
    publisher: Publisher<Occ>,
    prometheus: PrometheusHandle,
    opened: Instant,
}

/// The state that the page shows.
#[derive(Serialize)]
struct Shown {
    seconds: f64,
    protocol: String,
    statistics: Statistics,
    hot_keys: Vec<HotKey>,
    retained: RetainedMemory,
}

/// The recorder of the process, which is installed once.
fn prometheus() -> PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    let install = || PrometheusBuilder::new().install_recorder().expect("no other recorder is installed");
    HANDLE.get_or_init(install).clone()
}

impl Shop {
    fn open() -> Result<Self, Error> {
        let db = Database::open()?;
        db.report_both_sides(true);
        let articles = db.table("articles").create()?;
        let article = Article { price: 20, pieces: PIECES };
        articles.bulk_insert((0..ARTICLES).map(|number| (number, article)))?;
        // Installed before the publisher is made, which registers its metrics.
        let prometheus = prometheus();
        // A process has one recorder, whose counters never fall: a database that comes after another one needs another name.
        let name = match SHOPS.fetch_add(1, Ordering::Relaxed) {
            0 => String::from("shop"),
            before => format!("shop {}", before + 1),
        };
        let publisher = Publisher::new(&db, &name);
        Ok(Self { db, name, articles, publisher, prometheus, opened: Instant::now() })
    }

    /// Buys a piece; the price is what the customer pays.
    fn buy(&self, article: u32) -> Result<u64, Error> {
        self.db.with_worker(|worker| {
            worker.named("buy").transact(|tx| {
                let price =
                    self.articles.read_columns(tx, &article, column_of!(Article, price))?.unwrap_or(0);
                self.articles.update(tx, &article, |row| row.pieces -= 1)?;
                Ok(price)
            })
        })
    }

    /// Changes a price by what is left.
    fn reprice(&self, article: u32) -> Result<(), Error> {
        self.db.with_worker(|worker| {
            worker.named("reprice").transact(|tx| {
                let row = self.articles.get(tx, &article)?;
                let pieces = row.map_or(0, |row| row.pieces);
                self.articles.update(tx, &article, |row| row.price = 20 + (PIECES - pieces) % 10)?;
                Ok(())
            })
        })
    }

    /// Adds up the pieces that were sold.
    fn audit(&self) -> Result<u64, Error> {
        self.db.with_worker(|worker| {
            worker.named("audit").transact(|tx| {
                let mut sold = 0;
                for article in 0..ARTICLES {
                    sold += self.articles.get(tx, &article)?.map_or(0, |row| PIECES - row.pieces);
                }
                Ok(sold)
            })
        })
    }

    /// Does one thing that the shop's people do.
    fn do_one(&self, number: u64, random: &mut Random) -> Result<(), Error> {
        let article = if random.below(2) == 0 { 7 } else { random.below(u64::from(ARTICLES)) as u32 };
        match number % 20 {
            0 => self.audit().map(|_| ()),
            1..=4 => self.reprice(article),
            _ => self.buy(article).map(|_| ()),
        }
    }

    fn shown(&self) -> Shown {
        Shown {
            seconds: self.opened.elapsed().as_secs_f64(),
            protocol: self.db.protocol().to_owned(),
            statistics: self.db.statistics(),
            hot_keys: self.db.hot_keys(10),
            retained: self.db.retained_memory(),
        }
    }
}

async fn metrics(State(shop): State<Arc<Shop>>) -> String {
    shop.publisher.publish();
    shop.prometheus.render()
}

async fn state(State(shop): State<Arc<Shop>>) -> impl IntoResponse {
    let json = serde_json::to_string(&shop.shown()).expect("a report can be serialized");
    ([(CONTENT_TYPE, "application/json")], json)
}

async fn page() -> Html<&'static str> {
    Html(include_str!("dashboard/page.html"))
}

fn router(shop: Arc<Shop>) -> axum::Router {
    let router = axum::Router::new().route("/", get(page));
    router.route("/metrics", get(metrics)).route("/state", get(state)).with_state(shop)
}

/// Serves until the process is ended, under load.
pub(crate) fn serve(address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let shop = Arc::new(Shop::open()?);
    let service = web::Service::start(router(shop.clone()), address)?;
    println!("serving the dashboard at http://{}", service.address);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let shop = &shop;
            scope.spawn(move || {
                let mut random = Random::stream(1, thread);
                for number in 0.. {
                    shop.do_one(number, &mut random).expect("it may try as often as it must");
                    if number % 200 == 0 {
                        std::thread::sleep(Duration::from_millis(1)); // Leaves time for the page.
                    }
                }
            });
        }
    });
    Ok(())
}

/// The shop under load, with somebody who looks at the dashboard.
struct UnderLoad {
    shop: Arc<Shop>,
    service: web::Service,
    watcher: Mutex<Option<Client>>,
}

impl UnderLoad {
    fn get(&self, path: &str) -> String {
        let mut client = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        let connect = || Client::connect(self.service.address).expect("the service listens");
        let answer = client.get_or_insert_with(connect).request(&format!("GET {path}"), "");
        let (status, text) = answer.expect("the service answers");
        assert_eq!(status, 200, "{path}: {text}");
        text
    }
}

impl Scenario for UnderLoad {
    fn one(&self, _: usize, number: u64, random: &mut Random) -> bool {
        self.shop.do_one(number, random).expect("it may try as often as it must");
        true
    }

    fn beside(&self) -> Option<Duration> {
        let state: serde_json::Value = serde_json::from_str(&self.get("/state")).expect("it is JSON");
        assert_eq!(state["protocol"], "occ", "{state}");
        Some(Duration::from_millis(100))
    }

    fn check(&self) -> Result<String, String> {
        let commits = self.shop.db.statistics().commits;
        let name = &self.shop.name;
        let line = format!("hotrow_commits_total{{database=\"{name}\",protocol=\"occ\"}} {commits}");
        let metrics = self.get("/metrics");
        if !metrics.lines().any(|shown| shown == line) {
            return Err(format!("no line {line:?} in the metrics:\n{metrics}"));
        }
        if !self.get("/").contains("/state") {
            return Err(String::from("the page does not ask for the state"));
        }
        let sold = self.shop.audit().map_err(|error| error.to_string())?;
        Ok(format!("{commits} commits are published, {sold} pieces were sold"))
    }

    fn conflicts(&self) -> Option<String> {
        Some(load::report(&self.shop.db))
    }
}

pub(crate) const STORES: &[Store] = &[Store {
    name: "hotrow",
    make: || {
        let shop = Arc::new(Shop::open()?);
        let service = web::Service::start(router(shop.clone()), "127.0.0.1:0")?;
        Ok(Box::new(UnderLoad { shop, service, watcher: Mutex::default() }))
    },
}];
