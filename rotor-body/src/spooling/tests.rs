use super::*;

const BOUNDS: Bounds = Bounds {
    ram_max: 10,
    body_max: 100,
    piece_bytes: 8,
    pieces_max: 2,
    has_files: true,
    syncs: false,
};

/// The bytes at these positions, the same in each call.
fn bytes(from: usize, count: usize) -> Vec<u8> {
    (from..from + count).map(|at| at as u8).collect()
}

/// A scripted disk.
struct Disk {
    spooling: Spooling,
    file: Option<Vec<u8>>,
    /// The requested actions, as letters: O and P open a file (with and without a length), w is a
    /// write, s a sync; M and F mean that the whole body is in memory or in the file.
    actions: String,
    pending: Vec<char>,
    added: usize,
    whole: Option<Vec<u8>>,
}

impl Disk {
    fn new(bounds: Bounds, announced: Option<u64>) -> Disk {
        let spooling = Spooling::new(bounds, announced).expect("it is short enough");
        let (actions, pending) = (String::new(), Vec::new());
        let mut disk = Disk { spooling, file: None, actions, pending, added: 0, whole: None };
        disk.run_actions();
        disk
    }

    fn run_actions(&mut self) {
        loop {
            let letter = match self.spooling.next_action() {
                Action::Wait => return,
                Action::Open(announced) => {
                    self.file = Some(Vec::new());
                    if announced.is_some() { 'O' } else { 'P' }
                }
                Action::Write(offset, blocks) => {
                    let file = self.file.as_mut().expect("it is open");
                    assert_eq!(file.len() as u64, offset, "one behind the other");
                    assert!(!blocks.is_empty(), "something is written");
                    blocks.iter().for_each(|block| file.extend_from_slice(block));
                    'w'
                }
                Action::Sync => 's',
                Action::InMemory(blocks) => {
                    assert!(self.file.is_none());
                    self.whole = Some(blocks.iter().flat_map(|block| block.to_vec()).collect());
                    'M'
                }
                Action::InFile(len) => {
                    self.whole = self.file.take();
                    assert_eq!(self.whole.as_ref().map(Vec::len), Some(len as usize));
                    'F'
                }
            };
            self.actions.push(letter);
            if !"MF".contains(letter) {
                self.pending.push(letter);
            }
        }
    }

    fn add(&mut self, count: usize) -> Result<(), SpoolError> {
        self.spooling.add(Block::from(bytes(self.added, count)))?;
        self.added += count;
        self.run_actions();
        Ok(())
    }

    fn end(&mut self) {
        self.spooling.end();
        self.run_actions();
    }

    /// The disk completes its oldest request.
    fn finish_oldest(&mut self) {
        match self.pending.remove(0) {
            'w' => self.spooling.piece_written(),
            's' => {
                self.spooling.data_synced();
                assert_eq!(self.spooling.len(), self.added as u64);
            }
            _ => self.spooling.file_opened(),
        }
        self.run_actions();
    }
}

/// Plays a script: a digit adds that many bytes, `+` adds 10, `.` completes one request of the
/// disk, `!` takes away the memory, `e` ends the body. Returns the requested actions after each
/// step, followed by `|` if more bytes are taken, and by `-` if not.
fn play(bounds: Bounds, announced: Option<u64>, script: &str) -> String {
    let mut disk = Disk::new(bounds, announced);
    let mut seen = String::new();
    let note = |disk: &mut Disk, seen: &mut String| {
        seen.push_str(&std::mem::take(&mut disk.actions));
        seen.push(if disk.spooling.takes_more() { '|' } else { '-' });
    };
    note(&mut disk, &mut seen);
    for step in script.chars() {
        match step {
            '+' => disk.add(10).expect("it is short enough"),
            '0'..='9' => disk.add(step as usize - '0' as usize).expect("it is short enough"),
            '.' => disk.finish_oldest(),
            '!' => disk.spooling.set_memory_short(true),
            'e' => disk.end(),
            _ => panic!("no such step: {step}"),
        }
        if step == '!' {
            disk.run_actions();
        }
        note(&mut disk, &mut seen);
    }
    if let Some(whole) = &disk.whole {
        assert_eq!(*whole, bytes(0, disk.added), "{script}");
    }
    seen
}

#[test]
fn each_script_yields_its_actions_and_holds() {
    let synced = Bounds { syncs: true, ..BOUNDS };
    let without = Bounds { has_files: false, ..BOUNDS };
    for (bounds, announced, script, expected) in [
        // In memory.
        (BOUNDS, None, "e", "|M-"),
        (BOUNDS, Some(0), "e", "|M-"),
        (BOUNDS, None, "55e", "|||M-"),
        (BOUNDS, Some(10), "+e", "||M-"),
        (without, Some(10), "+e", "||M-"),
        // It outgrows memory.
        (BOUNDS, None, "56.e.", "||P-w|-F-"),
        (BOUNDS, None, "56.e", "||P-w|-"),
        (BOUNDS, None, "+1e..", "||P--w-F-"),
        // Announced as long: the file is opened first.
        (BOUNDS, Some(11), "", "O-"),
        (BOUNDS, Some(11), ".", "O-|"),
        (BOUNDS, Some(11), ".4", "O-||"),
        // Two pieces are written concurrently, and a third is not taken.
        (BOUNDS, Some(40), ".88", "O-|w|w-"),
        (BOUNDS, Some(40), ".88.", "O-|w|w-|"),
        (BOUNDS, Some(40), ".88..8e.", "O-|w|w-||w|-F-"),
        (BOUNDS, Some(40), ".44", "O-||w|"),
        // Bytes that arrive during two writes are written when one of them completes.
        (BOUNDS, Some(40), ".889.e..", "O-|w|w--w---F-"),
        // The last piece may be short.
        (BOUNDS, Some(40), ".83e..", "O-|w||w--F-"),
        (BOUNDS, Some(11), ".e", "O-|F-"),
        // The end waits for the disk.
        (synced, Some(11), ".+1e..", "O-|w||w--s-"),
        (synced, Some(11), ".+1e...", "O-|w||w--s--"),
        // Without memory: one write after the other, of whatever has arrived.
        (BOUNDS, Some(40), ".!3", "O-||w-"),
        (BOUNDS, Some(40), ".!3.", "O-||w-|"),
        (BOUNDS, Some(40), ".3!.3.e", "O-||w-|w-|F-"),
    ] {
        assert_eq!(play(bounds, announced, script), expected, "{announced:?} {script}");
    }
}

#[test]
fn only_a_body_over_the_limit_is_refused() {
    let without = Bounds { has_files: false, ..BOUNDS };
    for (bounds, most) in [(BOUNDS, 100), (without, 10)] {
        assert!(Spooling::new(bounds, Some(most)).is_ok());
        assert!(matches!(Spooling::new(bounds, Some(most + 1)), Err(SpoolError::TooLarge)));
        assert!(matches!(Spooling::new(bounds, Some(u64::MAX)), Err(SpoolError::TooLarge)));
        let mut spooling = Spooling::new(bounds, None).expect("nothing is known");
        for _ in 0..most {
            spooling.add(Block::from("x")).expect("it is short enough");
        }
        assert!(matches!(spooling.add(Block::from("x")), Err(SpoolError::TooLarge)));
    }
}

#[test]
fn the_body_is_the_same_at_any_split_and_disk_pace() {
    for total in [0, 1, 7, 8, 9, 10, 11, 16, 17, 40, 99, 100] {
        for step in [1, 3, 8, 9, 25] {
            for pace in 0..4 {
                for announced in [None, Some(total as u64)] {
                    let bounds = Bounds { syncs: pace == 1, ..BOUNDS };
                    let mut disk = Disk::new(bounds, announced);
                    let mut turn = 0;
                    while disk.whole.is_none() && (disk.spooling.state != State::Ended) {
                        turn += 1;
                        disk.spooling.set_memory_short(pace == 3 && turn % 3 == 0);
                        if disk.added < total && disk.spooling.takes_more() {
                            disk.add(step.min(total - disk.added)).expect("it is short enough");
                        } else if disk.added == total && !disk.spooling.is_ended {
                            disk.end();
                        }
                        if turn % (pace + 1) == 0 && !disk.pending.is_empty() {
                            disk.finish_oldest();
                        }
                        disk.run_actions();
                        assert!(turn < 10_000, "{total} {step} {pace}: it goes on");
                        assert!(disk.pending.len() <= 2, "two pieces at most");
                    }
                    let whole = disk.whole.or(disk.file).expect("it has ended");
                    assert_eq!(whole, bytes(0, total), "{total} by {step}, pace {pace}");
                    assert_eq!(disk.actions.contains(['O', 'P']), total > 10);
                }
            }
        }
    }
}

#[test]
fn a_body_without_room_in_memory_goes_to_a_file() {
    let mut disk = Disk::new(BOUNDS, None);
    disk.add(3).expect("it is short enough");
    assert!(disk.spooling.is_in_memory() && disk.spooling.move_to_file());
    disk.run_actions();
    assert!(!disk.spooling.takes_more() && !disk.spooling.is_in_memory());
    disk.finish_oldest();
    disk.end();
    disk.finish_oldest();
    assert_eq!((disk.actions.as_str(), disk.whole), ("PwF", Some(bytes(0, 3))));
    let without = Bounds { has_files: false, ..BOUNDS };
    assert!(!Disk::new(without, None).spooling.move_to_file());
}

#[test]
fn a_body_stays_in_memory_if_announced_short_or_without_files() {
    for (announced, stays) in [(Some(0), true), (Some(10), true), (Some(11), false), (None, false)]
    {
        let spooling = Spooling::new(BOUNDS, announced).expect("it is short enough");
        assert_eq!(spooling.stays_in_memory(), stays, "{announced:?}");
    }
    let without_files = Spooling::new(Bounds::memory(10, 100), None).expect("it may be short");
    assert!(without_files.stays_in_memory());
}
