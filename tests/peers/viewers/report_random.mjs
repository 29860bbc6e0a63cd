// SPDX-License-Identifier: Apache-2.0
//
// report_random.mjs NODE_MODULES CHROMIUM MTPROF MAKE_RANDOM_TRACES FIRST COUNT
//
// Reports of random programs with hostile names, each compared with the one before, in a real browser at three widths
// in turn: no script of the trace runs, no request, no message, no further element, nothing wider than the window.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, program, mtprof, maker, first, count] = process.argv.slice(2);
const { chromium } = (await import(pathToFileURL(path.join(modules, 'playwright-core', 'index.js')))).default;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'random-'));
execFileSync(maker, [folder, first, count, '300']);
const browser = await chromium.launchPersistentContext(path.join(folder, 'profile'), {
  executablePath: program, args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
});
const page = await browser.newPage();
let heard = [];
page.on('console', (message) => heard.push(message.text()));
page.on('pageerror', (error) => heard.push(error.message));
page.on('dialog', (dialog) => { heard.push(dialog.message()); dialog.dismiss(); });
page.on('request', (request) => { if (!request.url().startsWith('file:') || !request.url().endsWith('.html')) heard.push(request.url()); });
const KNOWN = new Set('html head meta title style body h1 h2 h3 p a b i nav section div span canvas input button table thead tbody tr th td ul li noscript script label select option'.split(' '));
let passed = 0;
let failed = 0;
let before = path.join(folder, `r${first}.mtt`);
for (let seed = Number(first); seed < Number(first) + Number(count); seed++) {
  const trace = path.join(folder, `r${seed}.mtt`);
  const file = path.join(folder, `r${seed}.html`);
  const wrong = [];
  heard = [];
  try {
    execFileSync(mtprof, ['report', '-q', '--html', file, '--baseline', before, trace], { stdio: ['ignore', 'ignore', 'pipe'] });
  } catch (error) {
    if (error.status !== 4) wrong.push(`mtprof report: ${error.stderr}`); // 4: the trace is damaged, and there is a page
  }
  await page.setViewportSize({ width: [1280, 800, 390][seed % 3], height: 800 });
  await page.goto(pathToFileURL(file).href);
  const shown = await page.evaluate(() => ({
    stolen: window.stolen, tags: [...new Set([...document.querySelectorAll('*')].map((e) => e.localName))],
    scripts: document.scripts.length, width: document.documentElement.scrollWidth, inner: innerWidth,
    rows: document.querySelectorAll('#rows tr').length, seen: DATA.rows.length,
    handlers: [...document.querySelectorAll('*')].flatMap((e) => [...e.attributes]).filter((a) => /^on/i.test(a.name)).length,
    parts: DATA.parts.reduce((sum, part) => sum + part[1], 0), wall: DATA.wall,
  }));
  if (heard.length) wrong.push(heard.join('; '));
  if (shown.stolen !== undefined || shown.scripts !== 1 || shown.handlers) wrong.push(`a name ran: ${JSON.stringify(shown)}`);
  const strange = shown.tags.filter((tag) => !KNOWN.has(tag));
  if (strange.length) wrong.push(`elements ${strange.join(', ')}`);
  if (shown.width > shown.inner) wrong.push(`${shown.width} px wide of ${shown.inner}`);
  if (shown.rows !== Math.min(shown.seen, 40)) wrong.push(`${shown.rows} rows of ${shown.seen}`);
  if (Math.abs(shown.parts - shown.wall) > shown.wall / 1000) wrong.push(`parts are ${shown.parts} of ${shown.wall} ns`);
  passed += wrong.length === 0;
  failed += wrong.length > 0;
  if (wrong.length) console.log(`FAILED seed ${seed}: ${wrong.join('; ')}`);
  fs.rmSync(file, { force: true });
  before = trace;
}
await browser.close();
fs.rmSync(folder, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed ? 1 : 0);
