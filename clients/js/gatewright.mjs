/**
 * Ask a Gatewright gate before a tool runs. Anything but a clear Allow means that the tool does not run.
 *
 *   const gate = new Gate(); // GATEWRIGHT_URL, GATEWRIGHT_TOKEN_FILE and GATEWRIGHT_CA_FILE
 *   const decision = await gate.review("orders.refund", { order_id: "5521" }, { userRequest: "Refund order 5521." });
 *   if (decision.allowed) await refund("5521");
 *   else tellModel(decision.forModel());
 *
 * Node 20 or newer, and browsers (which take url and token as options); no dependencies.
 * @module
 */

/**
 * @typedef {object} GateOptions
 * @property {string} [url] of the gate; https, or http on this very machine
 * @property {string | (() => string | Promise<string>)} [token] of the caller, or a function that gives it for each call
 * @property {string} [tokenFile] read again for each call (Node)
 * @property {string} [caFile] the only authorities to trust, read again for each call (Node)
 * @property {number} [timeoutMilliseconds] for everything, the retry included
 */

/**
 * @typedef {object} About what led to a call
 * @property {string} [server] that offers the tool
 * @property {string} [userRequest] the user's latest own words
 * @property {{role: "system" | "user" | "assistant" | "tool", content: string, name?: string}[]} [messages] oldest first
 * @property {Record<string, unknown>} [facts] that code has computed
 * @property {string} [session] of the agent
 * @property {string} [onBehalfOf] the end user
 * @property {string} [language] of the user's words, a BCP 47 tag
 * @property {string} [attestation] a compact JWS by a front door
 * @property {string} [approval] name of an approval that was given for this call
 * @property {boolean} [dryRun] decide and record only; never allowed to run
 */

export const API_VERSION = "review.gatewright.dev/v1alpha1";
export const KIND = "ToolCallReview";
export const PATH = "/v1alpha1/review";

const DEFAULT_TIMEOUT = 12_000; // milliseconds; the gate itself decides in at most 10 seconds
const MAX_REPLY = 1 << 20; // bytes; an answer is a few KiB
const MAX_DEPTH = 64; // of what is sent
const RETRY_PAUSE = 100; // milliseconds before the one retry, enough for another replica to take over

const OUTCOMES = new Set(["Allow", "Clarify", "Confirm", "Block"]);
const CONTEXT = ["userRequest", "messages", "facts", "session", "onBehalfOf", "language", "attestation"];
const ABOUT = new Set([...CONTEXT, "server", "approval", "dryRun"]);
const MESSAGES = {
  GateTimeout: "The gate did not answer in time.",
  GateUnreachable: "The gate could not be reached.",
  GateReplyTooLarge: "The gate's answer is too large.",
  GateReplyMalformed: "The gate's answer could not be understood.",
  GateReplyMismatch: "The gate's answer belongs to another request.",
  GateUnknownOutcome: "The gate answered with an outcome that this client does not know.",
  RequestNotSendable: "The call cannot be written as exact JSON",
  ArgumentsChanged: "The arguments were changed while the gate decided.",
  ClientMisconfigured: "The client of the gate is misconfigured",
  ClientFailed: "The client of the gate failed.",
};
const REMEDIES = { GateTimeout: "Retry", GateUnreachable: "Retry", RequestNotSendable: "ChangeArguments" };

/** What the gate, or this client in its place, said about one call. The tool may run only if `allowed` is true. */
export class Decision {
  allowed = false;
  outcome = "Block";
  reason = "";
  by = "";
  message = "";
  remedy = "";
  retryable = false;
  /** @type {readonly string[]} */
  missing = [];
  /** @type {{name: string, expiresAt: string} | undefined} */
  approval = undefined;
  permit = "";
  tool = "";
  uid = "";
  /** @type {Record<string, any> | undefined} the whole answer, where the gate gave one */
  response = undefined;

  /** @param {Partial<Decision>} fields */
  constructor(fields) {
    Object.freeze(Object.assign(this, fields));
  }

  /** What the model should read in place of the tool's result. */
  forModel() {
    if (this.allowed) return `${this.tool} may run.`;
    if (this.outcome === "Allow") return `${this.tool} did not run: this was a dry run.`;
    return [`${this.tool} did not run (${this.reason}).`, this.#sentence(), this.#advice()].filter(Boolean).join(" ");
  }

  /** The message with an end, so that what comes behind it is read apart. */
  #sentence() {
    return this.message === "" || /[.!?…。！？]$/u.test(this.message) ? this.message : `${this.message}.`;
  }

  #advice() {
    if (this.outcome === "Clarify") {
      const missing = this.missing.length ? ` Missing: ${this.missing.join(", ")}.` : "";
      return `Ask the user before you call it again.${missing}`;
    }
    if (this.outcome === "Confirm") {
      const name = this.approval ? ` (approval ${this.approval.name})` : "";
      return (
        `A person has to approve this very call first${name}. Tell the user that it is waiting and do not ` +
        "look for another way; once it is approved, call again with the same arguments."
      );
    }
    if (this.retryable) return "The same call may be tried again later.";
    const other = this.remedy === "ChangeArguments" ? " A call with other arguments may be allowed." : "";
    return `Do not retry this call.${other}`;
  }
}

/** A guarded tool did not run. Its message is what the model should read. */
export class ToolCallDenied extends Error {
  /** @param {Decision} decision */
  constructor(decision) {
    super(decision.forModel());
    this.name = "ToolCallDenied";
    this.decision = decision;
  }
}

/** A gate to ask. It keeps no state between calls. */
export class Gate {
  #options;

  /** @param {GateOptions} [options] */
  constructor(options = {}) {
    const env = globalThis.process?.env ?? {};
    this.#options = {
      url: options.url || env.GATEWRIGHT_URL || "",
      token: options.token,
      tokenFile: options.tokenFile || env.GATEWRIGHT_TOKEN_FILE || "",
      caFile: options.caFile || env.GATEWRIGHT_CA_FILE || "",
      timeout: options.timeoutMilliseconds ?? DEFAULT_TIMEOUT,
      isNode: typeof globalThis.process?.versions?.node === "string",
    };
  }

  /**
   * Ask whether a call may run. Whatever goes wrong is a Decision that blocks, never a rejection.
   * @param {string} tool
   * @param {Record<string, unknown>} args
   * @param {About} [about]
   * @returns {Promise<Decision>}
   */
  async review(tool, args, about = {}) {
    let uid = "";
    try {
      uid = uuid7();
      return await this.#ask(uid, tool, args, about ?? {});
    } catch (fault) {
      // A fault of this client is no reason to run a tool.
      const closed = fault instanceof Closed ? fault : new Closed("ClientFailed");
      return closed.decision(typeof tool === "string" ? tool : "", uid);
    }
  }

  /**
   * Wrap a function of one object of arguments so that it runs only on Allow, and rejects with ToolCallDenied
   * otherwise. It is called with the arguments and the Decision, which holds the permit for the tool's server.
   * @template {Record<string, unknown>} A
   * @template R
   * @param {(args: A, decision: Decision) => R | Promise<R>} fn
   * @param {{tool: string, context?: About | ((args: A) => About | Promise<About>)}} options
   * @returns {(args: A) => Promise<R>}
   */
  guard(fn, { tool, context = {} }) {
    return async (args) => {
      const about = { ...(typeof context === "function" ? await context(args) : context) };
      if (about.dryRun) throw new TypeError("a guarded function runs or does not; use review for a dry run");
      const decision = await this.review(tool, args, about);
      if (decision.allowed !== true) throw new ToolCallDenied(decision);
      return fn(args, decision);
    };
  }

  async #ask(uid, tool, args, about) {
    const request = requestOf(uid, tool, args, about);
    const body = encode(request);
    const { url, plain } = this.#target();
    const clock = new Clock(this.#options.timeout);
    try {
      const { status, bytes } = await clock.race(this.#send(url, plain, body, clock));
      const decision = read(status, bytes, request);
      if (encode(requestOf(uid, tool, args, about)) !== body) throw new Closed("ArgumentsChanged");
      return decision;
    } finally {
      clock.stop();
    }
  }

  async #send(url, plain, body, clock) {
    const headers = { "Content-Type": "application/json", Accept: "application/json" };
    const token = await this.#token();
    if (token !== undefined) headers.Authorization = `Bearer ${token}`;
    const ca = this.#options.caFile ? await readFile(this.#options.caFile, "CA file") : undefined;
    const once = () => (this.#options.isNode ? viaNode(url, plain, headers, body, ca, clock) : viaFetch(url, headers, body, clock));
    try {
      return await once();
    } catch (fault) {
      // Nothing was sent, and the uid makes a repeat the same request.
      if ((fault?.cause?.code ?? fault?.code) !== "ECONNREFUSED") throw unreachable(fault);
    }
    await new Promise((resolve) => setTimeout(resolve, Math.min(RETRY_PAUSE, this.#options.timeout / 4)));
    return once().catch((fault) => Promise.reject(unreachable(fault)));
  }

  async #token() {
    const { token, tokenFile } = this.#options;
    let given = token;
    if (typeof token === "function") given = await token();
    else if (token === undefined && tokenFile) given = (await readFile(tokenFile, "token file")).trim();
    if (given === undefined && typeof token !== "function") return undefined;
    if (typeof given !== "string" || !/^[\x21-\x7e]+$/.test(given)) {
      throw new Closed("ClientMisconfigured", "the token is empty or holds more than one word");
    }
    return given;
  }

  #target() {
    const { url: base, timeout } = this.#options;
    if (!(typeof timeout === "number" && timeout >= 10 && timeout <= 300_000)) {
      throw new Closed("ClientMisconfigured", "the time-out is not between 0.01 and 300 seconds");
    }
    let url;
    try {
      url = new URL(base);
    } catch {
      throw new Closed("ClientMisconfigured", "the URL of the gate is not valid");
    }
    const plain = url.protocol === "http:" && isLoopback(url.hostname);
    if (!plain && url.protocol !== "https:") {
      throw new Closed("ClientMisconfigured", "the gate is reached by https, or by http on this very machine");
    }
    if (url.username || url.password || url.search || url.hash) {
      throw new Closed("ClientMisconfigured", "the URL of the gate holds more than host and path");
    }
    url.pathname = url.pathname.replace(/\/+$/, "") + PATH;
    url.search = `?timeout=${secondsFor(timeout)}s`;
    return { url, plain };
  }
}

/** A call that does not run because of what went wrong between caller and gate. */
class Closed extends Error {
  constructor(reason, detail = "") {
    super(reason);
    this.reason = reason;
    this.text = detail ? `${MESSAGES[reason]}: ${detail}.` : MESSAGES[reason];
    this.remedy = REMEDIES[reason] ?? "AskAdmin";
  }

  decision(tool, uid) {
    const { reason, remedy } = this;
    return new Decision({ reason, remedy, by: "client", message: this.text, retryable: remedy === "Retry", tool, uid });
  }
}

/** One deadline over everything: a promise that loses the race is abandoned, and its connection aborted. */
class Clock {
  #abort = new AbortController();
  #timer;
  #expired;

  constructor(milliseconds) {
    this.#expired = new Promise((_, reject) => {
      this.#timer = setTimeout(() => {
        reject(new Closed("GateTimeout"));
        this.#abort.abort();
      }, milliseconds);
    });
    this.#expired.catch(() => {}); // it may expire while nobody races
  }

  get signal() {
    return this.#abort.signal;
  }

  race(promise) {
    promise.catch(() => {});
    return Promise.race([promise, this.#expired]);
  }

  stop() {
    clearTimeout(this.#timer);
    this.#abort.abort(); // drops a body that was not read to its end
  }
}

const unreachable = (fault) => (fault instanceof Closed ? fault : new Closed("GateUnreachable"));

async function viaFetch(url, headers, body, { signal }) {
  const redirect = "manual"; // a redirect is not an answer
  const reply = await fetch(url, { method: "POST", headers, body, signal, redirect, cache: "no-store", credentials: "omit" });
  return { status: reply.status, bytes: await collect(reply.status, reply.body ?? []) };
}

/**
 * Node's fetch takes no CA, and goes where the environment's proxy or a dispatcher of another library sends it: the word of
 * either would be the gate's. So in Node its own client is used, without an agent that others have set.
 */
async function viaNode(url, plain, headers, body, ca, { signal }) {
  const { request } = await import(plain ? "node:http" : "node:https");
  return new Promise((resolve, reject) => {
    const options = { method: "POST", headers, signal, agent: false, ...(plain || ca === undefined ? {} : { ca }) };
    const sent = request(url, options, (reply) => {
      collect(reply.statusCode, reply).then((bytes) => resolve({ status: reply.statusCode, bytes }), reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

async function collect(status, stream) {
  const pieces = [];
  let length = 0;
  for await (const piece of iterate(stream)) {
    length += piece.byteLength;
    if (length > MAX_REPLY) {
      if (status === 200) throw new Closed("GateReplyTooLarge");
      return new Uint8Array(); // an error of any size is an error
    }
    pieces.push(piece);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.byteLength;
  }
  return bytes;
}

/** Not every browser iterates a ReadableStream. */
async function* iterate(stream) {
  if (typeof stream.getReader !== "function") return yield* stream;
  const reader = stream.getReader();
  for (let step = await reader.read(); !step.done; step = await reader.read()) yield step.value;
}

async function readFile(path, what) {
  try {
    const { readFile: read } = await import("node:fs/promises");
    return await read(path, "utf8");
  } catch {
    throw new Closed("ClientMisconfigured", `the ${what} cannot be read`);
  }
}

/** Turn an answer into a decision. Only what is clearly an Allow for this very request becomes one. */
function read(status, bytes, request) {
  if (status !== 200) {
    const closed = new Closed("GateStatus");
    const code = errorCode(bytes);
    closed.text = `The gate answered HTTP ${status}${code ? ` (${code})` : ""}.`;
    if (status === 429 || status >= 500) closed.remedy = "Retry";
    throw closed;
  }
  const review = parse(bytes);
  if (!isObject(review) || review.apiVersion !== API_VERSION || review.kind !== KIND || !isObject(review.response)) {
    throw new Closed("GateReplyMalformed");
  }
  const response = review.response;
  const text = (key) => field(response, key, "string", "");
  const texts = Object.fromEntries(["outcome", "reason", "by", "message", "remedy", "permit"].map((key) => [key, text(key)]));
  const uid = text("uid");
  const retryable = field(response, "retryable", "boolean", false);
  const missing = field(response, "missing", "array", []);
  const waiting = field(response, "approval", "object", {});
  const approval = { name: field(waiting, "name", "string", ""), expiresAt: field(waiting, "expiresAt", "string", "") };
  if (!missing.every((pointer) => typeof pointer === "string")) throw new Closed("GateReplyMalformed");
  if (uid !== request.uid) throw new Closed("GateReplyMismatch");
  if (!OUTCOMES.has(texts.outcome)) throw new Closed("GateUnknownOutcome");
  return new Decision({
    ...texts,
    allowed: texts.outcome === "Allow" && !("dryRun" in request),
    retryable,
    missing: Object.freeze([...missing]),
    approval: approval.name ? Object.freeze(approval) : undefined,
    tool: request.tool.name,
    uid,
    response,
  });
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function field(of, key, kind, otherwise) {
  const value = Object.hasOwn(of, key) ? of[key] : null;
  if (value === null) return otherwise;
  if ((Array.isArray(value) ? "array" : typeof value) !== kind) throw new Closed("GateReplyMalformed");
  return value;
}

function parse(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const value = JSON.parse(text);
    if (namesTwice(text)) throw new SyntaxError("a name is given twice");
    return value;
  } catch {
    throw new Closed("GateReplyMalformed");
  }
}

/** JSON.parse takes the last of two equal names without a word. text is valid JSON. */
function namesTwice(text) {
  const open = [];
  let last = "";
  for (const [token] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:]/g)) {
    if (token === "{") open.push(new Set());
    else if (token === "[") open.push(undefined);
    else if (token === "}" || token === "]") open.pop();
    else if (token === ":") {
      const names = open.at(-1);
      const name = JSON.parse(last);
      if (names.has(name)) return true;
      names.add(name);
    }
    last = token;
  }
  return false;
}

/** The error's code, if it is a plain word; no other text of an error goes to a model. */
function errorCode(bytes) {
  try {
    const { code } = parse(bytes);
    return typeof code === "string" && /^[A-Za-z][A-Za-z0-9]{0,63}$/.test(code) ? code : "";
  } catch {
    return "";
  }
}

function requestOf(uid, tool, args, about) {
  if (typeof tool !== "string" || !isObject(args) || !isObject(about)) {
    throw new Closed("RequestNotSendable", "a tool is named by text and its arguments are an object");
  }
  if (Object.keys(about).some((key) => !ABOUT.has(key))) {
    throw new Closed("RequestNotSendable", "the context holds a field that the gate does not know");
  }
  return {
    uid,
    tool: { name: tool, ...(about.server ? { server: about.server } : {}) },
    arguments: args,
    context: Object.fromEntries(CONTEXT.filter((key) => about[key]).map((key) => [key, about[key]])),
    ...(about.approval ? { approval: about.approval } : {}),
    ...(about.dryRun ? { dryRun: true } : {}),
  };
}

function encode(request) {
  check(request, MAX_DEPTH);
  return JSON.stringify({ apiVersion: API_VERSION, kind: KIND, request });
}

/** Refuse what JSON.stringify would drop or change: NaN, Infinity, undefined, classes, getters, holes, toJSON. */
function check(value, depth) {
  const refuse = (why) => {
    throw new Closed("RequestNotSendable", why);
  };
  if (depth === 0) refuse("it is nested too deeply");
  if (value === null || typeof value === "boolean") return;
  if (typeof value === "number") return Number.isFinite(value) ? undefined : refuse("a number is not finite");
  if (typeof value === "string") return /\p{Surrogate}/u.test(value) ? refuse("a text is not valid Unicode") : undefined;
  const list = Array.isArray(value);
  const parent = typeof value === "object" ? Object.getPrototypeOf(value) : undefined;
  const plain = list ? parent === Array.prototype : parent === null || parent === Object.prototype;
  if (!plain || typeof value.toJSON === "function") refuse("a value is of a type that JSON does not have");
  const keys = Reflect.ownKeys(value).filter((key) => !(list && key === "length"));
  if (list && keys.length !== value.length) refuse("a list has holes or names");
  for (const key of keys) {
    const property = Object.getOwnPropertyDescriptor(value, key);
    if (typeof key !== "string" || !property.enumerable || !("value" in property)) refuse("a property is not plain data");
    check(key, depth);
    check(property.value, depth - 1);
  }
}

const isLoopback = (host) => host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);

/** What the gate is given of the time-out: five sixths, so that its answer can still arrive. */
const secondsFor = (milliseconds) => String(Math.floor((Math.floor(milliseconds) * 5) / 6) / 1000);

/** A UUID of version 7: 48 bits of Unix milliseconds, the rest random (RFC 9562). */
function uuid7() {
  const now = Date.now();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const view = new DataView(bytes.buffer);
  view.setUint16(0, Math.floor(now / 2 ** 32));
  view.setUint32(2, now % 2 ** 32);
  bytes[6] = (bytes[6] & 0x0f) | 0x70;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
