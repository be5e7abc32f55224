//! How far an attempt has come with its lines.

/// How far an attempt has come. Its lines are joined before the body (*early*), in it, or after it; and when all attempts before
/// it in a line have finished, it may finish too, which fixes its place in the serial order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// The body runs, and no line has been joined.
    #[default]
    Body,
    /// The body has run to its end, and no line has been joined.
    BodyEnded,
    /// The body joins the lines of the segments that it reads; it writes none.
    ReadsInLine,
    /// Lines are joined, after the body.
    InLine,
    /// The lines of a footprint were joined before the body.
    Early,
    /// So they were, and the attempt has finished before the body.
    Tamed,
    /// Lines were joined before the body, and the attempt has finished after it.
    EarlyFinished,
    /// The attempt has finished, after the body.
    Finished,
}

impl Stage {
    /// True if the attempt has begun to join lines.
    #[inline(always)]
    pub(super) fn has_begun(self) -> bool {
        self >= Self::ReadsInLine
    }

    /// True if the attempt has finished: those behind it may finish.
    #[inline(always)]
    pub(super) fn has_finished(self) -> bool {
        self >= Self::Tamed
    }

    /// True if the attempt has joined lines before its body ran.
    #[inline(always)]
    pub(super) fn is_early(self) -> bool {
        (Self::Early..=Self::EarlyFinished).contains(&self)
    }

    /// True if the body is known to have run to its end.
    #[inline]
    pub(super) fn is_after_body(self) -> bool {
        matches!(self, Self::BodyEnded | Self::InLine | Self::Finished)
    }

    /// The stage after the attempt has finished.
    #[inline]
    pub(super) fn finished(self) -> Self {
        debug_assert!(self.has_begun() && !self.has_finished(), "{self:?}");
        if self == Self::Early { Self::EarlyFinished } else { Self::Finished }
    }
}
