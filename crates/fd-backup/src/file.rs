//! One entry on its way into the stream: opened, compared, read, encoded.

pub(crate) mod blocks;
pub(crate) mod compare;
pub(crate) mod compressors;
pub(crate) mod data;
pub(crate) mod emit;
pub(crate) mod emptiness;
pub(crate) mod fate;
pub(crate) mod listing;
pub(crate) mod prepare;
pub(crate) mod save;
