# What Python's email package reads of the messages named: a JSON list with a tree for each, of [type, [parts]] or
# [type, file name, decoded size]. Independent of our own reading.
import email
import email.header
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


trees = []
for path in sys.argv[1:]:
    with open(path, 'rb') as file:
        trees.append(tree(email.message_from_bytes(file.read())))
print(json.dumps(trees))
