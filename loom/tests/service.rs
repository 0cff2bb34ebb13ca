//! Requests from a thread to a machine: each is answered, and each cancellation is noticed.
mod waiting;

use loom::thread;
use rotor_core::{Calls, ReceiveError, Service};

use waiting::{WaitUntil, model, small_loop};

/// Runs a loop whose machine checks its calls until `is_over`, while another thread asks. The value
/// that `ask` returns lives on.
fn serve<V: Send + 'static>(
    ask: impl FnOnce(Service<u32, u32>) -> V + Send + 'static,
    mut is_over: impl FnMut(&mut Calls<u32, u32>) -> bool + 'static,
) {
    let mut creator = small_loop(1);
    let mut thread = None;
    let add = creator.add_machine_with(|scope| {
        let (service, mut calls) = scope.create_service(2);
        thread = Some(thread::spawn(|| ask(service)));
        WaitUntil::new(move |_| is_over(&mut calls))
    });
    add.unwrap();
    creator.instantiate(()).run().unwrap();
    thread.unwrap().join().unwrap();
}

#[test]
fn a_thread_that_waits_for_an_answer_receives_it() {
    let ask = |service: Service<u32, u32>| {
        let reply = service.ask_from_thread(2).unwrap();
        assert_eq!(reply.wait(), Ok(4));
    };
    let answer = |calls: &mut Calls<u32, u32>| {
        loop {
            match calls.try_receive() {
                Ok(call) => {
                    let double = 2 * call.request();
                    call.answer(double).unwrap();
                }
                Err(error) => return error == ReceiveError::Closed,
            }
        }
    };
    model(2, move || serve(ask, answer));
}

#[test]
fn a_server_is_woken_when_a_request_is_cancelled() {
    let ask = |service: Service<u32, u32>| {
        drop(service.ask_from_thread(2).unwrap());
        // Dropping it would wake the server as well.
        service
    };
    model(2, move || {
        let mut kept = Vec::new();
        serve(ask, move |calls| {
            while let Some(call) = calls.receive() {
                kept.push(call);
            }
            // As documented, the calls need a check only if this returns true.
            calls.take_cancelled() && kept.iter().any(|call| call.is_cancelled())
        });
    });
}
