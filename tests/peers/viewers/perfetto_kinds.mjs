// SPDX-License-Identifier: Apache-2.0
//
// A trace of each kind that the tests write, through Perfetto's trace processor:
//
//     node perfetto_kinds.mjs FOLDER MTPROF TRACE...
//
// FOLDER: see perfetto_engine.mjs. A .mtt, or a Chrome trace that we did not write, is exported as .pftrace and as Chrome
// JSON first, and what SQL says of these is compared with `mtprof export csv` and `mtprof info`: slices by category,
// the host's nanoseconds, names of the process and of threads, counters with their sums, arrows, the tracks of queues,
// and slices with shapes and sequence numbers. Of a .pftrace or .job.json (ranks merged into one): no error, loss or
// dropped slice, and each process and each thread with slices has a name.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { engines } from './perfetto_engine.mjs';
import { CATEGORIES, DEVICE, parseCsv } from './trace_csv.mjs';

const [assets, mtprof, ...traces] = process.argv.slice(2);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'kinds-'));
BigInt.prototype.toJSON = function () { return Number(this); }; // for what is told
const open = await engines(assets, path.join(folder, 'said'));
let passed = 0;
let failed = 0;

function tell(what, holds, found) {
  passed += holds;
  failed += !holds;
  if (!holds) console.log(`FAILED ${what}: ${found}`);
}

function run(...words) {
  try {
    return execFileSync(mtprof, words, { maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'ignore'] });
  } catch (error) {
    if (error.status === 4) return error.stdout; // the trace is damaged, and what is left was written
    throw error;
  }
}

// The program's own: an arrow that it begins twice, or outside of every slice.
const PROGRAM = ['flow_no_enclosing_slice', 'flow_duplicate_id'];
const NAMES = `select distinct process.pid, process.name as process, thread.tid, thread.name as thread from slice
  join thread_track on slice.track_id = thread_track.id join thread using (utid) left join process using (upid)`;

async function sound(engine, what, passed_over = []) {
  const said = await engine.rows("select name, value from stats where value != 0 and severity in ('error', 'data_loss')");
  const left = said.filter((row) => ![...PROGRAM, ...passed_over].includes(row.name));
  tell(`complaints about ${what}`, left.length === 0, left.map((row) => `${row.name} ${row.value}`).join('; '));
  const never = await engine.rows('select count(*) as n from slice where dur < 0');
  tell(`slices of ${what} that do not end`, Number(never[0].n) === 0, never[0].n);
  const names = await engine.rows(NAMES);
  // What torch's file has on thread 0 of process 0 ("Activity Buffer Request") has no name there either.
  const bare = names.filter((row) => (!row.process || !row.thread) && (Number(row.pid) || Number(row.tid)));
  tell(`threads of ${what} without a name`, bare.length === 0, JSON.stringify(bare.map((row) => `${row.pid} ${row.tid}`)));
  return names;
}

function group(rows, key, value = () => 0) {
  const found = {};
  for (const row of rows) {
    const sum = found[key(row)] ??= { n: 0, sum: 0 };
    sum.n++;
    sum.sum += Number(value(row));
  }
  return found;
}

// scopes: their time in the table. Where tasks take turns their scopes overlap on the thread; the CSV cuts them, and the
// pictures have a track for each task.
async function compare(trace, form, wanted, info, scopes) {
  const what = `${path.basename(trace)} as ${form}`;
  const engine = await open(new Uint8Array(run('export', '-q', '-o', '-', form, trace)));
  const chrome = form === 'chrome';
  // A time of JSON is a double of microseconds, cut off at the nanosecond: what touches may overlap then.
  const names = await sound(engine, what, chrome ? ['slice_drop_overlapping_complete_event'] : []);
  const count = async (sql) => Number((await engine.rows(sql))[0].n);

  const found = {};
  for (const row of await engine.rows('select category, count(*) as n, sum(dur) as ns from slice group by category')) {
    found[/_runtime$/.test(row.category ?? '') ? 'runtime' : row.category] = { n: Number(row.n), ns: Number(row.ns) };
  }
  const slices = group(wanted.filter((row) => CATEGORIES[row.kind]), (row) => CATEGORIES[row.kind], (row) => row.duration_ns);
  for (const [category, { n, sum }] of Object.entries(slices)) {
    const mine = found[category] ?? { n: 0, ns: 0 };
    if (chrome && category === 'gpu_user_annotation') continue; // they touch: perfetto_random.mjs
    const most = chrome && DEVICE.has(category) ? 2 : 0;
    tell(`slices of ${category} in ${what}`, Math.abs(mine.n - n) <= most, `${mine.n}, not ${n}`);
    const slack = chrome ? n : 0;
    const times = [sum, ...(category === 'user_annotation' ? [scopes] : [])];
    if (!DEVICE.has(category)) tell(`time of ${category} in ${what}`, times.some((ns) => Math.abs(mine.ns - ns) <= slack), `${mine.ns} ns, not ${times}`);
  }
  const functions = wanted.filter((row) => row.kind === 'function').length;
  if (functions) tell(`functions of ${what}`, (found.python_function?.n ?? 0) >= functions, `${found.python_function?.n}, not ${functions}`);

  for (const track of info.tracks.filter((each) => each.kind === 'thread' && each.name && each.events)) {
    tell(`the thread "${track.name}" of ${what}`, names.some((row) => Number(row.tid) === track.tid && row.thread.includes(track.name)),
      JSON.stringify(names.filter((row) => Number(row.tid) === track.tid)));
  }
  tell(`the process of ${what}`, info.pid === 0 || names.length === 0 || names.some((row) => Number(row.pid) === info.pid), JSON.stringify(names[0]));

  const counters = group(wanted.filter((row) => row.kind === 'counter'), (row) => row.name, (row) => row.value);
  const drawn = {};
  for (const row of await engine.rows(`select t.name, count(*) as n, sum(c.value) as sum from counter c
    join counter_track t on c.track_id = t.id group by t.name`)) {
    drawn[row.name] = { n: Number(row.n), sum: Number(row.sum) };
  }
  for (const [name, { n, sum }] of Object.entries(counters)) {
    const key = [name, `${name} value`, `${name} ${name}`].find((each) => drawn[each]);
    tell(`the counter "${name}" of ${what}`, drawn[key]?.n === n && Math.abs(drawn[key].sum - sum) <= Math.abs(sum) * 1e-9, JSON.stringify([drawn[key], n, sum]));
  }
  const work = wanted.filter((row) => ['kernel', 'copy', 'set'].includes(row.kind));
  const queues = new Set(work.map((row) => `${row.device} ${row.thread}`)).size;
  const tracks = await count("select count(distinct track_id) as n from slice where category in ('kernel', 'gpu_memcpy', 'gpu_memset')");
  tell(`tracks of queues of ${what}`, tracks === queues, `${tracks}, not ${queues}`);

  // Of ops without a length, a hundred in the same nanosecond, the trace processor loses arguments of JSON.
  const having = async (key) => count(`select count(distinct s.id) as n from slice s join args a on s.arg_set_id = a.arg_set_id where s.dur > 0 and ${key}`);
  const shapes = wanted.filter((row) => row.input_types && Number(row.duration_ns) > 0).length;
  const types = await having(chrome ? "a.flat_key = 'args.Input type'" : "a.key = 'debug.input_types'");
  tell(`ops with types of their inputs in ${what}`, types === shapes, `${types}, not ${shapes}`);
  const sequences = wanted.filter((row) => CATEGORIES[row.kind] && row.sequence_number && Number(row.duration_ns) > 0).length;
  const numbers = await having(chrome ? "a.key = 'args.Sequence number' and a.int_value >= 0" : "a.key = 'debug.sequence_number'");
  tell(`ops with a sequence number in ${what}`, numbers === sequences, `${numbers}, not ${sequences}`);
  // A kernel that begins before its launch, by the device's clock, has no arrow in JSON.
  return count(`select count(*) as n from flow join slice s on flow.slice_out = s.id where coalesce(s.category, '') not in ('kernel', 'gpu_memcpy', 'gpu_memset')`);
}

for (const trace of traces) {
  if (/\.(pftrace|job\.json)$/.test(trace)) {
    const engine = await open(new Uint8Array(fs.readFileSync(trace)));
    await sound(engine, path.basename(trace));
    tell(`slices of ${path.basename(trace)}`, Number((await engine.rows('select count(*) as n from slice'))[0].n) > 0, 'there are none');
    continue;
  }
  const wanted = parseCsv(run('export', '-q', '-o', '-', 'csv', trace).toString('utf8'));
  const info = JSON.parse(run('info', '--json', trace));
  const rows = JSON.parse(run('report', '--json', trace)).rows.filter((row) => ['scope', 'step'].includes(row.kind) && row.device_type === 'CPU');
  const scopes = rows.reduce((all, row) => all + row.cpu_time_total_ns, 0);
  const arrows = [];
  for (const form of ['perfetto', 'chrome']) arrows.push(await compare(trace, form, wanted, info, scopes));
  const program = new Set(wanted.filter((row) => row.kind === 'flow').map((row) => row.name)).size;
  tell(`arrows of ${path.basename(trace)}`, arrows[0] === arrows[1] && (program === 0 || arrows[0] > 0), arrows.join(' and '));
}
fs.rmSync(folder, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);
