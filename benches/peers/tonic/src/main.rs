//! tonic as a client of the example `grpc_greeter`: the four kinds of call, an unknown method, a
//! call that is cancelled and one whose time limit passes, on one connection. It prints what
//! `tests/long/grpc` expects.
//!
//! Messages have one string, as protocol buffers' own `StringValue`, so no code is generated.
#![forbid(unsafe_code)]

use std::error::Error;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

type Failure = Box<dyn Error>;

/// The greeter, whose methods have similar paths.
struct Greeter(Grpc<Channel>);

impl Greeter {
    async fn once(&mut self, method: &'static str, name: &str) -> Result<String, Status> {
        self.ready().await?;
        let codec = ProstCodec::<String, String>::default();
        let reply = self.0.unary(Request::new(name.to_owned()), path(method), codec).await?;
        Ok(reply.into_inner())
    }

    /// Makes a call in which both sides may send several messages. The first message is sent at
    /// once, because a server may wait for it before it sends its head.
    async fn streaming(
        &mut self,
        method: &'static str,
        first: &str,
    ) -> Result<(mpsc::Sender<String>, Streaming<String>), Status> {
        self.ready().await?;
        let (sender, receiver) = mpsc::channel(4);
        sender.send(first.to_owned()).await.map_err(|_| Status::internal("it is held here"))?;
        let request = Request::new(ReceiverStream::new(receiver));
        let codec = ProstCodec::<String, String>::default();
        let answers = self.0.streaming(request, path(method), codec).await?;
        Ok((sender, answers.into_inner()))
    }

    async fn ready(&mut self) -> Result<(), Status> {
        self.0.ready().await.map_err(|error| Status::unavailable(error.to_string()))
    }
}

fn path(method: &'static str) -> PathAndQuery {
    PathAndQuery::from_static(method)
}

fn main() -> Result<(), Failure> {
    Builder::new_current_thread().enable_all().build()?.block_on(talk())
}

async fn talk() -> Result<(), Failure> {
    let address = std::env::args().nth(1).ok_or("the address of a server is missing")?;
    let channel = Endpoint::new(format!("http://{address}"))?.connect().await?;
    let mut greeter = Greeter(Grpc::new(channel));
    println!("{}", greeter.once("/greeter.Greeter/SayHello", "Ann").await?);
    let (sender, mut many) = greeter.streaming("/greeter.Greeter/SayMany", "Ann").await?;
    drop(sender);
    while let Some(reply) = many.message().await? {
        println!("{reply}");
    }
    println!("{}", collect(&mut greeter).await?);
    chat(&mut greeter).await?;
    let unknown = greeter.once("/greeter.Greeter/SayNothing", "x").await.err().ok_or("an error")?;
    println!("{} {}", unknown.code() == Code::Unimplemented, unknown.message().is_empty());
    // Dropping them resets their stream; the connection goes on.
    let (sender, mut gone) = greeter.streaming("/greeter.Greeter/Chat", "gone").await?;
    println!("{}", gone.message().await?.is_some());
    drop((sender, gone));
    // Its sender is still open, so the server waits for more. tonic's own time limit ends with the
    // head.
    let (sender, mut late) = greeter.streaming("/greeter.Greeter/Collect", "late").await?;
    println!("{}", timeout(Duration::from_millis(100), late.message()).await.is_err());
    drop((sender, late));
    println!("{}", greeter.once("/greeter.Greeter/SayHello", "after").await?);
    Ok(())
}

async fn collect(greeter: &mut Greeter) -> Result<String, Failure> {
    let names = tokio_stream::iter(["Ann", "Bob", "Cid"].map(str::to_owned));
    greeter.ready().await?;
    let codec = ProstCodec::<String, String>::default();
    let path = path("/greeter.Greeter/Collect");
    Ok(greeter.0.client_streaming(Request::new(names), path, codec).await?.into_inner())
}

/// Each message waits for the answer to the previous one.
async fn chat(greeter: &mut Greeter) -> Result<(), Failure> {
    let (sender, mut answers) = greeter.streaming("/greeter.Greeter/Chat", "n0").await?;
    for number in 1..=1000 {
        let reply = answers.message().await?.ok_or("an answer to each")?;
        if reply != format!("Hello, n{}!", number - 1) {
            return Err(format!("wrong: {reply}").into());
        }
        if number < 1000 {
            sender.send(format!("n{number}")).await?;
        }
    }
    drop(sender);
    println!("chat: {}", answers.message().await?.map_or("EOF", |_| "more"));
    Ok(())
}
