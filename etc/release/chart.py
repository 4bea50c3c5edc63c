#!/usr/bin/env python3
"""The archive of the Helm chart, with the version of the release: chart.py DIRECTORY VERSION OUT."""
import gzip
import io
import os
import sys
import tarfile

directory, version, out = sys.argv[1:]
time = int(os.environ["SOURCE_DATE_EPOCH"])
with open(out, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=time, filename="") as packed:
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for folder, folders, names in os.walk(directory):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                with open(path, "rb") as content:
                    data = content.read()
                if name == "Chart.yaml":
                    lines = [line.split(" #")[0] for line in data.decode().splitlines()]
                    data = ("\n".join(lines) + "\n").replace("0.0.0", version).encode()
                info = tarfile.TarInfo("petrel/" + os.path.relpath(path, directory))
                info.size, info.mtime, info.mode = len(data), time, 0o644
                archive.addfile(info, io.BytesIO(data))
