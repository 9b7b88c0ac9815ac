//! The table of streams against the numbers of the reference.

use super::*;

fn numbers(is_wanted: fn(StreamClass) -> bool) -> Vec<u32> {
    (0..2048).filter(|kind| is_wanted(Stream::new(*kind).class())).collect()
}

fn numbers_of_data(is_wanted: fn(DataLayout) -> bool) -> Vec<u32> {
    let layout = |kind: &u32| match Stream::new(*kind).class() {
        StreamClass::Data(layout) => is_wanted(layout),
        _ => false,
    };
    (0..2048).filter(layout).collect()
}

#[test]
fn the_kind_stands_in_the_low_eleven_bits() {
    let stream = Stream::new(Stream::BIT_OFFSETS | 2);
    assert_eq!(stream.kind(), Stream::FILE_DATA);
    assert!(stream.has(Stream::BIT_OFFSETS));
    assert!(!Stream::FILE_DATA.has(Stream::BIT_OFFSETS));
    assert_eq!(Stream::new(0x7FF).kind(), Stream::new(2047));
}

#[test]
fn names_are_those_of_the_messages() {
    assert_eq!(Stream::MD5.to_string(), "MD5 digest");
    assert_eq!(Stream::XXH3_128.to_string(), "XXH3_128 digest");
    assert_eq!(Stream::new(2000).to_string(), "2000");
    assert_eq!(Stream::new(900).to_string(), "900");
    assert_eq!(Stream::NONE.to_string(), "0");
    assert_eq!(Stream::ATTRIBUTES.to_string(), "Unix attributes");
    assert_eq!(Stream::FILE_EVENT.to_string(), "FileEvent");
    assert_eq!(Stream::new(Stream::BIT_OFFSETS | 6).to_string(), "Sparse data");
    assert_eq!(Stream::LINUX_XATTR.to_string(), "Linux Extended attribs");
    assert_eq!(Stream::PLUGIN_ACL.to_string(), "1020");
}

/// It fails if a new kind of digest has no row in the table.
#[test]
fn each_kind_of_digest_has_a_stream_of_its_name() {
    for kind in DigestKind::ALL {
        assert_ne!(kind.stream(), Stream::NONE, "{kind}: no row in the table of streams");
        assert_eq!(kind.stream().to_string(), format!("{kind} digest"));
    }
    let mut streams = DigestKind::ALL.map(|kind| kind.stream().number());
    streams.sort_unstable();
    assert_eq!(numbers(|class| matches!(class, StreamClass::Digest(_))), streams);
    for known in [3, 10, 17, 18, 39, 40, 41] {
        assert!(streams.contains(&known), "{known} of the reference");
    }
    assert_eq!(Stream::SIGNED_DIGEST.digest_kind(), None);
}

#[test]
fn layouts_of_data_are_those_of_the_reference() {
    assert_eq!(numbers_of_data(|_| true), [2, 4, 6, 7, 11, 12, 20, 21, 23, 24, 29, 30, 31, 32, 33]);
    assert_eq!(numbers_of_data(|layout| layout.has_address), [6, 7, 30]);
    assert_eq!(numbers_of_data(|layout| layout.packing == Packing::Zlib), [4, 7, 12, 23, 24]);
    assert_eq!(numbers_of_data(|layout| layout.packing == Packing::WithHeader), [29, 30, 31, 32, 33]);
    assert_eq!(numbers_of_data(|layout| layout.is_encrypted), [20, 21, 23, 24, 32, 33]);
    assert_eq!(numbers_of_data(|layout| layout.is_win32), [11, 12, 21, 24, 31, 33]);
}

#[test]
fn the_flag_for_addresses_counts_in_the_layout() {
    let offsets = Stream::new(Stream::BIT_OFFSETS | Stream::WIN32_DATA.number());
    assert!(offsets.layout().has_address && offsets.layout().is_win32);
    assert_eq!(Stream::PLUGIN_DATA.layout(), DataLayout::default());
}

#[test]
fn each_layout_of_data_has_one_stream() {
    for stream in Stream::LISTED {
        if let StreamClass::Data(layout) = stream.class() {
            assert_eq!(Stream::of_data(layout), stream);
        }
    }
    assert_eq!(
        Stream::of_data(DataLayout { has_address: true, is_encrypted: true, ..DataLayout::default() }),
        Stream::NONE
    );
}

#[test]
fn restorable_data_is_that_of_the_reference() {
    let restorable: Vec<u32> = (0..2048).filter(|number| Stream(*number).is_restorable_data()).collect();
    let expected: Vec<u32> = (0..=12).chain(17..=21).chain([23, 24]).chain(29..=33).collect();
    assert_eq!(restorable, expected);
    assert!(!Stream(Stream::BIT_OFFSETS | 2).is_restorable_data());
}

#[test]
fn unlisted_numbers_of_metadata_have_their_class() {
    let acls: Vec<u32> = [15, 16].into_iter().chain((1000..=1022).filter(|number| *number != 1020)).collect();
    assert_eq!(numbers(|class| class == StreamClass::Metadata(MetadataKind::Acl)), acls);
    assert_eq!(numbers(|class| class == StreamClass::Metadata(MetadataKind::Xattr)), (1989..=1999).collect::<Vec<_>>());
    assert_eq!(numbers(|class| matches!(class, StreamClass::PluginXacl(_))), [1020, 1988]);
    assert_eq!(numbers(|class| class == StreamClass::Ignored), [8, 9, 38]);
}
