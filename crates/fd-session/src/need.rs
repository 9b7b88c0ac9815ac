//! How much TLS a side needs, and what two sides make of it.

/// Both needs of one side; on the wire `tlspsk` = certificate need + 100 × PSK need
/// (reference 01 §10.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Need {
    /// Certificate TLS: 0 none, 1 possible, 2 required.
    pub tls: u8,
    /// TLS-PSK: 0 none, 1 possible, 2 required.
    pub psk: u8,
}

/// What two needs come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Negotiated {
    /// TLS with certificates.
    Certificate,
    /// TLS with the pre-shared key.
    Psk,
    /// No encryption, and both sides agree to that.
    Clear,
    /// One side requires what the other does not have.
    Refused,
}

impl Need {
    /// The number that a peer sent. Anything that no daemon sends counts as far as its digits go.
    pub const fn from_wire(number: i32) -> Self {
        const fn clamp(n: i32) -> u8 {
            match n {
                i32::MIN..=0 => 0,
                1 => 1,
                _ => 2,
            }
        }
        Self { tls: clamp(number % 100), psk: clamp(number / 100) }
    }

    /// The number for the wire.
    pub const fn to_wire(self) -> i32 {
        self.tls as i32 + 100 * self.psk as i32
    }

    /// The same, but what was possible is required now.
    #[must_use]
    pub const fn required(self) -> Self {
        const fn raise(need: u8) -> u8 {
            if need == 0 { 0 } else { 2 }
        }
        Self { tls: raise(self.tls), psk: raise(self.psk) }
    }

    /// What comes of our need and the peer's.
    ///
    /// The stock check of requirements is not symmetric; ours is: a side that requires encryption
    /// never talks in clear (reference 01 §10.3; every combination that works between stock daemons
    /// works here).
    pub const fn negotiate(self, peer: Self) -> Negotiated {
        if self.tls >= 1 && peer.tls >= 1 {
            Negotiated::Certificate
        } else if self.psk >= 1 && peer.psk >= 1 {
            Negotiated::Psk
        } else if self.tls >= 2 || self.psk >= 2 || peer.tls >= 2 || peer.psk >= 2 {
            Negotiated::Refused
        } else {
            Negotiated::Clear
        }
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

    #[test]
    fn a_possible_need_becomes_a_required_one() {
        for (number, required) in [(0, 0), (1, 2), (2, 2), (100, 200), (101, 202), (200, 200), (202, 202)] {
            assert_eq!(Need::from_wire(number).required().to_wire(), required);
        }
    }

    #[test]
    fn a_need_is_read_from_the_number_that_it_writes() {
        for number in [0, 1, 2, 100, 101, 200, 202] {
            assert_eq!(Need::from_wire(number).to_wire(), number);
        }
        assert_eq!(Need::from_wire(-5), Need::default());
        assert_eq!(Need::from_wire(99_999), Need { tls: 2, psk: 2 });
    }
}
