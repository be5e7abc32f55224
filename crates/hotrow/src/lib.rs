//! hotrow
