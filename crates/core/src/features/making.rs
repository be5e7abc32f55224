//! The making of engines.

use crate::features::retries::RetryPolicy;
use crate::features::stamp::{CommitSteps, Commits};
use crate::features::state::Shared;
use crate::kernel::engine::Engine;
use crate::kernel::protocol::Protocol;
use hotrow_sync::Arc;
use hotrow_sync::profile::name_memory;

impl<P: Protocol> Default for Engine<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Protocol> Engine<P> {
    /// Makes an engine with the default retry policy.
    pub fn new() -> Self {
        Self::with_policy(RetryPolicy::default())
    }

    /// Makes an engine of the protocol's first variant, with this retry policy.
    pub fn with_policy(policy: RetryPolicy) -> Self {
        let first = P::VARIANTS.first().and_then(|variant| P::options(variant.name));
        Self::with_options(&first.expect("a protocol has a variant, and knows its name"), policy)
    }

    /// Makes an engine of the variant that `name` stands for. `None` if the protocol has no variant of this name.
    pub fn named(name: &str, policy: RetryPolicy) -> Option<Self> {
        P::options(name).map(|options| Self::with_options(&options, policy))
    }

    /// Makes an engine of the variant that has these options.
    pub fn with_options(options: &P::Options, policy: RetryPolicy) -> Self {
        Self::made(options, policy, None)
    }

    /// As [`with_options`](Self::with_options), with steps between the halves of commits.
    pub fn with_commit_steps(options: &P::Options, policy: RetryPolicy, steps: impl CommitSteps<P>) -> Self {
        Self::made(options, policy, Some(Commits::new(Box::new(steps))))
    }

    fn made(options: &P::Options, policy: RetryPolicy, commits: Option<Arc<Commits<P>>>) -> Self {
        let engine = Self::with_features(options, |id| Shared::new(id, policy, commits));
        name_memory(&engine.shared.features.gate, || String::from("the gate of the oldest"));
        engine
    }
}
