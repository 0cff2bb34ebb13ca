//! The socket at the path: successors connect to it. Also checks which processes may connect.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process;

use rustix::fs::{Mode, fchmod};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use socket2::{Domain, SockAddr, Socket, Type};

use super::error::HandOverErrorKind as Kind;
use super::wire::{ANSWER_TIME, set_timeouts};

/// The maximum length of the path, in bytes. A socket's address holds 108 bytes on Linux, including
/// a final zero (unix(7)); a dot and a process id are appended for the name of a new socket.
pub const PATH_BYTES_MAX: usize = 107 - 11;

/// How many successors may wait in the queue, to be told that another one came first.
const BACKLOG: i32 = 16;

pub(super) fn check_path(path: &Path) -> Result<(), Kind> {
    let bytes = path.as_os_str().len();
    if bytes > PATH_BYTES_MAX {
        return Err(Kind::PathTooLong { bytes, max: PATH_BYTES_MAX });
    }
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(Kind::NotASocket),
        _ => {}
    }
    // Checked now rather than when the loops have been made: no process could follow this one.
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let found = fs::metadata(directory.unwrap_or(Path::new(".")));
    found.map(drop).map_err(Kind::refused("find its directory"))
}

/// Checks that the process at the other end belongs to this process's user.
pub(super) fn check_user(peer: &impl AsFd) -> Result<(), Kind> {
    let peer =
        socket_peercred(peer).map_err(|error| Kind::refused("ask who is there")(error.into()))?;
    compare_users(peer.uid.as_raw(), geteuid().as_raw())
}

fn compare_users(theirs: u32, ours: u32) -> Result<(), Kind> {
    if theirs == ours { Ok(()) } else { Err(Kind::OtherUser { theirs, ours }) }
}

/// Connects to the process that serves at the path; `None` if there is none.
pub(super) fn connect(path: &Path) -> Result<Option<UnixStream>, Kind> {
    let refused = Kind::refused("connect to the process there");
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(&refused)?;
    // In case the process no longer accepts: connect(2) waits for a place in its queue.
    socket.set_write_timeout(Some(ANSWER_TIME)).map_err(&refused)?;
    let address = SockAddr::unix(path).map_err(&refused)?;
    match socket.connect(&address) {
        Ok(()) => {}
        // `ConnectionRefused` is the error of a socket whose process was killed.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            return Ok(None);
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Err(Kind::Silent(ANSWER_TIME));
        }
        Err(error) => return Err(refused(error)),
    }
    let peer = UnixStream::from(std::os::fd::OwnedFd::from(socket));
    check_user(&peer)?;
    set_timeouts(&peer).map_err(&refused)?;
    Ok(Some(peer))
}

/// A socket beside the path, to be moved to the path.
#[derive(Debug)]
pub(super) struct ControlSocket {
    pub(super) listener: UnixListener,
    temporary_path: PathBuf,
    /// Device and inode, because another process may take the name meanwhile.
    identity: (u64, u64),
}

fn file_identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

impl ControlSocket {
    /// Listens beside the path, accessible to this user only.
    pub(super) fn bind_beside(path: &Path) -> Result<ControlSocket, Kind> {
        let mut temporary_path = path.as_os_str().to_owned();
        temporary_path.push(format!(".{}", process::id()));
        let temporary_path = PathBuf::from(temporary_path);
        // Left behind by a killed process with the same id.
        let _ignored = fs::remove_file(&temporary_path);
        let refused = Kind::refused("listen there");
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(&refused)?;
        let address = SockAddr::unix(&temporary_path).map_err(&refused)?;
        // Before it is bound: `bind` creates the file with this mode, minus the umask (unix(7)). A
        // later change by path would follow whatever was put there.
        fchmod(&socket, Mode::RUSR | Mode::WUSR).map_err(|error| refused(error.into()))?;
        socket.bind(&address).map_err(&refused)?;
        let identity = file_identity(&temporary_path).map_err(&refused)?;
        let listener = std::os::fd::OwnedFd::from(socket).into();
        let control = ControlSocket { listener, temporary_path, identity };
        socket2::SockRef::from(&control.listener).listen(BACKLOG).map_err(&refused)?;
        Ok(control)
    }

    /// Takes the path, even if another socket is there.
    pub(super) fn move_to(&self, path: &Path) -> Result<(), Kind> {
        fs::rename(&self.temporary_path, path).map_err(Kind::refused("take the path"))
    }

    /// Returns whether the socket at the path is still this one.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        file_identity(path).is_ok_and(|found| found == self.identity)
    }

    /// Removes the socket at the path, unless it belongs to another process.
    pub(super) fn remove_from(&self, path: &Path) {
        if self.is_at(path) {
            let _ignored = fs::remove_file(path);
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // Once the socket was moved to its path, nothing is left here.
        let _ignored = fs::remove_file(&self.temporary_path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_of_the_same_user_are_accepted() {
        for (theirs, ours, is_own) in [(0, 0, true), (7, 7, true), (7, 0, false), (0, 7, false)] {
            assert_eq!(compare_users(theirs, ours).is_ok(), is_own, "{theirs} to {ours}");
        }
        let (one, _other) = UnixStream::pair().expect("descriptors are left");
        check_user(&one).expect("both are ours");
    }

    #[test]
    fn the_longest_path_has_room_for_a_process_id() {
        let longest = "x".repeat(PATH_BYTES_MAX);
        check_path(Path::new(&longest)).expect("it fits");
        SockAddr::unix(format!("{longest}.{}", 1 << 22)).expect("the kernel's largest id fits");
        let longer = format!("{longest}x");
        let error = check_path(Path::new(&longer)).expect_err("it does not fit");
        assert_eq!(
            error.to_string(),
            "the path has 97 bytes and may have 96: choose a shorter one"
        );
    }
}
