// What the tests of the page share: a browser, looks that wait, and axe. CHROMIUM names the program.
import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);
const { chromium } = require('playwright-core');
const axe = require.resolve('axe-core/axe.min.js');

// A line a check: "ok NAME" or "not ok NAME: WHY".
export const tell = (good, name, why) => console.log(`${good ? 'ok' : 'not ok'} ${name}${good || why === undefined ? '' : ': ' + String(why).replace(/\s+/g, ' ').slice(0, 800)}`);
export const WAIT = { timeout: 60000 };

export const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
export const complaints = [];

export async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-GB', timezoneId: 'UTC', acceptDownloads: true, bypassCSP: false, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60000);
  // What is asked for and not there is an error to the console.
  page.on('console', (m) => ['error', 'warning'].includes(m.type()) && !/status of 404/.test(m.text()) && complaints.push(m.text()));
  page.on('pageerror', (e) => complaints.push(e.message));
  page.on('dialog', (d) => { complaints.push('a dialog: ' + d.message()); d.dismiss(); });
  return page;
}
// page.waitForFunction() needs eval, which the policy forbids.
export async function until(page, wanted, argument) {
  for (const end = Date.now() + WAIT.timeout; Date.now() < end;) {
    if (await page.evaluate(wanted, argument)) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error('never: ' + wanted);
}
// The page is drawn at the next frame, and with what comes later: a look is repeated until it is as it should be.
export async function shows(page, selector, wanted, name) {
  let text;
  for (const end = Date.now() + WAIT.timeout; Date.now() < end;) {
    text = (await page.locator(selector).allInnerTexts()).join('\n');
    if (wanted.test(text)) break;
    await new Promise((done) => setTimeout(done, 100));
  }
  tell(wanted.test(text), name, text);
}
export const go = async (page, hash, wanted) => { await page.evaluate((h) => { location.hash = h; }, hash); await page.waitForSelector(wanted, WAIT); };

// The policy of the page forbids scripts of others: axe runs in a world of its own.
export async function violations(page) {
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send('Page.getFrameTree');
  const { executionContextId } = await session.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id, worldName: 'axe' });
  const run = async (expression) => {
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', { expression, contextId: executionContextId, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception.description);
    return result.value;
  };
  await run(require('node:fs').readFileSync(axe, 'utf8') + ';0');
  return run('axe.run(document, {runOnly: ["wcag2a", "wcag2aa"]}).then((r) => r.violations.map((v) => v.id + " " + v.nodes.map((n) => n.target.join(" ") + " " + n.failureSummary).slice(0, 2).join("; ")))');
}
