//! What a plugin host may say on the line of an instance, and when.

use super::chain::Chain;
use super::wire::{self, Answer, Assembly, Bytes, Call, FromHost, Nonsense, Note, Plan, Report, Request};
use crate::api::packets::{RestoreFile, SavePacket};

/// The daemon's end of an instance's line, without the line. All that a plugin host says passes
/// through it.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    assembly: Assembly,
}

/// Something that a plugin host may say while it works for a call.
#[derive(Debug)]
pub(crate) enum Heard {
    /// It needs no answer.
    Note(Note),
    /// It waits for a reply.
    Request(Request),
    /// The call has returned.
    Answer(Answer),
    /// What was begun ahead has stopped.
    Halted,
}

impl Conversation {
    /// Takes bytes of the line.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.assembly.push(bytes);
    }

    /// The next thing that was said, while the answer to this call is awaited, if there is one.
    ///
    /// # Errors
    /// It may not be said now, or is nonsense. The line is of no more use.
    pub(crate) fn next(&mut self, awaited: Option<&Call>) -> Result<Option<Heard>, Nonsense> {
        let Some(bytes) = self.assembly.next()? else { return Ok(None) };
        Ok(Some(match FromHost::decode(bytes)? {
            FromHost::Note(note) => Heard::Note(note),
            FromHost::Request(request) => Heard::Request(request),
            FromHost::Answer(answer) if awaited.is_some_and(|call| answer.answers(call)) => Heard::Answer(answer),
            FromHost::Halted => Heard::Halted,
            FromHost::Answer(_) => return Err(Nonsense::Order),
        }))
    }
}

/// Listens to a plugin host that says these bytes, as the daemon does that calls its functions: for
/// each byte of `calls` another one, and those that the plugin host makes ahead. How many answers
/// were taken. For tests of what a plugin host may say.
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
                    Ok(Some(Heard::Answer(answer))) => break answer,
                    Ok(Some(Heard::Halted)) | Err(_) => return taken,
                    Ok(Some(Heard::Note(_) | Heard::Request(_))) => {}
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
fn a_call(number: u8) -> Call {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::wire::Data;

    fn frame(message: &FromHost) -> Vec<u8> {
        wire::encode(message).unwrap()
    }

    fn hears(said: &[u8], awaited: &Call) -> Result<Option<Heard>, Nonsense> {
        let mut conversation = Conversation::default();
        conversation.push(said);
        conversation.next(Some(awaited))
    }

    #[test]
    fn an_answer_to_another_call_is_nonsense() {
        let said = frame(&FromHost::Answer(Answer::Status(0)));
        assert!(matches!(hears(&said, &Call::Free), Ok(Some(Heard::Answer(Answer::Status(0))))));
        assert_eq!(hears(&said, &Call::Features).unwrap_err(), Nonsense::Order);
        let mut conversation = Conversation::default();
        conversation.push(&said);
        assert_eq!(conversation.next(None).unwrap_err(), Nonsense::Order);
    }

    #[test]
    fn a_message_that_is_too_long_or_unknown_is_nonsense() {
        let head = u32::try_from(wire::LONGEST_MESSAGE + 1).unwrap().to_le_bytes();
        assert!(matches!(hears(&head, &Call::Free), Err(Nonsense::TooLong(_))));
        assert_eq!(hears(&[1, 0, 0, 0, 77], &Call::Free).unwrap_err(), Nonsense::Unknown);
        assert!(matches!(hears(&[5, 0, 0, 0, 2], &Call::Free), Ok(None)), "incomplete");
    }

    #[test]
    fn counts_and_texts_have_their_bounds() {
        let io = |status, data| frame(&FromHost::Answer(Answer::Io { returned: 0, status, errno: 0, offset: 0, data }));
        let read = Call::Read(100, false);
        assert!(hears(&io(100, Data::Slot(0)), &read).is_ok());
        assert_eq!(hears(&io(101, Data::Slot(0)), &read).unwrap_err(), Nonsense::Order);
        assert_eq!(hears(&io(100, Data::Slot(99)), &read).unwrap_err(), Nonsense::Range);
        assert_eq!(hears(&io(5, Data::Here(Bytes(vec![0; 6]))), &read).unwrap_err(), Nonsense::Range);
        assert_eq!(hears(&io(5, Data::Nothing), &read).unwrap_err(), Nonsense::Order);
        let name = |name: &[u8]| {
            let file = SavePacket { name: Some(name.to_vec()), ..SavePacket::empty() };
            frame(&FromHost::Answer(Answer::File(0, Some(Box::new(file)))))
        };
        let start = a_call(0);
        assert!(hears(&name(b"/x"), &start).is_ok());
        assert_eq!(hears(&name(b"/x\0y"), &start).unwrap_err(), Nonsense::Text);
        assert_eq!(hears(&name(&vec![b'x'; wire::LONGEST_TEXT + 1]), &start).unwrap_err(), Nonsense::Text);
    }

    #[test]
    fn what_is_called_ahead_is_taken_in_its_order() {
        let file = SavePacket { name: Some(b"/x".to_vec()), file_type: 3, ..SavePacket::empty() };
        let io = |status, data| Answer::Io { returned: 0, status, errno: 0, offset: 0, data };
        let answers = [
            Answer::File(0, Some(Box::new(file))),
            Answer::Stream(0, 26),
            io(0, Data::Nothing),
            io(3, Data::Here(Bytes(b"abc".to_vec()))),
            io(0, Data::Nothing),
            io(0, Data::Nothing),
            Answer::Xacl(0, Bytes(b"acl".to_vec())),
            Answer::Xacl(0, Bytes::default()),
            Answer::Xacl(0, Bytes::default()),
        ];
        let said: Vec<u8> = answers.iter().flat_map(|answer| frame(&FromHost::Answer(answer.clone()))).collect();
        // The chain of `startBackupFile` takes them all, and the next call has none left.
        assert_eq!(listen(&[0, 9], &said), answers.len());
        assert_eq!(listen(&[6, 9], &said), 0);
        if let Some(folder) = std::env::var_os("FUZZ_SEEDS") {
            std::fs::write(std::path::Path::new(&folder).join("file"), [&[0, 9, 9, 9], said.as_slice()].concat())
                .unwrap();
        }
    }

    #[test]
    fn damaged_answers_are_errors_and_nothing_worse() {
        let file = SavePacket { name: Some(b"/x".to_vec()), file_type: 3, ..SavePacket::empty() };
        let data = Data::Here(Bytes(vec![7; 300]));
        let said: Vec<u8> = [
            FromHost::Note(Note::Message(7, Bytes(b"text".to_vec()))),
            FromHost::Request(Request::CheckChanges(Box::new(file.clone()))),
            FromHost::Answer(Answer::File(0, Some(Box::new(file)))),
            FromHost::Answer(Answer::Stream(0, 26)),
            FromHost::Answer(Answer::Io { returned: 0, status: 300, errno: 0, offset: 0, data }),
        ]
        .iter()
        .flat_map(frame)
        .collect();
        let rounds = std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(20_000_u32);
        let mut random = 88_172_645_463_325_252_u64;
        let mut next = |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            usize::try_from(random >> 11).unwrap() % below
        };
        for _ in 0..rounds {
            let mut damaged = said.clone();
            for _ in 0..=next(4) {
                let place = next(damaged.len());
                damaged[place] = u8::try_from(next(256)).unwrap();
            }
            damaged.truncate(1 + next(damaged.len()));
            let calls = [next(16), next(16), next(16)].map(|call| u8::try_from(call).unwrap());
            assert!(listen(&calls, &damaged) <= 5);
        }
    }
}
