use super::*;

const BOUNDS: Bounds = Bounds {
    ram_max: 10,
    body_max: 100,
    piece_bytes: 8,
    pieces_max: 2,
    has_files: true,
    syncs: false,
};

/// The same bytes as often as they are asked for.
fn bytes(from: usize, count: usize) -> Vec<u8> {
    (from..from + count).map(|at| at as u8).collect()
}

/// A disk that does what it is told when it is told to.
struct Disk {
    spooling: Spooling,
    file: Option<Vec<u8>>,
    /// What was asked, in letters: O and P open (with and without a length), w a write, s a sync,
    /// M and F all of it in memory or in the file.
    asked: String,
    pending: Vec<char>,
    came: usize,
    whole: Option<Vec<u8>>,
}

impl Disk {
    fn new(bounds: Bounds, announced: Option<u64>) -> Disk {
        let spooling = Spooling::new(bounds, announced).expect("it is short enough");
        let (asked, pending) = (String::new(), Vec::new());
        let mut disk = Disk { spooling, file: None, asked, pending, came: 0, whole: None };
        disk.ask();
        disk
    }

    fn ask(&mut self) {
        loop {
            let letter = match self.spooling.next() {
                Ask::Nothing => return,
                Ask::Open(announced) => {
                    self.file = Some(Vec::new());
                    if announced.is_some() { 'O' } else { 'P' }
                }
                Ask::Write(offset, blocks) => {
                    let file = self.file.as_mut().expect("it is open");
                    assert_eq!(file.len() as u64, offset, "one behind the other");
                    assert!(!blocks.is_empty(), "something is written");
                    blocks.iter().for_each(|block| file.extend_from_slice(block));
                    'w'
                }
                Ask::Sync => 's',
                Ask::InMemory(blocks) => {
                    assert!(self.file.is_none());
                    self.whole = Some(blocks.iter().flat_map(|block| block.to_vec()).collect());
                    'M'
                }
                Ask::InFile(len) => {
                    self.whole = self.file.take();
                    assert_eq!(self.whole.as_ref().map(Vec::len), Some(len as usize));
                    'F'
                }
            };
            self.asked.push(letter);
            if !"MF".contains(letter) {
                self.pending.push(letter);
            }
        }
    }

    fn add(&mut self, count: usize) -> Result<(), SpoolError> {
        self.spooling.add(Block::from(bytes(self.came, count)))?;
        self.came += count;
        self.ask();
        Ok(())
    }

    fn end(&mut self) {
        self.spooling.end();
        self.ask();
    }

    /// The disk has done what it was asked for first.
    fn done(&mut self) {
        match self.pending.remove(0) {
            'w' => self.spooling.written(),
            's' => {
                self.spooling.synced();
                assert_eq!(self.spooling.len(), self.came as u64);
            }
            _ => self.spooling.opened(),
        }
        self.ask();
    }
}

/// Plays a script: digits and `+` add (that many bytes; `+` is 10), `.` the disk has done one
/// thing, `!` there is no memory, `e` it has ended. Returns what was asked, with `|` where more is
/// taken and `-` where it is not, after each step.
fn play(bounds: Bounds, announced: Option<u64>, script: &str) -> String {
    let mut disk = Disk::new(bounds, announced);
    let mut seen = String::new();
    let note = |disk: &mut Disk, seen: &mut String| {
        seen.push_str(&std::mem::take(&mut disk.asked));
        seen.push(if disk.spooling.takes_more() { '|' } else { '-' });
    };
    note(&mut disk, &mut seen);
    for step in script.chars() {
        match step {
            '+' => disk.add(10).expect("it is short enough"),
            '0'..='9' => disk.add(step as usize - '0' as usize).expect("it is short enough"),
            '.' => disk.done(),
            '!' => disk.spooling.press(true),
            'e' => disk.end(),
            _ => panic!("no such step: {step}"),
        }
        if step == '!' {
            disk.ask();
        }
        note(&mut disk, &mut seen);
    }
    if let Some(whole) = &disk.whole {
        assert_eq!(*whole, bytes(0, disk.came), "{script}");
    }
    seen
}

#[test]
fn each_script_asks_for_just_that_and_holds_when_it_must() {
    let synced = Bounds { syncs: true, ..BOUNDS };
    let without = Bounds { has_files: false, ..BOUNDS };
    for (bounds, announced, script, expected) in [
        // In memory.
        (BOUNDS, None, "e", "|M-"),
        (BOUNDS, Some(0), "e", "|M-"),
        (BOUNDS, None, "55e", "|||M-"),
        (BOUNDS, Some(10), "+e", "||M-"),
        (without, Some(10), "+e", "||M-"),
        // It grows beyond it.
        (BOUNDS, None, "56.e.", "||P-w|-F-"),
        (BOUNDS, None, "56.e", "||P-w|-"),
        (BOUNDS, None, "+1e..", "||P--w-F-"),
        // Known to be long: the file first.
        (BOUNDS, Some(11), "", "O-"),
        (BOUNDS, Some(11), ".", "O-|"),
        (BOUNDS, Some(11), ".4", "O-||"),
        // Two pieces are written at a time, and the third is not taken.
        (BOUNDS, Some(40), ".88", "O-|w|w-"),
        (BOUNDS, Some(40), ".88.", "O-|w|w-|"),
        (BOUNDS, Some(40), ".88..8e.", "O-|w|w-||w|-F-"),
        (BOUNDS, Some(40), ".44", "O-||w|"),
        // What came while two were under way goes when one is done.
        (BOUNDS, Some(40), ".889.e..", "O-|w|w--w---F-"),
        // The last one is as short as it is.
        (BOUNDS, Some(40), ".83e..", "O-|w||w--F-"),
        (BOUNDS, Some(11), ".e", "O-|F-"),
        // The disk is waited for.
        (synced, Some(11), ".+1e..", "O-|w||w--s-"),
        (synced, Some(11), ".+1e...", "O-|w||w--s--"),
        // No memory: one after the other, whatever there is.
        (BOUNDS, Some(40), ".!3", "O-||w-"),
        (BOUNDS, Some(40), ".!3.", "O-||w-|"),
        (BOUNDS, Some(40), ".3!.3.e", "O-||w-|w-|F-"),
    ] {
        assert_eq!(play(bounds, announced, script), expected, "{announced:?} {script}");
    }
}

#[test]
fn what_is_too_long_is_refused_at_once_and_nothing_else_is() {
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
fn any_cut_and_any_pace_of_the_disk_give_the_same_body() {
    for total in [0, 1, 7, 8, 9, 10, 11, 16, 17, 40, 99, 100] {
        for step in [1, 3, 8, 9, 25] {
            for pace in 0..4 {
                for announced in [None, Some(total as u64)] {
                    let bounds = Bounds { syncs: pace == 1, ..BOUNDS };
                    let mut disk = Disk::new(bounds, announced);
                    let mut turn = 0;
                    while disk.whole.is_none() && (disk.spooling.state != State::Ended) {
                        turn += 1;
                        disk.spooling.press(pace == 3 && turn % 3 == 0);
                        if disk.came < total && disk.spooling.takes_more() {
                            disk.add(step.min(total - disk.came)).expect("it is short enough");
                        } else if disk.came == total && !disk.spooling.is_ended {
                            disk.end();
                        }
                        if turn % (pace + 1) == 0 && !disk.pending.is_empty() {
                            disk.done();
                        }
                        disk.ask();
                        assert!(turn < 10_000, "{total} {step} {pace}: it goes on");
                        assert!(disk.pending.len() <= 2, "two pieces at most");
                    }
                    let whole = disk.whole.or(disk.file).expect("it has ended");
                    assert_eq!(whole, bytes(0, total), "{total} by {step}, pace {pace}");
                    assert_eq!(disk.asked.contains(['O', 'P']), total > 10);
                }
            }
        }
    }
}

#[test]
fn what_has_no_room_in_memory_goes_to_a_file_where_there_are_some() {
    let mut disk = Disk::new(BOUNDS, None);
    disk.add(3).expect("it is short enough");
    assert!(disk.spooling.is_in_memory() && disk.spooling.leave_memory());
    disk.ask();
    assert!(!disk.spooling.takes_more() && !disk.spooling.is_in_memory());
    disk.done();
    disk.end();
    disk.done();
    assert_eq!((disk.asked.as_str(), disk.whole), ("PwF", Some(bytes(0, 3))));
    let without = Bounds { has_files: false, ..BOUNDS };
    assert!(!Disk::new(without, None).spooling.leave_memory());
}

#[test]
fn a_body_stays_in_memory_by_what_was_announced_or_where_there_is_nothing_else() {
    for (announced, stays) in [(Some(0), true), (Some(10), true), (Some(11), false), (None, false)]
    {
        let spooling = Spooling::new(BOUNDS, announced).expect("it is short enough");
        assert_eq!(spooling.stays_in_memory(), stays, "{announced:?}");
    }
    let without_files = Spooling::new(Bounds::memory(10, 100), None).expect("it may be short");
    assert!(without_files.stays_in_memory());
}
