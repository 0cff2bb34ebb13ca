//! The page, and the handler of its connections: what a member of a room says is sent to all of its
//! members.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use rotor::Scope;
use rotor::http::Status;
use rotor::http::server::{self, Head, Response, Server};
use rotor::websocket::{
    self, Closed, Code, Delivery, Handler, Member, Message, Next, Sender, WebSocket,
    WebSocketConfig,
};

use super::rooms::Rooms;

/// The page: plain HTML and a few lines of JavaScript, which reconnect when the connection is lost.
const PAGE: &str = include_str!("page.html");

/// The longest message, in bytes: a chat is not for files.
pub(crate) const MESSAGE_MAX: usize = 4_096;

/// The longest name of a room or a person, in bytes.
const NAME_MAX: usize = 32;

/// How long a member has to wait after each message before the next one is taken. Nobody who types
/// notices it. Without it, one member could say more within a few turns than a room keeps, and get
/// all others closed, however fast they read.
const PAUSE: Duration = Duration::from_millis(2);

/// The part of the context that these handlers need.
pub(crate) trait HasRooms {
    fn rooms(&mut self) -> &mut Rooms;
}

/// A member of a room.
///
/// The first message is the name; each further one is sent to the room.
pub(crate) struct Chat<C> {
    room: String,
    name: Option<String>,
    member: Option<Member>,
    context: PhantomData<fn(C)>,
}

impl<C: HasRooms> Chat<C> {
    fn deliver_messages(mut self, out: &mut Sender<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        let Some(member) = &mut self.member else { return Next::go_on(self).keep_deadline() };
        match scope.rooms().deliver(&self.room, member, out) {
            Delivery::Cut => Next::close(self, Code::TRY_AGAIN_LATER, "too slow"),
            _ => Next::go_on(self).keep_deadline(),
        }
    }

    fn join_room(
        mut self,
        name: &str,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        if !is_name(name) {
            return Next::close(
                self,
                Code::POLICY,
                "a name has 1 to 32 bytes of letters and digits",
            );
        }
        let notifier = scope.notifier();
        let rooms = scope.rooms();
        let Some(member) = rooms.join(&self.room, notifier, out) else {
            return Next::close(self, Code::TRY_AGAIN_LATER, "there are too many rooms");
        };
        self.member = Some(member);
        self.name = Some(name.to_owned());
        rooms.broadcast(&self.room, &format!("* {name} is here"));
        Next::go_on(self).keep_deadline()
    }
}

impl<C: HasRooms> Handler for Chat<C> {
    type Context = C;
    type Seed = String;

    fn opened(room: String, _: &mut Sender<'_>, _: &mut Scope<'_, C>) -> Next<Self> {
        Next::go_on(Chat { room, name: None, member: None, context: PhantomData }).no_deadline()
    }

    fn message(
        self,
        message: Message<'_>,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        let Message::Text(text) = message else {
            return Next::close(self, Code::UNSUPPORTED, "a chat is of words");
        };
        let Some(name) = &self.name else { return self.join_room(text, out, scope) };
        let line = format!("{name}: {text}");
        scope.rooms().broadcast(&self.room, &line);
        // Its next messages stay in the socket meanwhile, so it is the speaker that has to wait.
        Next::hold(self).deadline(scope.now() + PAUSE)
    }

    /// The pause is over.
    fn timeout(self, _: &mut Sender<'_>, _: &mut Scope<'_, C>) -> Next<Self> {
        Next::messages(self).no_deadline()
    }

    fn wakeup(self, out: &mut Sender<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        self.deliver_messages(out, scope)
    }

    fn flushed(self, out: &mut Sender<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        self.deliver_messages(out, scope)
    }

    fn closed(self, _: Closed<'_>, scope: &mut Scope<'_, C>) {
        let (Some(name), Some(member)) = (self.name, self.member) else { return };
        let rooms = scope.rooms();
        rooms.broadcast(&self.room, &format!("* {name} has left"));
        rooms.leave(&self.room, member);
    }
}

/// Allows only letters and digits, so that a name can be neither a part of a message nor of a path.
fn is_name(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(char::is_alphanumeric)
}

/// Sends the page, and becomes a [`Chat`] at `/room/NAME`.
pub(crate) struct Site<C>(PhantomData<fn(C)>);

impl<C: HasRooms> Server for Site<C> {
    type Context = C;
    type Seed = Arc<WebSocketConfig>;
    type Upgrade = WebSocket<Chat<C>>;

    fn headers_received(
        config: Arc<WebSocketConfig>,
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, C>,
    ) -> server::Next<Self> {
        match head.path().strip_prefix("/room/") {
            Some(room) if is_name(room) => match websocket::accept(head, response, &config) {
                Ok(accepted) => server::Next::upgrade(accepted.seed(room.to_owned())),
                Err(_the_peer_was_told) => server::Next::finished(),
            },
            None if head.path() == "/" => {
                response.reply(Status::OK, "text/html; charset=utf-8", PAGE.as_bytes()).into()
            }
            _ => response.reply(Status::NOT_FOUND, "text/plain", b"there is nothing here\n").into(),
        }
    }
}
