//! Making the object of an attribute record: at once, or, if another one is there, when its data
//! comes (reference 05 §3.3).

use fd_messages::MessageType;
use fd_os::local_time::local_time_of_any;
use fd_records::{FileType, listing};

use super::attributes;
use super::held::{Current, Round};
use super::made::Made;
use super::metadata::HeldMetadata;
use crate::created::{Created, Taker};
use crate::file::{Creator, Plan, RestoreItem, Turn, changes_what_exists};
use crate::report::Report;
use crate::texts;
use crate::tree::Directories;

impl Round<'_> {
    /// What has become of an object.
    pub(super) fn made(&mut self, item: &RestoreItem, created: Created) -> Made {
        if !matches!(created, Created::Kept | Created::Waiting | Created::Late | Created::Nothing) {
            self.report_restored(item);
            self.late_links.is_followed = true;
        }
        match created {
            Created::Data(to) => self.begin_data(item, to),
            Created::ByCore => self.set_attributes(item, attributes::set_without_data),
            Created::ByPlugin => self.set_attributes(item, attributes::set_by_name),
            Created::Kept => Made::Kept,
            Created::Waiting => Made::Waiting,
            Created::Late | Created::Nothing => Made::Nothing,
        }
    }

    /// Data of the current file comes: what has stayed for it is replaced.
    pub(super) fn replace_now(&mut self) {
        let Some(mut current) = self.current.take_if(|current| matches!(current.made, Made::Waiting)) else { return };
        let created = self.create(&current.item, true);
        current.made = self.made(&current.item, created);
        if !current.made.is_made() {
            // What is held would go to what stands there.
            current.metadata = HeldMetadata::default();
        }
        self.current = Some(current);
    }

    /// The data of this object comes next.
    fn begin_data(&mut self, item: &RestoreItem, to: Taker) -> Made {
        if let (Some(file), Ok(path)) = (to.new_file(), &item.path) {
            self.state.directories.note_file(path, file);
        }
        self.state.data.begin();
        self.state.digest.begin(item.stat.size, to.file());
        Made::open(to)
    }

    /// Sets the attributes of an object without data, unless a plugin does so.
    fn set_attributes(
        &mut self,
        item: &RestoreItem,
        set: impl FnOnce(&mut Report<'_>, &mut Directories, &RestoreItem) -> Made,
    ) -> Made {
        if self.section.plugin().is_none_or(|plugin| plugin.set_attributes(&mut self.report)) {
            set(&mut self.report, &mut self.state.directories, item)
        } else {
            Made::Object
        }
    }

    /// There is no data of a file that was to replace another, which stays.
    pub(super) fn keep_waiting(&mut self) {
        if self.stay()
            && let Some(current) = &self.current
        {
            self.report.now(MessageType::Error, &texts::kept_without_data(&current.item.output));
        }
    }

    /// What is there stays, if it waits for the data of the current file. Returns whether it does.
    pub(super) fn stay(&mut self) -> bool {
        let waits = |current: &&mut Current| matches!(current.made, Made::Waiting);
        let Some(current) = self.current.as_mut().filter(waits) else { return false };
        (current.made, current.metadata) = (Made::Kept, HeldMetadata::default());
        self.state.encryption.forget();
        if let Ok(path) = &current.item.path {
            self.state.directories.note_that_stays(path);
        }
        true
    }

    /// This record comes next. A late link of its name gives way to what it makes; or the link is
    /// made now, if the record changes what has that name.
    pub(super) fn meet_late_link(&mut self, item: &RestoreItem) {
        let Ok(path) = &item.path else { return };
        let Some(link) = self.late_links.take(path) else { return };
        if changes_what_exists(item) {
            self.make_late_link(link);
        } else if matches!(Plan::of(item), Ok(Plan::Nothing(_)) | Err(_)) {
            self.late_links.hold(link);
        }
    }

    /// No late link is made, as the records of their first names may be among those that are lost.
    pub(super) fn give_up_late_links(&mut self) {
        let count = self.late_links.count();
        if count > 0 && !self.cancel.is_canceled() {
            self.report.now(MessageType::Error, &texts::lost_late_links(count));
        }
    }

    /// Makes the late links: no first name comes any more.
    pub(super) fn make_late_links(&mut self) {
        let mut all_made = true;
        while let Some(chain) = self.late_links.next_chain() {
            for link in chain {
                if self.cancel.is_canceled() {
                    return;
                }
                all_made &= self.make_late_link(link);
            }
        }
        if !all_made && self.late_links.is_followed {
            // In its place the error would not have been the last message.
            self.report.deliver_in_turn();
        }
    }

    /// Makes a late link, or lets it wait on. Returns whether there was no error.
    fn make_late_link(&mut self, link: RestoreItem) -> bool {
        self.progress.set_current_file(&link.output);
        match self.create(&link, false) {
            Created::ByCore => {
                self.report_restored(&link);
                attributes::set_without_data(&mut self.report, &mut self.state.directories, &link);
            }
            Created::Late => self.late_links.hold(link),
            Created::Nothing => return false,
            Created::Kept | Created::Waiting | Created::Data(_) | Created::ByPlugin => {}
        }
        true
    }

    /// Makes an object as the daemon does. `has_data`: data of it has come.
    pub(super) fn create(&mut self, item: &RestoreItem, has_data: bool) -> Created {
        Creator {
            directories: &mut self.state.directories,
            report: &mut self.report,
            replace: self.plan.replace,
            has_keys: self.plan.keys.is_some(),
            has_data,
            can_reopen: self.state.can_reopen,
            turn: if item.is_of_plugin { Turn::Now } else { self.late_links.turn() },
            cancel: self.cancel,
        }
        .create(item)
    }

    /// The line about a restored file (reference 05 §3.6).
    fn report_restored(&mut self, item: &RestoreItem) {
        if !self.report.wants(MessageType::Restored) {
            self.report.unheard(MessageType::Restored);
            return;
        }
        let mut line = Vec::with_capacity(item.output.len() + 100);
        let target = (item.file_type == Some(FileType::Symlink)).then_some(item.link.text.as_slice());
        let modified = local_time_of_any(item.stat.mtime);
        listing::push_line(&mut line, &item.stat, modified, self.state.writer.names(), &item.output, target);
        self.report.now(MessageType::Restored, &fd_messages::one_line(&[&line]));
    }
}
