//! Which names can be opened and which cannot, with both ways of lookup.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use rotor_test_kit::Directory;
use rustix::io::Errno;

use super::entry::{Entry, OpenError};
use super::kernel_lookup::KernelLookup;
use super::open::{Root, repeat_if_interrupted};

/// A temporary directory that is removed at the end.
struct Tree(Directory);

impl Tree {
    /// `outside` contains a secret, and `root` what a hostile user may put there.
    fn new() -> Tree {
        let tree = Tree(Directory::create());
        let root = tree.root();
        fs::create_dir_all(root.join("dir/deep")).expect("a directory");
        fs::create_dir(tree.0.join("outside")).expect("a directory");
        for (name, text) in [
            ("outside/secret", "secret"),
            ("root/file", "file"),
            ("root/dir/file", "dir/file"),
            ("root/dir/deep/file", "dir/deep/file"),
            ("root/empty", ""),
        ] {
            fs::write(tree.0.join(name), text).expect("a file");
        }
        for (name, target) in [
            ("link", "file"),
            ("link-to-link", "link"),
            ("dir/up", "../file"),
            ("dir-link", "dir"),
            ("around", "dir/../dir/deep/../file"),
            ("self", "self"),
            ("ring", "dir/ring"),
            ("dir/ring", "../ring"),
            ("dangling", "nothing"),
            ("out", "../outside/secret"),
            ("out-and-in", "../root/file"),
            ("dir/out", "../../outside/secret"),
            ("out-dir", "../outside"),
            ("absolute", "/etc/passwd"),
            ("absolute-in", root.join("file").to_str().expect("text")),
            ("absolute-here", "/file"),
            ("proc", "/proc/self/root"),
        ] {
            symlink(target, root.join(name)).expect("a link");
        }
        let made = Command::new("mkfifo").arg(root.join("fifo")).status();
        assert!(made.expect("mkfifo is there").success());
        UnixListener::bind(root.join("socket")).expect("a socket");
        tree
    }

    fn root(&self) -> PathBuf {
        self.0.join("root")
    }
}

/// The result for a name, which must be the same for both ways of lookup.
fn find(root: &Path, follow_links: bool, name: &str) -> String {
    let root = Root::open(root, follow_links).expect("a directory");
    let describe = |found: Result<Entry, OpenError>| match found {
        Ok(Entry::File(mut file, metadata)) => {
            let mut text = String::new();
            file.read_to_string(&mut text).expect("a file that can be read");
            assert_eq!(metadata.len(), text.len() as u64);
            format!("file: {text}")
        }
        Ok(Entry::Directory) => "directory".into(),
        Err(error) => error.status().code().to_string(),
    };
    let by_walk = describe(root.find_by_walk(name.as_bytes()));
    if let KernelLookup::Done(found) = root.find_by_kernel(name.as_bytes()) {
        assert_eq!(describe(found), by_walk, "the kernel and the walk agree about {name}");
    }
    assert_eq!(describe(root.find(name.as_bytes())), by_walk);
    by_walk
}

#[test]
fn only_regular_files_are_opened() {
    let tree = Tree::new();
    for follow_links in [false, true] {
        for (name, expected) in [
            ("file", "file: file"),
            ("empty", "file: "),
            ("dir/file", "file: dir/file"),
            ("dir/deep/file", "file: dir/deep/file"),
            ("dir", "directory"),
            ("dir/deep", "directory"),
            ("nothing", "404"),
            ("nothing/file", "404"),
            ("dir/nothing", "404"),
            ("file/file", "404"),
            ("fifo", "404"),
            ("fifo/file", "404"),
            ("socket", "404"),
            (&"x".repeat(256), "404"),
        ] {
            assert_eq!(find(&tree.root(), follow_links, name), expected, "{name}");
        }
    }
}

#[test]
fn links_are_followed_only_if_allowed_and_only_inside_the_root() {
    let tree = Tree::new();
    for (name, expected) in [
        ("link", "file: file"),
        ("link-to-link", "file: file"),
        ("dir/up", "file: file"),
        ("dir-link", "directory"),
        ("dir-link/file", "file: dir/file"),
        ("dir-link/up", "file: file"),
        ("around", "file: dir/file"),
        ("self", "404"),
        ("ring", "404"),
        ("dangling", "404"),
        ("out", "404"),
        ("out-and-in", "404"),
        ("dir/out", "404"),
        ("dir-link/out", "404"),
        ("out-dir", "404"),
        ("out-dir/secret", "404"),
        ("absolute", "404"),
        ("absolute-in", "404"),
        ("absolute-here", "404"),
        ("proc", "404"),
        ("proc/etc/passwd", "404"),
    ] {
        assert_eq!(find(&tree.root(), true, name), expected, "{name}");
        assert_eq!(find(&tree.root(), false, name), "404", "{name}, not followed");
    }
}

#[test]
fn names_that_lead_outside_are_refused() {
    let tree = Tree::new();
    for follow_links in [false, true] {
        for name in ["../outside/secret", "dir/../../outside/secret", ".."] {
            assert_eq!(find(&tree.root(), follow_links, name), "404", "{name}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_is_not_opened() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let tree = Tree::new();
    // Only a privileged process can create a device; 1, 3 is /dev/null.
    let device = rustix::fs::makedev(1, 3);
    let made =
        mknodat(CWD, tree.root().join("null"), FileType::CharacterDevice, Mode::RUSR, device);
    if made.is_ok() {
        assert_eq!(find(&tree.root(), true, "null"), "404");
    }
}

#[test]
fn an_unreadable_file_is_forbidden() {
    let tree = Tree::new();
    let file = tree.root().join("dir/file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).expect("it is ours");
    // A privileged process may read everything.
    if fs::File::open(&file).is_err() {
        assert_eq!(find(&tree.root(), false, "dir/file"), "403");
    }
}

#[test]
fn a_replaced_root_directory_has_no_effect() {
    let tree = Tree::new();
    let root = Root::open(&tree.root(), false).expect("a directory");
    fs::rename(tree.root(), tree.0.join("moved")).expect("it is ours");
    fs::create_dir(tree.root()).expect("its name is free");
    assert!(matches!(root.find(b"file"), Ok(Entry::File(..))));
}

/// A writer of the FIFO would take this process for its reader; opening a device may have any
/// effect.
#[cfg(target_os = "linux")]
#[test]
fn a_fifo_is_never_opened() {
    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
    use rustix::fs::{Mode, OFlags};

    let tree = Tree::new();
    let root = Root::open(&tree.root(), false).expect("a directory");
    let watch = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).expect("a descriptor is left");
    add_watch(&watch, tree.root().join("fifo"), WatchFlags::OPEN).expect("it is there");
    let is_opened = || rustix::io::read(&watch, &mut [0_u8; 256]).is_ok();
    assert!(matches!(root.find(b"fifo"), Err(OpenError::NotFound)));
    assert!(matches!(root.find_by_walk(b"fifo"), Err(OpenError::NotFound)));
    assert!(!is_opened());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    rustix::fs::open(tree.root().join("fifo"), flags, Mode::empty()).expect("it is ours");
    assert!(is_opened(), "the watch works");
}

#[test]
fn an_interrupted_look_up_is_repeated_and_a_failed_one_is_not() {
    for then in [Ok(Entry::Directory), Err(OpenError::from(Errno::IO))] {
        let is_found = then.is_ok();
        let (mut then, mut count) = (Some(then), 0);
        let found = repeat_if_interrupted(|| {
            count += 1;
            if count < 3 { Err(Errno::INTR.into()) } else { then.take().expect("the last one") }
        });
        assert_eq!((found.is_ok(), count), (is_found, 3));
    }
}
