//! The order of tasks, and their bounds. The test does the tasks itself.

use fd_records::Stat;

use super::*;
use crate::attributes::Nanoseconds;
use crate::directory::push_name;
use fd_os::sync::Instant;

fn descriptor() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}

fn loan(names: &str) -> Loan {
    let mut all = Vec::new();
    names.split_whitespace().for_each(|name| push_name(&mut all, 0, name.as_bytes()));
    Loan { descriptor: Arc::new(descriptor()), names: all, rest: Rest::More }
}

/// The answer about a directory.
fn directory(number: u64) -> Answer {
    let stat = Stat { dev: 1, ino: number, mode: Stat::MODE_DIRECTORY | 0o755, ..Stat::default() };
    Answer { found: Ok((stat, Nanoseconds::default())), link: None, time: Instant::now() }
}

fn names(count: u64) -> Vec<Name> {
    (0..count)
        .map(|ino| Name { name: format!("name {ino}").into_bytes().into(), ino: count - ino, is_leaf: false })
        .collect()
}

fn opened(number: u64, names_in_it: u64, rest: Rest) -> Outcome {
    let (descriptor, identity, names) = (descriptor(), (1, number), names(names_in_it));
    Outcome::Opened(number, Ok(Opened::Open { descriptor, identity, names, rest }))
}

/// Does a task; every entry is a directory with so many names in each of its reads.
fn done(task: &Task, names_of_each: u64, rest: Rest) -> Outcome {
    match &task.work {
        Work::Look { entries, .. } => {
            Outcome::Looked(entries.iter().map(|(number, _)| (*number, directory(*number))).collect())
        }
        Work::Open(opening) => opened(opening.number, names_of_each, rest),
        Work::Read => Outcome::Read(names(names_of_each), rest),
    }
}

/// Does one task, and decides for all directories.
fn step(agenda: &mut Agenda, names_of_each: u64, rest: Rest) -> bool {
    while let Some(candidate) = agenda.candidate() {
        agenda.open_ahead(&candidate, None);
    }
    let Some(task) = agenda.take() else { return false };
    agenda.deliver(task.folder, done(&task, names_of_each, rest), Taken::default());
    true
}

/// How many directories are open ahead of the walk, or being opened.
fn open(agenda: &Agenda) -> usize {
    agenda.openings.open.len() + agenda.openings.begun
}

#[test]
fn what_is_ahead_is_bounded_while_the_walk_rests() {
    for names_of_each in [1, 30, 2700] {
        let mut agenda = Agenda::new(false);
        agenda.set_depth(256, 16);
        let top = agenda.enlist(loan("a b c "), b"/t/", (1, 1), Vec::new());
        assert!(matches!(agenda.next(top), Reply::Ready(Next::Name(..))));
        let mut steps = 0;
        while step(&mut agenda, names_of_each, Rest::More) {
            steps += 1;
            assert!(steps < 1_000_000, "it goes on for ever");
            assert!(open(&agenda) <= MOST_OPEN, "{} directories", open(&agenda));
            assert!(agenda.names <= MOST_NAMES + 2700, "{} names", agenda.names);
            assert!(agenda.openings.wanted.len() <= MOST_OPEN);
            assert!(agenda.openings.to_judge.len() <= MOST_BEGUN, "{} to judge", agenda.openings.to_judge.len());
        }
        assert!(steps > 64, "{steps} steps");
        let known =
            |folder: &Folder| folder.entries.iter().filter(|entry| matches!(entry.look, Look::Known(_))).count();
        assert!(agenda.folders.values().all(|folder| known(folder) <= MOST_BEGUN + 16));
        agenda.leave(top);
        assert!(agenda.folders.is_empty() && agenda.startable.is_empty() && agenda.openings.wanted.is_empty());
        assert_eq!((agenda.names, open(&agenda), agenda.busy), (0, 0, 0));
    }
}

/// The walk is in the first of so many directories. The others were opened while nothing was known
/// of what is in this one; here is how the walk goes on in it, and whether that was opened ahead.
fn with_others_behind(others: usize) -> (Agenda, impl FnMut(&mut Agenda) -> bool) {
    let mut agenda = Agenda::new(false);
    agenda.set_depth(100, 1);
    let loan = Loan { rest: Rest::Ended, ..loan(&"a ".repeat(1 + others)) };
    let top = agenda.enlist(loan, b"/t/", (1, 1), Vec::new());
    let _first = agenda.next(top);
    while step(&mut agenda, 0, Rest::Ended) {}
    let Reply::Ready(Ok((near, ..))) = agenda.open(top, (1, 1)) else { panic!("it is open") };
    while step(&mut agenda, 0, Rest::Ended) {}
    let mut number = 0;
    let goes_on = move |agenda: &mut Agenda| {
        number += 1;
        agenda.deliver(near, Outcome::Read(names(1), Rest::Ended), Taken::default());
        assert!(matches!(agenda.next(near), Reply::Ready(Next::Name(..))));
        while step(agenda, 0, Rest::Ended) {}
        let was_open = matches!(agenda.is_unmarked(near), Reply::Ready(()));
        while matches!(agenda.open(near, (1, number)), Reply::Wait) {
            assert!(step(agenda, 0, Rest::Ended), "nothing opens it");
        }
        was_open
    };
    (agenda, goes_on)
}

#[test]
fn what_was_opened_far_ahead_long_ago_makes_room_for_what_is_near() {
    let (mut agenda, mut goes_on) = with_others_behind(MOST_OPEN);
    assert!(!goes_on(&mut agenda) && !goes_on(&mut agenda), "all places are taken");
    let long_ago = Instant::now().checked_sub(FRESH * 2).unwrap();
    agenda.folders.values_mut().for_each(|folder| folder.opened = long_ago);
    // The walk opens one more itself.
    assert!(!goes_on(&mut agenda) && goes_on(&mut agenda) && goes_on(&mut agenda));
    assert_eq!(open(&agenda), MOST_OPEN - 1);
}

#[test]
fn what_is_near_is_opened_before_what_was_found_far_ahead() {
    let (mut agenda, mut goes_on) = with_others_behind(4 * MOST_OPEN);
    assert!(agenda.openings.wanted.len() == MOST_OPEN && agenda.openings.to_judge.len() > MOST_OPEN);
    // There is one place.
    let (.., far) = *agenda.openings.open.values().next().unwrap();
    agenda.leave(far);
    assert!(goes_on(&mut agenda));
}

#[test]
fn the_nearest_in_the_walks_order_is_first() {
    let mut agenda = Agenda::new(false);
    agenda.set_depth(100, 1);
    let top = agenda.enlist(loan("a b c "), b"/t/", (1, 1), Vec::new());
    assert!(matches!(agenda.next(top), Reply::Ready(Next::Name(..))));
    let begun: Vec<Task> = std::iter::from_fn(|| agenda.take()).collect();
    assert!(matches!(begun[0].work, Work::Read), "few names are known: {begun:?}");
    agenda.deliver(top, Outcome::Read(names(1), Rest::Ended), Taken::default());
    // The last name is a directory before the others; what is below `b` comes before `c` all the
    // same.
    for number in [3, 2] {
        agenda.deliver(top, Outcome::Looked(vec![(number, directory(number))]), Taken::default());
        let candidate = agenda.candidate().unwrap();
        agenda.open_ahead(&candidate, None);
    }
    let Some(Task { work: Work::Open(Opening { number: 2, .. }), .. }) = agenda.take() else { panic!("b is next") };
    let Some(Task { work: Work::Open(Opening { number: 3, .. }), .. }) = agenda.take() else { panic!("then c") };
    agenda.deliver(top, opened(3, 2, Rest::Ended), Taken::default());
    agenda.deliver(top, opened(2, 2, Rest::Ended), Taken::default());
    let tasks: Vec<Task> = std::iter::from_fn(|| agenda.take()).collect();
    let place = |task: &Task| agenda.folders[&task.folder].order.first().copied().unwrap_or(u64::MAX);
    let places: Vec<u64> = tasks.iter().map(place).collect();
    assert_eq!(places, [2, 3, 2, 3, u64::MAX], "in b, in c; then two in each; beside them some are at work");
}

/// In a directory that was read to its end beside one that is to be opened: what is done at once,
/// by the number of lookups in a task. `None`: an opening.
fn at_once(turn: usize, waits: bool) -> Vec<Option<usize>> {
    let mut agenda = Agenda::new(false);
    agenda.set_depth(3, turn);
    let top = agenda.enlist(Loan { rest: Rest::Ended, ..loan(&"a ".repeat(300)) }, b"/t/", (1, 1), Vec::new());
    let _first = agenda.next(top);
    agenda.deliver(top, Outcome::Looked(vec![(300, directory(300))]), Taken::default());
    let candidate = agenda.candidate().unwrap();
    agenda.open_ahead(&candidate, None);
    agenda.waits(waits.then_some(top));
    assert!(agenda.has_tasks());
    let lookups = |task: Task| if let Work::Look { entries, .. } = task.work { Some(entries.len()) } else { None };
    let begun = std::iter::from_fn(|| agenda.take()).map(lookups).collect();
    assert!(!agenda.has_tasks(), "a thread would be woken in vain");
    begun
}

#[test]
fn a_second_thread_looks_into_a_directory_only_where_lookups_are_late_or_the_walk_waits() {
    assert_eq!(at_once(100, false), [None]);
    assert_eq!(at_once(100, true), [None, Some(100), Some(100)]);
    assert_eq!(at_once(1, false), [None, Some(1), Some(1)]);
}

#[test]
fn the_lookup_that_the_walk_waits_for_is_one_of_a_turn() {
    let mut agenda = Agenda::new(false);
    agenda.set_depth(2, 3);
    let top = agenda.enlist(loan("a b c d "), b"/t/", (1, 1), Vec::new());
    let _first = agenda.next(top);
    assert!(matches!(agenda.look(top), Reply::Wait));
    let Some(Task { work: Work::Look { entries, .. }, .. }) = agenda.take() else { panic!("a lookup is urgent") };
    assert_eq!(entries.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn a_turn_that_the_walk_waits_for_has_nothing_that_a_scan_spares() {
    let mut agenda = Agenda::new(false);
    agenda.set_depth(2, 3);
    agenda.add_scan(Known::of_test(1, &[12], std::time::SystemTime::now()).into());
    let mut all = Vec::new();
    ["a", "b", "c", "d"].into_iter().zip(11..).for_each(|(name, ino)| push_name(&mut all, ino, name.as_bytes()));
    let top = agenda.enlist(Loan { names: all, ..loan("") }, b"/t/", (1, 1), Vec::new());
    let _first = agenda.next(top);
    assert!(matches!(agenda.look(top), Reply::Wait));
    let Some(Task { work: Work::Look { entries, .. }, .. }) = agenda.take() else { panic!("a lookup is urgent") };
    assert_eq!(entries.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 3, 4]);
}

#[test]
fn names_are_looked_up_in_the_order_of_their_inodes_and_used_in_that_of_the_directory() {
    let mut agenda = Agenda::new(false);
    agenda.set_depth(100, 1);
    let top = agenda.enlist(Loan { rest: Rest::More, ..loan("") }, b"/t/", (1, 1), Vec::new());
    assert!(matches!(agenda.next(top), Reply::Wait));
    let task = agenda.take().unwrap();
    assert!(matches!(task.work, Work::Read));
    agenda.deliver(top, Outcome::Read(names(3), Rest::Ended), Taken::default());
    let looked: Vec<_> = std::iter::from_fn(|| agenda.take())
        .map(|task| match task.work {
            Work::Look { entries, .. } => entries[0].0,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(looked, [3, 2, 1]);
    let used: Vec<_> = std::iter::from_fn(|| match agenda.next(top) {
        Reply::Ready(Next::Name(name, _)) => Some(String::from_utf8(name.to_vec()).unwrap()),
        _ => None,
    })
    .collect();
    assert_eq!(used, ["name 0", "name 1", "name 2"]);
}

#[test]
fn old_answers_are_asked_for_again() {
    let mut agenda = Agenda::new(false);
    agenda.set_depth(100, 1);
    let top = agenda.enlist(loan("a b "), b"/t/", (1, 1), Vec::new());
    let _first = agenda.next(top);
    let long_ago = Instant::now().checked_sub(FRESH * 2).unwrap();
    let answers = (1..3).map(|number| (number, Answer { time: long_ago, ..directory(number) })).collect();
    agenda.deliver(top, Outcome::Looked(answers), Taken::default());
    assert!(matches!(agenda.look(top), Reply::Wait));
    let asked: Vec<_> = std::iter::from_fn(|| agenda.take()).map(|task| done(&task, 0, Rest::More)).collect();
    assert!(matches!(&asked[0], Outcome::Looked(answers) if answers[0].0 == 1), "{asked:?}");
    assert!(asked.iter().any(|outcome| matches!(outcome, Outcome::Looked(answers) if answers[0].0 == 2)), "{asked:?}");
    for outcome in asked {
        agenda.deliver(top, outcome, Taken::default());
    }
    assert!(matches!(agenda.look(top), Reply::Ready(_)));
    for _ in ["the walk looks again", "and again"] {
        assert!(matches!(agenda.look(top), Reply::Yourself));
    }
}

/// The walk is at the first of three entries; this one is a directory, and is opened ahead.
fn with_opened(number: u64, outcome: Outcome) -> (Agenda, FolderId) {
    let mut agenda = Agenda::new(false);
    agenda.set_depth(100, 1);
    let top = agenda.enlist(Loan { rest: Rest::Ended, ..loan("a b c ") }, b"/t/", (1, 1), Vec::new());
    let _first = agenda.next(top);
    agenda.deliver(top, Outcome::Looked(vec![(number, directory(number))]), Taken::default());
    let candidate = agenda.candidate().unwrap();
    agenda.open_ahead(&candidate, Some(b"/t/marker".to_vec()));
    let tasks: Vec<Task> = std::iter::from_fn(|| agenda.take()).collect();
    assert!(tasks.iter().any(|task| matches!(task.work, Work::Open(_))), "{tasks:?}");
    agenda.deliver(top, outcome, Taken::default());
    (agenda, top)
}

#[test]
fn what_could_not_be_opened_at_a_moment_is_left_to_the_walk() {
    let long_ago = Instant::now().checked_sub(FRESH * 2).unwrap();
    for (errno, time, is_lasting) in [
        (Errno::NOENT, Instant::now(), false),
        (Errno::MFILE, Instant::now(), false),
        (Errno::IO, long_ago, false),
        (Errno::IO, Instant::now(), true),
    ] {
        let (mut agenda, top) = with_opened(1, Outcome::Opened(1, Err(errno)));
        agenda.set_below(top, 1, Below::Failed(errno, time));
        assert!(matches!(agenda.is_unmarked(top), Reply::Yourself));
        match agenda.open(top, (1, 1)) {
            Reply::Ready(Err(told)) => assert!(is_lasting && told == errno, "{errno}"),
            Reply::Yourself => assert!(!is_lasting, "{errno}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(open(&agenda), 0);
    }
}

#[test]
fn a_marker_that_was_there_is_looked_for_again() {
    let (mut agenda, top) = with_opened(1, Outcome::Opened(1, Ok(Opened::Marked)));
    assert!(matches!(agenda.is_unmarked(top), Reply::Yourself));
    assert_eq!(open(&agenda), 0);
    assert!(matches!(agenda.open(top, (1, 1)), Reply::Wait), "it is opened");
}

#[test]
fn what_was_opened_long_ago_says_nothing_of_a_marker() {
    let (mut agenda, top) = with_opened(1, opened(1, 1, Rest::Ended));
    assert!(matches!(agenda.is_unmarked(top), Reply::Ready(())));
    let long_ago = Instant::now().checked_sub(FRESH * 2).unwrap();
    agenda.folders.values_mut().for_each(|folder| folder.opened = long_ago);
    assert!(matches!(agenda.is_unmarked(top), Reply::Yourself));
}

#[test]
fn what_was_opened_ahead_is_closed_if_it_is_no_directory_any_more() {
    let (mut agenda, top) = with_opened(2, opened(2, 3, Rest::Ended));
    assert_eq!((agenda.folders.len(), open(&agenda)), (2, 1));
    let long_ago = Instant::now().checked_sub(FRESH * 2).unwrap();
    let old = |number| (number, Answer { time: long_ago, ..directory(number) });
    agenda.deliver(top, Outcome::Looked(vec![old(1), old(2)]), Taken::default());
    assert!(matches!(agenda.look(top), Reply::Wait));
    let file = Answer {
        found: Ok((Stat { mode: Stat::MODE_REGULAR, ..Stat::default() }, Nanoseconds::default())),
        ..directory(2)
    };
    agenda.deliver(top, Outcome::Looked(vec![(1, directory(1)), (2, file)]), Taken::default());
    for _ in ["b", "c"] {
        assert!(matches!(agenda.next(top), Reply::Ready(Next::Name(..))));
    }
    assert_eq!((agenda.folders.len(), open(&agenda)), (1, 0));
    agenda.leave(top);
    assert_eq!((agenda.names, agenda.startable.len()), (0, 0));
}
