/* Makes a certificate and its key, and explains their use. */
#include "admin/tool/cert_command.h"

#include "admin/settings/complaint.h"
#include "admin/settings/whole_file.h"
#include "base/dns/idna.h"
#include "base/loop/loop.h"
#include "base/net_address.h"
#include "base/tls/tls_self_signed.h"
#include "mime/auth/dkim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum { CERT_FILE_MAX = 150, CERT_PATH_MAX = 1024, CERT_ERROR_MAX = 512 };
#define CERT_FOR_MS (2LL * 365 * 24 * 3600 * 1000)

static const char cert_program[] = "petrel cert";

struct cert_request {
    const char *directory;
    bool force;
    enum tls_key_kind kind;
    char hosts[TLS_SELF_SIGNED_NAMES_MAX][IDNA_NAME_MAX + 2];
    struct text names[TLS_SELF_SIGNED_NAMES_MAX];
    size_t count;
    char pem[CERT_FILE_MAX + 8], key[CERT_FILE_MAX + 8]; /* names of the files */
};

/* --- Arguments -------------------------------------------------------------------- */

static int
cert_usage(void)
{
    fputs("usage: petrel cert [--out DIRECTORY] [--force] [--ecdsa] NAME...\n", stderr);
    return EX_USAGE;
}

/* A host, all hosts of a domain, or an address. */
static bool
cert_take_name(struct cert_request *r, const char *given)
{
    struct text name = text_from(given);
    struct net_address address;
    char *host = r->hosts[r->count];
    bool is_wild = text_starts(name, TEXT("*."));
    bool is_address =
        net_address_parse_ip(name, &address) && name.length > 0 &&
        (name.at[0] == ':' || strchr("0123456789abcdefABCDEF", name.at[0]) != NULL);
    if (is_address) {
        (void)text_copy(host, IDNA_NAME_MAX, name);
    } else {
        memcpy(host, "*.", 2);
        char *plain = is_wild ? host + 2 : host;
        if (!idna_to_ascii(text_after(name, is_wild ? 2 : 0), plain) ||
            !dkim_is_name(text_from(plain)) || strlen(host) > TLS_SELF_SIGNED_NAME_MAX)
            return false;
    }
    r->names[r->count++] = text_from(host);
    return true;
}

/* Files are named after the first name. */
static void
cert_name_files(struct cert_request *r)
{
    char file[CERT_FILE_MAX];
    (void)text_copy(file, sizeof(file), text_before(r->names[0], sizeof(file) - 1));
    for (char *c = file; *c != '\0'; c++)
        if (*c == ':' || *c == '*')
            *c = *c == ':' ? '-' : '_';
    snprintf(r->pem, sizeof(r->pem), "%s.pem", file);
    snprintf(r->key, sizeof(r->key), "%s.key", file);
}

static int
cert_read_request(struct cert_request *r, int count, char **arguments)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(arguments[i], "--force") == 0) {
            r->force = true;
        } else if (strcmp(arguments[i], "--ecdsa") == 0) {
            r->kind = TLS_KEY_ECDSA;
        } else if (strcmp(arguments[i], "--out") == 0 && i + 1 < count &&
                   arguments[i + 1][0] != '\0') {
            r->directory = arguments[++i];
        } else if (arguments[i][0] == '-') {
            return cert_usage();
        } else if (r->count == TLS_SELF_SIGNED_NAMES_MAX) {
            return complaint_say(cert_program, EX_USAGE,
                                 "a certificate has at most 20 names; make another one "
                                 "for the rest",
                                 "");
        } else if (!cert_take_name(r, arguments[i])) {
            return complaint_say(cert_program, EX_DATAERR,
                                 "not a name; write mail.example.org, *.example.org or "
                                 "an address",
                                 arguments[i]);
        }
    }
    if (r->count == 0)
        return cert_usage();
    cert_name_files(r);
    return 0;
}

/* --- Files ------------------------------------------------------------------------ */

static int
cert_fail(const struct cert_request *r, int error, const char *name)
{
    char what[CERT_PATH_MAX];
    const char *remedy = error == -EEXIST ? "remove it, or replace it with --force"
                         : error == -EACCES || error == -EPERM || error == -EROFS
                             ? "run it as root, or write elsewhere with --out"
                         : error == -ENOENT || error == -ENOTDIR
                             ? "make the directory, or name another with --out"
                             : "make space there, or write elsewhere with --out";
    snprintf(what, sizeof(what), "%.700s%s%s: %s; %s", r->directory,
             name[0] != '\0' ? "/" : "", name, strerror(-error), remedy);
    return complaint_say(cert_program,
                         error == -EACCES || error == -EPERM ? EX_NOPERM : EX_CANTCREAT,
                         what, "");
}

/* Neither is written where one would be refused. */
static int
cert_look(const struct cert_request *r, struct disk *disk)
{
    const char *const names[] = {r->key, r->pem};
    for (size_t i = 0; i < 2; i++) {
        struct disk_info info;
        int error = disk_inspect(disk, names[i], &info);
        bool is_bad = error == 0 && (!r->force || info.kind != DISK_FILE);
        if (is_bad || (error != 0 && error != -ENOENT))
            return cert_fail(r, error == 0 ? -EEXIST : error, names[i]);
    }
    return 0;
}

static int
cert_write(const struct cert_request *r, const struct options *options,
           struct text certificate, struct text key)
{
    struct identity owner;
    struct disk *disk;
    if (!identity_find(&owner, options->user))
        return complaint_say(cert_program, EX_NOUSER,
                             "no such user; make it, or change `user`", options->user);
    int error = disk_open(&disk, r->directory, false);
    if (error != 0)
        return cert_fail(r, error, "");
    int code = cert_look(r, disk);
    const char *name = r->key;
    if (code == 0)
        error = whole_file_write(disk, name, key, 0600, &owner, r->force);
    if (code == 0 && error == 0)
        error =
            whole_file_write(disk, name = r->pem, certificate, 0644, NULL, r->force);
    disk_close(&disk);
    return code != 0 || error == 0 ? code : cert_fail(r, error, name);
}

/* --- The command ------------------------------------------------------------------ */

static void
cert_say(const struct cert_request *r)
{
    char here[CERT_PATH_MAX] = "";
    bool is_here = strcmp(r->directory, ".") == 0;
    if (r->directory[0] != '/' && getcwd(here, sizeof(here)) == NULL)
        here[0] = '\0';
    const char *slash = here[0] != '\0' && !is_here ? "/" : "";
    const char *rest = is_here ? "" : r->directory;
    printf("# Valid for two years. Clients that verify certificates refuse it: tell "
           "them to trust it, or\n# get one of an authority (certbot, for example). "
           "Add to the settings, and run `petrel reload`:\n"
           "tls_certificate = %s%s%s/%s\ntls_key = %s%s%s/%s\n",
           here, slash, rest, r->pem, here, slash, rest, r->key);
}

static int
cert_make(const struct cert_request *r, const struct options *options)
{
    char error[CERT_ERROR_MAX];
    struct buffer certificate, key;
    struct loop *loop = loop_new();
    struct tls *tls = tls_new(error, sizeof(error));
    int64_t now_ms = loop_now_ms(loop);
    buffer_init(&certificate, TLS_SELF_SIGNED_MAX);
    buffer_init(&key, TLS_SELF_SIGNED_MAX);
    int code = 0;
    if (tls == NULL || !tls_self_signed_make(tls, r->kind, r->names, r->count, now_ms,
                                             now_ms + CERT_FOR_MS, &certificate, &key))
        code = complaint_say(cert_program, EX_OSERR,
                             "the library has made no certificate; run it again", "");
    else
        code = cert_write(r, options, buffer_text(&certificate), buffer_text(&key));
    buffer_forget(&key);
    buffer_free(&certificate);
    tls_free(&tls);
    loop_free(&loop);
    return code;
}

int
cert_command(int count, char **arguments, const struct options *options)
{
    struct cert_request r = {.directory = "."};
    int code = cert_read_request(&r, count, arguments);
    if (code == 0)
        code = cert_make(&r, options);
    if (code == 0)
        cert_say(&r);
    return code == 0 && (fflush(stdout) != 0 || ferror(stdout)) ? EX_IOERR : code;
}
