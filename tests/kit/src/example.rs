//! `example`: a built example of this workspace.

use std::env;
use std::process::Command;

/// Returns an example as a command without arguments. Proxies that the environment names do not
/// apply to it.
///
/// # Panics
///
/// If it has not been built.
pub fn example(name: &str) -> Command {
    // Cargo tells tests the paths of binaries, but not of examples. They lie next to the directory
    // of the tests.
    let test = env::current_exe().expect("the system knows the path of this test");
    let profile = test.ancestors().nth(2).expect("a test lies in target/PROFILE/deps");
    let file = profile.join("examples").join(name);
    assert!(file.exists(), "not built: cargo build --workspace --example {name}");
    let mut command = Command::new(file);
    for proxy in ["http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"] {
        command.env_remove(proxy);
    }
    command
}
