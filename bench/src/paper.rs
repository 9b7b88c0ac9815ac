//! The paper's measurements and what is made of them: the plan, blocks of replicas that can be
//! resumed, the host's description, and tables, figures and text from the raw rows
//! (`paper/perf-analysis/`).

pub mod analysis;
pub mod appendix;
pub mod blocks;
pub mod calls;
pub mod command;
pub mod counts;
pub mod curves;
pub mod derived;
pub mod excerpts;
pub mod faults;
pub mod figures;
pub mod folders;
pub mod gates;
pub mod host;
pub mod lost;
pub mod made_up;
pub mod manifest;
pub mod model;
mod network;
pub mod plan;
pub mod render;
pub mod rivals;
pub mod scale;
pub mod tables;
pub mod tail;
pub mod text;
