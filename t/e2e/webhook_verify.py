#!/usr/bin/python3
"""Verifies requests as the text of Standard Webhooks 1.0 says: webhook_verify.py FILE SECRET [NONE]...

FILE is what hook_receiver.py has written. Each request must be signed by SECRET, and not by the others. Prints "N
requests", or a line for each that is wrong."""
import base64, hashlib, hmac, json, sys

TOLERANCE = 5 * 60


def key_of(secret):
    return base64.b64decode(secret[6:]) if secret.startswith('whsec_') else secret.encode()


def is_signed(request, secret):
    headers = request['headers']
    content = '%s.%s.' % (headers['webhook-id'], headers['webhook-timestamp'])
    digest = hmac.new(key_of(secret), content.encode() + base64.b64decode(request['body']), hashlib.sha256).digest()
    for signature in headers['webhook-signature'].split(' '):
        version, _, value = signature.partition(',')
        if version == 'v1' and hmac.compare_digest(value, base64.b64encode(digest).decode()):
            return True
    return False


def faults(request, secret, others):
    headers = request['headers']
    if '.' in headers['webhook-id']:
        yield 'a dot in the id'
    if abs(int(headers['webhook-timestamp']) - request['time']) > TOLERANCE:
        yield 'an old or a future time'
    if headers['content-type'] != 'application/json':
        yield 'its type'
    if not is_signed(request, secret):
        yield 'not signed'
    if any(is_signed(request, other) for other in others):
        yield 'signed by another'
    body = base64.b64decode(request['body'])
    if len(body) > 256 * 1024:
        yield 'too large'
    content = json.loads(body.decode('utf-8', 'strict'))
    if content['type'] != 'petrel.events' or not content['data'] or content['data'][0]['id'] != headers['webhook-id']:
        yield 'its content'


count = 0
for line in open(sys.argv[1]):
    request = json.loads(line)
    count += 1
    for fault in faults(request, sys.argv[2], sys.argv[3:]):
        print('%s: %s' % (request['headers'].get('webhook-id'), fault))
print('%d requests' % count)
