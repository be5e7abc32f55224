//! Your own datatype: what its author needs, and users do not.

#[doc(inline)]
pub use hotrow_core::{
    Access, EpochBox, Flags, Item, ItemId, Object, ObjectAccess, ObjectMeta, Observed, Pin, ReadValue,
    SavedWrite, Saver, Segment, StructureChange, StructureVersion, contained, graph::By, history::WriteKind,
};
