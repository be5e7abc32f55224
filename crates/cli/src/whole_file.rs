//! Files that appear whole or not at all.

use crate::run::Stop;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Where a file will be written.
///
/// A file is written beside its final place and takes it when it is whole, so neither a run that fails nor a full
/// disk costs the file that was there before.
#[derive(Debug)]
pub(crate) struct WholeFile {
    path: PathBuf,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Beside(NamedTempFile),
    /// Not a regular file: a pipe, a terminal.
    Itself(File),
}

impl WholeFile {
    /// Opens the file, before the work that would be in vain if it cannot be opened.
    pub(crate) fn open(path: &Path) -> Result<Self, Stop> {
        let place = match fs::metadata(path) {
            Ok(there) if there.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Ok(there) if !there.is_file() => File::options().write(true).open(path).map(Place::Itself),
            _ => beside(path).map(Place::Beside),
        };
        let place = place.map_err(|error| cannot("write", path, &error))?;
        Ok(Self { path: path.to_owned(), place })
    }

    /// Writes the file: `content` does, through a buffer.
    pub(crate) fn write(self, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Stop> {
        let Self { path, place } = self;
        let whole = |file: &mut File| {
            let mut file = BufWriter::new(file);
            content(&mut file)?;
            file.flush()
        };
        let written = match place {
            Place::Beside(mut file) => whole(file.as_file_mut())
                .and_then(|()| file.persist(&path).map(drop).map_err(|error| error.error)),
            Place::Itself(mut file) => whole(&mut file),
        };
        written.map_err(|error| cannot("write", &path, &error))
    }
}

/// A new file in the directory of `path`, with the permissions that a new file has there.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".hotrow-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(directory.unwrap_or(Path::new(".")))
}

/// Says what cannot be done with which file.
pub(crate) fn cannot(what: &str, path: &Path, error: &dyn std::fmt::Display) -> Stop {
    Stop::File(format!("cannot {what} {}: {error}", path.display()))
}
