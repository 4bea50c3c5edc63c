# Reads the messages named with Python's email package: a JSON list with the tree of each, [type,
# tree...]. Independent of our own reading.
import email
import json
import sys


def tree(part):
    type = part.get_content_type()
    if type in ('message/delivery-status', 'message/external-body'):  # it looks into these; to Petrel they are leaves
        return [type]
    if part.is_multipart():
        return [type] + [tree(inner) for inner in part.get_payload()]
    return [type]


trees = []
for path in sys.argv[1:]:
    with open(path, 'rb') as file:
        content = file.read()
    trees.append(tree(email.message_from_bytes(content)))
print(json.dumps(trees))
