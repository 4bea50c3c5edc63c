#!/usr/bin/env python3
"""What the static programs are made of, as SPDX 2.3: sbom.py VERSION SOURCES FILE... , with the sources that musl.sh was given."""
import datetime
import hashlib
import json
import os
import sys

LICENSES = {
    "musl": "MIT", "libev": "BSD-2-Clause OR GPL-2.0-or-later", "c-ares": "MIT", "mbedtls": "Apache-2.0 OR GPL-2.0-or-later",
    "jansson": "MIT", "hiredis": "BSD-3-Clause", "libidn2": "LGPL-3.0-or-later OR GPL-2.0-or-later", "libseccomp": "LGPL-2.1-only",
    "libsodium": "ISC",
}
version, sources, files = sys.argv[1], sys.argv[2], sys.argv[3:]
created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def package(name, release, license_name, **more):
    return {
        "SPDXID": "SPDXRef-" + name, "name": name, "versionInfo": release, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION", "licenseDeclared": license_name, "copyrightText": "NOASSERTION", **more,
    }


def relation(one, how, other):
    return {"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other}


packages, relations = [package("petrel", version, "ISC")], [relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-petrel")]
for name in sorted(LICENSES):
    with open(os.path.join(sources, name, ".version"), encoding="ascii") as file:
        release = file.read().strip()
    where = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:deb/debian/{name}@{release}?arch=source"}
    packages.append(package(name, release, LICENSES[name], externalRefs=[where]))
    relations.append(relation("SPDXRef-petrel", "STATIC_LINK", "SPDXRef-" + name))
described = []
for number, path in enumerate(sorted(files)):
    with open(path, "rb") as file:
        data = file.read()
    sums = [{"algorithm": a.upper(), "checksumValue": hashlib.new(a, data).hexdigest()} for a in ("sha1", "sha256")]
    described.append({"SPDXID": f"SPDXRef-File-{number}", "fileName": "./" + os.path.basename(path), "checksums": sums,
                      "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION"})
    relations.append(relation(f"SPDXRef-File-{number}", "GENERATED_FROM", "SPDXRef-petrel"))
digest = hashlib.sha256(json.dumps([packages, described], sort_keys=True).encode()).hexdigest()
json.dump({
    "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"petrel-{version}",
    "documentNamespace": f"https://spdx.org/spdxdocs/petrel-{version}-{digest}",
    "creationInfo": {"created": created, "creators": ["Organization: Petrel maintainers", "Tool: etc/release/sbom.py"]},
    "packages": packages, "files": described, "relationships": relations,
}, sys.stdout, indent=1)
print()
