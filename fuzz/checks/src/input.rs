//! What a check takes its choices from.

/// The bytes of one input, taken from the front. Where there are none left, choices are 0.
pub(crate) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self { rest: data }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    /// Two bytes as a number.
    pub(crate) fn number(&mut self) -> usize {
        usize::from(self.byte()) << 8 | usize::from(self.byte())
    }

    /// Up to so many bytes.
    pub(crate) fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// As many bytes as the next one says.
    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let count = self.byte();
        self.take(count.into())
    }

    /// As [`bytes`](Self::bytes), as text.
    pub(crate) fn text(&mut self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }
}

/// `bytes` cut into pieces of up to 32 bytes, some of them empty: as `seed` says.
pub(crate) fn pieces(bytes: &[u8], seed: u8) -> Vec<&[u8]> {
    let (mut rest, mut state) = (bytes, u32::from(seed) + 1);
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let size = usize::from(state.to_be_bytes()[0] % 33);
        let (piece, later) = rest.split_at(size.min(rest.len()));
        pieces.push(piece);
        rest = later;
    }
    pieces
}
