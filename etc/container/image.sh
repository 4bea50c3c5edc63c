#!/bin/sh
# An OCI archive of a root, with the settings of the Dockerfile beside this file: image.sh ROOT ARCHIVE PROCESSOR VERSION.
# The same root gives the same bytes: all times are SOURCE_DATE_EPOCH, nobody's user and no host is in it. Its name is petrel:latest:
# for containerd, podman and Docker with containerd's image store by the annotation, for other Docker by manifest.json.
set -eu
root=$1 archive=$2 version=$4 docker=$(dirname "$0")/Dockerfile
variant=
case $3 in
    x86_64*) architecture=amd64 ;;
    aarch64*) architecture=arm64 ;;
    arm*) architecture=arm variant=',"variant":"v7"' ;;
    *) architecture=${3%%-*} ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
blobs=$work/layout/blobs/sha256
mkdir -p "$blobs"
pack() { tar --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --numeric-owner --group=0 "$@"; }
# keep FILE: its digest, under which it is kept from now on.
keep() { sha=$(sha256sum <"$1") sha=${sha%% *}; size=$(wc -c <"$1"); mv "$1" "$blobs/$sha"; }
# A line of the Dockerfile as JSON.
say() { sed -n "s/^$1 //p" "$docker"; }
list() { say "$1" | tr ' ' '\n' | sed 's/.*/"&/; s/$/'"$2"'/' | paste -sd, -; }

pack -cf "$work/layer" --owner=0 --mode=u=rwX,go=rX -C "$root" petrel etc
pack -rf "$work/layer" --owner=65532 --mode=u=rwx,g=rwx,o= -C "$root" spool
plain=$(sha256sum <"$work/layer") plain=${plain%% *}
gzip -n -9 "$work/layer"
keep "$work/layer.gz"
layer_sha=$sha
layer='{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:'$sha'","size":'$size'}'
created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
cat >"$work/config" <<END
{"created":"$created","architecture":"$architecture","os":"linux"$variant,
"config":{"User":"$(say USER)","ExposedPorts":{$(list EXPOSE '\/tcp":{}')},"Env":[$(list ENV '"')],
"Entrypoint":$(say ENTRYPOINT),"Volumes":{"$(say VOLUME)":{}},
"Healthcheck":{"Test":$(say 'HEALTHCHECK CMD' | sed 's/^\[/["CMD",/')}},
"rootfs":{"type":"layers","diff_ids":["sha256:$plain"]},
"history":[{"created":"$created","created_by":"make image"}]}
END
keep "$work/config"
config=$sha
cat >"$work/manifest" <<END
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",
"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:$sha","size":$size},
"layers":[$layer]}
END
keep "$work/manifest"
cat >"$work/layout/index.json" <<END
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[
{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:$sha","size":$size,
"platform":{"architecture":"$architecture","os":"linux"$variant},
"annotations":{"io.containerd.image.name":"docker.io/library/petrel:latest","org.opencontainers.image.ref.name":"latest",
"org.opencontainers.image.version":"$version"}}]}
END
echo '[{"Config":"blobs/sha256/'$config'","RepoTags":["petrel:latest"],"Layers":["blobs/sha256/'$layer_sha'"]}]' >"$work/layout/manifest.json"
echo '{"imageLayoutVersion":"1.0.0"}' >"$work/layout/oci-layout"
pack -cf "$archive" --owner=0 --mode=u=rwX,go=rX -C "$work/layout" oci-layout index.json manifest.json blobs
echo "$archive: sha256:$sha, $(wc -c <"$archive") bytes"
