// A server of Node's http for tests/long/pipelines: it answers as X-Answer says, reports in fields what it has seen
// of the request, and prints the same. Its argument is the number of milliseconds after which it closes an idle
// connection.
'use strict';

const crypto = require('crypto');
const http = require('http');

const say = (...words) => process.stdout.write(words.join('\t') + '\n');

function answer(request, response) {
  const values = (name) => (request.headersDistinct[name] ?? []).join(',');
  const canary = values('x-canary');
  const kind = request.headers['x-answer'];
  say('head', canary, request.method, request.url, Buffer.from(values('x-odd'), 'latin1').toString('hex'));
  response.setHeader('X-Canary', canary);
  response.setHeader('X-Target', Buffer.from(request.url, 'latin1').toString('latin1'));
  const text = (status, body) => {
    response.writeHead(status, { 'Content-Length': Buffer.byteLength(body) });
    response.end(body);
  };
  if (kind === 'early') {
    return text(200, canary);
  }
  if (kind === 'duplex') {
    response.writeHead(200);
    response.flushHeaders();
    return request.pipe(response);
  }
  const digest = crypto.createHash('sha256');
  let length = 0;
  request.on('data', (piece) => {
    digest.update(piece);
    length += piece.length;
  });
  request.on('error', () => {});
  request.on('end', () => {
    const seen = `${request.method} ${length} ${digest.digest('hex').slice(0, 16)}`;
    say('whole', canary, seen);
    response.setHeader('X-Seen', seen);
    switch (kind) {
      case 'chunked':
        response.writeHead(200);
        response.write(canary);
        return response.end('+' + canary);
      case 'empty':
        return text(200, '');
      case '204':
      case '304':
        response.writeHead(Number(kind));
        return response.end();
      case '404':
      case '500':
        return text(Number(kind), canary);
      case '103':
        response.writeEarlyHints({ link: '</style.css>; rel=preload', 'x-canary': canary });
        return text(200, canary);
      case 'big':
        return text(200, (canary + '\n').repeat(Math.floor(100_000 / canary.length)));
      case 'close':
        response.setHeader('Connection', 'close');
        return text(200, canary);
      default:
        return text(200, canary);
    }
  });
}

const server = http.createServer(answer);
if (process.argv[2]) {
  server.keepAliveTimeout = Number(process.argv[2]);
}
server.on('clientError', (error, socket) => {
  say('broken', error.code ?? '', error.message);
  socket.destroy();
});
server.listen(0, '127.0.0.1', () => say(`listening on http://127.0.0.1:${server.address().port}/`));
