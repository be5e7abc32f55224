//! The rows of the three tables.

use hotrow::{Text, Value};
use std::fmt::Write as _;

/// The further attributes that H-Store's rows have, and nobody reads: `attr01` and so on, of eight bytes each.
pub type Attributes<const N: usize> = [u64; N];

/// An article.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value)]
#[value(inline)]
pub struct Article {
    /// `a_title`.
    pub title: Text<104>,
    /// `a_text`.
    pub text: Text<104>,
    /// `a_num_comments`: the number of comments that were ever added.
    #[value(group = "comments")]
    pub comments: u64,
    /// `a_attr01` to `a_attr15`.
    pub attributes: Attributes<15>,
}

/// A user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value)]
#[value(inline)]
pub struct User {
    /// `u_firstname`.
    pub first: Text<104>,
    /// `u_lastname`, which changes.
    #[value(group = "name")]
    pub last: Text<104>,
    /// `u_password`.
    pub password: Text<104>,
    /// `u_email`.
    pub email: Text<104>,
    /// `u_attr01` to `u_attr15`.
    pub attributes: Attributes<15>,
}

/// A comment. Its key is the article's number, and its own number among the article's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value)]
#[value(inline)]
pub struct Comment {
    /// `c_u_id`: the user's number.
    pub user: u32,
    /// `c_text`.
    pub text: Text<100>,
    /// `c_attr01` to `c_attr10`.
    pub attributes: Attributes<10>,
}

/// The key of a comment: the article's number, and its own.
pub type CommentKey = (u32, u64);

/// Returns a text of 100 characters that names what it belongs to again and again, so that one that is torn, or another's, is
/// noticed.
pub fn text<const N: usize>(what: &str, number: u64) -> Text<N> {
    let mut words = String::with_capacity(160);
    while words.len() < 100 {
        // Writing to a string cannot fail.
        let _ = write!(words, "{what} {number}. ");
    }
    words.truncate(100);
    Text::prefix_of(&words)
}

impl Article {
    /// The article of a number, with so many comments.
    pub fn new(number: u32, comments: u64) -> Self {
        let text_of = |what| text(what, number.into());
        Self { title: text_of("Title"), text: text_of("Text"), comments, attributes: [number.into(); 15] }
    }

    /// True if it is the article of this number, whatever the number of its comments.
    pub fn is_whole(&self, number: u32) -> bool {
        *self == Self::new(number, self.comments)
    }
}

impl User {
    /// The user of a number.
    pub fn new(number: u32) -> Self {
        let text_of = |what| text(what, number.into());
        Self {
            first: text_of("First"),
            last: text_of("Last"),
            password: text_of("Password"),
            email: text_of("Email"),
            attributes: [number.into(); 15],
        }
    }
}

impl Comment {
    /// The comment of a user on an article, with its number there.
    pub fn new(article: u32, user: u32, number: u64) -> Self {
        let of = u64::from(article) << 32 | u64::from(user);
        Self { user, text: text("Comment", number ^ of.rotate_left(17)), attributes: [number; 10] }
    }
}
