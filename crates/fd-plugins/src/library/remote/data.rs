//! The data of files: read ahead where that saves waiting, in memory that both sides share.

use std::os::unix::fs::FileExt as _;

use super::calls::RemoteInstance;
use super::limits::{Failure, Limits};
use crate::api::call::{Called, IoDone, Status};
use crate::api::host::Host;
use crate::library::wire::{self, Answer, Call, Data, Function, Nonsense, ToHost};

impl RemoteInstance {
    /// Calls `pluginIO` for anything but reading.
    pub(super) fn input_output(&mut self, host: &mut dyn Host, call: Call) -> Called<IoDone> {
        match self.call(host, call)? {
            Answer::Io { returned, status, errno, offset, .. } => {
                Ok(IoDone { returned: Status::from_code(returned), status, errno, offset })
            }
            _ => Ok(IoDone::error(0)),
        }
    }

    /// Reads at most so many bytes.
    pub(super) fn read_into(&mut self, host: &mut dyn Host, buffer: &mut [u8]) -> Called<IoDone> {
        if !self.rest.0.is_empty() {
            return Ok(self.read_rest(buffer));
        }
        let count = u32::try_from(buffer.len().min(wire::SLOT)).unwrap_or_default();
        self.learned.read = count;
        let ahead = self.full_reads > 0 && self.chain.is_none();
        let Answer::Io { returned, status, errno, offset, data } = self.call(host, Call::Read(count, ahead))? else {
            return Ok(IoDone::error(0));
        };
        self.full_reads = if u32::try_from(status) == Ok(count) { self.full_reads.saturating_add(1) } else { 0 };
        let done = IoDone { returned: Status::from_code(returned), status, errno, offset };
        self.fetch(host, data, done, buffer).map_err(|failure| self.gone(failure, Function::Io).0)
    }

    /// Fetches what was read.
    fn fetch(&mut self, host: &mut dyn Host, data: Data, done: IoDone, buffer: &mut [u8]) -> Result<IoDone, Failure> {
        let count = usize::try_from(done.status).unwrap_or_default();
        let (now, later) = (count.min(buffer.len()), count.saturating_sub(buffer.len()));
        let place = buffer.get_mut(..now).unwrap_or_default();
        match data {
            Data::Nothing => return Ok(done),
            Data::Here(bytes) => {
                let (first, rest) = bytes.0.split_at_checked(now).ok_or(Nonsense::Range)?;
                place.copy_from_slice(first);
                self.rest.0.extend_from_slice(rest);
            }
            Data::Slot(slot) => {
                let from = (wire::FIRST_SLOT + slot as usize * wire::SLOT_STEP) as u64;
                self.shared.read_exact_at(place, from).map_err(Failure::System)?;
                if later > 0 {
                    self.rest.0.resize(later, 0);
                    let (rest, from) = (&mut self.rest.0, from.saturating_add(now as u64));
                    self.shared.read_exact_at(rest, from).map_err(Failure::System)?;
                }
                self.emptied += 1;
                if self.emptied >= wire::SLOTS_AHEAD / 2 && self.chain.is_some() {
                    let credit = ToHost::Credit(std::mem::take(&mut self.emptied));
                    self.link.send(host, &credit, &mut Limits::new(None, self.grace))?;
                }
            }
        }
        self.rest.1 = done.offset.saturating_add(i64::try_from(now).unwrap_or_default());
        Ok(IoDone { status: i32::try_from(now).unwrap_or_default(), ..done })
    }

    /// What is left of a read ahead that has brought more than is wanted.
    fn read_rest(&mut self, buffer: &mut [u8]) -> IoDone {
        let (rest, offset) = &mut self.rest;
        let count = rest.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(rest.drain(..count)) {
            *to = from;
        }
        let done = IoDone { offset: *offset, ..IoDone::bytes(i32::try_from(count).unwrap_or_default()) };
        *offset = offset.saturating_add(i64::from(done.status));
        done
    }

    /// Writes at most [`wire::LONGEST_WRITE`] bytes.
    pub(super) fn write_part(&mut self, host: &mut dyn Host, data: &[u8]) -> Called<IoDone> {
        if data.len() <= wire::SMALL_READ {
            return self.input_output(host, Call::Write(data.into()));
        }
        if let Err(error) = self.shared.write_all_at(data, wire::FIRST_SLOT as u64) {
            return Err(self.gone(Failure::System(error), Function::Io).0);
        }
        let count = u32::try_from(data.len()).unwrap_or_default();
        self.input_output(host, Call::WriteShared(count))
    }
}
