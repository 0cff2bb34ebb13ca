//! The example `mqtt_broker` with the clients of Mosquitto.
#![expect(clippy::disallowed_methods, reason = "a thread for what another program prints")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rotor_bench::server::Server;
use rotor_test_kit::Process;

use crate::certificates::Certificates;
use crate::support::{PATIENCE, example, program, run, start_example, text};

struct Clients {
    publish: PathBuf,
    subscribe: PathBuf,
}

impl Clients {
    fn find() -> Option<Clients> {
        Some(Clients { publish: program("mosquitto_pub")?, subscribe: program("mosquitto_sub")? })
    }

    fn publish(&self, broker: &Server, arguments: &[&str]) -> Output {
        run(&mut to(&self.publish, broker, arguments))
    }

    /// Publishes each of the lines at QoS 2.
    fn publish_lines(&self, broker: &Server, topic: &str, lines: &str) {
        let mut command = to(&self.publish, broker, &["-t", topic, "-q", "2", "-l"]);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it was found");
        let mut input = child.stdin.take().expect("it is a pipe");
        input.write_all(lines.as_bytes()).expect("it reads");
        drop(input);
        assert!(child.wait().expect("it was started").success());
    }

    /// Starts a subscriber. Its subscription is active when this returns: a retained message has
    /// arrived.
    fn subscribe(&self, broker: &Server, arguments: &[&str]) -> Subscriber {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let ready = format!("ready/{}", NUMBER.fetch_add(1, Relaxed));
        self.publish(broker, &["-t", &ready, "-m", "yes", "-r"]);
        let mut command = to(&self.subscribe, broker, &["-v", "-t", &ready]);
        let child = command.args(arguments).stdout(Stdio::piped()).spawn();
        let mut process = Process::from(child.expect("it was found"));
        let lines = lines(process.stdout.take().expect("it is a pipe"));
        let subscriber = Subscriber { _process: process, lines };
        assert_eq!(subscriber.hear(), format!("{ready} yes"));
        subscriber
    }
}

fn to(program: &Path, broker: &Server, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    let port = broker.address().port().to_string();
    command.args(["-h", "127.0.0.1", "-p", &port]).args(arguments);
    command
}

/// The lines of the output as they arrive, with a time limit for each.
fn lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, lines) = channel();
    let mut stdout = BufReader::new(stdout).lines().map_while(Result::ok);
    thread::spawn(move || stdout.try_for_each(|line| sender.send(line)));
    lines
}

/// A `mosquitto_sub` process; killed on drop.
struct Subscriber {
    _process: Process,
    lines: Receiver<String>,
}

impl Subscriber {
    fn hear(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("it hears something")
    }
}

#[test]
fn messages_of_each_qos_arrive_by_their_filters() {
    let Some(clients) = Clients::find() else { return };
    let broker = start_example("mqtt_broker");
    for qos in ["0", "1", "2"] {
        let hearer = clients.subscribe(&broker, &["-q", qos, "-t", "rooms/+/heat", "-t", "all/#"]);
        for (topic, payload) in
            [("rooms/1/heat", "a"), ("rooms/1/2/heat", "b"), ("all", "c"), ("all/of/it", "d e")]
        {
            clients.publish(&broker, &["-q", qos, "-t", topic, "-m", payload]);
        }
        let heard = [hearer.hear(), hearer.hear(), hearer.hear()];
        assert_eq!(heard, ["rooms/1/heat a", "all c", "all/of/it d e"], "QoS {qos}");
    }
}

#[test]
fn five_thousand_qos_2_messages_arrive_once_each_and_in_order() {
    // Half of what the broker queues for a client. It drops messages beyond its limit, however late
    // the subscriber is.
    const BATCH: usize = 500;
    let Some(clients) = Clients::find() else { return };
    let broker = start_example("mqtt_broker");
    let hearer = clients.subscribe(&broker, &["-q", "2", "-t", "numbers"]);
    for first in (0..5_000).step_by(BATCH) {
        let batch = first..first + BATCH;
        let lines: String = batch.clone().map(|number| format!("{number}\n")).collect();
        clients.publish_lines(&broker, "numbers", &lines);
        for number in batch {
            assert_eq!(hearer.hear(), format!("numbers {number}"));
        }
    }
}

#[test]
fn an_offline_subscriber_gets_queued_messages_on_reconnect() {
    let Some(clients) = Clients::find() else { return };
    let broker = start_example("mqtt_broker");
    let session = ["-c", "-i", "sleeper", "-q", "1", "-t", "news"];
    // Subscribes and disconnects.
    run(to(&clients.subscribe, &broker, &session).arg("-E"));
    for payload in ["one", "two", "three"] {
        clients.publish(&broker, &["-q", "1", "-t", "news", "-m", payload]);
    }
    let heard = run(to(&clients.subscribe, &broker, &session).args(["-C", "3"]));
    assert_eq!(String::from_utf8_lossy(&heard.stdout), "one\ntwo\nthree\n");
}

#[test]
fn the_will_of_a_client_that_is_killed_is_published_and_retained() {
    let Some(clients) = Clients::find() else { return };
    let broker = start_example("mqtt_broker");
    let heir = clients.subscribe(&broker, &["-t", "wills/#"]);
    let will = ["--will-topic", "wills/me", "--will-payload", "gone", "--will-retain"];
    let mortal = clients.subscribe(&broker, &will);
    drop(mortal);
    assert_eq!(heir.hear(), "wills/me gone");
    let late = clients.subscribe(&broker, &["-t", "wills/#"]);
    assert_eq!(late.hear(), "wills/me gone");
}

#[test]
fn the_broker_works_the_same_over_tls() {
    let Some(clients) = Clients::find() else { return };
    let certificates = Certificates::for_names(&["127.0.0.1"]);
    let broker = certificates.shown_by(example("mqtt_broker"));
    let broker = Server::start(broker, PATIENCE).expect("it starts");
    let line = broker.next_line(PATIENCE).expect("a second line");
    let encrypted = line.strip_prefix("listening with TLS on 127.0.0.1:").expect("a port");
    let hearer = clients.subscribe(&broker, &["-t", "secret"]);
    let mut speaker = Command::new(&clients.publish);
    speaker.args(["-h", "127.0.0.1", "-p", encrypted, "-t", "secret", "-m", "hello", "-q", "1"]);
    speaker.arg("--cafile").arg(certificates.path("issuer.crt"));
    run(&mut speaker);
    assert_eq!(hearer.hear(), "secret hello");
}

#[test]
fn an_unsupported_protocol_version_is_refused() {
    let Some(clients) = Clients::find() else { return };
    let broker = start_example("mqtt_broker");
    for version in ["mqttv31", "mqttv5"] {
        let arguments = ["-V", version, "-t", "a", "-m", "b", "-q", "1"];
        let output = to(&clients.publish, &broker, &arguments).output().expect("it was found");
        assert!(!output.status.success(), "{version}: {}", text(&output));
    }
    clients.publish(&broker, &["-V", "mqttv311", "-t", "a", "-m", "b", "-q", "1"]);
}
