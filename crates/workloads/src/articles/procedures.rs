//! The transactions as procedures.

use super::rows::{Article, Comment, CommentKey, User, text};
use hotrow::{Context, Direction, KeyRange, Operations, Procedure, Profile, TableRef, column_of};
use std::ops::ControlFlow;

/// The number of comments that a reader gets.
pub const SHOWN: u64 = 5;

/// The tables.
#[derive(Debug, Clone, Copy)]
pub struct ArticleTables {
    /// Articles by number.
    pub articles: TableRef<u32, Article>,
    /// Users by number.
    pub users: TableRef<u32, User>,
    /// Comments by article and number.
    pub comments: TableRef<CommentKey, Comment>,
}

/// Gets an article. Its output is false if the article is missing, or not whole.
#[derive(Debug, Clone, Copy)]
pub struct GetArticle {
    /// The tables.
    pub tables: ArticleTables,
    /// The article.
    pub article: u32,
}

impl Procedure for GetArticle {
    type Output = bool;

    fn name(&self) -> &'static str {
        "get_article"
    }

    fn profile(&self) -> Profile {
        Profile::READ_ONLY
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<bool>, C::Stop> {
        let number = self.article;
        let key = cx.value(number);
        let whole = cx.read(self.tables.articles, key, move |article| article.is_whole(number))?;
        Ok(cx.map(whole, |whole| whole == Some(true)))
    }
}

/// Gets the newest comments of an article. Its output is false if they are not those that the article states.
#[derive(Debug, Clone, Copy)]
pub struct GetComments {
    /// The tables.
    pub tables: ArticleTables,
    /// The article.
    pub article: u32,
    /// The number of comments that an article keeps.
    pub comments_max: u64,
}

impl Procedure for GetComments {
    type Output = bool;

    fn name(&self) -> &'static str {
        "get_comments"
    }

    fn profile(&self) -> Profile {
        Profile::READ_ONLY
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<bool>, C::Stop> {
        let Self { tables, article, comments_max } = *self;
        let key = cx.value(article);
        let stated = cx.read_columns(tables.articles, key, column_of!(Article, comments))?;
        let range = cx.value(KeyRange::from((article, 0)..=(article, u64::MAX)));
        let fold = |(found, last): &mut (u64, u64), (article, number): &CommentKey, comment: &Comment| {
            // The newest one has the highest number, and there are no gaps.
            let is_next = *found == 0 || *last == number + 1;
            if is_next && *comment == Comment::new(*article, comment.user, *number) {
                *found += 1;
            } else {
                *found = u64::MAX;
            }
            *last = *number;
            if *found < SHOWN { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let newest = cx.scan(tables.comments, range, Direction::Descending, (0, 0), fold)?;
        let both = cx.zip(stated, newest);
        Ok(cx.map(both, move |(stated, (found, last))| {
            stated.is_some_and(|stated| {
                let shown = stated.min(comments_max).min(SHOWN);
                found == shown && (shown == 0 || last + found == stated)
            })
        }))
    }
}

/// Adds a comment. Its output is false if there is no article, or no place for the comment.
#[derive(Debug, Clone, Copy)]
pub struct AddComment {
    /// The tables.
    pub tables: ArticleTables,
    /// The article.
    pub article: u32,
    /// The user.
    pub user: u32,
    /// The number of comments that an article keeps.
    pub comments_max: u64,
}

impl Procedure for AddComment {
    type Output = bool;

    fn name(&self) -> &'static str {
        "add_comment"
    }

    fn profile(&self) -> Profile {
        Profile { records: 3, ..Profile::UNKNOWN }
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<bool>, C::Stop> {
        let Self { tables, article, user, comments_max } = *self;
        let (key, nothing) = (cx.value(article), cx.value(()));
        let number = cx.update_columns(
            tables.articles,
            key,
            column_of!(Article, comments),
            nothing,
            |comments, ()| {
                *comments += 1;
                *comments - 1
            },
        )?;
        let exists = cx.map(number.clone(), |number| number.is_some());
        let number = cx.map(number, Option::unwrap_or_default);
        let key = cx.map(number.clone(), move |number| (article, number));
        let row = cx.map(number.clone(), move |number| Comment::new(article, user, number));
        let added = cx.insert_grouped(tables.comments, u64::from(article), key, row)?;
        // Before an article is full there is nothing to be deleted: no comment has this number.
        let oldest =
            cx.map(number, move |number| (article, number.checked_sub(comments_max).unwrap_or(u64::MAX)));
        cx.delete(tables.comments, oldest)?;
        let both = cx.zip(exists, added);
        Ok(cx.map(both, |(exists, added)| exists && added))
    }
}

/// Changes the last name of a user. Its output is false if there is no such user.
#[derive(Debug, Clone, Copy)]
pub struct UpdateUser {
    /// The tables.
    pub tables: ArticleTables,
    /// The user.
    pub user: u32,
    /// The number of the new name.
    pub name: u32,
}

impl Procedure for UpdateUser {
    type Output = bool;

    fn name(&self) -> &'static str {
        "update_user"
    }

    fn profile(&self) -> Profile {
        Profile { records: 1, ..Profile::UNKNOWN }
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<bool>, C::Stop> {
        let (key, name) = (cx.value(self.user), cx.value(text("Last", self.name.into())));
        let changed =
            cx.update_columns(self.tables.users, key, column_of!(User, last), name, |last, name| {
                *last = name
            })?;
        Ok(cx.map(changed, |changed| changed.is_some()))
    }
}
