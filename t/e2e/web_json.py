"""web_json.py JSON RAW: that the JSON form of a message has the parts that Python's library reads in its raw form."""
import base64, email, email.policy, json, sys

form = json.loads(open(sys.argv[1], 'rb').read().decode('utf-8'))
mail = email.message_from_bytes(open(sys.argv[2], 'rb').read(), policy=email.policy.compat32)
assert set(form) <= {'id', 'from', 'to', 'size', 'subject', 'headers', 'text', 'html', 'attachments', 'omitted'}, set(form)


def leaves(part):
    if part.get_content_maintype() == 'multipart' and part.is_multipart():
        for inner in part.get_payload():
            yield from leaves(inner)
    else:
        yield part


def lines(octets):
    return octets.replace(b'\r', b'').rstrip(b'\n')


known = {None: 'utf-8', 'utf-8': 'utf-8', 'us-ascii': 'utf-8', 'iso-8859-1': 'cp1252'}
want = {'files': []}
for part in leaves(mail):
    member = {'text/plain': 'text', 'text/html': 'html'}.get(part.get_content_type())
    charset = part.get_content_charset()
    if part.get_content_type() == 'message/rfc822':
        octets = part.get_payload(0).as_bytes(policy=email.policy.compat32)
    else:
        octets = part.get_payload(decode=True) or b''
    if member and member not in want and charset in known and part.get_filename() is None:
        want[member] = octets.replace(b'\r', b'').decode(known[charset], 'replace')
    else:
        want['files'].append((part.get_content_type(), lines(octets)))
have = [(f['type'], lines(base64.b64decode(f['content'], validate=True))) for f in form['attachments']]
assert have == want['files'][:100] or [h[0] for h in have] == ['multipart/mixed'], (have, want['files'])
for member in ('text', 'html'):
    if not (have and have[0][0] == 'multipart/mixed'):
        assert form.get(member, '').rstrip('\n').count('\ufffd') >= want.get(member, '').count('\ufffd')
        if '\ufffd' not in want.get(member, ''):
            assert form.get(member, '').rstrip('\n') == want.get(member, '').rstrip('\n'), (member, form.get(member), want.get(member))
names = [name for name, value in form['headers']]
assert [n.lower() for n in names] == [n.lower() for n in mail.keys()], (names, mail.keys())
