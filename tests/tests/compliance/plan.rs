//! Which rows are run by which clients.

use bed::ClientOptions;

use crate::row::Row;

/// What is to be run.
pub(crate) struct Plan {
    pub(crate) label: &'static str,
    pub(crate) rows: Vec<Row>,
    pub(crate) clients: Vec<ClientOptions>,
    /// Whether the row is saved by all clients, and not only by the first one.
    pub(crate) by_all: fn(&Row) -> bool,
    /// How many beds share the rows.
    pub(crate) beds: usize,
    /// Which client saved and which one restores what is compared.
    pub(crate) restores: &'static [(usize, usize)],
}

impl Plan {
    /// Those that save a row.
    pub(crate) fn clients_of(&self, row: &Row) -> &[ClientOptions] {
        if (self.by_all)(row) { &self.clients } else { &self.clients[..1] }
    }
}
