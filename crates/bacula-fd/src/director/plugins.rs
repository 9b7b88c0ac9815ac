//! What the Director sends to plugins (reference 02 §4.13 to §4.16, §4.22, §4.23). Without plugins
//! it is read and checked, and goes nowhere, as in a stock daemon whose plugin is not loaded.

use fd_compress::Decompressor;
use fd_messages::MessageType;
use fd_session::command::{PluginCommand, PluginQuery, RestoreObject};
use fd_session::texts;
use fd_transport::{IDLE_LIMIT, Received};

use super::conversation::{Conversation, Flow};

/// What the stock daemon's buffer has room for beyond the announced length.
const SLACK: usize = 100;

impl Conversation<'_> {
    pub(super) fn serve_plugins(&mut self, command: PluginCommand) -> Flow {
        match command {
            PluginCommand::Components => {
                self.skip_list();
                self.replied(texts::OK_COMPONENT)
            }
            // There is no plugin to list.
            PluginCommand::Features => {
                self.end_of_data();
                Flow::GoOn
            }
            PluginCommand::FileList(plugin) => {
                tracing::debug!(plugin = %plugin.escape_ascii(), "a list of files for a plugin that is not there");
                self.skip_list();
                Flow::GoOn
            }
            PluginCommand::Object(object) => self.read_restore_object(&object),
            PluginCommand::ObjectsEnd => self.replied(texts::OK_RESTORE_OBJECTS),
            PluginCommand::Options(options) => self.plugin_options(&options),
            PluginCommand::Query(query) => self.query_plugin(&query),
        }
    }

    /// Takes the two frames that follow: the object's name and its bytes. No reply, unless they
    /// don't come.
    fn read_restore_object(&mut self, object: &RestoreObject) -> Flow {
        // The second one is not awaited if the first one does not come.
        let name = self.frame_of_object();
        let Some((name, bytes)) = name.and_then(|name| Some((name, self.frame_of_object()?))) else {
            self.reply(texts::BAD_RESTORE_OBJECT);
            return Flow::End;
        };
        if object.compression == 1 {
            let wanted = usize::try_from(object.full_length).unwrap_or(0);
            let limit = wanted.saturating_add(SLACK).min(fd_compress::DEFAULT_LIMIT);
            let mut unpacked = Vec::new();
            let done = Decompressor::new(limit).zlib(&bytes, &mut unpacked);
            if done.is_err() || unpacked.len() != wanted {
                let text = texts::object_not_unpacked(object.full_length, unpacked.len(), &name);
                self.say(MessageType::Error, &text);
            }
        }
        Flow::GoOn
    }

    fn frame_of_object(&mut self) -> Option<Vec<u8>> {
        match self.channel.recv(IDLE_LIMIT) {
            Ok(Received::Data(frame)) => Some(frame.to_vec()),
            Ok(Received::Empty) => Some(Vec::new()),
            Ok(Received::Signal(_)) | Err(_) => None,
        }
    }

    /// Options for a plugin, of which there is none.
    fn plugin_options(&mut self, options: &[u8]) -> Flow {
        self.reply(texts::OK_PLUGIN_OPTIONS);
        self.say(MessageType::Fatal, &texts::PLUGIN_NOT_LOADED.of(options));
        Flow::GoOn
    }

    /// `query`: there is no plugin to answer it.
    fn query_plugin(&mut self, query: &PluginQuery) -> Flow {
        let (parameter, plugin) = (query.parameter.escape_ascii(), query.plugin.escape_ascii());
        tracing::debug!(%parameter, %plugin, "no plugin answers this query");
        // Where there are no plugins at all the stock daemon looks for none, and says nothing.
        if !self.daemon.installed_plugins().is_empty() {
            self.queue(texts::PLUGIN_NOT_FOUND);
        }
        self.end_of_data();
        Flow::GoOn
    }
}
