#!/usr/bin/env python3
"""One OCI archive for several processors: index.py OUT NAME ARCHIVE... , of archives that etc/container/image.sh has made."""
import hashlib
import io
import json
import os
import sys
import tarfile

out, name, archives = sys.argv[1], sys.argv[2], sys.argv[3:]
time = int(os.environ["SOURCE_DATE_EPOCH"])
blobs, manifests = {}, []
for path in archives:
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            if member.isfile():
                data = archive.extractfile(member).read()
                if member.name.startswith("blobs/"):
                    blobs[member.name] = data
                elif member.name == "index.json":
                    manifests += [{k: v for k, v in m.items() if k != "annotations"} for m in json.loads(data)["manifests"]]


def keep(value):
    data = json.dumps(value, separators=(",", ":")).encode()
    digest = hashlib.sha256(data).hexdigest()
    blobs["blobs/sha256/" + digest] = data
    return {"mediaType": value["mediaType"], "digest": "sha256:" + digest, "size": len(data)}


TYPE = "application/vnd.oci.image.index.v1+json"
index = keep({"schemaVersion": 2, "mediaType": TYPE, "manifests": manifests})
index["annotations"] = {"org.opencontainers.image.ref.name": name}
files = {
    "oci-layout": b'{"imageLayoutVersion":"1.0.0"}\n',
    "index.json": json.dumps({"schemaVersion": 2, "mediaType": TYPE, "manifests": [index]}, separators=(",", ":")).encode(),
}
with tarfile.open(out, "w", format=tarfile.USTAR_FORMAT) as archive:
    for member, data in list(files.items()) + sorted(blobs.items()):
        info = tarfile.TarInfo(member)
        info.size, info.mtime, info.mode = len(data), time, 0o644
        archive.addfile(info, io.BytesIO(data))
