// SPDX-License-Identifier: Apache-2.0
//
// report_long.mjs NODE_MODULES CHROMIUM MTPROF MAKE_LONG_TRACE EVENTS [MOST_MS]
//
// The report of a long trace: below 3 MB, no request, no message on the console, and what it does not draw is counted.
// Prints what it takes to make the page (time, memory of the process) and when the browser first paints it (the best of
// five, the browser's own paint timing). With MOST_MS a later paint is a failure.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, program, mtprof, maker, events, most] = process.argv.slice(2);
const { chromium } = (await import(pathToFileURL(path.join(modules, 'playwright-core', 'index.js')))).default;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'long-'));
let passed = 0;
let failed = 0;

function tell(what, holds, found) {
  passed += holds;
  failed += !holds;
  if (!holds) console.log(`FAILED ${what}: ${found}`);
}

const trace = path.join(folder, 'long.mtt');
const file = path.join(folder, 'long.html');
execFileSync(maker, [trace, events], { stdio: ['ignore', 'ignore', 'inherit'] });
const started = performance.now();
// Python tells what its children took.
const made = spawnSync('python3', ['-c', 'import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]);'
  + ' print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime); sys.exit(code)',
mtprof, 'report', '-q', '--html', file, trace], { encoding: 'utf8' });
const wall = (performance.now() - started) / 1000;
if (made.status !== 0) throw new Error(`mtprof report: ${made.stderr}`);
const [kib, user] = made.stdout.trim().split('\n').at(-1).split(' ').map(Number);
const size = fs.statSync(file).size;
tell('its size', size <= 3e6, `${size} bytes`);

const browser = await chromium.launchPersistentContext(path.join(folder, 'profile'), {
  executablePath: program, args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
});
const paints = [];
let data = null;
for (let round = 0; round < 5; round++) {
  const page = await browser.newPage();
  const heard = [];
  page.on('console', (message) => heard.push(message.text()));
  page.on('pageerror', (error) => heard.push(error.message));
  page.on('request', (request) => { if (request.url() !== pathToFileURL(file).href) heard.push(request.url()); });
  await page.goto(pathToFileURL(file).href);
  await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
  paints.push(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime));
  data = await page.evaluate(() => ({ events: DATA.events, left: DATA.left_out, wall: DATA.wall, hidden: document.body.className,
    parts: DATA.parts.reduce((all, [, ns]) => all + ns, 0), health: document.getElementById('health_rows').textContent }));
  tell('silence', heard.length === 0, heard.join('; '));
  await page.close();
}
await browser.close();
tell('how many events', data.events >= Number(events), data.events);
tell('parts add up', Math.abs(data.parts - data.wall) <= data.wall / 1000, `${data.parts} of ${data.wall}`);
tell('what is left out is counted', data.left > 0 && data.health.includes(data.left.toLocaleString('en')), data.left);
tell('the page is shown', data.hidden === '', data.hidden);
const first = Math.min(...paints);
if (most !== undefined) tell('the first paint', first <= Number(most), `${first.toFixed(0)} ms, in the best of ${paints.length}`);
console.log(`${data.events} events: ${(size / 1e6).toFixed(2)} MB made in ${wall.toFixed(1)} s (${user.toFixed(1)} s of processor time),`
  + ` ${(kib / 1024).toFixed(0)} MiB; first paint after ${paints.map((ms) => ms.toFixed(0)).join(', ')} ms`);
fs.rmSync(folder, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed ? 1 : 0);
