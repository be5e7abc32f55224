//! Elements with numbers, by which conditions name them.

use std::sync::Arc;

/// An element of a collection, and a number that no other one of it ever has. Later elements have greater numbers.
pub(crate) struct Numbered<T> {
    pub(crate) element: Arc<T>,
    pub(crate) number: u64,
}

impl<T> Clone for Numbered<T> {
    fn clone(&self) -> Self {
        Self { element: self.element.clone(), number: self.number }
    }
}
