//! What the Director sends to plugins (reference 02 §4.13 to §4.16, §4.22, §4.23; 07 §7.2, §7.3,
//! §8). What is for a plugin that is not there is read and checked, and goes nowhere.

use fd_compress::Decompressor;
use fd_fileset::texts::malformed_plugin_command;
use fd_messages::MessageType;
use fd_plugins::{ChosenFile, Event, Lookup, Query, SavedObject, Status};
use fd_records::AccurateEntry;
use fd_session::command::{PluginCommand, PluginQuery, RestoreObject};
use fd_session::texts::BAD_RESTORE_OBJECT;
use fd_transport::{IDLE_LIMIT, Received};

use super::conversation::{Conversation, Flow};
use crate::texts;

/// What the stock daemon's buffer has room for beyond the announced length.
const SLACK: usize = 100;

/// Options for plugins of one job that are kept; their memory is the Director's to take.
const MOST_PLUGIN_OPTIONS: usize = 1000;
/// All of them together, in bytes.
const MOST_BYTES: usize = 1 << 20;

impl Conversation<'_> {
    pub(super) fn serve_plugins(&mut self, command: PluginCommand) -> Flow {
        match command {
            PluginCommand::Components => self.read_components(),
            PluginCommand::Features => self.plugin_features(),
            PluginCommand::FileList(file) => self.read_file_list(&file),
            PluginCommand::Object(object) => self.read_restore_object(&object),
            PluginCommand::ObjectsEnd => {
                self.tell_plugins(&Event::RestoreObject(None));
                self.replied(texts::OK_RESTORE_OBJECTS)
            }
            PluginCommand::Options(options) => self.plugin_options(options),
            PluginCommand::Query(query) => self.query_plugin(&query),
        }
    }

    fn read_components(&mut self) -> Flow {
        while let Ok(Some(line)) = self.next_line() {
            if !line.is_empty() {
                self.tell_plugins(&Event::ComponentInfo(&line));
            }
        }
        self.replied(texts::OK_COMPONENT)
    }

    fn plugin_features(&mut self) -> Flow {
        let mut lines = Vec::new();
        self.with_plugins(|plugins, host| {
            plugins.call_each(host, |info, _, instance, host| {
                let features = instance.features(host)?;
                lines.extend(features.map(|features| texts::plugin_features(&info.file, &features)));
                Ok(())
            });
        });
        self.list(&lines)
    }

    /// The files that were chosen, for the plugin of this file. There is no reply. An empty frame
    /// ends the list as well (reference 02 §4.16).
    fn read_file_list(&mut self, plugin: &[u8]) -> Flow {
        loop {
            let file = match self.channel.recv(IDLE_LIMIT) {
                Ok(Received::Data(frame)) => match listed_file(frame) {
                    Some(file) => Some(file),
                    None => continue,
                },
                Ok(Received::Empty | Received::Signal(_)) => None,
                Err(_) => return Flow::GoOn,
            };
            let is_last = file.is_none();
            self.with_plugins(|plugins, host| {
                plugins.call_each(host, |info, offers, instance, host| {
                    if offers.restore_file_list && info.file == plugin {
                        instance.restore_file_list(host, file.as_ref())?;
                    }
                    Ok(())
                });
            });
            if is_last {
                return Flow::GoOn;
            }
        }
    }

    /// Takes the two frames that follow: the object's name and its bytes. No reply, unless they
    /// don't come.
    fn read_restore_object(&mut self, order: &RestoreObject) -> Flow {
        // The second one is not awaited if the first one does not come.
        let name = self.next_line().ok().flatten();
        let Some((name, bytes)) = name.and_then(|name| Some((name, self.next_line().ok()??))) else {
            self.reply(BAD_RESTORE_OBJECT);
            return Flow::End;
        };
        let data = if order.compression == 1 { self.unpacked(order, &name, &bytes) } else { bytes };
        let object = SavedObject {
            name,
            data,
            command: order.plugin.clone(),
            object_type: order.object_type,
            full_length: order.full_length,
            index: order.index,
            compression: order.compression,
            job_id: order.job_id,
        };
        if object.is_filled_in() {
            self.tell_facts(|told| told.fill_in(&object.command));
        }
        self.with_plugins(|plugins, host| {
            let event = Event::RestoreObject(Some(&object));
            if object.command.is_empty() {
                plugins.tell_all(host, &event);
            } else {
                // A name that can't be read is none.
                let _nobody = plugins.tell_named(host, &object.command, &event);
            }
        });
        Flow::GoOn
    }

    fn unpacked(&mut self, order: &RestoreObject, name: &[u8], bytes: &[u8]) -> Vec<u8> {
        let wanted = usize::try_from(order.full_length).unwrap_or(0);
        let limit = wanted.saturating_add(SLACK).min(fd_compress::DEFAULT_LIMIT);
        let mut unpacked = Vec::new();
        let done = Decompressor::new(limit).zlib(bytes, &mut unpacked);
        if done.is_err() || unpacked.len() != wanted {
            let text = texts::object_not_unpacked(order.full_length, unpacked.len(), name);
            self.say(MessageType::Error, &text);
        }
        unpacked
    }

    /// Options for the plugins of a Verify job, which get them when the volume is read.
    fn plugin_options(&mut self, options: Vec<u8>) -> Flow {
        self.reply(texts::OK_PLUGIN_OPTIONS);
        let bytes = self.asked.plugin_options.iter().map(Vec::len).sum::<usize>() + options.len();
        if self.asked.plugin_options.len() >= MOST_PLUGIN_OPTIONS || bytes > MOST_BYTES {
            self.say(MessageType::Fatal, texts::TOO_MANY_PLUGIN_OPTIONS);
            return Flow::End;
        }
        let plugged = self.session.plugged.get().cloned();
        let is_loaded = plugged.is_some_and(|plugged| {
            matches!(plugged.plugins.named(&options), Lookup::Found(_) | Lookup::Disabled | Lookup::Failed)
        });
        if is_loaded {
            self.asked.plugin_options.push(options);
        } else {
            self.say(MessageType::Fatal, &texts::PLUGIN_NOT_LOADED.of(&options));
        }
        Flow::GoOn
    }

    /// Asks a plugin until it has no more answers.
    fn query_plugin(&mut self, query: &PluginQuery) -> Flow {
        let PluginQuery { parameter, plugin } = query;
        let query = Query { parameter, command: plugin };
        loop {
            let mut result = Vec::new();
            let mut answer = Answer::Silence;
            self.with_plugins(|plugins, host| {
                answer = match plugins.named(plugin) {
                    Lookup::NoPlugins | Lookup::Nameless => Answer::Silence,
                    Lookup::Malformed => {
                        if !plugins.is_empty() {
                            host.message(MessageType::Error, &malformed_plugin_command(plugin));
                        }
                        Answer::Silence
                    }
                    Lookup::Found(mut named) if named.offers().query => {
                        match named.call(|instance| instance.query(host, query, &mut result)) {
                            Ok(Status::Ok) => Answer::Last,
                            Ok(Status::More) => Answer::More,
                            Ok(_) => Answer::Error,
                            Err(gone) => {
                                host.message(MessageType::Error, &gone.text);
                                Answer::Error
                            }
                        }
                    }
                    Lookup::Failed => Answer::Error,
                    Lookup::Found(_) | Lookup::Disabled | Lookup::NotFound => Answer::NotFound,
                };
            });
            match answer {
                Answer::Last | Answer::More => self.queue(&result),
                Answer::Error => self.queue(texts::PLUGIN_PROTOCOL_ERROR),
                Answer::NotFound => self.queue(texts::PLUGIN_NOT_FOUND),
                Answer::Silence => {}
            }
            if answer != Answer::More || self.is_lost() || self.job().cancel.is_canceled() {
                break;
            }
        }
        self.end_of_data()
    }
}

/// What comes of a query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// A result, and there are more.
    More,
    /// The last result.
    Last,
    Error,
    NotFound,
    Silence,
}

/// The stock daemon loses the number of the delta.
fn listed_file(frame: &[u8]) -> Option<ChosenFile> {
    let entry = AccurateEntry::parse(frame)?;
    let attributes = entry.lstat().unwrap_or_default();
    Some(ChosenFile {
        name: entry.name.to_vec(),
        stat: attributes.stat,
        link_fi: attributes.link_fi,
        delta_seq: entry.delta_seq.into(),
        checksum: entry.digest.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_file_keeps_the_number_of_its_delta() {
        let file = listed_file(b"/x\0A A IGg B A A A F BAA B A A A A A C\0c2Fs\x003").unwrap();
        assert_eq!((file.name.as_slice(), file.checksum.as_slice(), file.delta_seq), (&b"/x"[..], &b"c2Fs"[..], 3));
        assert_eq!(file.stat.size, 5);
        assert_eq!(listed_file(b"/x"), None);
    }
}
