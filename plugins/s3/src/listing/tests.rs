//! What a server may say of a listing.

use super::*;
use crate::server::client;

const START: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
    <ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>";
const OBJECT: &str = "<Contents><Key>a%2F+%0A%25+%2B</Key><LastModified>2026-11-22T10:11:12.999Z</LastModified>\
    <ETag>&quot;abc&quot;</ETag><Size>5</Size><StorageClass>STANDARD</StorageClass></Contents>";

fn parsed(rest: &str) -> Result<Page, S3Error> {
    parse(format!("{START}{rest}</ListBucketResult>").as_bytes())
}

#[test]
fn a_page_is_read() {
    let page = parsed(&format!(
        "<IsTruncated>true</IsTruncated><EncodingType>url</EncodingType>{OBJECT}{OBJECT}\
         <NextContinuationToken>t+/=</NextContinuationToken>"
    ));
    let key = b"a/ \n% +".to_vec();
    let object = Listed { key, size: 5, modified: 1_795_342_272, etag: "\"abc\"".to_owned() };
    assert_eq!(page, Ok(Page { objects: vec![object.clone(), object], next: Some("t+/=".to_owned()) }));
    assert_eq!(parsed("<IsTruncated>false</IsTruncated>"), Ok(Page::default()));
}

#[test]
fn a_key_that_is_not_encoded_is_left_alone() {
    let page = parsed(&OBJECT.replace("a%2F+%0A%25+%2B", "a%2F+&amp;")).unwrap();
    assert_eq!(page.objects.first().map(|object| object.key.clone()), Some(b"a%2F+&".to_vec()));
}

#[test]
fn nonsense_is_an_error() {
    for rest in [
        "<IsTruncated>true</IsTruncated>",
        &OBJECT.replace("<Size>5</Size>", "<Size>-5</Size>"),
        &OBJECT.replace("2026", "noon"),
        &OBJECT.replace("<Size>5</Size>", ""),
        "<Contents>",
    ] {
        assert!(matches!(parsed(rest), Err(S3Error::Nonsense(_))), "{rest}");
    }
    assert!(matches!(parse(b"<html>hello"), Err(S3Error::Nonsense(_))));
    let error = parsed(&OBJECT.replace("2026", "\n2026\u{1b}[2J")).unwrap_err().to_string();
    assert!(error.contains("2026") && !error.chars().any(char::is_control), "{error:?}");
    for other in ["", "<html></html>", "<Error><Code>x</Code></Error>", "<ListBucketResult>"] {
        assert!(matches!(parse(other.as_bytes()), Err(S3Error::Nonsense(_))), "{other}");
    }
}

#[test]
fn a_page_with_a_token_has_a_next_one_unless_it_says_else() {
    let token = "<NextContinuationToken>t</NextContinuationToken>";
    assert_eq!(parsed(token).unwrap().next.as_deref(), Some("t"));
    assert_eq!(parsed(&format!("<IsTruncated>false</IsTruncated>{token}")).unwrap().next, None);
}

#[test]
fn texts_that_are_longer_than_any_are_refused() {
    let with = |length: usize, what: &str| parsed(&OBJECT.replace(what, &"k".repeat(length)));
    for what in ["a%2F+%0A%25+%2B", "&quot;abc&quot;"] {
        assert!(with(1024, what).is_ok());
        assert!(matches!(with(1025, what), Err(S3Error::Nonsense(_))), "{what}");
    }
}

/// The keys that a listing brings whose pages are these, and its error.
fn listed(page: impl Fn(usize) -> String + Send + Sync + 'static) -> (Vec<Vec<u8>>, Option<S3Error>) {
    let server = client(move |asked| {
        let number = asked
            .target
            .split("continuation-token=")
            .nth(1)
            .map_or(0, |rest| rest.split('&').next().and_then(|number| number.parse().ok()).unwrap());
        Some((200, "", format!("{START}{}</ListBucketResult>", page(number)).into()))
    });
    let mut pages = list(&server).unwrap();
    let mut keys = Vec::new();
    while let Some(page) = pages.blocking_recv() {
        match page {
            Ok(Some(page)) => keys.extend(page.into_iter().map(|object| object.key)),
            Ok(None) => return (keys, None),
            Err(error) => return (keys, Some(error)),
        }
    }
    panic!("the listing has no end: {keys:?}")
}

#[test]
fn a_page_without_objects_is_not_the_end() {
    let next = |number: usize| format!("<NextContinuationToken>{}</NextContinuationToken>", number + 1);
    let key = |key: &str| OBJECT.replace("a%2F+%0A%25+%2B", key);
    let (keys, error) = listed(move |number| match number {
        0 => format!("{}{}", next(0), key("0")),
        1..100 => next(number),
        _ => key("1"),
    });
    assert_eq!((keys, error), (vec![b"0".to_vec(), b"1".to_vec()], None));
    // Without an end there is nothing but such pages.
    let (keys, error) = listed(next);
    assert_eq!((keys, error), (Vec::new(), Some(S3Error::nonsense(texts::ENDLESS))));
}
