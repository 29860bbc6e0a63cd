// SPDX-License-Identifier: Apache-2.0
//
// notebook_look.mjs NODE_MODULES CHROMIUM PAGE PICTURES
//
// Opens what notebook_run.py wrote in a real browser, light and dark, wide and narrow: nothing of it runs a script of
// the trace or asks the network, nothing is wider than the window, and the report inside its frame is drawn. Takes
// pictures.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, program, file, pictures] = process.argv.slice(2);
const { chromium } = (await import(pathToFileURL(path.join(modules, 'playwright-core', 'index.js')))).default;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'notebook-'));
const browser = await chromium.launchPersistentContext(path.join(folder, 'profile'), {
  executablePath: program, args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
});
let passed = 0;
let failed = 0;
function tell(what, holds, found) {
  passed += holds;
  failed += !holds;
  if (!holds) console.log(`FAILED ${what}: ${found}`);
}
for (const [scheme, width] of [['light', 1000], ['dark', 420]]) {
  const page = await browser.newPage();
  const heard = [];
  page.on('console', (message) => heard.push(message.text()));
  page.on('pageerror', (error) => heard.push(error.message));
  page.on('request', (request) => { if (!/^(file:|about:)/.test(request.url())) heard.push(request.url()); });
  await page.emulateMedia({ colorScheme: scheme });
  await page.setViewportSize({ width, height: 900 });
  await page.goto(pathToFileURL(file).href);
  const what = `${scheme}, ${width} px`;
  const shown = await page.evaluate(() => ({
    stolen: window.stolen, scripts: document.scripts.length, images: document.images.length,
    width: document.documentElement.scrollWidth, inner: innerWidth, outputs: document.querySelectorAll('.output').length,
    rows: [...document.querySelectorAll('table')].map((table) => table.rows.length), text: document.body.innerText,
  }));
  tell(`${what}: nothing of the trace runs`, shown.stolen === undefined && shown.scripts === 0 && shown.images === 0,
    JSON.stringify([shown.stolen, shown.scripts, shown.images]));
  tell(`${what}: outputs`, shown.outputs === 5, shown.outputs);
  tell(`${what}: tables`, shown.rows.length === 3 && shown.rows.every((n) => n > 5), shown.rows);
  tell(`${what}: names are text`, shown.text.includes('<script>window.stolen'), 'they are not there');
  tell(`${what}: its width`, shown.width <= shown.inner, `${shown.width} of ${shown.inner}`);
  const frame = page.frames()[1];
  await frame.waitForSelector('#rows tr');
  const inside = await frame.evaluate(() => ({
    stolen: window.stolen, title: document.querySelector('h1').textContent, rows: document.querySelectorAll('#rows tr').length,
    compared: document.querySelectorAll('#changes tr').length, width: document.documentElement.scrollWidth, inner: innerWidth,
  }));
  tell(`${what}: the report is drawn`, inside.rows > 5 && inside.compared > 1 && inside.stolen === undefined, JSON.stringify(inside));
  tell(`${what}: the report's width`, inside.width <= inside.inner, `${inside.width} of ${inside.inner}`);
  tell(`${what}: silence`, heard.length === 0, heard.join('; '));
  await page.locator('iframe').scrollIntoViewIfNeeded();
  await page.waitForTimeout(300);
  await page.locator('iframe').screenshot({ path: path.join(pictures, `report-${scheme}.png`) });
  await page.screenshot({ path: path.join(pictures, `notebook-${scheme}.png`), fullPage: true });
  await page.close();
}
await browser.close();
fs.rmSync(folder, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed ? 1 : 0);
