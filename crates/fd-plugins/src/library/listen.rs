//! Listens to a plugin host without one, for the tests and the fuzz target.

use super::chain::Chain;
use super::conversation::Conversation;
use super::wire::{self, Bytes, Call, FromHost, Plan, Report};
use crate::api::packets::{RestoreFile, SavePacket};

/// Listens to a plugin host that says these bytes, as the daemon does that calls its functions: for
/// each byte of `calls` another one, and those that the plugin host makes ahead. How many answers
/// were taken.
pub fn listen(calls: &[u8], said: &[u8]) -> usize {
    let _report: Result<Report, _> = wire::decode(said);
    let mut conversation = Conversation::default();
    let mut taken = 0;
    let mut pieces = said.chunks(1000);
    for call in calls.iter().map(|number| a_call(*number)) {
        let mut chain = Chain::behind(&call);
        let mut awaited = Some(call);
        while let Some(call) = awaited.take() {
            let answer = loop {
                match conversation.next(Some(&call)) {
                    Ok(Some(FromHost::Answer(answer))) => break answer,
                    Ok(Some(FromHost::Halted)) | Err(_) => return taken,
                    Ok(Some(_)) => {}
                    Ok(None) => match pieces.next() {
                        Some(piece) => conversation.push(piece),
                        None => return taken,
                    },
                }
            };
            taken += 1;
            if let Some(chain) = &mut chain {
                chain.advance(&answer);
                awaited = chain.next();
            }
        }
    }
    taken
}

/// A call of each kind.
pub(super) fn a_call(number: u8) -> Call {
    let plan = Plan { check_stream: Some(26), open: Some((0, 0)), read: 65_536, xacl: true, flags: 0 };
    let command = || Bytes(b"x:y".to_vec());
    let file = || Box::new(RestoreFile::default());
    match number % 16 {
        0 => Call::StartBackup(command(), true, Some(plan), Box::new(SavePacket::empty())),
        1 => Call::EndBackup(Some((command(), plan))),
        2 => Call::Read(65_536, true),
        3 => Call::Read(10, false),
        4 => Call::Features,
        5 => Call::Xacl(1, Bytes::default()),
        6 => Call::CheckStream(26),
        7 => Call::CreateFile(file()),
        8 => Call::Query(command(), command()),
        9 => Call::Close,
        10 => Call::HandleFile(command(), Box::new(SavePacket::empty())),
        11 => Call::StartVerify(file()),
        12 => Call::WriteShared(5000),
        13 => Call::Free,
        14 => Call::RestoreFileList(None),
        _ => Call::CheckFile(command()),
    }
}
