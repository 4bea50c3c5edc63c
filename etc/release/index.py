#!/usr/bin/env python3
"""One OCI archive for several processors: index.py OUT ARCHIVE... , of archives that etc/container/image.sh has made.

Docker without containerd's image store reads manifest.json and knows no processors: petrel:latest is the first archive's
there, and each has its processor as a tag."""
import hashlib
import io
import json
import os
import sys
import tarfile

out, archives = sys.argv[1], sys.argv[2:]
time = int(os.environ["SOURCE_DATE_EPOCH"])
blobs, manifests, annotations, loads = {}, [], {}, []
for path in archives:
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            if not member.isfile():
                continue
            data = archive.extractfile(member).read()
            if member.name.startswith("blobs/"):
                blobs[member.name] = data
            elif member.name == "index.json":
                one = json.loads(data)["manifests"][0]
                annotations = one.pop("annotations")
                manifests.append(one)
            elif member.name == "manifest.json":
                loads += json.loads(data)


def keep(value):
    data = json.dumps(value, separators=(",", ":")).encode()
    digest = hashlib.sha256(data).hexdigest()
    blobs["blobs/sha256/" + digest] = data
    return {"mediaType": value["mediaType"], "digest": "sha256:" + digest, "size": len(data)}


TYPE = "application/vnd.oci.image.index.v1+json"
index = keep({"schemaVersion": 2, "mediaType": TYPE, "manifests": manifests})
index["annotations"] = annotations
for at, load in enumerate(loads):
    load["RepoTags"] = ["petrel:" + manifests[at]["platform"]["architecture"]] + (load["RepoTags"] if at == 0 else [])
files = {
    "oci-layout": b'{"imageLayoutVersion":"1.0.0"}\n',
    "manifest.json": json.dumps(loads, separators=(",", ":")).encode(),
    "index.json": json.dumps({"schemaVersion": 2, "mediaType": TYPE, "manifests": [index]}, separators=(",", ":")).encode(),
}
with tarfile.open(out, "w", format=tarfile.USTAR_FORMAT) as archive:
    for member, data in list(files.items()) + sorted(blobs.items()):
        info = tarfile.TarInfo(member)
        info.size, info.mtime, info.mode = len(data), time, 0o644
        archive.addfile(info, io.BytesIO(data))
