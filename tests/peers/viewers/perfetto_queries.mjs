// SPDX-License-Identifier: Apache-2.0
//
// What Perfetto draws of our files, asked of its trace processor:
//
//     node perfetto_queries.mjs FOLDER MTPROF WORK TRACE.mtt...
//
// FOLDER: see perfetto_engine.mjs. Each trace is exported to WORK as Chrome JSON and in Perfetto's own format. Of both:
// nothing is dropped or complained of; the process has a name; arrows join slices that have a length; the function a
// slice calls its parent is the next one outside. And both draw the same trees.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { engines } from './perfetto_engine.mjs';

const [folder, mtprof, work, ...traces] = process.argv.slice(2);
let passed = 0;
let failed = 0;

function tell(what, found, wanted) {
  const fine = JSON.stringify(found) === JSON.stringify(wanted);
  passed += fine;
  failed += !fine;
  if (!fine) console.log(`FAILED ${what}: found ${JSON.stringify(found)}, expected ${JSON.stringify(wanted)}`);
}

fs.rmSync(path.join(work, 'said'), { force: true });
const open = await engines(folder, path.join(work, 'said'));

const TREE = `select s.name, s.depth from slice s join thread_track t on s.track_id = t.id join thread using (utid)
  join process using (upid) where pid = `; // the host's threads
const FUNCTIONS = `select s.id, s.parent_id as around, extract_arg(s.arg_set_id, 'args.Python id') as mine,
  extract_arg(s.arg_set_id, 'args.Python parent id') as parent from slice s`;

function check_functions(what, rows) {
  const by_id = new Map(rows.map((row) => [row.id, row]));
  const known = new Set(rows.filter((row) => row.mine !== null).map((row) => row.mine));
  let wrong = 0;
  for (const row of rows) {
    if (row.mine === null || row.parent === null || !known.has(row.parent)) continue;
    let around = by_id.get(row.around);
    while (around && around.mine === null) around = by_id.get(around.around);
    wrong += around?.mine !== row.parent;
  }
  tell(`functions that are not inside their caller, of ${what}`, wrong, 0);
}

async function check(trace, form, suffix) {
  const file = path.join(work, path.basename(trace).replace(/\.mtt$/, suffix));
  const what = path.basename(file);
  execFileSync(mtprof, ['export', '-q', '-o', file, form, trace]);
  const engine = await open(new Uint8Array(fs.readFileSync(file)));
  const complaints = "select name, value from stats where value != 0 and severity in ('error', 'data_loss')";
  tell(`complaints about ${what}`, (await engine.rows(complaints)).map((row) => row.name), []);
  const pid = Number(JSON.parse(execFileSync(mtprof, ['info', '--json', trace])).pid);
  const names = await engine.rows(`select name from process where pid = ${pid}`);
  tell(`name of the process of ${what}`, names.filter((row) => row.name).length, 1);
  const arrows = await engine.rows(`select count(*) as n, sum(a.dur = 0 or b.dur = 0) as empty from flow
    join slice a on flow.slice_out = a.id join slice b on flow.slice_in = b.id`);
  tell(`arrows between slices without a length, of ${what}`, Number(arrows[0].empty ?? 0), 0);
  tell(`arrows of ${what}`, Number(arrows[0].n) > 0, true);
  check_functions(what, await engine.rows(FUNCTIONS));
  const instants = "s.name not in ('[memory]', 'Iteration Start: PyTorch Profiler', 'Record Window End')";
  const tree = await engine.rows(`${TREE}${pid} and ${instants} order by s.ts, s.depth`);
  return { tree: tree.map((row) => `${row.depth} ${row.name}`), arrows: Number(arrows[0].n) };
}

for (const trace of traces) {
  const json = await check(trace, 'chrome', '.json');
  const own = await check(trace, 'perfetto', '.pftrace');
  const differ = json.tree.findIndex((line, i) => line !== own.tree[i]);
  tell(`slices of ${path.basename(trace)} in both forms`, own.tree.length, json.tree.length);
  tell(`trees of ${path.basename(trace)}`, differ < 0 ? '' : own.tree[differ], differ < 0 ? '' : json.tree[differ]);
  tell(`arrows of ${path.basename(trace)} in both forms`, own.arrows, json.arrows);
}
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);
