// SPDX-License-Identifier: Apache-2.0
//
// The numbers of each view of the report's page, DATA as its script has them, beside those of the command:
//
//     steps and parts    mtprof explain --json, --step N
//     rows               mtprof report --json -g shapes,module
//     timelines          mtprof export csv
//     flame graph        mtprof export folded, by host and by device time
//     memory             mtprof memory --json
//     health             mtprof report --json
//     comparison         mtprof diff --json
import { spawnSync } from 'node:child_process';
import { parseCsv } from './trace_csv.mjs';

// What a command prints. 3: diff found something slower; 4: the trace is damaged, and this is what is left.
export function output(mtprof, ...words) {
  const run = spawnSync(mtprof, words, { maxBuffer: 1 << 29 });
  if (![0, 3, 4].includes(run.status)) throw new Error(`mtprof ${words.join(' ')}: ${run.stderr}`);
  return run.stdout.toString('utf8');
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const sum = (numbers) => numbers.reduce((all, n) => all + n, 0);
const near = (a, b, slack) => Math.abs(a - b) <= slack;

const KEPT = 240; // bytes of a name, then it is cut
const whole = (name) => Buffer.byteLength(name) <= KEPT;

function checkSteps(tell, data, mtprof, trace) {
  const explained = JSON.parse(output(mtprof, 'explain', '--json', '--limit', 'all', trace));
  const parts = Object.fromEntries(data.parts.map(([name, ns]) => [name, ns]));
  tell('parts', data.parts.every(([name, ns]) => near(ns, explained.parts[name] * 1e9, 1)), JSON.stringify(parts));
  tell('the wall time', near(data.wall, explained.trace.wall_s * 1e9, 1), data.wall);
  tell('what adds up to it', near(sum(Object.values(parts)), data.wall, data.wall / 1000), sum(Object.values(parts)));
  const ordinary = data.steps.filter((step) => step[0] >= 0 && step[3] === 0).slice(0, 5);
  for (const step of data.steps) {
    if (!near(sum(step.slice(4)), step[2], Math.max(step[2] / 1000, 1))) tell(`parts of step ${step[0]}`, false, step.join());
  }
  for (const step of ordinary) {
    const alone = JSON.parse(output(mtprof, 'explain', '--json', '--step', String(step[0]), trace));
    tell(`step ${step[0]}`, near(step[2], alone.trace.wall_s * 1e9, 1)
      && data.parts.every(([name], k) => near(step[4 + k], alone.parts[name] * 1e9, 1)), step.join());
  }
}

const rowOf = (row) => [row.key, row.input_shapes, row.module, row.device_type === 'CPU' ? 0 : row.is_user_annotation ? 2 : 1,
  row.count, row.self_cpu_time_total_ns, row.cpu_time_total_ns, row.self_device_time_total_ns, row.device_time_total_ns,
  row.self_cpu_memory_usage + row.self_device_memory_usage, row.flops];

function checkRows(tell, data, report) {
  const all = new Map();
  const put = (row, by) => all.set(JSON.stringify(row), (all.get(JSON.stringify(row)) ?? 0) + by);
  const short = (row) => row.slice(0, 3).every(whole);
  report.rows.map(rowOf).filter(short).forEach((row) => put(row, 1));
  data.rows.filter((row) => short(row) && !row.slice(0, 3).some((text) => text.endsWith('…'))).forEach((row) => put(row, -1));
  const wrong = [...all].filter(([, n]) => n < 0 || (n > 0 && data.rows_seen === data.rows.length)).map(([row]) => row);
  tell('rows of the table', wrong.length === 0, wrong.slice(0, 3).join('; '));
  tell('how many rows', data.rows_seen === report.rows.length, data.rows_seen);
  const work = report.rows.map(rowOf).filter((row) => row[3] === 1);
  tell('self time of the device', data.self_device === sum(work.map((row) => row[7])), data.self_device);
  tell('self time of the host', data.self_cpu === (report.total?.self_cpu_time_total_ns ?? 0), data.self_cpu);
}

const POINTS = new Set(['annotation', 'launch', 'memory']);

// Every drawn event is one of the CSV, and what is not drawn is shorter than the shortest that is. The CSV has also the
// ops that torch takes for one with an op around them (`collapsed`).
function checkTimelines(tell, data, events, begin, collapsed) {
  const starts = new Map(data.steps.map((step) => [step[0], step[1] + begin]));
  for (const line of data.timelines) {
    const from = starts.get(line.step);
    const inside = events.filter((event) => event.start >= from && event.start < from + line.span && !POINTS.has(event.kind));
    const want = new Map();
    for (const event of inside) {
      const key = `${event.start - from} ${event.end - event.start}`;
      want.set(key, [...(want.get(key) ?? []), event.name]);
    }
    const others = [];
    for (let i = 0; i < line.events.length; i += 6) {
      const names = want.get(`${line.events[i + 1]} ${line.events[i + 2]}`) ?? [];
      const name = data.names[line.events[i + 3]];
      const at = names.findIndex((n) => n === name || name.endsWith('…') || !whole(n));
      if (at < 0) others.push(`${name} ${line.events.slice(i, i + 6)}`); else names.splice(at, 1);
    }
    const left = [...want].filter(([key, names]) => names.length && Number(key.split(' ')[1]) > line.least);
    tell(`events of step ${line.step}`, others.length === 0 && sum(left.map(([, names]) => names.length)) <= line.apart + collapsed && line.events.length === 6 * line.kept
      && line.seen + line.apart <= inside.length && line.seen + line.apart >= inside.length - collapsed,
      `${others.length} of ${line.kept} are others (${others[0]}), ${left.length} are missing (${left[0]}), ${line.seen} and ${line.apart} of ${inside.length} were seen`);
  }
}

// The sums of all paths, and of the paths by where they begin.
function checkFlame(tell, data, text, column, what) {
  const want = new Map();
  let total = 0;
  for (const line of text.split('\n').filter(Boolean)) {
    const cut = line.lastIndexOf(' ');
    const first = line.slice(0, cut).split(';')[0];
    want.set(first, (want.get(first) ?? 0) + Number(line.slice(cut + 1)));
    total += Number(line.slice(cut + 1));
  }
  const n = data.flame_nodes.length / 6;
  const found = new Map();
  for (let i = 1; i < n; i++) {
    const node = data.flame_nodes.slice(i * 6, i * 6 + 6);
    if (node[0] === 0) found.set(data.flame_names[node[1]], (found.get(data.flame_names[node[1]]) ?? 0) + node[column]);
  }
  const root = n ? data.flame_nodes[column] : 0;
  tell(`the flame graph's ${what}`, root === total, `${root} of ${total} ns`);
  const wrong = [...found].filter(([name, ns]) => want.has(name) && ns !== want.get(name));
  tell(`the flame graph's first row, ${what}`, wrong.length === 0, JSON.stringify(wrong.slice(0, 2)));
}

function checkMemory(tell, data, memory, begin) {
  const shown = data.memory.map((device) => [device.device, device.peak, device.peak_at]);
  const name = (peak) => peak.device_type + (peak.device_index >= 0 ? ` ${peak.device_index}` : '');
  for (const peak of memory.peaks) {
    const mine = shown.find(([device]) => device === name(peak));
    tell(`the peak of ${name(peak)}`, mine !== undefined, JSON.stringify(shown));
    const held = data.peak_parts?.device.replace(':', ' ').toUpperCase() === name(peak).toUpperCase() ? data.peak_parts : null;
    if (held !== null && peak.categories) {
      tell('what the peak was made of', same(Object.values(peak.categories).sort(), held.parts.map((part) => part[1]).sort())
        && peak.bytes === held.total, JSON.stringify([peak, held]));
    } else if (mine && !peak.categories && peak.exact) {
      tell(`bytes of the peak of ${name(peak)}`, mine[1] === peak.bytes && mine[2] === peak.at_ns - begin, JSON.stringify([mine, peak]));
    }
  }
}

const HEALTH = { 'events recorded': 'begins', 'events lost': 'lost', 'events left out by the limit of the overhead': 'unrecorded',
  'events without their payloads, for the limit': 'without_payload', 'changes of what is recorded, for the limit': 'limit_changes',
  'events that ring mode discarded': 'evicted', 'scopes cut off by a stop': 'truncated', launches: 'launches',
  'launches without device work': 'unmatched', 'texts shortened': 'texts_cut', threads: 'threads' };

function checkHealth(tell, data, health) {
  const wrong = data.health.filter(([name, n]) => HEALTH[name] !== undefined && health[HEALTH[name]] !== n);
  const known = data.health.filter(([name]) => HEALTH[name] !== undefined).length;
  tell('health', wrong.length === 0 && known === Object.keys(HEALTH).length && data.pair_cost_ps === health.pair_cost_ps, JSON.stringify(wrong));
}

function checkComparison(tell, shown, changed) {
  const side = (part) => (part ? [part.time_ns, part.calls, part.memory_bytes] : [null, null, null]);
  const want = new Map(changed.rows.map((row) => [`${row.name}|${row.group}|${row.clock}`, row]));
  const close = (a, b) => (a === null || b === null ? a === b : near(a, b, Math.max(Math.abs(b) * 1e-6, 1)));
  const wrong = shown.rows.filter((row) => {
    const [name, group, clock, verdict, ...numbers] = row;
    const theirs = want.get(`${name}|${group}|${clock ? 'device' : 'host'}`);
    if (theirs === undefined) return !name.endsWith('…') && whole(name);
    const all = [...side(theirs.a), ...side(theirs.b)];
    return verdict !== theirs.verdict || !all.every((n, i) => close(numbers[i], n));
  });
  tell('numbers of the comparison', wrong.length === 0, JSON.stringify(wrong[0]));
  tell('counts of the comparison', same(shown.counts, changed.counts) || Object.keys(shown.counts).every((key) => shown.counts[key] === changed.counts[key]),
    JSON.stringify(shown.counts));
}

// tell(what, holds, found). baseline: the other trace, or null.
export function compareNumbers(mtprof, trace, baseline, data, tell) {
  const report = JSON.parse(output(mtprof, 'report', '--json', '-g', 'shapes,module', trace));
  const info = JSON.parse(output(mtprof, 'info', '--json', trace));
  const begin = info.start_ns ?? 0;
  const events = parseCsv(output(mtprof, 'export', '-q', '-o', '-', 'csv', trace)).filter((event) => event.end_ns !== '' && event.duration_ns !== '')
    .map((event) => ({ name: event.name, kind: event.kind, start: Number(event.start_ns), end: Number(event.end_ns) }));
  checkSteps(tell, data, mtprof, trace);
  checkRows(tell, data, report);
  checkTimelines(tell, data, events, begin, info.health.collapsed);
  checkFlame(tell, data, output(mtprof, 'export', '-q', '-o', '-', 'folded', trace), 3, 'host time');
  if (data.device) {
    checkFlame(tell, data, output(mtprof, 'export', '-q', '-o', '-', '--metric', 'self_device_time_total', 'folded', trace), 4, 'device time');
  }
  if (data.memory.length) checkMemory(tell, data, JSON.parse(output(mtprof, 'memory', '--json', trace)), begin);
  checkHealth(tell, data, report.health);
  if (baseline !== null) checkComparison(tell, data.baseline, JSON.parse(output(mtprof, 'diff', '--json', baseline, trace)));
}
