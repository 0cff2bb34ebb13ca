//! The command line of `json`.

use quick_error::quick_error;

use super::contender::{Entry, KINDS, SERVERS};
use super::payload::Body;

/// The text that is printed in addition to the usage of the other measurements.
pub const USAGE: &str = "\
rotor-bench json [OPTIONS]

  json     services that parse numbers, wait and answer: on a pool, inline, or parsing on a pool

Options:
  --server NAME    rotor, rotor-threads, hyper, hyper-threads, axum, go; may be given several times (all)
  --way NAME       sync, async1, async2, goroutines; may be given several times (all)
  --body NAME      small (20 numbers), large (515,176 bytes); may be given several times (both)
  --delay MS       how long each request waits; may be given several times (20, 200, 1000)
  --connections N  connections, each with one request under way (100)
  --requests N     requests of each round (as many as take some seconds)
  --rounds N       rounds over all contenders (3)
  --smoke          ours, with little work: that it runs, not what it costs
";

quick_error! {
    /// What is wrong with a command line.
    #[derive(Debug, PartialEq, Eq)]
    pub enum OptionsError {
        /// There is no option with this name.
        Option(name: String) {
            display("no such option: '{}'", name)
        }
        /// The option does not have this value.
        Value(option: String, value: String) {
            display("{} knows no '{}'", option, value)
        }
        /// The option needs a number above zero.
        Number(name: String) {
            display("{} needs a number above zero", name)
        }
    }
}

/// A whole command line.
#[derive(Debug)]
pub struct Options {
    pub(super) servers: Vec<&'static Entry>,
    pub(super) bodies: Vec<Body>,
    pub(super) delays_ms: Vec<u64>,
    pub(super) connections: usize,
    pub(super) rounds: usize,
    ways: Vec<&'static str>,
    requests: Option<u64>,
}

impl Options {
    /// Parses the arguments that follow `json`.
    ///
    /// # Errors
    ///
    /// The arguments are invalid. Nothing has been started.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Options, OptionsError> {
        let mut options = Options {
            servers: Vec::new(),
            bodies: Vec::new(),
            delays_ms: Vec::new(),
            connections: 100,
            rounds: 3,
            ways: Vec::new(),
            requests: None,
        };
        let mut is_smoke = false;
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_default();
            match word.as_str() {
                "--server" => options.servers.push(find_server(value())?),
                "--way" => options.ways.push(find_way(value())?),
                "--body" => options.bodies.push(find_body(value())?),
                "--delay" => options.delays_ms.push(number(&word, &value())?),
                "--connections" => options.connections = number(&word, &value())? as usize,
                "--requests" => options.requests = Some(number(&word, &value())?),
                "--rounds" => options.rounds = number(&word, &value())? as usize,
                "--smoke" => is_smoke = true,
                _ => return Err(OptionsError::Option(word)),
            }
        }
        if is_smoke {
            options.make_small();
        }
        options.fill_in();
        Ok(options)
    }

    /// Selects only rotor, which is built quickly, with a few requests.
    fn make_small(&mut self) {
        if self.servers.is_empty() {
            self.servers.extend(SERVERS.iter().take(1));
        }
        if self.delays_ms.is_empty() {
            self.delays_ms.push(1);
        }
        self.requests.get_or_insert(20);
        (self.connections, self.rounds) = (4, 1);
    }

    fn fill_in(&mut self) {
        if self.servers.is_empty() {
            self.servers.extend(SERVERS);
        }
        if self.bodies.is_empty() {
            self.bodies.extend([Body::Small, Body::Large]);
        }
        if self.delays_ms.is_empty() {
            self.delays_ms.extend([20, 200, 1_000]);
        }
    }

    /// Returns whether a way of this kind was requested.
    pub(super) fn has_way(&self, kind: &str) -> bool {
        self.ways.is_empty() || self.ways.contains(&kind)
    }

    /// Returns how many requests a round has: enough for each connection to wait for 2 s or more in
    /// total, or for computing about that long.
    pub(super) fn requests(&self, body: Body, delay_ms: u64) -> u64 {
        const WAIT_MS: u64 = 2_000;
        const WAITS_MIN: u64 = 4;
        const LARGE_MAX: u64 = 1_000;
        let each = (WAIT_MS / delay_ms.max(1)).max(WAITS_MIN);
        let all = each * self.connections as u64;
        self.requests.unwrap_or(match body {
            Body::Small => all,
            Body::Large => all.min(LARGE_MAX),
        })
    }
}

fn find_server(name: String) -> Result<&'static Entry, OptionsError> {
    let entry = SERVERS.iter().find(|entry| entry.name == name);
    entry.ok_or_else(|| OptionsError::Value("--server".to_owned(), name))
}

fn find_way(name: String) -> Result<&'static str, OptionsError> {
    let kind = KINDS.iter().copied().find(|kind| *kind == name);
    kind.ok_or_else(|| OptionsError::Value("--way".to_owned(), name))
}

fn find_body(name: String) -> Result<Body, OptionsError> {
    match name.as_str() {
        "small" => Ok(Body::Small),
        "large" => Ok(Body::Large),
        _ => Err(OptionsError::Value("--body".to_owned(), name)),
    }
}

fn number(option: &str, value: &str) -> Result<u64, OptionsError> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| OptionsError::Number(option.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{Body, Options, OptionsError, SERVERS};

    fn parse(line: &str) -> Result<Options, OptionsError> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    fn names(options: &Options) -> Vec<&'static str> {
        options.servers.iter().map(|server| server.name).collect()
    }

    #[test]
    fn the_default_options_select_everything() {
        let options = parse("").expect("right");
        assert_eq!(options.servers.len(), SERVERS.len());
        assert_eq!(options.bodies, [Body::Small, Body::Large]);
        assert_eq!(options.delays_ms, [20, 200, 1_000]);
        assert!(options.has_way("sync") && options.has_way("goroutines"));
        let requests = |body| [20, 200, 1_000].map(|delay| options.requests(body, delay));
        assert_eq!(requests(Body::Small), [10_000, 1_000, 400]);
        assert_eq!(requests(Body::Large), [1_000, 1_000, 400]);
    }

    #[test]
    fn every_option_is_read() {
        let options = parse(
            "--server go --server rotor --way sync --body large --delay 5 --connections 7 --requests 9 --rounds 2",
        )
        .expect("right");
        assert_eq!(names(&options), ["go", "rotor"]);
        assert!(options.has_way("sync") && !options.has_way("async1"));
        assert_eq!((options.connections, options.rounds), (7, 2));
        assert_eq!((&*options.bodies, &*options.delays_ms), (&[Body::Large][..], &[5][..]));
        assert_eq!(options.requests(Body::Large, 5), 9);
    }

    #[test]
    fn a_smoke_run_covers_only_rotor_unless_others_are_named() {
        let options = parse("--smoke").expect("right");
        assert_eq!(names(&options), ["rotor"]);
        assert_eq!((options.rounds, options.requests(Body::Small, 1)), (1, 20));
        assert_eq!(names(&parse("--server axum --smoke").expect("right")), ["axum"]);
    }

    #[test]
    fn invalid_arguments_are_refused() {
        for line in
            ["go", "--fast", "--server a", "--way", "--body huge", "--delay 0", "--rounds x"]
        {
            assert!(parse(line).is_err(), "{line:?}");
        }
    }
}
