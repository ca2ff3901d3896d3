-- SPDX-License-Identifier: MIT
--
-- The page that sardine_web.lua serves, and its script, which is apart because dnsdist's security headers forbid scripts inside
-- pages. Nothing comes from anywhere else.

local page = {}

page.html = [==[
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>sardine</title>
<style>
:root {
  --paper: #f6f7f8; --panel: #ffffff; --ink: #1b2229; --soft: #5d6873; --faint: #8e98a2; --line: #e3e7ea; --track: #eceff1;
  --hit: #2b7a9e; --stale: #d79a2b; --miss: #c2543f; --bypass: #9aa5af; --good: #2f8f5b;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #12161a; --panel: #191f25; --ink: #e4e9ed; --soft: #9aa6b1; --faint: #6d7983; --line: #272f37; --track: #242c33;
    --hit: #5aaed3; --stale: #e0b056; --miss: #e07a63; --bypass: #66727d; --good: #5cc48c;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums; -webkit-font-smoothing: antialiased;
}
main, header, footer { max-width: 1240px; margin: 0 auto; padding: 0 20px; }
header { display: flex; align-items: center; gap: 14px; padding-top: 18px; padding-bottom: 14px; flex-wrap: wrap; }
h1 { font-size: 17px; font-weight: 650; letter-spacing: -.01em; margin: 0; }
#tabs { display: flex; gap: 2px; flex-wrap: wrap; }
#tabs button {
  font: inherit; color: var(--soft); background: none; border: 0; border-radius: 6px; padding: 3px 10px; cursor: pointer;
}
#tabs button:hover { color: var(--ink); }
#tabs button[aria-pressed=true] { background: var(--track); color: var(--ink); }
#tabs button:focus-visible { outline: 2px solid var(--hit); }
#state { margin-left: auto; color: var(--soft); font-size: 12.5px; display: flex; align-items: center; gap: 7px; }
#state i { width: 7px; height: 7px; border-radius: 50%; background: var(--faint); }
#state.live i { background: var(--good); }
#state.lost i { background: var(--miss); }
.grid { display: grid; gap: 12px; grid-template-columns: repeat(12, minmax(0, 1fr)); }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px; min-width: 0; }
.panel h2 { font-size: 12.5px; font-weight: 550; color: var(--soft); margin: 0; }
.stack { display: flex; flex-direction: column; gap: 12px; } .stack .panel:last-child { flex: 1; }
.span3 { grid-column: span 3; } .span4 { grid-column: span 4; } .span12 { grid-column: span 12; }
.names3 { grid-column: span 3; } .names4 { grid-column: span 4; } .names5 { grid-column: span 5; }
.figure { font-size: 29px; font-weight: 600; letter-spacing: -.025em; line-height: 1.15; margin-top: 5px; white-space: nowrap; }
.figure small { font-size: 14px; font-weight: 450; letter-spacing: 0; color: var(--soft); margin-left: 4px; }
.under { color: var(--soft); font-size: 12.5px; margin-top: 2px; min-height: 18px; }
.spark { display: block; width: 100%; height: 34px; margin-top: 9px; overflow: visible; }
.meter { height: 5px; border-radius: 3px; background: var(--track); margin: 22px 0 12px; overflow: hidden; }
.meter b { display: block; height: 100%; border-radius: 3px; background: var(--hit); }
.head { display: flex; align-items: baseline; gap: 8px 18px; flex-wrap: wrap; }
.legend { display: flex; gap: 4px 16px; margin-left: auto; font-size: 12.5px; color: var(--soft); flex-wrap: wrap; }
.legend span { display: inline-flex; align-items: center; gap: 6px; }
.legend i { width: 9px; height: 9px; border-radius: 2.5px; }
.legend b { font-weight: 550; color: var(--ink); min-width: 2.4em; }
#chart { position: relative; margin-top: 10px; }
#chart svg { display: block; width: 100%; height: 220px; }
#chart text { fill: var(--faint); font-size: 11px; }
#chart .nothing, .nothing { color: var(--faint); padding: 18px 0 10px; }
#tip {
  position: absolute; top: 4px; pointer-events: none; background: var(--panel); border: 1px solid var(--line); border-radius: 7px;
  padding: 6px 10px; font-size: 12px; line-height: 1.5; box-shadow: 0 4px 14px rgb(0 0 0 / .12); white-space: nowrap;
}
table { width: 100%; border-collapse: collapse; margin-top: 8px; font-size: 13px; }
th { font-weight: 450; color: var(--faint); font-size: 12px; text-align: right; padding: 2px 0 4px 10px; white-space: nowrap; }
td { padding: 3.5px 0 3.5px 10px; text-align: right; border-top: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td.name { max-width: 0; width: 100%; overflow: hidden; text-overflow: ellipsis; }
td.soft { color: var(--soft); }
td.bar { width: 34%; padding-right: 2px; }
td.bar b { display: block; height: 6px; border-radius: 3px; background: var(--hit); }
td.left, th.left { text-align: left; }
.scroll { overflow-x: auto; }
footer { color: var(--faint); font-size: 12px; padding-top: 14px; padding-bottom: 26px; display: flex; gap: 6px 18px; flex-wrap: wrap; }
footer a { color: inherit; }
#snapshot.failing { color: var(--miss); }
#none { padding: 60px 0; max-width: 560px; color: var(--soft); }
#none h2 { color: var(--ink); font-size: 20px; font-weight: 600; letter-spacing: -.01em; margin: 0 0 8px; }
pre { background: var(--track); border-radius: 8px; padding: 12px 14px; overflow-x: auto; font-size: 12.5px; color: var(--ink); }
@media (max-width: 1000px) { .span3 { grid-column: span 6; } .span4, .names3, .names4, .names5 { grid-column: span 12; } }
@media (max-width: 460px) {
  main, header, footer { padding-left: 12px; padding-right: 12px; }
  .grid { gap: 8px; } .panel { padding: 12px 13px; } .figure { font-size: 23px; } .legend { margin-left: 0; }
  #entries small, #memory small { display: block; margin: 0; }
}
</style>
</head>
<body data-path="{{path}}">
<header>
  <h1>sardine</h1>
  <nav id="tabs" aria-label="Caches"></nav>
  <div id="state" role="status"><i></i><span>loading</span></div>
</header>
<main>
  <div id="none" hidden>
    <h2>No pool uses a sardine cache yet</h2>
    <p>In dnsdist's configuration, or in its console:</p>
    <pre>require('sardine').replace()
getPool(''):setCache(newPacketCache(1000000))</pre>
  </div>
  <div class="grid" id="all" hidden>
    <section class="panel span3"><h2>Hit ratio</h2><div class="figure" id="ratio">–</div><div class="under" id="ratio-under"></div>
      <svg class="spark" id="ratio-spark" role="img" aria-label="Hit ratio over the last hour"></svg></section>
    <section class="panel span3"><h2>Lookups a second</h2><div class="figure" id="rate">–</div><div class="under" id="rate-under"></div>
      <svg class="spark" id="rate-spark" role="img" aria-label="Lookups a second over the last hour"></svg></section>
    <section class="panel span3"><h2>Entries</h2><div class="figure" id="entries">–</div><div class="under" id="entries-under"></div>
      <div class="meter"><b id="entries-meter"></b></div></section>
    <section class="panel span3"><h2>Memory</h2><div class="figure" id="memory">–</div><div class="under" id="memory-under"></div>
      <div class="meter"><b id="memory-meter"></b></div></section>

    <section class="panel span12"><div class="head"><h2 id="chart-title">Lookups a second by outcome</h2><div class="legend" id="legend"></div></div>
      <div id="chart"></div></section>

    <section class="panel span4"><h2>Answers by type</h2><div id="types"></div></section>
    <section class="panel span4"><h2>Answers by life left</h2><div id="lives"></div></section>
    <div class="span4 stack">
      <section class="panel"><h2>Answers by rcode</h2><div id="rcodes"></div></section>
      <section class="panel"><h2>Not looked up, not kept: why</h2><div id="reasons"></div></section>
    </div>

    <section class="panel names4"><h2>Asked most</h2><div id="top"></div></section>
    <section class="panel names3"><h2>Missing most</h2><div id="misses"></div></section>
    <section class="panel names5"><h2>Responses not kept lately</h2><div id="refused"></div></section>
    <section class="panel span12" id="policy-panel" hidden><h2>Policy</h2><div id="policy"></div></section>
  </div>
</main>
<footer><span id="survey"></span><span id="sum"></span><span id="snapshot"></span><a href="{{path}}/metrics">metrics</a><span id="version"></span></footer>
<script src="{{path}}/page.js"></script>
</body>
</html>
]==]

page.script = [==[
'use strict';
const path = document.body.dataset.path, POLL = 5000, NS = 'http://www.w3.org/2000/svg';
const byId = id => document.getElementById(id);
let chosen = location.hash.slice(1), latest = null, before = null, hover = null;
const histories = new Map(); // by cache id: { points, since }

// Names come from the network: everything goes in as text, nothing as HTML.
function make(tag, content, attributes) {
  const element = tag.startsWith('svg:') ? document.createElementNS(NS, tag.slice(4)) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  for (const child of [].concat(content ?? [])) element.append(child);
  return element;
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const number = n => whole.format(n);
function short(n) {
  if (n >= 1e9) return (n / 1e9).toFixed(n < 1e10 ? 2 : 1) + ' G';
  if (n >= 1e6) return (n / 1e6).toFixed(n < 1e7 ? 2 : 1) + ' M';
  if (n >= 1e4) return (n / 1e3).toFixed(n < 1e5 ? 1 : 0) + ' k';
  if (n >= 100 || Number.isInteger(n)) return number(n);
  return n.toFixed(1);
}
function bytes(n) {
  for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
    if (n < 1024 || unit === 'GiB') return [n >= 100 || unit === 'B' ? n.toFixed(0) : n.toFixed(1), unit];
    n /= 1024;
  }
}
const percent = (part, all) => all > 0 ? (100 * part / all).toFixed(1) + ' %' : '–';
function ago(s) {
  if (s < 100) return s + ' s';
  return s < 6000 ? Math.round(s / 60) + ' min' : Math.round(s / 3600) + ' h';
}
const clock = (at, seconds) => new Date(at * 1000).toLocaleTimeString([], {
  hour: '2-digit', minute: '2-digit', second: seconds ? '2-digit' : undefined, hourCycle: 'h23' });

// The history of a cache: one object a point, in time.
function remember(cache, columns, most) {
  let history = histories.get(cache.id);
  if (!history) histories.set(cache.id, history = { points: [], since: 0 });
  for (const row of cache.history) {
    const point = {};
    columns.forEach((column, i) => { point[column] = row[i]; });
    if (point.at > history.since) { history.points.push(point); history.since = point.at; }
  }
  history.points.splice(0, Math.max(0, history.points.length - most));
  return history.points;
}

const OUTCOMES = [
  { name: 'hits', label: 'hits', color: 'var(--hit)', of: p => p.hits },
  { name: 'stale', label: 'stale', color: 'var(--stale)', of: p => p.stale },
  { name: 'misses', label: 'misses', color: 'var(--miss)', of: p => p.misses + p.refresh + p.other },
  { name: 'bypass', label: 'bypassed', color: 'var(--bypass)', of: p => p.bypass },
];

// What happened between two points, a second.
function step(a, b) {
  const seconds = Math.max(b.at - a.at, 0.001), result = { at: b.at, all: 0 };
  for (const outcome of OUTCOMES) {
    result[outcome.name] = Math.max(0, outcome.of(b) - outcome.of(a)) / seconds;
    result.all += result[outcome.name];
  }
  const asked = result.hits + result.stale + result.misses;
  result.ratio = asked > 0 ? (result.hits + result.stale) / asked : null;
  return result;
}
function steps(points) {
  return points.slice(1).map((point, i) => step(points[i], point));
}

function spark(svg, values, top, color) {
  const width = 240, height = 34, n = values.length;
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.replaceChildren();
  if (n < 2) return;
  const x = i => width * i / (n - 1), y = v => height - 1 - (height - 3) * (top > 0 ? v / top : 0);
  let line = '', open = false, area = '', from = 0;
  values.forEach((value, i) => {
    if (value === null) {
      if (open) area += `L${x(i - 1)},${height} L${x(from)},${height} Z`;
      open = false;
      return;
    }
    const at = `${x(i).toFixed(1)},${y(value).toFixed(1)}`;
    line += (open ? 'L' : 'M') + at;
    area += (open ? 'L' : 'M') + at;
    if (!open) from = i;
    open = true;
  });
  if (open) area += `L${x(n - 1)},${height} L${x(from)},${height} Z`;
  svg.append(
    make('svg:path', null, { d: area, fill: color, opacity: .13 }),
    make('svg:path', null, { d: line, fill: 'none', stroke: color, 'stroke-width': 1.5, 'stroke-linejoin': 'round', 'vector-effect': 'non-scaling-stroke' }));
}

// The next round number: 1, 2, 2.5, 5 times a power of ten.
function round_up(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 2.5, 5, 10].find(m => m * power >= value * 0.999);
}

function chart(series) {
  const box = byId('chart');
  if (series.length < 2) {
    box.replaceChildren(make('div', 'A line appears here after half a minute.', { class: 'nothing' }));
    return;
  }
  const width = Math.max(box.clientWidth, 260), height = 220, left = 46, right = 6, top = 8, bottom = 22;
  const most = round_up(Math.max(...series.map(s => s.all)));
  const first = series[0].at, last = series[series.length - 1].at, seconds = last - first < 600;
  byId('chart-title').textContent = 'Lookups a second by outcome, last ' + ago(last - first);
  const x = at => left + (width - left - right) * (at - first) / Math.max(last - first, 1);
  const y = value => height - bottom - (height - top - bottom) * value / most;
  const svg = make('svg:svg', null, { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Lookups a second by outcome over the last hour' });
  for (let i = 0; i <= 4; i++) {
    const value = most * i / 4;
    svg.append(
      make('svg:line', null, { x1: left, x2: width - right, y1: y(value), y2: y(value), stroke: 'var(--line)' }),
      make('svg:text', short(value), { x: left - 8, y: y(value) + 4, 'text-anchor': 'end' }));
  }
  const spaces = width > 700 ? 6 : 3;
  for (let i = 0; i <= spaces; i++) {
    const at = first + (last - first) * i / spaces;
    svg.append(make('svg:text', clock(at, seconds), { x: x(at), y: height - 5, 'text-anchor': i === 0 ? 'start' : i === spaces ? 'end' : 'middle' }));
  }
  const base = series.map(() => 0);
  for (const outcome of OUTCOMES) {
    const under = series.map((s, i) => `${x(s.at).toFixed(1)},${y(base[i]).toFixed(1)}`);
    series.forEach((s, i) => { base[i] += s[outcome.name]; });
    const over = series.map((s, i) => `${x(s.at).toFixed(1)},${y(base[i]).toFixed(1)}`);
    svg.append(make('svg:path', null, { d: 'M' + over.join('L') + 'L' + under.reverse().join('L') + 'Z', fill: outcome.color, opacity: .82 }));
  }
  const mark = make('svg:line', null, { y1: top, y2: height - bottom, stroke: 'var(--ink)', opacity: .35, visibility: 'hidden' });
  svg.append(mark);
  const tip = make('div', null, { id: 'tip' });
  tip.hidden = true;
  const show = px => {
    hover = px;
    if (px === null) { tip.hidden = true; mark.setAttribute('visibility', 'hidden'); return; }
    const at = first + (px - left) / (width - left - right) * (last - first);
    const s = series.reduce((best, one) => Math.abs(one.at - at) < Math.abs(best.at - at) ? one : best);
    mark.setAttribute('x1', x(s.at)); mark.setAttribute('x2', x(s.at)); mark.setAttribute('visibility', 'visible');
    tip.replaceChildren(make('div', clock(s.at, seconds) + (s.ratio === null ? '' : ', ' + (100 * s.ratio).toFixed(1) + ' % hits')),
      ...OUTCOMES.map(o => make('div', `${short(s[o.name])} /s ${o.label}`)));
    tip.hidden = false;
    const at_right = x(s.at) > width / 2;
    tip.style.left = at_right ? '' : x(s.at) + 12 + 'px';
    tip.style.right = at_right ? width - x(s.at) + 12 + 'px' : '';
  };
  svg.addEventListener('pointermove', event => {
    const box = svg.getBoundingClientRect();
    show(Math.min(Math.max((event.clientX - box.left) * width / box.width, left), width - right));
  });
  svg.addEventListener('pointerleave', () => show(null));
  box.replaceChildren(svg, tip);
  if (hover !== null) show(Math.min(hover, width - right));
}

// columns: { head, of: row -> text or element, class }
function table(box, rows, columns, nothing) {
  if (rows.length === 0) {
    box.replaceChildren(make('div', nothing, { class: 'nothing' }));
    return;
  }
  const head = make('tr', columns.map(c => make('th', c.head || '', { scope: 'col', class: (c.class || '').replace('soft', '') })));
  const body = rows.map(row => make('tr', columns.map(c => {
    const content = c.of(row), cell = make('td', content, { class: c.class || '' });
    if (c.title) cell.title = c.title(row);
    return cell;
  })));
  box.replaceChildren(make('div', make('table', [make('thead', head), make('tbody', body)]), { class: 'scroll' }));
}

function bar(share, color) {
  const element = make('b');
  element.style.width = share > 0 ? `max(1.5px, ${100 * share}%)` : '0';
  if (color) element.style.background = color;
  return element;
}

const LIVES = { 0: 'expired', 10: 'up to 10 s', 60: 'up to 1 min', 300: 'up to 5 min', 900: 'up to 15 min', 3600: 'up to 1 h', 21600: 'up to 6 h',
  86400: 'up to a day', '+Inf': 'longer' };

function shares(box, list, label, color) {
  const all = list.reduce((sum, one) => sum + one.entries, 0), most = Math.max(...list.map(one => one.entries), 1);
  table(box, all > 0 ? list : [], [
    { head: '', of: label },
    { head: '', class: 'bar', of: one => bar(one.entries / most, color && color(one)) },
    { head: 'answers', of: one => short(one.entries) },
    { head: 'share', class: 'soft', of: one => percent(one.entries, all) },
    { head: 'bytes each', class: 'soft', of: one => one.entries > 0 ? (one.bytes / one.entries).toFixed(0) : '–' },
  ], 'Nothing is kept yet, or it has not been counted yet.');
}

function figure(id, value, unit) {
  byId(id).replaceChildren(value, ...(unit ? [make('small', unit)] : []));
}

const name = { head: 'name', class: 'name', of: row => row[3], title: row => row[3] };
const type = { head: 'type', class: 'soft', of: row => row[2] };

const REASONS = {
  host: 'skipped by a rule', query_malformed: 'malformed query', not_query: 'not a query', qdcount: 'not one question', qtype: 'type never cached',
  qclass: 'class not IN', records: 'records in the query', trailing: 'bytes after the query', edns_version: 'EDNS version', key_too_long: 'key too long',
  response_malformed: 'malformed response', mismatch: 'another question', truncated: 'truncated', rcode: 'rcode never kept', ttl_zero: 'TTL 0',
  ttl_short: 'below minTTL', no_soa: 'negative without SOA', failure_off: 'failures off', too_large: 'too large', poorer: 'no signatures, better is here',
  failure: 'failure, usable data is here', purged: 'purged meanwhile', ecs: 'wrong client subnet', complex: 'too complex', no_memory: 'no memory',
};
const reason = name => REASONS[name] || name.replaceAll('_', ' ');

function show() {
  const caches = latest.caches;
  byId('none').hidden = caches.length > 0;
  byId('all').hidden = caches.length === 0;
  byId('version').textContent = 'version ' + latest.version;
  const cache = caches.find(one => one.name === chosen) || caches[0];
  byId('tabs').replaceChildren(...(caches.length < 2 ? [] : caches).map(one => {
    const button = make('button', one.name, { type: 'button', 'aria-pressed': one === cache });
    button.addEventListener('click', () => { chosen = one.name; history.replaceState(null, '', '#' + chosen); show(); });
    return button;
  }));
  if (!cache) { for (const id of ['survey', 'sum', 'snapshot']) byId(id).textContent = ''; return; }
  const s = cache.stats, series = steps(histories.get(cache.id).points);
  document.title = 'sardine: ' + cache.name;

  // Now: what happened since the last look, or in the last step.
  const old = before && before.caches.find(one => one.id === cache.id);
  const fill = stats => ({ ...stats, other: stats.cache_only_misses + stats.waits });
  const now = old ? step({ ...fill(old.stats), at: before.at }, { ...fill(s), at: latest.at }) : series[series.length - 1];
  const asked = s.hits + s.stale + s.misses + s.refresh + s.cache_only_misses;
  figure('ratio', now && now.ratio !== null ? (100 * now.ratio).toFixed(1) : asked > 0 ? (100 * (s.hits + s.stale) / asked).toFixed(1) : '–', asked > 0 ? '%' : '');
  byId('ratio-under').textContent = asked > 0 ? percent(s.hits + s.stale, asked) + ' since the start' : 'no lookups yet';
  spark(byId('ratio-spark'), series.map(one => one.ratio), 1, 'var(--hit)');
  figure('rate', now ? short(now.all) : '–', '');
  byId('rate-under').textContent = number(s.lookups) + ' since the start';
  spark(byId('rate-spark'), series.map(one => one.all), Math.max(...series.map(one => one.all), 1), 'var(--hit)');
  figure('entries', short(s.entries), s.max_entries > 0 ? 'of ' + short(s.max_entries) : '');
  byId('entries-under').textContent = s.evicted + s.expired + s.expunged > 0
    ? `${short(s.evicted)} evicted, ${short(s.expired)} expired` : 'nothing had to go yet';
  byId('entries-meter').style.width = (s.max_entries > 0 ? 100 * s.entries / s.max_entries : 0) + '%';
  const [used, unit] = bytes(s.bytes), [limit, limit_unit] = bytes(s.max_bytes);
  figure('memory', used, `${unit} of ${limit} ${limit_unit}`);
  byId('memory-under').textContent = s.entries > 0
    ? `${(s.bytes / s.entries).toFixed(0)} bytes an entry, ${(s.entry_bytes / s.entries).toFixed(0)} in the answer` : 'empty';
  byId('memory-meter').style.width = 100 * s.bytes / s.max_bytes + '%';

  byId('legend').replaceChildren(...OUTCOMES.map(o => {
    const mark = make('i');
    mark.style.background = o.color;
    return make('span', [mark, o.label, make('b', now ? short(now[o.name]) : '–')]);
  }));
  chart(series);

  const survey = cache.survey || { types: [], lives: [], rcodes: [] };
  const few = survey.types.slice(0, 9), rest = survey.types.slice(9);
  if (rest.length > 0)
    few.push({ label: 'other', entries: rest.reduce((n, one) => n + one.entries, 0), bytes: rest.reduce((n, one) => n + one.bytes, 0) });
  shares(byId('types'), few, one => one.label);
  shares(byId('lives'), survey.lives, one => LIVES[one.label] || one.label, one => one.label === '0' ? 'var(--stale)' : '');
  shares(byId('rcodes'), survey.rcodes, one => one.label, one => one.label === 'NOERROR' || one.label === 'NXDOMAIN' ? '' : 'var(--miss)');
  table(byId('top'), cache.top, [name, type, { head: 'queries', of: row => short(row[0]) },
    { head: 'hits', class: 'soft', of: row => percent(row[1], row[0]) }], 'Nobody has asked yet.');
  table(byId('misses'), cache.top_misses.filter(row => row[0] > 1), [name, type, { head: 'misses', of: row => short(row[0]) }], 'No name has missed often.');
  const lookups = s.lookups, inserts = s.stored + s.replaced + s.refreshed + s.refused;
  table(byId('reasons'), [...cache.reasons].sort((a, b) => b.n - a.n), [
    { head: 'reason', class: 'name', of: one => reason(one.name), title: one => one.name },
    { head: '', class: 'soft left', of: one => one.kind === 'bypass' ? 'query' : 'response' },
    { head: 'count', of: one => number(one.n) },
    { head: 'of all', class: 'soft', of: one => percent(one.n, one.kind === 'bypass' ? lookups : inserts) },
  ], 'Every query was looked up, every response was kept.');
  table(byId('refused'), cache.refused, [
    name, type,
    { head: 'reason', class: 'soft left', of: row => reason(row[1]) },
    { head: 'ago', of: row => ago(row[0]) },
  ], 'None.');
  byId('policy-panel').hidden = cache.policy.length === 0;
  table(byId('policy'), cache.policy, [{ head: 'what', of: one => one.label }, { head: 'count', of: one => number(one.n) }], '');
  const pools = cache.pools.map(pool => pool === '' ? 'the default pool' : pool).join(', ');
  byId('survey').textContent = `used by ${pools}` + (cache.survey ? `; answers counted ${clock(cache.survey.at)} in ${cache.survey.took.toFixed(2)} s` : '');
  byId('snapshot').textContent = cache.snapshot ? 'snapshot ' + cache.snapshot.text : '';
  byId('snapshot').className = cache.snapshot && cache.snapshot.failing ? 'failing' : '';
  byId('sum').textContent = `${number(s.inserts)} responses: ${short(s.stored)} new, ${short(s.replaced)} replaced, ${short(s.refreshed)} refreshed, ${short(s.refused)} not kept`;
}

async function poll() {
  const state = byId('state');
  try {
    const since = latest ? Math.min(...latest.caches.map(c => histories.get(c.id).since), Infinity) : 0;
    const response = await fetch(`${location.origin}${path}/data?since=${Number.isFinite(since) ? since : 0}`, { cache: 'no-store' });
    if (!response.ok) throw new Error(`dnsdist says ${response.status}`);
    const data = await response.json();
    data.at = performance.now() / 1000;
    for (const cache of data.caches) remember(cache, data.columns, data.points);
    before = latest;
    latest = data;
    show();
    state.className = 'live';
    state.lastChild.textContent = 'live, ' + new Date().toLocaleTimeString([], { hourCycle: 'h23' });
  } catch (error) {
    state.className = 'lost';
    state.lastChild.textContent = error.message;
  }
  setTimeout(poll, document.hidden ? 4 * POLL : POLL);
}
addEventListener('resize', () => latest && show());
poll();
]==]

return page
