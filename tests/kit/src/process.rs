//! `Process`: a child process that does not outlive its test.

use std::ops::{Deref, DerefMut};
use std::process::Child;

/// A child process. Dropping it kills the process, if it has not ended, and waits for its end; so
/// nothing is left behind by a test that fails.
#[derive(Debug)]
pub struct Process(Child);

impl From<Child> for Process {
    fn from(child: Child) -> Process {
        Process(child)
    }
}

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::Process;

    #[test]
    fn a_process_ends_when_it_is_dropped() {
        let mut command = Command::new("cat");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = Process::from(child.expect("it is everywhere"));
        let input = process.stdin.take();
        let mut output = process.stdout.take().expect("it is a pipe");
        drop(process);
        assert_eq!(output.read(&mut [0]).expect("a pipe"), 0, "it lives");
        // Its end would have ended the process, too.
        drop(input);
    }
}
