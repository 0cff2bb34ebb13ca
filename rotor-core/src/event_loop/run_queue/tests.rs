//! Pending calls: their order, and how many of them run in one turn.

use super::*;
use crate::backend::NoWaker;

fn queue() -> (RunQueue<char>, Arc<WakeQueue>) {
    let (wakes, parts) = WakeQueue::new(8, Arc::new(NoWaker)).expect("memory");
    let wakes = Arc::new(wakes);
    (RunQueue::new(wakes.clone(), parts, Time::ZERO), wakes)
}

fn token(index: u32) -> Token {
    Token::new(index, 0)
}

#[test]
fn events_are_delivered_in_order_and_the_list_is_then_empty() {
    let (mut queue, _) = queue();
    queue.events().push((token(1), EventSet::READABLE));
    queue.events().push((token(0), EventSet::WRITABLE));
    assert!(queue.is_due());
    assert_eq!(queue.next_event(), Some((token(1), EventSet::READABLE)));
    assert_eq!(queue.next_event(), Some((token(0), EventSet::WRITABLE)));
    assert!(!queue.is_due() && queue.next_event().is_none() && queue.events().is_empty());
}

#[test]
fn a_machine_is_queued_once_and_called_in_the_next_turn() {
    let (mut queue, _) = queue();
    let (config, mut state) = (Config::new(), CallState::default());
    queue.begin_turn(&config);
    queue.push(token(3), &mut state);
    queue.push(token(3), &mut state);
    assert!(queue.next_runnable().is_none() && queue.is_due());
    queue.begin_turn(&config);
    assert_eq!(queue.next_runnable(), Some(token(3)));
    state.is_queued = false;
    queue.push(token(3), &mut state);
    assert!(queue.next_runnable().is_none(), "what was queued in this turn is the next one's");
}

#[test]
fn a_machine_that_returned_again_requests_a_poll() {
    let (mut queue, _) = queue();
    queue.pace().record_poll(crate::Time::ZERO, None);
    let mut state = CallState::default();
    queue.push_again(token(0), &mut state, EventSet::READABLE);
    assert!(!queue.pace().allows_turn_without_poll());
    assert!(state.pending.has(Pending::READY) && state.is_queued);
}

#[test]
fn a_machine_waiting_for_its_spawn_is_not_queued_for_other_calls() {
    let (mut queue, _) = queue();
    let (config, mut state) = (Config::new(), CallState::default());
    queue.defer_spawn(token(2), &mut state, 's');
    state.pending.add(Pending::WAKEUP);
    queue.push(token(2), &mut state);
    assert!(queue.check([(token(2), state)].into_iter()).is_ok());
    assert!(queue.next_deferred_spawn().is_none(), "it is the next turn's");
    queue.begin_turn(&config);
    assert_eq!(queue.next_runnable(), None);
    assert_eq!(queue.next_deferred_spawn(), Some((token(2), 's')));
    state.awaits_spawn = false;
    assert!(queue.check([(token(2), state)].into_iter()).is_err(), "it is to be queued now");
}

#[test]
fn wakeups_made_during_a_turn_count_against_its_budget() {
    let (mut queue, wakes) = queue();
    wakes.wake(token(0));
    wakes.wake(token(1));
    queue.begin_turn(&Config::new().wakeups_per_turn(3));
    let slot = |index| Some(NextWoken::Slot(index));
    assert_eq!(queue.next_woken(), slot(0));
    assert!(queue.take_wakeup(0));
    wakes.wake(token(0));
    assert_eq!(
        (queue.next_woken(), queue.next_woken(), queue.next_woken()),
        (slot(1), slot(0), None)
    );
    wakes.wake(token(2));
    assert!(queue.next_woken().is_none() && queue.is_due(), "the budget is spent");
    queue.begin_turn(&Config::new());
    assert_eq!((queue.next_woken(), queue.next_woken()), (slot(2), None));
}

#[test]
fn machines_woken_in_create_alternate_with_other_woken_machines() {
    let (mut queue, wakes) = queue();
    let mut states = [CallState::default(); 3];
    let woken_in_create = |index| Some(NextWoken::WokenInCreate(token(index)));
    queue.begin_turn(&Config::new().wakeups_per_turn(4));
    queue.push_woken_in_create(token(0), &mut states[0]);
    assert!(states[0].pending.has(Pending::WAKEUP_WHOLE) && !wakes.is_woken(0) && queue.is_due());
    assert_eq!(queue.next_woken(), woken_in_create(0));
    // A machine that is made in each call does not keep out others that were woken earlier.
    queue.push_woken_in_create(token(1), &mut states[1]);
    wakes.wake(token(0));
    assert_eq!(queue.next_woken(), Some(NextWoken::Slot(0)));
    queue.take_wakeup(0);
    queue.push_woken_in_create(token(2), &mut states[2]);
    assert_eq!((queue.next_woken(), queue.next_woken()), (woken_in_create(1), woken_in_create(2)));
    states[0] = CallState { is_queued: true, ..CallState::default() };
    queue.push_woken_in_create(token(0), &mut states[0]);
    assert!(wakes.is_woken(0) && states[0].pending.is_empty(), "it is queued already");
    assert!(queue.next_woken().is_none() && queue.is_due(), "the budget is spent");
}

#[test]
fn a_self_wakeup_is_delivered_in_the_next_turn() {
    let (mut queue, _) = queue();
    let (config, mut state) = (Config::new(), CallState::default());
    queue.begin_turn(&config);
    assert!(!queue.must_wait_for_next_turn(&state));
    queue.mark_woken_in_call(&mut state);
    assert!(queue.must_wait_for_next_turn(&state));
    queue.begin_turn(&config);
    assert!(!queue.must_wait_for_next_turn(&state));
    state.pending.add(Pending::WAKEUP);
    assert!(queue.must_wait_for_next_turn(&state), "one call for both");
}

#[test]
fn deadlines_beyond_the_budget_wait_for_the_next_poll() {
    let (mut queue, _) = queue();
    queue.begin_turn(&Config::new().timeouts_per_turn(1));
    queue.pace().record_poll(crate::Time::ZERO, None);
    let due = |index| Due { tick: crate::Time::ZERO, index };
    queue.expired_mut().extend([due(4), due(5)]);
    assert_eq!(queue.next_expired(), Some(4));
    queue.count_fired();
    assert_eq!(queue.next_expired(), None);
    queue.request_poll_for_expired();
    assert!(!queue.pace().allows_turn_without_poll() && queue.is_due());
}

#[test]
fn overdue_machines_are_called_once_and_later_ones_next_turn() {
    let (mut queue, _) = queue();
    let (config, mut states) = (Config::new(), [CallState::default(); 3]);
    queue.begin_turn(&config);
    for index in [0, 1, 1] {
        queue.push_overdue(token(index), &mut states[index as usize]);
    }
    assert_eq!(queue.next_overdue(8), Some(token(0)));
    queue.push_overdue(token(2), &mut states[2]);
    assert_eq!((queue.next_overdue(8), queue.next_overdue(8)), (Some(token(1)), None));
    queue.begin_turn(&config);
    assert_eq!((queue.next_overdue(0), queue.is_due()), (None, true));
    queue.begin_turn(&config);
    assert_eq!(queue.next_overdue(1), Some(token(2)));
}

#[test]
fn memory_of_a_burst_of_deferred_spawns_is_freed() {
    let (mut queue, _) = queue();
    for index in 0..20_000 {
        queue.defer_spawn(token(index), &mut CallState::default(), 's');
    }
    queue.begin_turn(&Config::new());
    while queue.next_deferred_spawn().is_some() {}
    assert!(queue.deferred.capacity() >= 20_000);
    queue.shrink_if_large();
    assert!(queue.deferred.capacity() < 8_192, "{}", queue.deferred.capacity());
}
