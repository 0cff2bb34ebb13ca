//! Makes gRPC calls with tonic's client: one with a single answer and one with several, to the
//! example `grpc_greeter` or another server with its service. The code that is usually generated
//! from a `.proto` file is written out here: two messages, two paths.
//!
//! ```text
//! cargo run --bin with_tonic -- http://127.0.0.1:3000 Ann
//! ```

use http::uri::PathAndQuery;
use rotor::BoxError;
use rotor_with_tokio::drive;
use tonic::Request;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

#[derive(Clone, PartialEq, prost::Message)]
struct Name {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Greeting {
    #[prost(string, tag = "1")]
    message: String,
}

fn main() -> Result<(), BoxError> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("which server?")?;
    let name = arguments.next().ok_or("whom?")?;
    let greetings = drive(|_, _| async move {
        let mut client = Grpc::new(Endpoint::from_shared(url)?.connect().await?);
        let mut greetings = vec![say_hello(&mut client, &name).await?];
        greetings.extend(say_many(&mut client, &name).await?);
        Ok(greetings)
    })?;
    for greeting in greetings {
        println!("{greeting}");
    }
    Ok(())
}

async fn say_hello(client: &mut Grpc<Channel>, name: &str) -> Result<String, BoxError> {
    client.ready().await?;
    let request = Request::new(Name { name: name.to_owned() });
    let path = PathAndQuery::from_static("/greeter.Greeter/SayHello");
    let codec = ProstCodec::<Name, Greeting>::default();
    Ok(client.unary(request, path, codec).await?.into_inner().message)
}

async fn say_many(client: &mut Grpc<Channel>, name: &str) -> Result<Vec<String>, BoxError> {
    client.ready().await?;
    let request = Request::new(Name { name: name.to_owned() });
    let path = PathAndQuery::from_static("/greeter.Greeter/SayMany");
    let codec = ProstCodec::<Name, Greeting>::default();
    let mut answers = client.server_streaming(request, path, codec).await?.into_inner();
    let mut greetings = Vec::new();
    while let Some(greeting) = answers.message().await? {
        greetings.push(greeting.message);
    }
    Ok(greetings)
}
