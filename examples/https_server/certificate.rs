//! The certificate and its key, either from given files or made at start.

use std::env;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;

use rcgen::{CertificateParams, KeyPair};
use rotor::BoxError;
use rotor::tls::{Identity, TlsConfigError};

/// How many names are tried for a directory that does not exist yet.
const NAMES_MAX: u32 = 100;

/// The paths of the two files.
pub(crate) struct Files {
    chain: PathBuf,
    key: PathBuf,
}

impl Files {
    /// Returns the files that the first two arguments name.
    pub(crate) fn given() -> Files {
        let path = |number| env::args_os().nth(number).unwrap_or_default().into();
        Files { chain: path(1), key: path(2) }
    }

    /// Makes a certificate for this machine, with a key, and writes both into a new directory.
    pub(crate) fn make() -> Result<Files, BoxError> {
        let key = KeyPair::generate()?;
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        let certificate = CertificateParams::new(names)?.self_signed(&key)?;
        let directory = make_directory()?;
        let files =
            Files { chain: directory.join("certificate.pem"), key: directory.join("key.pem") };
        write(&files.chain, &certificate.pem())?;
        write(&files.key, &key.serialize_pem())?;
        Ok(files)
    }

    pub(crate) fn certificate(&self) -> &Path {
        &self.chain
    }

    /// Reads both files.
    pub(crate) fn read(&self) -> Result<Identity, TlsConfigError> {
        Identity::from_pem_files(&self.chain, &self.key)
    }
}

/// Makes a directory that did not exist, and that nobody else can read. An earlier program with the
/// same process number may have left its own.
fn make_directory() -> io::Result<PathBuf> {
    let mut number = 0;
    loop {
        let name = format!("rotor-https-{}-{number}", process::id());
        let directory = env::temp_dir().join(name);
        match DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < NAMES_MAX => {
                number += 1
            }
            made => return made.map(|()| directory),
        }
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}
