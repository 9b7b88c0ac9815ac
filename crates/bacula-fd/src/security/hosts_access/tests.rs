//! Who may connect, rule by rule.

use std::os::unix::fs::FileExt as _;
use std::sync::mpsc;
use std::thread;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::gettid;

use super::*;
use crate::alone::alone;

/// A client whose host does not tell its user.
fn client(address: &str, name: Name) -> Client {
    let ends = [SocketAddr::new(address.parse().unwrap(), 40000), "192.0.2.1:9102".parse().unwrap()];
    let [address, own] = ends;
    Client { name: OnceCell::from(name), user: OnceCell::from(None), ..Client::new(address, own) }
}

fn known() -> Client {
    client("192.0.2.7", Name::Known("dir.example.org".to_owned()))
}

fn allowed_for(allow: &str, deny: &str, client: &Client) -> bool {
    let [allow, deny] = [allow, deny].map(|rules| format!("{rules}\n"));
    decided(&allow, &deny, client)
}

/// The same with files of exactly this content.
fn decided(allow: &str, deny: &str, client: &Client) -> bool {
    decide(allow, deny, &|token| is_daemon(token, "web-fd", client), &|token| is_client(token, client, 0))
}

fn allowed(allow: &str, deny: &str) -> bool {
    allowed_for(allow, deny, &known())
}

#[test]
fn no_rule_allows_and_allow_comes_first() {
    assert!(allowed("", ""));
    assert!(!allowed("", "ALL: ALL"));
    assert!(allowed("web-fd: ALL", "ALL: ALL"));
    assert!(allowed("WEB-FD: 192.0.2.7", "ALL: ALL"));
    assert!(!allowed("bacula-fd: ALL\n# web-fd: ALL\n", "ALL: ALL"));
    assert!(allowed("sshd, web-fd@192.0.2.1 : ALL", "ALL: ALL"));
    assert!(allowed("ALL@192.0.2. : ALL", "ALL: ALL"));
    // Another address of ours was called.
    assert!(!allowed("web-fd@192.0.2.3 : ALL", "ALL: ALL"));
    assert!(allowed("", "web-fd@192.0.2.3 : ALL"));
    assert!(!allowed("", "KNOWN: ALL") && allowed("known@192.0.2.1: ALL", "ALL: ALL"));
    assert!(!allowed("web-fd@/no/such/file : ALL", "ALL: ALL"));
    assert!(!allowed("", "web-fd@/no/such/file : ALL"));
}

#[test]
fn patterns_of_clients() {
    for pattern in [
        "192.0.2.",
        "192.0.2.0/24",
        "192.0.2.0/255.255.255.0",
        "192.0.2.7/32",
        "0.0.0.0/0.0.0.0",
        ".example.org",
        "DIR.example.org",
        "dir.*",
        "*.org",
        "192.?.2.7",
        "KNOWN",
        "root@nowhere 192.0.2.7",
        "ALL@dir.example.org",
        "ALL EXCEPT 192.0.2.8",
        "ALL EXCEPT 192.0.2. EXCEPT 192.0.2.7",
    ] {
        assert!(allowed(&format!("web-fd: {pattern}"), "ALL: ALL"), "{pattern}");
    }
    for pattern in [
        "192.0.3.",
        "192.0.2.0/28 EXCEPT 192.0.2.7",
        "example.org",
        ".dir.example.org",
        "LOCAL",
        "UNKNOWN",
        "PARANOID",
        "root@dir.example.org",
        "@group",
        "/no/such/file",
        "192.0.2.7/33",
        "192.0.2.1/24",
        "ALL EXCEPT 192.0.2.7",
        "[2001:db8::]/32",
    ] {
        assert!(!allowed(&format!("web-fd: {pattern}"), "ALL: ALL"), "{pattern}");
    }
}

#[test]
fn an_undecidable_rule_denies_and_never_allows() {
    let of_networks = [
        "192.0.2.0/33",
        "192.0.2.0/mask",
        "net/24",
        "0.0.0.0/0",
        "[192.0.2.7]",
        "[::ffff:192.0.2.7]",
        "[192.0.2.0]/24",
    ];
    for pattern in ["@group", "root@192.0.2.7", "/no/such/file"].into_iter().chain(of_networks) {
        assert!(!allowed("", &format!("ALL: {pattern}")), "{pattern}");
        for list in [format!("ALL EXCEPT {pattern}"), format!("ALL EXCEPT 192.0.2.9 {pattern}")] {
            assert!(!allowed("", &format!("ALL: {list}")), "hosts.deny: {list}");
            assert!(!allowed(&format!("ALL: {list}"), "ALL: ALL"), "hosts.allow: {list}");
            assert!(!allowed(&format!("ALL: {list} : DENY\nALL: ALL"), ""), "hosts.allow, which denies: {list}");
            assert!(!allowed("", &format!("ALL: {list} : ALLOW\nALL: ALL")), "hosts.deny, which allows: {list}");
        }
        assert!(allowed("", &format!("ALL: 192.0.2.9 EXCEPT {pattern}")), "it is not needed: {pattern}");
        assert!(!allowed("", &format!("ALL: 192.0.2.7 {pattern}")), "it is not needed: {pattern}");
    }
}

#[test]
fn a_name_that_is_not_told_can_not_be_decided() {
    let client = client("192.0.2.7", Name::NotTold);
    for pattern in [".example.org", "dir.*", "LOCAL", "KNOWN", "UNKNOWN", "PARANOID"] {
        assert!(!allowed_for("", &format!("ALL: {pattern}"), &client), "{pattern}");
        assert!(!allowed_for(&format!("ALL: {pattern}"), "ALL: ALL", &client), "{pattern}");
    }
    assert!(allowed_for("ALL: 192.0.2.7", "ALL: .example.org", &client), "nothing is asked for");
}

/// Texts of up to `most` of these words.
fn texts_of(words: &[&str], most: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut longest = all.clone();
    for _ in 0..most {
        longest = longest.iter().flat_map(|text| words.iter().map(move |word| format!("{text}{word} "))).collect();
        all.extend(longest.iter().cloned());
    }
    all
}

#[test]
fn whatever_the_unknown_turns_out_to_be_no_more_is_refused() {
    let answer = |token: &str, first: Answer, second: Answer| match token {
        "y" => Answer::Yes,
        "n" => Answer::No,
        "u" => first,
        _ => second,
    };
    let lists = texts_of(&["y", "n", "u", "v", "EXCEPT"], 4);
    let rules = [("", ""), (" : DENY", ""), ("", " : ALLOW\nALL: y")];
    let pairs = lists.iter().map(|list| (list.as_str(), "y")).chain(lists.iter().map(|list| ("n", list.as_str())));
    let (mut refused, mut needlessly) = (0, 0);
    for (allow, deny) in pairs {
        for (of_allow, of_deny) in rules {
            let (allow, deny) = (format!("ALL: {allow}{of_allow}\n"), format!("ALL: {deny}{of_deny}\n"));
            let decided =
                |first, second| decide(&allow, &deny, &|_| Answer::Yes, &|token| answer(token, first, second));
            let ours = decided(Answer::Unknown, Answer::Unknown);
            let sides = [Answer::No, Answer::Yes];
            let all_allow = sides.iter().all(|first| sides.iter().all(|second| decided(*first, *second)));
            assert!(all_allow || !ours, "let in: {allow:?} {deny:?}");
            refused += usize::from(!ours);
            // `u EXCEPT u` is nobody, whoever `u` is; a list is not searched for such things.
            needlessly += usize::from(all_allow && !ours);
        }
    }
    assert!(needlessly * 10 < refused, "{needlessly} of {refused}");
}

#[test]
fn rules_that_can_not_be_read_refuse() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, rules) = (folder.path().join("missing"), folder.path().join("rules"));
    let with = |allow: &Path, deny: &Path| is_allowed_by([allow, deny], "web-fd", &known());
    assert!(with(&missing, &missing));
    // A directory opens and can't be read.
    assert!(!with(&missing, folder.path()) && !with(folder.path(), &missing));
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&missing, &link).unwrap();
    assert!(!with(&missing, &link) && !with(&link, &missing), "what it leads to may deny");
    std::fs::write(&rules, "ALL: 192.0.2.8\n").unwrap();
    assert!(with(&missing, &rules));
    std::fs::write(&rules, "#\n".repeat(1 << 19) + "ALL: ALL\n").unwrap();
    assert!(!with(&missing, &rules), "the rule is behind what is read");
}

#[test]
fn rules_are_read_when_there_is_a_descriptor_again() {
    const NAME: &str = "security::hosts_access::tests::rules_are_read_when_there_is_a_descriptor_again";
    alone(NAME, |_, _| {}, read_without_a_descriptor);
}

/// The C library reads its configuration at the first question.
#[test]
fn a_name_that_can_not_be_asked_for_without_a_descriptor_is_not_told() {
    const NAME: &str =
        "security::hosts_access::tests::a_name_that_can_not_be_asked_for_without_a_descriptor_is_not_told";
    let case = |_: &Path| {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, 0, hard).unwrap();
        assert_eq!(look_up(known().address), Name::NotTold);
    };
    alone(NAME, |_, _| {}, case);
}

fn read_without_a_descriptor(folder: &Path) {
    let [allows, denies] = ["ALL: 192.0.2.8\n", "ALL: 192.0.2.7\n"].map(|rules| {
        let path = folder.join(rules.replace([' ', '\n'], ""));
        std::fs::write(&path, rules).unwrap();
        path
    });
    let status = File::open(format!("/proc/self/task/{}/status", gettid())).unwrap();
    // How often this thread has slept.
    let sleeps = || {
        let mut text = [0; 4096];
        let length = status.read_at(&mut text, 0).unwrap();
        let text = String::from_utf8_lossy(&text[..length]).into_owned();
        text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:").map(str::to_owned)).unwrap()
    };
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    for (deny, is_in) in [(&allows, true), (&denies, false)] {
        thread::scope(|scope| {
            let (begins, begun) = mpsc::channel();
            scope.spawn(move || {
                let before = begun.recv().unwrap();
                while sleeps() == before {
                    thread::yield_now();
                }
                setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
            });
            setrlimit(Resource::RLIMIT_NOFILE, 0, hard).unwrap();
            begins.send(sleeps()).unwrap();
            assert_eq!(is_allowed_by([&folder.join("missing"), deny], "web-fd", &known()), is_in);
        });
    }
}

#[test]
fn users_are_those_that_the_host_tells() {
    let joe = Client { user: OnceCell::from(Some("joe".to_owned())), ..known() };
    for (pattern, of_joe, of_nobody) in [
        ("joe@192.0.2.7", true, false),
        ("JOE@.example.org", true, false),
        ("j*@192.0.2.7", true, false),
        ("ann@192.0.2.7", false, false),
        ("KNOWN@ALL", true, false),
        ("UNKNOWN@ALL", false, true),
        ("ALL@ALL", true, true),
        ("joe@192.0.2.8", false, false),
        ("joe@@group", false, false),
    ] {
        for (client, wanted) in [(&joe, of_joe), (&known(), of_nobody)] {
            let rule = format!("ALL: {pattern}");
            assert_eq!(allowed_for(&rule, "ALL: ALL", client), wanted, "{pattern}");
        }
    }
    assert!(!allowed_for("", "ALL: joe@ALL", &joe));
    assert!(allowed_for("", "ALL: ann@ALL", &joe));
}

#[test]
fn no_user_is_asked_for_unless_the_host_matches() {
    let client = Client { user: OnceCell::new(), ..known() };
    assert!(allowed_for("ALL: ALL@192.0.2.7", "ALL: ALL", &client));
    assert!(allowed_for("", "ALL: joe@192.0.2.8", &client));
    assert!(client.user.get().is_none());
}

#[test]
fn options_of_a_rule_override_its_file() {
    assert!(!allowed("web-fd: ALL : DENY", ""));
    assert!(allowed("", "ALL: ALL : severity auth.info : allow"));
    assert!(!allowed("web-fd: ALL : twist /bin/echo no", ""));
    assert!(!allowed("web-fd: ALL : nonsense", ""));
    assert!(allowed("web-fd: ALL : banners /some/dir", "ALL: ALL"));
}

#[test]
fn addresses_of_ipv6() {
    let six = client("2001:db8::7", Name::Unknown);
    for (pattern, wanted) in [
        ("[2001:db8::7]", true),
        ("[2001:db8::]/32", true),
        ("[2001:db9::]/32", false),
        ("[2001:db8::7", false),
        ("[[2001:db8::7]]", false),
        ("UNKNOWN", true),
        ("KNOWN", false),
        ("192.0.2.", false),
    ] {
        assert_eq!(allowed_for(&format!("ALL: {pattern}"), "ALL: ALL", &six), wanted, "{pattern}");
    }
    let mapped = Client::new("[::ffff:192.0.2.7]:1".parse().unwrap(), "[::ffff:192.0.2.1]:2".parse().unwrap());
    assert_eq!(mapped.address, known().address);
    assert_eq!(mapped.ends.map(|end| end.is_ipv4()), [true, true]);
}

#[test]
fn a_backslash_continues_a_line_and_a_line_without_a_colon_is_skipped() {
    assert!(!allowed("", "ALL \\\n : ALL"));
    assert!(allowed("nonsense\nweb-fd: ALL", "ALL: ALL"));
}

#[test]
fn a_line_without_an_end_or_too_long_allows_nothing_and_denies_all() {
    let (allows, denies) =
        (|file: &str| decided(file, "ALL: ALL\n", &known()), |file: &str| !decided("", file, &known()));
    let long = |length: usize| format!("#{}\n", "x".repeat(length - 2));
    for (file, is_good) in [
        ("sshd: ALL\n".to_owned(), true),
        ("sshd: ALL".to_owned(), false),
        ("# comment".to_owned(), false),
        (" ".to_owned(), false),
        ("sshd: ALL\\\n".to_owned(), false),
        ("sshd: ALL\n\\".to_owned(), false),
        (long(MAX_LINE), true),
        (long(MAX_LINE + 1), false),
        (format!("#{}", "x\\\n".repeat(2043)) + "x\n", true),
        (format!("#{}", "x\\\n".repeat(2046)) + "x\n", false),
        // A NUL byte joins a line with the next one.
        ("sshd: ALL\0\n".to_owned(), false),
        ("sshd: ALL\0\n\n".to_owned(), true),
    ] {
        assert_eq!(denies(&file), !is_good, "hosts.deny: {file:?}");
        assert_eq!(allows(&format!("{file}web-fd: ALL\n")), is_good || file == " ", "{file:?}");
        assert!(allows(&format!("web-fd: ALL\n{file}")), "what comes before counts: {file:?}");
    }
    assert!(!allows("web-fd: ALL") && !allows("web-fd: ALL \\") && !allows("web-fd: ALL\\\n"));
    assert!(denies("web-fd: 192.0.2.8\\"), "the rule is not whole");
}

#[test]
fn many_stars_match_in_linear_time() {
    let (pattern, text) = ("*a".repeat(2000), "a".repeat(1999) + "b");
    assert!(!is_wild(pattern.as_bytes(), text.as_bytes()));
    assert!(is_wild(b"a*b?*d", b"axxbcyyd") && !is_wild(b"a*b", b"axxc"));
}
