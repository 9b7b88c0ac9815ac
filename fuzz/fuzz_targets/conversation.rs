#![no_main]
//! The machines of authentication and of the Storage Daemon's dialogue, against a peer that says
//! anything in any order. Each list of actions ends with one that is answered or that ends the
//! machine, and nothing follows an end.

use std::fmt::Debug;

use fd_bsock::Signal;
use fd_session::append::AppendClose;
use fd_session::authenticate::{Authentication, Challenges, Credentials};
use fd_session::open::{SessionOpen, Ticket};
use fd_session::read::ReadClose;
use fd_session::storage::StorageHello;
use fd_session::{Action, Input, Machine, Need};
use libfuzzer_sys::fuzz_target;

/// One step of the peer: a line, which is a frame unless its first byte says otherwise.
fn input(line: &[u8]) -> Input<'_> {
    match line.split_first() {
        None => Input::Empty,
        Some((b'!', rest)) => Input::Signal(Signal::from_code(-i32::from(rest.first().copied().unwrap_or(1)))),
        Some((b'?', _)) => Input::Gone("Connection reset by peer"),
        Some((b'+', _)) => Input::TlsReady,
        Some((b'-', _)) => Input::TlsFailed("no shared cipher"),
        Some(_) => Input::Frame(line),
    }
}

fn drive<M: Machine>(mut machine: M, mut actions: Vec<Action<M::Done, M::Error>>, peer: &[u8])
where
    M::Done: Debug,
    M::Error: Debug,
{
    let mut lines = peer.split_inclusive(|byte| *byte == b'\n');
    loop {
        let (last, before) = actions.split_last().expect("a machine never falls silent");
        assert!(
            before.iter().all(|action| !matches!(action, Action::Done(_) | Action::Failed(_) | Action::Receive(_)))
        );
        match last {
            Action::Done(_) | Action::Failed(_) => return,
            Action::Receive(_) | Action::StartTls(..) => {}
            other => panic!("{other:?} ends a list"),
        }
        let Some(line) = lines.next() else { return };
        actions = machine.handle(input(line));
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, peer)) = data.split_first() else { return };
    let credentials = || Credentials {
        own_name: "w-fd".to_owned(),
        key: b"5ebe2294ecd0e0f08eab7690d2a6ee69".to_vec(),
        need: Need::from_wire(if choice & 0x40 == 0 { 100 } else { 0 }),
        tls_authenticate: choice & 0x80 != 0,
        require_tls: choice & 0x20 != 0,
        peer_may_have_our_name: false,
        challenges: Challenges::default(),
        random: 1,
        time: 1_795_229_815,
    };
    match choice & 7 {
        0 => {
            let (machine, actions) = Authentication::client(credentials());
            drive(machine, actions, peer);
        }
        1 | 2 => {
            let need = Need::from_wire(if choice & 7 == 1 { 100 } else { 0 });
            let (machine, actions) = Authentication::server(credentials(), need);
            drive(machine, actions, peer);
        }
        3 => {
            let (machine, actions) = StorageHello::start(b"b1.2026-11-21_02.56.53_03", credentials(), false);
            drive(machine, actions, peer);
        }
        4 => {
            let (machine, actions) = SessionOpen::append();
            drive(machine, actions, peer);
        }
        5 => {
            let (machine, actions) = AppendClose::start(Ticket(7));
            drive(machine, actions, peer);
        }
        6 => {
            let (machine, actions) = SessionOpen::read(1, 1_795_226_230);
            drive(machine, actions, peer);
        }
        _ => {
            let (machine, actions) = ReadClose::start(Ticket(7));
            drive(machine, actions, peer);
        }
    }
});
