// Looks at the page in Chromium, as an operator does: node page.mjs ADDRESS KEY SHOTS
// Prints a line a check: "ok NAME" or "not ok NAME: WHY". A line on standard input answers each "ask WHAT".
import { createInterface } from 'node:readline';
import { WAIT, browser, complaints, go, open, shows, tell, until, violations } from './browser.mjs';

const [, , address, key, shots] = process.argv;
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const ask = async (what) => { console.log('ask ' + what); return (await input.next()).value; };

async function inspect(page, name) {
  const found = await violations(page);
  tell(found.length === 0, `${name}: axe finds nothing`, found.join(' | '));
  await page.screenshot({ path: `${shots}/${name}.png`, fullPage: true });
}

// --- Without a key
let page = await open();
await page.goto(address);
await shows(page, 'main code', /^petrel page$/, 'without a key it says how to get one');
await inspect(page, 'entrance');
await page.fill('main input', 'not-a-key');
await page.click('main button');
await page.waitForSelector('text=This key is not valid');
tell(true, 'a wrong key is refused in words');
await page.evaluate((k) => { location.hash = '#k=' + k; }, await ask('key'));
await page.waitForSelector('.lanes .lane', WAIT);
tell(!page.url().includes('k='), 'the address of the form, opened in the tab that has it, logs in');
await go(page, '#/nonsense', 'text=There is no such view');
tell(true, 'a view that is not there says so');
complaints.length = 0; // 401 is an error to the console
await page.context().close();

// --- Now
page = await open();
const begun = Date.now();
await page.goto(`${address}#k=${key}`);
await page.waitForSelector('.lanes .lane', WAIT);
const first = Date.now() - begun;
console.log(`# first data after ${first} ms`);
tell(!page.url().includes(key), 'the key is not left in the address');
await shows(page, '#state', /Accepting\. .* messages wait, the oldest for /, 'the state is a sentence');
await shows(page, '.lanes .pill', /dead/, 'a dead site is marked in words');
await shows(page, '.lanes', /dead until .*Connection refused/, 'and says until when and why');
await shows(page, '.findings li', /./, 'findings are there with their remedies');
await shows(page, '.places', /held/, 'the places of the queue');
await shows(page, '#state', / 3 held\. 1 site dead\.$/, 'held mail and a dead site are not passed over');
await shows(page, '.findings .remedy code', /^petrel queue ls --queue corrupt$/m, 'a command in a remedy stands out');
await shows(page, 'main', /listeners\s[\s\S]*127\.0\.0\.1:\d+ smtp, TLS: starttls/, 'who listens, with TLS');
await shows(page, 'main', /certificates\s[\s\S]*mail\.example\.net [\d,.]+ days left/, 'certificates, with their days');
await until(page, () => document.querySelector('footer').textContent.includes('may act'));
// Charts: a scale, and the value of the step that is pointed at or chosen by key.
const chart = page.locator('.c-accepted .chart'), box = await chart.boundingBox();
await until(page, () => Number(document.querySelector('.c-accepted .scale span').textContent) >= 1);
tell(/^\d+\n?0$/.test((await chart.innerText()).replace(/\s+/g, '\n')), 'a chart has its largest value and 0 beside it', await chart.innerText());
await page.mouse.move(box.x + box.width / 2, box.y + 20);
await shows(page, '.c-accepted', /\b0 in 6 s, until \d/, 'the value that is pointed at');
await page.mouse.move(0, 0);
await shows(page, '.c-accepted', /10 min ago\s+now$/, 'otherwise the times of its ends');
await chart.focus();
await page.keyboard.press('ArrowLeft');
await until(page, () => document.querySelectorAll('.chart')[0].getAttribute('aria-valuenow') === String(document.querySelectorAll('.chart')[0].getAttribute('aria-valuemax') - 1));
tell(/ in 6 s, until /.test(await chart.getAttribute('aria-valuetext')), 'by arrow keys, too, and for a screen reader', await chart.getAttribute('aria-valuetext'));
await inspect(page, 'now-marked');
await page.evaluate(() => document.activeElement.blur());
await inspect(page, 'now');

// --- Queue: a hostile subject, address and reply are text
await go(page, '#/queue', 'main tbody tr');
await shows(page, 'main', /<img/, 'they are shown as they are');
tell(await page.locator('img:not([src="icon.svg"]), main script, main iframe').count() === 0, 'addresses make no markup');
await shows(page, 'main .subject', /^<script>alert\(1\)<\/script>$/m, 'subjects are text');
await inspect(page, 'queue');
await shows(page, 'main tbody', /01JD3ZK5Q8-9F3K2C7A/, 'also what cannot be read is there');
await go(page, '#/queue?queue=hold', 'main tbody');
await until(page, () => document.querySelectorAll('main tbody tr').length === 3);
tell(true, 'a filter by place');
await shows(page, 'main tbody', /Grüße für uns ?=\?x\?q\?x\?=/, 'encoded words are decoded');
await page.fill('input[name=to]', 'held.example');
await page.click('text=Filter');
await until(page, () => location.hash.includes('to=held.example') && document.querySelectorAll('main tbody tr').length === 3);
tell(true, 'a filter by recipient');
await go(page, '#/queue?to=dead.example', 'main tbody tr');
await go(page, await page.getAttribute('main tbody a', 'href'), '.timeline li');
await shows(page, 'main .facts', /^subject\s+<script>alert\(\d+\)<\/script>$/m, 'a message has its subject');
await shows(page, 'main', /: dead until .*; 1\d messages waiting there\./, 'a message counts what waits for a dead site, in memory or not');
await go(page, '#/queue?q=nobody-has-this', 'text=No message matches.');
tell(true, 'an empty result says so');

// --- By keyboard alone: hold and delete
await go(page, '#/queue?queue=deferred', 'main tbody tr');
await until(page, () => document.querySelectorAll('main tbody tr').length > 11);
const before = await page.locator('main tbody tr').count();
await page.keyboard.press('j');
const id = await page.evaluate(() => document.activeElement.textContent);
await page.keyboard.press('x');
await page.waitForSelector('text=1 selected:');
await page.focus('.acts button:text-is("Hold")');
await page.keyboard.press('Enter');
await page.waitForSelector('dialog[open] >> text=Hold 1 message?');
await inspect(page, 'dialog');
await page.keyboard.press('Enter');
await page.waitForSelector('dialog >> text=1 of 1 done');
await page.keyboard.press('Enter');
await until(page, (n) => document.querySelectorAll('main tbody tr').length === n, before - 1);
tell((await ask('held ' + id)) === 'yes', 'held by keyboard alone');
await page.locator('main tbody input').first().check();
await page.focus('.acts button:text-is("Delete")');
await page.keyboard.press('Enter');
await shows(page, 'dialog[open]', /Delete 1 message\?[\s\S]*<\S* to <erin@dead\.example>[\s\S]*nothing brings it back/, 'what is deleted is named');
tell(await page.evaluate(() => document.activeElement.textContent) === 'Cancel', 'Enter does not delete');
await inspect(page, 'dialog-delete');
await page.keyboard.press('Enter');
tell(await page.locator('.acts button:text-is("Release")').count() === 0, 'mail that is not held is not offered to be released');
await page.click('text=select all');
await page.waitForSelector(`text=${before - 1} selected:`);
await page.focus('.acts button:text-is("Delete")');
await page.keyboard.press('Enter');
await page.waitForSelector('dialog #typed');
tell(await page.locator('dialog button.danger').isDisabled(), 'to delete many wants their number');
await page.keyboard.type(String(before - 1));
await page.keyboard.press('Enter');
await page.waitForSelector(`dialog >> text=${before - 1} of ${before - 1} done`);
await page.keyboard.press('Enter');
await page.waitForSelector('text=No message matches.');
tell((await ask('deferred')) === '0', 'what was confirmed is deleted');

// --- A message
await go(page, '#/message/' + id, '.timeline li');
await shows(page, 'main', /held/, 'a message says why it waits');
await shows(page, 'main .head .tools', /^\s*Release\s+Return\s+Delete\s*$/, 'what is held is not offered to be tried');
await page.click('text=Show the header');
await shows(page, 'pre', /Subject: /, 'its header is text');
const [download] = await Promise.all([page.waitForEvent('download'), page.click('text=Download')]);
tell(download.suggestedFilename() === id + '.eml', 'it can be downloaded');
await inspect(page, 'message');
for (const [name, member, offered] of [['a part', { queue_name: 'defrag' }, 'hold release bounce rm'], ['mail for later', { queue_name: 'deferred', release_time: 4e9 }, 'hold release bounce rm'],
  ['damaged mail', { queue_name: 'corrupt' }, 'release rm'], ['deferred mail', { queue_name: 'deferred', release_time: 1 }, 'hold retry bounce rm']]) {
  const verbs = await page.evaluate((m) => fitting([m]).join(' '), member);
  tell(verbs === offered, `${name} is offered what does something for it`, verbs);
}
await page.keyboard.press('Escape');
await go(page, '#/message/0000000000-00000000', 'text=Neither the queue nor the history knows this message.');
tell(true, 'an unknown message is said to be unknown');

// --- Search, sites, fragments, log
await page.keyboard.press('/');
await page.keyboard.type('nobody@fine.example');
await page.keyboard.press('Enter');
await shows(page, 'main tbody tr', /bounced/, 'search finds what has left');
await inspect(page, 'search');
await go(page, '#/sites', 'main tbody tr');
await page.click('th >> text=backlogged');
await shows(page, 'th[aria-sort=descending]', /^backlogged$/, 'sites are sorted by a column');
await inspect(page, 'sites');
await page.click('main tbody a');
await page.waitForSelector('text=Limits and addresses');
await inspect(page, 'site');
// A dead site that is tried again has no end of its pause.
const shown = decodeURIComponent(new URL(page.url()).hash.slice('#/sites/'.length));
await page.route('**/api/site?name=probed', async (route) => {
  const got = await route.fetch({ url: route.request().url().replace('probed', encodeURIComponent(shown)) }), answer = await got.json();
  const probed = { ...answer.site, site: 'probed', dead_since_ms: 1, dead_until_ms: undefined };
  answer.sites = [probed, { ...probed, options: 'rate=1/s' }];
  await route.fulfill({ response: got, json: answer });
});
await go(page, '#/sites/probed', 'text=Limits and addresses');
await shows(page, 'main', /, being tried now/, 'a dead site that is tried again says so');
await shows(page, 'main', /no options.*Limits and addresses.*rate=1\/s.*Limits and addresses/s, 'sites of one name are all there');
// The limits of a group, which this daemon has none of.
for (const [name, words] of [['lease', "our part of the group's sessions"], ['lease_rate', "our part of the group's rate"]]) {
  const said = await page.evaluate((b) => bound({ bound: b }), name);
  tell(said === words, `${name} binds a site, in words`, said);
}
for (const [perSecond, words] of [[250, '250/s'], [1, '1/s'], [0.017, '1/m'], [0.001, '3.6/h'], [0.00001, '0.9/d']]) {
  const said = await page.evaluate((r) => bound({ bound: 'learnt_rate', learnt_rate: r }), perSecond);
  tell(said === `rate ${words}, learnt from its replies`, `a rate of ${perSecond} is not 0`, said);
}
for (const [domains, destinations, words] of [[['a.example'], 1, 'a.example'], [['a.example', 'b.example', 'c.example'], 4, 'a.example, b.example and 2 more'], [['smtp:[127.0.0.1]:25'], 1, '']]) {
  const said = await page.evaluate(([d, n]) => (siteDomains({ domains: d, destinations: n }) || { textContent: '' }).textContent, [domains, destinations]);
  tell(said === words, `a site with its domains: ${words}`, said);
}
const told = await page.evaluate(() => {
  const events = [{ type: 'bounced', recipient: 'a@b', relay: 'mx:25', text: '550 bounced' }, { type: 'notified', recipient: 's@b', text: 'sender notified' }, { type: 'held', text: 'held by the operator' }], before = message.life;
  message.life = { events };
  const rows = [events.map(eventSentence).join('|'), messageRecipients().map(([a]) => a).join()];
  message.life = before;
  return rows;
});
tell(told[0] === '<a@b>: bounced by mx:25: 550 bounced|<s@b>: sender notified|held by the operator', 'the history says nothing twice', told[0]);
tell(told[1] === 'a@b', 'a sender who was notified is no recipient', told[1]);
// Each finding names its subject, and leads to its cause.
const listed = await page.evaluate(() => {
  const before = status;
  status = { ...status, findings: [{ code: 'receiver_refuses_us', severity: 'warning', subject: 'mx.dest.example', text: 'refuses mail (reputation), until Tue, 1 Dec 2026 06:38:35 +0000', remedy: 'See `petrel trace mx.dest.example`.' },
    { code: 'site_dead', severity: 'error', subject: '', text: `${status.sites[0].site} has not worked for 30 minutes`, remedy: 'x' },
    { code: 'mail_old', severity: 'warning', subject: '', text: 'mail has waited for 2 hours: 01JD3ZK5Q8-9F3K2C7A, not yet tried', remedy: 'x' },
    { code: 'corrupt', severity: 'warning', subject: '', text: '1 message is quarantined', remedy: 'x' },
    { code: 'login_refused', severity: 'hint', subject: status.sites[0].site.replace(/^smtp:|[[\]]/g, ''), text: 'refuses the login', remedy: 'x' }] };
  const list = [...findings().children].map((li) => [li.textContent, [...li.querySelectorAll('a')].map((a) => a.getAttribute('href')).join()]);
  status = before;
  return list;
});
tell(/mx\.dest\.example: refuses mail/.test(listed[1][0]), 'the subject of a finding is there', listed[1][0]);
tell(!/\+0000/.test(listed[1][0]), 'times are those of the reader', listed[1][0]);
tell(/^#\/sites\/.+/.test(listed[0][1]), 'a finding about a site leads to it', listed[0][1]);
tell(listed[2][1] === '#/message/01JD3ZK5Q8-9F3K2C7A', 'about a message likewise', listed[2][1]);
tell(listed[3][1] === '#/queue?queue=corrupt', 'and about a place of the queue', listed[3][1]);
tell(listed[4][1] === listed[0][1] && listed[4][1].startsWith('#/sites/'), 'one about a smarthost to its site', listed[4][1]);
await go(page, '#/fragments', '.boxes');
await shows(page, '.boxes .missing', /^2\n4$/, 'missing parts are marked');
await inspect(page, 'fragments');
await go(page, '#/log', 'main h1');
await ask('send');
await until(page, () => [...document.querySelectorAll('.log .delivered')].some((l) => l.textContent.includes('bob@fine.example')));
await inspect(page, 'log');
await page.keyboard.press('?');
await page.waitForSelector('dialog[open] >> text=then n, q, s, f, l');
await page.keyboard.press('Escape');

// --- Narrow, and dark
await page.setViewportSize({ width: 375, height: 800 });
await go(page, '#/', '.lanes');
await inspect(page, 'now-375');
await page.emulateMedia({ colorScheme: 'dark' });
await inspect(page, 'now-375-dark');
await page.emulateMedia({ colorScheme: 'light' });
await page.setViewportSize({ width: 320, height: 700 });
for (const [hash, wanted, name] of [['#/', '.lanes', 'now'], ['#/queue', 'main tbody tr', 'queue'], ['#/message/' + id, '.timeline', 'message'], ['#/sites', 'main tbody tr', 'sites'],
  ['#/fragments', 'main h1', 'fragments'], ['#/log', '.log li', 'log']]) {
  await go(page, hash, wanted);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  tell(wide <= 320, `${name} fits 320 pixels`, wide);
  const hidden = await page.evaluate(() => [...document.querySelectorAll('#nav a')].filter((a) => { const r = a.getBoundingClientRect(); return r.left < 0 || r.right > 320 || r.width === 0; }).map((a) => a.textContent));
  tell(hidden.length === 0 && await page.locator('#nav a').count() === 5, `${name}: every tab is within 320 pixels`, hidden.join());
  await inspect(page, name + '-narrow');
}
await page.setViewportSize({ width: 1280, height: 900 });
await page.emulateMedia({ colorScheme: 'dark' });
for (const [hash, wanted, name] of [['#/', '.lanes', 'now'], ['#/queue', 'main tbody tr', 'queue'], ['#/message/' + id, '.timeline', 'message']]) {
  await go(page, hash, wanted);
  await inspect(page, name + '-dark');
}

// --- A stop is seen, and a restart
await go(page, '#/', '.lanes');
tell(complaints.length === 0, 'no error and no violation of the policy in the console', complaints.join(' | '));
await ask('stop');
await shows(page, '#notice:not([hidden])', /has not answered since[\s\S]*systemctl status petrel/, 'a daemon that is gone is said to be gone, with what to do');
await shows(page, '#state.is-bad', /^Not reachable since /, 'the header does not say that it accepts');
tell(await page.title() === 'Not reachable: ' + await page.locator('#host').textContent() + ' – Petrel', 'nor the title', await page.title());
for (const [width, scheme] of [[1280, 'light'], [1280, 'dark'], [375, 'light'], [375, 'dark']]) {
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme: scheme });
  await inspect(page, `gone-${width}-${scheme}`);
}
await ask('start');
await page.waitForSelector('text=A key is needed', WAIT);
tell(true, 'after a restart it is found again, and asks for a key');

// --- One that hangs is not live, and is when it goes on
page = await open();
await page.goto(`${address}#k=${await ask('key')}`);
await shows(page, '#state', /^Accepting/, 'it is live');
const once = await page.evaluate(() => { silence = 2000; return heard; });
await until(page, (before) => live && heard > before, once);
await ask('freeze');
await shows(page, '#state', /^Not reachable since /, 'a daemon that hangs is not reachable');
await ask('thaw');
await shows(page, '#state', /^Accepting/, 'and is again');
await browser.close();
process.exit(0);
