# Reads the messages named with Python's email package: a JSON list with [tree, subject] for each; a tree is [type,
# [parts]] or [type, file name, decoded size]. Independent of our own reading.
import email
import email.header
import email.policy
import json
import sys


def file_name(part):
    name = part.get_filename()
    if name is None:
        return None
    name = name.encode('utf-8', 'surrogateescape').decode('utf-8', 'replace')
    return str(email.header.make_header(email.header.decode_header(name)))


def tree(part):
    type = part.get_content_type()
    if type in ('message/delivery-status', 'message/external-body'):  # it looks into these; to Petrel they are leaves
        return [type, None, None]
    if part.is_multipart():
        return [type, [tree(inner) for inner in part.get_payload()]]
    return [type, file_name(part), len(part.get_payload(decode=True))]


def subject(content):
    value = email.message_from_bytes(content, policy=email.policy.default)['subject']
    return None if value is None else str(value).strip().replace('\t', ' ')


trees = []
for path in sys.argv[1:]:
    with open(path, 'rb') as file:
        content = file.read()
    trees.append([tree(email.message_from_bytes(content)), subject(content)])
print(json.dumps(trees))
