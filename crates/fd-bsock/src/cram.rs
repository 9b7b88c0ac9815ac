//! CRAM-MD5 as the Bacula daemons speak it: challenge, answer and its two encodings
//! (reference 01 §9).

use md5::{Digest, Md5};

/// What the encodings use for six bits: base64's alphabet.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Block length of MD5 in bytes.
const BLOCK: usize = 64;

/// The secret that Director and File Daemon share: the password's MD5 as 32 lower-case hex digits
/// (reference 01 §9.1). It is the key of CRAM-MD5 and of TLS-PSK.
pub fn key_from_password(password: &[u8]) -> String {
    Md5::digest(password).iter().flat_map(|byte| [hex_digit(byte >> 4), hex_digit(byte & 15)]).collect()
}

fn hex_digit(half: u8) -> char {
    char::from_digit(u32::from(half), 16).unwrap_or('0')
}

/// A challenge; `time` in seconds since 1970, `name` is the daemon's own resource name.
pub fn challenge(random: u32, time: i64, name: &str) -> String {
    format!("<{random}.{time}@{name}>")
}

/// The answer to a challenge, 22 characters. On the wire a NUL follows, inside the packet (see
/// [`answer_packet`]).
///
/// `compatible` is what the challenger asked for by `cram-md5c`; current daemons ask for the other
/// encoding.
pub fn respond(key: &[u8], challenge: &[u8], compatible: bool) -> String {
    encode(hmac_md5(key, challenge), compatible)
}

/// The packet of an answer: its characters and one NUL, 23 bytes.
pub fn answer_packet(answer: &str) -> Vec<u8> {
    let mut packet = answer.as_bytes().to_vec();
    packet.push(0);
    packet
}

/// Whether `answer` (with or without its NUL) is right. The time it takes does not depend on where
/// it is wrong.
///
/// The non-compatible encoding is always accepted, the compatible one if `accept_compatible`: a
/// hello server accepts both, a client only if the peer's own challenge asked for it
/// (reference 01 §9.2).
pub fn verify(key: &[u8], challenge: &[u8], answer: &[u8], accept_compatible: bool) -> bool {
    let answer = answer.split(|&byte| byte == 0).next().unwrap_or_default();
    let digest = hmac_md5(key, challenge);
    let plain = same(encode(digest, false).as_bytes(), answer);
    let compatible = same(encode(digest, true).as_bytes(), answer);
    plain || (accept_compatible && compatible)
}

/// Compares without stopping at the first difference; the lengths are no secret.
fn same(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b));
    a.len() == b.len() && std::hint::black_box(difference) == 0
}

/// HMAC-MD5 (RFC 2104).
fn hmac_md5(key: &[u8], text: &[u8]) -> [u8; 16] {
    let mut block = [0_u8; BLOCK];
    let hashed;
    let key = if key.len() > BLOCK {
        hashed = Md5::digest(key);
        &hashed[..]
    } else {
        key
    };
    block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    let inner = Md5::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(text).finalize();
    Md5::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

/// The two encodings of reference 01 §9.4. The non-compatible one extends the sign of each byte
/// over the bits before it and does not shift the last digit; it cannot be decoded, only compared.
fn encode(digest: [u8; 16], compatible: bool) -> String {
    let mut text = String::with_capacity(22);
    let mut register = 0_u32;
    let mut bits = 0_u32;
    let mut bytes = digest.iter();
    while bytes.len() > 0 {
        if bits < 6 {
            let byte = bytes.next().copied().unwrap_or_default();
            let extended = if compatible { u32::from(byte) } else { i32::from(byte.cast_signed()).cast_unsigned() };
            register = (register << 8) | extended;
            bits += 8;
        }
        bits -= 6;
        text.push(letter(register >> bits));
    }
    if bits > 0 {
        let last = register & ((1 << bits) - 1);
        text.push(letter(if compatible { last << (6 - bits) } else { last }));
    }
    text
}

fn letter(value: u32) -> char {
    ALPHABET.get(usize::try_from(value & 63).unwrap_or_default()).map_or('A', |&byte| char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWORD_KEY: &str = "af2904ba21987b283d3f14cb9cfb5579";
    const SESSION_KEY: &str = "FHDM-NHEO-KGBJ-ABPN-DFPH-IEFC-NMBL-EAPC";

    /// Key, challenge, non-compatible and compatible answer of real sessions (reference 01 §9.4).
    const VECTORS: [(&str, &str, &str, &str); 4] = [
        (PASSWORD_KEY, "<254337502.1795226764@w-fd>", "0wdCU9UpTFgdv551L7+jzA", "0wdCUNUpTFgdvp51LLijzA"),
        (PASSWORD_KEY, "<110644299.1795226764@w-dir>", "x4Eyo7+N/7+cO51bX+/dOB", "xIEyoLeN/rqcOZ1bXO/dOQ"),
        (SESSION_KEY, "<854732134.1795226766@w-sd>", "tF+hGB+xW//On5NTh69inD", "tFShGBGxWPvOnJNThq9inw"),
        (SESSION_KEY, "<2112588988.1795226766@w-fd>", "TA/168kV36/oJ40IKmAo5D", "TAz16ckV3K/oJo0IKmAo5w"),
    ];

    #[test]
    fn answers_of_real_sessions_in_both_encodings() {
        for (key, challenge, plain, compatible) in VECTORS {
            assert_eq!(respond(key.as_bytes(), challenge.as_bytes(), false), plain);
            assert_eq!(respond(key.as_bytes(), challenge.as_bytes(), true), compatible);
        }
    }

    #[test]
    fn a_server_accepts_both_encodings_a_client_one() {
        for (key, challenge, plain, compatible) in VECTORS {
            let (key, challenge) = (key.as_bytes(), challenge.as_bytes());
            assert!(verify(key, challenge, &answer_packet(plain), true));
            assert!(verify(key, challenge, plain.as_bytes(), false));
            assert!(verify(key, challenge, &answer_packet(compatible), true));
            assert!(!verify(key, challenge, compatible.as_bytes(), false));
            assert!(!verify(b"other key", challenge, plain.as_bytes(), true));
            assert!(!verify(key, challenge, &plain.as_bytes()[..21], true));
            assert!(!verify(key, challenge, b"", true));
        }
    }

    #[test]
    fn the_key_is_the_hex_text_of_the_passwords_md5() {
        assert_eq!(key_from_password(b"fdpw"), PASSWORD_KEY);
        assert_eq!(key_from_password(b""), "d41d8cd98f00b204e9800998ecf8427e");
    }

    /// RFC 2202, test cases 1, 2 and 6.
    #[test]
    fn hmac_md5_gives_the_values_of_the_rfc() {
        let hex = |digest: [u8; 16]| format!("{:032x}", u128::from_be_bytes(digest));
        assert_eq!(hex(hmac_md5(&[0x0b; 16], b"Hi There")), "9294727a3638bb1c13f48ef8158bfc9d");
        assert_eq!(hex(hmac_md5(b"Jefe", b"what do ya want for nothing?")), "750c783e6ab0b503eaa86e310a5db738");
        let long_key = hmac_md5(&[0xaa; 80], b"Test Using Larger Than Block-Size Key - Hash Key First");
        assert_eq!(hex(long_key), "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd");
    }

    #[test]
    fn the_challenge_has_the_form_of_the_reference() {
        assert_eq!(challenge(254_337_502, 1_795_226_764, "w-fd"), "<254337502.1795226764@w-fd>");
    }
}
