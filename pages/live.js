// Brings a page up to date while it is looked at: asks for it again, and puts what has changed in place of what was there.
// Without this file the browser loads the page anew every ten seconds.
let shown = document.getElementById('live');

async function follow() {
  const started = performance.now();
  try {
    if (!document.hidden) await refresh();
  } catch {
    // The server may be starting anew; the next time tells.
  }
  const interval = Number(shown?.dataset.live);
  // A page that takes long to make is asked for less often.
  if (interval > 0) setTimeout(follow, Math.max(interval, 5 * (performance.now() - started)));
}

async function refresh() {
  const answer = await fetch(location.href, { headers: { Accept: 'text/html' } });
  if (answer.status === 401) {
    location.reload();
    return;
  }
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const fresh = page.getElementById('live');
  if (fresh === null || fresh.outerHTML === shown.outerHTML || isInUse()) return;
  for (const one of shown.querySelectorAll('details[id][open]')) {
    fresh.querySelector(`#${CSS.escape(one.id)}`)?.setAttribute('open', '');
  }
  shown.replaceWith(fresh);
  shown = fresh;
  document.title = page.title;
}

// What somebody is choosing, marking or standing on with the keyboard is left alone.
function isInUse() {
  return !getSelection().isCollapsed || shown.contains(document.activeElement);
}

if (shown !== null) setTimeout(follow, Number(shown.dataset.live) || 4000);
