// What the pages do where a script runs; all of them work without. Times become local, commands can be copied, lists are
// filtered while somebody types, and parts that change (`data-live`) are brought up to date in place.

/** Makes a page's times local. They stand in UTC, and stay exact in the title. */
function localTimes(root) {
  for (const time of root.querySelectorAll('time[datetime]')) {
    const date = new Date(time.dateTime);
    time.title = time.dateTime;
    const text = 'relative' in time.dataset ? relative(date) : dateText(date);
    if (time.textContent !== text) time.textContent = text;
  }
  for (const note of root.querySelectorAll('[data-time-zone]')) note.textContent = 'times are local';
}

const two = (number) => String(number).padStart(2, '0');

function dateText(date) {
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

const STEPS = [
  [60, 's'],
  [3_600, 'min'],
  [86_400, 'h'],
  [7 * 86_400, 'd'],
];

function relative(date) {
  const seconds = Math.round((Date.now() - date.getTime()) / 1_000);
  if (seconds < 5) return seconds < -60 ? dateText(date) : 'just now';
  const at = STEPS.findIndex(([limit]) => seconds < limit);
  if (at < 0) return dateText(date).slice(0, 16);
  return `${Math.floor(seconds / (STEPS[at - 1]?.[0] ?? 1))} ${STEPS[at][1]} ago`;
}

/** Buttons that copy a text of their own, or what is at an address. */
const COPIES = 'button[data-copy], button[data-copy-from]';

/** Shows what needs a script. */
function enhance(root) {
  localTimes(root);
  for (const button of root.querySelectorAll(COPIES)) button.hidden = false;
}

document.addEventListener('click', async ({ target }) => {
  const button = target instanceof Element ? target.closest(COPIES) : null;
  if (button === null) return;
  const { copy = await textAt(button.dataset.copyFrom) } = button.dataset;
  const said = copy !== undefined && (await copied(copy)) ? 'Copied' : 'Select it and press Ctrl+C';
  button.textContent = said;
  setTimeout(() => {
    button.textContent = 'Copy';
  }, 2_000);
});

/** What an address answers; `undefined` where it cannot be read. */
async function textAt(address) {
  try {
    const answer = await fetch(address);
    return answer.ok ? await answer.text() : undefined;
  } catch {
    return undefined;
  }
}

/** Without https a browser has no clipboard for scripts but the selection's. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement('textarea');
    field.value = text;
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand('copy');
    field.remove();
    return isCopied;
  }
}

/** A form with `data-typed` is sent while somebody types in it, and what it finds takes the place of what was there. */
let typedTimer;
document.addEventListener('input', ({ target }) => {
  const form = target instanceof Element ? target.closest('form[data-typed]') : null;
  if (form === null) return;
  clearTimeout(typedTimer);
  typedTimer = setTimeout(() => find(form), 150);
});
document.addEventListener('submit', (event) => {
  const form = event.target instanceof Element ? event.target.closest('form[data-typed]') : null;
  if (form === null) return;
  event.preventDefault();
  clearTimeout(typedTimer);
  find(form);
});

let latest = 0;

async function find(form) {
  const fields = [...new FormData(form)].filter(([, value]) => value !== '');
  const address = `${form.getAttribute('action')}?${new URLSearchParams(fields)}`;
  latest += 1;
  const own = latest;
  try {
    const page = await fetched(address);
    if (page === undefined || own !== latest) return;
    history.replaceState(null, '', address);
    put(page, document.querySelectorAll(form.dataset.typed));
  } catch {
    // The next key tries again.
  }
}

/**
 * Links with `data-panel` show something beside the list that they stand in, or close it: the address follows, the page stays.
 * Where that fails the browser follows the link itself.
 */
document.addEventListener('click', (event) => {
  const link = event.target instanceof Element ? event.target.closest('a[data-panel]') : null;
  if (link === null || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  // Back leads to the list, not through all that was looked at.
  if (document.querySelector('.panel') === null) history.pushState(null, '', link.href);
  else history.replaceState(null, '', link.href);
  // Who goes on before the page has come goes on from here.
  for (const one of document.querySelectorAll('a[data-panel][aria-current]')) one.removeAttribute('aria-current');
  if (link.dataset.panel === 'open') link.setAttribute('aria-current', 'true');
  showPanel();
});
addEventListener('popstate', () => {
  if (document.querySelector('a[data-panel]') !== null) showPanel();
});

async function showPanel() {
  latest += 1;
  const own = latest;
  const address = location.href;
  try {
    const page = await fetched(address);
    if (own !== latest) return;
    const parts = page === undefined ? [] : document.querySelectorAll('#nodes');
    put(page, parts);
    if (parts.length === 0) location.assign(address);
  } catch {
    if (own === latest) location.assign(address);
  }
}

/** Beside an open panel, the arrow keys go up and down the list, and Escape closes it. */
document.addEventListener('keydown', (event) => {
  const close = document.querySelector('.panel a[data-panel="close"]');
  const isTyping = event.target instanceof Element && event.target.closest('input, select, textarea, .code') !== null;
  if (close === null || isTyping || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key !== 'Escape' && by === undefined) return;
  event.preventDefault();
  const links = [...document.querySelectorAll('a[data-panel="open"]')];
  const at = links.findIndex((link) => link.hasAttribute('aria-current'));
  if (by === undefined) {
    links[at]?.focus();
    close.click();
    return;
  }
  const next = links[at + by];
  if (next === undefined) return;
  next.focus();
  next.click();
});

async function fetched(address) {
  const answer = await fetch(address, { headers: { Accept: 'text/html' } });
  if (answer.status === 401) location.reload();
  if (!answer.ok) return undefined;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  enhance(page);
  return page;
}

/** Brings parts up to date with those of the same id. */
function put(page, parts) {
  for (const shown of parts) {
    const fresh = page.getElementById(shown.id);
    if (fresh !== null) morph(shown, fresh);
  }
}

/** Makes an element like another one, keeping what is the same: the focus, what is open, what is marked stay. */
function morph(shown, fresh) {
  if (shown.isEqualNode(fresh)) return;
  for (const { name } of [...shown.attributes]) {
    if (!fresh.hasAttribute(name) && !(name === 'open' && shown.localName === 'details')) shown.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (shown.getAttribute(name) !== value) shown.setAttribute(name, value);
  }
  const old = [...shown.childNodes];
  const byId = new Map(old.filter((one) => one.id).map((one) => [one.id, one]));
  let at = 0;
  for (const child of [...fresh.childNodes]) {
    let match = child.id ? byId.get(child.id) : old[at];
    if (match !== undefined && !child.id && match.id) match = undefined;
    if (match !== undefined && match.parentNode === shown && isAlike(match, child)) {
      if (shown.childNodes[at] !== match) shown.insertBefore(match, shown.childNodes[at] ?? null);
      if (match.nodeType === Node.ELEMENT_NODE) morph(match, child);
      else if (match.data !== child.data) match.data = child.data;
    } else shown.insertBefore(document.importNode(child, true), shown.childNodes[at] ?? null);
    at += 1;
    old.splice(0, old.length, ...shown.childNodes);
  }
  while (shown.childNodes.length > at) shown.lastChild.remove();
}

const isAlike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName;

// Parts with `data-live` are kept up to date. Those that show runs alone say which: `data-run`, of one run its number, else empty. The
// server says at `/events` when a run has changed, and the page is asked for then. Where a part shows something else, and while the
// server says nothing, the page is asked for every `data-live` ms: until the stream has begun, where a proxy holds it back or too
// many are open, while the server starts again. A page that nobody sees has no stream: browsers have six connections to a server,
// for all windows together.

/** The server says something at least every 15 s. */
const SILENT_MS = 35_000;
/** When a stream that was refused is asked for again. */
const REFUSED_MS = 60_000;

let stream;
let refusedUntilMs = 0;
let heardMs = Number.NEGATIVE_INFINITY;
let isDue = false;
let isAsking = false;
/** When the page was last asked for. */
let askedMs = performance.now();
let restUntilMs = 0;
let followTimer;

const liveParts = () => [...document.querySelectorAll('[data-live]')];

/** Listens where there is something to follow, and sets the time of the next look. */
function arrange() {
  clearTimeout(followTimer);
  const parts = liveParts();
  const isSeen = parts.length > 0 && !document.hidden;
  const isOfRuns = parts.every((one) => 'run' in one.dataset);
  if (isSeen && isOfRuns) listen();
  else {
    stream?.close();
    stream = undefined;
    heardMs = Number.NEGATIVE_INFINITY;
  }
  if (!isSeen || isAsking) return;
  const now = performance.now();
  const intervalMs = Math.max(...parts.map((one) => Number(one.dataset.live) || 5_000));
  const nextMs = isDue ? now : now - heardMs < SILENT_MS ? heardMs + SILENT_MS : askedMs + intervalMs;
  followTimer = setTimeout(follow, Math.max(0, Math.max(nextMs, restUntilMs) - now), intervalMs);
}

function listen() {
  if (stream !== undefined || performance.now() < refusedUntilMs) return;
  const own = new EventSource('/events');
  stream = own;
  own.addEventListener('runs', ({ data }) => {
    const { ids } = JSON.parse(data);
    heardMs = performance.now();
    const isShown = ({ dataset: { run } }) => !run || ids === null || ids.includes(Number(run));
    if (liveParts().some(isShown)) isDue = true;
    arrange();
  });
  own.addEventListener('alive', () => {
    heardMs = performance.now();
    arrange();
  });
  own.addEventListener('error', () => {
    if (stream !== own) return;
    heardMs = Number.NEGATIVE_INFINITY;
    // After anything but an answer that says no, the browser comes again by itself.
    if (own.readyState === EventSource.CLOSED) {
      stream = undefined;
      refusedUntilMs = performance.now() + REFUSED_MS;
    }
    arrange();
  });
}

/** Asks for the page again; one that takes long to make is asked for less often. */
async function follow(intervalMs) {
  const started = performance.now();
  // What somebody is marking is left alone.
  if (!getSelection().isCollapsed) {
    restUntilMs = started + intervalMs;
    arrange();
    return;
  }
  isDue = false;
  isAsking = true;
  askedMs = started;
  const own = latest;
  try {
    const page = await fetched(location.href);
    // What somebody has looked for meanwhile is newer.
    if (page !== undefined && own === latest) {
      document.title = page.title;
      put(page, liveParts());
    }
  } catch {
    // The server may be starting again; the next time tells.
  }
  isAsking = false;
  restUntilMs = performance.now() + 5 * (performance.now() - started);
  arrange();
}

document.addEventListener('visibilitychange', () => {
  isDue = true;
  arrange();
});

/** What was a minute ago is not for long. */
setInterval(() => localTimes(document), 10_000);

/** `/` searches, and `j` and `k` go down and up a list of runs, as in the tools that people come from; `Enter` follows the link. */
document.addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof Element && event.target.closest('input, select, textarea') !== null;
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const next = nextBy(event.key);
  if (next === null) return;
  event.preventDefault();
  next.focus();
});

function nextBy(key) {
  if (key === '/') return document.querySelector('input[type="search"]');
  if (key !== 'j' && key !== 'k') return null;
  const links = [...document.querySelectorAll('tr[id^="run-"] > th a')];
  const row = document.activeElement?.closest('tr[id^="run-"]') ?? null;
  const at = links.findIndex((link) => row?.contains(link));
  return links[at < 0 ? 0 : at + (key === 'j' ? 1 : -1)] ?? null;
}

enhance(document);
arrange();
