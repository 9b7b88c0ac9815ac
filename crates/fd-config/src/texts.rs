//! Every text that the user sees, in one place: the stock daemon's messages with the place in its
//! source that they name (operators and their scripts depend on both), and our hints.
//!
//! `%s` in a template is replaced by the next value. No logic here.

/// In which form a text is printed (reference 06 §1.9, §7.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// `Config error: TEXT` with line, column and file.
    ConfigError,
    /// An `ERROR TERMINATION` without a place.
    Termination,
    /// `ABORTING …`: the stock daemon aborts.
    Abort,
}

/// A text of the stock daemon.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Text {
    /// The place that the stock daemon names for it.
    pub(crate) location: &'static str,
    /// With `%s` for values.
    pub(crate) template: &'static str,
    pub(crate) form: Form,
    /// Our advice, without a final dot.
    pub(crate) hint: Option<&'static str>,
    /// Which of its values are secret when the directive is.
    pub(crate) secrets: &'static [usize],
}

impl Text {
    const fn new(location: &'static str, template: &'static str) -> Self {
        Self { location, template, form: Form::ConfigError, hint: None, secrets: &[] }
    }

    const fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    const fn secrets(mut self, secrets: &'static [usize]) -> Self {
        self.secrets = secrets;
        self
    }

    const fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }
}

/// The name in front of messages until the daemon's own name is known.
pub(crate) const PROGRAM: &str = "bacula-fd";

macro_rules! texts {
    ($($name:ident = $location:literal, $template:literal $(, $method:ident($argument:expr))*;)*) => {
        $(pub(crate) static $name: Text = Text::new($location, $template)$(.$method($argument))*;)*
    };
}

pub(crate) const QUOTE_DIGITS: &str =
    "a value made of digits only must stand in double quotes here, for example \"12345\"";
pub(crate) const CLOSE_QUOTE: &str = "a double quote that opens a value must be closed; put \\\" for a quote inside it";
/// A value is missing.
pub(crate) const VALUE_MISSING: &str = "the value must begin on the same line as the =";
/// A word where a directive should begin.
pub(crate) const STRAY_WORD: &str = "a directive begins with a word of letters and blanks only; if the line before is a \
                                     port or an address, nothing may follow its value";
/// An include with a complete name.
pub(crate) const INCLUDE_ABSOLUTE: &str =
    "make the file, or take the line out; wildcards are not expanded: write @\"|sh -c 'cat /etc/bacula/fd.d/*.conf'\"";
/// An include with another name.
pub(crate) const INCLUDE_RELATIVE: &str = "the name is relative to the daemon's current directory, and wildcards are not \
                                           expanded: write a name that begins with /";
const NO_QUOTES: &str = "this value must be written without quotes";

// Lexer, reference 06 §1.10.
texts! {
    READ_PAST_END = "lex.c:296",
        "get_char: called after EOF. You may have a open double quote without the closing double quote.",
        form(Form::Abort), hint(CLOSE_QUOTE);
    TOKEN_TOO_LONG = "lex.c:355", "Config token too long, file: %s, line %s, begins at line %s",
        form(Form::Termination), hint("one value can have 4999 bytes; is a double quote not closed?");
    NOT_A_POSITIVE_INTEGER = "lex.c:428", "expected a positive integer number, got: %s",
        hint("write a whole number without a unit, for example 20");
    NEGATIVE_INTEGER = "lex.c:434", "expected a positive integer number, got: %s",
        hint("the number can't be negative");
    UTF16_BIG_ENDIAN = "lex.c:573",
        "This config file appears to be in an unsupported Unicode format (UTF-16be). Please resave as UTF-8\n",
        hint("iconv -f UTF-16 -t UTF-8 converts it");
    CANNOT_OPEN_QUOTED_INCLUDE = "lex.c:719", "Cannot open included config file %s: %s\n";
    CANNOT_OPEN_INCLUDE = "lex.c:747", "Cannot open included config file %s: %s\n";
    EXPECTED_A_NAME = "lex.c:877", "expected a name, got %s: %s";
    NAME_TOO_LONG = "lex.c:881", "name %s length %s too long, max is 127\n";
    EXPECTED_A_STRING = "lex.c:889", "expected a string, got %s: %s", secrets(&[1]);
    TOO_MANY_INCLUDES = "lex.c:747", "Cannot open included config file %s: %s\n",
        hint("do the included files include each other?");
}

// Parser, reference 06 §1.10.
texts! {
    EXPECTED_EQUALS_AFTER_NAMES = "parse_conf.c:386", "expected an =, got: %s",
        hint("write: director = NAME = all, !skipped");
    EXPECTED_EQUALS_AFTER_FILE = "parse_conf.c:407", "expected an =, got: %s",
        hint("write: append = \"/path/to/file\" = all, !skipped");
    BAD_CUSTOM_MESSAGE_TYPE = "parse_conf.c:460", "message type: Unable to add %s message type. %s";
    UNKNOWN_MESSAGE_TYPE = "parse_conf.c:467", "message type: %s not found",
        hint("types are separated by commas, each without a blank before the comma");
    BAD_RESOURCE_NAME = "parse_conf.c:500", "%s\n",
        hint("a resource name is made of letters, digits, blanks and : . - _");
    NAME_REDEFINED = "parse_conf.c:506", "Attempt to redefine \"%s\" from \"%s\" to \"%s\" referenced on line %s : %s\n",
        hint("the directive stands twice in this resource; remove one");
    STRING_REDEFINED = "parse_conf.c:546",
        "Attempt to redefine \"%s\" from \"%s\" to \"%s\" referenced on line %s : %s\n",
        hint("the directive stands twice in this resource; remove one"), secrets(&[1, 2, 4]);
    DIRECTORY_REDEFINED = "parse_conf.c:577",
        "Attempt to redefine \"%s\" from \"%s\" to \"%s\" referenced on line %s : %s\n",
        hint("the directive stands twice in this resource; remove one");
    PASSWORD_REDEFINED = "parse_conf.c:610",
        "Attempt to redefine \"%s\" from \"%s\" to \"%s\" referenced on line %s : %s\n",
        hint("the directive stands twice in this resource; remove one"), secrets(&[1, 2, 4]);
    UNKNOWN_REFERENCE = "parse_conf.c:634", "Could not find config Resource \"%s\" referenced on line %s : %s\n";
    REFERENCE_REDEFINED = "parse_conf.c:639", "Attempt to redefine resource \"%s\" referenced on line %s : %s\n",
        hint("the directive stands twice in this resource; remove one");
    BAD_LIST_END = "parse_conf.c:732",
        "Found unexpected characters in resource list in Directive \"%s\" at the end of line %s : %s\n",
        hint("put the comma directly after the item, and a closing brace on its own line or after a ;");
    NOT_A_SPEED = "parse_conf.c:844", "expected a speed number, got: %s",
        hint("write a number and one of k, kb, m, mb, for example 500 kb/s");
    EXPECTED_A_SPEED = "parse_conf.c:855", "expected a speed, got: %s", hint(NO_QUOTES);
    NOT_A_DURATION = "parse_conf.c:910", "expected a time period, got: %s",
        hint("write a number and a unit, for example 5 min or 1 hour 30 min; mind that m alone is months");
    EXPECTED_A_DURATION = "parse_conf.c:916", "expected a time period, got: %s", hint(NO_QUOTES);
    NOT_A_BOOL = "parse_conf.c:951", "Expect YES, NO, TRUE, or FALSE, got: %s";
    NOT_A_STATISTICS_TYPE = "parse_conf.c:1001", "Expected a Statistics backend type keyword, got: %s",
        hint("write CSV or Graphite");
    NOT_A_CIPHER = "filed_conf.c:262", "Expected a Cipher Type keyword, got: %s",
        hint("write aes128, aes192, aes256 or blowfish");
    NOT_A_DIGEST = "filed_conf.c:286", "Expected a Cipher Type keyword, got: %s",
        hint("write md5, sha1, sha256, xxhash64 or xxh3_128");
    CANNOT_OPEN_FILE = "parse_conf.c:1611", "Cannot open config file \"%s\": %s\n";
    UTF16_LITTLE_ENDIAN = "parse_conf.c:1632",
        "Currently we cannot handle UTF-16 source files. Please convert the conf file to UTF-8\n",
        hint("iconv -f UTF-16 -t UTF-8 converts it");
    EXPECTED_A_RESOURCE = "parse_conf.c:1636", "Expected a Resource name identifier, got: %s",
        hint("here a resource begins, for example Director {; is there a closing brace too many before?");
    UNKNOWN_RESOURCE = "parse_conf.c:1652", "expected resource name, got: %s",
        hint("resources are Director, FileDaemon, Messages, Console, Statistics and Schedule");
    NOT_IN_RESOURCE = "parse_conf.c:1663", "not in resource definition: %s",
        hint("directives stand between exactly one { and its }");
    EXPECTED_EQUALS = "parse_conf.c:1680", "expected an equals, got: %s", secrets(&[0]);
    UNKNOWN_DIRECTIVE = "parse_conf.c:1698",
        "Keyword \"%s\" not permitted in this resource.\n\
         Perhaps you left the trailing brace off of the previous resource.";
    NAME_MISSING = "parse_conf.c:1709", "Name not specified for resource", hint("every resource needs a Name = …");
    DIRECTIVE_MISSING = "parse_conf.c:1713", "\"%s\" directive is required in \"%s\" resource, but not found.\n";
    SECOND_RESOURCE = "parse_conf.c:1713",
        "Attempt to define second \"%s\" resource named \"%s\" is not permitted.\n",
        hint("give the two resources different names, or remove one");
    UNEXPECTED_TOKEN = "parse_conf.c:1722", "unexpected token %s %s in resource definition";
    UNCLOSED_RESOURCE = "parse_conf.c:1733", "End of conf file reached with unclosed resource.",
        hint("a closing brace is missing");
}

// Addresses, reference 06 §2.9.
const WRITE_ADDRESSES: &str = "write: FDAddresses = { ipv4 = { addr = 192.0.2.1; port = 9102; } }";
/// Advice for an address that is none.
pub(crate) const AN_ADDRESS: &str = "write an address of this host, for example 192.0.2.1, or a name that it can look \
                                     up; to listen on all, leave the line out";
/// Advice for an address to call from that is none.
pub(crate) const A_SOURCE_ADDRESS: &str =
    "write an address of this host, for example 192.0.2.1, or a name that it can look up, or leave the line out";
/// Advice for a port that is none.
pub(crate) const A_PORT: &str = "a port is a number from 1 to 65534 or a name from /etc/services";
/// Advice for directives that exclude one another.
pub(crate) const ONE_STYLE: &str = "FDPort and FDAddress can't stand beside FDAddresses: take them out, and write the \
                                    port into each block, as in { addr = 192.0.2.1; port = 9102; }";
texts! {
    ADDRESSES_NOT_A_BLOCK = "address_conf.c:458", "Expected a block to begin with { but got: %s", hint(WRITE_ADDRESSES);
    ADDRESSES_EMPTY = "address_conf.c:463", "Empty addr block is not allowed", hint(WRITE_ADDRESSES);
    ADDRESSES_NOT_A_STRING = "address_conf.c:467", "Expected a string but got: %s", hint(WRITE_ADDRESSES);
    ADDRESSES_UNKNOWN_FAMILY = "address_conf.c:482", "Expected a string [ip|ipv4|ipv6] but got: %s",
        hint(WRITE_ADDRESSES);
    ADDRESSES_NO_EQUALS = "address_conf.c:491", "Expected an equal = but got: %s", hint(WRITE_ADDRESSES);
    ADDRESS_NOT_A_BLOCK = "address_conf.c:495", "Expected a block to begin with { but got: %s", hint(WRITE_ADDRESSES);
    ADDRESS_NO_IDENTIFIER = "address_conf.c:502", "Expected an identifier [addr|port] but got: %s",
        hint(WRITE_ADDRESSES);
    ADDRESS_SECOND_PORT = "address_conf.c:507", "Only one port per address block", hint(WRITE_ADDRESSES);
    ADDRESS_SECOND_ADDRESS = "address_conf.c:513", "Only one addr per address block", hint(WRITE_ADDRESSES);
    ADDRESS_UNKNOWN_IDENTIFIER = "address_conf.c:517", "Expected a identifier [addr|port] but got: %s",
        hint(WRITE_ADDRESSES);
    ADDRESS_NO_EQUALS = "address_conf.c:521", "Expected a equal =, got: %s", hint(WRITE_ADDRESSES);
    ADDRESS_BAD_PORT = "address_conf.c:529", "Expected a number or a string but got: %s", hint(NO_QUOTES);
    ADDRESS_BAD_HOST = "address_conf.c:535", "Expected an IP number or a hostname but got: %s", hint(NO_QUOTES);
    ADDRESS_NOT_CLOSED = "address_conf.c:547", "Expected a end of block with } but got: %s", hint(WRITE_ADDRESSES);
    CANNOT_ADD_PAIR = "address_conf.c:553", "Cannot add hostname(%s) and port(%s) to addrlist (%s)";
    ADDRESSES_NOT_CLOSED = "address_conf.c:559", "Expected an end of block with } but got: %s", hint(WRITE_ADDRESSES);
    EXPECTED_AN_ADDRESS = "address_conf.c:568", "Expected an IP number or a hostname, got: %s", hint(NO_QUOTES);
    CANNOT_ADD_ADDRESS = "address_conf.c:573", "Cannot add port (%s) to (%s)";
    EXPECTED_A_PORT = "address_conf.c:582", "Expected a port number or string, got: %s", hint(NO_QUOTES);
    CANNOT_ADD_PORT = "address_conf.c:587", "Cannot add port (%s) to (%s)";
}
/// Why an address can't be added.
pub(crate) const MIXED_STYLES: &str = "Old style addresses cannot be mixed with new style. Try removing Port=nnn.";
/// Why a port can't be added; `%s` is a service's name.
pub(crate) const CANNOT_RESOLVE_SERVICE: &str = "Cannot resolve service(%s)";
/// Why an address can't be added; a host's name and the resolver's text.
pub(crate) const CANNOT_RESOLVE_HOST: &str = "Cannot resolve hostname(%s) %s";

// Schedule, reference 06 §12.2.
texts! {
    CONNECT_NO_EQUALS = "runres_conf.c:101", "Expected an equals, got: %s", hint("write: MaxConnectTime = \"2 hours\"");
    CONNECT_NOT_A_DURATION = "runres_conf.c:108", "expected a time period, got: %s",
        hint("write one word such as 2h, or quote it: \"2 hours\"");
    BAD_WEEK = "parse_conf.c:1253", "Week number out of range (0-53)";
    BAD_DAY = "parse_conf.c:1236", "Day number out of range (1-31)";
    BAD_WEEK_RANGE = "parse_conf.c:1416", "Week number out of range (0-53)";
    UNKNOWN_WORD = "parse_conf.c:1269", "Job type field: %s in run record not found";
    UNEXPECTED_RUN_TOKEN = "parse_conf.c:1276", "Unexpected token: %s:%s",
        hint("write the schedule without quotes, for example: Connect = mon-fri at 22:00");
    AT_MISSING = "parse_conf.c:1320", "Time must be preceded by keyword AT.", hint("write: at 22:00");
    BAD_MINUTE = "parse_conf.c:1344", "Bad time specification.", hint("write two digits for the minutes: at 1:05");
    BAD_TIME = "parse_conf.c:1363", "Bad time specification.", hint("hours are 0 to 23, minutes 00 to 59");
    BAD_DAY_RANGE = "parse_conf.c:1394", "Bad day range specification.", hint("days are 1 to 31");
    BAD_RANGE_START = "parse_conf.c:1441", "Invalid month, week or position day range";
    BAD_RANGE_END = "parse_conf.c:1456", "Invalid month, weekday or position range";
}

// Names, reference 06 §1.10.
/// `%s` is the character.
pub(crate) const ILLEGAL_CHARACTER: &str = "Illegal character \"%s\" in name.\n";
/// A name of no characters.
pub(crate) const NAME_EMPTY: &str = "Name must be at least one character long.\n";
/// Custom message types.
pub(crate) const TOO_MANY_CUSTOM_TYPES: &str = "Too much custom type";
/// Custom message types.
pub(crate) const BAD_CUSTOM_TYPE: &str = "Invalid format";
/// A program include without a program.
pub(crate) const NO_SUCH_FILE: &str = "No such file or directory";
/// More bytes than a configuration can have.
pub(crate) const FILE_TOO_LARGE: &str = "File too large";
/// Includes that never end.
pub(crate) const TOO_MANY_OPEN_FILES: &str = "Too many open files";
/// Printed in place of a password in our explanations.
pub(crate) const HIDDEN: &str = "(hidden)";
/// Before each advice.
pub(crate) const HINT: &str = "hint:";

/// Where an unfinished construct began.
pub(crate) fn begins_at(line: u32) -> String {
    format!("Problem probably begins at line {line}.\n")
}

pub(crate) fn begins_on_line(line: u32) -> String {
    format!("the word began on line {line}")
}

pub(crate) fn did_you_mean(word: &str) -> String {
    format!("did you mean \"{word}\"?")
}

/// A directive whose `=` is missing.
pub(crate) fn write_equals(directive: &str) -> String {
    format!("an = is missing; write: {directive} = value")
}

/// A required directive that is not there.
pub(crate) fn line_is_missing(directive: &str, kind: &str) -> String {
    let value = match directive {
        "WorkingDirectory" => "/var/lib/bacula",
        "PidDirectory" => "/run/bacula",
        "Password" => "\"that of the Client resource in the Director\"",
        _ => "value",
    };
    format!("write into the {kind} resource that ends here: {directive} = {value}")
}

pub(crate) fn belongs_to(resources: &[&str], here: &str) -> String {
    format!("this is a directive of {}, not of {here}", resources.join(" and "))
}

pub(crate) fn resource_inside(opened: &str, here: &str) -> String {
    format!("{opened} is a resource of its own; is the closing brace of the {here} resource missing?")
}

pub(crate) fn known_resources(kind: &str, names: &[String]) -> String {
    if names.is_empty() {
        format!("there is no {kind} resource")
    } else {
        format!("the {kind} resources are {}", names.join(", "))
    }
}

/// A start-up check: its text, and the places that the two programs name for it.
pub(crate) struct Check {
    pub(crate) template: &'static str,
    pub(crate) daemon: &'static str,
    /// `None`: `bfdjson` does not check this.
    pub(crate) json: Option<&'static str>,
    /// Our advice; empty where there is none.
    pub(crate) hint: &'static str,
}

macro_rules! checks {
    ($($name:ident = $daemon:literal, $json:expr, $template:literal $(, $hint:literal)?;)*) => {
        $(pub(crate) static $name: Check =
            Check { daemon: $daemon, json: $json, template: $template, hint: concat!($($hint)?) };)*
    };
}

// Reference 06 §6.1 and §13. The file's name comes after the other values.
checks! {
    NO_FILE_DAEMON = "filed.c:383", Some("bfdjson.c:596"),
        "No File daemon resource defined in %s\nWithout that I don't know who I am :-(",
        "write: FileDaemon { Name = NAME-fd; WorkingDirectory = /var/lib/bacula; Pid Directory = /run/bacula }";
    SECOND_FILE_DAEMON = "filed.c:388", Some("bfdjson.c:601"), "Only one Client resource permitted in %s",
        "FileDaemon and Client are the same resource; remove one of the two";
    NO_MESSAGES = "filed.c:396", Some("bfdjson.c:609"), "No Messages resource defined in %s",
        "write: Messages { Name = Standard; director = NAME-dir = all, !skipped, !restored }";
    DAEMON_WITHOUT_CA = "filed.c:445", Some("bfdjson.c:627"),
        "Neither \"TLS CA Certificate File\" or \"TLS CA Certificate Dir\" are defined for File daemon in %s.",
        "write: TLS CA Certificate File = FILE, with the certificate that has signed those of its peers";
    DAEMON_TLS_CONTEXT = "filed.c:461", None, "Failed to initialize TLS context for File daemon \"%s\" in %s.";
    NO_KEY_PAIR = "filed.c:490", Some("bfdjson.c:639"),
        "\"PKI Key Pair\" must be defined for File daemon \"%s\" in %s if either \"PKI Sign\" or \"PKI Encrypt\" are enabled.",
        "write: PKI Keypair = FILE, with this client's private key and its certificate, in PEM form";
    BAD_CERTIFICATE = "filed.c:506", None, "Failed to load public certificate for File daemon \"%s\" in %s.";
    BAD_PRIVATE_KEY = "filed.c:512", None, "Failed to load private key for File daemon \"%s\" in %s.";
    BAD_SIGNER_KEY = "filed.c:542", None, "Failed to load private key from file %s for File daemon \"%s\" in %s.";
    BAD_SIGNER = "filed.c:549", None,
        "Failed to load trusted signer certificate from file %s for File daemon \"%s\" in %s.";
    BAD_MASTER_KEY = "filed.c:589", None, "Failed to load master key certificate from file %s for File daemon \"%s\" in %s.";
    NO_DIRECTOR = "filed.c:605", Some("bfdjson.c:652"), "No Director resource defined in %s",
        "write: Director { Name = NAME-dir; Password = \"that of the Client resource in the Director\" }";
    PLEASE_CORRECT = "filed.c:229", Some("bfdjson.c:231"), "Please correct configuration file: %s";
    WORKING_DIRECTORY_MISSING = "util.c:1057", None, "Working Directory: \"%s\" not found. Cannot continue.",
        "make the directory (install -d -m 700 DIRECTORY), or correct WorkingDirectory in the FileDaemon resource";
    WORKING_DIRECTORY_IS_NONE = "util.c:1061", None, "Working Directory: \"%s\" is not a directory. Cannot continue.",
        "correct WorkingDirectory in the FileDaemon resource: it must be a directory";
}

const HINT_TLS_CERTIFICATE: &str =
    "write: TLS Certificate = FILE, in PEM form; or take TLS Enable out, and the password encrypts the connection";
const HINT_TLS_KEY: &str =
    "write: TLS Key = FILE, the private key of the certificate, in PEM form without a passphrase";
const HINT_TLS_CA: &str = "write: TLS CA Certificate File = FILE, with the certificate that has signed those of its peers; or TLS Verify Peer = no";

/// The checks of a resource whose TLS connections we accept.
pub(crate) struct ServerTlsChecks {
    pub(crate) no_certificate: Check,
    pub(crate) no_key: Check,
    pub(crate) no_ca: Check,
    pub(crate) context: Check,
}

/// Each with its places in the two programs, and the context's in the daemon.
macro_rules! server_tls {
    ($resource:literal, $certificate:literal $json_certificate:literal, $key:literal $json_key:literal,
     $ca:literal $json_ca:literal, $context:literal) => {
        ServerTlsChecks {
            no_certificate: Check {
                daemon: $certificate,
                json: Some($json_certificate),
                template: concat!("\"TLS Certificate\" file not defined for ", $resource, " \"%s\" in %s."),
                hint: HINT_TLS_CERTIFICATE,
            },
            no_key: Check {
                daemon: $key,
                json: Some($json_key),
                template: concat!("\"TLS Key\" file not defined for ", $resource, " \"%s\" in %s."),
                hint: HINT_TLS_KEY,
            },
            no_ca: Check {
                daemon: $ca,
                json: Some($json_ca),
                template: concat!(
                    "Neither \"TLS CA Certificate File\" or \"TLS CA Certificate Dir\" are defined for ",
                    $resource,
                    " \"%s\" in %s. At least one CA certificate store is required when using \"TLS Verify Peer\"."
                ),
                hint: HINT_TLS_CA,
            },
            context: Check {
                daemon: $context,
                json: None,
                template: concat!("Failed to initialize TLS context for ", $resource, " \"%s\" in %s."),
                hint: "",
            },
        }
    };
}

pub(crate) static DIRECTOR_TLS: ServerTlsChecks = server_tls!("Director", "filed.c:658" "bfdjson.c:673",
    "filed.c:664" "bfdjson.c:679", "filed.c:670" "bfdjson.c:685", "filed.c:689");
pub(crate) static CONSOLE_TLS: ServerTlsChecks = server_tls!("Console", "filed.c:723" "bfdjson.c:710",
    "filed.c:729" "bfdjson.c:716", "filed.c:735" "bfdjson.c:722", "filed.c:754");

/// A `DisableCommand` that is no command.
pub(crate) const UNKNOWN_COMMAND: &str = "Disable Command \"%s\" not found.\n";
/// Stands before messages of the TLS library.
pub(crate) const OPENSSL_LINE: &str = "message.c:1839-0 openssl.c:108 ";
/// Hints for `bacula-fd.toml`.
pub(crate) const WRITE_TRUE_OR_FALSE: &str = "write true or false, without quotes";
pub(crate) const WRITE_A_NUMBER: &str = "write a whole number, without quotes";
pub(crate) const WRITE_A_WORD: &str = "write one of the words of this setting, in double quotes";
pub(crate) const WRITE_QUOTES: &str = "write the value in double quotes";

/// A value that TOML takes for a bare word.
pub(crate) fn quote(word: &str) -> String {
    format!("a text must be in double quotes: \"{word}\"")
}

/// A bare word that some settings take as a text, and others as true or false.
pub(crate) fn true_or_quoted(word: &str) -> String {
    format!("write true or false, without quotes; where the setting has words, \"{word}\" in double quotes")
}

/// A size in `bacula-fd.toml`.
pub(crate) const EXPECTED_A_SIZE: &str = "a number of bytes is expected, such as 67108864 or \"64 MiB\"";

/// A setting that is on or off, and may be written as a word.
pub(crate) const EXPECTED_YES_OR_NO: &str = "\"yes\" or \"no\"";

pub(crate) fn not_an_address(text: &str) -> String {
    format!("{text:?}: an address and its port are expected, such as \"127.0.0.1:19102\"")
}

pub(crate) fn number_out_of_range(key: &str, number: i64, most: u16) -> String {
    format!("{key} must be 1 to {most}, not {number}")
}

pub(crate) fn seconds_out_of_range(key: &str, number: i64, most: u32) -> String {
    format!("{key} must be 1 to {most} seconds, not {number}")
}

pub(crate) fn too_few_signatures(least: u64) -> String {
    format!("kept_signatures must be 0 or at least {least} bytes")
}

pub(crate) fn too_little_memory(least: u64) -> String {
    format!("memory must be at least {least} bytes")
}

pub(crate) const LOGIN_IS_ALL: &str = "connection.login is for the whole login, its first packet included";
pub(crate) const DEPTH_IS_ONE: &str = "job.depth is for all three of lookups, reading and writing";
pub(crate) const MANNERS_DO: &str = "job.manners watches what other programs need";
pub(crate) const UNIT_NICE: &str = "backups have the nice value 10 with job.manners; Nice= in the unit is for all jobs";
pub(crate) const UNIT_IO: &str = "IOSchedulingClass= and IOSchedulingPriority= in the unit";
pub(crate) const S3_IS_A_PACKAGE: &str = "the plugin is there if the package ferrofd-s3 is installed";

pub(crate) fn removed(name: &str, instead: &str) -> String {
    format!("the setting {name} is no more: {instead}")
}
