//! How much TLS a side needs, and what two sides make of it.

/// How much a side needs one kind of TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KindNeed {
    /// It can't.
    #[default]
    None,
    /// It can.
    Possible,
    /// It must.
    Required,
}

/// Both needs of one side; on the wire `tlspsk` = certificate need + 100 × PSK need
/// (reference 01 §10.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Need {
    /// Certificate TLS.
    pub tls: KindNeed,
    /// TLS-PSK.
    pub psk: KindNeed,
}

/// What two needs come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Negotiated {
    /// TLS with certificates.
    Certificate,
    /// TLS with the pre-shared key.
    Psk,
    /// No encryption, and both sides agree to that.
    Clear,
    /// One side requires what the other does not have.
    Refused,
}

impl KindNeed {
    const fn from_wire(number: i32) -> Self {
        match number {
            i32::MIN..=0 => Self::None,
            1 => Self::Possible,
            _ => Self::Required,
        }
    }

    /// The number for the wire.
    pub const fn to_wire(self) -> i32 {
        match self {
            Self::None => 0,
            Self::Possible => 1,
            Self::Required => 2,
        }
    }

    const fn is_possible(self) -> bool {
        matches!(self, Self::Possible | Self::Required)
    }

    const fn is_required(self) -> bool {
        matches!(self, Self::Required)
    }
}

impl Need {
    /// That of a side with these kinds of TLS, and whether it requires them.
    pub const fn of(certificates: bool, psk: bool, is_required: bool) -> Self {
        let has = if is_required { KindNeed::Required } else { KindNeed::Possible };
        Self { tls: if certificates { has } else { KindNeed::None }, psk: if psk { has } else { KindNeed::None } }
    }

    /// The number that a peer sent. Anything that no daemon sends counts as far as its digits go.
    pub const fn from_wire(number: i32) -> Self {
        Self { tls: KindNeed::from_wire(number % 100), psk: KindNeed::from_wire(number / 100) }
    }

    /// The number for the wire.
    pub const fn to_wire(self) -> i32 {
        self.tls.to_wire() + 100 * self.psk.to_wire()
    }

    /// What comes of our need and the peer's.
    ///
    /// The stock check of requirements is not symmetric; ours is: a side that requires encryption
    /// never talks in clear (reference 01 §10.3; every combination that works between stock daemons
    /// works here).
    pub(crate) const fn negotiate(self, peer: Self) -> Negotiated {
        if self.tls.is_possible() && peer.tls.is_possible() {
            Negotiated::Certificate
        } else if self.psk.is_possible() && peer.psk.is_possible() {
            Negotiated::Psk
        } else if self.is_required() || peer.is_required() {
            Negotiated::Refused
        } else {
            Negotiated::Clear
        }
    }

    const fn is_required(self) -> bool {
        self.tls.is_required() || self.psk.is_required()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of reference 01 §10.3; rows: server of the hello, columns: client. `x` is a
    /// refusal by whichever side.
    #[test]
    fn two_needs_come_to_what_the_reference_table_says() {
        let numbers = [0, 1, 2, 100, 101, 200, 202];
        let table = ["ccxccxx", "cttctxt", "xttxtxt", "ccxpppp", "cttptpt", "xxxpppp", "xttptpt"];
        for (row, cells) in numbers.iter().zip(table) {
            for (column, expected) in numbers.iter().zip(cells.chars()) {
                let got = match Need::from_wire(*row).negotiate(Need::from_wire(*column)) {
                    Negotiated::Clear => 'c',
                    Negotiated::Certificate => 't',
                    Negotiated::Psk => 'p',
                    Negotiated::Refused => 'x',
                };
                assert_eq!(got, expected, "server {row}, client {column}");
            }
        }
    }

    /// The table of reference 01 §10.1.
    #[test]
    fn a_need_follows_from_what_a_resource_says() {
        let cases = [
            (false, false, false, 0),
            (false, true, false, 100),
            (false, true, true, 200),
            (false, false, true, 0),
            (true, false, false, 1),
            (true, true, false, 101),
            (true, false, true, 2),
            (true, true, true, 202),
        ];
        for (certificates, psk, is_required, tlspsk) in cases {
            assert_eq!(Need::of(certificates, psk, is_required).to_wire(), tlspsk);
        }
    }

    #[test]
    fn a_need_is_read_from_the_number_that_it_writes() {
        for number in [0, 1, 2, 100, 101, 200, 202] {
            assert_eq!(Need::from_wire(number).to_wire(), number);
        }
        assert_eq!(Need::from_wire(-5), Need::default());
        assert_eq!(Need::from_wire(99_999), Need::of(true, true, true));
    }
}
