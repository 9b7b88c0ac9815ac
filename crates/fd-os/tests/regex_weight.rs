//! What is said of an expression's weight, held against the memory and the time that the C library
//! takes. One test, so that nothing else in this process takes memory meanwhile.

use fd_os::regex::{PosixRegex, RegexOptions, weigh};

/// What the allocator keeps of small pieces that were freed counts as in use, bytes.
const ROUNDING: usize = 65536;

/// Memory that is allocated from the C library now, bytes.
#[allow(unsafe_code, reason = "the C library tells it by this call only")]
fn in_use() -> usize {
    // SAFETY: `mallinfo2` takes nothing and returns numbers.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks.saturating_add(info.hblkhd)
}

/// Letters `a` and `b` in no order: what makes the most states.
fn noise(length: usize, seed: &mut u64) -> Vec<u8> {
    let mut letter = || {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if *seed >> 40 & 1 == 0 { b'a' } else { b'b' }
    };
    (0..length).map(|_| letter()).collect()
}

#[test]
fn an_expression_takes_no_more_memory_than_its_weight() {
    let words = format!("^/srv/({})/", (0..150).map(|n| format!("project{n:03}")).collect::<Vec<_>>().join("|"));
    let mut seed = 1;
    for pattern in [
        "q",
        r".*\.(jpg|mp3|avi)$",
        r"^/home/[^/]+/\.cache(/|$)",
        ".*a.{7}x$",
        "[ab]*a[ab]{8}x$",
        "(a?){200}x",
        "((a?){12}){12}x",
        "a{1,500}x",
        "(a|b|c|d|e|f){1,100}x",
        "[[:alpha:]]{1,400}x",
        "((a|b)*){1,9}(a|bb)*x",
        "(a|b|ab|ba|aab)*(bab|aba)(a|b)*x",
        &words,
    ] {
        for options in [RegexOptions::default(), RegexOptions { ignore_case: true, newline: true }] {
            let weight = weigh(pattern.as_bytes(), options.ignore_case).expect(pattern);
            let before = in_use();
            let regex = PosixRegex::new(pattern.as_bytes(), options).expect("a good expression");
            let compiled = in_use().saturating_sub(before);
            assert!(compiled <= weight.compiled + ROUNDING, "{pattern}: {compiled} bytes for {weight:?}");
            for _ in 0..30 {
                let _found = regex.is_match(&noise(400, &mut seed));
            }
            let matching = in_use().saturating_sub(before).saturating_sub(compiled);
            assert!(matching <= weight.matching + ROUNDING, "{pattern}: {matching} bytes for {weight:?}");
        }
    }
}
