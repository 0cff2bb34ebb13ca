//! `user_space_tcp`: in memory, and with the kernel as its peer, in a separate network namespace.
//! The latter needs root; without it, the test prints that it is skipped.

use std::process::{Command, Output};

use crate::client::command;

#[test]
fn two_stacks_in_one_process_talk_over_memory() {
    let output = command("user_space_tcp").output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text, "200 OK: Hello, World!\n", "{output:?}");
}

/// As root there is no such interface, and others may not look for it.
#[cfg(target_os = "linux")]
#[test]
fn a_device_that_cannot_be_opened_is_named() {
    let arguments = ["packet", "nosuch0", "10.90.0.2/24"];
    let output = command("user_space_tcp").args(arguments).output().expect("it runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.starts_with("error: cannot open packet \"nosuch0\": "), "{message}");
}

/// Starts the server on a device, waits for its first line, sets up the kernel's side and connects
/// to it. `$1` is the example. At the end it prints how the server ended.
const SCRIPT: &str = r#"
set -e
ip link set lo up
prepare_device
coproc SERVER { exec "$1" $kind $name 10.90.0.2/24 2>&1; }
exec 9<&"${SERVER[0]}"
server=$SERVER_PID
read -r line <&9; echo "$line"
prepare_kernel
curl -sS --max-time 20 --noproxy '*' http://10.90.0.2:3000/; echo
curl -sS --max-time 20 --noproxy '*' -o /dev/null -w '%{size_download} %{http_code}\n' http://10.90.0.2:3000/large
curl -sS --max-time 20 --noproxy '*' -o /dev/null -w '%{http_code}\n' http://10.90.0.2:3000/nowhere
code=0; curl -sS --max-time 20 --noproxy '*' http://10.90.0.2:3001/ 2>/dev/null || code=$?; echo "refused: $code"
finish
cat <&9
code=0; wait $server || code=$?; echo "exit $code"
"#;

/// Runs the script with these functions in a new namespace. Returns `None` if the system does not
/// allow that, or a program is missing.
fn in_namespace(functions: &str) -> Option<String> {
    let has = |program: &str| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        found.is_ok_and(|output| output.status.success())
    };
    for program in ["bash", "curl", "ip", "unshare"] {
        if !has(program) {
            eprintln!("skipped: no {program}");
            return None;
        }
    }
    let mut tries = Command::new("unshare");
    tries.args(["-n", "ip", "tuntap", "add", "dev", "a", "mode", "tun"]);
    if !may_run(&mut tries) || !std::path::Path::new("/dev/net/tun").exists() {
        eprintln!("skipped: no network namespace, or no /dev/net/tun");
        return None;
    }
    let example = command("user_space_tcp");
    let script = format!("{functions}\n{SCRIPT}");
    let mut shell = Command::new("timeout");
    shell.args(["-k", "5", "120", "unshare", "-n", "bash", "-c", &script, "bash"]);
    let output = shell.arg(example.get_program()).output().expect("it runs");
    let text = text_of(&output);
    // EPERM, ENOSYS: a container may forbid the `pidfd_getfd` that the devices need, and an old
    // kernel does not have it.
    let first = text.lines().next().unwrap_or_default();
    if first.starts_with("error: ")
        && ["(os error 1)", "(os error 38)"].iter().any(|code| first.ends_with(code))
    {
        eprintln!("skipped: {first}");
        return None;
    }
    Some(text)
}

fn may_run(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

fn text_of(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{out}{err}")
}

/// Checks the output of the clients, on any device.
fn assert_served(text: &str) {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("listening on http://10.90.0.2:3000/"), "{text}");
    assert_eq!(lines.next(), Some("Hello, World!"), "{text}");
    assert_eq!(lines.next(), Some("1048576 200"), "{text}");
    assert_eq!(lines.next(), Some("404"), "{text}");
    // CURLE_COULDNT_CONNECT: the connection was reset, and did not time out.
    assert_eq!(lines.next(), Some("refused: 7"), "{text}");
}

#[test]
fn the_kernels_client_is_served_through_tun_and_tap() {
    for kind in ["tun", "offloading", "tap"] {
        let functions = format!(
            "kind={kind}; name=rotor0
             prepare_device() {{ :; }}
             prepare_kernel() {{ ip address add 10.90.0.1/24 dev rotor0; ip link set rotor0 up; }}
             finish() {{ kill -TERM $server; }}"
        );
        let Some(text) = in_namespace(&functions) else { return };
        assert_served(&text);
        assert!(text.trim_end().ends_with("exit 0"), "it drains: {text}");
    }
}

#[test]
fn the_kernels_client_is_served_through_a_packet_socket() {
    // A kernel with TUN may lack veth pairs.
    let mut tries = Command::new("unshare");
    tries.args(["-n", "ip", "link", "add", "left", "type", "veth", "peer", "name", "right"]);
    if !may_run(&mut tries) {
        eprintln!("skipped: no pair of devices");
        return;
    }
    let functions = "kind=packet; name=right
        prepare_device() {
            ip link add left type veth peer name right
            ip address add 10.90.0.1/24 dev left
            ip link set left up
            ip link set right up
        }
        prepare_kernel() { :; }
        again() { curl -sS --max-time 20 --noproxy '*' http://10.90.0.2:3000/; echo; }";
    // The device may go down and come up again. When it is deleted, in either state, the server
    // ends.
    for (finish, ending) in [
        ("kill -TERM $server", "exit 0"),
        ("ip link set right down; ip link set right up; again; kill -TERM $server", "exit 0"),
        ("ip link delete right", "exit 1"),
        ("ip link set right down; ip link delete right", "exit 1"),
    ] {
        let functions = format!("{functions}\nfinish() {{ {finish}; }}");
        let Some(text) = in_namespace(&functions) else { return };
        assert_served(&text);
        assert!(text.trim_end().ends_with(ending), "{finish}: {text}");
        let hellos = text.matches("Hello, World!").count();
        assert_eq!(hellos, 1 + usize::from(finish.contains("again")), "{finish}: {text}");
        let is_gone = text.contains("error: the device of the loop is gone: right");
        assert_eq!(is_gone, ending == "exit 1", "{finish}: {text}");
    }
}

#[test]
fn a_removed_device_ends_the_loop_with_an_error_that_names_it() {
    let functions = "kind=tun; name=rotor0
        prepare_device() { :; }
        prepare_kernel() { ip address add 10.90.0.1/24 dev rotor0; ip link set rotor0 up; }
        finish() { ip link delete rotor0; }";
    let Some(text) = in_namespace(functions) else { return };
    assert_served(&text);
    assert!(text.contains("error: the device of the loop is gone: rotor0"), "{text}");
    assert!(text.trim_end().ends_with("exit 1"), "{text}");
}
