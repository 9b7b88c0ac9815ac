//! The tables: which resource has which directives, of which type, and which are required.
//!
//! Order and spelling are the stock daemon's: they determine which missing directive is reported
//! first and the order of the JSON view (reference 06 §3).

use crate::resources::DestinationKind;

/// The types of resources.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Director,
    FileDaemon,
    Messages,
    Console,
    Statistics,
    Schedule,
}

/// What a directive's value looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    Name,
    String,
    /// A string that may come several times; each destination keeps the one in force.
    Command,
    Directory,
    Password,
    Bool,
    Integer,
    Time,
    Speed,
    StringList,
    Reference(Kind),
    Port,
    Address,
    SourceAddress,
    Addresses,
    Cipher,
    Digest,
    Backend,
    Destination(DestinationKind),
    Connect,
}

/// One row of a table.
#[derive(Debug)]
pub(crate) struct Directive {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    pub(crate) required: bool,
}

const fn optional(name: &'static str, kind: Type) -> Directive {
    Directive { name, kind, required: false }
}

const fn required(name: &'static str, kind: Type) -> Directive {
    Directive { name, kind, required: true }
}

const fn destination(name: &'static str, kind: DestinationKind) -> Directive {
    optional(name, Type::Destination(kind))
}

impl Kind {
    /// All, in the order in which the JSON view lists them.
    pub(crate) const ALL: [Self; 6] =
        [Self::Director, Self::FileDaemon, Self::Messages, Self::Console, Self::Statistics, Self::Schedule];

    /// The type of this name, ignoring case; `Client` is another name of `FileDaemon`.
    pub(crate) fn of(name: &[u8]) -> Option<Self> {
        if name.eq_ignore_ascii_case(b"Client") {
            return Some(Self::FileDaemon);
        }
        Self::ALL.into_iter().find(|kind| kind.name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// The canonical name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Director => "Director",
            Self::FileDaemon => "FileDaemon",
            Self::Messages => "Messages",
            Self::Console => "Console",
            Self::Statistics => "Statistics",
            Self::Schedule => "Schedule",
        }
    }

    /// Its directives in table order.
    pub(crate) const fn directives(self) -> &'static [Directive] {
        match self {
            Self::Director => DIRECTOR,
            Self::FileDaemon => FILE_DAEMON,
            Self::Messages => MESSAGES,
            Self::Console => CONSOLE,
            Self::Statistics => STATISTICS,
            Self::Schedule => SCHEDULE,
        }
    }
}

const FILE_DAEMON: &[Directive] = &[
    required("Name", Type::Name),
    optional("Description", Type::String),
    optional("FdPort", Type::Port),
    optional("FdAddress", Type::Address),
    optional("FdAddresses", Type::Addresses),
    optional("FdSourceAddress", Type::SourceAddress),
    required("WorkingDirectory", Type::Directory),
    required("PidDirectory", Type::Directory),
    optional("SubsysDirectory", Type::Directory),
    optional("PluginDirectory", Type::Directory),
    optional("PluginOptions", Type::StringList),
    optional("SnapshotCommand", Type::String),
    optional("ScriptsDirectory", Type::Directory),
    optional("MaximumConcurrentJobs", Type::Integer),
    optional("Messages", Type::Reference(Kind::Messages)),
    optional("SdConnectTimeout", Type::Time),
    optional("HeartbeatInterval", Type::Time),
    optional("MaximumNetworkBufferSize", Type::Integer),
    optional("PkiSignatures", Type::Bool),
    optional("PkiEncryption", Type::Bool),
    optional("PkiKeyPair", Type::Directory),
    optional("PkiSigner", Type::StringList),
    optional("PkiMasterKey", Type::StringList),
    optional("PkiCipher", Type::Cipher),
    optional("PkiDigest", Type::Digest),
    optional("TlsAuthenticate", Type::Bool),
    optional("TlsEnable", Type::Bool),
    optional("TlsPskEnable", Type::Bool),
    optional("TlsRequire", Type::Bool),
    optional("TlsCaCertificateFile", Type::Directory),
    optional("TlsCaCertificateDir", Type::Directory),
    optional("TlsCertificate", Type::Directory),
    optional("TlsKey", Type::Directory),
    optional("VerId", Type::String),
    optional("MaximumBandwidthPerJob", Type::Speed),
    optional("CommCompression", Type::Bool),
    optional("DisableCommand", Type::StringList),
    optional("MaximumJobErrorCount", Type::Integer),
    optional("SdPacketCheck", Type::Integer),
];

const DIRECTOR: &[Directive] = &[
    required("Name", Type::Name),
    optional("Description", Type::String),
    required("Password", Type::Password),
    optional("Address", Type::String),
    optional("DirPort", Type::Integer),
    optional("Monitor", Type::Bool),
    optional("Remote", Type::Bool),
    optional("TlsAuthenticate", Type::Bool),
    optional("TlsEnable", Type::Bool),
    optional("TlsPskEnable", Type::Bool),
    optional("TlsRequire", Type::Bool),
    optional("TlsVerifyPeer", Type::Bool),
    optional("TlsCaCertificateFile", Type::Directory),
    optional("TlsCaCertificateDir", Type::Directory),
    optional("TlsCertificate", Type::Directory),
    optional("TlsKey", Type::Directory),
    optional("TlsDhFile", Type::Directory),
    optional("TlsAllowedCn", Type::StringList),
    optional("MaximumBandwidthPerJob", Type::Speed),
    optional("DisableCommand", Type::StringList),
    optional("Console", Type::Reference(Kind::Console)),
    optional("ConnectToDirector", Type::Bool),
    optional("Schedule", Type::Reference(Kind::Schedule)),
    optional("ReconnectionTime", Type::Time),
    optional("AllowedBackupDirectories", Type::StringList),
    optional("ExcludedBackupDirectories", Type::StringList),
    optional("AllowedScriptDirectories", Type::StringList),
    optional("AllowedRestoreDirectories", Type::StringList),
    optional("BackupJobUser", Type::String),
    optional("RestoreJobUser", Type::String),
];

const MESSAGES: &[Directive] = &[
    required("Name", Type::Name),
    optional("Description", Type::String),
    optional("MailCommand", Type::Command),
    optional("OperatorCommand", Type::Command),
    destination("Syslog", DestinationKind::Syslog),
    destination("Mail", DestinationKind::Mail),
    destination("MailOnError", DestinationKind::MailOnError),
    destination("MailOnSuccess", DestinationKind::MailOnSuccess),
    destination("File", DestinationKind::File),
    destination("Append", DestinationKind::Append),
    destination("Stdout", DestinationKind::Stdout),
    destination("Stderr", DestinationKind::Stderr),
    destination("Director", DestinationKind::Director),
    destination("Console", DestinationKind::Console),
    destination("Operator", DestinationKind::Operator),
    destination("Catalog", DestinationKind::Catalog),
];

const CONSOLE: &[Directive] = &[
    required("Name", Type::Name),
    optional("Description", Type::String),
    required("Password", Type::Password),
    optional("Address", Type::String),
    optional("DirPort", Type::Integer),
    optional("TlsAuthenticate", Type::Bool),
    optional("TlsEnable", Type::Bool),
    optional("TlsPskEnable", Type::Bool),
    optional("TlsRequire", Type::Bool),
    optional("TlsVerifyPeer", Type::Bool),
    optional("TlsCaCertificateFile", Type::Directory),
    optional("TlsCaCertificateDir", Type::Directory),
    optional("TlsCertificate", Type::Directory),
    optional("TlsKey", Type::Directory),
    optional("TlsDhFile", Type::Directory),
    optional("TlsAllowedCn", Type::StringList),
];

const STATISTICS: &[Directive] = &[
    required("Name", Type::Name),
    optional("Description", Type::String),
    optional("Prefix", Type::String),
    optional("Metrics", Type::StringList),
    optional("Interval", Type::Time),
    optional("Port", Type::Integer),
    optional("Host", Type::String),
    required("Type", Type::Backend),
    optional("File", Type::String),
    optional("MangleMetric", Type::Bool),
];

const SCHEDULE: &[Directive] = &[
    required("Name", Type::Name),
    optional("Description", Type::String),
    optional("Enabled", Type::Bool),
    optional("Connect", Type::Connect),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_begins_with_its_name_and_names_nothing_twice() {
        for kind in Kind::ALL {
            let names: Vec<&str> = kind.directives().iter().map(|directive| directive.name).collect();
            assert_eq!(names[0], "Name");
            let mut sorted = names.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), names.len(), "{kind:?}");
        }
    }

    #[test]
    fn client_is_a_file_daemon_and_case_does_not_count() {
        assert_eq!(Kind::of(b"CLIENT"), Some(Kind::FileDaemon));
        assert_eq!(Kind::of(b"messages"), Some(Kind::Messages));
        assert_eq!(Kind::of(b"Storage"), None);
    }
}
