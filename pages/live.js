// Brings a page up to date while it is looked at: asks for it again, and puts the parts that have changed (`data-live`, how
// often in milliseconds) in place of what was there. Without this file the browser loads the page anew every ten seconds.
const parts = () => [...document.querySelectorAll('[data-live]')];

async function follow() {
  const started = performance.now();
  try {
    if (!document.hidden) await refresh();
  } catch {
    // The server may be starting anew; the next time tells.
  }
  schedule(5 * (performance.now() - started));
}

// A page that takes long to make is asked for less often.
function schedule(leastMs) {
  const intervals = parts().map((one) => Number(one.dataset.live) || 5000);
  if (intervals.length > 0) setTimeout(follow, Math.max(leastMs, ...intervals));
}

async function refresh() {
  const answer = await fetch(location.href, { headers: { Accept: 'text/html' } });
  if (answer.status === 401) {
    location.reload();
    return;
  }
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  document.title = page.title;
  for (const shown of parts()) {
    const fresh = page.getElementById(shown.id);
    if (fresh !== null && fresh.outerHTML !== shown.outerHTML && !isInUse(shown)) replace(shown, fresh);
  }
}

function replace(shown, fresh) {
  for (const one of shown.querySelectorAll('details[id][open]')) {
    fresh.querySelector(`#${CSS.escape(one.id)}`)?.setAttribute('open', '');
  }
  shown.replaceWith(fresh);
}

// What somebody is marking, or standing on with the keyboard, is left alone.
function isInUse(shown) {
  return !getSelection().isCollapsed || shown.contains(document.activeElement);
}

schedule(0);
