//! `RotorCollector`: reads counters when a registry is encoded.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;
use rotor_core::{OffloadPool, StatsHandle};
use rotor_http::{client, server};

use crate::families::Families;
use crate::others::CounterGroup;
use crate::{http, loops, pools};

/// The loops, pools, servers and clients whose counters are read. Each has a name, which is a label
/// of its metrics.
///
/// This type counts nothing, and runs nothing: it reads existing counters when a registry is
/// encoded. Two things of the same kind with the same name get a number (`api` and `api (2)`),
/// because a page must not have two rows with the same labels. A collector knows only its own
/// names, so if a registry has several collectors, use different names in each.
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use prometheus_client::registry::Registry;
/// use rotor::http::server::ServerConfig;
/// use rotor_metrics::RotorCollector;
///
/// let config = ServerConfig::new();
/// let mut registry = Registry::default();
/// RotorCollector::new().server("api", config.counters()).register(&mut registry);
/// let mut page = String::new();
/// prometheus_client::encoding::text::encode(&mut page, &registry)?;
/// assert!(page.contains("rotor_http_server_requests_total{server=\"api\"} 0"));
/// # Ok::<(), std::fmt::Error>(())
/// ```
#[derive(Default)]
#[must_use]
pub struct RotorCollector {
    loops: Vec<(String, StatsHandle)>,
    pools: Vec<(String, OffloadPool)>,
    servers: Vec<(String, Arc<server::Counters>)>,
    logs: Vec<(String, server::LostLines)>,
    clients: Vec<(String, Arc<client::Counters>)>,
    counter_groups: Vec<CounterGroup>,
}

impl RotorCollector {
    /// Makes a collector that reads nothing yet.
    pub fn new() -> RotorCollector {
        RotorCollector::default()
    }

    /// Adds a loop: `rotor_loop_…`. Each scrape [takes the longest](StatsHandle::take_longest) turn
    /// and handler, so the next one begins anew.
    pub fn event_loop(mut self, name: impl Into<String>, stats: StatsHandle) -> RotorCollector {
        self.loops.push((distinct_name(&self.loops, name.into()), stats));
        self
    }

    /// Adds a pool of threads: `rotor_offload_…`.
    pub fn pool(mut self, name: impl Into<String>, pool: OffloadPool) -> RotorCollector {
        self.pools.push((distinct_name(&self.pools, name.into()), pool));
        self
    }

    /// Adds an HTTP server: `rotor_http_server_…`. Loops that [share
    /// counters](server::ServerConfig::count_with) are one server.
    pub fn server(
        mut self,
        name: impl Into<String>,
        counters: Arc<server::Counters>,
    ) -> RotorCollector {
        self.servers.push((distinct_name(&self.servers, name.into()), counters));
        self
    }

    /// Adds an access log: `rotor_access_log_lines_lost_total`.
    pub fn access_log(
        mut self,
        name: impl Into<String>,
        lost: server::LostLines,
    ) -> RotorCollector {
        self.logs.push((distinct_name(&self.logs, name.into()), lost));
        self
    }

    /// Adds an HTTP client: `rotor_http_client_…`.
    pub fn client(
        mut self,
        name: impl Into<String>,
        counters: Arc<client::Counters>,
    ) -> RotorCollector {
        self.clients.push((distinct_name(&self.clients, name.into()), counters));
        self
    }

    /// Adds counters of another kind, for example of TLS, of WebSockets or of the PROXY protocol.
    /// Each counter is a family of its own, `rotor_KIND_COUNTER_total{KIND="name"}`. Characters of
    /// a kind or a counter's name that are not ASCII letters or digits become underscores. A
    /// counter's name may end in `_total` already, which is then not added.
    ///
    /// `read` is called for each scrape, on the loop that serves the page. All counters of rotor
    /// have a method `iter` that yields what `read` has to return.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    /// use prometheus_client::registry::Registry;
    /// use rotor_metrics::RotorCollector;
    ///
    /// // With TLS: `.counters("tls", "site", move || tls.counters().iter().collect())`
    /// let mails = Arc::new(AtomicU64::new(3));
    /// let mut registry = Registry::default();
    /// RotorCollector::new()
    ///     .counters("mail", "outgoing", move || vec![("sent", mails.load(Relaxed))])
    ///     .register(&mut registry);
    /// let mut page = String::new();
    /// prometheus_client::encoding::text::encode(&mut page, &registry)?;
    /// assert!(page.contains("rotor_mail_sent_total{mail=\"outgoing\"} 3"));
    /// # Ok::<(), std::fmt::Error>(())
    /// ```
    pub fn counters(
        mut self,
        kind: &str,
        name: impl Into<String>,
        read: impl Fn() -> Vec<(&'static str, u64)> + Send + Sync + 'static,
    ) -> RotorCollector {
        let known = self.counter_groups.iter().position(|group| group.is_kind(kind));
        let at = known.unwrap_or_else(|| {
            self.counter_groups.push(CounterGroup::new(kind));
            self.counter_groups.len() - 1
        });
        let sources = &mut self.counter_groups[at].sources;
        sources.push((distinct_name(sources, name.into()), Box::new(read)));
        self
    }

    /// Adds the collector to a registry, beside the program's own metrics.
    ///
    /// A registry needs only one collector. If it has several, the page of
    /// [`Metrics`](crate::Metrics) declares each family once. `prometheus-client` itself would
    /// declare a family that several collectors share more than once, and scrapers refuse such a
    /// page.
    pub fn register(self, registry: &mut Registry) {
        registry.register_collector(Box::new(self));
    }
}

impl Collector for RotorCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Families::new(encoder);
        loops::write(&mut families, &self.loops)?;
        pools::write(&mut families, &self.pools)?;
        http::write_servers(&mut families, &self.servers)?;
        http::write_logs(&mut families, &self.logs)?;
        http::write_clients(&mut families, &self.clients)?;
        self.counter_groups.iter().try_for_each(|group| group.write(&mut families))
    }
}

/// Returns the name, or a numbered one if something of the same kind has that name.
fn distinct_name<T>(known: &[(String, T)], name: String) -> String {
    let is_taken = |name: &str| known.iter().any(|(taken, _)| taken == name);
    if !is_taken(&name) {
        return name;
    }
    let mut numbered = (2_u64..).map(|number| format!("{name} ({number})"));
    numbered.find(|name| !is_taken(name)).unwrap_or_default()
}

impl fmt::Debug for RotorCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RotorCollector { loops, pools, servers, logs, clients, counter_groups } = self;
        let others: usize = counter_groups.iter().map(|group| group.sources.len()).sum();
        f.debug_struct("RotorCollector")
            .field("loops", &loops.len())
            .field("pools", &pools.len())
            .field("servers", &servers.len())
            .field("logs", &logs.len())
            .field("clients", &clients.len())
            .field("others", &others)
            .finish()
    }
}
