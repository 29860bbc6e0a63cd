// SPDX-License-Identifier: Apache-2.0
//
// report_page.mjs NODE_MODULES CHROMIUM MTPROF TRACE...
//
// Opens the report of each trace in a real browser, light and dark, wide and on a phone's width, uses it by keyboard
// and checks: no request, no message on the console, nothing wider than the window, and the numbers that are shown
// are those of `mtprof explain --json`, `mtprof report --json` and, with the trace before as the baseline, of
// `mtprof diff --json`.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, program, mtprof, ...traces] = process.argv.slice(2);
const { chromium } = (await import(pathToFileURL(path.join(modules, 'playwright-core', 'index.js')))).default;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'report-'));
let passed = 0;
let failed = 0;

function tell(what, holds, found) {
  if (holds) {
    passed++;
  } else {
    failed++;
    console.log(`FAILED ${what}: ${found}`);
  }
}

function json(...words) {
  const run = spawnSync(mtprof, words, { maxBuffer: 1 << 28 }); // 3: diff found something slower
  if (run.status !== 0 && run.status !== 3) throw new Error(`mtprof ${words.join(' ')}: ${run.stderr}`);
  return JSON.parse(run.stdout.toString('utf8'));
}

async function look(browser, file, trace, baseline, scheme, width) {
  const page = await browser.newPage();
  const heard = [];
  page.on('console', (message) => heard.push(message.text()));
  page.on('pageerror', (error) => heard.push(error.message));
  page.on('dialog', (dialog) => { heard.push(dialog.message()); dialog.dismiss(); });
  page.on('request', (request) => { if (request.url() !== pathToFileURL(file).href) heard.push(request.url()); });
  await page.emulateMedia({ colorScheme: scheme });
  await page.setViewportSize({ width, height: 800 });
  await page.addInitScript(() => {
    window.moved = 0;
    new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.moved += entry.value; })
      .observe({ type: 'layout-shift', buffered: true });
  });
  await page.goto(pathToFileURL(file).href);
  const what = `${path.basename(trace)}, ${scheme}, ${width} px`;
  for (const [id, keys] of [['steps_chart', ['ArrowRight', 'ArrowLeft']], ['timeline_chart', ['+', 'ArrowRight', '-', 'ArrowDown', 'ArrowDown', 'ArrowUp', 'Enter', 'Escape']],
    ['flame_chart', ['ArrowDown', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Enter', 'Escape', 'ArrowDown']]]) {
    if (await page.locator('#' + id).isVisible()) {
      await page.focus('#' + id);
      for (const key of keys) await page.keyboard.press(key);
      const told = await page.locator('#' + id.replace('chart', 'detail')).textContent();
      const unit = / (ns|µs|ms|s|B|[KMGT]iB)\b/.test(told);
      tell(`${what}: keys in ${id}`, unit && !/^(all: .* \(100|step \d+: [0-9.]+ .?s\. Scroll)/.test(told), told);
    }
  }
  const before_height = await page.evaluate(() => document.documentElement.scrollHeight);
  for (const button of await page.locator('#flame_orders button, #timeline_zoom button').all()) {
    if (await button.isVisible()) await button.click();
  }
  tell(`${what}: nothing jumps`, await page.evaluate(() => document.documentElement.scrollHeight) === before_height
    && await page.evaluate(() => window.moved) === 0, await page.evaluate(() => window.moved));
  if (await page.locator('#flame_chart').isVisible()) {
    await page.locator('#flame_chart').click({ position: { x: 30, y: 28 }, force: true });
  }
  const before = await page.locator('#rows tr').count();
  await page.fill('#filter', 'no row has this text');
  tell(`${what}: the filter`, await page.locator('#rows tr').count() === 0 && (before > 0 || trace.includes('empty')), before);
  await page.fill('#filter', '');
  for (const button of await page.locator('#rows_head button').all()) await button.click();
  const shown = await page.evaluate(() => ({
    data: JSON.parse(JSON.stringify(DATA)), width: document.documentElement.scrollWidth, inner: innerWidth,
    verdict: document.getElementById('verdict').textContent, stolen: window.stolen,
    findings: [...document.querySelectorAll('.finding h3')].map((title) => title.textContent),
  }));
  tell(`${what}: silence`, heard.length === 0, heard.join('; '));
  tell(`${what}: its width`, shown.width <= shown.inner, `${shown.width} of ${shown.inner}`);
  const explained = json('explain', '--json', '--limit', 'all', trace);
  tell(`${what}: findings`, JSON.stringify(shown.findings) === JSON.stringify(explained.clean ? ['Clean']
    : explained.findings.map((finding) => finding.title)), shown.findings.join('; '));
  const sum = shown.data.parts.reduce((all, [, ns]) => all + ns, 0);
  tell(`${what}: parts add up`, Math.abs(sum - shown.data.wall) <= shown.data.wall / 1000, `${sum} of ${shown.data.wall}`);
  const rows = json('report', '--json', '-g', 'shapes,module', trace);
  tell(`${what}: rows`, shown.data.rows_seen === (rows.rows ?? rows).length, `${shown.data.rows_seen}, ${(rows.rows ?? rows).length}`);
  const changed = json('diff', '--json', baseline, trace);
  const verdicts = (rows, name, verdict) => rows.map((row) => `${name(row)} ${verdict(row)}`).sort().join(', ');
  const wanted = verdicts(changed.rows, (row) => row.name + row.group, (row) => row.verdict);
  const found = verdicts(shown.data.baseline.rows, (row) => row[0] + row[1], (row) => row[3]);
  tell(`${what}: the comparison`, shown.data.baseline.rows_seen > 300 || wanted === found, found);
  await page.uncheck('#changes_only');
  const lines = await page.locator('#changes tr').count();
  tell(`${what}: rows of the comparison`, lines === Math.min(changed.rows.length, 300) + 1, lines);
  await page.close();
}

const browser = await chromium.launchPersistentContext(path.join(folder, 'profile'), {
  executablePath: program, args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
});
let before = traces.at(-1);
for (const trace of traces) {
  const file = path.join(folder, path.basename(trace) + '.report.html');
  execFileSync(mtprof, ['report', '--html', file, '--baseline', before, trace]);
  await look(browser, file, trace, before, 'light', 1280);
  await look(browser, file, trace, before, 'dark', 390);
  before = trace;
}
await browser.close();
fs.rmSync(folder, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed ? 1 : 0);
