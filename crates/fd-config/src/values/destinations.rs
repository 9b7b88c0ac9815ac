//! `DESTINATION = WHERE = TYPES` of a Messages resource (reference 06 §7.2).

use fd_messages::MessageType;

use crate::resources::{Destination, DestinationKind, Messages, TypeSet};
use crate::syntax::document::{RawResource, Value};
use crate::syntax::error::SyntaxError;
use crate::syntax::explain;
use crate::syntax::reader::{Pass, Reader};
use crate::syntax::token::Token;
use crate::texts;

const EVENTS_PREFIX: &[u8] = b"events";

impl Reader<'_> {
    /// One destination. The second pass only skips it.
    pub(crate) fn destination(
        &mut self,
        resource: &mut RawResource,
        kind: DestinationKind,
    ) -> Result<Option<Value>, SyntaxError> {
        if self.pass == Pass::First {
            let place = self.place(kind)?;
            let command = match kind {
                DestinationKind::Mail | DestinationKind::MailOnError | DestinationKind::MailOnSuccess => "MailCommand",
                DestinationKind::Operator => "OperatorCommand",
                _ => "",
            };
            let command = match command {
                "" => None,
                name => match resource.value(name) {
                    Value::Text(command) => Some(command.clone()),
                    _ => None,
                },
            };
            let entry = Destination { kind, place, types: TypeSet::default(), command };
            self.types(&mut resource.messages, &entry)?;
        }
        self.lexer.skip_statement()?;
        Ok(Some(Value::Elsewhere))
    }

    /// A file, or recipients joined by blanks, up to the second `=`.
    fn place(&mut self, kind: DestinationKind) -> Result<Vec<u8>, SyntaxError> {
        match kind {
            DestinationKind::Syslog
            | DestinationKind::Stdout
            | DestinationKind::Stderr
            | DestinationKind::Console
            | DestinationKind::Catalog => Ok(Vec::new()),
            DestinationKind::File | DestinationKind::Append => {
                self.lexer.name()?;
                let place = self.lexer.text().to_vec();
                if self.lexer.next_on_any_line()? != Token::Equals {
                    return Err(self.lexer.fail_with_text(&texts::EXPECTED_EQUALS_AFTER_FILE));
                }
                Ok(place)
            }
            DestinationKind::Mail
            | DestinationKind::MailOnError
            | DestinationKind::MailOnSuccess
            | DestinationKind::Director
            | DestinationKind::Operator => {
                let mut place = Vec::new();
                loop {
                    self.lexer.name()?;
                    if !place.is_empty() {
                        place.push(b' ');
                    }
                    place.extend_from_slice(self.lexer.text());
                    match self.lexer.next_on_any_line()? {
                        Token::Comma => {}
                        Token::Equals => return Ok(place),
                        _ => return Err(self.lexer.fail_with_text(&texts::EXPECTED_EQUALS_AFTER_NAMES)),
                    }
                }
            }
        }
    }

    fn types(&mut self, messages: &mut Messages, entry: &Destination) -> Result<(), SyntaxError> {
        loop {
            self.lexer.name()?;
            let text = self.lexer.text();
            let (word, negated) = text.strip_prefix(b"!").map_or((text, false), |word| (word, true));
            if word.eq_ignore_ascii_case(b"all") {
                add(messages, entry, TypeSet::ALL);
            } else {
                let number = self.type_number(messages, word)?;
                if negated {
                    remove(messages, entry, number);
                } else {
                    add(messages, entry, single_type(number));
                }
            }
            if !self.lexer.ended_by(b',') {
                return Ok(());
            }
            self.lexer.next()?;
        }
    }

    /// The number of a type; a new `events.NAME` gets the next one.
    fn type_number(&self, messages: &mut Messages, word: &[u8]) -> Result<u8, SyntaxError> {
        let known = MessageType::ALL.iter().find(|kind| kind.keyword().as_bytes().eq_ignore_ascii_case(word));
        if let Some(kind) = known {
            return Ok(kind.number());
        }
        let custom =
            word.split_at_checked(EVENTS_PREFIX.len()).filter(|(head, _)| head.eq_ignore_ascii_case(EVENTS_PREFIX));
        let Some((_, tail)) = custom else {
            let mut error = self.lexer.fail(&texts::UNKNOWN_MESSAGE_TYPE, [word.to_vec()]);
            let names = MessageType::ALL.iter().map(|kind| kind.keyword()).chain(["All"]);
            error.hint = explain::did_you_mean(word, names);
            return Err(error);
        };
        let bad = |reason: &str| self.lexer.fail(&texts::BAD_CUSTOM_MESSAGE_TYPE, [word.to_vec(), reason.into()]);
        // The stock daemon takes any character for the dot.
        let name = tail.get(1..).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| bad(texts::BAD_CUSTOM_TYPE))?;
        if !messages.custom_events.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            if messages.custom_events.len() >= TypeSet::MAX_CUSTOM {
                return Err(bad(texts::TOO_MANY_CUSTOM_TYPES));
            }
            messages.custom_events.push(name.to_vec());
        }
        Ok(messages.event_number(name))
    }
}

/// `events` means every custom type, too, even one that is named later.
fn single_type(number: u8) -> TypeSet {
    let mut types = TypeSet::default();
    types.insert(number);
    if number == MessageType::Events.number() {
        for custom in (TypeSet::FIRST_CUSTOM..).take(TypeSet::MAX_CUSTOM) {
            types.insert(custom);
        }
    }
    types
}

fn add(messages: &mut Messages, entry: &Destination, types: TypeSet) {
    messages.union.extend(types);
    if let Some(known) = find(messages, entry) {
        known.types.extend(types);
    } else {
        messages.destinations.push(Destination { types, ..entry.clone() });
    }
}

fn remove(messages: &mut Messages, entry: &Destination, number: u8) {
    if let Some(known) = find(messages, entry) {
        known.types.remove(number);
    }
}

fn find<'m>(messages: &'m mut Messages, entry: &Destination) -> Option<&'m mut Destination> {
    messages.destinations.iter_mut().find(|known| known.kind == entry.kind && known.place == entry.place)
}
