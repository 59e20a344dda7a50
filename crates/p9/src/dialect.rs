//! Which protocol a session speaks.

/// A negotiated protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `9P2000.L.sluice`: the messages of `9P2000.L`, and the service's promise to act on requests
    /// in the order in which they arrive. What Sluice speaks with itself.
    Sluice,
    /// `9P2000.L`: Linux calls, numeric errors.
    Linux,
    /// `9P2000`: Plan 9's own, for old clients.
    Plan9,
}

impl Dialect {
    /// The version string on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Dialect::Sluice => "9P2000.L.sluice",
            Dialect::Linux => "9P2000.L",
            Dialect::Plan9 => "9P2000",
        }
    }

    /// What a service answers to a client's proposal; `None` means `unknown`.
    ///
    /// Any other `9P2000.L.*` is answered by plain `9P2000.L`, and any other `9P2000*` by the base
    /// protocol, because a suffix names an extension that the client must be ready to lose.
    ///
    /// # Source
    /// version(5): "the server may respond with a version string identical to or an initial
    /// sub-string of" the client's, up to a period.
    #[must_use]
    pub fn negotiate(proposal: &[u8]) -> Option<Self> {
        if proposal == b"9P2000.L.sluice" || proposal.starts_with(b"9P2000.L.sluice.") {
            Some(Dialect::Sluice)
        } else if proposal == b"9P2000.L" || proposal.starts_with(b"9P2000.L.") {
            Some(Dialect::Linux)
        } else if proposal == b"9P2000" || proposal.starts_with(b"9P2000.") {
            Some(Dialect::Plan9)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_fall_back_to_what_they_extend() {
        assert_eq!(Dialect::negotiate(b"9P2000.L"), Some(Dialect::Linux));
        assert_eq!(Dialect::negotiate(b"9P2000.L.sluice"), Some(Dialect::Sluice));
        assert_eq!(Dialect::negotiate(b"9P2000.L.sluice.later"), Some(Dialect::Sluice));
        assert_eq!(Dialect::negotiate(b"9P2000.L.sluices"), Some(Dialect::Linux));
        assert_eq!(Dialect::negotiate(b"9P2000.u"), Some(Dialect::Plan9));
        assert_eq!(Dialect::negotiate(b"9P2000"), Some(Dialect::Plan9));
        assert_eq!(Dialect::negotiate(b"9P2000L"), None);
        assert_eq!(Dialect::negotiate(b"9P3000"), None);
    }
}
