//! One file: its attribute record, how it is made, and how its data gets into it.

mod create;
mod data;
mod encryption;
mod item;
mod plan;
mod replace;
mod special;

pub(crate) use create::{Creator, Turn};
pub(crate) use data::{DataPath, Destination, Examined};
pub(crate) use encryption::Encryption;
pub(crate) use item::RestoreItem;
pub(crate) use plan::{Object, Place, Plan};
pub(crate) use replace::changes_what_exists;
