//! Hosts of scripted clients, which are not part of what is tested.

use rotor_core::net::StreamSocket;

use crate::failure::Failure;
use crate::faults::Fault;
use crate::host::Host;
use crate::property;
use crate::script::Script;
use crate::script_client::ScriptClient;
use crate::sim::Sim;
use crate::transcript::TranscriptHandle;

impl Sim {
    /// Creates a host whose machines are scripted clients, which [`play`](Sim::play) adds.
    ///
    /// The host is not part of what is tested. So it is [protected](Sim::protect), and it gets
    /// 1,024 slots even if [`Fault::SmallSlab`] is on. If the scenario [restarts](Sim::restart) it,
    /// it gets as many slots as any other host. Faults of the network affect it as well.
    ///
    /// # Errors
    ///
    /// As for [`host`](Sim::host).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn scenario(sim: &mut rotor_sim::Sim, server: std::net::SocketAddr) -> Result<(), rotor_core::BoxError> {
    /// use std::time::Duration;
    ///
    /// use rotor_sim::Script;
    /// use rotor_sim::net::SimTcpStream;
    ///
    /// let clients = sim.host_of_clients::<SimTcpStream>("clients")?;
    /// let script = Script::new().expect(b"hello").attempts(1_000);
    /// let transcript = sim.play(clients, script, server)?;
    /// sim.eventually(Duration::from_secs(600), |_| transcript.is_done())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn host_of_clients<S: StreamSocket>(
        &mut self,
        name: &str,
    ) -> Result<Host<ScriptClient<S, ()>>, Failure> {
        let faults = self.faults();
        self.set_faults(faults.clone().set(Fault::SmallSlab, 0.0));
        let host = self.host(name, |boot| Ok(boot.new_loop()?.instantiate(())));
        self.set_faults(faults);
        let host = host?;
        self.protect(host);
        Ok(host)
    }

    /// Adds a client to a host of clients, and returns the handle of its transcript. From now on
    /// the client plays the script with the listener at `target`.
    ///
    /// # Errors
    ///
    /// [`HOST_WORKS`](property::HOST_WORKS) if the host is down or has no free slot. Otherwise the
    /// scenario would wait for a client that does not exist.
    pub fn play<S: StreamSocket, C: 'static>(
        &mut self,
        host: Host<ScriptClient<S, C>>,
        script: Script,
        target: S::Target,
    ) -> Result<TranscriptHandle, Failure> {
        let (client, transcript) = script.client(target);
        let added =
            self.with(host, |instance| instance.add_machine_with(|scope| client.start(scope)));
        match added {
            Some(Ok(_)) => {
                self.scripts.push((host.index, transcript.clone()));
                Ok(transcript)
            }
            Some(Err(error)) => {
                Err(self.failure(property::HOST_WORKS, format!("a client has no place: {error}")))
            }
            None => Err(self.failure(property::HOST_WORKS, "a client's host is down".into())),
        }
    }
}
