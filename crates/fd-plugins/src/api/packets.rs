//! What the daemon and its plugins say about files and objects (reference 07 §3.3).

use fd_records::{FileType, Stat};
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::stat_form::StatForm;

/// A file or object that a plugin saves (`save_pkt`).
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the fields of save_pkt")]
pub struct SavePacket {
    /// The file's name.
    #[serde(with = "serde_bytes")]
    pub name: Option<Vec<u8>>,
    /// Where its data is read: the path inside a snapshot. Set by the daemon for option plugins.
    #[serde(with = "serde_bytes")]
    pub snap_name: Option<Vec<u8>>,
    /// Target of a link; for a directory its name with a final slash.
    #[serde(with = "serde_bytes")]
    pub link: Option<Vec<u8>>,
    /// Its attributes; size −1 if unknown.
    #[serde(with = "StatForm")]
    pub stat: Stat,
    /// Number of its type (`FileType::code`); 0 is an error.
    pub file_type: i32,
    /// Option flags (reference 07 §3.2).
    pub flags: u64,
    /// No data is to be read.
    pub no_read: bool,
    /// The data is portable.
    pub portable: bool,
    /// The accurate list has the file.
    pub accurate_found: bool,
    /// Only the attributes are saved (stream 37).
    pub stat_update: bool,
    /// The object, for types 25, 27 and 30.
    pub object: SaveObject,
    /// The object of type 29.
    pub plugin_object: PluginObject,
    /// Metadata, in its order; `None`: no list at all. An empty list fails the file (reference 07
    /// §5.9).
    #[serde(deserialize_with = "few_packets")]
    pub metadata: Option<Vec<MetadataPacket>>,
    /// Number of the delta before.
    pub delta_seq: u32,
    /// FileIndex of the first name of a hard link.
    pub link_fi: i32,
}

impl SavePacket {
    /// What the daemon hands a plugin to be filled.
    pub fn empty() -> Self {
        Self { portable: true, ..Self::default() }
    }

    /// The flag of an option that a plugin may set: holes are left out.
    pub const SPARSE: u64 = 1 << 5;
    /// The data is a patch of an earlier backup's.
    pub const DELTA: u64 = 1 << 28;
    /// Each block has its address.
    pub const OFFSETS: u64 = 1 << 30;
    /// The data is portable.
    pub const PORTABLE: u64 = 1 << 10;
}

/// An object that a plugin saves for its restores (`restore_object`).
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct SaveObject {
    /// Its name; one is needed.
    #[serde(with = "serde_bytes")]
    pub name: Option<Vec<u8>>,
    /// Its bytes.
    #[serde(with = "serde_bytes")]
    pub data: Vec<u8>,
    /// Its place among the plugin's objects.
    pub index: i32,
}

/// A description of what was saved, for the catalog (`plugin_object`).
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct PluginObject {
    /// Where it is.
    #[serde(with = "serde_bytes")]
    pub path: Vec<u8>,
    /// The plugin's name.
    #[serde(with = "serde_bytes")]
    pub plugin_name: Vec<u8>,
    /// For example `Database`.
    #[serde(with = "serde_bytes")]
    pub category: Vec<u8>,
    /// For example `PostgreSQL`.
    #[serde(with = "serde_bytes")]
    pub object_type: Vec<u8>,
    /// Its name.
    #[serde(with = "serde_bytes")]
    pub name: Vec<u8>,
    /// What it was made of.
    #[serde(with = "serde_bytes")]
    pub source: Vec<u8>,
    /// Its unique number.
    #[serde(with = "serde_bytes")]
    pub uuid: Vec<u8>,
    /// Its size in bytes.
    pub size: u64,
    /// A character; 0 for none.
    pub status: i32,
    /// How many parts it has.
    pub count: u32,
}

/// Metadata of a file (`meta_pkt`).
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct MetadataPacket {
    /// Bytes of all packets of the file, as the plugin counts them.
    pub total_size: u32,
    /// Number of all packets of the file.
    pub total_count: u16,
    /// 0: a blob; 1: for the catalog.
    pub kind: i32,
    /// Its place among the file's packets.
    pub index: u16,
    /// Its bytes.
    #[serde(with = "serde_bytes")]
    pub data: Vec<u8>,
}

impl MetadataPacket {
    /// Most packets of one file.
    pub(crate) const MOST: usize = 65_535;
}

/// Reads a list of packets. A packet takes more memory than bytes of a message, so no more than one
/// too many are kept: that shows that there are too many.
fn few_packets<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<MetadataPacket>>, D::Error> {
    struct Few(Vec<MetadataPacket>);
    struct Reader;

    impl<'de> Visitor<'de> for Reader {
        type Value = Few;

        fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.write_str("packets of metadata")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut packets: A) -> Result<Few, A::Error> {
            let mut few = Vec::new();
            while let Some(packet) = packets.next_element()? {
                if few.len() <= MetadataPacket::MOST {
                    few.push(packet);
                }
            }
            Ok(Few(few))
        }
    }

    impl<'de> Deserialize<'de> for Few {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            from.deserialize_seq(Reader)
        }
    }

    Ok(Option::<Few>::deserialize(from)?.map(|few| few.0))
}

/// A file that is to be restored or verified (`restore_pkt`).
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct RestoreFile {
    /// The stream of its attributes.
    pub stream: i32,
    /// The stream of its data.
    pub data_stream: i32,
    /// Number of its type.
    pub file_type: i32,
    /// Its FileIndex.
    pub file_index: i32,
    /// FileIndex of the first name of a hard link.
    pub link_fi: i32,
    /// Its owner.
    pub uid: u32,
    /// Its attributes.
    #[serde(with = "StatForm")]
    pub stat: Stat,
    /// The record's field for other attributes.
    #[serde(with = "serde_bytes")]
    pub attr_ex: Vec<u8>,
    /// Its name where it is restored.
    #[serde(with = "serde_bytes")]
    pub name: Vec<u8>,
    /// Target of a link where it is restored; `None` in a Verify job.
    #[serde(with = "serde_bytes")]
    pub link: Option<Vec<u8>>,
    /// The Director's `where`.
    #[serde(with = "serde_bytes")]
    pub place: Option<Vec<u8>>,
    /// The Director's `regexwhere`.
    #[serde(with = "serde_bytes")]
    pub regex_where: Option<Vec<u8>>,
    /// The replace mode, a letter.
    pub replace: u8,
    /// Number of the delta.
    pub delta_seq: u32,
}

/// What a plugin did with a file that is to be restored (reference 07 §7.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CreateStatus {
    /// It is left out (1).
    Skip,
    /// An error (2).
    Error,
    /// The plugin takes its data (3).
    Extract,
    /// It is made, and has no data (4).
    Created,
    /// The daemon is to make it (5).
    Core,
    /// Any other number.
    Other(i32),
}

impl CreateStatus {
    /// The status of this number.
    pub const fn from_code(code: i32) -> Self {
        match code {
            1 => Self::Skip,
            2 => Self::Error,
            3 => Self::Extract,
            4 => Self::Created,
            5 => Self::Core,
            other => Self::Other(other),
        }
    }

    /// Its number.
    pub const fn code(self) -> i32 {
        match self {
            Self::Skip => 1,
            Self::Error => 2,
            Self::Extract => 3,
            Self::Created => 4,
            Self::Core => 5,
            Self::Other(code) => code,
        }
    }
}

/// An object that a backup has saved, on its way back (`restore_object_pkt`, reference 07 §7.2).
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct SavedObject {
    /// Its name.
    #[serde(with = "serde_bytes")]
    pub name: Vec<u8>,
    /// Its bytes, unpacked.
    #[serde(with = "serde_bytes")]
    pub data: Vec<u8>,
    /// The command that has saved it; empty if the Director does not say.
    #[serde(with = "serde_bytes")]
    pub command: Vec<u8>,
    /// Its type.
    pub object_type: i32,
    /// Bytes that it had when it was saved.
    pub full_length: i32,
    /// Its place among the plugin's objects.
    pub index: i32,
    /// How it was packed.
    pub compression: i32,
    /// The backup that has saved it.
    pub job_id: u32,
}

impl SavedObject {
    /// Whether it holds the options that a user has filled in for this restore. All others are what
    /// a backup has saved.
    pub fn is_filled_in(&self) -> bool {
        self.object_type == i32::from(FileType::PluginConfigFilled.code())
    }
}

/// A file that was chosen for a restore (`restore_filelist_pkt`, reference 07 §7.3).
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct ChosenFile {
    /// Its name.
    #[serde(with = "serde_bytes")]
    pub name: Vec<u8>,
    /// Its attributes.
    #[serde(with = "StatForm")]
    pub stat: Stat,
    /// FileIndex of the first name of a hard link.
    pub link_fi: i32,
    /// Number of the delta.
    pub delta_seq: u32,
    /// Its digest as a text; may be empty.
    #[serde(with = "serde_bytes")]
    pub checksum: Vec<u8>,
}

/// A question of the console (`query_pkt`, reference 07 §8.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Query<'a> {
    /// What is asked for.
    pub parameter: &'a [u8],
    /// The plugin's command.
    pub command: &'a [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_packets_of_metadata_one_too_many_is_kept() {
        for (count, kept) in [(3, 3), (MetadataPacket::MOST, MetadataPacket::MOST), (200_000, MetadataPacket::MOST + 1)]
        {
            let metadata = Some(vec![MetadataPacket::default(); count]);
            let bytes = postcard::to_extend(&SavePacket { metadata, ..SavePacket::default() }, Vec::new()).unwrap();
            let read: SavePacket = postcard::from_bytes(&bytes).unwrap();
            assert_eq!(read.metadata.map(|list| list.len()), Some(kept));
        }
    }
}
