//! Prints the addresses of a host, or its records of one kind (`A`, `AAAA`, `CNAME`, `MX`, `PTR`,
//! `SRV`, `TXT`). For an address, `PTR` finds the name.
//!
//! ```text
//! # without a server: those of /etc/resolv.conf
//! cargo run -p rotor-examples --example resolve NAME [KIND] [SERVER:PORT]
//! cargo run -p rotor-examples --example resolve localhost
//! ::1
//! 127.0.0.1
//! ```
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::{Answer, Context, Query, ResolveMachine};
use rotor::dns::{Data, Kind, Name, Question, Resolver, ResolverConfig};
use rotor::net::IpNet;
use rotor::{Backend, BoxError, Config, Loop, Response, rotor_compose};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_uring::OnAnyLoop;

rotor_compose! {
    /// The machine that asks, and the resolver.
    enum Resolve <N: IpNet> <Context> {
        ResolveMachine(ResolveMachine),
        Resolver(Resolver<N, Context>),
    }
}

fn main() -> ExitCode {
    program::run(resolve)
}

fn resolve() -> Result<(), BoxError> {
    let name: String = program::argument(1, "localhost".to_string())?;
    let kind: String = program::argument(2, "any".to_string())?;
    let config = match std::env::args_os().nth(3) {
        None => ResolverConfig::system(),
        Some(_) => {
            let server = program::argument(3, SocketAddr::from(([127, 0, 0, 1], 53)))?;
            ResolverConfig::system().servers(vec![server])
        }
    };
    on_chosen_loop(Lookup { query: parse_query(&name, &kind)?, config })
}

/// The question, and the server to ask.
struct Lookup {
    query: Query,
    config: ResolverConfig,
}

impl OnAnyLoop for Lookup {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Lookup { query, config } = self;
        let mut creator = Loop::<Resolve<N>, B>::with_backend(backend, &Config::new())?;
        let dns = creator.add_part(Resolve::Resolver, |scope| Ok(Resolver::new(config, scope)))?;
        creator.add_machine_with(|scope| {
            Response::ok(Resolve::ResolveMachine(ResolveMachine::Start(query)))
                .deadline(scope.now())
        })?;
        let mut instance = creator.instantiate(Context { dns, answer: None });
        instance.run()?;
        let lines = match instance.into_context().answer.ok_or("the resolver has ended")? {
            Answer::Host(resolved) => resolved?.iter().map(ToString::to_string).collect(),
            Answer::Records(reply) => reply?.data.iter().map(line).collect::<Vec<_>>(),
        };
        Ok(program::print(&lines)?)
    }
}

fn parse_query(name: &str, kind: &str) -> Result<Query, BoxError> {
    let kind = match kind.to_ascii_uppercase().as_str() {
        "ANY" => return Ok(Query::Host(name.into())),
        "A" => Kind::A,
        "AAAA" => Kind::Aaaa,
        "CNAME" => Kind::Cname,
        "MX" => Kind::Mx,
        "PTR" => Kind::Ptr,
        "SRV" => Kind::Srv,
        "TXT" => Kind::Txt,
        _ => {
            return Err(
                format!("kind {kind:?} is none of A, AAAA, CNAME, MX, PTR, SRV, TXT").into()
            );
        }
    };
    let name = match name.parse() {
        Ok(address) if kind == Kind::Ptr => Name::reverse(address),
        _ => name.parse()?,
    };
    Ok(Query::Records(Question { name, kind }))
}

fn line(data: &Data) -> String {
    match data {
        Data::A(address) => address.to_string(),
        Data::Aaaa(address) => address.to_string(),
        Data::Cname(name) | Data::Ptr(name) => name.to_string(),
        Data::Mx { preference, exchange } => format!("{preference} {exchange}"),
        Data::Srv { priority, weight, port, target } => {
            format!("{priority} {weight} {port} {target}")
        }
        Data::Txt(strings) => {
            let texts: Vec<_> =
                strings.iter().map(|s| format!("\"{}\"", s.escape_ascii())).collect();
            texts.join(" ")
        }
        other => format!("{other:?}"),
    }
}
