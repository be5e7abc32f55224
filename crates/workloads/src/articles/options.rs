//! Options of Articles.

use super::Articles;
use super::procedures::{AddComment, ArticleTables, GetArticle, GetComments, UpdateUser};
use super::rows::{Article, Comment, User};
use crate::traces::{self, trace};
use hotrow::chopping::Chopping;
use hotrow::{Database, Isolation, LoadError, Procedures, Protocol};
use hotrow_driver::{
    BenchError, Observer, OptionError, OptionInfo, OptionValues, READERS, Refinement, WorkloadDefinition,
    WorkloadInfo, finish, load_parts, name_of,
};
use serde::{Serialize, Serializer};

/// The site, and the shape of the load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ArticlesOptions {
    /// Number of articles, at least 1.
    pub articles: u32,
    /// Number of users, at least 1.
    pub users: u32,
    /// Comments of each article at first.
    pub comments: u64,
    /// Comments that an article keeps, at least 1 and at least those at first.
    pub comments_max: u64,
    /// Zipfian theta of articles and users, from 0 (uniform).
    pub theta: f64,
    /// Isolation of the transactions that only read.
    #[serde(serialize_with = "readers_name")]
    pub readers: Isolation,
}

fn readers_name<S: Serializer>(readers: &Isolation, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name_of(&READERS, readers))
}

/// Number of articles that a thread loads at a time.
const CHUNK: u32 = 1_024;

impl WorkloadDefinition for ArticlesOptions {
    type Loaded<P: Protocol> = Articles<P>;

    const INFO: WorkloadInfo = WorkloadInfo {
        name: "articles",
        summary: "users read articles and comment on them; a few articles get most of the attention",
        source: "H-Store, dbx-tc §6.7",
        runs_procedures: true,
        is_durable: false,
        options: &[
            OptionInfo {
                name: "articles",
                value: "N",
                default: "100000",
                summary: "Articles, from 1 to 10^8",
            },
            OptionInfo { name: "users", value: "N", default: "200", summary: "Users, from 1 to 10^8" },
            OptionInfo {
                name: "comments",
                value: "N",
                default: "2",
                summary: "Comments of each article at first, from 0 to 10^6, and not more than it keeps",
            },
            OptionInfo {
                name: "comments-max",
                value: "N",
                default: "1000",
                summary: "Comments that an article keeps, from 1 to 10^6; a new one then replaces the oldest",
            },
            OptionInfo {
                name: "theta",
                value: "THETA",
                default: "1.0001",
                summary: "Zipfian theta of articles and users, from 0 (uniform) to 10",
            },
            OptionInfo {
                name: "readers",
                value: "HOW",
                default: "strict-snapshot",
                summary: "Transactions that only read: on a strict-snapshot, a snapshot (a millisecond old), or serializable by the protocol",
            },
        ],
        baselines: &[],
        example: "--articles 1000 --theta 0.8",
    };

    fn parse(values: &OptionValues<'_>) -> Result<Self, OptionError> {
        let comments_max = values.number("comments-max", 1..=1_000_000)?;
        Ok(Self {
            articles: values.number("articles", 1..=100_000_000)?,
            users: values.number("users", 1..=100_000_000)?,
            comments: values.number("comments", 0..=comments_max)?,
            comments_max,
            theta: values.number("theta", 0.0..=10.0)?,
            readers: values.one_of("readers", &READERS)?,
        })
    }

    fn data_bytes_estimate(&self) -> u64 {
        let rows = |count: u64, row: usize| count * (row as u64 + 150);
        rows(self.articles.into(), size_of::<Article>())
            + rows(self.users.into(), size_of::<User>())
            + rows(u64::from(self.articles) * self.comments, size_of::<Comment>())
    }

    fn load<P: Protocol>(
        &self,
        database: &Database<P>,
        threads: usize,
        _seed: u64,
        observer: &dyn Observer,
    ) -> Result<Articles<P>, BenchError> {
        database.set_readers_isolation(self.readers);
        let Self { articles: count, users: user_count, comments: each, .. } = *self;
        let articles = database.table("ARTICLES").hash(count as usize).load().expect("a new name");
        let users = database.table("USERS").hash(user_count as usize).load().expect("a new name");
        let comments = database.table("COMMENTS").load().expect("a new name");
        let failed = |error: LoadError| error.to_string();
        (0..user_count)
            .try_for_each(|user| users.insert(user, User::new(user)))
            .map_err(|error| BenchError::Load(failed(error)))?;
        let parts: Vec<_> =
            (0..count).step_by(CHUNK as usize).map(|first| first..(first + CHUNK).min(count)).collect();
        load_parts(&parts, threads, observer, |part| {
            for article in part.clone() {
                articles.insert(article, Article::new(article, each)).map_err(failed)?;
                for number in 0..each {
                    let user = (u64::from(article) + number) % u64::from(user_count);
                    let comment = Comment::new(article, user as u32, number);
                    comments.insert((article, number), comment).map_err(failed)?;
                }
            }
            Ok(())
        })?;
        let tables = ArticleTables {
            articles: finish(articles)?.reference(),
            users: finish(users)?.reference(),
            comments: finish(comments)?.reference(),
        };
        traces::chop_if_allowed(self, database)?;
        Ok(Articles { database: database.clone(), tables, options: *self })
    }

    fn chopping(&self, refinement: Refinement) -> Option<Result<Chopping, BenchError>> {
        Some(chopping(self, refinement))
    }
}

/// Traces the four transactions on two articles.
fn chopping(options: &ArticlesOptions, refinement: Refinement) -> Result<Chopping, BenchError> {
    let small = ArticlesOptions { articles: 2, users: 2, comments: 1, comments_max: 1, ..*options };
    let loaded = traces::load_small(&small)?;
    let (database, tables) = (loaded.database(), loaded.tables);
    let add = AddComment { tables, article: 0, user: 0, comments_max: 1 };
    let comments = GetComments { tables, article: 0, comments_max: 1 };
    let chopping = Chopping::new()
        .procedure("get_article", [trace(database, &GetArticle { tables, article: 0 })?])
        .procedure("get_comments", [trace(database, &comments)?])
        .procedure("add_comment", [trace(database, &add)?])
        .procedure("update_user", [trace(database, &UpdateUser { tables, user: 0, name: 1 })?]);
    let on_snapshots = refinement >= Refinement::Snapshots;
    Ok(if on_snapshots { chopping.readers_on_snapshots() } else { chopping })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_are_read_and_reported() {
        let given = |options: &[(&str, &str)]| json!(ArticlesOptions::from_given(options).unwrap());
        let usual = json!({ "articles": 100_000, "users": 200, "comments": 2, "comments_max": 1_000, "theta": 1.0001,
            "readers": "strict-snapshot" });
        assert_eq!(given(&[]), usual);
        let few =
            [("articles", "3"), ("users", "2"), ("comments", "0"), ("comments-max", "1"), ("theta", "0")];
        let few: Vec<_> = few.into_iter().chain([("readers", "serializable")]).collect();
        let expected = json!({ "articles": 3, "users": 2, "comments": 0, "comments_max": 1, "theta": 0.0,
            "readers": "serializable" });
        assert_eq!(given(&few), expected);
        let error = ArticlesOptions::from_given(&[("comments", "2"), ("comments-max", "1")]).unwrap_err();
        assert!(error.to_string().contains("comments"), "{error}");
    }
}
