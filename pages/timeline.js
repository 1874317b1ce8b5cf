// Draws a run over time: phases above, then lanes of what nodes were worked on, with their queries below. Pieces of a lane follow
// one another, so only what is in the window is drawn, and of several pieces in one pixel the first.
const ROW = 20;
const BAR = 14;
const QUERY = 3;
const AXIS = 20;
const GAP = 6;
// How strong a crowd is drawn, and the time that a node was under way.
const FAINT = 0.35;
const FONT = '11px system-ui, sans-serif';
// A label that is cut has at least so many characters.
const MIN_LABEL = 6;
const MIN_SPAN_MS = 1;
// After the last move, so that an address is written once.
const ADDRESS_MS = 300;

const canvas = document.querySelector('canvas[data-timeline]');
const told = document.getElementById('timeline-status');
const field = document.getElementById('timeline-search');
const by = document.getElementById('timeline-by');
const tip = document.getElementById('timeline-tip');
if (canvas !== null) start();

async function start() {
  const asked = new URLSearchParams(location.search);
  const wanted = [...by.options].find(({ value }) => value === asked.get('by'));
  if (wanted !== undefined) wanted.selected = true;
  const run = await fetched();
  if (run === undefined || (run.nodes.length === 0 && run.phases.length === 0)) return;
  document.getElementById('timeline').hidden = false;
  draw(run, asked);
}

async function fetched() {
  const answer = await fetch(`${canvas.dataset.timeline}&by=${by.value}`);
  if (answer.ok) return await answer.json();
  told.textContent = 'The timeline cannot be read just now; load the page again.';
}

/** Rows from above: names of groups, their lanes, and what found none; and each node with its time and its longest piece. */
function rowsOf({ groups, nodes }) {
  const rows = [];
  for (const node of nodes) Object.assign(node, { start: Infinity, end: 0, workMs: 0, longest: null });
  for (const { name, lanes, crowds } of groups) {
    if (name !== '') rows.push({ heading: name, pieces: [] });
    for (const lane of lanes) rows.push({ pieces: piecesOf(lane, nodes, rows.length) });
    if (crowds.length === 0) continue;
    const pieces = crowds.map(({ start, end, pieces: inner }) => {
      const crowd = piecesOf(inner, nodes, rows.length).map(({ node }) => node);
      return { node: null, crowd, start, end, row: rows.length, isBad: crowd.some(({ mood }) => mood === 'bad') };
    });
    rows.push({ pieces });
  }
  return rows;
}

/** Pieces from the position of their node, their start and their end, one after the other. */
function piecesOf(numbers, nodes, row) {
  const pieces = [];
  for (let at = 0; at < numbers.length; at += 3) {
    const node = nodes[numbers[at]];
    const piece = { node, start: numbers[at + 1], end: numbers[at + 2], row };
    pieces.push(piece);
    note(node, piece);
  }
  return pieces;
}

function note(node, piece) {
  node.start = Math.min(node.start, piece.start);
  node.end = Math.max(node.end, piece.end);
  node.workMs += piece.end - piece.start;
  if (node.longest === null || piece.end - piece.start > node.longest.end - node.longest.start) node.longest = piece;
}

function draw(first, asked) {
  const context = canvas.getContext('2d');
  let run;
  let rows;
  let inTime;
  let top;
  const view = { from: 0, to: first.lengthMs, y: 0 };
  let found = new Set();
  let chosen = null;
  let colors = {};
  // Of texts, in pixels; measuring takes longer than drawing.
  const widths = new Map();
  let isAsked = false;
  let brush = null;

  const width = () => canvas.clientWidth;
  const height = () => canvas.clientHeight;
  const x = (ms) => ((ms - view.from) / (view.to - view.from)) * width();
  const msAt = (offsetX) => view.from + (offsetX / width()) * (view.to - view.from);
  const contentHeight = () => top + rows.length * ROW + GAP;
  const maxY = () => Math.max(0, contentHeight() - height());

  function take(data) {
    run = data;
    rows = rowsOf(run);
    inTime = run.nodes.filter(({ longest }) => longest !== null).sort((a, b) => a.start - b.start);
    top = AXIS + run.phases.length * ROW + GAP;
    // As high as its rows, as far as the page has room.
    canvas.style.height = `${contentHeight() + 2}px`;
    canvas.dataset.drawn = String(run.nodes.length);
  }

  function paint() {
    isAsked = false;
    const ratio = devicePixelRatio;
    if (canvas.width !== Math.round(width() * ratio) || canvas.height !== Math.round(height() * ratio)) {
      canvas.width = Math.round(width() * ratio);
      canvas.height = Math.round(height() * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width(), height());
    // Behind the bars, whose labels are read.
    context.fillStyle = colors.line;
    for (const at of marks().times) context.fillRect(x(at), AXIS, 1, height());
    context.save();
    context.beginPath();
    context.rect(0, top, width(), height());
    context.clip();
    const firstRow = Math.max(0, Math.floor((view.y - ROW) / ROW));
    const lastRow = Math.min(rows.length - 1, Math.ceil((view.y + height()) / ROW));
    for (let row = firstRow; row <= lastRow; row += 1) paintRow(rows[row], top + row * ROW - view.y);
    context.restore();
    paintAxis();
    if (brush !== null) {
      context.globalAlpha = 0.2;
      context.fillStyle = colors.link;
      context.fillRect(Math.min(brush.from, brush.to), 0, Math.abs(brush.to - brush.from), height());
      context.globalAlpha = 1;
    }
  }

  function paintRow({ heading, pieces }, y) {
    if (heading !== undefined) {
      context.font = `bold ${FONT}`;
      context.fillStyle = colors.text;
      context.fillText(heading, 4, y + BAR - 3.5);
      return;
    }
    if (chosen !== null && chosen.longest.row === pieces[0]?.row) paintTime(chosen, y);
    let drawnTo = -1;
    for (let at = firstEndingAfter(pieces, view.from); at < pieces.length; at += 1) {
      const piece = pieces[at];
      if (piece.start > view.to) return;
      const { node } = piece;
      const left = Math.max(-2, x(piece.start));
      const right = Math.min(width() + 2, Math.max(left + 1, x(piece.end)));
      const isChosen = node === chosen || piece.crowd?.includes(chosen) === true;
      const isFound = found.has(node) || piece.crowd?.some((one) => found.has(one)) === true;
      const isMarked = chosen !== null && (isChosen || isFound);
      if (right <= drawnTo && !isMarked) continue;
      drawnTo = right;
      const isFaint = found.size > 0 && !isFound;
      context.globalAlpha = isFaint ? 0.2 : node === null ? FAINT : 1;
      context.fillStyle = colors[node?.mood ?? (piece.isBad ? 'bad' : 'neutral')];
      context.fillRect(left, y, right - left, BAR);
      if (node !== null && right - left > 2) paintQueries(node, piece, y);
      context.globalAlpha = 1;
      if (node?.isCritical || isMarked) {
        context.strokeStyle = isMarked ? colors.link : colors.text;
        context.lineWidth = isMarked && isChosen ? 3 : 1.5;
        context.strokeRect(left, y, Math.max(2, right - left), BAR);
      }
      if (!isFaint) paintLabel(piece, Math.max(0, left), Math.min(width(), right), y);
    }
  }

  // From a node's first start to its last end, also while it waited.
  function paintTime(node, y) {
    context.globalAlpha = FAINT;
    context.fillStyle = colors.link;
    context.fillRect(x(node.start), y + BAR / 2 - 1, Math.max(1, x(node.end) - x(node.start)), 2);
    context.globalAlpha = 1;
  }

  function paintQueries({ queries }, piece, y) {
    context.fillStyle = colors.text;
    for (let part = 0; part < queries.length; part += 2) {
      if (queries[part + 1] < piece.start || queries[part] > piece.end) continue;
      const from = Math.max(0, x(queries[part]));
      context.fillRect(from, y + BAR + 1, Math.max(1, Math.min(width(), x(queries[part + 1])) - from), QUERY);
    }
  }

  function paintLabel({ node, crowd }, left, right, y) {
    context.font = FONT;
    const text = fitting(node?.name.replace(/^model /, '') ?? crowdText(crowd), right - left - 8);
    if (text === '') return;
    context.fillStyle = node === null ? colors.text : colors.on[node.mood];
    context.fillText(text, left + 4, y + BAR - 3.5);
  }

  // A text, or as much of it as has room; none where that would be a few characters.
  function fitting(text, room) {
    if (room < 2 * MIN_LABEL) return '';
    let wide = widths.get(text);
    if (wide === undefined) {
      wide = context.measureText(text).width;
      widths.set(text, wide);
    }
    if (wide <= room) return text;
    let count = Math.floor((room / wide) * text.length) - 1;
    while (count >= MIN_LABEL && context.measureText(`${text.slice(0, count)}…`).width > room) count -= 1;
    return count < MIN_LABEL ? '' : `${text.slice(0, count)}…`;
  }

  // Times that stand above.
  function marks() {
    const step = niceStep((view.to - view.from) / Math.max(2, width() / 110));
    const times = [];
    for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) times.push(at);
    return { step, times };
  }

  function paintAxis() {
    context.fillStyle = colors.ground;
    context.fillRect(0, 0, width(), top - 2);
    context.font = '11px system-ui, sans-serif';
    const { step, times } = marks();
    for (const at of times) {
      context.fillStyle = colors.line;
      context.fillRect(x(at), 0, 1, top);
      context.fillStyle = colors.soft;
      context.fillText(timeText(at, step), x(at) + 3, 12);
    }
    run.phases.forEach((phases, row) => {
      for (const { name, start, end } of phases) {
        const left = Math.max(0, x(start));
        const right = Math.min(width(), x(end));
        if (right <= 0 || left >= width()) continue;
        context.globalAlpha = 0.25;
        context.fillStyle = colors.link;
        context.fillRect(left, AXIS + row * ROW, Math.max(1, right - left), BAR + 1);
        context.globalAlpha = 1;
        context.fillStyle = colors.text;
        context.font = FONT;
        context.fillText(fitting(name, right - left - 8), left + 4, AXIS + row * ROW + BAR - 3.5);
      }
    });
  }

  function ask() {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(paint);
  }

  function show(from, to) {
    const span = Math.min(run.lengthMs, Math.max(MIN_SPAN_MS, to - from));
    view.from = Math.min(Math.max(0, from), run.lengthMs - span);
    view.to = view.from + span;
    view.y = Math.min(maxY(), Math.max(0, view.y));
    writeAddress();
    ask();
  }

  function zoom(factor, atX = width() / 2) {
    const at = view.from + (atX / width()) * (view.to - view.from);
    show(at - (at - view.from) * factor, at + (view.to - at) * factor);
  }

  function choose(node, isShown = true) {
    chosen = node;
    told.textContent = node === null ? '' : textOf(node);
    if (node !== null && isShown) {
      if (node.longest.end < view.from || node.longest.start > view.to) {
        const half = (view.to - view.from) / 2;
        const middle = (node.longest.start + node.longest.end) / 2;
        show(middle - half, middle + half);
      }
      const y = top + node.longest.row * ROW;
      if (y - view.y < top || y - view.y > height() - ROW) view.y = Math.min(maxY(), Math.max(0, y - height() / 2));
    }
    writeAddress();
    ask();
  }

  function pieceAt(offsetX, offsetY) {
    if (offsetY < top) return null;
    const { pieces = [] } = rows[Math.floor((offsetY - top + view.y) / ROW)] ?? {};
    const slack = ((view.to - view.from) / width()) * 2;
    const at = msAt(offsetX);
    // Of a piece under the pointer and one beside it the first.
    const near = pieces.filter(({ start, end }) => start - slack <= at && at <= end + slack);
    return near.find(({ start, end }) => start <= at && at <= end) ?? near[0] ?? null;
  }

  function showTip({ offsetX, offsetY }) {
    const piece = drag === null ? pieceAt(offsetX, offsetY) : null;
    tip.hidden = piece === null;
    if (piece === null) return;
    tip.textContent = piece.node === null ? crowdText(piece.crowd) : tipText(piece, msAt(offsetX));
    tip.style.left = `${Math.max(0, Math.min(offsetX + 12, width() - tip.offsetWidth))}px`;
    tip.style.top = `${offsetY + 16}px`;
  }

  const open = (node) => {
    if (node !== null) location.assign(canvas.dataset.node + encodeURIComponent(node.id));
  };

  let drag = null;
  canvas.addEventListener('pointerdown', (event) => {
    const isBrush = event.offsetY < top || event.shiftKey;
    drag = { x: event.clientX, y: event.clientY, from: view.from, to: view.to, top: view.y, isMoved: false };
    if (isBrush) brush = { from: event.offsetX, to: event.offsetX };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    showTip(event);
    if (drag === null) return;
    const byX = event.clientX - drag.x;
    const byY = event.clientY - drag.y;
    drag.isMoved ||= Math.abs(byX) + Math.abs(byY) > 4;
    if (!drag.isMoved) return;
    if (brush !== null) {
      brush.to = event.offsetX;
      ask();
      return;
    }
    const ms = (byX / width()) * (drag.to - drag.from);
    view.y = drag.top - byY;
    show(drag.from - ms, drag.to - ms);
  });
  canvas.addEventListener('pointerup', (event) => {
    const wasMoved = drag?.isMoved === true;
    const chosenTimes = brush === null ? [] : [msAt(brush.from), msAt(brush.to)].sort((a, b) => a - b);
    drag = null;
    brush = null;
    if (!wasMoved) choose(pieceAt(event.offsetX, event.offsetY)?.node ?? null, false);
    else if (chosenTimes.length > 0) show(...chosenTimes);
  });
  canvas.addEventListener('pointerleave', () => {
    tip.hidden = true;
  });
  canvas.addEventListener('dblclick', () => open(chosen));
  canvas.addEventListener(
    'wheel',
    (event) => {
      if (event.ctrlKey || event.metaKey) zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX);
      else if (event.deltaX !== 0 || event.shiftKey) {
        const ms = ((event.deltaX || event.deltaY) / width()) * (view.to - view.from);
        show(view.from + ms, view.to + ms);
      } else {
        const y = Math.min(maxY(), Math.max(0, view.y + event.deltaY));
        // At its end the page itself goes on.
        if (y === view.y) return;
        view.y = y;
        ask();
      }
      event.preventDefault();
    },
    { passive: false },
  );

  function step(count) {
    const list = found.size > 0 ? inTime.filter((node) => found.has(node)) : inTime;
    const at = list.indexOf(chosen);
    choose(list[at < 0 ? 0 : Math.min(list.length - 1, Math.max(0, at + count))] ?? null);
  }

  // The next one in time, then from the beginning.
  function nextFailure() {
    const bad = inTime.filter(({ mood }) => mood === 'bad');
    const next = bad.find(({ start }) => chosen !== null && start > chosen.start) ?? bad[0];
    choose(next ?? null);
    told.textContent =
      next === undefined ? 'Nothing failed.' : `${bad.indexOf(next) + 1} of ${bad.length} failed. ${told.textContent}`;
  }

  const keys = {
    ArrowRight: () => step(1),
    ArrowLeft: () => step(-1),
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    '+': () => zoom(0.5),
    '=': () => zoom(0.5),
    '-': () => zoom(2),
    0: () => show(0, run.lengthMs),
    n: nextFailure,
    Enter: () => open(chosen),
    Escape: () => choose(null),
  };
  canvas.addEventListener('keydown', (event) => {
    const act = keys[event.key];
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  for (const button of document.querySelectorAll('button[data-key]')) {
    button.addEventListener('click', () => keys[button.dataset.key]());
  }
  function find() {
    const text = field.value.trim().toLowerCase();
    found = new Set(text === '' ? [] : inTime.filter(({ id }) => id.toLowerCase().includes(text)));
    choose(inTime.find((node) => found.has(node)) ?? null);
    if (text !== '') told.textContent = `${found.size} found. ${told.textContent}`;
  }
  field.addEventListener('input', find);
  by.addEventListener('change', async () => {
    const data = await fetched();
    if (data === undefined) return;
    const id = chosen?.id;
    take(data);
    view.y = 0;
    if (field.value.trim() !== '') find();
    choose(inTime.find((node) => node.id === id) ?? null);
  });

  // What is in the window can be sent to somebody.
  let addressTimer;
  function writeAddress() {
    clearTimeout(addressTimer);
    addressTimer = setTimeout(() => {
      const address = new URL(location.href);
      const isWhole = view.from === 0 && view.to === run.lengthMs;
      const values = {
        by: by.value === 'thread' ? null : by.value,
        from: isWhole ? null : String(Math.round(view.from)),
        to: isWhole ? null : String(Math.ceil(view.to)),
        node: chosen?.id ?? null,
      };
      for (const [name, value] of Object.entries(values)) {
        if (value === null) address.searchParams.delete(name);
        else address.searchParams.set(name, value);
      }
      history.replaceState(null, '', address);
    }, ADDRESS_MS);
  }

  function readColors() {
    const style = getComputedStyle(canvas);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    colors = {
      ...{ text: of('text'), soft: of('soft'), line: of('line'), ground: of('ground'), link: of('link') },
      ...{ good: of('fill-good'), bad: of('fill-bad'), busy: of('fill-busy'), neutral: of('fill-neutral') },
    };
    colors.on = Object.fromEntries(
      ['good', 'bad', 'busy', 'neutral'].map((mood) => [mood, readableOn(rgbOf(colors[mood]))]),
    );
    ask();
  }
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', readColors);
  take(first);
  readColors();
  const named = inTime.find(({ id }) => id === asked.get('node'));
  if (asked.has('to')) show(Number(asked.get('from')) || 0, Number(asked.get('to')) || run.lengthMs);
  else if (named !== undefined) show(named.start - (named.end - named.start), 2 * named.end - named.start);
  if (named !== undefined) choose(named);
  new ResizeObserver(() => show(view.from, view.to)).observe(canvas);
}

function crowdText(nodes) {
  const bad = nodes.filter(({ mood }) => mood === 'bad').length;
  return `${nodes.length} more at once${bad === 0 ? '' : `, ${bad} failed`}`;
}

function textOf({ name, verdict, start, end, workMs, queries, isCritical }) {
  const waitedMs = end - start - workMs;
  return (
    `${name}: ${verdict}, ${lengthText(workMs)} of work from ${lengthText(start)} on` +
    `${waitedMs >= 1 ? `, ${lengthText(waitedMs)} of waiting` : ''}${queryText(queries)}` +
    `${isCritical ? ', on the critical path' : ''}`
  );
}

function queryText(queries) {
  if (queries.length === 0) return '';
  let ms = 0;
  for (let part = 0; part < queries.length; part += 2) ms += queries[part + 1] - queries[part];
  return `, ${queries.length / 2} ${queries.length === 2 ? 'query' : 'queries'} of ${lengthText(ms)}`;
}

/** What is under the pointer: a node, the piece of it, and the query that ran then. */
function tipText({ node, start, end }, atMs) {
  const at = node.queries.findIndex((ms, part) => part % 2 === 0 && ms <= atMs && atMs <= node.queries[part + 1]);
  const piece = `this part: ${lengthText(end - start)} from ${lengthText(start)} on`;
  const query =
    at < 0
      ? ''
      : `\nquery ${at / 2 + 1} of ${node.queries.length / 2}: ${lengthText(node.queries[at + 1] - node.queries[at])}`;
  return `${textOf(node)}\n${piece}${query}`;
}

function rgbOf(hex) {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
}

/** Black or white: one of them has a contrast of 4.58 or more to any colour (WCAG 2, relative luminance). */
function readableOn(rgb) {
  const [red, green, blue] = rgb.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? '#000000' : '#ffffff';
}

/** The first piece of a row that is not over before a time: they follow one another. */
function firstEndingAfter(pieces, ms) {
  let low = 0;
  let high = pieces.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pieces[middle].end < ms) low = middle + 1;
    else high = middle;
  }
  return low;
}

function niceStep(ms) {
  const power = 10 ** Math.floor(Math.log10(Math.max(ms, 0.001)));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= ms) ?? ms;
}

function timeText(ms, step) {
  if (step < 1_000 && ms < 60_000)
    return ms < 1_000 ? `${Math.round(ms * 10) / 10} ms` : `${(ms / 1_000).toFixed(step < 100 ? 2 : 1)} s`;
  return lengthText(ms);
}

function lengthText(ms) {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`;
}
