//! The contents of a file before it is checked: resources with the values that were given, in the
//! order of the file.
//!
//! Defaults and meaning come later (`checks.rs`); the JSON view shows this.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::BTreeMap;

use fd_records::{ContentCipher, DigestKind};

use crate::resources::{ConnectRun, FileDaemon, Messages, PasswordKey, StatisticsKind};
use crate::syntax::directives::{Directive, Kind};

/// A configuration file as it was read.
#[derive(Debug)]
pub struct Document {
    /// The file's name, for messages.
    pub(crate) file: Vec<u8>,
    pub(crate) resources: Vec<RawResource>,
}

/// A value as it was given.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) enum Value {
    /// The directive is not in the file.
    #[default]
    Absent,
    Text(Vec<u8>),
    Secret(Secret),
    Flag(bool),
    Integer(u32),
    Long(u64),
    List(Vec<Vec<u8>>),
    /// The name of another resource.
    Reference(Vec<u8>),
    Cipher(ContentCipher),
    Digest(DigestKind),
    Statistics(StatisticsKind),
    /// The value is in another field of the resource.
    Elsewhere,
}

/// A password with its clear text, which only the JSON view shows.
#[derive(Clone, PartialEq)]
pub(crate) struct Secret {
    pub(crate) key: PasswordKey,
    pub(crate) clear: Vec<u8>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

/// One resource of the file.
#[derive(Debug)]
pub(crate) struct RawResource {
    pub(crate) kind: Kind,
    /// One for each directive of the kind's table.
    values: Vec<Value>,
    /// Destinations of a Messages resource.
    pub(crate) messages: Messages,
    /// `Connect` lines of a Schedule resource.
    pub(crate) runs: Vec<ConnectRun>,
    /// Listening addresses of a `FileDaemon` resource.
    pub(crate) addresses: Addresses,
    /// `FdSourceAddress`.
    pub(crate) source_address: Option<Ipv4Addr>,
    /// What `FdAddress` and `FdSourceAddress` have in vain.
    pub(crate) not_ipv4: BTreeMap<&'static str, Ipv6Addr>,
}

impl RawResource {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            values: vec![Value::Absent; kind.directives().len()],
            messages: Messages::default(),
            runs: Vec::new(),
            addresses: Addresses::Default,
            source_address: None,
            not_ipv4: BTreeMap::new(),
        }
    }

    /// The resource's name; empty while there is none.
    pub(crate) fn name(&self) -> &[u8] {
        match self.values.first() {
            Some(Value::Text(name)) => name,
            _ => b"",
        }
    }

    /// The value of the directive at this place of the table.
    pub(crate) fn at(&mut self, index: usize) -> Option<&mut Value> {
        self.values.get_mut(index)
    }

    /// The value of the directive of this canonical name.
    pub(crate) fn value(&self, name: &str) -> &Value {
        let index = self.kind.directives().iter().position(|directive| directive.name == name);
        debug_assert!(index.is_some(), "no directive {name} in {:?}", self.kind);
        index.and_then(|index| self.values.get(index)).unwrap_or(&Value::Absent)
    }

    /// Directives and values in table order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'static Directive, &Value)> {
        self.kind.directives().iter().zip(&self.values)
    }

    /// Takes over what only the second pass reads: lists, references, `Connect` lines.
    pub(crate) fn complete(&mut self, second: Self) {
        for (value, from_second) in self.values.iter_mut().zip(second.values) {
            if matches!(from_second, Value::List(_) | Value::Reference(_)) {
                *value = from_second;
            }
        }
        self.runs = second.runs;
    }
}

/// Where to listen, as the directives built it up (reference 06 §2.9).
#[derive(Debug)]
pub(crate) enum Addresses {
    /// None of the directives was given.
    Default,
    /// `FdPort` and `FdAddress`: one address.
    Single { address: Ipv4Addr, port: u16 },
    /// `FdAddresses`.
    Several(Vec<SocketAddr>),
}

impl Addresses {
    /// Whether the old style may be used: the new one was not.
    pub(crate) fn may_be_single(&self) -> bool {
        !matches!(self, Self::Several(_))
    }

    /// Whether the new style may be used: the old one was not.
    pub(crate) fn may_be_several(&self) -> bool {
        !matches!(self, Self::Single { .. })
    }

    /// Sets address or port of the old style.
    pub(crate) fn set_single(&mut self, address: Option<Ipv4Addr>, port: Option<u16>) {
        let (old_address, old_port) = match self {
            Self::Default | Self::Several(_) => (Ipv4Addr::UNSPECIFIED, FileDaemon::DEFAULT_PORT),
            Self::Single { address, port } => (*address, *port),
        };
        *self = Self::Single { address: address.unwrap_or(old_address), port: port.unwrap_or(old_port) };
    }

    /// Adds an address of the new style, once.
    pub(crate) fn add(&mut self, address: SocketAddr) {
        match self {
            Self::Default | Self::Single { .. } => *self = Self::Several(vec![address]),
            Self::Several(addresses) if addresses.contains(&address) => {}
            Self::Several(addresses) => addresses.push(address),
        }
    }

    /// All addresses; never empty.
    pub(crate) fn to_list(&self) -> Vec<SocketAddr> {
        match self {
            Self::Default => vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), FileDaemon::DEFAULT_PORT)],
            Self::Single { address, port } => vec![SocketAddr::new(IpAddr::V4(*address), *port)],
            Self::Several(addresses) => addresses.clone(),
        }
    }
}
