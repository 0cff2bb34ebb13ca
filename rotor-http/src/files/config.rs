//! `FilesConfig`: what is served and how. `Files`: the seed of handlers.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::cache::Cache;
use super::entry::Entry;
use super::known::KnownFile;
use super::open::Root;
use super::precompressed::Precompressed;
use super::tag_key::TagKey;

/// Which directory is served, and how.
///
/// ```no_run
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::files::FilesConfig;
///
/// # fn main() -> std::io::Result<()> {
/// let files = FilesConfig::new("/srv/www").cache_control("max-age=3600").open()?;
/// # Ok(())
/// # }
/// ```
///
/// If programs set the dates of files, for example all to the same one, `If-Range` and
/// `If-Modified-Since` with a date are unsafe, because a file that is written again may keep its
/// date; clients that send the entity tag are safe.
#[derive(Debug, Clone)]
#[must_use]
pub struct FilesConfig {
    root: PathBuf,
    /// The path at which the files are mounted, without a slash at its end.
    mount: String,
    index: Option<String>,
    fallback: Option<Fallback>,
    hidden: bool,
    follow_links: bool,
    cache_control: Option<String>,
    charset: Option<String>,
    precompressed: Vec<Precompressed>,
    known_files_max: usize,
    renew_after: Duration,
    tag_key: Option<TagKey>,
}

/// The file that is sent for paths at which there is none.
#[derive(Debug, Clone)]
pub(super) struct Fallback {
    pub(super) name: String,
    /// Whether it is sent like any other file, and not with 404.
    pub(super) is_found: bool,
}

/// An open directory, ready to be served: the seed of [`StaticFiles`](super::StaticFiles). Clones
/// share everything.
///
/// It remembers the files that were requested recently; small ones are kept in memory, others open.
/// Use one value for the connections of one loop: give each loop its own, so that loops share
/// nothing.
#[derive(Debug, Clone)]
pub struct Files {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: FilesConfig,
    pub(super) root: Root,
    pub(super) tag_key: TagKey,
    /// Used only on the loop's thread, and never locked during a system call of a look-up.
    known: Mutex<Cache<Arc<KnownFile>>>,
}

impl Files {
    /// Returns whether a path, as it was sent, is the path at which these files are
    /// [mounted](FilesConfig::mounted_at) or a path below it, whether the file exists or not.
    pub fn are_at(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.shared.config.mount.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl FilesConfig {
    /// Makes the default configuration for serving this directory.
    pub fn new(root: impl AsRef<Path>) -> FilesConfig {
        FilesConfig {
            root: root.as_ref().to_path_buf(),
            mount: String::new(),
            index: Some("index.html".into()),
            fallback: None,
            hidden: false,
            follow_links: false,
            cache_control: None,
            charset: Some("utf-8".into()),
            precompressed: Vec::new(),
            known_files_max: 64,
            renew_after: Duration::from_secs(1),
            tag_key: None,
        }
    }

    /// Sets the path at which the directory is mounted. With `/static`, the path `/static/a.css` is
    /// `a.css` in the directory, `/static` is redirected to `/static/`, and no other path is found.
    /// Default: `/`, all paths of the server.
    ///
    /// Use this to serve files in addition to something else, for example in a
    /// [`Routed`](crate::server::Routed) server. The path is compared as it was sent, before
    /// escapes are decoded. A slash at its end makes no difference.
    ///
    /// ```no_run
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::files::FilesConfig;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let files = FilesConfig::new("/srv/app/assets").mounted_at("/static").open()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn mounted_at(mut self, path: impl Into<String>) -> FilesConfig {
        self.mount = path.into();
        if self.mount.ends_with('/') {
            self.mount.pop();
        }
        self
    }

    /// Sets the name of the file that is sent for its directory. Default: `index.html`, the usual
    /// name.
    pub fn index(mut self, name: impl Into<String>) -> FilesConfig {
        self.index = Some(name.into());
        self
    }

    /// Turns index files off: requests for directories get 404.
    pub fn no_index(mut self) -> FilesConfig {
        self.index = None;
        self
    }

    /// Sets the file that is sent, with 404, for paths at which there is no file: the path of a file
    /// in the directory, such as `404.html`. Default: none; the body is then the status, as text.
    ///
    /// It is sent without the [cache control](FilesConfig::cache_control) of the files, and without
    /// a tag. Paths outside of the [mount path](FilesConfig::mounted_at) do not get it. This
    /// replaces a [fallback](FilesConfig::fallback).
    ///
    /// ```no_run
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::files::FilesConfig;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let files = FilesConfig::new("/srv/www").not_found_page("404.html").open()?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "error_page")]
    pub fn not_found_page(mut self, path: impl Into<String>) -> FilesConfig {
        self.fallback = Some(Fallback { name: path.into(), is_found: false });
        self
    }

    /// Sets the file that is sent, as if it were there, for paths at which there is no file: the
    /// page of an application that reads the path itself, in the browser. Default: none.
    ///
    /// This replaces a [page for missing files](FilesConfig::not_found_page).
    ///
    /// ```no_run
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::files::FilesConfig;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let files = FilesConfig::new("/srv/app/dist").fallback("index.html").open()?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "try_files")]
    #[doc(alias = "single-page application")]
    pub fn fallback(mut self, path: impl Into<String>) -> FilesConfig {
        self.fallback = Some(Fallback { name: path.into(), is_found: true });
        self
    }

    /// Sets whether names that begin with a dot are served. Default: no, because such files
    /// (`.git`, `.htpasswd`, `.env`) easily get into a directory unnoticed and are not meant to be
    /// published. `.well-known` at the root is meant to be published, and is always served (RFC
    /// 8615).
    pub fn hidden(mut self, yes: bool) -> FilesConfig {
        self.hidden = yes;
        self
    }

    /// Sets whether symbolic links are followed if they stay inside the directory. A link that
    /// leads out of the directory, or is absolute, is never followed. Default: no, because anybody
    /// who can make a link could decide what is served, including hidden files.
    pub fn follow_links(mut self, yes: bool) -> FilesConfig {
        self.follow_links = yes;
        self
    }

    /// Sets the `Cache-Control` of every file. Default: none. Caches then guess from the age of the
    /// file (RFC 9111 §4.2.2); only the owner of the files knows better.
    pub fn cache_control(mut self, value: impl Into<String>) -> FilesConfig {
        self.cache_control = Some(value.into());
        self
    }

    /// Sets the character set that is declared for text files. Default: `utf-8`, which is nearly
    /// always right; without a declaration, a browser may guess wrong.
    pub fn charset(mut self, name: impl Into<String>) -> FilesConfig {
        self.charset = Some(name.into());
        self
    }

    /// Declares no character set: for text files with different character sets that declare their
    /// own.
    pub fn no_charset(mut self) -> FilesConfig {
        self.charset = None;
        self
    }

    /// Sets which compressed siblings of a file are sent to clients that accept their coding. With
    /// [`Precompressed::Gzip`], `a.css.gz` is sent instead of `a.css`. If there are several, the
    /// one that the client prefers is sent; among equals, the first in this list. Default: none;
    /// files are sent as they are.
    ///
    /// A sibling is found only beside its file. It is opened together with the file under the same
    /// rules, and has a length, a tag and a date of its own. It is not compared with the file: if
    /// you change one, replace the other. A file that has siblings is sent with
    /// `Vary: Accept-Encoding`, so that caches keep them apart. Each coding in the list costs a
    /// look-up when a file is opened.
    ///
    /// ```no_run
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::files::{FilesConfig, Precompressed};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let codings = [Precompressed::Brotli, Precompressed::Gzip];
    /// let files = FilesConfig::new("/srv/www").precompressed(codings).open()?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "gzip_static")]
    #[doc(alias = "Content-Encoding")]
    pub fn precompressed(
        mut self,
        codings: impl IntoIterator<Item = Precompressed>,
    ) -> FilesConfig {
        self.precompressed.clear();
        for coding in codings {
            if !self.precompressed.contains(&coding) {
                self.precompressed.push(coding);
            }
        }
        self
    }

    /// Sets the maximum number of files that are remembered, so that the next request for one of
    /// them needs no other thread. Files of up to 16 KiB are kept in memory, larger ones open.
    /// Default: 64, a page with everything that belongs to it: few compared to the 1,024
    /// descriptors that a process often has, and at most 1 MiB. 0: none. Compressed siblings are
    /// remembered with their file, and not counted.
    ///
    /// A file that is out of date is dropped when another one is opened.
    pub fn known_files_max(mut self, files: usize) -> FilesConfig {
        self.known_files_max = files;
        self
    }

    /// Sets for how long a known file is assumed to be unchanged. Default: 1 s, which is also the
    /// precision of dates in HTTP. While a busy file is checked again, its old state may be sent
    /// for the same time again.
    pub fn renew_after(mut self, time: Duration) -> FilesConfig {
        self.renew_after = time;
        self
    }

    /// Sets the secret key for entity tags: 16 random bytes that nobody else knows. Default: random
    /// for each process, and the same for all loops of the process.
    ///
    /// A tag is computed from a file's length, inode and time of change (`ctime`, which a new mode
    /// or owner changes as well). Without the key, it reveals only the length. With a random key, a
    /// restarted process makes different tags for the same files: clients and caches then get files
    /// again where a 304 would have been enough, and interrupted downloads start again. The same
    /// happens between processes that serve the same address. To avoid that, make a key once
    /// (`openssl rand 16`), store it like other secrets, and set it in each process. Anybody who
    /// learns the key can compute inodes, but nothing else.
    ///
    /// ```no_run
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::files::FilesConfig;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let key: [u8; 16] = std::fs::read("/etc/my-service/tag-key")?.as_slice().try_into()?;
    /// let files = FilesConfig::new("/srv/www").tag_key(key).open()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn tag_key(mut self, key: [u8; 16]) -> FilesConfig {
        self.tag_key = Some(TagKey::new(key));
        self
    }

    /// Opens the directory, and keeps it open: a directory or link that replaces it later has no
    /// effect.
    ///
    /// # Errors
    ///
    /// The system's error for the directory, with the directory's path in its message, or that for
    /// the random bytes of a key. `NotFound` if the page for missing files, or the fallback, is not a
    /// file that can be served. `InvalidInput` if the index is not a file name, the mount path is
    /// malformed, or a text is not allowed in a field.
    pub fn open(self) -> io::Result<Files> {
        // Checked now, because in a response each of these mistakes would cost a connection.
        self.check().map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what))?;
        let root = Root::open(&self.root, self.follow_links).map_err(|error| {
            let what = format!("cannot open the directory {}: {error}", self.root.display());
            io::Error::new(error.kind(), what)
        })?;
        if let Some(Fallback { name, .. }) = &self.fallback
            && !(name.split('/').all(is_name)
                && matches!(root.find(name.as_bytes()), Ok(Entry::File(..))))
        {
            let what = format!("the page {name:?} for missing files is no file in the directory");
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        }
        let tag_key = self.tag_key.map_or_else(TagKey::for_process, Ok)?;
        let known = Mutex::new(Cache::new(self.known_files_max, self.renew_after));
        Ok(Files { shared: Arc::new(Shared { config: self, root, tag_key, known }) })
    }

    fn check(&self) -> Result<(), &'static str> {
        let is_value = |text: &String| text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
        let is_component = |name: &str| !name.is_empty() && name.bytes().all(is_path_byte);
        if !self.mount.is_empty() && !self.mount.split('/').skip(1).all(is_component)
            || !matches!(self.mount.as_bytes(), [] | [b'/', ..])
        {
            return Err("what the files are mounted at is no path");
        }
        if !self.index.iter().all(|name| is_name(name)) {
            return Err("the name of the index page is no file name");
        }
        if !self.cache_control.iter().all(is_value) {
            return Err("the value of Cache-Control cannot stand in a field");
        }
        if !self.charset.iter().all(is_value) {
            return Err("the name of the character set cannot stand in a field");
        }
        Ok(())
    }

    /// Returns the rest of a request's path below the mount path: empty, or beginning with a slash.
    /// Returns `None` if the path is elsewhere.
    pub(super) fn path_below<'a>(&self, path: &'a str) -> Option<&'a str> {
        // Only whole components are compared: `/static` is not a prefix of `/statics`.
        path.strip_prefix(self.mount.as_str())
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    pub(super) fn index_name(&self) -> Option<&str> {
        self.index.as_deref()
    }

    pub(super) fn fallback_file(&self) -> Option<&Fallback> {
        self.fallback.as_ref()
    }

    pub(super) fn serves_hidden(&self) -> bool {
        self.hidden
    }

    pub(super) fn cache_control_value(&self) -> Option<&str> {
        self.cache_control.as_deref()
    }

    pub(super) fn codings(&self) -> &[Precompressed] {
        &self.precompressed
    }

    pub(super) fn charset_name(&self) -> Option<&str> {
        self.charset.as_deref()
    }
}

/// Returns whether a name is one component. It is appended to a checked path, and not checked
/// again.
fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

/// Returns whether a byte is allowed in a component of a path as it is sent: no delimiter, no
/// control character, no whitespace.
fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'\\' | b'"' | b'<' | b'>')
}

impl Shared {
    pub(super) fn known(&self) -> MutexGuard<'_, Cache<Arc<KnownFile>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_refused_by_open() {
        let config = || FilesConfig::new(env!("CARGO_MANIFEST_DIR"));
        assert!(config().open().is_ok());
        assert!(
            config().no_index().no_charset().cache_control("no-cache, max-age=0").open().is_ok()
        );
        for good in ["", "/", "/a", "/a/", "/a/b.c", "/a%20b"] {
            assert!(config().mounted_at(good).open().is_ok(), "{good}");
        }
        for bad in [
            config().mounted_at("static"),
            config().mounted_at("//"),
            config().mounted_at("//a"),
            config().mounted_at("/a//b"),
            config().mounted_at("/a?b"),
            config().mounted_at("/a b"),
            config().mounted_at("/a\r\nb"),
            config().mounted_at("/é"),
            config().index(""),
            config().index(".."),
            config().index("a/b"),
            config().index("a\0"),
            config().cache_control("a\r\nb: c"),
            config().charset("utf-8\n"),
        ] {
            assert_eq!(bad.open().expect_err("refused").kind(), io::ErrorKind::InvalidInput);
        }
        let missing = FilesConfig::new("/no/such/directory").open();
        let error = missing.expect_err("missing");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains(" /no/such/directory: "), "{error}");
        let file = FilesConfig::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).open();
        assert_eq!(file.expect_err("no directory").kind(), io::ErrorKind::NotADirectory);
    }
}
