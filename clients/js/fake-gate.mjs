// A gate for tests that answers as one row of the contract says, and keeps what it was asked.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";

export const contract = JSON.parse(readFileSync(new URL("../testdata/contract.json", import.meta.url), "utf8"));
export const ALLOW = contract.rows[0];
export const FIELDS = new Set(
  ("name status headers body bodyBase64 bodyRepeat pad padTo chunked " +
    "delay delayBody trickle hangUp cutAt timeout want").split(" "),
);

/** A row whose answer has this outcome. */
export function response(outcome, fields = {}) {
  const answer = { uid: "{{uid}}", outcome, reason: "R", by: "decider", retryable: false, ...fields };
  return { status: 200, body: { ...ALLOW.body, response: answer } };
}

function bodyOf(row, uid) {
  let body;
  if (row.bodyBase64) body = Buffer.from(row.bodyBase64, "base64").toString("latin1");
  else if (row.bodyRepeat) body = row.bodyRepeat[0].repeat(row.bodyRepeat[1]);
  else body = Buffer.from(typeof row.body === "string" ? row.body : JSON.stringify(row.body ?? "")).toString("latin1");
  if (row.body === undefined && !row.bodyBase64 && !row.bodyRepeat) body = "";
  body = body.replaceAll("{{uid}}", uid);
  return Buffer.from(body + " ".repeat(Math.max(row.pad ?? 0, (row.padTo ?? 0) - body.length, 0)), "latin1");
}

/** Serve a row on loopback until close() is called. */
export async function fakeGate(row, { port = 0, certificate, onAsk = () => {} } = {}) {
  const asked = [];
  const stop = new AbortController();
  const pause = (ms = 0) =>
    new Promise((resolve) => {
      if (!ms || stop.signal.aborted) return resolve();
      const timer = setTimeout(resolve, ms);
      stop.signal.addEventListener("abort", () => resolve(clearTimeout(timer)), { once: true });
    });

  async function answer(req, res) {
    const pieces = [];
    for await (const piece of req) pieces.push(piece);
    const raw = Buffer.concat(pieces).toString();
    const review = JSON.parse(raw);
    asked.push({ method: req.method, path: req.url, headers: req.headers, raw, review });
    onAsk(review);
    await pause(row.delay);
    if (row.hangUp) return req.socket.destroy();
    const body = row.status === 204 ? Buffer.alloc(0) : bodyOf(row, review.request.uid);
    const length = row.chunked || row.status === 204 ? {} : { "Content-Length": body.length };
    res.writeHead(row.status, { ...row.headers, ...length, Connection: "close" });
    res.flushHeaders();
    await pause(row.delayBody);
    if (row.cutAt) return res.write(body.subarray(0, row.cutAt), () => setTimeout(() => req.socket.destroy(), 20));
    if (!row.trickle) return res.end(body);
    for (let at = 0; at < body.length && !res.destroyed && !stop.signal.aborted; at++) {
      res.write(body.subarray(at, at + 1));
      await pause(row.trickle);
    }
    res.end();
  }

  const handle = (req, res) => answer(req, res).catch(() => res.destroy()); // a client that goes away is part of some rows
  const server = certificate ? https.createServer(certificate, handle) : http.createServer(handle);
  await new Promise((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  const url = `http${certificate ? "s" : ""}://127.0.0.1:${server.address().port}`;
  const close = () => {
    stop.abort();
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url, asked, close };
}

/** Make a certificate for loopback that is its own authority. */
export function makeCertificate(folder) {
  const [cert, key] = [`${folder}/cert.pem`, `${folder}/key.pem`];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const names = ["-subj", "/CN=gate", "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync("openssl", ["req", "-x509", ...kind, ...names, "-keyout", key, "-out", cert], { stdio: "ignore" });
  return { file: cert, cert: readFileSync(cert), key: readFileSync(key) };
}
