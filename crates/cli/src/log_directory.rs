//! The directory of a run's log.

use crate::arguments::BenchPlan;
use crate::error::CommandError;
use hotrow_workloads::LogMode;
use std::path::{Path, PathBuf};
use std::{env, fs, io, process};

/// A new directory, which is removed with all that is in it at the end.
pub(crate) struct LogDirectory(Option<PathBuf>);

impl LogDirectory {
    /// Makes the directory, if the run has a log.
    pub(crate) fn new(plan: &BenchPlan) -> Result<Self, CommandError> {
        if plan.durability == LogMode::None {
            return Ok(Self(None));
        }
        let parent = plan.log_directory.clone().unwrap_or_else(env::temp_dir);
        let path = parent.join(format!("hotrow-log-{}", process::id()));
        let named = |reason: io::Error| CommandError::File(format!("{}: {reason}", path.display()));
        fs::create_dir(&path).map_err(named)?;
        Ok(Self(Some(path)))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.as_deref().unwrap_or(Path::new(""))
    }
}

impl Drop for LogDirectory {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // What is left is in the directory for temporary files, or in the user's.
            let _ = fs::remove_dir_all(path);
        }
    }
}
