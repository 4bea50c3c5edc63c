#!/usr/bin/env python3
"""Renders the Helm chart, by what of its language it uses, and compares it with etc/kubernetes/relay.yaml; prints the environment."""
import json
import re

import yaml

values = yaml.safe_load(open("etc/helm/petrel/values.yaml"))
chart = {"AppVersion": "1.2.3"}
FUNCTIONS = {"upper": str.upper, "quote": lambda v: json.dumps(str(v)), "toJson": json.dumps}


def value(words, here):
    result = None
    for part in [p.split() for p in words.split("|")]:
        if part[0] == "default":
            result = result or value(part[1], here)
        elif part[0] == "or":
            result = value(part[1], here) or value(part[2], here)
        elif part[0] in FUNCTIONS:
            result = FUNCTIONS[part[0]](value(part[1], here) if len(part) > 1 else result)
        elif part[0].startswith("$"):
            result = here[part[0]]
        else:
            result = {"Values": values, "Chart": chart, "Release": {"Name": "relay"}}
            for name in part[0].lstrip(".").split("."):
                result = result[name]
    return result


def render(lines, here):
    out = []
    while lines:
        line = lines.pop(0)
        open_block = re.match(r"\s*{{- (if|range) (.*) }}$", line)
        if not open_block:
            out.append(re.sub(r"{{ (.*?) }}", lambda m: str(value(m[1], here)), line))
            continue
        body, depth = [], 1
        while True:
            inner = lines.pop(0)
            depth += bool(re.match(r"\s*{{- (if|range) ", inner)) - bool(re.match(r"\s*{{- end }}", inner))
            if depth == 0:
                break
            body.append(inner)
        if open_block[1] == "if":
            out += render(body, here) if value(open_block[2], here) else []
        else:
            for key, item in value(re.sub(".*:= ", "", open_block[2]), here).items():
                out += render(list(body), {**here, "$name": key, "$value": item})
    return out


def parts(text):
    return {part["kind"]: part for part in yaml.safe_load_all(text) if part}


text = open("etc/helm/petrel/templates/relay.yaml").read()
rendered = parts("\n".join(render(text.splitlines(), {})))
plain = parts(open("etc/kubernetes/relay.yaml").read())
ours, theirs = rendered["StatefulSet"]["spec"], plain["StatefulSet"]["spec"]
(one,), (other,) = ours["template"]["spec"]["containers"], theirs["template"]["spec"]["containers"]
assert one.pop("image") == "petrel:1.2.3" and other.pop("image") == "petrel"
assert {e["name"]: e["value"] for e in one.pop("env")} == {e["name"]: e["value"] for e in other["env"]}
for e in other.pop("env"):
    print(e["name"] + "=" + e["value"])
assert ours == theirs, (ours, theirs)
assert rendered["Service"]["spec"]["ports"][0]["port"] == 2525
values.update(passwordSecret="", storageClassName="fast", settings={"hostname": "a.test"})
bare = parts("\n".join(render(text.splitlines(), {})))["StatefulSet"]["spec"]
assert "volumes" not in bare["template"]["spec"] and bare["volumeClaimTemplates"][0]["spec"]["storageClassName"] == "fast"

values.update(settings={}, replicas=3, copies={"servers": "redis://a, redis://b", "replicas": 1, "adoptAfter": "5m", "passwordSecret": "redis"})
fleet = parts("\n".join(render(text.splitlines(), {})))["StatefulSet"]["spec"]
(one,), pod = fleet["template"]["spec"]["containers"], fleet["template"]["spec"]
assert fleet["replicas"] == 3
assert [v["secret"]["secretName"] for v in pod["volumes"]] == ["redis"]
assert [m["name"] for m in one["volumeMounts"]] == ["spool", "redis"]
for e in one["env"]:
    print("copies " + e["name"] + "=" + e.get("value", "relay-0"))
