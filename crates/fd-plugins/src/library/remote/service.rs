//! What the daemon does for a plugin: its messages, and its requests during a call.

use fd_messages::MessageType;

use crate::api::call::Status;
use crate::api::host::{Change, FileSetChange, Host, Variable};
use crate::job_plugins::command_name;
use crate::library::wire::{Reply, Request};
use crate::texts;

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

/// Who makes requests.
#[derive(Debug)]
pub(super) struct Asker {
    /// The plugin's file.
    pub(super) file: Vec<u8>,
    /// Its settings have it run as another user than the daemon.
    pub(super) has_own_user: bool,
}

impl Asker {
    /// Whether a change of the FileSet has the daemon run a program or read a list, or another
    /// plugin work: all with more rights than a plugin with a user of its own has.
    fn reaches_further(&self, change: Change, item: &[u8]) -> bool {
        let takes_lists = matches!(change, Change::Include | Change::Exclude | Change::Plugin);
        let own = self.file.strip_suffix(b"-fd.so").unwrap_or(&self.file);
        let is_own = change != Change::Plugin || command_name(item) == Ok(Some(own));
        self.has_own_user && (!is_own || takes_lists && matches!(item.first(), Some(b'|' | b'<')))
    }
}

/// What the daemon replies.
pub(super) fn reply(host: &mut dyn Host, asker: &Asker, request: Request) -> Reply {
    let status = |status: Status| Reply::Status(status.code());
    let file = &asker.file;
    match request {
        Request::Value(number) => Reply::Value(Variable::from_number(number).and_then(|variable| host.value(variable))),
        Request::MarkSeen(name) => status(host.mark_seen(&name.0)),
        Request::SetInteractive => {
            host.facts().set_interactive();
            status(Status::Ok)
        }
        Request::Change(change, item, _) if asker.reaches_further(change, &item.0) => {
            host.message(MessageType::Error, &texts::reaches_further(file, &item.0));
            status(Status::Error)
        }
        Request::Change(how, item, kind) => {
            status(host.change_fileset(file, FileSetChange { how, item: &item.0, kind }))
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
