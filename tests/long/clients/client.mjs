// Node's fetch, and its http module for what fetch hides, against http_echo.
//
//   node tests/long/clients/client.mjs http://127.0.0.1:3000/
import assert from "node:assert/strict";
import http from "node:http";

const url = process.argv[2];

const page = await fetch(url);
const body = await page.text();
assert.equal(page.status, 200);
assert.ok(body.length > 0 && page.headers.get("content-type"));
// Through http, since fetch answers 304 itself where it keeps a cache.
const again = await request("GET", "", { "If-None-Match": page.headers.get("etag") });
assert.deepEqual([again.status, again.body.length], [304, 0]);
const head = await fetch(url, { method: "HEAD" });
assert.equal(Number(head.headers.get("content-length")), Buffer.byteLength(body));

const big = Buffer.alloc(1 << 20, "0123456789abcdef");
assert.ok(big.equals(await posted(big)));
// A stream has no length, so it goes in chunks.
const pieces = new ReadableStream({
  start(controller) {
    for (let at = 0; at < big.length; at += 1 << 16) controller.enqueue(big.subarray(at, at + (1 << 16)));
    controller.close();
  },
});
assert.ok(big.equals(await posted(pieces)));
const expecting = await request("POST", "", { Expect: "100-continue", "Content-Length": big.length }, big);
assert.ok(big.equals(expecting.body) && expecting.continued);
const refused = await fetch(url, { method: "DELETE" });
assert.equal(refused.status, 405);
assert.match(refused.headers.get("allow"), /GET/);

const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
for (let number = 0; number < 1000; number++) {
  const answer = await request("POST", "", {}, Buffer.from(`${number}`), agent);
  assert.equal(answer.body.toString(), `${number}`);
  assert.equal(answer.reused, number > 0, "one connection for all");
}
agent.destroy();
await Promise.all(
  Array.from({ length: 64 }, async (_, worker) => {
    for (let number = 0; number < 100; number++) {
      const text = `${worker}.${number}`;
      assert.equal((await posted(text)).toString(), text);
    }
  }),
);
console.log("Node fetch and http: all as it should be");

async function posted(body) {
  const response = await fetch(url, { method: "POST", body, duplex: "half" });
  assert.equal(response.status, 200);
  return Buffer.from(await response.arrayBuffer());
}

function request(method, path, headers, body, agent) {
  return new Promise((resolve, reject) => {
    let continued = false;
    const sent = http.request(url + path, { method, headers, agent }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("end", () =>
        resolve({ status: response.statusCode, body: Buffer.concat(parts), continued, reused: sent.reusedSocket }),
      );
    });
    sent.on("error", reject);
    if (headers.Expect) {
      sent.on("continue", () => {
        continued = true;
        sent.end(body);
      });
      sent.flushHeaders();
    } else {
      sent.end(body);
    }
  });
}
