//! Articles: a site on which users comment on articles (H-Store's benchmark, used in dbx-tc §6.7).
//!
//! Three tables: articles with the number of their comments, users, and comments by article and number. Four transactions, of which
//! two only read: one gets an article, one its newest comments, one adds a comment, and one changes a user's last name. A few
//! articles get most of the attention (zipfian), so the number of comments of the first is hot.
//!
//! # Deviations
//!
//! - H-Store keeps 1,000 comments of an article at most, by the range of their keys. Here an article that is full loses its oldest
//!   comment with each new one, so that transactions stay as they are, however long a run is.
//! - H-Store returns some five comments of an article; here they are the newest ones, so that a reader can tell if they belong to the
//!   article's number of comments.
//! - Articles are drawn by rank, scrambled over the keys. H-Store's hot articles are neighbours.
//! - Each article has the same number of comments at first; H-Store draws it. All attributes have values, also those of new comments.
//! - Texts and attributes say to whom a row belongs, so that a torn row, or another's, is noticed.

mod audit;
mod options;
pub mod procedures;
pub mod rows;

pub use options::ArticlesOptions;

use crate::ycsb::keys::{Scramble, Zipfian};
use audit::Audit;
use hotrow::sync::random::Random;
use hotrow::{Database, Error, Procedures, Protocol, Worker};
use hotrow_driver::{Check, End, Ran, Workload};
use procedures::{AddComment, ArticleTables, GetArticle, GetComments, UpdateUser};
use rows::{Article, Comment, User};

/// The loaded tables and their options.
pub struct Articles<P: Protocol> {
    database: Database<P>,
    tables: ArticleTables,
    options: ArticlesOptions,
}

/// One worker's next transaction, and the number of comments that it has added.
#[derive(Debug, Clone)]
pub struct ArticlesClient {
    random: Random,
    articles: (Zipfian, Scramble),
    users: (Zipfian, Scramble),
    added: u64,
    next: Next,
}

/// A transaction that has been drawn.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// Gets an article.
    Get(u32),
    /// Gets the newest comments of an article.
    Comments(u32),
    /// Adds a comment by a user to an article.
    Add(u32, u32),
    /// Changes the last name of a user to the one with this number.
    Update(u32, u32),
}

impl Next {
    const KINDS: &'static [&'static str] = &["get_article", "get_comments", "add_comment", "update_user"];

    fn kind(self) -> usize {
        match self {
            Next::Get(_) => 0,
            Next::Comments(_) => 1,
            Next::Add(..) => 2,
            Next::Update(..) => 3,
        }
    }
}

impl ArticlesClient {
    fn new(options: &ArticlesOptions, worker: usize, seed: u64) -> Self {
        let of = |count: u32| (Zipfian::new(count.into(), options.theta), Scramble::new(count.into()));
        let random = Random::stream(seed, worker as u64);
        Self {
            random,
            articles: of(options.articles),
            users: of(options.users),
            added: 0,
            next: Next::Get(0),
        }
    }

    /// Draws the next transaction: in 100, 35 get an article and 35 its comments, 20 add a comment and 10 change a user.
    #[inline]
    fn draw(&mut self) {
        let Self { random, articles, users, next, .. } = self;
        let draw =
            |(ranks, keys): &(Zipfian, Scramble), random: &mut Random| keys.key(ranks.rank(random)) as u32;
        *next = match random.below(100) {
            0..35 => Next::Get(draw(articles, random)),
            35..70 => Next::Comments(draw(articles, random)),
            70..90 => Next::Add(draw(articles, random), draw(users, random)),
            _ => Next::Update(draw(users, random), random.below(1_000_000) as u32),
        };
    }
}

/// The contradiction of a transaction that has found something missing.
fn end(result: Result<bool, Error>, contradiction: &str) -> End {
    match result {
        Ok(true) => End::Committed,
        Ok(false) => End::Failed(contradiction.to_owned()),
        Err(error) => End::Failed(error.to_string()),
    }
}

impl<P: Protocol> Articles<P> {
    /// Returns the database.
    pub fn database(&self) -> &Database<P> {
        &self.database
    }

    fn audit(&self, worker: &mut Worker<P>, added: u64) -> Result<Vec<Check>, Error> {
        let Self { database, tables, options } = self;
        let mut audit = Audit::new(options);
        database.table_of(tables.comments).for_each(worker, |key, comment| audit.comment(*key, comment))?;
        database.table_of(tables.articles).for_each(worker, |key, article| audit.article(*key, article))?;
        database.table_of(tables.users).for_each(worker, |key, user| audit.user(*key, user))?;
        Ok(audit.checks(added))
    }
}

impl<P: Protocol> Workload<P> for Articles<P> {
    type Client = ArticlesClient;

    fn kinds(&self) -> &'static [&'static str] {
        Next::KINDS
    }

    fn database_of_procedures(&self) -> Option<&Database<P>> {
        Some(&self.database)
    }

    fn client(&self, worker: usize, _workers: usize, seed: u64) -> ArticlesClient {
        ArticlesClient::new(&self.options, worker, seed)
    }

    #[inline]
    fn prepare(&self, client: &mut ArticlesClient) {
        client.draw();
    }

    #[inline]
    fn run_one(&self, worker: &mut Worker<P>, client: &mut ArticlesClient) -> Ran {
        let Self { database, tables, options } = self;
        let (tables, comments_max) = (*tables, options.comments_max);
        let end = match client.next {
            Next::Get(article) => end(
                database.execute_on(worker, &GetArticle { tables, article }),
                "an article is missing, or torn",
            ),
            Next::Comments(article) => end(
                database.execute_on(worker, &GetComments { tables, article, comments_max }),
                "an article's comments are not those that it states",
            ),
            Next::Add(article, user) => {
                let add = AddComment { tables, article, user, comments_max };
                let added =
                    end(database.execute_on(worker, &add), "an article has no place for its next comment");
                client.added += u64::from(added == End::Committed);
                added
            }
            Next::Update(user, name) => {
                end(database.execute_on(worker, &UpdateUser { tables, user, name }), "a user is missing")
            }
        };
        Ran { kind: client.next.kind(), end }
    }

    fn checks(&self, worker: &mut Worker<P>, clients: Vec<ArticlesClient>) -> Vec<Check> {
        let added = clients.iter().map(|client| client.added).sum();
        self.audit(worker, added)
            .unwrap_or_else(|error| vec![Check::new("reading all rows", Err(error.to_string()))])
    }

    fn payload_bytes(&self, worker: &mut Worker<P>) -> u64 {
        let comments = self.database.table_of(self.tables.comments).for_each(worker, |_, _| ()).unwrap_or(0);
        let row = |rows: u64, key: usize, row: usize| rows * (key + row) as u64;
        row(comments, 16, size_of::<Comment>())
            + row(self.options.articles.into(), 4, size_of::<Article>())
            + row(self.options.users.into(), 4, size_of::<User>())
    }
}
