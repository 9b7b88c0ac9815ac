//! How requests look, and how long they are tried.

use hyper::header::HeaderName;

use super::*;
use crate::extras::Extras;

const KEYS: &str = "bucket = \"shop\"\naccess_key = \"key\"\nsecret_key = \"secret\"\n";

fn request(more: &str, ask: &Ask<'_>) -> Request<Outgoing> {
    let settings = BucketSettings::parse(&format!("{KEYS}{more}")).unwrap();
    Client::new(&settings).unwrap().request(ask).unwrap()
}

#[test]
fn the_bucket_stands_in_the_path_or_in_front_of_the_host() {
    let ask = Ask { query: "list-type=2".to_owned(), ..Ask::get(None) };
    for (more, address) in [
        ("region = \"eu-central-1\"", "https://s3.eu-central-1.amazonaws.com/shop/?list-type=2"),
        ("path_style = false", "https://shop.s3.us-east-1.amazonaws.com/?list-type=2"),
        ("endpoint = \"http://[::1]:9000/\"", "http://[::1]:9000/shop/?list-type=2"),
        ("endpoint = \"http://host:9000\"\npath_style = false", "http://shop.host:9000/?list-type=2"),
    ] {
        assert_eq!(request(more, &ask).uri().to_string(), address);
    }
}

#[test]
fn a_key_is_sent_as_it_is() {
    let address = |key: &[u8]| request("", &Ask::get(Some(key))).uri().path().to_owned();
    assert_eq!(address(b"a//b/../c /%+"), "/shop/a//b/../c%20/%25%2B");
    assert_eq!(address("\u{e9}\n?#".as_bytes()), "/shop/%C3%A9%0A%3F%23");
}

#[test]
fn a_request_is_signed_for_its_region_and_has_the_token_of_temporary_keys() {
    let sent = request("region = \"eu-central-1\"\nsession_token = \"tok\"", &Ask::get(Some(b"a")));
    let header = |name: &str| sent.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let authorization = header("authorization");
    assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=key/"), "{authorization}");
    assert!(authorization.contains("/eu-central-1/s3/aws4_request"), "{authorization}");
    assert!(authorization.contains("x-amz-security-token"), "{authorization}");
    assert_eq!(header("x-amz-security-token"), "tok");
}

#[test]
fn a_file_without_certificates_is_refused() {
    let refused = |ca_file: &str| {
        let settings = BucketSettings::parse(&format!("{KEYS}ca_file = \"{ca_file}\"")).unwrap();
        Client::new(&settings).unwrap_err()
    };
    assert!(refused("/nonexistent/ca.pem").contains("/nonexistent/ca.pem"));
    assert!(refused("/dev/null").contains("/dev/null"));
}

#[test]
fn each_header_of_amazons_is_signed() {
    // UTF-8, and what is none.
    let value = |bytes: &[u8]| ("x-amz-meta-name".to_owned(), bytes.to_vec());
    for (bytes, sent) in [
        (&b"plain"[..], "plain"),
        ("Gr\u{f6}\u{df}e".as_bytes(), "=?UTF-8?B?R3LDtsOfZQ==?="),
        (b"Gr\xf6\xdfe", "=?ISO-8859-1?B?R3L232U=?="),
    ] {
        let text = [b"s3 1\nx-amz-meta-name: ", bytes].concat();
        let headers = Extras::of_text(&text).unwrap().headers();
        assert!(headers.contains(&value(sent.as_bytes())), "{headers:?}");
        let request = request("", &Ask { method: Method::PUT, headers, ..Ask::get(Some(b"a")) });
        let authorization = request.headers().get("authorization").unwrap().to_str().unwrap();
        let signed = authorization.split("SignedHeaders=").nth(1).unwrap().split(',').next().unwrap();
        let mut names = request.headers().keys().map(HeaderName::as_str).filter(|name| name.starts_with("x-amz-"));
        assert!(names.all(|name| signed.split(';').any(|signed| signed == name)), "{authorization}");
    }
}

#[test]
fn a_server_may_take_twenty_seconds_to_restart() {
    let clock = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    clock.block_on(async {
        let begun = tokio::time::Instant::now();
        let mut tries = Tries::new(BucketSettings::parse(KEYS).unwrap().retries);
        while tries.pause(S3Error::Late(1)).await.is_ok() {}
        let waited = begun.elapsed();
        assert!((20..45).contains(&waited.as_secs()), "{waited:?}");
    });
}
