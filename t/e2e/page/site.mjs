// The rendered documents in Chromium: node site.mjs DIRECTORY
// Prints a line a check: "ok NAME" or "not ok NAME: WHY".
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const [, , site] = process.argv;
const tell = (good, name, why) => console.log(`${good ? 'ok' : 'not ok'} ${name}${good ? '' : ': ' + String(why).replace(/\s+/g, ' ').slice(0, 400)}`);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
for (const [width, colorScheme] of [[1280, 'light'], [375, 'dark']]) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
  page.setDefaultTimeout(60000);
  for (const name of ['index', 'doc/index', 'doc/recipes', 'man/petrel.conf.5', 'doc/dev/design']) {
    await page.goto(`file://${site}/${name}.html`);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    tell(over <= 0, `${name} at ${width}: no wider than the window`, over);
    await page.evaluate(axe);
    const found = await page.evaluate(() => axe.run());
    tell(found.violations.length === 0, `${name}, ${colorScheme}: no barrier`, found.violations.map((v) => `${v.id} ${v.nodes[0].target}`).join('; '));
  }
  tell(await page.locator('.menu').evaluate((menu) => menu.open) === (width > 800), `the list of pages at ${width}`, 'is open, or is not');
  const cut = await page.evaluate(() => [...document.querySelectorAll('td')].filter((td) => getComputedStyle(td).overflowWrap !== 'normal').length);
  tell(cut === 0, `no table at ${width} breaks a word`, cut);
  const mark = await page.locator('.menu > summary').evaluate((summary) => getComputedStyle(summary).display);
  tell(mark === (width > 800 ? 'none' : 'list-item'), `its mark at ${width}`, mark);
  await page.fill('#search', 'client_session_rate');
  await page.keyboard.press('Enter');
  await page.waitForURL(/petrel\.conf\.5\.html#/);
  tell(true, `a search at ${width} leads to the setting`);
  await page.close();
}
await browser.close();
