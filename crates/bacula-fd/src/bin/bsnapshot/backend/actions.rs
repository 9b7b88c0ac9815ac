//! What a backend has to do.

use std::path::PathBuf;

use crate::answer::Answer;
use crate::backend::work::Work;
use crate::failure::Outcome;

/// What a backend can do. Each function is one action and returns its answer.
pub(super) trait Backend {
    /// Its name, the answer's `type`.
    fn name(&self) -> &'static str;

    fn subvolumes(&self, _work: &Work<'_>) -> Outcome<Answer> {
        Ok(Answer::nothing())
    }

    fn support(&self, work: &Work<'_>) -> Outcome<Answer>;
    /// The directory below the mount point in which snapshots are seen, if it is not another
    /// user's.
    fn directory(&self, work: &Work<'_>) -> Option<PathBuf>;
    /// The same, if earlier snapshots are seen there now.
    fn directory_of_kept(&self, _work: &Work<'_>) -> Option<PathBuf> {
        None
    }
    fn create(&self, work: &Work<'_>) -> Outcome<Answer>;
    fn mount(&self, work: &Work<'_>) -> Outcome<Answer>;

    fn unmount(&self, _work: &Work<'_>) -> Outcome<Answer> {
        Ok(Answer::good().end_line())
    }

    fn delete(&self, work: &Work<'_>) -> Outcome<Answer>;

    fn list(&self, _work: &Work<'_>) -> Outcome<Answer> {
        Ok(Answer::new())
    }

    fn query(&self, work: &Work<'_>) -> Outcome<Answer>;
}
