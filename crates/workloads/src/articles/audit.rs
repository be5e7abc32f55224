//! The check of articles, users and comments after a run.

use super::ArticlesOptions;
use super::rows::{Article, Comment, CommentKey, User, text};
use hotrow_driver::Check;

/// The findings after a run: first all comments, then all articles and users.
pub(super) struct Audit {
    options: ArticlesOptions,
    /// For each article the number of its comments, and the lowest and the highest number among them.
    found: Vec<(u64, u64, u64)>,
    articles: u64,
    users: u64,
    stated: u64,
    wrong_comment: Option<String>,
    wrong_count: Option<String>,
    wrong_row: Option<String>,
}

impl Audit {
    pub(super) fn new(options: &ArticlesOptions) -> Self {
        Self {
            options: *options,
            found: vec![(0, u64::MAX, 0); options.articles as usize],
            articles: 0,
            users: 0,
            stated: 0,
            wrong_comment: None,
            wrong_count: None,
            wrong_row: None,
        }
    }

    pub(super) fn comment(&mut self, (article, number): CommentKey, comment: &Comment) {
        let is_known = article < self.options.articles && comment.user < self.options.users;
        if !is_known || *comment != Comment::new(article, comment.user, number) {
            let words =
                format!("comment {number} of article {article}, by user {}, is not one", comment.user);
            self.wrong_comment.get_or_insert(words);
            return;
        }
        let (count, low, high) = &mut self.found[article as usize];
        (*count, *low, *high) = (*count + 1, number.min(*low), number.max(*high));
    }

    pub(super) fn article(&mut self, number: u32, article: &Article) {
        self.articles += 1;
        self.stated += article.comments;
        if !article.is_whole(number) {
            self.wrong_row.get_or_insert(format!("article {number} has changed"));
        }
        let Some((count, low, high)) = self.found.get(number as usize).copied() else { return };
        let expected = article.comments.min(self.options.comments_max);
        let is_dense = count == 0 || high + 1 == article.comments && high - low + 1 == count;
        if count != expected || !is_dense {
            self.wrong_count.get_or_insert(format!(
                "article {number} states {} comments, so there should be {expected}; there are {count}, from {low} to {high}",
                article.comments
            ));
        }
    }

    pub(super) fn user(&mut self, number: u32, user: &User) {
        self.users += 1;
        let last =
            user.last.as_str().split_once(' ').and_then(|(_, rest)| rest.split('.').next()?.parse().ok());
        let is_whole = User { last: User::new(number).last, ..*user } == User::new(number)
            && last.is_some_and(|named: u64| user.last == text("Last", named));
        if !is_whole {
            self.wrong_row.get_or_insert(format!("user {number} is torn"));
        }
    }

    pub(super) fn checks(self, added: u64) -> Vec<Check> {
        let ArticlesOptions { articles, users, comments, .. } = self.options;
        let verdict = |wrong: Option<String>| wrong.map_or(Ok(()), Err);
        let all_there = match (self.articles, self.users) {
            found if found == (articles.into(), users.into()) => Ok(()),
            (found, users) => Err(format!("{found} articles and {users} users are there")),
        };
        let expected = u64::from(articles) * comments + added;
        let counted = match self.stated {
            stated if stated == expected => Ok(()),
            stated => Err(format!("articles state {stated} comments; {expected} were added")),
        };
        vec![
            Check::new("all articles and users are there", all_there),
            Check::new("articles and users are whole", verdict(self.wrong_row)),
            Check::new("each comment is one of a user on an article", verdict(self.wrong_comment)),
            Check::new("each article's comments are those that it states", verdict(self.wrong_count)),
            Check::new("comments stated = comments added", counted),
        ]
    }
}
