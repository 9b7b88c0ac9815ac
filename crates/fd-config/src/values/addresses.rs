//! Ports and addresses (reference 06 §2.9).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::BTreeMap;

use crate::resources::FileDaemon;
use crate::syntax::document::{Addresses, RawResource, Value};
use crate::syntax::error::{SyntaxError, fill};
use crate::syntax::reader::{Pass, Reader};
use crate::syntax::source::{AddressFamily, Source};
use crate::syntax::token::Token;
use crate::texts::{self, Text};
use crate::values::numbers;

/// A block of `FdAddresses` while it is read.
#[derive(Default)]
struct Block {
    host: Option<Vec<u8>>,
    port: Option<Vec<u8>>,
}

impl Reader<'_> {
    /// `FdPort`.
    pub(crate) fn port(&mut self, addresses: &mut Addresses) -> Result<Option<Value>, SyntaxError> {
        let text = self.bare(&texts::EXPECTED_A_PORT)?;
        if self.pass == Pass::First {
            let port = one_style(addresses.may_be_single()).and_then(|()| port_number(self.lexer.source(), &text));
            let port = port.map_err(|reason| self.not_added(&texts::CANNOT_ADD_PORT, [text, reason], texts::A_PORT))?;
            addresses.set_single(None, Some(port));
        }
        Ok(Some(Value::Elsewhere))
    }

    /// `FdAddress`.
    pub(crate) fn address(&mut self, resource: &mut RawResource) -> Result<Option<Value>, SyntaxError> {
        let style = one_style(resource.addresses.may_be_single());
        if let Some(address) = self.ipv4("FdAddress", &mut resource.not_ipv4, style)? {
            resource.addresses.set_single(Some(address), None);
        }
        Ok(Some(Value::Elsewhere))
    }

    /// `FdSourceAddress`.
    pub(crate) fn source_address(&mut self, resource: &mut RawResource) -> Result<Option<Value>, SyntaxError> {
        if let Some(address) = self.ipv4("FdSourceAddress", &mut resource.not_ipv4, Ok(()))? {
            // The wildcard address means none.
            resource.source_address = Some(address).filter(|address| !address.is_unspecified());
        }
        Ok(Some(Value::Elsewhere))
    }

    /// `FdAddresses`.
    pub(crate) fn addresses(&mut self, addresses: &mut Addresses) -> Result<Option<Value>, SyntaxError> {
        self.expect(Token::OpenBrace, &texts::ADDRESSES_NOT_A_BLOCK)?;
        let mut token = self.lexer.next_on_any_line()?;
        if token == Token::CloseBrace {
            return Err(self.lexer.fail(&texts::ADDRESSES_EMPTY, []));
        }
        loop {
            if !matches!(token, Token::Identifier | Token::UnquotedString) {
                return Err(self.lexer.fail_with_text(&texts::ADDRESSES_NOT_A_STRING));
            }
            let family = match self.lexer.text().to_ascii_lowercase().as_slice() {
                b"ip" | b"ipv6" => AddressFamily::V6,
                b"ipv4" => AddressFamily::V4,
                _ => return Err(self.lexer.fail_with_text(&texts::ADDRESSES_UNKNOWN_FAMILY)),
            };
            self.expect(Token::Equals, &texts::ADDRESSES_NO_EQUALS)?;
            self.expect(Token::OpenBrace, &texts::ADDRESS_NOT_A_BLOCK)?;
            let block = self.block()?;
            if self.pass == Pass::First {
                let style = one_style(addresses.may_be_several());
                match style.and_then(|()| block.resolve(self.lexer.source(), family)) {
                    Ok(pair) => addresses.add(pair),
                    Err(reason) => {
                        let host = block.host.unwrap_or_default();
                        let port = block.port.unwrap_or_default();
                        let values = [host, port, reason];
                        return Err(self.not_added(&texts::CANNOT_ADD_PAIR, values, texts::AN_ADDRESS));
                    }
                }
            }
            token = self.lexer.next_on_any_line()?;
            match token {
                Token::Identifier | Token::UnquotedString => {}
                Token::CloseBrace => return Ok(Some(Value::Elsewhere)),
                _ => return Err(self.lexer.fail_with_text(&texts::ADDRESSES_NOT_CLOSED)),
            }
        }
    }

    /// `addr = … port = … }`, in any order, each at most once.
    fn block(&mut self) -> Result<Block, SyntaxError> {
        let mut block = Block::default();
        let mut token = self.lexer.next_on_any_line()?;
        loop {
            if token != Token::Identifier {
                return Err(self.lexer.fail_with_text(&texts::ADDRESS_NO_IDENTIFIER));
            }
            let is_port = match self.lexer.text().to_ascii_lowercase().as_slice() {
                b"port" if block.port.is_some() => return Err(self.lexer.fail(&texts::ADDRESS_SECOND_PORT, [])),
                b"port" => true,
                b"addr" if block.host.is_some() => return Err(self.lexer.fail(&texts::ADDRESS_SECOND_ADDRESS, [])),
                b"addr" => false,
                _ => return Err(self.lexer.fail_with_text(&texts::ADDRESS_UNKNOWN_IDENTIFIER)),
            };
            self.expect(Token::Equals, &texts::ADDRESS_NO_EQUALS)?;
            if is_port {
                block.port = Some(self.bare(&texts::ADDRESS_BAD_PORT)?);
            } else {
                // Unlike in `FdAddress`, a mere number is no address.
                match self.lexer.next_on_any_line()? {
                    Token::Identifier | Token::UnquotedString => block.host = Some(self.lexer.text().to_vec()),
                    _ => return Err(self.lexer.fail_with_text(&texts::ADDRESS_BAD_HOST)),
                }
            }
            token = self.lexer.next_on_any_line()?;
            match token {
                Token::Identifier => {}
                Token::CloseBrace => return Ok(block),
                _ => return Err(self.lexer.fail_with_text(&texts::ADDRESS_NOT_CLOSED)),
            }
        }
    }

    fn expect(&mut self, wanted: Token, failure: &'static Text) -> Result<(), SyntaxError> {
        if self.lexer.next_on_any_line()? == wanted { Ok(()) } else { Err(self.lexer.fail_with_text(failure)) }
    }

    /// One word or number without quotes.
    fn bare(&mut self, failure: &'static Text) -> Result<Vec<u8>, SyntaxError> {
        if self.lexer.next_on_any_line()?.is_bare() {
            Ok(self.lexer.text().to_vec())
        } else {
            Err(self.lexer.fail_with_text(failure))
        }
    }

    /// One host, as an IPv4 address, if `style` permits one; an IPv6 address becomes 0.0.0.0, as in
    /// the stock daemon, and is noted. The second pass gives `None`.
    fn ipv4(
        &mut self,
        directive: &'static str,
        not_ipv4: &mut BTreeMap<&'static str, Ipv6Addr>,
        style: Result<(), Vec<u8>>,
    ) -> Result<Option<Ipv4Addr>, SyntaxError> {
        let text = self.bare(&texts::EXPECTED_AN_ADDRESS)?;
        if self.pass == Pass::Second {
            return Ok(None);
        }
        // The last one counts.
        not_ipv4.remove(directive);
        match style.and_then(|()| ip_address(self.lexer.source(), &text, AddressFamily::V4)) {
            Ok(IpAddr::V4(address)) => Ok(Some(address)),
            Ok(IpAddr::V6(address)) => {
                not_ipv4.insert(directive, address);
                Ok(Some(Ipv4Addr::UNSPECIFIED))
            }
            Err(reason) => {
                let usual = if directive == "FdAddress" { texts::AN_ADDRESS } else { texts::A_SOURCE_ADDRESS };
                Err(self.not_added(&texts::CANNOT_ADD_ADDRESS, [text, reason], usual))
            }
        }
    }

    /// An error of which the last value is the reason, with the advice that fits to that, or else
    /// the usual one.
    fn not_added<const N: usize>(&self, text: &'static Text, values: [Vec<u8>; N], usual: &str) -> SyntaxError {
        let is_mixed = values.last().is_some_and(|reason| reason == texts::MIXED_STYLES.as_bytes());
        let hint = if is_mixed { texts::ONE_STYLE } else { usual };
        SyntaxError { hint: Some(hint.to_owned()), ..self.lexer.fail(text, values) }
    }
}

impl Block {
    fn resolve(&self, source: &mut dyn Source, family: AddressFamily) -> Result<SocketAddr, Vec<u8>> {
        let port = match &self.port {
            Some(text) => port_number(source, text)?,
            None => FileDaemon::DEFAULT_PORT,
        };
        let address = match (&self.host, family) {
            (Some(host), _) => ip_address(source, host, family)?,
            (None, AddressFamily::V4) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            (None, AddressFamily::V6) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Ok(SocketAddr::new(address, port))
    }
}

/// The styles must not be mixed. This is said before a name is looked up, which may take its time.
fn one_style(permitted: bool) -> Result<(), Vec<u8>> {
    if permitted { Ok(()) } else { Err(texts::MIXED_STYLES.into()) }
}

/// A leading number from 1 to 65534, else a service's name.
fn port_number(source: &mut dyn Source, text: &[u8]) -> Result<u16, Vec<u8>> {
    match u16::try_from(numbers::leading_number(text)) {
        Ok(port @ 1..=65_534) => Ok(port),
        _ => source.service_port(text).ok_or_else(|| fill(texts::CANNOT_RESOLVE_SERVICE, &[text.to_vec()])),
    }
}

/// An IPv4 address as C's `inet_aton` reads it, an IPv6 address, or a host's name.
fn ip_address(source: &mut dyn Source, text: &[u8], family: AddressFamily) -> Result<IpAddr, Vec<u8>> {
    if let Some(address) = classic_ipv4(text) {
        return Ok(IpAddr::V4(address));
    }
    if let Some(address) = core::str::from_utf8(text).ok().and_then(|text| text.parse::<Ipv6Addr>().ok()) {
        return Ok(IpAddr::V6(address));
    }
    source
        .resolve_host(text, family)
        .map_err(|reason| fill(texts::CANNOT_RESOLVE_HOST, &[text.to_vec(), reason.into_bytes()]))
}

/// One to four numbers, decimal, octal (`0…`) or hexadecimal (`0x…`); the last fills the rest of
/// the 32 bits.
fn classic_ipv4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut parts = Vec::with_capacity(4);
    for part in text.split(|byte| *byte == b'.') {
        if parts.len() == 4 {
            return None;
        }
        parts.push(classic_number(part)?);
    }
    let last = parts.pop()?;
    let bits_left = 32 - 8 * u32::try_from(parts.len()).ok()?;
    if u64::from(last) >> bits_left != 0 {
        return None;
    }
    let mut value = last;
    for (index, part) in (0_u32..).zip(&parts) {
        value |= u32::from(u8::try_from(*part).ok()?) << (24 - 8 * index);
    }
    Some(Ipv4Addr::from(value))
}

fn classic_number(part: &[u8]) -> Option<u32> {
    let text = core::str::from_utf8(part).ok()?;
    let (digits, radix) = match part {
        [b'0', b'x' | b'X', ..] => (text.get(2..)?, 16),
        [b'0', _, ..] => (text.get(1..)?, 8),
        _ => (text, 10),
    };
    if digits.starts_with('+') {
        return None;
    }
    u32::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_inet_aton_reads_them() {
        let cases = [
            ("127.0.0.1", Some("127.0.0.1")),
            ("127.1", Some("127.0.0.1")),
            ("1.2.772", Some("1.2.3.4")),
            ("0x7f.1", Some("127.0.0.1")),
            ("0177.0.0.1", Some("127.0.0.1")),
            ("2130706433", Some("127.0.0.1")),
            ("0", Some("0.0.0.0")),
            ("256.1.1.1", None),
            ("1.2.3.4.5", None),
            ("1..2", None),
            ("1.2.3.", None),
            ("", None),
            ("host", None),
            ("4294967296", None),
            ("1.16777216", None),
            ("+1.2.3.4", None),
        ];
        for (text, address) in cases {
            assert_eq!(classic_ipv4(text.as_bytes()).map(|found| found.to_string()).as_deref(), address, "{text}");
        }
    }
}
