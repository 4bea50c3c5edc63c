# Reads the messages named with Python's email package: a line for each leaf, its depth, type, charset and
# decoded bytes. Independent of our own reading.
import email
import hashlib
import sys


def leaves(part, depth):
    if part.is_multipart():
        print(depth, part.get_content_type())
        for inner in part.get_payload():
            leaves(inner, depth + 1)
    else:
        data = part.get_payload(decode=True)
        print(depth, part.get_content_type(), part.get_filename(), len(data), hashlib.sha256(data).hexdigest())


for path in sys.argv[1:]:
    with open(path, 'rb') as file:
        print('message')
        leaves(email.message_from_bytes(file.read()), 0)
