//! Records of plugins: whose the files are that come, and what is theirs alone (reference 07 §7.4).

use core::ops::ControlFlow;

use fd_messages::MessageType;
use fd_plugins::MetadataPacket;
use fd_records::{FileType, MetadataKind, PluginMetadata, PluginName, RecordHeader, Stream, StreamClass};

use super::held::{Current, Round};
use crate::plugins::{MetadataAnswer, Section};
use crate::texts;

impl Round<'_> {
    /// The start or end of a plugin's files (reference 07 §7.4).
    pub(super) fn plugin_name(&mut self, record: &[u8]) {
        let name = PluginName::parse(record);
        if matches!(name, Some(PluginName::Start { .. })) {
            self.give_up_endless();
        }
        self.close();
        match name {
            Some(PluginName::Start { command, .. }) => {
                if let Some(plugin) = self.section.plugin() {
                    let text = plugin.second_start(command);
                    self.report.now(MessageType::Fatal, &text);
                    return;
                }
                // Each file of a plugin has its own start.
                let is_told = self.said_once.command == command;
                if !is_told {
                    self.said_once.command = command.to_vec();
                }
                // What the log has to say must not wait while a program of the plugin does.
                self.settle();
                self.section = Section::begin(self.plan.plugins.as_ref(), command, is_told, &mut self.report);
            }
            Some(PluginName::End { .. }) => self.leave_plugin(),
            None => {}
        }
    }

    /// Ends the files of the current plugin.
    pub(super) fn leave_plugin(&mut self) {
        if self.is_open_by_plugin() {
            self.give_up_early();
        }
        if let Section::Plugin(plugin) = std::mem::replace(&mut self.section, Section::Outside) {
            plugin.end(&mut self.report);
        }
    }

    /// Leaves a plugin's file at the attributes of another one: the record that ends it was lost. A
    /// plugin that has got its file reports a second one itself.
    pub(super) fn leave_endless_section(&mut self, header: &RecordHeader) {
        let is_next = matches!(header.stream.class(), StreamClass::Attributes | StreamClass::AttributesUpdate)
            && self.section.waits_for_end()
            && self.place.is_of_next_file(header);
        if is_next {
            self.close();
            self.leave_plugin();
            self.report.now(MessageType::Error, &texts::section_without_end(&self.said_once.command));
        }
    }

    /// Gives the current file up because the restore ends. A program that a plugin feeds must not
    /// take this for the end of its data.
    pub(super) fn give_up_early(&mut self) {
        if let Some(plugin) = self.section.plugin() {
            plugin.cancel(&mut self.report);
        }
        self.give_up();
    }

    /// Metadata that a plugin has saved with a file. The plugin may end the restore.
    pub(super) fn plugin_metadata(&mut self, record: &[u8]) -> ControlFlow<()> {
        let on = ControlFlow::Continue(());
        let (Some(plugin), Some(current)) = (self.section.plugin(), &self.current) else { return on };
        let PluginMetadata { total_size, total_count, kind, index, data } = match PluginMetadata::parse(record) {
            Ok(packet) => packet,
            Err(error) => {
                self.report.now(MessageType::Error, &texts::damaged_metadata(&current.item.output, &error));
                self.give_up();
                return on;
            }
        };
        let packet = MetadataPacket { total_size, total_count, kind, index, data: data.to_vec() };
        match plugin.restore_metadata(&packet, &mut self.report) {
            MetadataAnswer::Taken => {}
            MetadataAnswer::Skip => self.give_up(),
            MetadataAnswer::End => return ControlFlow::Break(()),
        }
        on
    }

    /// An ACL or extended attributes in a plugin's own form.
    pub(super) fn plugin_xacl(&mut self, kind: MetadataKind, stream: Stream, record: &[u8]) {
        let (Some(plugin), Some(current)) = (self.section.plugin(), &mut self.current) else { return };
        let Current { item, xacls, .. } = current;
        if !plugin.has_made_it() {
            return;
        }
        if item.file_type == Some(FileType::Directory) {
            plugin.write_xacl(kind, record, &mut self.report);
        } else if !xacls.hold(kind, stream, record) {
            self.report.now(MessageType::Warning, &texts::too_much_metadata(&item.output));
        }
    }
}
