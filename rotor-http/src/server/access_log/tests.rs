use std::fs;
use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rotor_test_kit::Directory;

use super::*;
use crate::semantics::status::Status;
use crate::semantics::version::Version;
use crate::server::log_line::Fields;

const LONG: Duration = Duration::from_secs(60);

fn finished<'a>(target: &'a str, fields: &'a Fields) -> Finished<'a> {
    Finished {
        peer: Some(([192, 0, 2, 7], 4711).into()),
        method: "GET",
        target,
        version: Some(Version::Http11),
        status: Some(Status::OK),
        bytes: 120,
        time: Duration::from_millis(1_250),
        unix_seconds: 971_186_136,
        fields,
    }
}

#[test]
fn a_log_and_its_handles_may_be_shared_by_threads() {
    // `Serve::config` requires this of what it captures.
    fn is_shared<T: Send + Sync>() {}
    is_shared::<AccessLog>();
    is_shared::<LogReopener>();
    is_shared::<LostLines>();
}

#[test]
fn each_format_writes_its_fields() {
    let fields = Fields::from_pairs(&[("Referer", b"http://a/\"b"), ("traceparent", b"00-\xff")]);
    let finished = finished("/a\n\"b\"\x1b[2J", &fields);
    let common =
        r#"192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET /a\x0a\"b\"\x1b[2J HTTP/1.1" 200 120"#;
    assert_eq!(LogFormat::Common.line(&finished), format!("{common}\n"));
    let combined = format!("{common} \"http://a/\\\"b\" \"-\"\n");
    assert_eq!(LogFormat::Combined.line(&finished), combined);
    let json = r#"{"time":"2000-10-10T13:55:36Z","peer":"192.0.2.7","method":"GET","target":"/a\u000a\"b\"\u001b[2J","version":"HTTP/1.1","status":200,"bytes":120,"seconds":1.25,"referer":"http://a/\"b","traceparent":"00-\u00ff"}"#;
    assert_eq!(LogFormat::Json.line(&finished), format!("{json}\n"));
}

#[test]
fn an_unreadable_request_is_logged_without_its_parts() {
    let fields = Fields::default();
    let unread =
        Finished { version: None, status: None, peer: None, bytes: 0, ..finished("", &fields) };
    let line = "- - - [10/Oct/2000:13:55:36 +0000] \"-\" - 0\n";
    assert_eq!(LogFormat::Common.line(&unread), line);
    let line = "{\"time\":\"2000-10-10T13:55:36Z\",\"bytes\":0,\"seconds\":1.25}\n";
    assert_eq!(LogFormat::Json.line(&unread), line);
}

/// A disk that reports each write, and accepts or refuses it as the test says; once the test has
/// said its last word, always.
struct SlowDisk {
    line_sender: Sender<()>,
    verdicts: Mutex<Receiver<bool>>,
    last_verdict: bool,
}

impl SlowDisk {
    fn destination(line_sender: Sender<()>, verdicts: Receiver<bool>) -> Destination {
        let verdicts = Mutex::new(verdicts);
        Destination::Test(Box::new(SlowDisk { line_sender, verdicts, last_verdict: true }))
    }
}

impl Write for SlowDisk {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.line_sender.send(()).expect("the test waits");
        let verdict = self.verdicts.lock().expect("nobody panics").recv();
        self.last_verdict = verdict.unwrap_or(self.last_verdict);
        if self.last_verdict { Ok(lines.len()) } else { Err(io::Error::other("full")) }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_without_room_or_with_a_write_error_are_counted_as_lost() {
    let ((line_sender, line_receiver), (verdict_sender, verdicts)) = (channel(), channel());
    let disk = SlowDisk::destination(line_sender, verdicts);
    let log = AccessLogConfig::standard_output().lines_max(2).start_with(disk).expect("a thread");
    let (hook, fields) = (log.hook(), Fields::default());
    hook(&finished("/", &fields));
    line_receiver.recv().expect("the writer has one");
    for lost in [0, 0, 1, 2] {
        hook(&finished("/", &fields));
        assert_eq!(log.lost().count(), lost);
    }
    verdict_sender.send(false).expect("it waits");
    drop(verdict_sender);
    drop(hook);
    let lost = log.lost();
    assert!(!log.finish(LONG), "the disk stays full");
    assert_eq!(lost.count(), 5);
}

/// A disk that takes as many bytes of each write as the test says, and then all.
#[derive(Clone, Default)]
struct TornDisk(Arc<Mutex<TornDiskState>>);

#[derive(Default)]
struct TornDiskState {
    /// How many bytes the next writes take, the next one last; `None` if none, and an error.
    takes: Vec<Option<usize>>,
    written: Vec<u8>,
}

impl TornDisk {
    fn lock(&self) -> MutexGuard<'_, TornDiskState> {
        self.0.lock().expect("nobody panics")
    }
}

impl Write for TornDisk {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let TornDiskState { takes, written } = &mut *self.lock();
        let count = match takes.pop() {
            Some(Some(count)) => count.min(lines.len()),
            Some(None) => return Err(io::Error::other("full")),
            None => lines.len(),
        };
        written.extend_from_slice(&lines[..count]);
        Ok(count)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_line_that_was_cut_off_by_a_full_disk_is_completed_first() {
    let fields = Fields::default();
    let long = format!("/{}", "x".repeat(20_000));
    for first in ["/", &long] {
        for cut in [1, 50] {
            let disk = TornDisk::default();
            disk.lock().takes = vec![None, Some(cut)];
            let destination = Destination::Test(Box::new(disk.clone()));
            let log = AccessLogConfig::standard_output().start_with(destination).expect("a thread");
            let (hook, lost) = (log.hook(), log.lost());
            hook(&finished(first, &fields));
            while !disk.lock().takes.is_empty() {
                std::thread::yield_now();
            }
            hook(&finished("/second", &fields));
            drop(hook);
            assert!(log.finish(LONG), "it ends");
            let line = |target| LogFormat::Common.line(&finished(target, &fields));
            let expected = line(first) + &line("/second");
            let written = disk.lock().written.clone();
            assert_eq!(String::from_utf8_lossy(&written), expected, "{cut}");
            assert_eq!(lost.count(), 0, "{cut}");
        }
    }
}

#[test]
fn lines_beyond_the_byte_limit_are_lost_until_others_are_written() {
    let ((line_sender, line_receiver), (verdict_sender, verdicts)) = (channel(), channel());
    let disk = SlowDisk::destination(line_sender, verdicts);
    let fields = Fields::default();
    let (short, long) = (finished("/", &fields), finished("/\u{1}\u{2}\u{3}", &fields));
    let len = LogFormat::Common.line(&short).len();
    let config = AccessLogConfig::standard_output().bytes_max(2 * len);
    let log = config.start_with(disk).expect("a thread");
    let hook = log.hook();
    hook(&short);
    line_receiver.recv().expect("the writer has one");
    hook(&long);
    assert_eq!(log.lost().count(), 1, "what is escaped counts as it is written");
    hook(&short);
    assert_eq!(log.lost().count(), 1, "to the last octet");
    hook(&short);
    assert_eq!(log.lost().count(), 2);
    verdict_sender.send(true).expect("it waits");
    line_receiver.recv().expect("the writer has the second");
    hook(&short);
    assert_eq!(log.lost().count(), 2, "what is written has left its room");
    drop(verdict_sender);
    drop(hook);
    let lost = log.lost();
    assert!(log.finish(LONG), "it ends");
    assert_eq!(lost.count(), 2);
}

#[test]
fn the_largest_limits_are_accepted() {
    let written = Destination::Test(Box::new(io::sink()));
    let config = AccessLogConfig::standard_output().lines_max(usize::MAX).bytes_max(usize::MAX);
    let log = config.start_with(written).expect("a thread");
    let (hook, fields) = (log.hook(), Fields::default());
    hook(&finished("/", &fields));
    drop(hook);
    let lost = log.lost();
    assert!(log.finish(LONG) && lost.count() == 0);
}

#[test]
fn a_retained_reopener_does_not_keep_the_writer_running() {
    let written = Destination::Test(Box::new(io::sink()));
    let log = AccessLogConfig::standard_output().start_with(written).expect("a thread");
    let reopener = log.reopener();
    reopener.reopen();
    assert!(log.finish(LONG), "it ends");
    reopener.reopen();
}

#[test]
fn a_renamed_file_is_reopened() {
    let directory = Directory::create();
    let (path, old) = (directory.join("log"), directory.join("log.1"));
    let log = AccessLogConfig::file(&path).start().expect("a file");
    let (hook, reopener, fields) = (log.hook(), log.reopener(), Fields::default());
    hook(&finished("/first", &fields));
    fs::rename(&path, &old).expect("it is there from the start");
    reopener.reopen();
    hook(&finished("/second", &fields));
    drop((hook, reopener));
    assert!(log.finish(LONG), "it ends");
    let read = |path| fs::read_to_string(path).expect("it is there");
    // The first line may be written before or after the file is reopened.
    let (old, new) = (read(&old), read(&path));
    assert!(new.contains("/second") && !old.contains("/second"), "{old:?} {new:?}");
    assert!(old.contains("/first") || new.contains("/first"));
}

#[test]
fn a_log_that_cannot_be_opened_is_named() {
    let path = Directory::create().join("missing").join("log");
    let error = AccessLogConfig::file(&path).start().expect_err("no directory");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(error.to_string().contains(&format!(" {}: ", path.display())), "{error}");
}

#[test]
fn a_file_is_not_made_longer_than_the_process_may_make_one() {
    let directory = Directory::create();
    let (path, old) = (directory.join("log"), directory.join("log.1"));
    let fields = Fields::default();
    let line = |target| LogFormat::Common.line(&finished(target, &fields));
    let mut file = LogFile::open(path.clone()).expect("a file");
    file.bytes_max = Some((line("/first") + "192").len() as u64);
    let config = AccessLogConfig::file(&path);
    let log = config.start_with(Destination::File(file)).expect("a thread");
    let (hook, reopener, lost) = (log.hook(), log.reopener(), log.lost());
    hook(&finished("/first", &fields));
    hook(&finished("/second", &fields));
    hook(&finished("/third", &fields));
    while fs::metadata(&path).expect("it is there").len() < line("/first").len() as u64 + 3 {
        std::thread::yield_now();
    }
    fs::rename(&path, &old).expect("it is there");
    reopener.reopen();
    hook(&finished("/fourth", &fields));
    drop((hook, reopener));
    assert!(log.finish(LONG), "it ends");
    let read = |path| fs::read_to_string(path).expect("it is there");
    assert_eq!(read(&old), line("/first") + "192");
    assert_eq!(read(&path), line("/third") + &line("/fourth"));
    assert_eq!(lost.count(), 1, "the line that does not continue in the other file");
}
