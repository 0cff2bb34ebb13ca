// A server of Node's http that responds in all kinds of ways; its argument is the length of /big. Prints its address.
import { createServer } from "node:http";

const big = Buffer.alloc(Number(process.argv[2]));
for (let at = 0; at < big.length; at++) big[at] = at % 251;

// Answers by hand, and closes the connection without a word.
const raw = (response, answer) => response.socket.end(answer);

const routes = {
  "/hello": (_, response) => response.setHeader("Content-Length", 5).end("hello"),
  "/204": (_, response) => response.writeHead(204).end(),
  "/304": (request, response) => response.writeHead(304, { ETag: request.headers["if-none-match"] }).end(),
  "/big": (_, response) => response.end(big),
  "/chunked": (_, response) => {
    response.write("one");
    setImmediate(() => {
      response.write("two");
      setImmediate(() => response.end("three"));
    });
  },
  "/103": (_, response) => response.writeEarlyHints({ link: "</a.css>; rel=preload" }, () => response.end("hello")),
  "/until-close": (_, response) => raw(response, "HTTP/1.1 200 OK\r\n\r\nno length"),
  "/closes": (_, response) => raw(response, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
  "/echo": (request, response) => {
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", () => response.end(Buffer.concat(pieces)));
  },
  "/count": (request, response) => {
    let count = 0;
    request.on("data", (piece) => (count += piece.length));
    request.on("end", () => response.end(String(count)));
  },
};

const server = createServer((request, response) => {
  const route = routes[request.url];
  if (route) route(request, response);
  else response.writeHead(404).end();
});
server.listen(0, "127.0.0.1", () => console.log(`127.0.0.1:${server.address().port}`));
