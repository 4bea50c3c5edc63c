// What pages of other origins can do to a daemon whose operator is logged in, in Chromium: node cross.mjs PORT KEY ID
// Prints a line a check: "ok NAME" or "not ok NAME: WHY".
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);
const { chromium } = require('playwright-core');

const [, , port, key, id] = process.argv;
const target = `http://127.0.0.1:${port}`;
const tell = (good, name, why) => console.log(`${good ? 'ok' : 'not ok'} ${name}${good || why === undefined ? '' : ': ' + String(why).replace(/\s+/g, ' ').slice(0, 400)}`);

// The other origins: one server, which has a page without any policy.
const server = createServer((request, response) => { response.setHeader('Content-Type', 'text/html'); response.end('<!doctype html><title>other</title><body>'); });
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const other = server.address().port;

// Chromium's own guard of local addresses is off: what is tested is ours.
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP *.test 127.0.0.1',
  '--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessSendPreflights'] });
const context = await browser.newContext();
const open = async (url) => { const page = await context.newPage(); page.setDefaultTimeout(60000); await page.goto(url); return page; };

// What the daemon has answered well to those who need a key.
async function answered(wanted) {
  const text = await (await context.request.get(`${target}/metrics`)).text();
  return [...text.matchAll(/^petrel_http_requests_total\{(.*)\} (\d+)/gm)].filter(([, labels]) => wanted.test(labels)).reduce((sum, [, , count]) => sum + Number(count), 0);
}
const good = () => answered(/^(?=.*path="(api|events)").*class="2"/);
const refused = () => answered(/class="4"/);

// --- The operator is logged in, as the control shows

const own = await open(`${target}/#k=${key}`);
for (const end = Date.now() + 60000; Date.now() < end && !(await context.cookies()).some((c) => c.name === 'petrel');) await new Promise((done) => setTimeout(done, 100));
const asks = (path, options) => ({ path, options });
const read = async (page, { path, options }) => page.evaluate(async ([u, o]) => {
  try { const r = await fetch(u, o); return `${r.type} ${r.status} ${(await r.text()).length}`; } catch (e) { return 'failed ' + e.name; }
}, [path, options]);
const seen = await read(own, asks(`${target}/api/status`, { headers: { 'X-Petrel': '1' } }));
tell(/^basic 200 [1-9]/.test(seen), 'the page itself reads', seen);
const acted = await read(own, asks(`${target}/api/queue/hold`, { method: 'POST', headers: { 'X-Petrel': '1', 'Content-Type': 'application/json' }, body: `{"ids":["${id}"]}` }));
tell(/^basic 200 [1-9]/.test(acted), 'and acts', acted);
await own.close(); // its session stays

// --- Another site, and another port of the same host, which gets the cookie

const body = `{"ids":["${id}"]}`;
const json = { 'Content-Type': 'application/json', 'X-Petrel': '1' };
const fetches = {
  'fetch': [asks('/api/status', { credentials: 'include' }), /^failed/],
  'fetch with our field': [asks('/api/status', { credentials: 'include', headers: { 'X-Petrel': '1' } }), /^failed/],
  'fetch with a token': [asks('/api/status', { headers: { Authorization: 'Bearer x' } }), /^failed/],
  'fetch without CORS': [asks('/api/status', { credentials: 'include', mode: 'no-cors' }), /^(opaque 0 0|failed)/],
  'fetch of the metrics': [asks('/metrics', {}), /^failed/],
  'fetch of the health': [asks('/livez', {}), /^failed/],
  'fetch of the content': [asks(`/api/queue/${id}/message`, { credentials: 'include' }), /^failed/],
  'POST of JSON': [asks('/api/queue/rm', { method: 'POST', credentials: 'include', headers: json, body }), /^failed/],
  'POST of text': [asks('/api/queue/rm', { method: 'POST', credentials: 'include', mode: 'no-cors', headers: { 'Content-Type': 'text/plain' }, body }), /^(opaque 0 0|failed)/],
  'POST without a type': [asks('/api/queue/rm', { method: 'POST', credentials: 'include', mode: 'no-cors', body }), /^(opaque 0 0|failed)/],
  'POST of a test message': [asks('/api/test', { method: 'POST', credentials: 'include', headers: json, body: '{"to":"a@b.example"}' }), /^failed/],
  'POST of a test message as text': [asks('/api/test', { method: 'POST', credentials: 'include', mode: 'no-cors', headers: { 'Content-Type': 'text/plain' }, body: '{"to":"a@b.example"}' }), /^(opaque 0 0|failed)/],
  'DELETE of the session': [asks('/api/session', { method: 'DELETE', credentials: 'include', headers: json }), /^failed/],
};
// Each says what came of it.
const others = {
  'EventSource': (to) => new Promise((done) => { const s = new EventSource(`${to}/events`, { withCredentials: true }); s.onopen = () => done('open'); s.onerror = () => { s.close(); done('failed'); }; }),
  'WebSocket': (to) => new Promise((done) => { const s = new WebSocket(`${to.replace('http', 'ws')}/events`); s.onopen = () => done('open'); s.onerror = () => done('failed'); }),
  'image': (to) => new Promise((done) => { const i = new Image(); i.onload = () => done('open'); i.onerror = () => done('failed'); i.src = `${to}/icon.svg`; }),
  'script': (to) => new Promise((done) => { const s = document.createElement('script'); s.onload = () => done('open'); s.onerror = () => done('failed'); s.src = `${to}/page.js`; document.body.append(s); }),
  'style': (to) => new Promise((done) => { const s = document.createElement('link'); s.rel = 'stylesheet'; s.onload = () => done('open'); s.onerror = () => done('failed'); s.href = `${to}/page.css`; document.body.append(s); }),
  'XMLHttpRequest': (to) => new Promise((done) => { const x = new XMLHttpRequest(); x.withCredentials = true; x.onload = () => done('open'); x.onerror = () => done('failed'); x.open('GET', `${to}/api/status`); x.send(); }),
};
const form = (page, type, names) => page.evaluate(([to, kind, fields]) => new Promise((done) => {
  const frame = document.createElement('iframe'), sent = document.createElement('form');
  frame.name = 'answer' + Math.random();
  document.body.append(frame, sent);
  Object.assign(sent, { action: `${to}/api/queue/rm`, method: 'POST', enctype: kind, target: frame.name });
  for (const [name, value] of Object.entries(fields)) { const input = document.createElement('input'); Object.assign(input, { type: 'hidden', name, value }); sent.append(input); }
  frame.onload = () => { let text; try { text = frame.contentDocument.body.innerText; } catch { text = 'unreadable'; } done(text); };
  sent.submit();
}), [target, type, names]);

for (const origin of [`http://evil.test:${other}`, `http://127.0.0.1:${other}`, `http://localhost:${other}`]) {
  const page = await open(`${origin}/`);
  const before = [await good(), await refused()];
  for (const [name, [ask, wanted]] of Object.entries(fetches)) {
    const got = await read(page, asks(target + ask.path, ask.options));
    tell(wanted.test(got), `${origin}: ${name}`, got);
  }
  for (const [name, attack] of Object.entries(others)) {
    const got = await page.evaluate(attack, target);
    tell(got === 'failed', `${origin}: ${name}`, got);
  }
  for (const [type, names] of [['text/plain', { [`{"ids":["${id}"],"x":"`]: '"}' }], ['application/x-www-form-urlencoded', { ids: id }], ['multipart/form-data', { ids: id }]]) {
    const got = await form(page, type, names);
    tell(got === 'unreadable', `${origin}: form of ${type}`, got);
  }
  tell(await page.evaluate(([to, b]) => navigator.sendBeacon(`${to}/api/queue/rm`, new Blob([b], { type: 'text/plain' })), [target, body]), `${origin}: a beacon is sent`);
  // A frame: by its policy it is not shown, wherever it comes from.
  const frame = await page.evaluate((to) => new Promise((done) => {
    const f = document.createElement('iframe');
    f.onload = () => { let text; try { text = f.contentDocument.title; } catch { text = 'unreadable'; } done(text); };
    f.src = `${to}/`;
    document.body.append(f);
  }), target);
  const framed = page.frames().filter((f) => f.url().startsWith(target) && !f.url().includes('/api/'));
  const shown = (await Promise.all(framed.map((f) => f.title().catch(() => '')))).join('');
  tell(frame === 'unreadable' && shown === '', `${origin}: no frame`, `${frame} '${shown}'`);
  const well = await good();
  tell(well === before[0], `${origin}: nothing was answered`, `${before[0]} ${well}`);
  // A window: it opens, since bookmarks do, but the opener has no hold of it, and a wrong key opens nothing.
  const [popup, hold] = await Promise.all([context.waitForEvent('page'), page.evaluate((to) => new Promise((done) => {
    const w = window.open(`${to}/#k=AAAAAAAAAAAAAAAAAAAAAA`);
    setTimeout(() => { let text; try { text = w.closed ? 'severed' : w.document.title; } catch { text = 'unreadable'; } done(text); }, 1000);
  }), target)]);
  tell(hold === 'severed' || hold === 'unreadable', `${origin}: no hold of a window`, hold);
  tell((await popup.evaluate(() => window.opener)) === null, `${origin}: which has no opener`);
  await popup.close();
  for (const end = Date.now() + 60000; Date.now() < end && (await refused()) <= before[1];) await new Promise((done) => setTimeout(done, 100));
  tell((await refused()) > before[1], `${origin}: all of it has come, and was refused`);
  await page.close();
}

// --- Rebinding: a page of its own name, which then is the daemon's address. No Sec-Fetch-Site tells, and no Origin

const rebound = await context.newPage();
const name = `http://rebind.test:${port}`;
await rebound.route(`${name}/trap`, (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>trap</title><body>' }));
await rebound.goto(`${name}/trap`);
for (const [what, ask] of Object.entries({ ...Object.fromEntries(Object.entries(fetches).filter(([n]) => n !== 'fetch without CORS').map(([n, [a]]) => [n, asks(a.path, { ...a.options, mode: undefined })])), 'the page': asks('/', {}) })) {
  const got = await rebound.evaluate(async ([u, o]) => { try { const r = await fetch(u, o); return `${r.status} ${await r.text()}`; } catch (e) { return 'failed ' + e.name; } }, [ask.path, ask.options]);
  tell(/^421 \{"ok":false,"error":"this host name is not ours: add it to http_names"\}\n$/.test(got), `rebound: ${what}`, got);
}
await rebound.goto(`${name}/`);
tell(!/page\.js/.test(await rebound.content()), 'rebound: no page', await rebound.content());

// --- Nobody has read or changed anything

const session = (await context.cookies()).filter((c) => c.name === 'petrel');
tell(session.length === 1 && session[0].httpOnly && session[0].sameSite === 'Strict', 'the session is as it was', JSON.stringify(session));
const after = await open(`${target}/`);
const still = await read(after, asks(`${target}/api/queue/${id}`, { headers: { 'X-Petrel': '1' } }));
tell(/^basic 200 [1-9]/.test(still), 'the operator still sees the message', still);
await browser.close();
server.close();
