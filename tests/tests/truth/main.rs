//! What is saved is what was there, and what is restored is what was saved: of trees that change,
//! by jobs in a row, and in odd surroundings.

mod in_its_turn;
mod inode_scan;
mod living_host;
mod metadata_updates;
mod not_opened;
mod objects;
mod quiet_changes;
mod restore_sequences;
mod restores_in_a_row;
mod surroundings;
