//! Mutants: mistakes of the protocol that tests must catch.

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// Ranges that were read are not validated.
    RangeForgotten,
    /// The fence is not compared.
    FenceForgotten,
    /// Deletions leave no tombstones.
    NoTombstones,
    /// Commits whose answer was lost are sent again.
    BlindRepetition,
    /// Lost commits are looked up by reading their marker, and not prevented.
    LookupWithoutWrite,
    /// Keys that were read are not validated.
    KeysForgotten,
    /// Keys of which it was read that they are absent are not validated.
    AbsencesForgotten,
    /// The ranges of sums are not checked.
    FloorForgotten,
}

impl Mutant {
    pub(crate) const ALL: [Self; 6] = [
        Self::RangeForgotten,
        Self::FenceForgotten,
        Self::NoTombstones,
        Self::BlindRepetition,
        Self::LookupWithoutWrite,
        Self::KeysForgotten,
    ];
}
