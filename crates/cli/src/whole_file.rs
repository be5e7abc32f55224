//! Atomic replacement of files: a file appears whole or not at all.

use crate::error::CommandError;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file that will be written.
///
/// The content goes to a draft, which replaces the target when it is complete. So neither a failed run nor a full disk
/// destroys an earlier file. If the file system supports it, the draft has no name, so that nothing is left behind if
/// the process is killed.
#[derive(Debug)]
pub(crate) struct WholeFile {
    /// The path as the user gave it.
    path: PathBuf,
    destination: Destination,
}

#[derive(Debug)]
enum Destination {
    /// A draft that will replace `target`, which has these permissions if it exists.
    Draft { draft: Draft, target: PathBuf, permissions: Option<Permissions> },
    /// Not a regular file (a pipe, a terminal), so it is written directly.
    Itself(File),
}

#[derive(Debug)]
enum Draft {
    /// A file without a name in the directory of its target.
    Unnamed(File),
    /// A file beside its target, if the file system has no files without a name.
    Named(NamedTempFile),
}

impl WholeFile {
    /// Opens the file. Call it before the work, which would be useless if the file cannot be opened.
    pub(crate) fn open(path: &Path) -> Result<Self, CommandError> {
        let destination = Destination::open(path).map_err(|error| cannot("write", path, &error))?;
        Ok(Self { path: path.to_owned(), destination })
    }

    /// Writes the file: `content` writes its bytes, through a buffer.
    pub(crate) fn write(
        self,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), CommandError> {
        let Self { path, destination } = self;
        let whole = |file: &mut File| {
            let mut file = BufWriter::new(file);
            content(&mut file)?;
            file.flush()
        };
        let written = match destination {
            Destination::Draft { mut draft, target, permissions } => whole(draft.file())
                .and_then(|()| permissions.map_or(Ok(()), |like| draft.file().set_permissions(like)))
                .and_then(|()| draft.persist(&target)),
            Destination::Itself(mut file) => whole(&mut file),
        };
        written.map_err(|error| cannot("write", &path, &error))
    }
}

impl Destination {
    fn open(path: &Path) -> io::Result<Self> {
        let target = behind_links(path)?;
        let permissions = match fs::metadata(&target) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if !there.is_file() => {
                return File::options().write(true).open(path).map(Destination::Itself);
            }
            // The owner may replace a read-only file, and some users may write any file. Neither is wanted here.
            Ok(there) if there.permissions().readonly() => {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
            }
            Ok(there) => {
                File::options().write(true).open(&target)?;
                Some(there.permissions())
            }
            Err(_) => None,
        };
        let draft = Draft::beside(&target)?;
        Ok(Destination::Draft { draft, target, permissions })
    }
}

/// The longest chain of symbolic links, as on Linux.
const LINKS_MAX: usize = 40;

/// The path at the end of a chain of symbolic links. No file need exist there.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(target) => path = directory_of(&path).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Draft {
    fn beside(target: &Path) -> io::Result<Self> {
        match unnamed_in(directory_of(target)) {
            Ok(file) => Ok(Draft::Unnamed(file)),
            // A problem with the directory is reported by this call, too.
            Err(_) => builder().tempfile_in(directory_of(target)).map(Draft::Named),
        }
    }

    fn file(&mut self) -> &mut File {
        match self {
            Draft::Unnamed(file) => file,
            Draft::Named(file) => file.as_file_mut(),
        }
    }

    /// Replaces the file at `target`.
    fn persist(self, target: &Path) -> io::Result<()> {
        let named = match self {
            // A file without a name cannot replace another directly, so it gets a name first.
            Draft::Unnamed(file) => {
                builder().make_in(directory_of(target), |name| give_name(&file, name))?.into_temp_path()
            }
            Draft::Named(file) => file.into_temp_path(),
        };
        named.persist(target).map_err(|error| error.error)
    }
}

/// A builder of files with the permissions that new files have in their directory.
fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".hotrow-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(Permissions::from_mode(0o666));
    }
    builder
}

#[cfg(target_os = "linux")]
fn unnamed_in(directory: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};
    let mode = Mode::from_raw_mode(0o666);
    Ok(open(directory, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode)?.into())
}

#[cfg(target_os = "linux")]
fn give_name(file: &File, name: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    use std::os::fd::AsRawFd as _;
    let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, descriptor, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn unnamed_in(_directory: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn give_name(_file: &File, _name: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The error that an operation on a file failed.
pub(crate) fn cannot(what: &str, path: &Path, error: &dyn std::fmt::Display) -> CommandError {
    CommandError::File(format!("cannot {what} {}: {error}", path.display()))
}
