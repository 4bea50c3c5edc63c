#!/usr/bin/python3
# Evaluates records with pyspf: spf_reference.py OUT SEED COUNT. Writes OUT/cases for `spf.t FILE` (t/unit/mime/auth/spf.c) and
# OUT/wanted with a line for each question: results that are right, a tab, its name. The cases are the RFC 7208 test suite,
# as python3-spf brings it, and COUNT generated zones with two questions each.
import gzip
import random
import socket
import sys

import spf
import yaml

SUITE = '/usr/share/doc/python3-spf/rfc7208-tests.yml.gz'
# Not decided by a record alone: ptr and %{p} are not evaluated (see mime/auth/spf.h).
SKIPPED_TERMS = ('ptr', '%{p', '%{P')
SKIPPED_TESTS = ('bytes-bug',)


def escape(octets, also=''):
    return ''.join('\\%02x' % b if b < 32 or b > 126 or b == 92 or chr(b) in also else chr(b) for b in octets)


class Cases:
    def __init__(self, out):
        self.cases = open(out + '/cases', 'w')
        self.wanted = open(out + '/wanted', 'w')

    def zone(self, records):
        self.cases.write('zone\n')
        for name, kind, value in records:
            if kind == 'TXT':
                value = escape(value)
            self.cases.write('+%s %s %s\n' % (escape(name.encode(), ' '), kind, value))

    def ask(self, client, helo, sender, results, name):
        local, at, domain = sender.rpartition('@')
        if not at:
            local, domain = '', helo
        self.cases.write('?%s %s %s %s\n' % (client, escape((helo or '-').encode(), ' '), local or '-', domain or '-'))
        self.wanted.write('%s\t%s\n' % ('|'.join(results), name))


def suite_records(zone):
    for name, rows in zone.items():
        has_txt = any(isinstance(row, dict) and 'TXT' in row for row in rows)
        for row in rows:
            if row == 'TIMEOUT':
                yield name, 'DEAD', ''
                continue
            for kind, value in row.items():
                if value == 'TIMEOUT':
                    yield name, 'DEAD', ''
                elif kind == 'SPF' and has_txt or value == 'NONE':
                    continue
                elif kind in ('TXT', 'SPF'):
                    parts = [value] if isinstance(value, str) else value
                    yield name, 'TXT', ''.join(parts).encode('utf-8')
                elif kind == 'MX':
                    yield name, kind, value[1]
                elif kind in ('A', 'AAAA', 'CNAME'):
                    yield name, kind, value


def suite(cases):
    with gzip.open(SUITE) as file:
        for scenario in yaml.safe_load_all(file):
            records = list(suite_records(scenario['zonedata']))
            text = str(scenario['zonedata'])
            cases.zone(records + [('error.example.com', 'DEAD', '')])
            for name, test in scenario['tests'].items():
                results = test['result']
                results = [results] if isinstance(results, str) else results
                sender = test['mailfrom'] or ''
                domain = sender.rpartition('@')[2] or test['helo']
                own = str([v for k, v in scenario['zonedata'].items() if k.lower() == domain.lower()])
                if any(term in own for term in SKIPPED_TERMS) or name in SKIPPED_TESTS or ' ' in sender or '"' in sender:
                    continue
                cases.ask(test['host'], test['helo'], sender, results, scenario['description'] + ': ' + name)


zone_now = {}


def look_up(name, kind, *_, **__):
    name = name.rstrip('.').lower()
    for row in zone_now.get(name, []):
        if row[0] == 'DEAD':
            raise spf.TempError('DNS timeout')
        if row[0] == kind:
            value = row[1]
            if kind == 'AAAA':
                value = socket.inet_pton(socket.AF_INET6, value)
            elif kind == 'TXT':
                value = (value,)
            elif kind == 'MX':
                value = (10, value)
            yield ((name, kind), value)


spf.DNSLookup = look_up
NAMES = ['a.test.org', 'b.test.org', 'c.test.org', 'd.test.org', 'e.test.org', 'f.test.org', 'void.test.org']
CLIENTS = ['192.0.2.1', '192.0.2.77', '198.51.100.3', '2001:db8::1', '2001:db8:1::77']


def term(chance, own):
    name = chance.choice([name for name in NAMES if name != own]) # pyspf refuses an include of itself
    bits = chance.choice(['', '', '/24', '/28', '//64', '/30//48'])
    sign = chance.choice(['', '', '+', '-', '~', '?'])
    return sign + chance.choice([
        'a', 'a:' + name + bits, 'mx' + bits, 'mx:' + name, 'include:' + name, 'include:' + name,
        'ip4:192.0.2.%d/%d' % (chance.randrange(256), chance.randrange(24, 33)),
        'ip6:2001:db8:%x::/%d' % (chance.randrange(3), chance.randrange(32, 65)),
        'exists:' + name, 'exists:%{ir}.%{v}.' + name, 'exists:%{d1r}.%{l}.' + name, 'a:%{o}', 'exists:%{h}',
        'include:%{d2}', 'ip4:192.0.2.1', 'ip6:2001:db8::1'])


def record(chance, own):
    terms = [term(chance, own) for _ in range(chance.randrange(1, 5))]
    if chance.random() < 0.15:
        terms.insert(chance.randrange(len(terms) + 1), chance.choice(
            ['ip4:192.0.2.256', 'a/33', 'nothing', 'include', 'a:%{z}', 'ip4', 'mx//129', 'all:x', 'exists', '-', 'a:x:y']))
    if chance.random() < 0.2:
        terms.append('moo=%{d}x')
    terms += chance.choice([['-all'], ['~all'], ['?all'], [], [], ['redirect=' + chance.choice(NAMES)]])
    return 'v=spf1 ' + ' '.join(terms)


def generate(chance):
    for name in NAMES[:-1]:
        if chance.random() < 0.03:
            yield name, 'DEAD', ''
            continue
        if chance.random() < 0.9:
            yield name, 'TXT', record(chance, name).encode()
        if chance.random() < 0.03:
            yield name, 'TXT', b'v=spf1 -all'
        for _ in range(chance.randrange(3)):
            yield name, 'A', chance.choice(['192.0.2.%d' % chance.choice([1, 77, 200]), '203.0.113.9'])
        for _ in range(chance.randrange(2)):
            yield name, 'AAAA', chance.choice(['2001:db8::1', '2001:db8:1::%x' % chance.choice([1, 0x77])])
        for host in chance.sample(NAMES, chance.randrange(2)): # pyspf asks for all hosts before it compares
            yield name, 'MX', host
    yield '1.2.0.192.in-addr.a.test.org', 'A', '127.0.0.2'
    yield 'helo.test.org', 'A', '127.0.0.2'


# pyspf counts redirect= where it stands, not where it is followed, and asks for the text of exp=.
def generated(cases, seed, count):
    chance = random.Random(seed)
    for number in range(count):
        records = sorted(set(generate(chance)), key=lambda r: (r[0], r[1], r[2] if isinstance(r[2], bytes) else r[2].encode()))
        zone_now.clear()
        for name, kind, value in records:
            zone_now.setdefault(name, []).append((kind, value))
        cases.zone(records)
        for client in chance.sample(CLIENTS, 2):
            query = spf.query(client, 'anna@a.test.org', 'helo.test.org', strict=True)
            result = query.check()[0]
            cases.ask(client, 'helo.test.org', 'anna@a.test.org', [result], 'seed %s, zone %d, %s' % (seed, number, client))


if __name__ == '__main__':
    all_cases = Cases(sys.argv[1])
    suite(all_cases)
    generated(all_cases, sys.argv[2], int(sys.argv[3]))
