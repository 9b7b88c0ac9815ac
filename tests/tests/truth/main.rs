//! What is saved is what was there, and what is restored is what was saved: of trees that change,
//! by jobs in a row, and in odd surroundings.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what helps a test fails the test, like the test itself"
)]

mod in_its_turn;
mod inode_scan;
mod large_attributes;
mod left_out;
mod living_host;
mod metadata_updates;
mod not_opened;
mod objects;
mod quiet_changes;
mod restore_sequences;
mod restores_in_a_row;
mod surroundings;
