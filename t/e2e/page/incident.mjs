// The findings of several daemons on their pages: node incident.mjs DIRECTORY
// "ask page N" names the page of each in turn, or the end; "ask is N WORDS" has its findings as they are on the screen.
import { createInterface } from 'node:readline';
import { browser, open, tell, complaints, WAIT } from './browser.mjs';

const [, , shots] = process.argv;
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const ask = async (question) => { console.log('ask ' + question); return (await answers.next()).value; };
for (let at = 0, url; (url = await ask('page ' + at)) !== 'end'; at++) {
  const page = await open();
  await page.goto(url);
  await page.waitForSelector('.findings li', WAIT);
  await ask(`is ${at} ${(await page.locator('.findings').innerText()).replace(/\s+/g, ' ')}`);
  await page.screenshot({ path: `${shots}/incident-${at}.png` });
  await page.context().close();
}
tell(complaints.length === 0, 'the console has no complaint', complaints.join('; '));
await browser.close();
process.exit();
