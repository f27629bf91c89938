// What the pages can do beyond links and forms: live updates, countdowns and keys. Without it everything still works.
// Nothing here makes HTML of text: parts of a page are taken over from another copy of the same page, made by the server.
'use strict';

const $ = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const say = (text) => { $('#said').textContent = text; };

// Countdowns. The page was made with the time at which a call ends; what is left of it is counted here, by the gate's clock
// and not by this machine's, which may be wrong.
const ahead = Date.parse(document.body.dataset.now) - Date.now();
function countDown() {
  for (const e of all('[data-ends]')) {
    const seconds = Math.ceil((Date.parse(e.dataset.ends) - Date.now() - ahead) / 1000);
    e.title = new Date(e.dataset.ends).toString();
    e.classList.toggle('soon', seconds < 60);
    if (seconds <= 0) e.textContent = 'now';
    else if (seconds < 3600) e.textContent = `in ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
    else e.textContent = `in ${Math.floor(seconds / 3600)} h ${Math.floor(seconds % 3600 / 60)} min`;
  }
}

// Live parts have an id and data-live. One with a data-version is replaced only when that changes, so that what a person
// is typing stays.
function takeOver(fresh) {
  const selected = selectedRow()?.closest('[id]')?.id;
  const focused = document.activeElement?.closest('[data-live]') ? document.activeElement.id || document.activeElement.getAttribute('href') : null;
  const before = new Set(all('.cards > li').map((e) => e.id));
  for (const old of all('[data-live][id]')) {
    const next = fresh.getElementById(old.id);
    if (!next || old.id === 'count' || (old.dataset.version && old.dataset.version === next.dataset.version)) continue;
    const copy = document.importNode(next, true);
    const open = all('details', old).map((e) => e.open);
    old.replaceWith(copy);
    all('details', copy).forEach((e, i) => { if (i in open) e.open = open[i]; });
  }
  for (const e of all('#waiting .cards > li')) if (!before.has(e.id)) e.firstElementChild.classList.add('fresh');
  if (selected) select(document.getElementById(selected)?.querySelector('[data-row]') ?? document.getElementById(selected), false);
  if (focused) all('a, button, input, textarea').find((e) => e.id === focused || e.getAttribute('href') === focused)?.focus();
  countDown();
}

// refresh asks for this very page again. One request at a time; what comes meanwhile is one more.
let asking = false, again = false;
function refresh() {
  if (asking) { again = true; return; }
  asking = true;
  const x = new XMLHttpRequest();
  x.open('GET', location.href);
  x.responseType = 'document';
  x.timeout = 10000;
  x.setRequestHeader('Gatewright-Live', '1');
  x.onloadend = () => {
    asking = false;
    if (x.status === 401) { location.assign(location.href); return; }
    if (x.status === 200 && x.response) takeOver(x.response);
    if (again) { again = false; refresh(); }
  };
  x.send();
}

function count(pending) {
  const e = $('#count');
  if (e.textContent !== '' && Number(e.textContent) < pending) say(`${pending} calls wait for a person`);
  e.hidden = pending === 0;
  e.textContent = pending === 0 ? '' : String(pending);
  const title = document.title.replace(/^\(\d+\) /, '');
  document.title = pending === 0 ? title : `(${pending}) ${title}`;
}

function listen(url) {
  const live = $('#live');
  const show = (on) => { live.hidden = false; live.classList.toggle('off', !on); live.textContent = on ? 'live' : 'not live'; };
  const source = new EventSource(url);
  source.onopen = () => show(true);
  source.onerror = () => {
    show(false);
    if (source.readyState !== EventSource.CLOSED) return; // it connects again by itself
    refresh();
    setTimeout(() => listen(url), 10000);
  };
  // The first event of each kind says where things stand; a page that was made a moment ago may have missed a change.
  source.addEventListener('queue', (e) => { count(JSON.parse(e.data).pending); if ($('#waiting, #state')) refresh(); });
  source.addEventListener('decisions', () => { if ($('#panel') && !location.search.includes('before=')) later(); });
}

// Decisions may come by the thousand: the panel is made anew at most every two seconds.
let waiting = null;
function later() {
  waiting ??= setTimeout(() => { waiting = null; refresh(); }, 2000);
}

const rows = () => all('[data-row]').filter((e) => e.offsetParent !== null);
const selectedRow = () => $('[data-row].selected');
function select(row, scroll = true) {
  if (!row) return;
  for (const e of all('[data-row].selected')) e.classList.remove('selected');
  row.classList.add('selected');
  if (!scroll) return;
  $('a', row)?.focus({ preventScroll: true });
  row.scrollIntoView({ block: 'nearest' });
}
function step(by) {
  const list = rows();
  const i = list.indexOf(selectedRow());
  select(list[i < 0 ? (by > 0 ? 0 : list.length - 1) : Math.min(Math.max(i + by, 0), list.length - 1)]);
}

// goTo moves to what decides a call. From the list it only opens the call: nobody decides what was not shown.
function goTo(id) {
  const e = document.getElementById(id);
  if (!e) {
    if ($('#waiting')) $('a', selectedRow() ?? document.createElement('i'))?.click();
    return;
  }
  e.focus();
  e.scrollIntoView({ block: 'center' });
}

const keys = {
  j: () => step(1),
  k: () => step(-1),
  Enter: () => { if (document.activeElement === document.body || document.activeElement === $('#main')) $('a', selectedRow() ?? document.createElement('i'))?.click(); },
  a: () => goTo('approve'),
  r: () => goTo('message'),
  u: () => $('.brand').click(),
  '/': () => { if ($('#text')) $('#text').focus(); else all('nav a').find((e) => e.pathname.endsWith('/decisions'))?.click(); },
  '?': () => $('#help').showModal(),
};

document.addEventListener('keydown', (e) => {
  const isField = e.target.matches('input, textarea, select');
  if (isField && e.key === 'Escape') { e.target.blur(); return; }
  if (e.target.id === 'message' && e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); $('#reject-form').requestSubmit(); return; }
  if (isField || e.ctrlKey || e.metaKey || e.altKey || $('dialog[open]') || !$('#help')) return;
  const act = keys[e.key];
  if (!act) return;
  if (e.key !== 'Enter') e.preventDefault();
  act();
});

// A form is sent once, however often the button is pressed.
document.addEventListener('submit', (e) => {
  if (!e.target.matches('.decide')) return;
  if (e.target.dataset.sent) { e.preventDefault(); return; }
  e.target.dataset.sent = 'yes';
});
window.addEventListener('pageshow', () => { for (const f of all('form[data-sent]')) delete f.dataset.sent; });

if (document.body.dataset.events) {
  countDown();
  setInterval(countDown, 1000);
  listen(document.body.dataset.events);
  const button = $('#keys');
  button.hidden = false;
  button.addEventListener('click', keys['?']);
}
