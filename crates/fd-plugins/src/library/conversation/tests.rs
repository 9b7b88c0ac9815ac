//! What a plugin host may say, and what it may not.

use super::*;
use crate::api::packets::SavePacket;
use crate::library::listen::{a_call, listen};
use crate::library::wire::{self, Answer, Bytes, Data, Note, Request};

fn frame(message: &FromHost) -> Vec<u8> {
    wire::encode(message).unwrap()
}

fn hears(said: &[u8], awaited: &Call) -> Result<Option<FromHost>, Nonsense> {
    let mut conversation = Conversation::default();
    conversation.push(said);
    conversation.next(Some(awaited))
}

#[test]
fn an_answer_to_another_call_is_nonsense() {
    let said = frame(&FromHost::Answer(Answer::Status(0)));
    assert!(matches!(hears(&said, &Call::Free), Ok(Some(FromHost::Answer(Answer::Status(0))))));
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
        std::fs::write(std::path::Path::new(&folder).join("file"), [&[0, 9, 9, 9], said.as_slice()].concat()).unwrap();
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
