import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";

import { ALLOW, FIELDS, contract, fakeGate, makeCertificate, response } from "./fake-gate.mjs";
import { Decision, Gate, ToolCallDenied } from "./gatewright.mjs";

const folder = mkdtempSync(join(tmpdir(), "gatewright-"));
after(() => rmSync(folder, { recursive: true }));
const certificate = makeCertificate(folder);
const empty = join(folder, "empty");
writeFileSync(empty, " \n");

/** Serve a row for as long as the test needs it. */
async function serve(t, row, options) {
  const fake = await fakeGate(row, options);
  t.after(() => fake.close());
  return fake;
}

test("the contract is whole", () => {
  assert.ok(contract.rows.length >= 80);
  assert.deepEqual(contract.rows.flatMap((row) => Object.keys(row).filter((key) => !FIELDS.has(key))), []);
});

/** A gate made as in a browser, which has no process. */
function inBrowser(options) {
  const { process } = globalThis;
  globalThis.process = undefined;
  try {
    return new Gate(options);
  } finally {
    globalThis.process = process;
  }
}

// In Node the client uses Node's own client, and fetch elsewhere; both have to keep the contract.
const WAYS = [["fetch", inBrowser], ["Node's client", (options) => new Gate(options)]];
for (const [way, make] of WAYS) {
  describe(`contract over ${way}`, { concurrency: 8 }, () => {
    for (const row of contract.rows) {
      test(row.name, async (t) => {
        const fake = await serve(t, row);
        const timeoutMilliseconds = row.timeout ?? 10_000;
        const gate = make({ url: fake.url, timeoutMilliseconds });
        let ran = false;
        const tool = (args, decision) => {
          ran = decision.allowed;
          return "done";
        };
        const start = performance.now();
        const d = await gate.review(contract.tool, { order_id: "5521" }, { userRequest: "Refund order 5521, please." });
        assert.ok(performance.now() - start < timeoutMilliseconds + 2000, "longer than its time-out");
        const { allowed, outcome, reason, retryable } = d;
        assert.deepEqual({ allowed, outcome, reason, retryable, tells: d.forModel() }, row.want);
        const text = await gate.guard(tool, { tool: contract.tool })({ order_id: "5521" }).catch((error) => {
          assert.ok(error instanceof ToolCallDenied);
          return error.message;
        });
        assert.equal(ran, row.want.allowed);
        assert.equal(text, ran ? "done" : row.want.tells);
        assert.equal(fake.asked.length, 2);
      });
    }
  });
}

test("a review sends the call as it is", async (t) => {
  const fake = await serve(t, ALLOW);
  const args = { price: 19.99, text: "é <&>", list: [1, null, true], inner: JSON.parse('{"__proto__": 1}') };
  const context = {
    userRequest: "Refund.",
    messages: [{ role: "user", content: "Hello" }],
    facts: { paid: true },
    session: "s",
    onBehalfOf: "ann",
    language: "en",
    attestation: "a.b.c",
  };
  const gate = new Gate({ url: `${fake.url}/base/`, token: "tkn" });
  const d = await gate.review("orders.refund", args, { ...context, server: "orders", approval: "refund-1" });
  assert.equal(d.allowed, true);
  const [{ method, path, headers, review, raw }] = fake.asked;
  assert.deepEqual([method, path], ["POST", "/base/v1alpha1/review?timeout=10s"]);
  assert.deepEqual([headers["content-type"], headers.authorization], ["application/json", "Bearer tkn"]);
  const { uid, ...request } = review.request;
  assert.match(uid, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.ok(Math.abs(parseInt(uid.replaceAll("-", "").slice(0, 12), 16) - Date.now()) < 60_000, "an old uid");
  const tool = { name: "orders.refund", server: "orders" };
  assert.deepEqual(request, { tool, arguments: args, context, approval: "refund-1" });
  assert.deepEqual([review.apiVersion, review.kind], ["review.gatewright.dev/v1alpha1", "ToolCallReview"]);
  assert.ok(raw.includes('"inner":{"__proto__":1}'));
});

test("a uid is never used twice", async (t) => {
  const fake = await serve(t, ALLOW);
  const gate = new Gate({ url: fake.url });
  for (let i = 0; i < 20; i++) await gate.review("t", {});
  assert.equal(new Set(fake.asked.map(({ review }) => review.request.uid)).size, 20);
});

test("a dry run is never allowed", async (t) => {
  const fake = await serve(t, ALLOW);
  const gate = new Gate({ url: fake.url });
  const d = await gate.review("t", {}, { dryRun: true });
  assert.equal(fake.asked[0].review.request.dryRun, true);
  assert.deepEqual([d.allowed, d.outcome, d.forModel()], [false, "Allow", "t did not run: this was a dry run."]);
  const guarded = gate.guard(() => assert.fail("ran"), { tool: "t", context: { dryRun: true } });
  await assert.rejects(guarded({}), TypeError);
});

test("a decision that no gate gave allows nothing, and none can be changed", () => {
  const d = new Decision({ outcome: "Allow" });
  assert.equal(d.allowed, false);
  assert.throws(() => {
    d.allowed = true;
  }, TypeError);
});

describe("what JSON.stringify would change is not sent", () => {
  const loop = {};
  loop.self = loop;
  let deep = [];
  for (let i = 0; i < 100; i++) deep = [deep];
  class Money {
    amount = 1;
  }
  const cases = {
    "NaN": { a: NaN },
    "infinity within a list": { a: [-Infinity] },
    "a BigInt": { a: 1n },
    "undefined": { a: undefined },
    "a function": { a: () => {} },
    "a symbol": { a: Symbol("s") },
    "a name that is a symbol": { [Symbol("s")]: 1 },
    "a getter": { get a() { return 1; } },
    "a hidden property": Object.defineProperty({}, "a", { value: 1 }),
    "a date": { a: new Date(0) },
    "a map": { a: new Map([[1, 2]]) },
    "an instance of a class": { a: new Money() },
    "a number in an object": { a: Object(1) },
    "an own toJSON": { a: 1, toJSON: () => ({ a: 2 }) },
    "a list with a hole": { a: [, 1] }, // eslint-disable-line no-sparse-arrays
    "a list with a name": { a: Object.assign([1], { b: 2 }) },
    "half of a surrogate pair": { a: "\ud800" },
    "half of a pair in a name": { "\ud800": 1 },
    "nesting beyond what is sent": { a: deep },
    "a loop": loop,
    "a list in place of an object": [1],
    "nothing in place of an object": undefined,
  };
  for (const [name, args] of Object.entries(cases)) {
    test(name, async (t) => {
      const fake = await serve(t, ALLOW);
      const d = await new Gate({ url: fake.url }).review("t", args);
      assert.deepEqual([d.allowed, d.outcome, d.reason], [false, "Block", "RequestNotSendable"]);
      assert.equal(fake.asked.length, 0);
    });
  }
  test("a context with an unknown field", async () => {
    const d = await new Gate({ url: "http://127.0.0.1:1" }).review("t", {}, { user_request: "x" });
    assert.equal(d.reason, "RequestNotSendable");
  });
  test("a tool without a name", async () => {
    assert.equal((await new Gate({ url: "http://127.0.0.1:1" }).review(undefined, {})).reason, "RequestNotSendable");
  });
});

test("arguments that change meanwhile block", async (t) => {
  const args = { amount: 1 };
  const fake = await serve(t, ALLOW, { onAsk: () => (args.amount = 1000) });
  const d = await new Gate({ url: fake.url }).review("t", args);
  assert.deepEqual([d.allowed, d.reason], [false, "ArgumentsChanged"]);
});

describe("what is misconfigured blocks and asks nobody", () => {
  const cases = {
    "no URL": () => ({ url: "" }),
    "a URL without a scheme": () => ({ url: "gate:8443" }),
    "http to another machine": () => ({ url: "http://gate.example" }),
    "http to a name like loopback": () => ({ url: "http://127.0.0.1.example" }),
    "a URL that does not parse": () => ({ url: "https://[::1" }),
    "a password in the URL": (url) => ({ url: url.replace("//", "//u:p@") }),
    "a query in the URL": (url) => ({ url: `${url}?timeout=9s` }),
    "a token file that is missing": () => ({ tokenFile: `${empty}x` }),
    "a token file that is empty": () => ({ tokenFile: empty }),
    "a token of two lines": () => ({ token: "a\r\nX-Evil: b" }),
    "an empty token": () => ({ token: "" }),
    "a function that gives no token": () => ({ token: () => undefined }),
    "a CA file that is missing": () => ({ caFile: `${empty}x` }),
    "a time-out below nothing": () => ({ timeoutMilliseconds: -1 }),
    "a time-out that is no number": () => ({ timeoutMilliseconds: NaN }),
    "a time-out longer than a call": () => ({ timeoutMilliseconds: 3_600_000 }),
  };
  for (const [name, options] of Object.entries(cases)) {
    test(name, async (t) => {
      const fake = await serve(t, ALLOW);
      const d = await new Gate({ url: fake.url, ...options(fake.url) }).review("t", {});
      assert.deepEqual([d.allowed, d.reason, d.retryable], [false, "ClientMisconfigured", false]);
      assert.equal(fake.asked.length, 0);
    });
  }
});

test("a fault of the client blocks", async (t) => {
  const fake = await serve(t, ALLOW);
  const token = () => {
    throw new Error("bug");
  };
  const d = await new Gate({ url: fake.url, token }).review("t", {});
  assert.deepEqual([d.allowed, d.reason], [false, "ClientFailed"]);
});

test("the token file is read for each call", async (t) => {
  const fake = await serve(t, ALLOW);
  const file = join(folder, "token");
  process.env.GATEWRIGHT_URL = fake.url;
  process.env.GATEWRIGHT_TOKEN_FILE = file;
  const gate = new Gate();
  delete process.env.GATEWRIGHT_URL;
  delete process.env.GATEWRIGHT_TOKEN_FILE;
  for (const token of ["first", "second\n"]) {
    writeFileSync(file, token);
    assert.equal((await gate.review("t", {})).allowed, true);
  }
  assert.deepEqual(fake.asked.map(({ headers }) => headers.authorization), ["Bearer first", "Bearer second"]);
});

// Node's fetch goes where a dispatcher of another library, or the environment's proxy, sends it, with the token.
test("no dispatcher stands between the client and the gate", async (t) => {
  const key = Symbol.for("undici.globalDispatcher.1");
  const before = globalThis[key];
  const seen = [];
  t.after(() => (globalThis[key] = before));
  globalThis[key] = {
    dispatch: (options, handler) => {
      seen.push(options.headers);
      handler.onError(new Error("went astray"));
      return true;
    },
  };
  const fake = await serve(t, ALLOW);
  for (const options of [{}, { caFile: certificate.file }]) {
    const d = await new Gate({ url: fake.url, token: "secret", ...options }).review("t", {});
    assert.equal(d.allowed, true);
  }
  assert.deepEqual(seen, []);
  assert.equal(fake.asked.length, 2);
});

test("only the given authority is trusted", async (t) => {
  const fake = await serve(t, ALLOW, { certificate });
  const ask = (options) => new Gate({ url: fake.url, ...options }).review("t", {});
  assert.equal((await ask({ caFile: certificate.file })).allowed, true);
  assert.equal((await ask({})).reason, "GateUnreachable");
  const url = fake.url.replace("127.0.0.1", "localhost");
  assert.equal((await ask({ url, caFile: certificate.file })).reason, "GateUnreachable");
  assert.equal((await ask({ caFile: empty })).allowed, false);
  assert.equal(fake.asked.length, 1);
});

/** A port that nobody listens at. */
async function refusing() {
  const probe = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => probe.once("listening", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

for (const [way, make] of WAYS) {
  test(`a connection that stays refused blocks after a second try over ${way}`, async () => {
    const start = performance.now();
    const d = await make({ url: `http://127.0.0.1:${await refusing()}` }).review("t", {});
    assert.deepEqual([d.allowed, d.reason, d.retryable], [false, "GateUnreachable", true]);
    assert.ok(performance.now() - start >= 99, "no pause before a second try");
  });

  test(`a gate that comes back is reached by the retry over ${way}`, async (t) => {
    // On a busy machine the gate may come back too late, hence several tries, each at a port of its own: a client
    // that does not retry is refused at all of them.
    for (let i = 0; i < 10; i++) {
      const port = await refusing();
      const review = make({ url: `http://127.0.0.1:${port}` }).review("t", {});
      await new Promise((resolve) => setTimeout(resolve, 25));
      const fake = await serve(t, ALLOW, { port });
      if ((await review).allowed) return assert.equal(fake.asked.length, 1);
    }
    assert.fail("a gate that came back was never reached");
  });
}

test("a guard reviews the arguments and passes the permit on", async (t) => {
  const fake = await serve(t, response("Allow", { permit: "a.b.c" }));
  const tool = ({ order_id }, decision) => `${decision.permit} ${order_id}`;
  const context = (args) => ({ userRequest: `Refund ${args.order_id}.` });
  const guarded = new Gate({ url: fake.url }).guard(tool, { tool: "orders.refund", context });
  assert.equal(await guarded({ order_id: "5521" }), "a.b.c 5521");
  assert.deepEqual(fake.asked[0].review.request.context, { userRequest: "Refund 5521." });
});
