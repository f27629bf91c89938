// A gate of this tree on a port of its own, and a browser that can reach nothing else.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, existsSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { chromium } from "playwright-core";

const here = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
const binary = process.env.GATEWRIGHT ?? resolve(here, "../../../.cache/bin/gatewright-browser");

const freePort = () => new Promise((done) => {
  const s = createServer().listen(0, "127.0.0.1", () => {
    const { port } = s.address();
    s.close(() => done(port));
  });
});

// newUid gives a UUIDv7.
function newUid() {
  const b = randomBytes(16);
  b.writeUIntBE(Date.now(), 0, 6);
  b[6] = 0x70 | (b[6] & 0x0f);
  b[8] = 0x80 | (b[8] & 0x3f);
  return b.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

// startGate serves the policies beside this file and gives what a test needs of the gate.
export async function startGate() {
  const folder = mkdtempSync(join(tmpdir(), "gatewright-browser-"));
  const url = `http://127.0.0.1:${await freePort()}`;
  const child = spawn(binary, ["serve", "--manifests", resolve(here, "policies"), "--caller", "agents/assistant", "--listen", url.slice(7)], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  child.stderr.on("data", (d) => { log += d; });
  const isReady = async () => {
    try {
      return (await fetch(`${url}/readyz`)).ok;
    } catch {
      return false;
    }
  };
  for (let i = 0; !(await isReady()); i++) {
    assert.ok(i < 300 && child.exitCode === null, `the gate does not start: ${log}`);
    await sleep(100);
  }
  const secret = readFileSync(join(folder, "gatewright-approver-secret"), "utf8").trim();
  return {
    url, secret,
    log: () => log,
    // review sends a call as an agent would and gives the gate's answer.
    async review(tool, args, context = {}) {
      const body = { apiVersion: "review.gatewright.dev/v1alpha1", kind: "ToolCallReview", request: { uid: newUid(), tool: { name: tool }, arguments: args, context: { session: "chat-1", ...context } } };
      const r = await fetch(`${url}/v1alpha1/review`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
      const text = await r.text();
      assert.equal(r.status, 200, text);
      return JSON.parse(text).response;
    },
    async stop() {
      child.kill("SIGTERM");
      for (let i = 0; child.exitCode === null && i < 200; i++) await sleep(50);
      const inTime = child.exitCode !== null;
      if (!inTime) child.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
      assert.ok(inTime, "the gate did not end in 10 s: do streams hold it up?");
    },
  };
}

// launch starts the browser with everything off that talks to anybody by itself.
export function launch() {
  const executablePath = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
  assert.ok(executablePath, "no chromium: hack/prepare.sh installs it");
  return chromium.launch({
    executablePath, headless: true,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"],
  });
}

// watched opens a page in a context of its own and keeps everything that must not happen in it.
export async function watched(browser, gate, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, locale: "en-GB", timezoneId: "UTC", ...options });
  context.setDefaultTimeout(20000);
  const page = await context.newPage();
  const wrong = [];
  page.on("dialog", (d) => { wrong.push(`dialog: ${d.message()}`); d.dismiss(); });
  page.on("pageerror", (e) => wrong.push(`error: ${e.message}`));
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) wrong.push(`console: ${m.text()}`); });
  page.on("popup", (p) => wrong.push(`popup: ${p.url()}`));
  context.on("request", (r) => { if (!r.url().startsWith(gate.url)) wrong.push(`request: ${r.url()}`); });
  if (options.javaScriptEnabled !== false) {
    await page.exposeFunction("reportViolation", (text) => wrong.push(`policy: ${text}`));
    await page.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (e) => window.reportViolation(`${e.violatedDirective} ${e.blockedURI} ${e.sample}`));
    });
  }
  return { page, context, wrong };
}

// signIn signs in by the form, as a person does.
export async function signIn(page, gate, path = "") {
  await page.goto(`${gate.url}/console/${path}`);
  await page.getByLabel("Approver's secret").fill(gate.secret);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
}
