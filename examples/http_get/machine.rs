//! One request on one connection, without a pool: a handler that passes its response on piece by
//! piece, and a source of one request.
//!
//! The handler holds nothing of the body: each piece goes to the context and is then forgotten, so
//! a download of any size takes as little memory as a small one.

use std::marker::PhantomData;

use rotor::http::client::{
    Client, ClientError, ClientResult, Connection, Head, Job, Next, NoUpgrade, Offer, RecvMode,
    Request, RequestSource, Scope,
};
use rotor::http::{MessageError, Method, Trailers};
use rotor::stream::{Connect, Fatal, HasResolver};
use rotor::{BoxError, Future, Time};

/// The machine: it looks up the host, connects, and makes one request, on a socket of any kind.
pub(crate) type Get<C, S, T> = Connect<Connection<Download<C>, Once<C>>, S, T>;

/// What the context does with a download.
pub(crate) trait DownloadSink: HasResolver + Sized + 'static {
    /// Receives the head of the response.
    fn head(&mut self, head: &Head<'_>) -> std::io::Result<()>;

    /// Receives the next piece of the body. An error ends the download.
    fn piece(&mut self, piece: &[u8]) -> std::io::Result<()>;

    /// The last call: how the download ended. The loop stops then, because its resolver would wait
    /// for more questions.
    fn ended(&mut self, outcome: Result<(), BoxError>);
}

/// The handler of one GET.
pub(crate) struct Download<C> {
    pub(crate) authority: String,
    /// Path and query, or for a proxy the whole URL.
    pub(crate) target: String,
    /// The value of `Proxy-Authorization`, for a proxy that reads the request.
    pub(crate) proxy_authorization: Option<String>,
    pub(crate) context: PhantomData<fn(C)>,
}

impl<C> Download<C> {
    fn write(&self, request: &mut Request<'_>) -> Result<(), MessageError> {
        request.start(Method::Get, &self.target)?;
        request.add_header("Host", &self.authority)?;
        request.add_header("User-Agent", "rotor-http_get")?;
        request.add_header("Accept", "*/*")?;
        if let Some(credentials) = &self.proxy_authorization {
            request.add_header("Proxy-Authorization", credentials)?;
        }
        request.close();
        request.done_headers()?;
        request.done()
    }
}

impl<C: DownloadSink> Client for Download<C> {
    type Context = C;
    type Output = ();
    type Upgrade = NoUpgrade<C>;

    fn prepare_request(self, request: &mut Request<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        match self.write(request) {
            Ok(()) => Next::go_on(self).no_deadline(),
            Err(error) => finish(scope, Err(error.into())),
        }
    }

    fn headers_received(
        self,
        head: &Head<'_>,
        _: &mut Request<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        match scope.head(head) {
            Ok(()) => Next::recv(self, RecvMode::Progressive(1)).keep_deadline(),
            Err(error) => finish(scope, Err(format!("cannot write the head: {error}").into())),
        }
    }

    fn response_chunk(
        self,
        chunk: &[u8],
        _: &mut Request<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        match scope.piece(chunk) {
            Ok(()) => Next::go_on(self).keep_deadline(),
            Err(error) => finish(scope, Err(format!("cannot write the body: {error}").into())),
        }
    }

    fn response_end(
        self,
        _: &Trailers,
        _: &mut Request<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        finish(scope, Ok(()))
    }

    fn bad_response(self, error: ClientError, scope: &mut Scope<'_, C>) -> ClientResult<Self> {
        end(scope, Err(error.into()));
        Ok(())
    }
}

/// A source of one request. It keeps the future of the outcome, although the handler reports that to
/// the context, because dropping the future would cancel the request.
pub(crate) struct Once<C: DownloadSink> {
    pub(crate) download: Option<Download<C>>,
    pub(crate) under_way: Option<Future<ClientResult<Download<C>>>>,
}

impl<C: DownloadSink> RequestSource<Download<C>> for Once<C> {
    fn next(&mut self, _: bool, scope: &mut Scope<'_, C>) -> Offer<Download<C>> {
        let Some(download) = self.download.take() else { return Offer::Close };
        let (port, future) = scope.create_future();
        self.under_way = Some(future);
        Offer::Job(Job::new(download, Time::NEVER, port))
    }

    /// The first request on a connection is given back only by HTTP/2, if the server refuses it.
    fn return_job(&mut self, _: Job<Download<C>>, scope: &mut Scope<'_, C>) {
        end(scope, Err(ClientError::Refused.into()));
    }

    fn not_connected(self, error: Fatal, scope: &mut Scope<'_, C>) {
        end(scope, Err(ClientError::NotConnected(error).into()));
    }
}

/// Ends a download whose handler decides how. Not by `Next::error`: the outcome goes to the future of
/// the request, which nobody reads here.
fn finish<C: DownloadSink>(
    scope: &mut Scope<'_, C>,
    outcome: Result<(), BoxError>,
) -> Next<Download<C>> {
    end(scope, outcome);
    Next::finished(())
}

fn end<C: DownloadSink>(scope: &mut Scope<'_, C>, outcome: Result<(), BoxError>) {
    scope.ended(outcome);
    scope.stop_loop();
}
