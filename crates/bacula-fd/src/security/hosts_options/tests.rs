//! Which options are right.

use super::*;

#[test]
fn a_rule_with_an_option_that_is_not_right_refuses() {
    let allows = |options: &str| verdict(options.split(':'), true);
    for good in [
        "allow",
        " Allow ",
        "allow =",
        "keepalive",
        "severity info",
        "severity AUTH.info",
        "severity=local7.err",
        "umask 022",
        "umask = 0777",
        "umask\t+22",
        "linger=0",
        "linger +1",
        "nice",
        "nice -5",
        "nice 08",
        "nice 99999999999",
        "rfc931",
        "rfc931 1",
        "setenv A",
        "setenv=A b c",
        "banners /nope",
        "spawn (echo) &",
        "user root",
        "user root.root",
        "group root",
        "umask 022 : allow",
        "nice 5: keepalive :allow",
    ] {
        assert!(allows(good), "{good}");
    }
    for bad in [
        "",
        " ",
        "deny",
        "twist echo",
        "twist",
        "grant",
        "bogus",
        "[allow]",
        "allow x",
        "allow:",
        "allow:deny",
        "allow:severity info",
        "umask 022 : : allow",
        "keepalive x",
        "severity",
        "severity auth",
        "severity warn",
        "severity local8.info",
        "severity auth.",
        "severity .info",
        "umask",
        "umask 1000",
        "umask -1",
        "umask 22x",
        "umask 022 allow",
        "umask = = 022",
        "linger",
        "linger -1",
        "linger 5 5",
        "nice x",
        "nice 1.5",
        "rfc931 0",
        "rfc931 -1",
        "setenv",
        "setenv A=b",
        "banners",
        "spawn",
        "user",
        "user nosuchuser",
        "user root.",
        "user root.nosuchgroup",
        "user 0",
        "group",
        "group nosuchgroup",
    ] {
        assert!(!allows(bad), "{bad}");
    }
    assert!(verdict("umask 022:allow".split(':'), false), "in hosts.deny");
    assert!(!verdict("umask 022".split(':'), false), "in hosts.deny");
}
