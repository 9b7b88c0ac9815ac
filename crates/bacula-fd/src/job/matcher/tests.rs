//! What the second process answers, and what becomes of a job without it.

use super::*;
use crate::shared::job::Identity;

fn compile(pattern: &[u8], ignore_case: bool) -> Vec<u8> {
    encode(&Request::Compile(pattern.to_vec(), ignore_case, false)).unwrap()
}

fn find(number: usize, groups: bool, text: &[u8]) -> Vec<u8> {
    encode(&Request::Find(number, groups, text.to_vec())).unwrap()
}

/// What a guest answers to these requests, behind the word that it is ready.
fn answers(requests: &[Vec<u8>]) -> Vec<Answer> {
    let mut said = Vec::new();
    answer_all(&mut io::Cursor::new(requests.concat()), &mut said).unwrap_err();
    let mut said = io::Cursor::new(said);
    assert_eq!(receive::<Answer>(&mut said).unwrap(), Ok(None));
    std::iter::from_fn(|| receive(&mut said).ok()).collect()
}

#[test]
fn a_guest_answers_one_request_after_the_other() {
    let said = answers(&[
        compile(b"^(.)\\1(x)?$", false),
        compile(b"(", true),
        compile(b"B", true),
        find(0, false, b"aa"),
        find(0, false, b"ab"),
        find(1, false, b"ab"),
        find(0, true, b"aa"),
        find(0, true, b"ab"),
        find(2, false, b"aa"),
        find(0, false, b"never asked"),
    ]);
    let places = |places: &[Range<usize>]| std::array::from_fn(|group| places.get(group).cloned());
    let expected = [
        Ok(None),
        Err("Unmatched ( or \\(".to_owned()),
        Ok(None),
        Ok(Some(places(&[]))),
        Ok(None),
        Ok(Some(places(&[]))),
        Ok(Some(places(&[0..2, 0..1]))),
        Ok(None),
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_request_that_is_cut_or_too_long_ends_the_guest() {
    let whole = compile(b"abc", false);
    assert_eq!(answers(std::slice::from_ref(&whole)), [Ok(None)]);
    for length in 0..whole.len() {
        assert_eq!(answers(&[whole[..length].to_vec()]), [], "{length}");
    }
    assert_eq!(answers(&[u32::MAX.to_be_bytes().to_vec()]), []);
}

#[test]
fn light_expressions_are_matched_in_process_and_none_after_a_cancel() {
    let job = Arc::new(Job::new(Identity::default(), 0));
    let matcher = Matcher::new(Arc::clone(&job));
    let expression = matcher.compile(br"\.(o|tmp)$", RegexOptions::default(), &|| true).unwrap();
    assert!(expression.is_match(c"/t/x.o") && !expression.is_match(c"/t/x.c"));
    assert_eq!(expression.captures(b"/t/x.o").unwrap().unwrap()[1], Some(5..6));
    let refused = matcher.compile(b"(", RegexOptions::default(), &|| true).unwrap_err();
    assert!(refused.is_bad && refused.why == "Unmatched ( or \\(", "{refused:?}");
    assert!(matcher.inner.lock().guest.is_none());
    job.cancel.cancel();
    assert!(!expression.is_match(c"/t/x.o") && expression.captures(b"/t/x.o").is_err());
}

#[test]
fn the_operator_gets_the_first_failure() {
    let job = Job::new(Identity::default(), 0);
    job.fail(texts::can_not_match(b"a", b"/x", &texts::took_too_long(MATCH_LIMIT)));
    job.fail(b"later".to_vec());
    assert!(job.cancel.is_canceled());
    let told = job.take_failure().unwrap();
    assert_eq!(told, b"REGEX a can't be matched with /x. ERR=It took more than 60 seconds\n");
    assert_eq!(job.take_failure(), None);
}

/// The kernel ends the largest process of a control group that has no memory left, and an operator
/// any.
#[test]
fn a_guest_that_is_killed_says_nothing_of_its_expression() {
    let compile = |end: &str| {
        let mut command = fd_os::process::command("sh");
        command.args(["-c", end]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Program::start(&mut command, Group::Ends).unwrap();
        let (requests, answers) = (program.take_input().unwrap(), program.take_output().unwrap());
        let guest = Guest { program: Some(program), requests, answers: OwnedFd::from(answers).into() };
        let mut inner = Inner { matching: 0, expressions: Vec::new(), guest: Some(guest) };
        inner.compile(b"(.)\\1", RegexOptions::default(), &|| true).unwrap_err()
    };
    assert!(matches!(compile("kill -KILL $$"), Failure::Ended(Signal::SIGKILL)));
    for end in ["kill -SEGV $$", "exit 1"] {
        assert!(matches!(compile(end), Failure::Gone(_)), "{end}");
    }
}
