//! What waits, in which order it comes, and how much of it in one turn.

use super::*;
use crate::backend::Wake;

struct NoWaker;

impl Wake for NoWaker {
    fn wake(&self) -> std::io::Result<()> {
        Ok(())
    }
}

fn queue() -> (RunQueue<char>, Arc<WakeQueue>) {
    let (wakes, parts) = WakeQueue::new(8, Arc::new(NoWaker)).expect("memory");
    let wakes = Arc::new(wakes);
    (RunQueue::new(wakes.clone(), parts), wakes)
}

fn token(index: u32) -> Token {
    Token::new(index, 0)
}

#[test]
fn events_come_in_their_order_and_room_for_others_is_left_behind_the_last() {
    let (mut queue, _) = queue();
    queue.events().push((token(1), EventSet::READABLE));
    queue.events().push((token(0), EventSet::WRITABLE));
    assert!(queue.is_due());
    assert_eq!(queue.next_event(), Some((token(1), EventSet::READABLE)));
    assert_eq!(queue.next_event(), Some((token(0), EventSet::WRITABLE)));
    assert!(!queue.is_due() && queue.next_event().is_none() && queue.events().is_empty());
}

#[test]
fn a_machine_is_queued_once_and_comes_in_the_next_turn() {
    let (mut queue, _) = queue();
    let (config, mut mark) = (Config::new(), Mark::default());
    queue.begin_turn(&config);
    queue.push(token(3), &mut mark);
    queue.push(token(3), &mut mark);
    assert!(queue.next_runnable().is_none() && queue.is_due());
    queue.begin_turn(&config);
    assert_eq!(queue.next_runnable(), Some(token(3)));
    mark.to_run = false;
    queue.push(token(3), &mut mark);
    assert!(queue.next_runnable().is_none(), "what was queued in this turn is the next one's");
}

#[test]
fn a_machine_that_is_called_again_has_the_backend_polled_first() {
    let (mut queue, _) = queue();
    queue.pace().polled(crate::Time::ZERO, None);
    let mut mark = Mark::default();
    queue.push_again(token(0), &mut mark, EventSet::READABLE);
    assert!(!queue.pace().allows_a_turn());
    assert!(mark.pending.has(Pending::READY) && mark.to_run);
}

#[test]
fn who_waits_for_its_spawn_is_not_queued_for_anything_else() {
    let (mut queue, _) = queue();
    let (config, mut mark) = (Config::new(), Mark::default());
    queue.defer_spawn(token(2), &mut mark, 's');
    mark.pending.add(Pending::WAKEUP);
    queue.push(token(2), &mut mark);
    assert!(queue.check([(token(2), mark)].into_iter()).is_ok());
    assert!(queue.next_deferred_spawn().is_none(), "it is the next turn's");
    queue.begin_turn(&config);
    assert_eq!(queue.next_runnable(), None);
    assert_eq!(queue.next_deferred_spawn(), Some((token(2), 's')));
    mark.to_spawn = false;
    assert!(queue.check([(token(2), mark)].into_iter()).is_err(), "it is to be queued now");
}

#[test]
fn wake_ups_come_until_the_budget_is_spent_those_of_the_turn_included() {
    let (mut queue, wakes) = queue();
    wakes.wake(token(0));
    wakes.wake(token(1));
    queue.begin_turn(&Config::new().wakeups_per_turn(3));
    assert_eq!(queue.next_woken(), Some(0));
    assert!(queue.take_wakeup(0));
    wakes.wake(token(0));
    assert_eq!(
        (queue.next_woken(), queue.next_woken(), queue.next_woken()),
        (Some(1), Some(0), None)
    );
    wakes.wake(token(2));
    assert!(queue.next_woken().is_none() && queue.is_due(), "the budget is spent");
    queue.begin_turn(&Config::new());
    assert_eq!((queue.next_woken(), queue.next_woken()), (Some(2), None));
}

#[test]
fn who_woke_itself_is_called_in_the_next_turn() {
    let (mut queue, _) = queue();
    let (config, mut mark) = (Config::new(), Mark::default());
    queue.begin_turn(&config);
    assert!(!queue.is_next_turns(&mark));
    queue.note_woken_while_out(&mut mark);
    assert!(queue.is_next_turns(&mark));
    queue.begin_turn(&config);
    assert!(!queue.is_next_turns(&mark));
    mark.pending.add(Pending::WAKEUP);
    assert!(queue.is_next_turns(&mark), "one call for both");
}

#[test]
fn deadlines_left_over_wait_for_a_turn_that_has_polled() {
    let (mut queue, _) = queue();
    queue.begin_turn(&Config::new().timeouts_per_turn(1));
    queue.pace().polled(crate::Time::ZERO, None);
    let due = |index| Due { tick: crate::Time::ZERO, index };
    queue.expired().extend([due(4), due(5)]);
    assert_eq!(queue.next_expired(), Some(4));
    queue.note_fired();
    assert_eq!(queue.next_expired(), None);
    queue.poll_before_expired();
    assert!(!queue.pace().allows_a_turn() && queue.is_due());
}

#[test]
fn overdue_machines_are_called_once_and_those_of_the_turn_so_far() {
    let (mut queue, _) = queue();
    let (config, mut marks) = (Config::new(), [Mark::default(); 3]);
    queue.begin_turn(&config);
    for index in [0, 1, 1] {
        queue.push_overdue(token(index), &mut marks[index as usize]);
    }
    assert_eq!(queue.next_overdue(8), Some(token(0)));
    queue.push_overdue(token(2), &mut marks[2]);
    assert_eq!((queue.next_overdue(8), queue.next_overdue(8)), (Some(token(1)), None));
    queue.begin_turn(&config);
    assert_eq!((queue.next_overdue(0), queue.is_due()), (None, true));
    queue.begin_turn(&config);
    assert_eq!(queue.next_overdue(1), Some(token(2)));
}

#[test]
fn a_burst_of_deferred_spawns_gives_its_memory_back() {
    let (mut queue, _) = queue();
    for index in 0..20_000 {
        queue.defer_spawn(token(index), &mut Mark::default(), 's');
    }
    queue.begin_turn(&Config::new());
    while queue.next_deferred_spawn().is_some() {}
    assert!(queue.deferred.capacity() >= 20_000);
    queue.give_back();
    assert!(queue.deferred.capacity() < 8_192, "{}", queue.deferred.capacity());
}
