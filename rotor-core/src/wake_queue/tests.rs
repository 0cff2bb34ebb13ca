//! Wake-ups from several threads: none is lost, and none is spurious.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::thread;

use super::*;

#[derive(Default)]
struct CountingWaker(AtomicUsize);

impl Wake for CountingWaker {
    fn wake(&self) -> std::io::Result<()> {
        self.0.fetch_add(1, SeqCst);
        Ok(())
    }
}

fn queue(capacity: usize) -> (WakeQueue, Arc<CountingWaker>, mpsc::Receiver<PartWake>) {
    let count = Arc::new(CountingWaker::default());
    let (queue, parts) = WakeQueue::new(capacity, count.clone()).expect("room");
    (queue, count, parts)
}

fn take_indices(queue: &WakeQueue) -> Vec<u32> {
    let mut batch = Vec::new();
    queue.take_all(&mut batch);
    for index in &batch {
        queue.take_flags(*index);
    }
    batch
}

#[test]
fn wake_ups_coalesce_and_come_in_order() {
    let (queue, count, _parts) = queue(4);
    for index in [2, 0, 2, 3, 0] {
        assert!(queue.wake(Token::new(index, 0)));
    }
    assert_eq!(take_indices(&queue), [2, 0, 3]);
    assert_eq!(take_indices(&queue), [0u32; 0]);
    assert_eq!(count.0.load(SeqCst), 0, "a loop that is awake is not woken");
}

#[test]
fn only_the_first_wake_up_of_a_sleeping_loop_wakes_the_backend() {
    let (queue, count, _parts) = queue(2);
    assert!(queue.try_sleep());
    queue.wake(Token::new(0, 0));
    queue.wake(Token::new(1, 0));
    assert_eq!(count.0.load(SeqCst), 1);
    assert!(!queue.try_sleep(), "there is something to do");
    assert_eq!(take_indices(&queue), [0, 1]);
    assert!(queue.try_sleep());
    queue.wake_loop();
    queue.wake_loop();
    assert_eq!(count.0.load(SeqCst), 2);
}

#[test]
fn a_token_of_an_ended_generation_wakes_nothing() {
    let (queue, _, _parts) = queue(1);
    let old = Token::new(0, 0);
    assert!(!queue.end_generation(0));
    assert!(!queue.wake(old) && !queue.is_alive(old));
    let new = Token::new(0, queue.generation(0));
    assert!(queue.wake(new));
    assert!(queue.end_generation(0), "its wake-up is still in the list");
    assert!(!queue.wake(new));
    assert!(!queue.wake(Token::new(77, 0)), "a slot that does not exist");
}

#[test]
fn a_wakeup_of_a_part_is_distinguished_from_one_of_the_machine() {
    let (queue, _, parts) = queue(2);
    let (token, queued) = (Token::new(1, 0), Arc::new(AtomicBool::new(false)));
    assert!(queue.wake_part(token, 7, &queued));
    assert!(queue.wake_part(token, 7, &queued));
    let mut batch = Vec::new();
    queue.take_all(&mut batch);
    assert_eq!(batch, [1]);
    assert!(!queue.take_flags(1));
    assert_eq!(parts.try_iter().map(|wake| wake.part).collect::<Vec<_>>(), [7]);
}

/// Random operations of one thread, compared with a set: each wake-up is taken once, in order.
#[test]
fn the_queue_agrees_with_a_simple_model() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..200 {
        let (queue, _, _parts) = queue(8);
        let mut model: Vec<u32> = Vec::new();
        let mut zombies: BTreeMap<u32, bool> = BTreeMap::new();
        for _ in 0..200 {
            let index = random.u32(0..8);
            match random.u8(0..10) {
                0..=5 if !zombies.contains_key(&index) => {
                    assert!(queue.wake(Token::new(index, queue.generation(index))));
                    if !model.contains(&index) {
                        model.push(index);
                    }
                }
                6 if !zombies.contains_key(&index) => {
                    let queued = queue.end_generation(index);
                    assert_eq!(queued, model.contains(&index));
                    if queued {
                        zombies.insert(index, true);
                    }
                }
                7 => {
                    let asleep = queue.try_sleep();
                    assert_eq!(asleep, model.is_empty());
                }
                8 | 9 => {
                    assert_eq!(take_indices(&queue), model);
                    model.clear();
                    zombies.clear();
                }
                _ => {}
            }
        }
    }
}

/// Eight threads wake 64 machines 10^6 times in total. The loop must see the count stored before
/// each wake-up, and after the last one nothing may be missing.
#[test]
fn no_wake_up_of_eight_threads_is_lost() {
    const THREADS: u64 = 8;
    const EACH: u64 = 125_000;
    let (queue, count, _parts) = queue(64);
    let stored: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
    let running = AtomicUsize::new(THREADS as usize);
    let mut seen = [0u64; 64];
    // The first thread finds the queue asleep, even if all threads have ended before this one
    // checks.
    assert!(queue.try_sleep());
    thread::scope(|scope| {
        for seed in 0..THREADS {
            let (queue, stored, running) = (&queue, &stored, &running);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..EACH {
                    let index = random.u32(0..64);
                    stored[index as usize].fetch_add(1, Relaxed);
                    assert!(queue.wake(Token::new(index, 0)));
                }
                running.fetch_sub(1, SeqCst);
                queue.wake_loop();
            });
        }
        let mut batch = Vec::new();
        loop {
            let last = running.load(SeqCst) == 0;
            queue.take_all(&mut batch);
            for index in batch.drain(..) {
                queue.take_flags(index);
                seen[index as usize] = stored[index as usize].load(Relaxed);
            }
            if last && queue.is_empty() {
                break;
            }
            // Goes to sleep and returns immediately, so that threads meet both states.
            queue.try_sleep();
            thread::yield_now();
        }
    });
    let all: Vec<u64> = stored.iter().map(|count| count.load(Relaxed)).collect();
    assert_eq!(seen.to_vec(), all);
    assert_eq!(all.iter().sum::<u64>(), THREADS * EACH);
    assert!(count.0.load(SeqCst) > 0, "some thread met a sleeping loop");
}
