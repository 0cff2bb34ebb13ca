//! The interface to a resolver, whatever implements it: `HasResolver`, `AddressService`.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;

use quick_error::quick_error;
use rotor_core::Service;

/// The name of a host, as text: the request of an [`AddressService`].
///
/// An address as text ("192.0.2.1", "2001:db8::1") is answered with that address.
pub type HostName = Arc<str>;

/// The addresses of a host, at least one, in the resolver's order of preference; or why there are
/// none.
#[doc(alias = "Resolved")]
pub type ResolveResult = Result<Arc<[IpAddr]>, ResolveError>;

/// The handle of a machine that finds addresses: that of `rotor-dns`, one that calls the system's
/// `getaddrinfo`, or your own.
///
/// It is cheap to clone. See [`Service`] for the cost of a request, and how to cancel it.
pub type AddressService = Service<HostName, ResolveResult>;

/// A context whose loop has a resolver.
///
/// ```
/// # mod rotor { pub use rotor_stream as stream; }
/// use rotor::stream::{AddressService, HasResolver};
///
/// struct Context {
///     addresses: AddressService,
/// }
///
/// impl HasResolver for Context {
///     fn addresses(&self) -> &AddressService {
///         &self.addresses
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the context `{Self}` has no resolver",
    note = "keep an `AddressService` in it and implement `HasResolver`; `rotor_dns` makes such services"
)]
pub trait HasResolver {
    /// Returns the handle of the resolver.
    fn addresses(&self) -> &AddressService;
}

quick_error! {
    /// Why there are no addresses.
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub enum ResolveError {
        /// The text is not the name of a host: the caller's mistake.
        Name(error: Arc<dyn Error + Send + Sync>) {
            display("not a host name")
            source(&**error)
        }
        /// There is no such host, or it has no addresses. Trying again soon will not help.
        NotFound(error: Arc<dyn Error + Send + Sync>) {
            display("no such host")
            source(&**error)
        }
        /// No server could answer. The servers, the network or the system are at fault; another
        /// attempt may succeed.
        Failed(error: Arc<dyn Error + Send + Sync>) {
            display("cannot find the host's addresses")
            source(&**error)
        }
        /// This side has no room to ask a server: the loop has no slot for the query. Try again
        /// later.
        NoRoom(error: Arc<dyn Error + Send + Sync>) {
            display("no room to look up the host")
            source(&**error)
        }
        /// The resolver has its maximum number of waiting requests. Try again later.
        Busy {
            display("too many lookups wait for the resolver")
        }
        /// The resolver has ended.
        Gone {
            display("the resolver has ended")
        }
    }
}
