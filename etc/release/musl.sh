#!/bin/sh
# musl and the libraries of the static program for one processor, from Debian's sources: musl.sh TRIPLET SOURCES PREFIX,
# with a triplet of Debian's compilers (aarch64-linux-gnu). PREFIX/bin/musl-gcc compiles and links with them.
# What is made is kept: a call that was interrupted goes on where it ended.
set -eu
triplet=$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2" "$3/lib" "$3/include" "$3/bin" "$3/made"
sources=$(cd "$2" && pwd) prefix=$(cd "$3" && pwd)
cc=$prefix/bin/musl-gcc
fail() { echo "musl.sh: $*" >&2; exit 1; }
"$triplet-gcc" --version >/dev/null 2>&1 || fail "$triplet-gcc is not installed: make deps-release"

# As the program itself is compiled; nothing unwinds. No path of this machine is in the objects.
flags="-fPIE -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables -fno-unwind-tables -fstack-protector-strong -g0"

# library NAME FUNCTION: runs it in a copy of its source.
library() {
    [ ! -e "$prefix/made/$1" ] || return 0
    echo "  $triplet $1"
    rm -rf "$prefix/work"
    cp -a "$sources/$1" "$prefix/work"
    # Not `if (...)`, in which an error would not end it.
    set +e
    (set -e; cd "$prefix/work"; map="-ffile-prefix-map=$prefix/work=/$1"; "$2") >"$prefix/log" 2>&1
    code=$?
    set -e
    [ $code = 0 ] || { tail -n 30 "$prefix/log"; fail "$1: $prefix/log"; }
    rm -rf "$prefix/work"
    cp "$sources/$1/.version" "$prefix/made/$1"
}
# configured FLAGS...: by autoconf, as for another system: no test of this one's decides.
configured() {
    [ -x configure ] || autoreconf -fi
    case $triplet in *eabi*) libc=musl${triplet##*-gnu} ;; *) libc=musl ;; esac
    ./configure --host="${triplet%-gnu*}-$libc" --build="$(dpkg-architecture -qDEB_BUILD_GNU_TYPE)" --prefix="$prefix" \
        --disable-shared --enable-static CC="$cc" AR="$triplet-ar" RANLIB="$triplet-ranlib" CFLAGS="-Os $flags $map" "$@"
}
build() { make -j"$(nproc)" "$@"; }

make_musl() {
    changes='symbols trim'
    grep -q DT_RELR ldso/dlstart.c || changes="$changes relr" # 1.2.4 has it
    for change in $changes; do patch -p1 <"$here/musl-$change.patch"; done
    # Its older malloc() needs two thirds of the time; even less if it keeps what each message needs again.
    sed -i 's/^#define RECLAIM .*/#define RECLAIM (4 << 20)/' src/malloc/oldmalloc/*.h src/malloc/oldmalloc/*.c
    # Of the hashes of passwords SHA-512 alone (base/crypto/verifier.c): for others crypt_r() gives what no hash is.
    sed -i 's/__crypt_\(md5\|blowfish\|sha256\|des\)(key, salt, output)/"*"/' src/crypt/crypt_r.c
    # A failed assert names its file and line; the names of all functions would be large.
    sed -i 's/__LINE__, __func__)/__LINE__, 0)/' include/assert.h
    sed -i 's/%s: %s: %d/%s:%d/; s/file, func, line/file, line/' src/exit/assert.c
    ./configure --prefix="$prefix" --syslibdir="$prefix/lib" --disable-shared --disable-wrapper --with-malloc=oldmalloc CC="$triplet-gcc" \
        CROSS_COMPILE="$triplet-" CFLAGS="$flags $map"
    build
    build install
    # Macros alone, of no processor; the headers of the kernel itself.
    cp /usr/include/uthash.h /usr/include/utlist.h "$prefix/include"
    for include in /usr/include "/usr/$triplet/include"; do
        for name in linux asm-generic mtd; do [ ! -d "$include/$name" ] || ln -sfn "$include/$name" "$prefix/include/$name"; done
    done
    for asm in "/usr/include/$triplet/asm" "/usr/$triplet/include/asm"; do
        [ ! -d "$asm" ] || ln -sfn "$asm" "$prefix/include/asm"
    done
    sed "s,@PREFIX@,$prefix,g" "$here/musl.specs" >"$prefix/lib/musl.specs"
    printf '#!/bin/sh\nexec %s "$@" -specs=%s\n' "$triplet-gcc" "$prefix/lib/musl.specs" >"$cc"
    chmod 755 "$cc"
}
make_libev() {
    configured
    build libev.la
    build install-includeHEADERS install-libLTLIBRARIES
}
make_cares() {
    configured --disable-tests --disable-cares-threads
    build
    build install
}
# The configuration of its authors (Debian's adds old digests and locks for threads) without what mail does not speak, what no
# suite of base/tls/ needs, and what reads keys with a passphrase (base/tls/tls_own.c refuses them).
make_mbedtls() {
    for feature in DEBUG_C SELF_TEST CERTS_C RIPEMD160_C CAMELLIA_C ARIA_C SSL_PROTO_DTLS SSL_DTLS_ANTI_REPLAY SSL_DTLS_HELLO_VERIFY \
        SSL_DTLS_CLIENT_PORT_REUSE SSL_DTLS_CONNECTION_ID SSL_DTLS_CONNECTION_ID_COMPAT SSL_DTLS_BADMAC_LIMIT \
        ARC4_C BLOWFISH_C CCM_C DES_C XTEA_C CIPHER_MODE_CFB CIPHER_MODE_CTR CIPHER_MODE_OFB CIPHER_MODE_XTS PKCS5_C PKCS12_C \
        KEY_EXCHANGE_PSK_ENABLED KEY_EXCHANGE_DHE_PSK_ENABLED KEY_EXCHANGE_RSA_PSK_ENABLED KEY_EXCHANGE_DHE_RSA_ENABLED \
        KEY_EXCHANGE_ECDH_ECDSA_ENABLED KEY_EXCHANGE_ECDH_RSA_ENABLED DHM_C SSL_CONTEXT_SERIALIZATION SSL_TRUNCATED_HMAC \
        ECP_DP_SECP192R1_ENABLED ECP_DP_SECP224R1_ENABLED ECP_DP_SECP192K1_ENABLED ECP_DP_SECP224K1_ENABLED; do
        python3 scripts/config.py unset "MBEDTLS_$feature" || true # of the other version
    done
    # Chance from the kernel, by getrandom(): a root without /dev has no other.
    sed -i 's/defined(__linux__) && defined(__GLIBC__)/defined(__linux__)/' library/entropy_poll.c
    # What a handshake and each byte of a session take is fast, the others small.
    hot=$(cd library && ls aes*.c bignum*.c chacha20.c ecp*.c gcm.c md5.c poly1305.c sha*.c | sed 's/c$/o/')
    # shellcheck disable=SC2086
    build -C library $hot CC="$cc" CFLAGS="-O2 $flags $map"
    build -C library static CC="$cc" AR="$triplet-ar" RL="$triplet-ranlib" CFLAGS="-Os $flags $map"
    cp library/*.a "$prefix/lib"
    cp -R include/mbedtls include/psa "$prefix/include"
}
make_jansson() {
    configured
    build -C src install
    build install-pkgconfigDATA
}
make_hiredis() {
    build libhiredis.a CC="$cc" AR="$triplet-ar" OPTIMIZATION=-Os CFLAGS="$flags $map" DEBUG_FLAGS=
    mkdir -p "$prefix/include/hiredis"
    cp ./*.h "$prefix/include/hiredis"
    cp libhiredis.a "$prefix/lib"
}
# With the part of libunistring that it needs.
make_idn2() {
    # A rule for those who register names, not for those who look them up: a table of all scripts.
    sed -i 's/what & TEST_CONTEXTO_RULE)/0)/' lib/idna.c
    configured --disable-doc --disable-nls --disable-gtk-doc --with-included-libunistring
    build -C gl
    build -C unistring
    build -C lib install
    build install-pkgconfigDATA
}
make_seccomp() {
    configured --disable-python
    build -C include install
    build -C src libseccomp.la
    build -C src install-libLTLIBRARIES
    build install-pkgconfDATA
}
# Signatures alone are called: not the tables and the code of all that sodium_init() would choose by processor.
make_sodium() {
    sed -i '/_pick_best_implementation();/d' src/libsodium/sodium/core.c
    configured --enable-minimal
    build -C src install
    build install-pkgconfigDATA
}

library musl make_musl
library libev make_libev
library c-ares make_cares
library mbedtls make_mbedtls
library jansson make_jansson
library hiredis make_hiredis
library libidn2 make_idn2
library libseccomp make_seccomp
library libsodium make_sodium

