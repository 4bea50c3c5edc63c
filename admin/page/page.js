/* Shows the daemon as it lives, and acts on its queue. Everything shown is text: h() knows
 * no markup. patch() changes what differs, so that focus, selection and scrolling stay. */
'use strict';

/* --- Nodes --- */

const byId = (id) => document.getElementById(id);

/* h('a.id', {href, on: {click}, css: {width}}, children...): attributes may be omitted;
 * false, null and undefined are no children, and no attributes. */
function h(tag, ...rest) {
	const [name, ...classes] = tag.split('.'), given = rest[0];
	const attributes = given && Object.getPrototypeOf(given) === Object.prototype ? rest.shift() : {};
	const node = /^(svg|path|line)$/.test(name) ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
	if (classes.length) node.setAttribute('class', classes.join(' '));
	for (const [key, value] of Object.entries(attributes)) {
		if (value === false || value == null) continue;
		if (key === 'on') listen(node, value);
		else if (key === 'css') for (const k in value) node.style.setProperty(k, value[k]);
		else if (key === 'value' || key === 'checked') node[key] = value;
		else node.setAttribute(key, value === true ? '' : value);
	}
	for (const child of rest.flat(Infinity)) if (child !== false && child != null) node.append(child);
	return node;
}

/* Handlers are looked up when called: patch() exchanges them. */
function listen(node, handlers) {
	node.handlers = handlers;
	for (const type in handlers) node.addEventListener(type, (event) => node.handlers[type](event));
}

/* Makes old like fresh. Another data-key or kind of handlers: another node. */
function patch(old, fresh) {
	const kind = (n) => [n.nodeName, n.dataset && n.dataset.key, Object.keys(n.handlers || {})].join();
	if (kind(old) !== kind(fresh)) return old.replaceWith(fresh);
	if (old.nodeType === 3) {
		if (old.data !== fresh.data) old.data = fresh.data;
		return;
	}
	for (const name of old.getAttributeNames()) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
	for (const name of fresh.getAttributeNames())
		if (name !== 'style' && old.getAttribute(name) !== fresh.getAttribute(name)) old.setAttribute(name, fresh.getAttribute(name));
	if (old.style.cssText !== fresh.style.cssText) old.style.cssText = fresh.style.cssText;
	if (fresh.type === 'checkbox') old.checked = fresh.checked;
	old.handlers = fresh.handlers;
	patchAll(old, [...fresh.childNodes]);
}

function patchAll(parent, fresh) {
	const old = [...parent.childNodes];
	fresh.forEach((node, i) => i < old.length ? patch(old[i], node) : parent.append(node));
	for (const node of old.slice(fresh.length)) node.remove();
}

const button = (text, click, kind, more) => h('button' + (kind ? '.' + kind : ''), { type: 'button', on: { click }, ...more }, text);
const card = (title, ...children) => h('section.card', title && h('h2', title), ...children);
const head = (title, ...children) => h('div.head', h('h1', title), ...children);
const empty = (text) => h('p.empty', text);
const failure = (text) => text && h('p.bad', { role: 'alert' }, text);
const muted = (...text) => h('span.muted.n', ...text);
const facts = (...list) => h('dl.facts', list.map((f) => f && [h('dt', f[0]), h('dd', f.slice(1))]));
const lines = (list, each) => list.map((x) => h('div', each(x)));

/* heads: texts, or cells; a row: cells, after its key. A cell: a child, or [class, label,
 * children...]. */
function table(heads, rows) {
	return h('div.wide', h('table.stack',
		h('thead', h('tr', heads.map((t) => typeof t === 'string' ? h('th', { scope: 'col' }, t) : t))),
		h('tbody', rows.map(([key, ...cells]) => h('tr', { 'data-key': key }, cells.map((c) => Array.isArray(c) ? h('td', { class: c[0], 'data-label': c[1] }, c.slice(2)) : c !== false && h('td', c)))))));
}

/* --- Words --- */

const format = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const number = (n) => format.format(n);
const count = (n, one) => `${number(n)} ${one}${n === 1 ? '' : 's'}`;

function span(ms, isLong) {
	const s = Math.max(0, Math.round(ms / 1000));
	const [n, short, long] = s < 60 ? [s, ' s', 'second'] : s < 5400 ? [s / 60, ' min', 'minute'] : s < 129600 ? [s / 3600, ' h', 'hour'] : [s / 86400, ' d', 'day'];
	return isLong ? count(Math.round(n), long) : number(n < 10 && s > 5400 ? n : Math.round(n)) + short;
}

function bytes(n) {
	const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
	let unit = 0;
	for (; n >= 1000 && unit < 4; unit++) n /= 1000;
	return `${number(n)} ${units[unit]}`;
}

/* Clocks differ. */
let ahead = 0;
const now = () => Date.now() + ahead;
const at = (ms = 0) => new Date(ms)[Math.abs(now() - ms) < 432e5 ? 'toLocaleTimeString' : 'toLocaleString']();
const time = (ms) => h('time', { title: new Date(ms).toISOString() }, at(ms));
const address = (a) => `<${a || ''}>`;
/* A short one does not break, a long one at the @ first. */
const mailbox = (a) => address(a).length < 30 ? h('span.whole', address(a)) : address(a).split(/(?=@)/).flatMap((x, i) => i ? [h('wbr'), x] : x);
const rate = (perSecond) => { /* 0.017 a second is 1/m */
	const [n, unit] = [[1, 's'], [60, 'm'], [3600, 'h'], [86400, 'd']].map(([x, u]) => [perSecond * x, u]).find(([x]) => x >= .95) || [perSecond * 86400, 'd'];
	return number(n) + '/' + unit;
};
/* The daemon's times within a sentence, as the others here. */
const local = (text) => (text || '').replace(/\w{3}, \d+ \w{3} \d{4} [\d:]{8} [+-]\d{4}/g, (d) => at(Date.parse(d)));
/* Encoded words (RFC 2047); one that is not valid stays as it is. */
const decoded = (text) => text.replace(/=\?([^?*]+)[^?]*\?([bq])\?([^?]*)\?=(?:\s+(?==\?))?/gi, (all, charset, kind, x) => {
	try {
		const octets = /b/i.test(kind) ? atob(x) : x.replace(/_/g, ' ').replace(/=([\da-f]{2})/gi, (_, n) => String.fromCharCode(parseInt(n, 16)));
		return new TextDecoder(charset).decode(Uint8Array.from(octets, (c) => c.charCodeAt(0)));
	} catch (error) {
		return all;
	}
});
const link = (to, ...children) => h('a', { href: '#/' + to }, ...children);
const idLink = (id) => h('a.id', { href: '#/message/' + id }, id);
const pill = (word, kind) => h('span.pill' + (kind ? '.' + kind : ''), word);

/* --- Questions --- */

let status = null, series = null, live = false, gone = false;
/* When the daemon was last heard (our clock), and whether it answered the last question. It speaks each second, or each
 * 15 seconds if nothing changes: ms until one that hangs counts as dead. */
let heard = 0, reached = true, silence = 35e3;
const isStale = () => !live && !reached;

async function ask(path, { body, ...options } = {}) {
	const answer = await fetch(path, {
		headers: { 'X-Petrel': '1', ...body && { 'Content-Type': 'application/json' } },
		...body && { method: 'POST', body: JSON.stringify(body) }, ...options,
	});
	if (answer.status === 401) enter();
	if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error || 'HTTP ' + answer.status);
	return answer;
}
const askJson = async (path, patience = 6e4) => (await ask(path, { signal: AbortSignal.timeout(patience) })).json();

async function eachLine(answer, each) {
	const reader = answer.body.getReader(), decoder = new TextDecoder();
	for (let rest = '', end = false; !end;) {
		const { done, value } = await reader.read();
		const text = (rest + decoder.decode(value, { stream: !done })).split('\n');
		rest = done ? '' : text.pop();
		for (const line of text) each(line);
		end = done;
	}
}

/* For a view that shows store.error. */
async function attempt(store, run) {
	store.error = '';
	await run().catch((error) => { store.error = error.message; });
	draw();
}

/* The answer about a key; a late one for another is dropped. */
function latest(store, key, path) {
	if (store.key === key) return;
	Object.assign(store, { key, data: null });
	attempt(store, async () => {
		const data = await askJson(path + encodeURIComponent(key));
		if (store.key === key) store.data = data;
	});
}

/* A list that comes in pages of 500, for a view. */
function pages(path, member) {
	const list = { all: null, error: '', asked: 0 };
	list.load = () => attempt(list, async () => {
		const all = [], asked = now();
		for (let from = 0, part; from < 20000 && (!part || part.length === 500); from += 500)
			all.push(...part = (await askJson(`${path}?from=${from}`))[member]);
		Object.assign(list, { all, asked });
	});
	return list;
}

/* --- Live --- */

const events = [];
let sequence = '', skipped = 0, paused = false;

function takeStatus(fresh) {
	status = { ...status, ...fresh };
	draw();
}

function takeEvent(event) {
	if (event.message && event.message === message.id && view() === 'message') loadMessage(message.id);
	if (paused) return;
	events.unshift(event);
	events.length = Math.min(events.length, 500);
	if (view() === 'log') draw();
}

function takeFrame({ id, event, data }) {
	if (id) sequence = id;
	const told = data && JSON.parse(data);
	if (event === 'status') takeStatus(told);
	else if (event === 'event') takeEvent(told);
	else if (event === 'skipped') skipped += told.count || 0;
}

function setLive(value) {
	if (live === value) return;
	live = value;
	say(live ? 'Live' : 'Not live');
	draw();
}

const refresh = () => askJson('api/status', Math.min(silence, 1e4)).then((fresh) => { heard = Date.now(); reached = true; takeStatus(fresh); }, () => { reached = false; draw(); });
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/* A restarted daemon numbers its events anew. */
async function follow() {
	while (!gone) {
		const stop = new AbortController();
		let guard;
		const wait = () => { clearTimeout(guard); guard = setTimeout(() => stop.abort(), silence); };
		try {
			wait();
			const answer = await ask('events' + (sequence && '?from=' + sequence), { signal: stop.signal });
			let frame = {};
			setLive(true);
			await eachLine(answer, (line) => {
				heard = Date.now();
				wait();
				const colon = line.indexOf(': ');
				if (line) frame[line.slice(0, colon)] = line.slice(colon + 2);
				else takeFrame(frame), frame = {};
			});
		} catch (error) {
			sequence = '';
		}
		clearTimeout(guard);
		setLive(false);
		await refresh();
		await sleep(5e3);
	}
}

async function followSeries() {
	while (!gone) {
		await askJson('api/series').then((s) => { series = s; ahead = s.now_ms - Date.now(); draw(); }, () => {});
		await sleep(document.hidden || view() ? 3e4 : 5e3);
	}
}

/* --- Sites as lanes --- */

function bound(s) {
	const left = (s.bound_until_ms || 0) - now(), next = left > 0 ? ', next in ' + span(left) : '';
	const words = {
		nothing: s.waiting ? 'nothing holds it back' : 'idle',
		dead: `dead until ${at(s.dead_until_ms || s.bound_until_ms)}${s.reason ? ': ' + s.reason : ''}`,
		probe: 'it was dead: one session tries it',
		rate: `rate ${s.rate}${next}`,
		learnt_rate: `rate ${rate(s.learnt_rate)}, learnt from its replies${next}`,
		rate_delay: `a delay of ${span(s.rate_delay_ms)} after each message${next}`,
		transport_rate_delay: `its transport's delay of ${span(s.transport_rate_delay_ms)}${next}`,
		window: `window ${s.window} of ${s.limit}`,
		ceiling: `it refused more than ${count(s.ceiling, 'session')}${next}`,
		congested: 'it answers slowly: no more sessions',
		pause: `a pause after a failed session${next}`,
		token: s.reason || 'it waits for a token to log in',
		quota: (s.reason || 'a quota is used up') + (left > 0 ? ', next at ' + at(s.bound_until_ms) : ''),
		lease: `our part of the group's sessions${next}`,
		lease_rate: `our part of the group's rate${next}`,
		proof: 'no session meets the demand of the domain for TLS',
		delivery_session_limit: 'all sessions of this host are in use',
	};
	return words[s.bound] || s.bound + next;
}

const isDead = (s) => s.state === 'dead';
const statePill = (s) => s.state !== 'alive' && pill(s.state, isDead(s) ? 'bad' : 'warn');
const siteLink = (s) => link('sites/' + encodeURIComponent(s.site), s.site);
/* Sites of one name differ in the options of their routes. */
const siteKey = (s) => s.site + ' ' + (s.options || '');
const siteName = (s, list) => [siteLink(s), list.some((x) => x !== s && x.site === s.site) && muted(` ${s.options || 'no options'}`)];
/* Of mail that goes by MX; a route names its next hop. */
function siteDomains(s) {
	const shown = s.domains.filter((d) => !d.includes(':')).slice(0, 2), more = s.destinations - shown.length;
	return shown.length > 0 && h('div.domains.small.muted', shown.join(', '), more > 0 && ` and ${number(more)} more`);
}
const image = (tag, text, ...children) => h(tag, { role: 'img', 'aria-label': text, title: text }, ...children);

function slots(s) {
	const shown = Math.min(40, Math.max(s.window, s.sessions, Math.min(s.limit, 20)));
	const kinds = ['busy', 'idle', 'greeting'].flatMap((k) => Array(s[k] || 0).fill(k));
	return image('div.slots', `${s.busy} busy, ${s.idle} idle, window ${s.window} of ${s.limit}`,
		Array.from({ length: shown }, (_, i) => h('i', { class: kinds[i] || i < s.window && 'window' })),
		s.limit > shown && muted('+' + (s.limit - shown)));
}

const part = (n, kind) => h('i' + (kind ? '.' + kind : ''), { css: { 'flex-grow': String(n) } });

function lane(s, most, list) {
	const all = s.waiting + s.backlogged, left = (s.bound_until_ms || 0) - now();
	const text = [s.waiting && count(s.waiting, 'message'), s.backlogged && `${number(s.backlogged)} backlogged`].filter(Boolean).join(', ') || 'nothing waits';
	return h('li.lane', { 'data-key': siteKey(s) },
		h('div.name', siteName(s, list), statePill(s), siteDomains(s)), slots(s),
		h('div', image('div.track', text, part(s.waiting), part(s.backlogged, 'back'), part(Math.max(most - all, all ? 0 : 1), 'none')), h('div.small.muted.n', text)),
		h('div', { class: 'small' + (isDead(s) ? ' bad' : '') }, bound(s),
			/rate/.test(s.bound) && h('div.rate', h('i', { css: { width: Math.min(100, Math.max(0, left / 10)) + '%' } }))));
}

function lanes() {
	const list = status.sites, t = status.site_totals, s = status.sessions;
	const most = Math.max(1, ...list.map((x) => x.waiting + x.backlogged));
	return card(null,
		h('div.head', h('h2', 'Sites'),
			muted(`${number(s.out)} of ${count(status.limits.delivery_session_limit, 'session')}; ${number(t.waiting)} waiting`, t.backlogged > 0 && `, ${number(t.backlogged)} backlogged`, t.dead > 0 && `; ${number(t.dead)} dead`),
			t.sites > list.length && link('sites', `all ${number(t.sites)}`)),
		list.length > 0 && h('div.lane.lanes-head', { 'aria-hidden': 'true' }, ['site', 'sessions', 'messages', 'bound'].map((x) => h('span', x))),
		list.length ? h('ul.lanes', list.map((x) => lane(x, most, list))) : empty(t.sites ? 'No mail waits for any site.' : 'No mail has gone out yet.'));
}

/* --- Now --- */

let period = 'second';
const sum = (list) => list.reduce((a, b) => a + b, 0);

/* In steps, as many as can be seen. */
function steps(values) {
	const each = Math.max(1, Math.floor(values.length / 100)), sums = [];
	for (let i = values.length % each; i < values.length; i += each) sums.push(sum(values.slice(i, i + each)));
	return { sums, ms: each * (period === 'second' ? 1e3 : 6e4) };
}

/* The step of a chart that is pointed at, or chosen by arrow keys. */
let mark = {};

function chart(kind, sums, ms) {
	const most = Math.max(...sums, 1), last = Math.max(0, sums.length - 1), x = (i) => (i * 300 / (last || 1)).toFixed(1);
	const line = sums.map((v, i) => `${i ? 'L' : 'M'}${x(i)} ${(54 - v / most * 50).toFixed(1)}`).join('');
	const isMarked = mark.kind === kind, i = isMarked ? Math.min(mark.i, last) : last;
	const value = series ? `${number(sums[i] || 0)} in ${span(ms)}, until ${at(series.now_ms - (last - i) * ms)}` : 'not known yet';
	const set = (n) => { mark = { kind, i: Math.max(0, Math.min(last, n)) }; draw(); }, leave = () => { mark = {}; draw(); };
	const keys = { ArrowLeft: i - 1, ArrowDown: i - 1, ArrowRight: i + 1, ArrowUp: i + 1, Home: 0, End: last };
	const point = (e) => { const box = e.currentTarget.lastChild.getBoundingClientRect(); set(Math.round((e.clientX - box.left) / box.width * last)); };
	return [h('div.chart', { role: 'slider', tabindex: 0, 'aria-label': kind, 'aria-valuemin': 0, 'aria-valuemax': last, 'aria-valuenow': i, 'aria-valuetext': value,
		on: { pointermove: point, pointerleave: leave, focus: () => set(last), blur: leave, keydown: (e) => { if (e.key in keys) { e.preventDefault(); set(keys[e.key]); } } } },
	h('div.scale.n', h('span', number(most)), h('span', '0')),
	h('svg', { viewBox: '0 0 300 56', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
		[4, 54].map((y) => h('line', { x1: 0, x2: 300, y1: y, y2: y })), isMarked && h('line.mark', { x1: x(i), x2: x(i), y1: 0, y2: 56 }),
		line && [h('path.area', { d: line + 'L300 54L0 54Z' }), h('path', { d: line })])),
	h('div.under.n', isMarked ? h('span', value) : [h('span', period === 'second' ? '10 min ago' : '24 h ago'), h('span', 'now')])];
}

function figure(kind) {
	const values = series ? series[period][kind] : [], { sums, ms } = steps(values);
	return h('div.figure.c-' + kind, h('div.name', h('i'), h('span', kind)),
		h('b', series ? number(sum(series.second[kind].slice(-60))) : '–'),
		h('div.under.n', h('span', 'in the last minute'), h('span', `${number(sum(values))} in ${period === 'second' ? '10 min' : '24 h'}`)), chart(kind, sums, ms));
}

const rank = (f) => ['error', 'warning', 'hint'].indexOf(f.severity);

/* Where its cause is seen: a queue, a message or a site that it names, the sites. */
const CAUSES = { corrupt: 'queue?queue=corrupt', held_long: 'queue?queue=hold', hold_by_route: 'queue?queue=hold', expires_soon: 'queue?older=1d', fragments_stuck: 'fragments', port_25_blocked: 'sites' };

function causes(f) {
	const [id] = /\b[0-9A-Z]{10}-[0-9A-Z]{8}\b/.exec(f.text) || [], isHost = /^(upstream|login|sender|receiver|reports)_/.test(f.code);
	const named = status.sites.find((s) => f.text.includes(s.site) || f.subject === s.site || isHost && s.site.replace(/[[\]]/g, '').includes(f.subject));
	return [CAUSES[f.code] && link(CAUSES[f.code], 'Show'), id && link('message/' + id, 'The message'), named ? siteLink(named) : /^site_/.test(f.code) && link('sites', 'The sites')].filter(Boolean).map((a) => [' ', a]);
}

function findings() {
	const list = [...status.findings || []].sort((a, b) => rank(a) - rank(b));
	return list.length > 0 && h('ul.findings', { 'aria-label': 'Findings' }, list.map((f) => h('li', { class: f.severity, 'data-key': f.code + f.subject },
		h('span.word', f.severity), h('span.text', f.subject && [h('b', f.subject), ': '], local(f.text)), muted(f.since_ms && 'for ' + span(now() - f.since_ms)), h('span.remedy.muted', f.remedy.split('`').map((t, i) => i % 2 ? h('code', t) : t), causes(f)))));
}

const PLACES = { incoming: 'not yet loaded', active: 'in memory', deferred: 'to be retried', hold: 'held', defrag: 'await parts', corrupt: 'quarantined' };

function places() {
	return h('div.places', Object.keys(PLACES).map((p) => h('a', { href: '#/queue?queue=' + p, class: p === 'corrupt' && status.queue[p] > 0 && 'is-bad' },
		h('b', number(status.queue[p])), p, h('br'), h('span.small', PLACES[p]))));
}

const gauge = (used, all, kind) => h('div.track.gauge', part(used, kind || 'used'), part(Math.max(0, all - used), 'none'));

function machine() {
	const { spool, journal, sandbox = {}, history = {}, suppression = {}, sessions, certificates = [], listeners = [], upstreams = [] } = status;
	const low = spool.bytes_free < 2 * spool.bytes_reserve || spool.inodes_free < 2 * spool.inodes_reserve;
	const used = journal.segments - journal.free_segments;
	return h('div.two',
		card('Disk', facts(
			['spool', h('code', spool.path), h('div', { class: low && 'bad' }, `${bytes(spool.bytes_free)} and ${count(spool.inodes_free, 'inode')} free`)],
			['reserve', `${bytes(spool.bytes_reserve)}: below it no mail is accepted`],
			['journal', `${used} of ${count(journal.segments, 'segment')} used, ${count(journal.messages, 'message')}`, gauge(used, journal.segments, journal.full && 'low')],
			history.size > 0 && ['history', `${bytes(history.bytes)} of ${bytes(history.size)}`, history.paused && h('span.bad', ' paused'), gauge(history.bytes, history.size)])),
		card('Connections', facts(
			['sessions', `${number(sessions.in)} in, ${number(sessions.out)} out (${number(sessions.busy)} busy)`],
			listeners.length > 0 && ['listeners', lines(listeners.filter((l) => l.kind !== 'control'), (l) => [h('code', l.address), muted(` ${l.kind}, TLS: ${l.tls}`)])],
			certificates.length > 0 && ['certificates', lines(certificates, (c) => [`${c.names[0] || c.file} `, h('span', { class: c.days_left < 14 ? 'bad' : 'muted' }, c.valid ? count(c.days_left, 'day') + ' left' : 'not valid')])],
			upstreams.length > 0 && ['smarthosts', lines(upstreams, (u) => [`${u.relay} `, u.up ? pill('works', 'good') : pill('fails', 'bad'), u.success_ms > 0 && muted(' last success ', time(u.success_ms))])],
			suppression.on && ['suppressed', `${number(suppression.addresses)} addresses, ${number(suppression.refused + suppression.failed)} recipients refused since startup`, suppression.full && h('span.bad', ' full')],
			['sandbox', `Landlock ${sandbox.landlock || 'missing'}, seccomp ${sandbox.seccomp ? 'on' : 'missing'}`],
			['running', `version ${status.version}, for ${span(status.uptime_s * 1000, true)}`])));
}

function drawNow() {
	if (!status) return [empty('Waiting for the daemon…')];
	const choose = (name, text) => button(text, () => { period = name; draw(); }, '', { 'aria-pressed': String(period === name) });
	return [h('h1.hidden', 'Now'), findings(),
		card(null, h('div.head', h('h2', 'Messages'), h('div.choice', { role: 'group', 'aria-label': 'Period' }, choose('second', '10 minutes'), choose('minute', '24 hours'))),
			h('div.figures', ['accepted', 'delivered', 'deferred', 'bounced'].map(figure))),
		card('Queue', places()), lanes(), machine()];
}

/* --- Queue --- */

const queue = { key: null, all: [], next: null, loading: false, error: '', selected: new Set(), turn: 0, asked: 0 };

async function queuePage(after, limit) {
	const query = new URLSearchParams(route().query);
	query.set('limit', limit);
	if (after) query.set('after', after);
	return askJson('api/queue?' + query);
}

async function loadQueue(fresh) {
	const turn = fresh ? ++queue.turn : queue.turn;
	if (fresh) Object.assign(queue, { all: [], next: null, selected: new Set(), asked: now() });
	Object.assign(queue, { loading: true, error: '' });
	draw();
	const got = await queuePage(queue.next, 100).catch((error) => ({ messages: [], error: error.message }));
	if (turn !== queue.turn) return;
	queue.all.push(...got.messages);
	Object.assign(queue, { next: got.next || null, loading: false, error: got.error || '' });
	draw();
}

function whyShort(m) {
	const reason = local((m.recipients.find((r) => !r.done && r.delay_reason) || {}).delay_reason), due = m.due_time * 1000 - now();
	return m.queue_name === 'hold' ? 'held' : m.queue_name === 'active' ? reason || 'in memory: its turn comes, or it is in delivery'
		: [m.queue_name === 'deferred' && (due > 0 ? 'next attempt in ' + span(due) : 'next attempt soon'), reason].filter(Boolean).join('; ');
}

function queueRow(m) {
	const pick = h('input', { type: 'checkbox', checked: queue.selected.has(m.queue_id), 'aria-label': 'Select ' + m.queue_id,
		on: { change: (e) => { queue.selected[e.target.checked ? 'add' : 'delete'](m.queue_id); draw(); } } });
	const row = [m.queue_id, mayAct() && pick, [m.subject && 'a', null, idLink(m.queue_id), m.subject && h('bdi.subject', decoded(m.subject))]], place = [null, 'queue', m.queue_name];
	if (!m.recipients) return [...row, '', '', place, '', '', '']; /* it cannot be read */
	const open = m.recipients.filter((r) => !r.done), to = (open.length ? open : m.recipients).map((r) => r.address), more = to.length - 2 + (m.recipients_more || 0);
	return [...row, ['a', 'from', mailbox(m.sender)],
		['a', 'to', to.slice(0, 2).map((a, i) => [i ? ', ' : '', mailbox(a)]), more > 0 && ` and ${number(more)} more`], place,
		['r n', 'size', bytes(m.message_size)], ['r n', 'age', span(now() - m.arrival_time * 1000)], ['a small', 'why', whyShort(m)]];
}

function setFilter(event) {
	const query = new URLSearchParams();
	if (event) event.preventDefault();
	for (const { name, value } of byId('filter').elements) if (name && value.trim()) query.set(name, value.trim());
	location.hash = '#/queue' + (String(query) && '?' + query);
}

function queueFilter(query) {
	const field = ([name, label]) => h('label', label, h('input', { name, value: query.get(name) || '' }));
	const select = (name, label, options) => h('label', label, h('select', { name, on: { change: () => setFilter() } },
		options.map(([value, text]) => h('option', { value, selected: (query.get(name) || '') === value }, text))));
	return h('form.tools', { id: 'filter', 'data-key': String(query), on: { submit: setFilter } },
		select('queue', 'queue', [['', 'anywhere'], ...Object.keys(PLACES).map((p) => [p, p])]), [['q', 'words'], ['from', 'sender'], ['to', 'recipient']].map(field),
		select('older', 'age', [['', 'any'], ['10m', 'over 10 min'], ['1h', 'over 1 hour'], ['1d', 'over 1 day']]),
		h('button.main', 'Filter'), String(query) && link('queue', 'clear'));
}

function drawQueue({ query }) {
	if (queue.key !== String(query)) {
		queue.key = String(query);
		loadQueue(true);
	}
	const { all, selected, error, loading, next } = queue, n = selected.size;
	const pickAll = h('input', { type: 'checkbox', 'aria-label': 'Select all shown', checked: n > 0 && n >= all.length,
		on: { change: (e) => { queue.selected = new Set(e.target.checked ? all.map((m) => m.queue_id) : []); draw(); } } });
	return [head('Queue', muted(count(all.length, 'message'), ' shown, as of ', time(queue.asked)), button('Refresh', () => loadQueue(true))),
		card(null, queueFilter(query)),
		card(null,
			all.length > 0 && table([mayAct() && h('td', pickAll), 'id', 'from', 'to', 'queue', ...['size', 'age'].map((t) => h('th.r', { scope: 'col' }, t)), 'why it waits'], all.map(queueRow)),
			failure(error), loading ? empty('Loading…') : !all.length && !error && empty(String(query) ? 'No message matches.' : 'The queue is empty.'),
			next && !loading && h('p.more', button('Show more', () => loadQueue())),
			mayAct() && all.length > 0 && h('div.acts.tools', n > 0 ? [muted(`${number(n)} selected:`), verbButtons(() => [...queue.selected], n > all.length ? undefined : fitting(all.filter((m) => selected.has(m.queue_id))))] : muted('Select messages to act on them, or'),
				button(next ? 'select all that match' : 'select all', () => attempt(queue, selectMatching), 'link')))];
}

/* What does something for one of these messages, as `petrel queue` has it. */
function fitting(list) {
	const verbs = list.flatMap((m) => {
		const mayGo = m.queue_name === 'defrag' || m.release_time * 1000 > now(); /* it waits for others, or for its time */
		return { corrupt: ['release', 'rm'], hold: ['release', 'bounce', 'rm'] }[m.queue_name] || ['hold', mayGo ? 'release' : 'retry', 'bounce', 'rm'];
	});
	return Object.keys(VERBS).filter((v) => verbs.includes(v));
}

/* Every id that matches: what is confirmed is done. */
async function selectMatching() {
	const ids = new Set(queue.all.map((m) => m.queue_id)), { turn } = queue;
	for (let after = queue.next, got; after; after = got.next) {
		got = await queuePage(after, 500);
		if (turn !== queue.turn) return;
		for (const m of got.messages) ids.add(m.queue_id);
		say(`${number(ids.size)} found`);
	}
	queue.selected = ids;
}

/* --- Acting --- */

const VERBS = {
	hold: ['Hold', 'Held mail is not delivered until it is released.'],
	release: ['Release', 'It is delivered again.'],
	retry: ['Retry', 'Delivery is tried now.'],
	bounce: ['Return', 'Open recipients fail, and the sender is notified.'],
	rm: ['Delete', 'Nobody is notified, and nothing brings it back.'],
};
const isDanger = (verb) => verb === 'bounce' || verb === 'rm';
const mayAct = () => status && status.access === 'operate';
const closeDialog = () => byId('dialog').close();
const verbButtons = (ids, verbs = Object.keys(VERBS)) => verbs.map((v) => button(VERBS[v][0], () => confirmAct(v, ids()), isDanger(v) && 'danger'));

function openDialog(title, ...children) {
	byId('dialog').replaceChildren(h('h2', { id: 'dialog-title' }, title), ...children);
	if (!byId('dialog').open) byId('dialog').showModal();
}

function named(id) {
	const m = queue.all.find((x) => x.queue_id === id) || (message.id === id && message.why) || {}, to = (m.recipients || []).map((r) => r.address);
	return m.recipients && [' ', mailbox(m.sender), ' to ', mailbox(to[0]), to.length > 1 && ` and ${number(to.length - 1 + (m.recipients_more || 0))} more`];
}

function confirmAct(verb, ids) {
	const must = isDanger(verb) && ids.length > 10;
	const go = h('button', { class: isDanger(verb) ? 'danger' : 'main', disabled: must }, VERBS[verb][0]);
	const typed = h('input', { id: 'typed', on: { input: () => { go.disabled = typed.value.trim() !== String(ids.length); } } });
	const cancel = button('Cancel', closeDialog);
	openDialog(`${VERBS[verb][0]} ${count(ids.length, 'message')}?`, h('form', { on: { submit: (e) => { e.preventDefault(); act(verb, ids); } } },
		h('ul.named', ids.slice(0, 5).map((id) => h('li', h('span.id', id), named(id))), ids.length > 5 && h('li', `and ${number(ids.length - 5)} more`)),
		h('p', VERBS[verb][1]), must && [h('label', { for: 'typed' }, `Type ${ids.length} to confirm:`), typed],
		h('div.tools', cancel, go)));
	(must ? typed : isDanger(verb) ? cancel : go).focus(); /* Enter destroys nothing */
}

async function act(verb, ids) {
	let done = 0, failed = 0;
	const progress = h('p.n', { role: 'status' }, 'Asking…'), list = h('ul'), close = button('Close', closeDialog, 'main');
	openDialog(VERBS[verb][0], progress, list, h('div.tools', close));
	close.focus();
	const told = (line) => {
		const answer = line ? JSON.parse(line) : { end: true };
		if (answer.end) return;
		if (answer.ok) done++;
		else if (++failed <= 50) list.append(h('li', `${answer.id || ''} ${answer.text || answer.error || ''}`));
		progress.textContent = `${number(done)} of ${number(ids.length)} done` + (failed ? `, ${number(failed)} failed` : '');
	};
	try {
		for (let i = 0; i < ids.length; i += 500) await eachLine(await ask('api/queue/' + verb, { body: { ids: ids.slice(i, i + 500) } }), told);
	} catch (error) {
		list.append(h('li', error.message));
	}
	if (view() === 'queue') loadQueue(true);
	if (view() === 'message') loadMessage(message.id);
}

/* --- A message --- */

const message = { id: null };

async function loadMessage(id) {
	if (message.id !== id) Object.assign(message, { id, why: null, life: null, header: null, loading: true });
	const [why, life] = await Promise.all([askJson(`api/queue/${id}/why`).catch(() => null), askJson('api/trace?limit=1&q=' + id).catch(() => [])]);
	if (message.id !== id) return;
	Object.assign(message, { why, life: life[0] || null, loading: false });
	draw();
}

/* Of a large one no more is asked for. */
async function loadHeader() {
	const stop = new AbortController();
	let text = '';
	try {
		await eachLine(await ask(`api/queue/${message.id}/message`, { signal: stop.signal }), (line) => {
			if (stop.signal.aborted) return;
			text += line.replace(/\r$/, '') + '\n';
			if (!line.trim() || text.length > 65536) stop.abort();
		});
	} catch (error) {
		if (!stop.signal.aborted) text = error.message;
	}
	message.header = text.slice(0, 65536);
	draw();
}

async function download() {
	const href = URL.createObjectURL(await (await ask(`api/queue/${message.id}/message`)).blob());
	h('a', { href, download: message.id + '.eml' }).click();
	setTimeout(() => URL.revokeObjectURL(href), 6e4);
}

function eventSentence(e) {
	const to = e.recipient === undefined ? '' : address(e.recipient) + (e.original_recipient ? ` (for ${address(e.original_recipient)})` : '') + ': ';
	const relay = e.relay && e.relay !== 'none' ? ' ' + e.relay : '', text = e.text ? ': ' + e.text : '';
	if (e.type === 'accepted') return [`accepted from ${e.client || 'this host'}`, e.helo && ` (${e.helo})`, e.user && `, user ${e.user}`, e.tls && `, ${e.tls}`, e.recipients && `, for ${count(e.recipients, 'recipient')}`];
	const by = { delivered: ' to', deferred: ' by', bounced: ' by' }[e.type] || '';
	return to + (!by && e.text && e.text.includes(e.type) ? e.text : e.type + (by && relay && by + relay) + text);
}

function whySentences() {
	const m = message.why, w = m && m.why;
	if (!m) return message.life && message.life.ended ? ['It has left the queue.'] : [];
	if (m.queue_name === 'hold') return ['It is held: it is not delivered, not retried, and does not expire until it is released.'];
	if (!w) return [];
	return [w.due_ms > now() && ['The next attempt is at ', time(w.due_ms), `, in ${span(w.due_ms - now())}${w.backlogged ? ', or as soon as its site works again' : ''}.`],
		...(w.reasons || []).map(local), w.ahead > 0 && `${count(w.ahead, 'message')} will be loaded before it.`, w.loading && 'It is being read from the disk.',
		w.excess && 'Its site has more than its share of the active queue; it is loaded when that changes.', w.lacks_room && 'It has more recipients than there is space for in the active queue.',
		...(w.hops || []).filter((x) => x.site).map((x) => `${x.site.site}: ${bound(x.site)}; ${count(x.site.waiting + x.site.backlogged, 'message')} waiting there.`),
		w.expires_ms && ['It expires at ', time(w.expires_ms), '.']].filter(Boolean);
}

function messageRecipients() {
	if (message.why) return message.why.recipients.map((r) => [r.address, r.done ? 'done' : 'open', local(r.delay_reason)]);
	const last = {};
	for (const e of message.life.events) if (e.recipient !== undefined && e.type !== 'notified') last[e.recipient] = e; /* the sender is notified */
	return Object.entries(last).map(([a, e]) => [a, e.type, e.text || '']);
}

function messageParts() {
	const reason = message.why && message.why.recipients.map((r) => r.delay_reason).find(Boolean);
	const [, total, missing] = /have \d+ of (\d+); missing parts: ([\d, ]+)/.exec(reason) || [];
	return total && ['parts', boxes(Number(total), (i) => !missing.split(', ').includes(String(i)))];
}

function drawMessage({ rest: id }) {
	if (message.id !== id) loadMessage(id);
	const { why, life, loading, header } = message, m = why || life, arrived = why ? why.arrival_time * 1000 : life && life.time_ms;
	const state = why ? why.queue_name : life && life.state, sentences = m ? whySentences() : [];
	const { subject } = queue.all.find((x) => x.queue_id === id) || {}; /* where the list of the queue has it */
	return [head(['Message ', h('span.id', id), ' ', state && pill(state)],
		why && mayAct() && h('div.tools', verbButtons(() => [id], fitting([why])))),
	loading ? empty('Loading…') : !m && empty('Neither the queue nor the history knows this message.'),
	m && card(null, facts(subject && ['subject', h('bdi', decoded(subject))], ['from', address(m.sender)], ['size', bytes(why ? why.message_size : life.size)],
		['arrived', time(arrived), muted(` ${span(now() - arrived, true)} ago`)], life && life.message_id && ['Message-ID', h('code', life.message_id)], messageParts())),
	sentences.length > 0 && card(why ? 'Why it waits' : 'Now', h('ul.reasons', sentences.map((s) => h('li', s)))),
	m && card('Recipients', table(['address', 'state', 'last reply'], messageRecipients().slice(0, 500).map(([a, s, t]) => [a, ['a', null, mailbox(a)], s, ['a small', null, t]]))),
	life && card('History', h('ol.timeline', life.events.map((e) => h('li', { class: e.type }, time(e.time_ms), eventSentence(e), e.hint && h('span.hint', e.hint))))),
	why && mayAct() && card(null, h('div.head', h('h2', 'Content'), button('Show the header', loadHeader), button('Download', () => attempt(message, download))), failure(message.error), header && h('pre', { tabindex: 0 }, header))];
}

/* --- Search --- */

const found = {};

function drawSearch({ query: asked }) {
	const query = asked.get('q') || '';
	latest(found, query, 'api/trace?limit=50&q=');
	const { data: list, error } = found, names = (m) => [...new Set(m.events.map((e) => e.recipient).filter((r) => r !== undefined))].slice(0, 3).join(', ');
	if (list && list.length === 1) location.replace('#/message/' + list[0].id);
	return [head(`Messages with “${query}”`), card(null, failure(error) || !list && empty('Searching the history…'), list && !list.length && empty('The history has no such message.'),
		list && list.length > 0 && table(['time', 'id', 'from', 'to', 'state'], list.map((m) => [m.id, time(m.time_ms), idLink(m.id), ['a', 'from', mailbox(m.sender)], ['a', 'to', names(m)], m.state])))];
}

/* --- Sites --- */

const sites = pages('api/sites', 'sites');
let sortKey = 'state', isDown = true; /* probing, dead, alive */

function drawSites({ rest }) {
	if (rest) return drawSite(rest);
	const order = (a, b, x = a[sortKey], y = b[sortKey]) => typeof x === 'number' ? x - y : String(x).localeCompare(y);
	const mail = (s) => s.waiting + s.backlogged;
	const list = [...sites.all || []].sort((a, b) => (isDown ? -1 : 1) * order(a, b) || mail(b) - mail(a)), shown = list.slice(0, 500);
	const column = ([key, text]) => h('th', { scope: 'col', 'aria-sort': sortKey === key && (isDown ? 'descending' : 'ascending') },
		button(text, () => { isDown = sortKey === key ? !isDown : key !== 'site'; sortKey = key; draw(); }));
	const columns = [['site', 'site'], ['state', 'state'], ['waiting', 'waiting'], ['backlogged', 'backlogged'], ['busy', 'sessions'], ['window', 'window'], ['latency_ms', 'latency'], ['bound', 'bound']];
	return [head('Sites', muted(sites.all && count(list.length, 'site') + (list.length > 500 ? ', 500 shown' : ''), sites.all && [', as of ', time(sites.asked)]), button('Refresh', sites.load)),
		card(null, failure(sites.error), sites.all && !list.length && empty('No mail has gone out yet.'),
			list.length > 0 && table(columns.map(column), shown.map((s) => [siteKey(s), ['a', null, siteName(s, shown), siteDomains(s)], [isDead(s) && 'bad', null, s.state], ['n', 'waiting', number(s.waiting)], ['n', 'backlogged', number(s.backlogged)],
				['n', 'sessions', `${s.busy} of ${s.sessions} busy`], ['n', 'window', `${s.window} of ${s.limit}`], ['n', 'latency', s.latency_ms ? number(s.latency_ms) + ' ms' : ''], ['a small', null, bound(s)]])))];
}

const site = {};

const siteFacts = (s) => card('Limits and addresses', facts(['bound', bound(s)], ['domains', s.domains.map((d, i) => [i ? ', ' : '', /:/.test(d) ? d : link('queue?to=' + encodeURIComponent(d), d)])], ['window', `${s.window} of ${s.limit}${s.ceiling ? ', ceiling ' + s.ceiling : ''}`],
	s.options && ['options', s.options], ['rate', s.rate || 'not limited', s.learnt_rate > 0 && `; learnt ${rate(s.learnt_rate)}`], ['latency', s.latency_ms ? number(s.latency_ms) + ' ms' : 'not known yet'],
	s.dead_since_ms && ['dead', 'since ', time(s.dead_since_ms), s.dead_until_ms ? [', until ', time(s.dead_until_ms)] : ', being tried now'], s.reason && ['reason', s.reason], s.remote && ['address', h('code', s.remote)]));

/* All sites of that name. */
function drawSite(name) {
	latest(site, name, 'api/site?name=');
	const { error, data } = site, { failed, sites: known } = data || {}, live = (status ? status.sites : []).filter((x) => x.site === name);
	const list = known ? known.map((k) => live.find((x) => siteKey(x) === siteKey(k)) || k) : live, most = Math.max(1, ...list.map((s) => s.waiting + s.backlogged));
	if (!list.length) return [head(name), failure(error) || empty('Loading…')];
	return [head(name, link('sites', 'all sites')), ...list.flatMap((s) => [card(null, h('ul.lanes', lane(s, most, list))), siteFacts(s)]),
		failed && card('Its last failed conversation', muted(time(failed.begun_ms), ' with ', failed.relay), h('pre', { tabindex: 0 }, failed.lines.map((l) => `${l.from.padEnd(5)}${l.text}\n`).join('')))];
}

/* --- Fragments --- */

const sets = pages('api/fragments', 'sets');

function boxes(total, isHere) {
	const here = Array.from({ length: Math.min(total, 100) }, (_, i) => isHere(i + 1));
	return image('div.boxes', `${here.filter(Boolean).length} of ${total} parts are here`, here.map((x, i) => h('i', { class: !x && 'missing' }, i + 1)), total > 100 && muted(`and ${number(total - 100)} more`));
}

function drawFragments() {
	const list = sets.all || [];
	return [head('Fragments', muted(sets.all && [count(list.length, 'set'), ', as of ', time(sets.asked)]), button('Refresh', sets.load)),
		card(null, failure(sets.error), sets.all && !list.length && empty('No fragment waits for others.'),
			list.length > 0 && table(['parts', 'from', 'to', 'size', 'since', 'until'], list.map((s) => [s.set,
				[null, null, boxes(s.total || Math.max(0, ...s.have), (i) => s.have.includes(i)), !s.total && muted('total not known yet')], ['a', 'from', address(s.sender)], ['a', 'to', address(s.recipient)],
				['n', 'size', bytes(s.bytes)], [null, 'since', time(s.since_ms)], [null, 'until', s.until_ms > 0 && time(s.until_ms)]])))];
}

/* --- Log --- */

let logFilter = '';

function logText(e) {
	const { type, time_ms, message, text, ...rest } = e;
	return Object.entries(rest).filter(([, v]) => typeof v !== 'object').map(([k, v]) => `${k}=${v}`).join(', ') + (text ? ` (${text})` : '');
}

function drawLog() {
	const words = logFilter.toLowerCase(), list = events.filter((e) => !words || JSON.stringify(e).toLowerCase().includes(words));
	return [head('Log', skipped > 0 && muted(`${number(skipped)} events were too many to show`),
		h('div.tools', h('input', { type: 'search', 'aria-label': 'Filter the log', placeholder: 'Filter', value: logFilter, on: { input: (e) => { logFilter = e.target.value; draw(); } } }),
			button(paused ? 'Go on' : 'Pause', () => { paused = !paused; draw(); }, '', { 'aria-pressed': String(paused) }))),
	card(null, list.length ? h('ol.log', list.map((e) => h('li', { class: e.type }, time(e.time_ms), ' ', h('b', e.type), ' ', e.message && [idLink(e.message), ' '], logText(e))))
		: empty(paused ? 'Paused.' : 'Nothing to show yet.'))];
}

/* --- Entrance --- */

const openSession = (key) => ask('api/session', { body: { key } }).then(() => true, () => false);

const BAD_KEY = 'This key is not valid: it was used, is older than 5 minutes, or is mistyped.';

function enter(error) {
	gone = true;
	const input = h('input', { type: 'password', autocomplete: 'off', 'aria-label': 'Key', required: true });
	const submit = async (event) => {
		event.preventDefault();
		if (await openSession(input.value.trim().replace(/^.*#k=/, ''))) location.reload();
		else enter(BAD_KEY);
	};
	byId('state').textContent = 'No access';
	byId('main').replaceChildren(h('section.card.enter', h('h1', 'A key is needed'),
		h('p', 'On the host of the daemon, ', h('code', 'petrel page'), ' prints an address with a key, which is valid once and for 5 minutes. Open that address, or paste it here:'),
		h('form', { on: { submit } }, input, h('button.main', 'Open')), failure(error), h('p.muted', 'A restart of the daemon ends all sessions.')));
	input.focus();
}

/* --- Frame --- */

function route() {
	const [path, query] = location.hash.replace(/^#\/?/, '').split('?'), [name, ...more] = path.split('/');
	let rest = '';
	try {
		rest = decodeURIComponent(more.join('/'));
	} catch (error) { /* no name of ours */ }
	return { name, rest, query: new URLSearchParams(query) };
}
const view = () => route().name;

const VIEWS = { __proto__: null, queue: drawQueue, message: drawMessage, sites: drawSites, fragments: drawFragments, log: drawLog, search: drawSearch };
const drawNothing = () => [head('There is no such view'), card(null, h('p', link('', 'What happens now')))];
const drawView = () => (VIEWS[view()] || (view() ? drawNothing : drawNow))(route());

function drawState() {
	const { queue: q, findings: list = [], accepting, reason, oldest_ms: oldest } = status, waiting = q.incoming + q.active + q.deferred;
	const worst = Math.min(2, ...list.map(rank)), { dead } = status.site_totals;
	const kind = !accepting || worst === 0 ? 'is-bad' : worst === 1 || dead ? 'is-warn' : 'is-good';
	byId('state').className = 'state ' + (isStale() ? 'is-bad' : kind);
	byId('state').textContent = isStale() ? `Not reachable since ${at(heard + ahead)}. What is below is from then.` : (accepting ? 'Accepting. ' : `Not accepting: ${reason}. `) +
		(waiting ? `${count(waiting, 'message')} wait${waiting === 1 ? 's' : ''}${oldest ? `, the oldest for ${span(now() - oldest, true)}` : ''}.` : 'Nothing waits.') + (q.hold ? ` ${number(q.hold)} held.` : '') + (dead ? ` ${count(dead, 'site')} dead.` : '');
}

function drawFrame() {
	const notice = byId('notice'), here = { message: 'queue', search: 'queue' }[view()] || view();
	notice.hidden = live || !heard;
	document.body.classList.toggle('stale', isStale());
	patchAll(notice, isStale() ? [`The daemon has not answered since ${at(heard + ahead)}; it is asked every 5 seconds. On its host `, h('code', 'systemctl status petrel'), ' says whether it runs, and ', h('code', 'journalctl -u petrel -n 50'), ' why not. If you came by ssh, see whether that connection still stands.']
		: ['The live view is not to be had; the numbers are asked every 5 seconds.']);
	if (!status) return;
	drawState();
	byId('host').textContent = status.hostname;
	document.title = (isStale() ? 'Not reachable: ' : '') + status.hostname + ' – Petrel';
	const tabs = { '': null, queue: sum(Object.values(status.queue)), sites: status.site_totals.sites, fragments: status.fragments.sets, log: null };
	patchAll(byId('nav'), Object.entries(tabs).map(([name, n]) => h('a', { href: '#/' + name, 'aria-current': here === name && 'page' }, name || 'now', n > 0 && h('span.n', number(n)))));
	patchAll(byId('footer'), [h('span', mayAct() ? 'This session may act.' : 'This session may only look.'), button('Keys', showKeys, 'link')]);
}

let drawing = false;
function draw() {
	if (drawing) return;
	drawing = true;
	requestAnimationFrame(() => {
		drawing = false;
		if (gone) return;
		drawFrame();
		patchAll(byId('main'), drawView().filter(Boolean));
	});
}

function say(text) {
	byId('live').textContent = text;
}

function showKeys() {
	const keys = [['/', 'search'], ['j k', 'next, previous row'], ['Enter', 'open the row'], ['x', 'select the row'], ['g', 'then n, q, s, f, l: now, queue, sites, fragments, log'], ['Esc', 'back'], ['?', 'these keys']];
	const close = button('Close', closeDialog, 'main');
	openDialog('Keys', facts(...keys.map(([k, text]) => [k.split(' ').map((x) => [h('kbd', x), ' ']), text])), h('div.tools', close));
	close.focus();
}

function moveRow(step) {
	const links = [...document.querySelectorAll('tr a, .lane a')];
	const i = links.findIndex((a) => a.closest('tr, .lane').contains(document.activeElement));
	const next = links[Math.min(links.length - 1, Math.max(0, i < 0 ? 0 : i + step))];
	if (next) next.focus();
}

let going = false;
function onKey(event) {
	const { key, target } = event, typing = /^(INPUT|SELECT)$/.test(target.tagName) && target.type !== 'checkbox';
	if (event.ctrlKey || event.altKey || event.metaKey || byId('dialog').open || typing && key !== 'Escape') return;
	const row = target.closest('tr'), box = row && row.querySelector('input');
	const keys = {
		'/': () => byId('query').focus(), j: () => moveRow(1), k: () => moveRow(-1), '?': showKeys, x: () => box && box.click(),
		Escape: () => typing ? target.blur() : /^(message|search)$/.test(view()) && history.back(),
	};
	const places = { n: '', q: 'queue', s: 'sites', f: 'fragments', l: 'log' };
	if (going && key in places) location.hash = '#/' + places[key];
	else if (keys[key]) keys[key]();
	going = key === 'g';
	if (keys[key]) event.preventDefault();
}

function onSearch(event) {
	event.preventDefault();
	const query = byId('query').value.trim(), isId = /^[0-9a-z]{10}-?[0-9a-z]{8}$/i.test(query);
	if (isId) location.hash = '#/message/' + query.toUpperCase().replace(/^(.{10})(.{8})$/, '$1-$2');
	else if (query) location.hash = '#/search?q=' + encodeURIComponent(query);
}

function onRoute() {
	site.key = null;
	if (view() === 'sites') sites.load();
	if (view() === 'fragments') sets.load();
	if (view() === 'queue' && queue.key === String(route().query)) loadQueue(true);
	draw();
}

/* The address of `petrel page`, also when it is opened in the tab that asks for it. False: its key is bad. */
async function takeKey() {
	const [, key] = /^#k=(.+)$/.exec(location.hash) || [];
	if (!key) return true;
	history.replaceState(null, '', '#/');
	const good = await openSession(key);
	if (!good) enter(BAD_KEY);
	else if (gone) location.reload();
	return good;
}

async function begin() {
	window.addEventListener('hashchange', takeKey);
	if (!await takeKey()) return;
	byId('search').addEventListener('submit', onSearch);
	document.addEventListener('keydown', onKey);
	window.addEventListener('hashchange', () => { window.scrollTo(0, 0); byId('main').focus({ preventScroll: true }); message.id = null; onRoute(); });
	new IntersectionObserver((seen) => seen[0].isIntersecting && queue.next && !queue.loading && view() === 'queue' && loadQueue(), { rootMargin: '300px' }).observe(byId('footer'));
	await refresh();
	setInterval(draw, 1e3);
	onRoute();
	follow();
	followSeries();
}
begin();
