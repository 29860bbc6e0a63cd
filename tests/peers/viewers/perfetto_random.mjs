// SPDX-License-Identifier: Apache-2.0
//
// Random programs through Perfetto's trace processor:
//
//     node perfetto_random.mjs FOLDER MTPROF MAKE_RANDOM_TRACES FIRST COUNT
//
// FOLDER: see perfetto_engine.mjs. Each program is exported as .pftrace and as Chrome JSON.
//
// .pftrace: no error, loss or dropped slice; as many slices of each category as `mtprof export csv` has events, and
// the host's sums equal to the nanosecond. Work of a queue that overlaps, or was reported out of order, is shown shorter
// (`clamped`), and annotations reach as far as the work that is shown: sums of the device are at most ours.
//
// JSON: no error or loss; the host's slices as above, sums to one nanosecond a slice, since a time is a double of
// microseconds, which Perfetto cuts off at the nanosecond. So of slices of the device that touch it may drop one as
// overlapping; annotations, which are drawn a nanosecond longer on both sides, touch often; and it takes queue 0 of
// device 1 (pid 1, tid 0 in the layout of torch's files) for queue 1. There the device's slices are not compared, and
// the statistic of dropped slices is not: the counts are.
//
// An arrow that the program itself began twice, or outside of every slice, cannot be drawn: the two statistics of that
// are left out.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { engines } from './perfetto_engine.mjs';
import { CATEGORIES, DEVICE, parseCsv } from './trace_csv.mjs';

const [assets, mtprof, maker, first, count] = process.argv.slice(2);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'random-'));
const open = await engines(assets, path.join(folder, 'said'));
execFileSync(maker, [folder, first, count, '400']);
let passed = 0;
let failed = 0;
let touching = 0;

function run(...words) {
  try {
    return execFileSync(mtprof, words, { maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'ignore'] });
  } catch (error) {
    if (error.status === 4) return error.stdout; // the trace is damaged, and what is left was written
    throw error;
  }
}

function touches(spans) {
  spans.sort((a, b) => a.start - b.start || a.end - b.end);
  let end = -Infinity;
  return spans.some((span) => {
    const close = span.start <= end + 3;
    end = Math.max(end, span.end);
    return close;
  });
}

function ours(trace) {
  const found = {};
  const queues = new Map();
  for (const event of parseCsv(run('export', '-q', '-o', '-', 'csv', trace).toString('utf8'))) {
    const category = CATEGORIES[event.kind];
    if (!category) continue;
    if (DEVICE.has(category) && event.kind !== 'annotation') {
      const device = event.device.match(/\d+$/)?.[0] ?? '0';
      const queue = `${device} ${event.thread === '0' ? device : event.thread}`;
      if (!queues.has(queue)) queues.set(queue, []);
      queues.get(queue).push({ start: Number(event.start_ns), end: Number(event.end_ns) });
    }
    const sum = found[category] ??= { n: 0, ns: 0 };
    sum.n++;
    sum.ns += Number(event.duration_ns);
  }
  return { found, close: [...queues.values()].some(touches) };
}

const PROGRAM = ['flow_no_enclosing_slice', 'flow_duplicate_id'];

async function theirs(engine, wrong, form) {
  const complaints = await engine.rows("select name, value from stats where value != 0 and severity in ('error', 'data_loss')");
  for (const row of complaints) {
    const dropped = form === 'chrome' && row.name === 'slice_drop_overlapping_complete_event';
    if (!PROGRAM.includes(row.name) && !dropped) wrong.push(`${form}: ${row.name} ${row.value}`);
  }
  const open = await engine.rows('select count(*) as n from slice where dur < 0');
  if (Number(open[0].n)) wrong.push(`${form}: ${open[0].n} slices do not end`);
  const found = {};
  for (const row of await engine.rows('select category, count(*) as n, sum(dur) as ns from slice group by category')) {
    const category = /_runtime$/.test(row.category ?? '') ? 'runtime' : row.category;
    found[category] = { n: Number(row.n), ns: Number(row.ns) };
  }
  return found;
}

for (let seed = Number(first); seed < Number(first) + Number(count); seed++) {
  const trace = path.join(folder, `r${seed}.mtt`);
  const { found: wanted, close } = ours(trace);
  touching += close;
  const wrong = [];
  const frames = [];
  for (const form of ['perfetto', 'chrome']) {
    const found = await theirs(await open(new Uint8Array(run('export', '-q', '-o', '-', form, trace))), wrong, form);
    frames.push(found.python_function?.n ?? 0);
    for (const category of new Set(Object.values(CATEGORIES))) {
      const [a, b] = [wanted[category] ?? { n: 0, ns: 0 }, found[category] ?? { n: 0, ns: 0 }];
      const device = DEVICE.has(category);
      const slack = form === 'chrome' ? a.n : 0;
      if (device && form === 'chrome' && (close || category === 'gpu_user_annotation') && b.n <= a.n) continue;
      if (a.n !== b.n) wrong.push(`${form}: ${b.n} slices of ${category}, not ${a.n}`);
      else if (category !== 'gpu_user_annotation' && (b.ns > a.ns + slack || (!device && b.ns < a.ns - slack))) wrong.push(`${form}: ${category} takes ${b.ns} ns, not ${a.ns}`);
    }
  }
  if (frames[0] !== frames[1]) wrong.push(`${frames[0]} functions in .pftrace, ${frames[1]} in JSON`);
  passed += wrong.length === 0;
  failed += wrong.length > 0;
  if (wrong.length) console.log(`FAILED seed ${seed}: ${wrong.join('; ')}`);
  fs.rmSync(trace);
}
fs.rmSync(folder, { recursive: true, force: true });
console.log(`passed over: the device's slices of ${touching} of ${count} JSON files, whose work touches`);
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed > 0 ? 1 : 0);
