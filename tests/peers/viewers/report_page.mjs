// SPDX-License-Identifier: Apache-2.0
//
// report_page.mjs NODE_MODULES CHROMIUM MTPROF TRACE...
//
// Opens the report of each trace in a real browser, light and dark, wide and on a phone's width, uses it by keyboard
// and checks: no request, no message on the console, nothing wider than the window, nothing jumps, what is listed is
// sorted and filtered as it says, and the numbers of every view are those of the command (report_numbers.mjs), with the
// trace before as the baseline.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { compareNumbers, output } from './report_numbers.mjs';

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

const json = (...words) => JSON.parse(output(mtprof, ...words));

// The table on the page, as it is sorted by each of its columns and filtered by what its rows hold.
async function table(page, what, data) {
  const shown = () => page.evaluate(() => [...document.querySelectorAll('#rows tr')].map((tr) => [...tr.cells].map((cell) => cell.textContent)));
  const kinds = ['', ' device', ' annotation on the device'];
  const columns = { name: 0, shapes: 1, module: 2, calls: 4, 'self host': 5, host: 6, 'self device': 7, device: 8, memory: 9 };
  const heads = await page.locator('#rows_head button').allTextContents();
  for (const [i, head] of heads.entries()) {
    const column = columns[head.replace(/ [▾▴]$/, '')];
    for (const way of [1, 2]) {
      await page.locator('#rows_head button').nth(i).click();
      const down = (await page.locator('#rows_head button').nth(i).textContent()).endsWith('▾');
      const value = (row) => (column === 1 && row[1] === '[]' ? '' : row[column]);
      const order = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (down ? -1 : 1);
      const wanted = [...data.rows].sort(order).slice(0, 40).map((row) => row[0] + kinds[row[3]]);
      const found = (await shown()).map((cells) => cells[0]);
      tell(`${what}: sorted by ${head}, ${way}`, JSON.stringify(found) === JSON.stringify(wanted), `${found.slice(0, 3)}, not ${wanted.slice(0, 3)}`);
    }
  }
  for (const text of [...new Set([0, 1, 2].map((k) => data.rows.find((row) => row[k] && row[k] !== '[]')?.[k]).filter(Boolean))]) {
    await page.fill('#filter', text);
    const some = data.rows.filter((row) => row.slice(0, 3).join(' ').toLowerCase().includes(text.toLowerCase())).length;
    tell(`${what}: filtered by ${text}`, (await shown()).length === Math.min(some, 40) && some > 0, (await shown()).length);
  }
  await page.fill('#filter', '');
}

// From what is slow to its timeline, from a finding to where it is seen.
async function links(page, what) {
  for (const button of await page.locator('.finding button').all()) {
    const text = await button.textContent();
    await button.click();
    const there = text === 'show in the table' ? await page.locator('#rows tr').count() > 0
      : text === 'in the flame graph' ? !(await page.locator('#flame_detail').textContent()).startsWith('all:')
        : (await page.locator('#timeline_steps option:checked').textContent()).startsWith(text.replace('timeline of ', ''));
    tell(`${what}: the link "${text}"`, there, 'it leads elsewhere');
    await page.fill('#filter', '');
  }
  for (const link of await page.locator('nav a:visible, .finding a, #verdict a').all()) {
    const target = await link.getAttribute('href');
    tell(`${what}: the link ${target}`, await page.locator(target).count() === 1, 'it leads nowhere');
  }
  for (const button of await page.locator('#steps_links button:enabled').all()) {
    const text = await button.textContent();
    await button.click();
    if (/Its timeline is not in this page/.test(await page.locator('#steps_detail').textContent())) continue;
    const chosen = await page.locator('#timeline_steps option:checked').textContent();
    const focus = await page.evaluate(() => document.activeElement.id);
    tell(`${what}: the link "${text}"`, focus === 'timeline_chart' && (text === 'its timeline' || chosen === text), `${focus}, ${chosen}`);
  }
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
  if (scheme === 'light') {
    compareNumbers(mtprof, trace, baseline, shown.data, (view, holds, found) => tell(`${what}: ${view}`, holds, found));
    await table(page, what, shown.data);
    await links(page, what);
  }
  const changed = json('diff', '--json', baseline, trace);
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
