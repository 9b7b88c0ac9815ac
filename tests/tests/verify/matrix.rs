//! The rows.

use crate::damage::Damage;
use crate::row::{Phase, Row, Tree, data, disk};

pub(crate) fn rows() -> Vec<Row> {
    [letters(), on_disk(), on_volume(), damaged()].concat()
}

/// Every letter that a Director takes, each alone, with a digest that goes with it.
fn letters() -> Vec<Row> {
    let row = |letter| {
        let digest = match letter {
            '1' => "SHA1",
            '2' => "SHA256",
            '3' => "SHA512",
            _ => "MD5",
        };
        disk(&format!("letter-{letter}"), &format!("Signature = {digest} ; Verify = {letter}"))
    };
    "ipnugsamcd5123V".chars().map(row).collect()
}

fn on_disk() -> Vec<Row> {
    const UNSEEN: &str = "Verify with an XXHASH64 or XXH3 signature";
    vec![
        disk("md5", "Signature = MD5 ; Verify = ipnugsamcd5").init().run(Phase::Clean, "CD"),
        disk("sha1", "Signature = SHA1 ; Verify = pins1"),
        disk("sha256", "Signature = SHA256 ; Verify = pins5"),
        disk("sha512", "Signature = SHA512 ; Verify = ms3").init().run(Phase::Clean, "CD"),
        disk("xxh64", "Signature = XXHASH64 ; Verify = s5")
            .init()
            .differs(UNSEEN, &["XXHASH64 digest differs", "read ", "bytes ", "kept ", "File: @/content"]),
        disk("xxh3", "Signature = XXH3_128 ; Verify = s3")
            .init()
            .differs(UNSEEN, &["XXH3_128 digest differs", "read ", "bytes ", "kept ", "File: @/content"]),
        disk("no-digest", "Verify = pins5"),
        disk("no-letters", "Signature = MD5"),
        disk("no-options", "").init().run(Phase::Clean, "D"),
        disk("long", "Signature = MD5 ; Verify = ipnugsamcd5ipnugsamcd5"),
        disk("two-blocks", "Signature = SHA1 ; Verify = s1 ; WildFile = \"*/content\"")
            .block("Signature = MD5 ; Verify = pin5")
            .init(),
        disk("sparse", "Signature = MD5 ; Verify = s5 ; Sparse = yes").init().run(Phase::Clean, "CD"),
        disk("compressed", "Signature = MD5 ; Verify = s5 ; Compression = GZIP"),
        disk("all-names", "Signature = MD5 ; Verify = pins5 ; HardLinks = no"),
        disk("flat", "Signature = MD5 ; Verify = pins5 ; Recurse = no"),
        disk("noatime", "Signature = MD5 ; Verify = pinsa5 ; NoAtime = yes"),
        disk("strip", "Signature = MD5 ; Verify = pins5 ; StripPath = 2").init(),
        disk("excluded", "Exclude = yes ; WildFile = \"*/grown\" ; WildDir = \"*/sub\"")
            .block("Signature = MD5 ; Verify = s5"),
        disk("names", "Signature = MD5 ; Verify = s5").files(&[
            "@/content",
            "@/gone",
            "@/fifo",
            "@/socket",
            "@/link",
            "@/sub",
        ]),
        disk("ignored", "Signature = MD5 ; Verify = s5").setting("Exclude Dir Containing = leaf"),
    ]
}

fn on_volume() -> Vec<Row> {
    vec![
        data("volume-md5", "Signature = MD5 ; Verify = pins5").run(Phase::Clean, "VA").run(Phase::Damaged, "VA"),
        data("volume-sha1", "Signature = SHA1 ; Verify = s1").run(Phase::Clean, "V"),
        data("volume-sha256", "Signature = SHA256 ; Verify = s2").run(Phase::Clean, "V"),
        data("volume-sha512", "Signature = SHA512 ; Verify = s3").run(Phase::Clean, "V"),
        data("volume-xxh64", "Signature = XXHASH64 ; Verify = s3").run(Phase::Clean, "VA"),
        data("volume-xxh3", "Signature = XXH3_128 ; Verify = s2").run(Phase::Clean, "V"),
        data("volume-unsigned", "Verify = s5").run(Phase::Clean, "V"),
        data("volume-size", "Signature = MD5 ; Verify = s"),
        data("volume-digest", "Signature = MD5 ; Verify = 3"),
        data("volume-mode", "Signature = MD5 ; Verify = p"),
        data("volume-plain", "Signature = MD5"),
        data("volume-bare", ""),
        data("volume-blocks", "Signature = MD5 ; Verify = s5 ; WildFile = \"*/holes\"")
            .block("Signature = MD5 ; Verify = p1"),
        data("volume-unsigned-block", "Verify = s5 ; WildFile = \"*/nothing\"").block("Signature = MD5"),
        data("volume-kinds", "Signature = SHA1 ; Verify = s5 ; WildFile = \"*/holes\"")
            .block("Signature = MD5 ; Verify = s5")
            .differs("another digest than the FileSet's first", &["is a MD5 digest", "MD5 digest differs"]),
        data("volume-sparse", "Signature = MD5 ; Verify = s5 ; Sparse = yes").run(Phase::Clean, "A"),
        data("volume-gzip", "Signature = MD5 ; Verify = s5 ; Compression = GZIP")
            .run(Phase::Clean, "A")
            .damage(Damage::Zlib),
        data("volume-sparse-gzip", "Signature = SHA1 ; Verify = s5 ; Compression = GZIP ; Sparse = yes")
            .run(Phase::Clean, "A")
            .damage(Damage::Zlib),
        data("volume-lzo", "Signature = MD5 ; Verify = s5 ; Compression = LZO")
            .run(Phase::Clean, "A")
            .damage(Damage::HeaderVersion),
        data("volume-sparse-lzo", "Signature = MD5 ; Verify = s5 ; Compression = LZO ; Sparse = yes")
            .run(Phase::Clean, "A")
            .damage(Damage::HeaderLength),
        data("volume-links", "Signature = MD5 ; Verify = s5")
            .of(Tree::Links)
            .run(Phase::Clean, "VA")
            .run(Phase::Damaged, "")
            .differs(
                "a hard link, whose data is with its first name",
                &["MD5 digest differs", "status ", "ermination"],
            ),
        data("volume-disk", "Signature = MD5 ; Verify = pins5")
            .of(Tree::Disk)
            .run(Phase::Clean, "V")
            .run(Phase::Damaged, ""),
    ]
}

/// What the catalog has forgotten.
const NOT_LISTED: &str = "names no file of the volume that is not listed";

fn damaged() -> Vec<Row> {
    let options = "Signature = MD5 ; Verify = s5";
    vec![
        data("lost-stream", options).damage(Damage::Stream).run(Phase::Damaged, "VA").differs(
            "compares no size of a file that had data and of which none comes",
            &["st_size  differs on \"@/bit-in-data\". Vol: 0 File: 29"],
        ),
        data("lost-algorithm", "Signature = MD5 ; Verify = s5 ; Compression = LZO").damage(Damage::HeaderAlgorithm),
        data("forged", options)
            .damage(Damage::None)
            .accurate()
            .run(Phase::Clean, "A")
            .run(Phase::Damaged, "")
            .run(Phase::Forged, "VAD")
            .differs(NOT_LISTED, &["Not in the Catalog: "]),
        data("forged-plain", "Signature = MD5 ; Verify = s")
            .damage(Damage::None)
            .accurate()
            .run(Phase::Damaged, "")
            .run(Phase::Forged, "A")
            .differs(NOT_LISTED, &["Not in the Catalog: "]),
    ]
}
