#!/bin/sh
# Certificates for tests, by openssl, into the directory $1: a CA (ca.pem), another one
# (other-ca.pem), and pairs NAME.pem, NAME.key made by them.
set -e
mkdir -p "$1"
cd "$1"

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
ca() {
    key "$1"
    openssl req -x509 -new -sha256 -key "$1.key" -subj "/O=Petrel tests/CN=$2" -days 3650 \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=keyCertSign,cRLSign -out "$1.pem"
}
# pair NAME CA SUBJECT ALTERNATIVES [FROM UNTIL [USAGE]]
pair() {
    [ -f "$1.key" ] || key "$1"
    openssl req -new -key "$1.key" -subj "$3" -out "$1.csr"
    { echo "basicConstraints=CA:FALSE"; echo "extendedKeyUsage=${7:-serverAuth}"
      if [ -n "$4" ]; then echo "subjectAltName=$4"; fi; } >"$1.ext"
    : >"$1.index"
    cat >"$1.conf" <<END
[ca]
default_ca=one
[one]
database=$1.index
rand_serial=yes
new_certs_dir=.
default_md=sha256
policy=any
unique_subject=no
email_in_dn=no
[any]
commonName=optional
organizationName=optional
END
    openssl ca -batch -config "$1.conf" -cert "$2.pem" -keyfile "$2.key" -in "$1.csr" -out "$1.pem" \
        -notext -extfile "$1.ext" -startdate "${5:-20200101000000Z}" -enddate "${6:-20490101000000Z}"
    rm -f "$1.csr" "$1.ext" "$1.conf" "$1".index*
}
{
    ca ca "Good CA"
    ca other-ca "Other CA"
    pair good ca "/CN=mail.example.net" "DNS:mail.example.net,DNS:mx.example.net,IP:127.0.0.1,IP:::1"
    pair wild ca "/CN=ignored.example" "DNS:*.example.org"
    pair exact ca "/CN=exact" "DNS:one.example.org"
    pair common ca "/CN=common.example.net" ""
    pair expired ca "/CN=mail.example.net" "DNS:mail.example.net" 20200101000000Z 20210203040506Z
    pair future ca "/CN=mail.example.net" "DNS:mail.example.net" 20480101000000Z 20490101000000Z
    pair stranger other-ca "/CN=mail.example.net" "DNS:mail.example.net"
    pair usage ca "/CN=mail.example.net" "DNS:mail.example.net" 20200101000000Z 20490101000000Z clientAuth
    pair many ca "/CN=a" "DNS:a.example,DNS:b.example,IP:192.0.2.1,DNS:c.example,DNS:d.example"
    openssl genrsa -out rsa.key 2048
    pair rsa ca "/CN=rsa.example.net" "DNS:rsa.example.net"
    key self
    openssl req -x509 -new -sha256 -key self.key -subj "/CN=mail.example.net" -days 3650 \
        -addext subjectAltName=DNS:mail.example.net -out self.pem
    # Below an intermediate authority, which is sent with the certificate, as is the root.
    key mid
    openssl req -new -key mid.key -subj "/O=Petrel tests/CN=Middle CA" -out mid.csr
    printf 'basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign,cRLSign\n' >mid.ext
    openssl x509 -req -sha256 -in mid.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 3650 -extfile mid.ext -out mid.pem
    pair below mid "/CN=mail.example.net" "DNS:mail.example.net"
    pair late mid "/CN=mail.example.net" "DNS:mail.example.net" 20200101000000Z 20210203040506Z
    cat below.pem mid.pem ca.pem >chained.pem
    cat late.pem mid.pem ca.pem >late-chained.pem
    cp below.key chained.key
    rm -f mid.csr mid.ext ca.srl
    cat ca.pem other-ca.pem >both.pem
    cat good.key good.pem >good-both.pem
    openssl ec -in good.key -aes128 -passout pass:x -out locked.key
    mkdir -p anchors empty
    cp ca.pem anchors/ca.pem
    ln -sf ca.pem anchors/0a1b2c3d.0
    echo junk >anchors/README
    rm -f [0-9A-F]*.pem
} >log 2>&1 || { cat log >&2; exit 1; }
