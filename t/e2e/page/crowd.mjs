// Looks at a crowded queue in Chromium, wide and narrow, light and dark: node crowd.mjs ADDRESS KEY SHOTS COUNT SITE
// Prints a line a check: "ok NAME" or "not ok NAME: WHY". A line on standard input answers each "ask WHAT".
import { createInterface } from 'node:readline';
import { WAIT, browser, complaints, go, open, shows, tell, until, violations } from './browser.mjs';

const [, , address, key, shots, count, site] = process.argv;
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const ask = async (what) => { console.log('ask ' + what); return (await input.next()).value; };
const rows = (page) => page.evaluate(() => document.querySelectorAll('main tbody tr').length);
const markup = (page) => page.evaluate(() => document.querySelectorAll('img:not([src="icon.svg"]), main script, main iframe').length);

const page = await open();
const begun = Date.now();
await page.goto(`${address}#k=${key}`);
await page.waitForSelector('.places', WAIT);
console.log(`# first data after ${Date.now() - begun} ms`);
await shows(page, '#state', new RegExp(`Accepting\\. ${Number(count).toLocaleString('en-GB')} messages wait`), 'the state counts them');

// --- The queue: some at a time, more by scrolling; search and an action
await go(page, '#/queue', 'main tbody tr');
const first = await rows(page);
tell(first > 10 && first <= 500, 'a part of the queue is shown', first);
await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
await until(page, (n) => document.querySelectorAll('main tbody tr').length > n, first);
tell(true, 'more by scrolling');
await go(page, '#/queue?q=user777%40d777.example', 'main tbody tr');
await until(page, () => document.querySelectorAll('main tbody tr').length === 1);
await shows(page, 'main tbody tr', /user777@d777\.example/, 'search finds one among all');
await page.click('text=select all');
await page.waitForSelector('text=1 selected:');
await page.click('.acts button:text-is("Hold")');
await page.waitForSelector('dialog[open] >> text=Hold 1 message?');
await page.keyboard.press('Enter');
await page.waitForSelector('dialog >> text=1 of 1 done');
await page.keyboard.press('Enter');
tell((await ask('held')) === '1', 'and it is held');

// --- What a hostile host has said is text
await page.fill('input[type=search]', 'eve@hostile.example');
await page.press('input[type=search]', 'Enter');
await shows(page, 'main', /eve@hostile\.example/, 'search finds mail that waits');
// There is one, so that it is opened.
await until(page, () => location.hash.startsWith('#/message/'));
await shows(page, '.timeline', /<img src=x onerror=alert\(1\)>/, 'its reply is text in the life of a message');
tell(await markup(page) === 0, 'and no markup');
const message = await page.evaluate(() => location.hash);
await go(page, '#/sites', 'main tbody tr');
await page.evaluate((name) => [...document.querySelectorAll('main tbody a')].find((a) => a.textContent === name).click(), site);
await shows(page, 'main pre', /they +250 <script>alert\(1\)<\/script>[\s\S]*we +RCPT TO:<eve@hostile\.example>[\s\S]*they +451 .*<img src=x onerror=alert\(1\)>/, 'the last conversation with a site that failed is shown');
tell(await markup(page) === 0, 'as text');
const conversation = await page.evaluate(() => location.hash);

// --- Every view, wide and narrow, light and dark
for (const width of [1280, 320]) {
  await page.setViewportSize({ width, height: 900 });
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const [name, hash, wanted] of [['now', '#/', '.places'], ['queue', '#/queue', 'main tbody tr'], ['message', message, '.timeline li'],
      ['sites', '#/sites', 'main tbody tr'], ['site', conversation, 'main pre'], ['fragments', '#/fragments', 'main h1'], ['log', '#/log', 'main h1']]) {
      await go(page, hash, wanted);
      const what = `crowd-${name}-${width}-${colorScheme}`;
      // A route and an address with its port are one word.
      if (name === 'now') await page.evaluate(() => document.querySelectorAll('.findings .text, .findings .remedy').forEach((e) => { e.append(' smtp:you@example.org@[smtp.provider.example]:587?tls=verify'.repeat(3).replaceAll(' ', '')); }));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      tell(wide <= width, `${what}: fits`, wide);
      // axe takes long over many rows; page.mjs asks it about each view.
      if (name !== 'queue' && name !== 'sites' && width === 320 && colorScheme === 'dark') {
        const found = await violations(page);
        tell(found.length === 0, `${what}: axe finds nothing`, found.join(' | '));
      }
      await page.screenshot({ path: `${shots}/${what}.png` });
    }
  }
}
tell(complaints.length === 0, 'no error and no violation of the policy in the console', complaints.join(' | '));
await browser.close();
process.exit(0);
