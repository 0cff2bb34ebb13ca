//! Requests side by side on a connection of HTTP/2 with changing windows, which is drained,
//! half-closed or reset at times, as are its streams.

use super::requests::Request;
use super::{Random, Seen, check, connect, happen, happen_all};
use crate::http2::client::{self, Client, data, frame, headers, preface_and_settings, settings};
use crate::probe::seconds;

type ProgramClient = Client<super::Program>;

/// A request on a stream.
struct Upload {
    stream: u32,
    request: Request,
    left: Vec<u8>,
    is_ended: bool,
    /// The body is sent only once the server asks for it, or responds.
    waits: bool,
    is_reset: bool,
}

impl Upload {
    fn begin(stream: u32, client: &mut ProgramClient, random: &mut Random) -> Upload {
        let request = Request::random(random);
        let length = request.body.len().to_string();
        let mut fields = Vec::new();
        if request.is_length_announced && request.has_body() {
            fields.push(("content-length", &*length));
        }
        if request.expects {
            fields.push(("expect", "100-continue"));
        }
        if random.one_in(4) {
            fields.push(("priority", random.one_of(&["u=0", "i", "u=7, i"])));
        }
        let is_ended = !request.has_body();
        let path = format!("/{}", request.steps);
        client.send(&headers(stream, request.method, &path, &fields, is_ended));
        let waits = request.expects && random.one_in(2);
        Upload { stream, left: request.body.clone(), request, is_ended, waits, is_reset: false }
    }

    fn may_send(&self, client: &ProgramClient) -> bool {
        let answer = client.answer(self.stream);
        let is_told = !self.waits || answer.interim.contains(&100) || answer.status >= 200;
        !self.is_ended && !self.is_reset && answer.reset.is_none() && is_told
    }

    /// Sends as much of the body as both windows allow, or less.
    fn send(&mut self, client: &mut ProgramClient, random: &mut Random) {
        let own = client.windows.get(&self.stream).copied().unwrap_or(client.stream_window);
        let all = client.windows[&0];
        let most = own.min(all).clamp(0, 16_000) as usize;
        let count = random.one_of(&[1, 10, 1_000, 16_000]).max(self.left.len() / 200);
        let count = count.min(most).min(self.left.len());
        self.is_ended = count == self.left.len();
        if count == 0 && !self.is_ended {
            return;
        }
        client.windows.insert(self.stream, own - count as i64);
        client.windows.insert(0, all - count as i64);
        let piece: Vec<u8> = self.left.drain(..count).collect();
        let ends_with_data = self.is_ended && !self.request.has_trailers;
        let mut bytes = Vec::new();
        if count > 0 || ends_with_data {
            bytes.extend(data(self.stream, &piece, ends_with_data));
        }
        if self.is_ended && self.request.has_trailers {
            bytes.extend(frame(1, 5, self.stream, &client::block(&[("x-sum", "2")])));
        }
        client.send(&bytes);
    }
}

fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(8, 0, stream, &bytes.to_be_bytes())
}

/// Opens the windows of the connection and of the streams whose responses are still to come.
fn open_windows(client: &mut ProgramClient, uploads: &[Upload], bytes: u32) {
    let mut frames = window_update(0, bytes);
    for Upload { stream, .. } in uploads {
        if !client.answer(*stream).is_whole {
            frames.extend(window_update(*stream, bytes));
        }
    }
    client.send(&frames);
}

/// Does something that a peer does at any time.
fn act(client: &mut ProgramClient, uploads: &mut [Upload], random: &mut Random) {
    let at = random.below(uploads.len().max(1));
    let bytes = random.one_of(&[1, 100, 20_000]);
    match (random.below(8), uploads.get_mut(at)) {
        (0, _) => client.send(&window_update(0, bytes)),
        (1, Some(upload)) => client.send(&window_update(upload.stream, bytes)),
        (2, _) if random.one_in(4) => {
            client.send(&settings(&[(4, random.one_of(&[0, 1, 65_535]))]));
        }
        (3, Some(upload)) if random.one_in(6) && !client.answer(upload.stream).is_whole => {
            upload.is_reset = true;
            client.send(&frame(3, 0, upload.stream, &[0, 0, 0, 8]));
        }
        _ => happen(&mut client.driver, random),
    }
}

pub(super) fn run(seed: u64) {
    let random = &mut Random::with_seed(seed);
    let (driver, observed) = connect(random);
    let mut client = Client::on(driver);
    let window = random.one_of(&[0, 1, 100, 65_535, 1 << 20]);
    client.send(&preface_and_settings(&[(4, window)]));
    let (count, mut uploads) = (1 + random.below(12), Vec::new());
    let (drains_at, resets_at) = (random.step_or_never(4), random.step_or_never(6));
    let mut ends = random.one_in(3);
    let mut has_ended = false;
    for step in 0..4_000 {
        if step == drains_at {
            client.driver.drain(seconds(900));
        }
        if step == resets_at {
            client.driver.reset();
        }
        if client.driver.is_ended() || step == resets_at {
            break;
        }
        let is_late = step > 300;
        let may_begin = uploads.len() < count && step < drains_at;
        if may_begin && (is_late || random.one_in(4)) {
            let stream = 2 * uploads.len() as u32 + 1;
            uploads.push(Upload::begin(stream, &mut client, random));
        }
        let open: Vec<_> = (0..uploads.len()).filter(|at| uploads[*at].may_send(&client)).collect();
        if !open.is_empty() {
            uploads[random.one_of(&open)].send(&mut client, random);
        }
        if !is_late {
            act(&mut client, &mut uploads, random);
        } else {
            let is_sent = !may_begin && uploads.iter().all(|own| own.is_ended || own.is_reset);
            if !has_ended {
                open_windows(&mut client, &uploads, 1 << 16);
            }
            if is_sent && random.one_in(4) && std::mem::take(&mut ends) {
                has_ended = true;
                open_windows(&mut client, &uploads, 1 << 26);
                client.driver.end();
            }
            happen_all(&mut client.driver);
        }
        client.read();
        let is_over = |upload: &Upload| {
            let answer = client.answer(upload.stream);
            answer.is_whole || answer.reset.is_some() || upload.is_reset
        };
        if is_late && !may_begin && uploads.iter().all(is_over) {
            break;
        }
    }
    let what = format!("seed {seed}");
    if resets_at == usize::MAX {
        (0..100).for_each(|_| happen_all(&mut client.driver));
        client.read();
        uploads.iter().for_each(|upload| check_answer(&client, upload, &what));
        assert!(client.goaways.iter().all(|(code, _)| *code == 0), "{what}: {:?}", client.goaways);
        // The rest of bodies that nobody wants.
        client.driver.advance(seconds(2_000));
        assert_eq!(observed.counters.requests_open(), 0, "{what}");
        let log = observed.log();
        assert!(log.is_empty() || log.len() == uploads.len(), "{what}: {log:?}");
    }
    assert_eq!(client.driver.failures(), [""; 0], "{what}");
    drop(client);
    observed.check_end(&what);
}

fn check_answer(client: &ProgramClient, upload: &Upload, what: &str) {
    const NO_ERROR: u32 = 0;
    const REFUSED_STREAM: u32 = 7;
    let answer = client.answer(upload.stream);
    if upload.is_reset || answer.reset == Some(REFUSED_STREAM) {
        return;
    }
    let what = format!("{what}, stream {}", upload.stream);
    let is_cut = answer.reset.is_some_and(|code| code != NO_ERROR);
    assert!(answer.is_whole || is_cut, "{what}: {:?} is not over: {answer:?}", upload.request);
    let (status, is_whole) = (answer.status, answer.is_whole);
    let seen = Seen { status, body: &answer.body, fields: &answer.fields, is_whole };
    check(&upload.request, &seen, &what);
}
