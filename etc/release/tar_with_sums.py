#!/usr/bin/env python3
"""The tar archive of a folder as apk wants it, to standard output: each file with its SHA-1 in a PAX header."""
import hashlib
import os
import sys
import tarfile

root, time = sys.argv[1], int(sys.argv[2])
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.PAX_FORMAT) as archive:
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files) if folder == root else [""] + sorted(files):
            path = os.path.join(folder, name) if name else folder
            info = archive.gettarinfo(path, os.path.relpath(path, root))
            info.mtime, info.uid, info.gid, info.uname, info.gname = time, 0, 0, "root", "root"
            if info.isfile():
                with open(path, "rb") as content:
                    data = content.read()
                    info.pax_headers = {"APK-TOOLS.checksum.SHA1": hashlib.sha1(data).hexdigest()}
                    content.seek(0)
                    archive.addfile(info, content)
            else:
                archive.addfile(info)
