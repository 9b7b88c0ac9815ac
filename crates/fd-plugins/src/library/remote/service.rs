//! What the daemon does for a plugin: its messages, and its requests during a call.

use fd_messages::MessageType;

use crate::api::call::Status;
use crate::api::host::{FileSetChange, Host, Variable};
use crate::library::wire::{Change, Reply, Request};

/// The message of a plugin: no plugin ends the daemon.
pub(super) fn message(host: &mut dyn Host, kind: i32, text: &[u8]) {
    let kind = MessageType::ALL.into_iter().find(|known| i32::from(known.number()) == kind);
    let kind = match kind {
        None => MessageType::Info,
        Some(MessageType::Abort | MessageType::ErrorTerm | MessageType::Term) => MessageType::Fatal,
        Some(kind) => kind,
    };
    host.message(kind, text);
}

/// What the daemon replies.
pub(super) fn reply(host: &mut dyn Host, file: &[u8], request: Request) -> Reply {
    let status = |status: Status| Reply::Status(status.code());
    match request {
        Request::Value(number) => Reply::Value(Variable::from_number(number).and_then(|variable| host.value(variable))),
        Request::MarkSeen(name) => status(host.mark_seen(&name.0)),
        Request::SetInteractive => {
            host.facts().set_interactive();
            status(Status::Ok)
        }
        Request::Change(change, item, kind) => {
            let item = item.0.as_slice();
            status(host.change_fileset(
                file,
                match change {
                    Change::Exclude => FileSetChange::Exclude(item),
                    Change::Include => FileSetChange::Include(item),
                    Change::Options => FileSetChange::Options(item),
                    Change::Regex => FileSetChange::Regex(item, kind),
                    Change::Wild => FileSetChange::Wild(item, kind),
                    Change::NewOptions => FileSetChange::NewOptions,
                    Change::NewInclude => FileSetChange::NewInclude,
                    Change::NewPreInclude => FileSetChange::NewPreInclude,
                    Change::Plugin => FileSetChange::Plugin(item),
                },
            ))
        }
        Request::CheckChanges(mut file) => {
            let answer = host.check_changes(&mut file);
            Reply::Checked(answer.code(), file.delta_seq, file.accurate_found)
        }
        Request::AcceptFile(file) => status(host.accept_file(&file)),
        Request::Accurate(name) => Reply::Accurate(host.accurate_attributes(&name.0).map(Box::new)),
        Request::FileEvent(event) => status(host.add_file_event(event)),
    }
}
