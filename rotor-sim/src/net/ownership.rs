//! Checks to which simulation, and to which of its hosts, a socket belongs.

use std::io;

use rotor_core::Scope;
use rotor_core::backend::BackendHandle;

use crate::backend::SimHandle;
use crate::world::Shared;

/// Returns the handle of the simulation and the host that a scope's loop belongs to.
pub(super) fn sim_handle<'a, C>(scope: &'a Scope<'_, C>, what: &str) -> io::Result<&'a SimHandle> {
    scope.backend().expect(what)
}

/// Refuses a loop of another backend, another simulation, or another host.
pub(super) fn check_owner(
    backend: &dyn BackendHandle,
    world: &Shared,
    host: u32,
    what: &str,
) -> io::Result<()> {
    let handle: &SimHandle = backend.expect(what)?;
    if !handle.belongs_to(world) {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("{what} is of another simulation"),
        ));
    }
    if handle.host() != host {
        let world = world.borrow();
        let message = format!(
            "{what} of host {} cannot be used on the loop of host {}",
            world.hosts[host as usize].name,
            world.hosts[handle.host() as usize].name
        );
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    Ok(())
}
