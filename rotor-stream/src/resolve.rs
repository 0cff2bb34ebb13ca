//! What it takes to find a host's addresses, whoever finds them: `HasResolver`, `AddressService`.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;

use quick_error::quick_error;
use rotor_core::Service;

/// Asks for the addresses of a host by its name, as text: the request of an [`AddressService`].
///
/// An address as text ("192.0.2.1", "2001:db8::1") is answered with itself.
pub type HostName = Arc<str>;

/// The addresses of a host, at least one, in the order in which its resolver prefers them; or why
/// there are none.
#[doc(alias = "Resolved")]
pub type ResolveResult = Result<Arc<[IpAddr]>, ResolveError>;

/// The handle of a machine that finds addresses: that of `rotor-dns`, one that asks the system's
/// `getaddrinfo`, or yours.
///
/// Cheap to clone; see [`Service`] for what asking costs and how it is cancelled.
pub type AddressService = Service<HostName, ResolveResult>;

/// A context whose loop can find addresses.
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
    /// Whom to ask.
    fn addresses(&self) -> &AddressService;
}

quick_error! {
    /// Why there are no addresses.
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub enum ResolveError {
        /// The text is no name of a host. The caller's mistake.
        Name(error: Arc<dyn Error + Send + Sync>) {
            display("not the name of a host")
            source(&**error)
        }
        /// There is no such host, or it has no addresses. Asking again soon will not help.
        NotFound(error: Arc<dyn Error + Send + Sync>) {
            display("no such host")
            source(&**error)
        }
        /// Nobody could say. The servers', the network's or the system's doing; another attempt may
        /// succeed.
        Failed(error: Arc<dyn Error + Send + Sync>) {
            display("cannot find the host's addresses")
            source(&**error)
        }
        /// As many questions wait as the resolver has room for. Ask again later.
        Busy {
            display("the resolver has too much to do")
        }
        /// The resolver has ended.
        Gone {
            display("there is no resolver any more")
        }
    }
}
