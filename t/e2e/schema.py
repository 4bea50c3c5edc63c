#!/usr/bin/python3
"""Checks recorded objects, {"kind": NAME, "object": OBJECT} a line, by schema/NAME.json beside this file."""
import json, os, sys

try:
    import jsonschema
except ImportError:
    print('# python3-jsonschema is not installed: --json is not checked', file=sys.stderr)
    sys.exit(0)

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'schema')
validators = {}


def validator(kind):
    if kind not in validators:
        with open(os.path.join(folder, kind + '.json')) as f:
            schema = json.load(f)
        jsonschema.Draft7Validator.check_schema(schema)
        validators[kind] = jsonschema.Draft7Validator(schema)
    return validators[kind]


bad = 0
with open(sys.argv[1]) as records:
    for line in records:
        record = json.loads(line)
        for error in validator(record['kind']).iter_errors(record['object']):
            place = '/'.join(str(step) for step in error.absolute_path)
            print('# t/e2e/schema/%s.json: %s: %s' % (record['kind'], place, error.message[:300]), file=sys.stderr)
            bad = 1
            break
        if bad:
            break
sys.exit(bad)
