//! The coherence directory: the caches that hold each line.

/// No core owns the line.
pub(crate) const NOBODY: u16 = u16::MAX;

/// The state of one line, except for the set of its sharers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirectoryEntry {
    /// The private cache that holds the line exclusively, modified or not; or [`NOBODY`].
    pub(crate) owner: u16,
    /// The sockets whose shared cache holds the line, one bit each.
    pub(crate) sockets: u64,
    /// The end of the line's last move between caches; an earlier request waits until then.
    pub(crate) busy_until_ps: u64,
}

/// One coherence directory for all lines.
///
/// Lines are numbered in the order of first touch. Unlike addresses, the numbers are the same in each run of
/// the same program, so that results do not depend on where the allocator places data.
#[derive(Debug)]
pub(crate) struct Directory {
    /// An open-addressing hash table from the address of a line plus one to the line's number. 0 marks a free
    /// entry.
    slots: Vec<(u64, u32)>,
    lines: Vec<DirectoryEntry>,
    /// One bit for each private cache, `words` words for each line.
    sharers: Vec<u64>,
    words: usize,
}

impl Directory {
    /// An empty directory for `caches` private caches.
    pub(crate) fn new(caches: usize) -> Self {
        Self { slots: vec![(0, 0); 1024], lines: Vec::new(), sharers: Vec::new(), words: caches.div_ceil(64) }
    }

    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.slots.len() - 1);
        while self.slots[at].0 != key && self.slots[at].0 != 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        at
    }

    /// Returns the number of the line at `line` (the line's address, not the byte's). Amortized constant time.
    #[inline]
    pub(crate) fn number(&mut self, line: u64) -> u32 {
        let at = self.slot(line + 1);
        if self.slots[at].0 != 0 { self.slots[at].1 } else { self.add(line, at) }
    }

    #[cold]
    fn add(&mut self, line: u64, mut at: usize) -> u32 {
        if self.lines.len() * 2 >= self.slots.len() {
            let larger = vec![(0, 0); self.slots.len() * 4];
            for (key, number) in std::mem::replace(&mut self.slots, larger) {
                if key != 0 {
                    let at = self.slot(key);
                    self.slots[at] = (key, number);
                }
            }
            at = self.slot(line + 1);
        }
        let number = self.lines.len() as u32;
        self.slots[at] = (line + 1, number);
        self.lines.push(DirectoryEntry { owner: NOBODY, sockets: 0, busy_until_ps: 0 });
        self.sharers.resize(self.sharers.len() + self.words, 0);
        number
    }

    /// The number of lines touched so far.
    pub(crate) fn touched(&self) -> usize {
        self.lines.len()
    }

    #[inline]
    pub(crate) fn line(&mut self, number: u32) -> &mut DirectoryEntry {
        &mut self.lines[number as usize]
    }

    /// The caches that hold a copy, one bit each.
    #[inline]
    pub(crate) fn sharers(&self, number: u32) -> &[u64] {
        &self.sharers[number as usize * self.words..][..self.words]
    }

    #[inline]
    pub(crate) fn holds(&self, number: u32, cache: usize) -> bool {
        self.sharers[number as usize * self.words + cache / 64] >> (cache % 64) & 1 == 1
    }

    #[inline]
    pub(crate) fn add_sharer(&mut self, number: u32, cache: usize) {
        self.sharers[number as usize * self.words + cache / 64] |= 1 << (cache % 64);
    }

    /// Removes the copy of a private cache.
    pub(crate) fn drop_copy(&mut self, number: u32, cache: usize) {
        self.sharers[number as usize * self.words + cache / 64] &= !(1 << (cache % 64));
        let line = self.line(number);
        if line.owner == cache as u16 {
            line.owner = NOBODY;
        }
    }

    /// Invalidates all copies but that of `cache`, which then owns the line.
    pub(crate) fn make_exclusive(&mut self, number: u32, cache: usize, socket: usize) {
        let start = number as usize * self.words;
        self.sharers[start..start + self.words].fill(0);
        self.add_sharer(number, cache);
        let line = self.line(number);
        line.owner = cache as u16;
        line.sockets &= 1 << socket;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_in_order_of_first_touch_through_growth() {
        let mut directory = Directory::new(2);
        let address = |line: u64| line.wrapping_mul(0x1234_5677) % (1 << 40);
        for line in 0..10_000 {
            assert_eq!(directory.number(address(line)), line as u32);
        }
        for line in 0..10_000 {
            assert_eq!(directory.number(address(line)), line as u32);
        }
        assert_eq!(directory.touched(), 10_000);
    }

    #[test]
    fn an_exclusive_line_is_held_by_its_owner_only() {
        let mut directory = Directory::new(1024);
        let number = directory.number(5);
        directory.add_sharer(number, 3);
        directory.add_sharer(number, 1023);
        directory.make_exclusive(number, 700, 0);
        assert!(directory.holds(number, 700));
        assert!(!directory.holds(number, 3) && !directory.holds(number, 1023));
        directory.drop_copy(number, 700);
        assert_eq!(directory.line(number).owner, NOBODY);
        assert!(!directory.holds(number, 700));
    }
}
