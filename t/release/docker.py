#!/usr/bin/env python3
"""Stands in for docker in t/release/roots.t: load, run -d and exec of the image for this processor, in a bare root below DOCKER_ROOT."""
import io
import json
import os
import subprocess
import sys
import tarfile
import time

root = os.environ["DOCKER_ROOT"]
image = os.path.join(root, "image")
settings = os.path.join(root, "settings.json")


def inside(command, environment, **more):
    user = json.load(open(settings, encoding="ascii"))["config"]["User"]
    return subprocess.Popen(["/usr/sbin/chroot", "--userspec=" + user, "--groups=0", image, *command], env=environment, **more)


def load(path):
    with tarfile.open(path) as archive:
        def blob(of):
            return archive.extractfile("blobs/sha256/" + of["digest"].removeprefix("sha256:")).read()

        index = json.loads(blob(json.load(archive.extractfile("index.json"))["manifests"][0]))
        here = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
        manifest = json.loads(blob(next(m for m in index["manifests"] if m["platform"]["architecture"] == here)))
        with open(settings, "wb") as file:
            file.write(blob(manifest["config"]))
        for layer in manifest["layers"]:
            with tarfile.open(fileobj=io.BytesIO(blob(layer))) as files:
                files.extractall(image, numeric_owner=True)


def environment(more):
    config = json.load(open(settings, encoding="ascii"))["config"]
    return dict(pair.split("=", 1) for pair in config["Env"] + more)


def start(arguments):
    given = [arguments[i + 1] for i, a in enumerate(arguments) if a == "-e"]
    # What every engine gives a container.
    os.makedirs(image + "/etc", exist_ok=True)
    with open(image + "/etc/hosts", "w", encoding="ascii") as file:
        file.write("127.0.0.2 mailhub.example.org\n")
    with open(root + "/env.json", "w", encoding="ascii") as file:
        json.dump(given, file)
    config = json.load(open(settings, encoding="ascii"))["config"]
    with open(root + "/log", "wb") as log:
        inside(config["Entrypoint"], environment(given), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    for _ in range(600):
        if inside(config["Healthcheck"]["Test"][1:], environment(given), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait() == 0:
            return
        time.sleep(0.1)
    sys.exit("it is not healthy")


verb, *rest = sys.argv[1:]
if verb == "load":
    load(rest[-1])
elif verb == "run":
    start(rest)
elif verb == "exec":
    sys.exit(inside(rest[1:], environment(json.load(open(root + "/env.json", encoding="ascii")))).wait())
