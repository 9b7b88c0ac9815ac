//! Who may connect, rule by rule.

use super::*;

fn client(address: &str, name: Name) -> Client {
    Client { address: address.parse().unwrap(), name: OnceCell::from(name) }
}

fn known() -> Client {
    client("192.0.2.7", Name::Known("dir.example.org".to_owned()))
}

fn allowed(allow: &str, deny: &str) -> bool {
    decide(allow, deny, "web-fd", &known())
}

#[test]
fn no_rule_allows_and_allow_comes_first() {
    assert!(allowed("", ""));
    assert!(!allowed("", "ALL: ALL"));
    assert!(allowed("web-fd: ALL", "ALL: ALL"));
    assert!(allowed("WEB-FD: 192.0.2.7", "ALL: ALL"));
    assert!(!allowed("bacula-fd: ALL\n# web-fd: ALL\n", "ALL: ALL"));
    assert!(allowed("sshd, web-fd@192.0.2.1 : ALL", "ALL: ALL"));
}

#[test]
fn patterns_of_clients() {
    for pattern in [
        "192.0.2.",
        "192.0.2.0/24",
        "192.0.2.0/255.255.255.0",
        "192.0.2.7/32",
        "0.0.0.0/0",
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
        "[192.0.2.7]",
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
    for pattern in ["@group", "root@192.0.2.7", "/no/such/file"] {
        assert!(!allowed("", &format!("ALL: {pattern}")), "{pattern}");
    }
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
        ("UNKNOWN", true),
        ("KNOWN", false),
        ("192.0.2.", false),
    ] {
        assert_eq!(decide(&format!("ALL: {pattern}"), "ALL: ALL", "web-fd", &six), wanted, "{pattern}");
    }
    assert_eq!(Client::new("::ffff:192.0.2.7".parse().unwrap()).address, known().address);
}

#[test]
fn a_backslash_continues_a_line_and_a_line_without_a_colon_is_skipped() {
    assert!(!allowed("", "ALL \\\n : ALL"));
    assert!(allowed("nonsense\nweb-fd: ALL", "ALL: ALL"));
}

#[test]
fn many_stars_match_in_linear_time() {
    let (pattern, text) = ("*a".repeat(2000), "a".repeat(1999) + "b");
    assert!(!is_wild(pattern.as_bytes(), text.as_bytes()));
    assert!(is_wild(b"a*b?*d", b"axxbcyyd") && !is_wild(b"a*b", b"axxc"));
}
