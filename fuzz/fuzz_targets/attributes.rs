#![no_main]
//! Attribute records and their LStat: what is understood writes itself so that it is understood the
//! same again.

use fd_records::{Attributes, AttributesRecord, LStat, PluginName};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = PluginName::parse(data);
    if let Some(lstat) = LStat::decode(data) {
        let mut text = Vec::new();
        lstat.encode(&mut text);
        let masked = LStat { data_stream: lstat.data_stream.kind(), ..lstat };
        assert_eq!(LStat::decode(&text), Some(masked));
    }
    let Some(record) = AttributesRecord::parse(data) else { return };
    let (Some(file_type), Ok(file_index), Ok(delta_seq)) =
        (record.file_type(), i32::try_from(record.file_index), i32::try_from(record.delta_seq))
    else {
        return;
    };
    let AttributesRecord { name, lstat, link, attr_ex, .. } = record;
    let mut written = Vec::new();
    Attributes { file_index, file_type, name, lstat, link, attr_ex, delta_seq }.encode(&mut written);
    let again = AttributesRecord::parse(&written).expect("our own record");
    assert_eq!((again.file_index, again.file_type(), again.link), (record.file_index, Some(file_type), link));
    let mut twice = Vec::new();
    Attributes { name: again.name, lstat: again.lstat, file_index, file_type, link, attr_ex, delta_seq }
        .encode(&mut twice);
    assert_eq!(twice, written);
});
