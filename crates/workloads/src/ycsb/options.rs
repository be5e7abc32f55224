//! Presets, and the options that override them.

/// YCSB's core workloads, as plor §6.1 runs them: with transactions of several operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Update-heavy: half reads, half blind writes, theta 0.99.
    A,
    /// Read-heavy: 95 % reads, the rest blind writes, theta 0.5 as in the paper (YCSB's own is 0.99).
    B,
    /// Read-only, theta 0.99.
    C,
    /// Half reads, half read-modify-writes, theta 0.99.
    F,
}

impl Preset {
    /// All presets and the words for them.
    pub const NAMES: [(&'static str, Preset); 4] =
        [Self::A.named(), Self::B.named(), Self::C.named(), Self::F.named()];

    const fn named(self) -> (&'static str, Preset) {
        (self.name(), self)
    }

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
            Self::C => "c",
            Self::F => "f",
        }
    }

    /// How unevenly records are drawn.
    pub fn theta(self) -> f64 {
        if self == Self::B { 0.5 } else { 0.99 }
    }

    /// The share of operations that read.
    pub fn read_ratio(self) -> f64 {
        match self {
            Self::A | Self::F => 0.5,
            Self::B => 0.95,
            Self::C => 1.0,
        }
    }

    /// The share of writes that are read-modify-writes; the others are blind.
    pub fn rmw_share(self) -> f64 {
        if self == Self::F { 1.0 } else { 0.0 }
    }
}

/// What to load and run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct YcsbOptions {
    /// Where the shares come from that were not given.
    pub preset: Preset,
    /// Records, at least as many as a transaction has operations. The paper has ten million.
    pub records: u64,
    /// The size of a value, in bytes, from 1.
    pub value_bytes: u32,
    /// The zipfian theta, from 0 (uniform).
    pub theta: f64,
    /// The share of operations that read, from 0 to 1.
    pub read_ratio: f64,
    /// The share of writes that are read-modify-writes, from 0 to 1; the others are blind.
    pub rmw_share: f64,
    /// Operations of a small transaction. The paper has 4.
    pub ops: u32,
    /// The share of transactions that are big, from 0 to 1. The paper has a tenth.
    pub big_share: f64,
    /// Operations of a big transaction. The paper has 16.
    pub big_ops: u32,
}

impl YcsbOptions {
    /// A preset with a million records of 1,000 bytes (YCSB's ten fields of a hundred) and the paper's transactions.
    pub fn of(preset: Preset) -> Self {
        Self {
            preset,
            records: 1_000_000,
            value_bytes: 1_000,
            theta: preset.theta(),
            read_ratio: preset.read_ratio(),
            rmw_share: preset.rmw_share(),
            ops: 4,
            big_share: 0.1,
            big_ops: 16,
        }
    }
}
