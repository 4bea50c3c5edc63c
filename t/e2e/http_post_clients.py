# Clients of mail by HTTP, in Python. Each prints what it got, for http_post_clients.t.
#   urllib URL KEY | requests URL KEY | chunks URL KEY | schema URL KEY OPENAPI | many PORT KEY NUMBER SEED STATE
import http.client
import json
import os
import random
import socket
import sys
import time
import urllib.error
import urllib.request

MESSAGE = {'from': 'App <app@a.test>', 'to': ['u@held.test'], 'subject': 'gr\u00fcn', 'text': 'hello\n'}


def by_urllib(url, key, body=MESSAGE, **more):
    fields = {'Authorization': 'Bearer ' + key, 'Content-Type': 'application/json', **more}
    request = urllib.request.Request(url, json.dumps(body).encode() if body is not None else None, fields)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def by_chunks(url, key):
    host = url.split('/')[2]
    connection = http.client.HTTPConnection(host, timeout=30)
    body = json.dumps(MESSAGE).encode()
    for _ in range(2):  # the connection is kept
        connection.request('POST', '/v1/messages', iter([body[:10], body[10:]]), {'Authorization': 'Bearer ' + key, 'Content-Type': 'application/json'},
                           encode_chunked=True)
        answer = connection.getresponse()
        yield answer.status, json.load(answer)


# The daemon and its description agree: members, states, errors.
def by_schema(url, key, path):
    import jsonschema
    import yaml
    with open(path) as file:
        api = yaml.safe_load(file)
    schemas = api['components']['schemas']
    resolver = jsonschema.RefResolver.from_schema(api)

    def check(name, value):
        jsonschema.Draft7Validator(schemas[name], resolver=resolver).validate(value)

    attachment = {'content': 'eA==', 'filename': 'x.txt', 'type': 'text/plain', 'cid': 'x', 'inline': True}
    whole = {**MESSAGE, 'cc': 'v@held.test', 'bcc': ['w@held.test'], 'reply_to': 'r@a.test', 'html': '<p>x</p>', 'attachments': [attachment],
             'headers': {'X-One': '1'}, 'tag': 'one', 'send_at': 1}
    assert sorted(whole) == sorted(schemas['Message']['properties']), 'every member is posted'
    assert sorted(attachment) == sorted(schemas['Attachment']['properties']), 'and of an attachment'
    check('Message', whole)
    status, answer = by_urllib(url, key, whole)
    assert status == 202, answer
    check('Accepted', answer)
    status, life = by_urllib(url + '/' + answer['id'], key, None)
    assert status == 200, life
    check('Life', life)
    documented = api['paths']['/v1/messages']['post']['responses']
    for body in ({}, {**whole, 'x': 1}, {**whole, 'from': 'b@a.test'}, {**whole, 'to': ['bad', 'u@held.test']}, [], {**whole, 'attachments': [{}]},
                 {**whole, 'subject': 'a\r\nb'}):
        status, answer = by_urllib(url, key, body)
        assert str(status) in documented and status >= 400, (status, answer)
        check('Error', answer)
    for fields in ({'Authorization': 'Bearer x'}, {'Content-Type': 'text/plain'}, {'Idempotency-Key': ''}):
        status, answer = by_urllib(url, key, **fields)
        assert str(status) in documented and status >= 400, (status, answer)
        check('Error', answer)
    return 'the description is right'


# Posts NUMBER messages, each until it is accepted, over connections that are cut at any byte, to a daemon that is killed.
# STATE gets a line for each that was accepted: its number and id.
def by_many(port, key, number, seed, state):
    chance = random.Random(seed)
    with open(state, 'w') as file:
        for i in range(number):
            body = json.dumps({'from': 'app@a.test', 'to': 'once@held.test', 'subject': f'number {i}', 'text': 'x' * chance.choice([10, 3000, 80000])}).encode()
            head = (f'POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n'
                    f'Idempotency-Key: number-{i}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n').encode()
            deadline = time.monotonic() + 120
            while True:
                assert time.monotonic() < deadline, f'number {i} is never accepted'
                whole = head + body
                cut = chance.randrange(len(whole)) if chance.random() < 0.3 else len(whole)
                deaf = chance.random() < 0.2
                try:
                    with socket.create_connection(('127.0.0.1', port), timeout=20) as s:
                        s.sendall(whole[:cut])
                        if cut < len(whole) or deaf:
                            continue
                        answer = b''
                        while piece := s.recv(65536):
                            answer += piece
                except OSError:
                    time.sleep(0.05)
                    continue
                if answer.startswith(b'HTTP/1.1 202 '):
                    file.write(f'{i} {json.loads(answer.split(bytes.fromhex("0d0a0d0a"), 1)[1])["id"]}\n')
                    file.flush()
                    break
                assert not answer or b'503 ' in answer[:20], answer


kind, arguments = sys.argv[1], sys.argv[2:]
if kind == 'urllib':
    print(*by_urllib(*arguments))
elif kind == 'chunks':
    for one in by_chunks(*arguments):
        print(*one)
elif kind == 'requests':
    import requests
    got = requests.post(arguments[0], json=MESSAGE, headers={'Authorization': 'Bearer ' + arguments[1], 'Idempotency-Key': 'r'}, timeout=30)
    print(got.status_code, got.json())
elif kind == 'schema':
    print(by_schema(*arguments))
elif kind == 'many':
    by_many(int(arguments[0]), arguments[1], int(arguments[2]), int(arguments[3]), arguments[4])
