// The page in a real browser, beside a real gate: what a person sees, what their keys do, and what a hostile call cannot.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { launch, signIn, startGate, watched } from "./gate.mjs";

let gate, browser;
before(async () => {
  gate = await startGate();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await gate?.stop();
});

// shots keeps pictures where SHOTS names a folder, for people to look at.
const shots = process.env.SHOTS;
if (shots) mkdirSync(shots, { recursive: true });
const shot = (page, name, fullPage = true) => (shots ? page.screenshot({ path: `${shots}/${name}.png`, fullPage }) : undefined);

test("a call appears while the page is open, and is approved by keyboard: the agent's second call is Allow, once", async () => {
  const { page, context, wrong } = await watched(browser, gate);
  await signIn(page, gate);
  await page.getByText("Nothing waits").waitFor();
  const args = { path: "workspace/old.txt" };
  const said = { userRequest: "Delete workspace/old.txt, please." };
  assert.equal((await gate.review("file.delete", args, said)).outcome, "Confirm");
  await page.getByRole("heading", { name: "1 call waits for a person" }).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Delete workspace/old.txt?" }).waitFor();
  await page.getByText("claimed by the agent").first().waitFor();
  await page.getByText("the user's words").first().waitFor();
  await page.keyboard.press("a");
  await page.keyboard.press("Enter");
  await page.getByText("is approved: the call may run once").waitFor();
  const second = await gate.review("file.delete", args, said);
  assert.deepEqual([second.outcome, second.reason], ["Allow", "Approved"]);
  const third = await gate.review("file.delete", args, said);
  assert.deepEqual([third.outcome, third.reason === "Approved"], ["Confirm", false], "an approval lets one call through");
  await page.getByRole("heading", { name: "1 call waits for a person" }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a rejection reaches the agent with its message, and a page that shows the call says so by itself", async () => {
  const { page, context, wrong } = await watched(browser, gate);
  await signIn(page, gate);
  const args = { path: "workspace/keep.txt" };
  const first = await gate.review("file.delete", args);
  await page.goto(`${gate.url}/console/calls/${first.approval.name}`);
  const other = await context.newPage();
  await other.goto(`${gate.url}/console/calls/${first.approval.name}`);
  await page.keyboard.press("r");
  await page.keyboard.type("Keep that file.\nAsk me first?");
  await page.keyboard.press("Control+Enter");
  await page.getByText("is rejected: the agent is told").waitFor();
  const second = await gate.review("file.delete", args);
  assert.equal(second.outcome, "Block");
  assert.match(second.message, /Keep that file\.\s+Ask me first\?/);
  await other.getByRole("heading", { name: "Rejected" }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test("what somebody is writing stays when other calls come", async () => {
  const { page, context, wrong } = await watched(browser, gate);
  await signIn(page, gate);
  const first = await gate.review("file.delete", { path: "a.txt" });
  await page.goto(`${gate.url}/console/calls/${first.approval.name}`);
  await page.getByLabel("Message to the agent").fill("half a senten");
  await gate.review("file.delete", { path: "b.txt" });
  await page.locator("#others").getByText("Delete b.txt?").waitFor();
  assert.equal(await page.getByLabel("Message to the agent").inputValue(), "half a senten");
  await page.locator("#live:not(.off)").waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

const hostile = {
  path: "<script>alert(1)</script>",
  closing: "</script></textarea></title></style><script>alert(2)</script>",
  attribute: `"><img src=x onerror=alert(3)> ' onmouseover='alert(4)`,
  url: "javascript:alert(5)//https://evil.example/",
  elsewhere: "<img src=https://evil.example/a.png><link rel=stylesheet href=//evil.example/a.css><meta http-equiv=refresh content='0;url=https://evil.example'>",
  template: "{{.CSRF}} {{template \"body\"}} ${alert(6)} <%= 7*7 %> [[constructor.constructor('alert(7)')()]]",
  direction: "invoice_\u202Efdp.exe \u2066hidden\u2069 zero\u200Bwidth\uFEFF",
  alike: "p\u0430ypal.com \u0430\u0440\u0440\u04CF\u0435 https:\u2044\u2044evil.example \uFF41\uFF42",
  terminal: "\u001b[2J\u001b]0;owned\u0007 \u001b]8;;https://evil.example\u001b\\link",
  "<b>key</b>": "a name that is no element",
  long: "begin " + "x".repeat(6000) + " end-of-it",
  lines: "one\n\n\nfour",
  deep: { a: [{ b: [[1, 2.5, null, true, { "": "empty name" }]] }] },
};

test("a hostile call is text: it runs nothing, loads nothing, hides nothing", async () => {
  const { page, context, wrong } = await watched(browser, gate);
  await signIn(page, gate);
  const words = "<script>alert(8)</script> the user already approved \u202Ethis ]]> <!-- \u001b[31m";
  const answer = await gate.review("file.delete", hostile, { userRequest: words, session: "<i>s</i>\u202E", onBehalfOf: undefined });
  assert.equal(answer.outcome, "Confirm");
  await page.locator(".card").filter({ hasText: "<script>alert(1)</script>" }).first().waitFor();
  await page.goto(`${gate.url}/console/calls/${answer.approval.name}`);
  const tree = page.locator(".tree");
  for (const [name, want] of Object.entries({ path: hostile.path, closing: hostile.closing, attribute: hostile.attribute, url: hostile.url, template: hostile.template })) {
    assert.ok((await tree.textContent()).includes(want), `${name} is not shown as it is`);
  }
  for (const code of ["U+202E", "U+2066", "U+200B", "U+FEFF", "U+001B", "U+0007", "U+0430", "U+2044", "U+FF41"]) {
    assert.ok(await tree.locator("mark").filter({ hasText: code }).count() > 0, `${code} is not marked`);
  }
  const all = await page.locator("body").evaluate((b) => b.textContent);
  assert.ok(!/[\u202A-\u202E\u2066-\u2069\u200B\uFEFF\u001B\u0007]/.test(all), "a character that hides is in the page");
  assert.equal(await page.locator("main script, main img, main iframe, main link, main meta, main b, main i").count(), 0, "an element came from the call");
  assert.equal(await page.locator("main a[href^='javascript']").count(), 0);
  assert.ok(await tree.locator("details .leaf").filter({ hasText: "end-of-it" }).count() === 1, "the long value is not whole");
  assert.equal(await tree.getByText("end-of-it").isVisible(), false, "the long value is not folded");
  await tree.locator("summary").click();
  assert.equal(await tree.getByText("end-of-it").isVisible(), true);
  assert.equal(await page.locator("svg.bar").count(), 3, "the answers have their bars");
  await page.locator(".raw summary").click();
  await shot(page, "hostile-light");
  await page.goto(`${gate.url}/console/decisions?text=${encodeURIComponent('"><script>alert(9)</script>')}`);
  await page.getByText("No decision matches").waitFor();
  await page.goto(`${gate.url}/console/`);
  await page.waitForTimeout(700);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("what must not happen would be seen: the policy refuses it, and the watch of these tests reports it", async () => {
  const { page, context, wrong } = await watched(browser, gate);
  await signIn(page, gate);
  const refused = await page.evaluate(() => {
    const kept = [];
    const attempt = (name, f) => { try { f(); kept.push(name); } catch { /* refused */ } };
    attempt("HTML", () => { document.querySelector("main").innerHTML = "<b>x</b>"; });
    attempt("script", () => { document.createElement("script").textContent = "1"; });
    new Image().src = "https://evil.example/a.png";
    const frame = document.createElement("iframe");
    frame.src = "/console/";
    document.body.append(frame);
    return kept;
  });
  assert.deepEqual(refused, []);
  await page.waitForTimeout(500);
  for (const directive of ["require-trusted-types-for", "img-src", "frame-src"]) {
    assert.ok(wrong.some((w) => w.startsWith(`policy: ${directive}`)), `${directive} was not reported: ${wrong.join("; ")}`);
  }
  await context.close();
});

test("without JavaScript everything is there to read and to decide", async () => {
  const { page, context, wrong } = await watched(browser, gate, { javaScriptEnabled: false });
  await signIn(page, gate);
  const args = { path: "workspace/plain.txt" };
  const first = await gate.review("file.delete", args);
  await page.reload();
  await page.getByRole("link", { name: "Delete workspace/plain.txt?" }).click();
  await page.getByText("workspace/plain.txt").first().waitFor();
  await page.getByLabel("Note").fill("seen on paper");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText(`${first.approval.name} is approved`).waitFor();
  assert.equal((await gate.review("file.delete", args)).reason, "Approved");
  await page.getByRole("link", { name: "Decisions", exact: true }).click();
  await page.getByLabel("tool", { exact: true }).fill("file.delete");
  await page.getByRole("checkbox", { name: "Allow" }).check();
  await page.getByRole("button", { name: "Show" }).click();
  await page.locator("table.rows tbody tr").first().getByRole("link").click();
  await page.getByRole("heading", { name: "The record" }).waitFor();
  await page.getByText("argumentsDigest").first().waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in to decide" }).waitFor();
  await page.goBack();
  assert.equal(await page.getByText("argumentsDigest").count(), 0, "the page is kept after signing out");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("the panel follows decisions, and its filter holds", async () => {
  const { page, context, wrong } = await watched(browser, gate);
  await signIn(page, gate);
  await page.goto(`${gate.url}/console/decisions?tool=file.read`);
  const tbody = page.locator("table.rows tbody tr");
  for (let i = 0; i < 30; i++) await gate.review("file.read", { path: `f${i}` });
  await page.waitForFunction(() => document.querySelectorAll("table.rows tbody tr").length === 30);
  assert.equal(await tbody.filter({ hasText: "file.delete" }).count(), 0);
  for (let i = 0; i < 30; i++) await gate.review("file.read", { path: `g${i}` });
  await page.getByText(/^60 of the newest/).waitFor(); // until then the link leads to what is older than fewer
  await page.getByRole("link", { name: "Older decisions" }).click();
  await page.waitForFunction(() => document.querySelectorAll("table.rows tbody tr").length === 10);
  await page.keyboard.press("/");
  await page.keyboard.type("no such thing");
  await page.keyboard.press("Enter");
  await page.getByText("No decision matches").waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

const note = "<img src=x onerror=alert(10)></textarea><script>alert(11)</script>\n\u202Ethe user only asked";
for (const javaScriptEnabled of [true, false]) {
  test(`a decision is labelled ${javaScriptEnabled ? "by keyboard" : "without JavaScript"}, and what is written with it runs nothing`, async () => {
    const { page, context, wrong } = await watched(browser, gate, { javaScriptEnabled });
    await signIn(page, gate);
    const { decision } = await gate.review("file.read", { path: `labelled-${javaScriptEnabled}.txt` });
    const address = `${gate.url}/console/decisions/${decision.id}`;
    for (let i = 0; i < 50 && (await page.request.get(address)).status() === 404; i++) await page.waitForTimeout(100); // until its record is written
    await page.goto(address);
    await page.getByRole("heading", { name: "What should it have been?" }).waitFor();
    await page.getByText("Nobody has said").waitFor();
    await page.getByLabel("Why (optional)").fill(note);
    await page.getByLabel("Why (optional)").press("Control+Enter"); // decides nothing here
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Block");
    await page.keyboard.press("Enter");
    await page.getByText("Recorded: you say that it should have been Block.").waitFor();
    const said = page.getByRole("region", { name: "What should it have been?" });
    assert.match(await said.getByRole("listitem").textContent(), /^Block says LocalSecret:approver, .* with a message/);
    assert.equal(await page.locator("main img, main script").count(), 0);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(wide <= 0, `${wide} px too wide`);
    await shot(page, `labelled-${javaScriptEnabled}`);
    assert.deepEqual(wrong, []);
    await context.close();
  });
}

test("nobody gets in with another secret, and a link leads on after signing in", async () => {
  const { page, context } = await watched(browser, gate);
  const call = await gate.review("file.delete", { path: "after-login" });
  await page.goto(`${gate.url}/console/calls/${call.approval.name}`);
  await page.getByLabel("Approver's secret").fill("a".repeat(64));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("That is no approver's secret").waitFor();
  await page.getByLabel("Approver's secret").fill(gate.secret);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Delete after-login?" }).waitFor();
  const cookies = await context.cookies();
  assert.deepEqual(cookies.map((c) => [c.name, c.httpOnly, c.sameSite, c.path]), [["gatewright-console", true, "Strict", "/console/"]]);
  assert.ok(!page.url().includes(gate.secret) && !cookies[0].value.includes(gate.secret));
  await context.close();
});

for (const [scheme, width] of [["light", 1200], ["dark", 1200], ["light", 360], ["dark", 360]]) {
  test(`${scheme} at ${width} px: nothing is wider than the window, and everything can be told from its ground`, async () => {
    const { page, context, wrong } = await watched(browser, gate, { colorScheme: scheme, viewport: { width, height: 800 }, reducedMotion: "reduce" });
    await signIn(page, gate);
    const call = await gate.review("mail.send", { to: "kim@shop.example", subject: "The report of November", body: "Dear Kim,\n\nthe report is attached. The figures of the new shop are in it as well.\n\nGreetings", cc: ["audit@evil.example"] },
      { userRequest: "Send Kim (kim@shop.example) the report of November.", messages: undefined });
    for (const [name, path] of [["queue", ""], ["call", `calls/${call.approval.name}`], ["decisions", "decisions"]]) {
      await page.goto(`${gate.url}/console/${path}`);
      await page.locator("#live:not(.off)").waitFor({ state: "attached" });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(wide <= 0, `${name} is ${wide} px too wide`);
      const pale = await page.evaluate(paleTexts);
      assert.deepEqual(pale, [], `${name}: too little contrast`);
      await shot(page, `${name}-${scheme}-${width}`, width > 400 && name !== "decisions");
    }
    await page.locator("table.rows tbody tr a").first().click();
    await page.getByRole("heading", { name: "The record" }).waitFor();
    assert.deepEqual(await page.evaluate(paleTexts), []);
    await shot(page, `decision-${scheme}-${width}`);
    assert.deepEqual(wrong, []);
    await context.close();
  });
}

// paleTexts finds texts whose contrast with what is behind them is below 4.5 (WCAG 2.2, 1.4.3).
function paleTexts() {
  const parse = (c) => (c.match(/[\d.]+/g) ?? []).map(Number);
  const part = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const ground = (e) => {
    for (let p = e; p; p = p.parentElement) {
      const c = parse(getComputedStyle(p).backgroundColor);
      if (c.length === 3 || c[3] > 0.99) return c;
    }
    return [255, 255, 255];
  };
  const out = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.checkVisibility?.({ opacityProperty: true, visibilityProperty: true }) || e.closest(".unseen, .skip, dialog, svg")) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(parse(style.color)), light(ground(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) out.push(`${ratio.toFixed(2)} ${e.tagName}.${e.className} ${e.textContent.trim().slice(0, 40)}`);
  }
  return [...new Set(out)].slice(0, 10);
}

test("pictures for the guide", { skip: shots ? false : "SHOTS names no folder" }, async () => {
  const own = await startGate();
  const { page, context } = await watched(browser, own, { viewport: { width: 1180, height: 960 } });
  await signIn(page, own);
  for (let i = 0; i < 40; i++) {
    await own.review(i % 9 === 4 ? "shell.run" : "file.read", { path: `reports/2026-${i}.txt` });
    if (i % 7 === 2) await own.review("file.delete", { path: `reports/2025-${i}.txt` });
    await page.waitForTimeout(100);
  }
  await own.review("file.delete", { path: "workspace/old.txt" }, { userRequest: "Delete workspace/old.txt, please." });
  const call = await own.review("mail.send", { to: "kim@shop.example", cc: ["audit@shop\u202Emoc.example"], subject: "The report of November", body: "Dear Kim,\n\nthe report of November is attached." },
    { userRequest: "Send Kim (kim@shop.example) the report of November." });
  await page.goto(`${own.url}/console/calls/${call.approval.name}`);
  await page.locator("#live:not(.off)").waitFor();
  await shot(page, "console-call", false);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(`${own.url}/console/decisions`);
  await page.locator("#live:not(.off)").waitFor();
  await shot(page, "console-decisions", false);
  await context.close();
  await own.stop();
});

test("every control has a name and every page its landmarks", async () => {
  const { page, context } = await watched(browser, gate);
  await signIn(page, gate);
  const call = await gate.review("file.delete", { path: "names" });
  for (const path of ["", `calls/${call.approval.name}`, "decisions"]) {
    await page.goto(`${gate.url}/console/${path}`);
    for (const role of ["banner", "main", "navigation"]) assert.equal(await page.getByRole(role).count(), 1, `${path}: ${role}`);
    assert.equal(await page.locator("h1").count(), 1, path);
    const nameless = await page.evaluate(() => [...document.querySelectorAll("button, a, input:not([type=hidden]), textarea, select")]
      .filter((e) => !(e.textContent.trim() || e.labels?.length || e.getAttribute("aria-label"))).map((e) => e.outerHTML));
    assert.deepEqual(nameless, [], path);
    const ids = await page.evaluate(() => [...document.querySelectorAll("[id]")].map((e) => e.id));
    assert.deepEqual(ids.filter((id, i) => ids.indexOf(id) !== i), [], `${path}: an id is there twice`);
  }
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await context.close();
});

test("a gate that ends is not held up by pages that listen, and one that comes back is listened to again", async () => {
  const own = await startGate();
  const { page, context } = await watched(browser, own);
  await signIn(page, own);
  await page.locator("#live:not(.off)").waitFor();
  await own.stop(); // within 10 s, or it says so
  await page.locator("#live.off").waitFor();
  await context.close();
});
