// Draws a run over time: phases above, then nodes, light where they waited and full where they were worked on, with their
// queries as a line below. Bars stand in rows by their start, so only what is in the window is drawn, and of several bars
// in one pixel the first.
const ROW = 18;
const BAR = 14;
const AXIS = 20;
const GAP = 6;
// How strong what waits is drawn, and what is not found.
const WAITING = 0.35;
const FONT = '11px system-ui, sans-serif';
// A label that is cut has at least so many characters.
const MIN_LABEL = 6;
const MIN_SPAN_MS = 1;

const canvas = document.querySelector('canvas[data-timeline]');
const told = document.getElementById('timeline-status');
const field = document.getElementById('timeline-search');
if (canvas !== null) start();

async function start() {
  const answer = await fetch(canvas.dataset.timeline);
  if (!answer.ok) {
    told.textContent = 'The timeline cannot be read just now; load the page again.';
    return;
  }
  const run = await answer.json();
  if (run.rows.length === 0 && run.phases.length === 0) return;
  document.getElementById('timeline').hidden = false;
  draw(run);
}

function draw(run) {
  const context = canvas.getContext('2d');
  for (const [row, bars] of run.rows.entries()) for (const bar of bars) bar.row = row;
  const nodes = run.rows.flat();
  const inTime = [...nodes].sort((a, b) => a.start - b.start);
  const top = AXIS + run.phases.length * ROW + GAP;
  const view = { from: 0, to: run.lengthMs, y: 0 };
  let found = new Set();
  let chosen = null;
  let colors = {};
  // Of texts, in pixels; measuring takes longer than drawing.
  const widths = new Map();
  let isAsked = false;

  const width = () => canvas.clientWidth;
  const height = () => canvas.clientHeight;
  const x = (ms) => ((ms - view.from) / (view.to - view.from)) * width();
  // As high as its rows, as far as the page has room.
  canvas.style.height = `${top + run.rows.length * ROW + GAP + 2}px`;
  const maxY = () => Math.max(0, top + run.rows.length * ROW + GAP - height());

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
    const lastRow = Math.min(run.rows.length - 1, Math.ceil((view.y + height()) / ROW));
    for (let row = firstRow; row <= lastRow; row += 1) paintRow(run.rows[row], top + row * ROW - view.y);
    context.restore();
    paintAxis();
  }

  function paintRow(bars, y) {
    let drawnTo = -1;
    for (let at = firstEndingAfter(bars, view.from); at < bars.length; at += 1) {
      const bar = bars[at];
      if (bar.start > view.to) return;
      const left = Math.max(-2, x(bar.start));
      const right = Math.min(width() + 2, Math.max(left + 1, x(bar.end)));
      const isMarked = bar === chosen || found.has(bar);
      if (right <= drawnTo && !isMarked) continue;
      drawnTo = right;
      context.globalAlpha = found.size > 0 && !found.has(bar) ? 0.12 : WAITING;
      context.fillStyle = colors[bar.mood];
      context.fillRect(left, y, right - left, BAR);
      context.globalAlpha = found.size > 0 && !found.has(bar) ? 0.25 : 1;
      if (right - left > 2) {
        for (let part = 0; part < bar.work.length; part += 2) {
          const from = Math.max(left, x(bar.work[part]));
          context.fillRect(from, y, Math.max(0.5, Math.min(right, x(bar.work[part + 1])) - from), BAR);
        }
        context.fillStyle = colors.text;
        for (let part = 0; part < bar.queries.length; part += 2) {
          const from = Math.max(left, x(bar.queries[part]));
          context.fillRect(from, y + BAR, Math.max(1, Math.min(right, x(bar.queries[part + 1])) - from), 1.5);
        }
      } else context.fillRect(left, y, right - left, BAR);
      context.globalAlpha = 1;
      if (bar.isCritical || bar === chosen) {
        context.strokeStyle = bar === chosen ? colors.link : colors.text;
        context.lineWidth = bar === chosen ? 3 : 1.5;
        context.strokeRect(left, y, Math.max(2, right - left), BAR);
      }
      if (found.size === 0 || found.has(bar)) paintLabel(bar, Math.max(0, left), Math.min(width(), right), y);
    }
  }

  // In a colour that is read on what waits, and in one that is read on what is at work.
  function paintLabel(bar, left, right, y) {
    context.font = FONT;
    const text = fitting(bar.name, right - left - 8);
    if (text === '') return;
    const { waiting, working } = colors.on[bar.mood];
    const at = [text, left + 4, y + BAR - 3.5];
    context.fillStyle = waiting;
    context.fillText(...at);
    if (working === waiting) return;
    context.save();
    context.beginPath();
    for (let part = 0; part < bar.work.length; part += 2) {
      const from = Math.max(left, x(bar.work[part]));
      context.rect(from, y, Math.max(0, Math.min(right, x(bar.work[part + 1])) - from), BAR);
    }
    context.clip();
    context.fillStyle = working;
    context.fillText(...at);
    context.restore();
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
    ask();
  }

  function zoom(factor, atX = width() / 2) {
    const at = view.from + (atX / width()) * (view.to - view.from);
    show(at - (at - view.from) * factor, at + (view.to - at) * factor);
  }

  function choose(bar, isShown = true) {
    chosen = bar;
    told.textContent =
      bar === null
        ? ''
        : `${bar.name}: ${bar.verdict}, ${lengthText(bar.end - bar.start)} from ${lengthText(bar.start)} on` +
          `${bar.isCritical ? ', on the critical path' : ''}`;
    if (bar !== null && isShown) {
      if (bar.end < view.from || bar.start > view.to) {
        const half = (view.to - view.from) / 2;
        show((bar.start + bar.end) / 2 - half, (bar.start + bar.end) / 2 + half);
      }
      const y = top + bar.row * ROW;
      if (y - view.y < top || y - view.y > height() - ROW) view.y = Math.min(maxY(), Math.max(0, y - height() / 2));
    }
    ask();
  }

  function barAt(offsetX, offsetY) {
    if (offsetY < top) return null;
    const bars = run.rows[Math.floor((offsetY - top + view.y) / ROW)] ?? [];
    const slack = ((view.to - view.from) / width()) * 2;
    const at = view.from + (offsetX / width()) * (view.to - view.from);
    return bars.find(({ start, end }) => start - slack <= at && at <= end + slack) ?? null;
  }

  const open = (bar) => {
    if (bar !== null) location.assign(canvas.dataset.node + encodeURIComponent(bar.id));
  };

  let drag = null;
  canvas.addEventListener('pointerdown', (event) => {
    drag = { x: event.clientX, y: event.clientY, from: view.from, to: view.to, top: view.y, isMoved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (drag === null) {
      const bar = barAt(event.offsetX, event.offsetY);
      canvas.title = bar === null ? '' : `${bar.name}: ${bar.verdict}, ${lengthText(bar.end - bar.start)}`;
      return;
    }
    const byX = event.clientX - drag.x;
    const byY = event.clientY - drag.y;
    drag.isMoved ||= Math.abs(byX) + Math.abs(byY) > 4;
    if (!drag.isMoved) return;
    const ms = (byX / width()) * (drag.to - drag.from);
    view.y = drag.top - byY;
    show(drag.from - ms, drag.to - ms);
  });
  canvas.addEventListener('pointerup', (event) => {
    const wasMoved = drag?.isMoved === true;
    drag = null;
    if (!wasMoved) choose(barAt(event.offsetX, event.offsetY), false);
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

  function step(by) {
    const list = found.size > 0 ? inTime.filter((bar) => found.has(bar)) : inTime;
    const at = list.indexOf(chosen);
    choose(list[at < 0 ? 0 : Math.min(list.length - 1, Math.max(0, at + by))] ?? null);
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
    Enter: () => open(chosen),
    Escape: () => choose(null),
  };
  canvas.addEventListener('keydown', (event) => {
    const act = keys[event.key];
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  for (const button of document.querySelectorAll('button[data-zoom]')) {
    button.addEventListener('click', () => keys[button.dataset.zoom]());
  }
  field.addEventListener('input', () => {
    const text = field.value.trim().toLowerCase();
    found = new Set(text === '' ? [] : nodes.filter(({ id }) => id.toLowerCase().includes(text)));
    choose(inTime.find((bar) => found.has(bar)) ?? null);
    if (text !== '') told.textContent = `${found.size} found. ${told.textContent}`;
  });

  function readColors() {
    const style = getComputedStyle(canvas);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    colors = {
      ...{ text: of('text'), soft: of('soft'), line: of('line'), ground: of('ground'), link: of('link') },
      ...{ good: of('fill-good'), bad: of('fill-bad'), busy: of('fill-busy'), neutral: of('fill-neutral') },
    };
    const ground = rgbOf(colors.ground);
    colors.on = Object.fromEntries(
      ['good', 'bad', 'busy', 'neutral'].map((mood) => {
        const fill = rgbOf(colors[mood]);
        const light = fill.map((part, at) => part * WAITING + ground[at] * (1 - WAITING));
        return [mood, { waiting: readableOn(light), working: readableOn(fill) }];
      }),
    );
    ask();
  }
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', readColors);
  new ResizeObserver(() => show(view.from, view.to)).observe(canvas);
  readColors();
  canvas.dataset.drawn = String(nodes.length);
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

/** The first bar of a row that is not over before a time: bars of a row follow one another. */
function firstEndingAfter(bars, ms) {
  let low = 0;
  let high = bars.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bars[middle].end < ms) low = middle + 1;
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
