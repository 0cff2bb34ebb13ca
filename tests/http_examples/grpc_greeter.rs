//! `grpc_greeter`: the four kinds of calls, directly and through `reverse_proxy`.

use std::process::Output;

use rotor_bench::server::Server;

use crate::client::{command, start, start_command};

fn call(server: &Server, arguments: &[&str]) -> Output {
    command("grpc_greeter")
        .arg(format!("h2c://{}/", server.address()))
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("grpc_greeter: {error}"))
}

fn check(server: &Server) {
    for (arguments, answers) in [
        (&["SayHello", "Ann"][..], "Hello, Ann!\n"),
        (&["SayHello", ""], "Hello, !\n"),
        (&["SayMany", "Ann"], "Hello, Ann! (1 of 3)\nHello, Ann! (2 of 3)\nHello, Ann! (3 of 3)\n"),
        (&["Collect", "Ann", "Bob", "Cid"], "Hello, Ann and Bob and Cid!\n"),
        (&["Chat", "Ann", "Bob"], "Hello, Ann!\nHello, Bob!\n"),
        (&["Chat"], ""),
    ] {
        let output = call(server, arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), answers, "{arguments:?}");
    }
    for (arguments, status) in [(&["SayNothing", "x"][..], "12"), (&["SayHello", "a", "b"], "3")] {
        let output = call(server, arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(&format!("status {status}")), "{arguments:?}: {errors}");
    }
}

#[test]
fn each_kind_of_call_is_answered_with_its_status_in_the_trailers() {
    check(&start("grpc_greeter"));
}

#[test]
fn calls_pass_an_http2_proxy_with_their_trailers() {
    let greeter = start("grpc_greeter");
    let mut proxy = command("reverse_proxy");
    proxy.arg(format!("h2c://{}/", greeter.address()));
    check(&start_command(proxy));
}
