//! Made-up rows: as many as the plan wants, with a tail, equal values and failed jobs. Both
//! programs that compute the numbers must agree on them, too, whatever has been measured.

use std::path::Path;

use bed::{BedError, Result};

use crate::cell::Cell;
use crate::paper::plan::Plan;
use crate::sample::{self, Sample, Side};
use crate::statistics::{Draws, float, seed_of};
use crate::surroundings::Surroundings;

/// Writes rows of every phase below a folder.
pub fn make_up(plan: &Plan, data: &Path) -> Result<()> {
    for phase in &plan.phase {
        let folder = data.join(&phase.name).join("made-up");
        std::fs::create_dir_all(&folder).map_err(BedError::file("create", &folder))?;
        for cell in phase.cells()? {
            let mut draws = Draws::new(seed_of(plan.seed, &format!("{}/{cell}", phase.name)));
            for replica in 1..=phase.replicas {
                let floor = phase.floor.then_some(Side::Floor);
                for (turn, side) in (1..).zip(Side::BOTH.into_iter().chain(floor)) {
                    sample::append(&folder.join("raw.csv"), &row(cell, side, replica, turn, &mut draws))?;
                }
            }
        }
    }
    Ok(())
}

fn row(cell: Cell, side: Side, replica: u32, turn: u32, draws: &mut Draws) -> Sample {
    let mut below = |limit: usize| float(draws.below(limit) as u64);
    // One in twenty takes several times as long, and some times are equal.
    let tail = if below(20) < 1.0 { 2000.0 + below(3000) } else { 0.0 };
    let usual = match side {
        Side::Stock => 1000.0,
        Side::Ours => 700.0,
        Side::Floor => 500.0,
    };
    let connection = usual + 10.0 * below(60) + tail;
    let (files, bytes) = (draws.below(9000) as u64, 1_000_000 + draws.below(1 << 28) as u64);
    let mut below = |limit: usize| float(draws.below(limit) as u64);
    Sample {
        cell,
        side,
        replica,
        turn,
        outcome: if below(50) < 1.0 { 'E' } else { 'T' },
        connection,
        first: cell.level.is_restore().then(|| 50.0 + below(100)),
        job: Some(connection + 2500.0),
        queued: Some(100.0 + below(2000)),
        fd: connection / 2000.0 + below(1000) / 1e5,
        fd_user: 0.1,
        fd_system: 0.1,
        sd: 0.1,
        dir: 0.1,
        rss: 1e7 + below(1 << 24),
        files,
        bytes,
        read_bytes: bytes,
        around: Surroundings { load: below(300) / 100.0, ..Surroundings::default() },
        program: None,
        harness: None,
    }
}
