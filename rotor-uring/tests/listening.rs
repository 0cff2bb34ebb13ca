//! The options with which a listener is bound.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod rig;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rig::Rig;
use rotor_core::net::{ListenError, ListenOptions, Listener};
use rotor_uring::{UringConfig, UringUnixListener};

#[test]
fn a_unix_listener_has_the_requested_mode_and_an_exclusive_path() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let place = std::env::temp_dir().join(format!("rotor-uring-listening-{}", std::process::id()));
    fs::create_dir(&place).expect("it is new");
    let mut bind = |name, mode| {
        let (path, options) = (place.join(name), ListenOptions::new().unix_mode(mode));
        rig.with(|scope| UringUnixListener::bind(&path, &options, scope))
    };
    let _listeners = [("nobody", 0o000), ("own", 0o600)].map(|(name, mode)| {
        let listener = bind(name, mode).expect("the path is free");
        let found = fs::metadata(place.join(name)).expect("it is there").permissions().mode();
        assert_eq!(found & 0o777, mode, "{name}: {found:o}");
        listener
    });
    let again = bind("own", 0o600).expect_err("somebody listens there");
    assert!(again.get_ref().is_some_and(|error| error.is::<ListenError>()), "{again:?}");
    fs::remove_dir_all(&place).expect("it is ours");
}
