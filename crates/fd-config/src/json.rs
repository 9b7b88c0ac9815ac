//! The JSON view: what `bfdjson` prints of a file (reference 06 §13).
//!
//! Only what is in the file is shown, passwords in clear text. Bytes that are not UTF-8 are passed
//! through.

use fd_messages::MessageType;

use crate::resources::{ConnectRun, Destination, DestinationKind, FileDaemon, Messages, StatisticsKind, TypeSet};
use crate::syntax::directives::{Directive, Type};
use crate::syntax::document::{Document, RawResource, Value};

/// What to show.
#[derive(Clone, Copy, Default)]
pub struct JsonOptions<'a> {
    /// `-D`: without the types of the resources.
    pub data_only: bool,
    /// `-r`: only resources of this type, ignoring case.
    pub resource: Option<&'a [u8]>,
    /// `-n`: only resources of this name, ignoring case.
    pub name: Option<&'a [u8]>,
    /// `-l`: only directives for which this returns true, by their canonical names. Counts with
    /// `resource` only.
    pub directives: Option<&'a dyn Fn(&str) -> bool>,
}

impl core::fmt::Debug for JsonOptions<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("JsonOptions")
            .field("data_only", &self.data_only)
            .field("resource", &self.resource)
            .field("name", &self.name)
            .field("directives", &self.directives.is_some())
            .finish()
    }
}

/// How resources are framed.
struct Layout {
    open: &'static str,
    /// Before a resource's directives; `%` is replaced by its type or name.
    head: &'static str,
    tail: &'static str,
    close: &'static str,
}

const PLAIN: Layout = Layout { open: "[", head: "{\n  \"%\": {", tail: "\n  }\n}", close: "\n]\n" };
const DATA: Layout = Layout { open: "[", head: " {", tail: "\n }", close: "\n]\n" };
const ONE: Layout = Layout { open: "{", head: "", tail: "", close: "\n}\n" };
const SELECTED: Layout = Layout { open: "{", head: "\"%\": {\n", tail: "\n }", close: "\n}\n" };

/// More types than this, and a destination is shown as "All" with exceptions.
const MOST_LISTED: usize = 9;
/// Types that "All" does not include.
const NOT_IN_ALL: [MessageType; 3] = [MessageType::Debug, MessageType::Events, MessageType::Saved];

impl Document {
    /// The file as JSON text, resources by type and name.
    pub fn to_json(&self, options: &JsonOptions<'_>) -> Vec<u8> {
        let selected = options.directives.is_some() && options.resource.is_some();
        let layout = match (options.data_only, options.resource.is_some() && options.name.is_some(), selected) {
            (true, ..) => DATA,
            (_, true, _) => ONE,
            (.., true) => SELECTED,
            _ => PLAIN,
        };
        let everything = |_: &str| true;
        let filter = options.directives.filter(|_| selected).unwrap_or(&everything);
        let mut json = layout.open.as_bytes().to_vec();
        for (index, resource) in self.shown(options).into_iter().enumerate() {
            if index > 0 {
                json.extend_from_slice(b",\n");
            }
            let title = if selected { resource.name() } else { resource.kind.name().as_bytes() };
            let mut parts = layout.head.split('%');
            json.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
            if let Some(rest) = parts.next() {
                json.extend_from_slice(title);
                json.extend_from_slice(rest.as_bytes());
            }
            join(&mut json, &directives(resource, filter), |item, out| {
                out.extend_from_slice(b"\n    ");
                out.extend_from_slice(item);
            });
            json.extend_from_slice(layout.tail.as_bytes());
        }
        json.extend_from_slice(layout.close.as_bytes());
        json
    }

    /// The resources in the order of the view.
    fn shown(&self, options: &JsonOptions<'_>) -> Vec<&RawResource> {
        let mut shown: Vec<&RawResource> = self
            .resources
            .iter()
            .filter(|resource| {
                options.resource.is_none_or(|kind| resource.kind.name().as_bytes().eq_ignore_ascii_case(kind))
            })
            .filter(|resource| options.name.is_none_or(|name| resource.name().eq_ignore_ascii_case(name)))
            .collect();
        shown.sort_by(|left, right| (left.kind, left.name()).cmp(&(right.kind, right.name())));
        if options.resource.is_some() && options.name.is_some() {
            shown.truncate(1);
        }
        shown
    }
}

/// Writes items with a comma directly after each but the last.
fn join<T>(out: &mut Vec<u8>, items: &[T], mut write: impl FnMut(&T, &mut Vec<u8>)) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(item, out);
    }
}

/// `"KEY": VALUE` of each directive that is shown.
fn directives(resource: &RawResource, filter: &dyn Fn(&str) -> bool) -> Vec<Vec<u8>> {
    let mut items = Vec::new();
    let mut destinations_shown = false;
    for (directive, value) in resource.entries().filter(|(directive, _)| filter(directive.name)) {
        if let Type::Destination(_) = directive.kind {
            if *value != Value::Absent && !destinations_shown {
                destinations_shown = true;
                items.push(destinations(resource, filter));
            }
        } else if let Some(value) = shown_value(resource, directive, value) {
            let mut item = format!("\"{}\": ", directive.name).into_bytes();
            item.extend_from_slice(&value);
            items.push(item);
        }
    }
    items
}

fn shown_value(resource: &RawResource, directive: &Directive, value: &Value) -> Option<Vec<u8>> {
    let first = || resource.addresses.to_list().first().copied();
    match directive.kind {
        Type::Port => {
            let port = first()?.port();
            return (port != FileDaemon::DEFAULT_PORT).then(|| port.to_string().into_bytes());
        }
        Type::Address => {
            let address = first()?.ip().to_string();
            return (address != "0.0.0.0").then(|| string(address.as_bytes()));
        }
        Type::SourceAddress => return resource.source_address.map(|address| string(address.to_string().as_bytes())),
        Type::Connect => return (!resource.runs.is_empty()).then(|| runs(&resource.runs)),
        _ => {}
    }
    match value {
        Value::Absent | Value::Elsewhere => None,
        Value::Text(text) | Value::Reference(text) => Some(string(text)),
        Value::Secret(secret) => Some(string(&secret.clear)),
        Value::Flag(flag) => Some(flag.to_string().into_bytes()),
        Value::Integer(number) => Some(number.cast_signed().to_string().into_bytes()),
        Value::Long(number) => Some(number.to_string().into_bytes()),
        Value::List(items) => {
            let shown: Vec<Vec<u8>> = items.iter().map(|item| string(item)).collect();
            Some([b"[", shown.join(&b", "[..]).as_slice(), b"]"].concat())
        }
        Value::Cipher(cipher) => Some(string(cipher.name().as_bytes())),
        Value::Digest(digest) => digest.directive().map(|word| string(word.as_bytes())),
        Value::Statistics(StatisticsKind::Csv) => Some(string(b"CSV")),
        Value::Statistics(StatisticsKind::Graphite) => Some(string(b"Graphite")),
    }
}

/// A string with the few escapes that the view has, and those without which it would be no JSON.
fn string(text: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in text {
        match byte {
            b'"' | b'\\' => quoted.extend_from_slice(&[b'\\', *byte]),
            b'\n' => quoted.extend_from_slice(b"\\n"),
            b'\r' => quoted.extend_from_slice(b"\\r"),
            0..b' ' => quoted.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    quoted
}

fn strings(items: &[Vec<u8>]) -> Vec<u8> {
    let shown: Vec<Vec<u8>> = items.iter().map(|item| string(item)).collect();
    [b"[", shown.join(&b","[..]).as_slice(), b"]"].concat()
}

/// All destinations of a Messages resource: by kind, within a kind the newest first.
fn destinations(resource: &RawResource, filter: &dyn Fn(&str) -> bool) -> Vec<u8> {
    let messages = &resource.messages;
    let mut shown: Vec<(&str, &Destination)> = Vec::new();
    for directive in resource.kind.directives() {
        if let (Type::Destination(kind), true) = (directive.kind, filter(directive.name)) {
            let of_kind = messages.destinations.iter().rev().filter(|destination| destination.kind == kind);
            shown.extend(of_kind.map(|destination| (directive.name, destination)));
        }
    }
    let mut json = b"\"Destinations\": [".to_vec();
    join(&mut json, &shown, |(name, destination), out| {
        let mut fields = vec![
            [b"\"Type\": ".as_slice(), &string(name.as_bytes())].concat(),
            [b"\"MsgTypes\": ".as_slice(), &strings(&type_names(messages, destination.types))].concat(),
        ];
        if !destination.place.is_empty() {
            let places: Vec<Vec<u8>> = destination.place.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
            fields.push([b"\"Where\": ".as_slice(), &strings(&places)].concat());
        }
        if sends_mail(destination.kind) {
            let command = destination.command.as_ref().map_or_else(|| b"null".to_vec(), |command| string(command));
            fields.push([b"\"Command\": ".as_slice(), &command].concat());
        }
        out.extend_from_slice(b"\n      {");
        join(out, &fields, |field, out| {
            out.extend_from_slice(b"\n        ");
            out.extend_from_slice(field);
        });
        out.extend_from_slice(b"\n      }");
    });
    json.extend_from_slice(b"\n    ]");
    json
}

const fn sends_mail(kind: DestinationKind) -> bool {
    matches!(
        kind,
        DestinationKind::Mail
            | DestinationKind::MailOnError
            | DestinationKind::MailOnSuccess
            | DestinationKind::Operator
    )
}

/// The types of a destination: the list, or "All" with exceptions; then the custom types, sorted.
fn type_names(messages: &Messages, types: TypeSet) -> Vec<Vec<u8>> {
    let set = MessageType::ALL.iter().filter(|kind| types.contains(kind.number())).count();
    let mut names: Vec<Vec<u8>> = Vec::new();
    if set > MOST_LISTED {
        names.push(b"All".to_vec());
    }
    for kind in MessageType::ALL {
        let (name, in_all) = (kind.keyword(), !NOT_IN_ALL.contains(&kind));
        let shown = match (types.contains(kind.number()), set > MOST_LISTED) {
            (true, false) => name.to_owned(),
            (true, true) if kind != MessageType::Debug && !in_all => name.to_owned(),
            (false, true) if in_all => format!("!{name}"),
            _ => continue,
        };
        names.push(shown.into_bytes());
    }
    let all_events = types.contains(MessageType::Events.number());
    let mut custom: Vec<Vec<u8>> = (TypeSet::FIRST_CUSTOM..)
        .zip(&messages.custom_events)
        .filter(|(number, _)| types.contains(*number) != all_events)
        .map(|(_, name)| [if all_events { b"!Events.".as_slice() } else { b"Events." }, name].concat())
        .collect();
    custom.sort();
    names.extend(custom);
    names
}

fn runs(runs: &[ConnectRun]) -> Vec<u8> {
    let mut json = b"[".to_vec();
    join(&mut json, runs, |run, out| {
        let mut fields = Vec::new();
        if let Some(time) = run.max_connect_time {
            fields.push(format!("\"MaxConnectTime\": {}", time.as_secs()));
        }
        fields.push(format!("\"Hour\": {}", bits(run.hours.into())));
        fields.push(format!("\"Minute\": {}", run.minute));
        fields.push(format!("\"Day\": {}", bits(run.days.into())));
        if run.last_day {
            fields.push("\"LastDay\": 1".to_owned());
        }
        fields.push(format!("\"Month\": {}", bits(run.months.into())));
        fields.push(format!("\"DayOfWeek\": {}", bits(run.week_days.into())));
        fields.push(format!("\"WeekOfMonth\": {}", bits(run.weeks_of_month.into())));
        fields.push(format!("\"WeekOfYear\": {}", bits(run.weeks_of_year)));
        out.extend_from_slice(b"\n     {");
        join(out, &fields, |field, out| {
            out.extend_from_slice(b"\n      ");
            out.extend_from_slice(field.as_bytes());
        });
        out.extend_from_slice(b"\n     }");
    });
    json.extend_from_slice(b"\n    ]");
    json
}

fn bits(set: u64) -> String {
    let members: Vec<String> = (0..64).filter(|bit| set & (1 << bit) != 0).map(|bit| bit.to_string()).collect();
    format!("[{}]", members.join(", "))
}
