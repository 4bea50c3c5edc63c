#!/usr/bin/python3
"""site.py SOURCE OUT: README, doc/ and the manuals as static HTML with a search box. cmark-gfm and mandoc render them; this
joins their output into pages with one navigation, checks every link, and writes the index that search.js reads. The pages ask no
other host for anything."""
import html, json, os, re, shutil, subprocess, sys, textwrap

SOURCE, OUT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
HERE = os.path.dirname(os.path.abspath(__file__))
MANUAL = r'\b([a-z][a-z.-]*[a-z])\((\d)\)'


def read(path):
    with open(os.path.join(SOURCE, path), encoding='utf-8') as file:
        return file.read()


def write(path, text):
    path = os.path.join(OUT, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding='utf-8').stdout


def page_of(path):
    """The page of a document: README is the index of its directory."""
    return re.sub(r'(^|/)README$', r'\1index', re.sub(r'\.md$', '', path)) + '.html'


def text_of(fragment):
    return ' '.join(html.unescape(re.sub(r'<[^>]*>', ' ', fragment)).split())


class Page:
    def __init__(self, source, body, title):
        self.source, self.page, self.title = source, page_of(source), title
        self.ids, self.links, self.sections = set(), [], []
        self.body = self.with_ids(body)

    def up(self):
        return '../' * self.page.count('/')

    def with_ids(self, body):
        """Each heading gets the id that GitHub would give it, so that links to sections work in both places."""
        def heading(match):
            level, attributes, inner = match.groups()
            name = re.search(r'id="([^"]+)"', attributes)
            name = name.group(1) if name else re.sub(r'[^\w\- ]', '', text_of(inner).lower()).replace(' ', '-')
            base, count = name, 1
            while name in self.ids:
                name, count = f'{base}-{count}', count + 1
            self.ids.add(name)
            return f'<h{level} id="{name}">{inner}</h{level}>'
        body = re.sub(r'<h([1-6])([^>]*)>(.*?)</h\1>', heading, body, flags=re.S)
        self.ids.update(re.findall(r'\sid="([^"]+)"', body))
        return body


def document(source):
    body = run('cmark-gfm', '-e', 'table', os.path.join(SOURCE, source))
    title = text_of(re.search(r'<h1>(.*?)</h1>', body, re.S).group(1))
    body = re.sub(r'<th></th>', '<td></td>', body)
    return Page(source, body, title)


def manual(name):
    body = run('mandoc', '-Thtml', '-O', 'fragment', os.path.join(SOURCE, 'man', name))
    body = re.sub(r'<table class="(head|foot)">.*?</table>', '', body, flags=re.S)
    body = re.sub(r'<(/?)h([1-5])', lambda m: f'<{m[1]}h{int(m[2]) + 1}', body)
    body = re.sub(r'<a class="permalink"[^>]*>(.*?)</a>', r'\1', body, flags=re.S)
    # mandoc also names words within sentences. Those of lists stay: settings and commands, the first of each name.
    seen = set(re.findall(r'<(?:section|h\d)[^>]* id="([^"]+)"', body))
    body = re.sub(r'(<(?!section|h\d)(\w+)\b[^>]*?) id="([^"]*)"', lambda m: m[0] if m[2] == 'dt' and not (m[3] in seen or seen.add(m[3])) else m[1], body)
    # A blank at the begin of a line of an example makes mandoc break the line, which it is already.
    def literal(match):
        return '<pre>' + textwrap.dedent(re.sub(r'\s*<br/>\s*?\n', '\n', match[1]).strip('\n')) + '</pre>'
    body = re.sub(r'<pre>(.*?)</pre>', literal, body, flags=re.S)
    # The index of settings is a list of words with tabs between: here each leads to its setting.
    rows = re.compile(r'<pre>((?:[a-z_]+\t[^\n]*\n?)+)</pre>')
    body = rows.sub(lambda m: '<table>' + re.sub(r'(\w+)\t([^\n]*)\n?', r'<tr><td><a href="#\1">\1</a></td><td>\2</td></tr>', m[1]) + '</table>', body)
    stem, section = name.rsplit('.', 1)
    return Page(f'man/{name}', f'<h1>{stem}({section})</h1>\n{body}', f'{stem}({section})')


def linked(page, pages):
    """Links to documents lead to their pages, names of manuals to the manuals."""
    by_source = {other.source: other for other in pages}

    def link(match):
        target, hash_, anchor = match.group(1).partition('#')
        if re.match(r'[a-z]+:', target):
            return match.group(0)
        path = os.path.normpath(os.path.join(os.path.dirname(page.source), target)) if target else page.source
        other = by_source.get(path)
        page.links.append((other, anchor, path))
        where = other.page if other else path
        return f'href="{os.path.relpath(where, os.path.dirname(page.page) or ".")}{hash_}{anchor}"'

    def name(match):
        other = by_source.get(f'man/{match[1]}.{match[2]}')
        if not other or other is page:
            return match.group(0)
        return f'<a href="{page.up()}{other.page}">{match[0]}</a>'

    body = re.sub(r'href="([^"]+)"', link, page.body)
    parts = re.split(r'(<a\b.*?</a>|<pre\b.*?</pre>|<h[1-6]\b.*?</h[1-6]>|<[^>]+>)', body, flags=re.S)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(MANUAL, name, parts[i])
    # mandoc writes the name in a font of its own: <b>petrel.conf</b>(5).
    body = re.sub(r'<([bi])>([a-z][a-z.-]*)</\1>\((\d)\)', lambda m: name(re.match(MANUAL, f'{m[2]}({m[3]})') or m), ''.join(parts))
    body = body.replace('<pre', '<pre tabindex="0"')
    return re.sub(r'<table\b.*?</table>', r'<div class="table" tabindex="0">\g<0></div>', body, flags=re.S)


def sections(page):
    """[id, title, text] of each part below a heading, or of a setting or command in a manual."""
    parts = re.split(r'<(?:h[1-6]|dt) id="([^"]+)">(.*?)</(?:h[1-6]|dt)>', page.body, flags=re.S)
    return [[parts[i], text_of(parts[i + 1]), text_of(parts[i + 2])] for i in range(1, len(parts), 3)]


def navigation(page, groups):
    out = []
    for title, members in groups:
        rows = ''.join(f'<li><a href="{page.up()}{m.page}"{" aria-current=page" if m is page else ""}>{html.escape(m.title)}</a></li>' for m in members)
        out.append(f'<details{" open" if page in members or title == groups[0][0] else ""}><summary>{title}</summary><ul>{rows}</ul></details>')
    return ''.join(out)


def main():
    index = read('doc/README.md')
    order = [f'doc/{m}' for m in dict.fromkeys(re.findall(r'\]\(([a-z0-9-]+\.md)\)', index))]
    users = [document(p) for p in ['README.md', 'doc/README.md'] + order]
    manuals = [manual(m) for m in sorted(os.listdir(os.path.join(SOURCE, 'man'))) if re.search(r'\.\d$', m) and not read(f'man/{m}').startswith('.so')]
    builders = [document(p) for p in ['ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'] +
                sorted(f'doc/dev/{m}' for m in os.listdir(os.path.join(SOURCE, 'doc/dev')) if m.endswith('.md'))]
    groups = [('Guide', users), ('Manuals', manuals), ('Builders', builders)]
    pages = users + manuals + builders
    shutil.rmtree(OUT, ignore_errors=True)
    frame = open(os.path.join(HERE, 'page.html'), encoding='utf-8').read()
    wrong, found = [], []
    for page in pages:
        body = linked(page, pages)
        for other, anchor, path in page.links:
            if other and anchor and anchor not in other.ids:
                wrong.append(f'{page.source}: {path}#{anchor} is no section')
            elif not other and not os.path.exists(os.path.join(SOURCE, path)):
                wrong.append(f'{page.source}: {path} is no file')
            elif not other:
                os.makedirs(os.path.join(OUT, os.path.dirname(path)), exist_ok=True)
                shutil.copy(os.path.join(SOURCE, path), os.path.join(OUT, path))
        for image in re.findall(r'<img src="([^":]+)"', body):
            path = os.path.normpath(os.path.join(os.path.dirname(page.source), image))
            os.makedirs(os.path.join(OUT, os.path.dirname(path)), exist_ok=True)
            shutil.copy(os.path.join(SOURCE, path), os.path.join(OUT, path))
        found += [[page.page, page.title, *s] for s in sections(page)]
        fields = {'title': html.escape(page.title if page.page != 'index.html' else 'Petrel, a mail transfer agent'), 'up': page.up(),
                  'navigation': navigation(page, groups), 'body': body}
        write(page.page, re.sub(r'\{\{(\w+)\}\}', lambda m: fields[m[1]], frame))
    write('search-index.js', 'window.searchIndex=' + json.dumps(found, ensure_ascii=False, separators=(',', ':')) + ';\n')
    for name in ('site.css', 'search.js'):
        shutil.copy(os.path.join(HERE, name), OUT)
    for line in wrong:
        print(line, file=sys.stderr)
    print(f'{len(pages)} pages in {OUT}')
    return 1 if wrong else 0


sys.exit(main())
