/* Reads keys and finds them. Content of files is overwritten, and no error has a part
 * of it. */
#include "smtp/trust/dkim_keys.h"

#include "base/disk/disk.h"
#include "base/dns/idna.h"
#include "base/memory.h"
#include "mime/auth/dkim.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_LIMIT = 4096, BITS_ADVISED = 2048, READ_BY_ALL = 04 };

static const char between[] = "._domainkey.";
static const char ending[] = ".pem";

struct dkim_keys_reading {
    struct dkim_keys *keys;
    size_t capacity, done; /* rows, and those whose file was read */
    struct disk *here;
    struct buffer *errors;
    const char *directory;
    bool bad;
};

static void keys_complain(struct dkim_keys_reading *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void
keys_complain(struct dkim_keys_reading *r, const char *format, ...)
{
    va_list list;
    r->bad = true;
    if (!buffer_add(r->errors, TEXT("dkim_keys: ")))
        return;
    va_start(list, format);
    (void)!buffer_format_list(r->errors, format, list);
    va_end(list);
    (void)!buffer_add_byte(r->errors, '\n');
}

/* --- One key ---------------------------------------------------------------------- */

/* Leaves key NULL if it cannot be used. */
static void
read_key_file(struct dkim_keys_reading *r, struct dkim_key *k)
{
    char *content, reason[DISK_REASON_MAX];
    size_t length;
    const char *why;
    struct disk_info info;
    int error = disk_read_regular(k->path, SIGN_FILE_MAX, &content, &length);
    if (error < 0) {
        keys_complain(r, "cannot read '%.1000s': %s", k->path,
                      disk_explain_file(k->path, error, reason));
        return;
    }
    k->key = sign_key_read(r->keys->random, text_of(content, length), &why);
    digest_forget(content, length);
    free(content);
    if (k->key == NULL)
        keys_complain(r, "'%.1000s' %s", k->path, why);
    k->exposed = r->here != NULL && disk_inspect(r->here, k->path, &info) == 0 &&
                 info.kind == DISK_FILE && (info.mode & READ_BY_ALL) != 0;
}

static void
keys_add(struct dkim_keys_reading *r, struct text domain, struct text selector,
         const char *path)
{
    struct dkim_keys *keys = r->keys;
    char ascii[IDNA_NAME_MAX];
    if (!idna_to_ascii(domain, ascii) || !dkim_is_name(text_from(ascii))) {
        keys_complain(r, "'%.*s' is not a domain", TEXT_ARGS(text_before(domain, 300)));
        return;
    }
    if (!dkim_is_name(selector)) {
        keys_complain(r, "'%.*s' is not a selector: use letters, digits and hyphens",
                      TEXT_ARGS(text_before(selector, 300)));
        return;
    }
    if (keys->count == DKIM_KEYS_MAX) {
        if (!r->bad)
            keys_complain(r, "more than %d keys", DKIM_KEYS_MAX);
        return;
    }
    if (keys->count == r->capacity) {
        r->capacity = r->capacity > 0 ? 2 * r->capacity : 4;
        keys->list = memory_resize(keys->list, r->capacity * sizeof(*keys->list));
    }
    struct dkim_key *k = &keys->list[keys->count++];
    *k = (struct dkim_key){.domain = memory_string(ascii),
                           .selector = text_string(selector),
                           .path = memory_string(path)};
    text_lower(k->selector, strlen(k->selector));
}

static void
dkim_key_clear(struct dkim_key *k)
{
    free(k->domain);
    free(k->selector);
    free(k->path);
    sign_key_free(&k->key);
}

/* --- The setting ------------------------------------------------------------------ */

static bool
take_file(void *context, const char *name)
{
    struct dkim_keys_reading *r = context;
    char path[PATH_LIMIT];
    struct text all = text_from(name);
    const char *middle = strstr(name, between);
    if (!text_ends_nocase(all, text_from(ending)))
        return true;
    if (middle == NULL || snprintf(path, sizeof(path), "%s/%s", r->directory, name) >=
                              (int)sizeof(path)) {
        keys_complain(r, "'%.300s': name it SELECTOR._domainkey.DOMAIN.pem", name);
        return true;
    }
    size_t selector = (size_t)(middle - name), domain = selector + strlen(between);
    if (all.length < domain + strlen(ending))
        domain = all.length - strlen(ending);
    keys_add(r,
             text_before(text_after(all, domain), all.length - domain - strlen(ending)),
             text_before(all, selector), path);
    return true;
}

static void
read_key_directory(struct dkim_keys_reading *r, const char *path)
{
    struct disk *disk;
    int error = disk_open(&disk, path, false);
    r->directory = path;
    if (error == 0) {
        error = disk_list(disk, ".", take_file, r);
        disk_close(&disk);
    }
    if (error < 0)
        keys_complain(r, "cannot read the directory '%.1000s': %s", path,
                      strerror(-error));
    else if (r->keys->count == 0 && !r->bad)
        keys_complain(r,
                      "no file SELECTOR._domainkey.DOMAIN.pem is in '%.1000s': make "
                      "one with `petrel dkim-key DOMAIN`",
                      path);
}

static void
read_key_row(struct dkim_keys_reading *r, struct text line)
{
    static const char blanks[] = " \t\r";
    char path[PATH_LIMIT];
    struct text domain, selector, file, more, rest = line;
    bool whole = text_word(&rest, blanks, &domain) &&
                 text_word(&rest, blanks, &selector) &&
                 text_word(&rest, blanks, &file) && !text_word(&rest, blanks, &more);
    if (!whole || !text_copy(path, sizeof(path), file)) {
        keys_complain(r,
                      "'%.*s': write DOMAIN SELECTOR PATH, or the path of a directory",
                      TEXT_ARGS(text_before(text_trim(line), 300)));
        return;
    }
    keys_add(r, domain, selector, path);
}

/* RSA first: a receiver that gives up at a signature it does not know has seen it. */
static int
compare_keys(const void *one, const void *other)
{
    const struct dkim_key *a = one, *b = other;
    int order = strcmp(a->domain, b->domain);
    if (order == 0)
        order = (int)sign_key_kind(a->key) - (int)sign_key_kind(b->key);
    return order != 0 ? order : strcmp(a->selector, b->selector);
}

static void
check_keys(struct dkim_keys_reading *r)
{
    const struct dkim_keys *keys = r->keys;
    size_t same = 1;
    for (size_t i = 1; i < keys->count; i++) {
        const struct dkim_key *a = &keys->list[i - 1], *b = &keys->list[i];
        same = strcmp(a->domain, b->domain) == 0 ? same + 1 : 1;
        if (same == DKIM_KEYS_PER_DOMAIN + 1)
            keys_complain(r, "more than %d keys for '%s'", DKIM_KEYS_PER_DOMAIN,
                          b->domain);
        for (size_t k = i - (same - 1); k < i; k++)
            if (strcmp(keys->list[k].selector, b->selector) == 0)
                keys_complain(r, "selector '%s' of '%s' is there twice", b->selector,
                              b->domain);
    }
}

struct dkim_keys_reading *
dkim_keys_begin(struct text setting, struct buffer *errors)
{
    struct dkim_keys_reading *r = memory_new(sizeof(*r));
    char path[PATH_LIMIT];
    struct text rest, word, line;
    setting = text_trim(setting);
    r->errors = errors;
    if (setting.length == 0)
        return r;
    r->keys = memory_new(sizeof(*r->keys));
    r->keys->random = sign_random_new();
    if (disk_open(&r->here, ".", false) != 0)
        r->here = NULL;
    rest = setting;
    bool one = text_word(&rest, " \t\r\n", &word) && word.length == setting.length;
    if (r->keys->random == NULL)
        keys_complain(r, "the system has no random numbers");
    else if (one && text_copy(path, sizeof(path), setting))
        read_key_directory(r, path);
    else
        while (text_cut(&setting, '\n', &line))
            if (text_trim(line).length > 0)
                read_key_row(r, line);
    return r;
}

bool
dkim_keys_go_on(struct dkim_keys_reading *r)
{
    size_t count = r->keys != NULL ? r->keys->count : 0;
    for (int i = 0; i < DKIM_KEYS_PER_TURN && r->done < count; i++)
        read_key_file(r, &r->keys->list[r->done++]);
    return r->done == count;
}

static void
drop_unusable(struct dkim_keys *keys)
{
    size_t kept = 0;
    for (size_t i = 0; i < keys->count; i++) {
        if (keys->list[i].key != NULL)
            keys->list[kept++] = keys->list[i];
        else
            dkim_key_clear(&keys->list[i]);
    }
    keys->count = kept;
}

struct dkim_keys *
dkim_keys_end(struct dkim_keys_reading **reading)
{
    struct dkim_keys_reading *r = *reading;
    struct dkim_keys *keys = r->keys;
    if (keys != NULL) {
        drop_unusable(keys);
        if (keys->count > 0)
            qsort(keys->list, keys->count, sizeof(*keys->list), compare_keys);
        check_keys(r);
    }
    if (r->bad)
        dkim_keys_free(&keys);
    if (r->here != NULL)
        disk_close(&r->here);
    free(r);
    *reading = NULL;
    return keys;
}

void
dkim_keys_free(struct dkim_keys **keys)
{
    struct dkim_keys *k = *keys;
    if (k == NULL)
        return;
    for (size_t i = 0; i < k->count; i++)
        dkim_key_clear(&k->list[i]);
    free(k->list);
    sign_random_free(&k->random);
    free(k);
    *keys = NULL;
}

/* --- Finding ---------------------------------------------------------------------- */

/* The first row whose domain is not below that one. */
static size_t
keys_lower_bound(const struct dkim_keys *keys, const char *domain)
{
    size_t from = 0, to = keys->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (strcmp(keys->list[middle].domain, domain) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

struct dkim_key *
dkim_keys_find(const struct dkim_keys *keys, struct text domain, size_t *count)
{
    char name[DKIM_NAME_MAX];
    *count = 0;
    if (!text_copy(name, sizeof(name), domain))
        return NULL;
    text_lower(name, strlen(name));
    for (const char *at = name; at != NULL;) {
        size_t first = keys_lower_bound(keys, at);
        while (first + *count < keys->count &&
               strcmp(keys->list[first + *count].domain, at) == 0)
            ++*count;
        if (*count > 0)
            return &keys->list[first];
        at = strchr(at, '.');
        at = at != NULL ? at + 1 : NULL;
    }
    return NULL;
}

/* --- Warnings --------------------------------------------------------------------- */

static void
warn_of_key(const struct dkim_key *k, bool is_first, struct log *log)
{
    unsigned bits = sign_key_bits(k->key);
    if (sign_key_kind(k->key) == SIGN_ED25519 && is_first)
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "dkim_keys: %s has Ed25519 keys alone, which large receivers do not "
                "verify: add an RSA key",
                k->domain);
    else if (sign_key_kind(k->key) == SIGN_RSA && bits < BITS_ADVISED)
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "dkim_keys: the key %s of %s has %u bits: 2048 are advised",
                k->selector, k->domain, bits);
    else if (sign_key_kind(k->key) == SIGN_RSA && bits > BITS_ADVISED)
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "dkim_keys: the key %s of %s has %u bits: with 4096 a signature takes "
                "12 ms, with 2048 it takes 2 ms",
                k->selector, k->domain, bits);
}

void
dkim_keys_warn(const struct dkim_keys *keys, struct log *log)
{
    for (size_t i = 0; keys != NULL && i < keys->count; i++) {
        const struct dkim_key *k = &keys->list[i];
        warn_of_key(k, i == 0 || strcmp(k[-1].domain, k->domain) != 0, log);
        if (k->exposed)
            log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                    "dkim_keys: %s can be read by all users: chmod 600", k->path);
    }
}

/* --- Published records ------------------------------------------------------------ */

struct key_question {
    struct dkim_keys_check *check;
    struct dkim_key *key; /* NULL: free */
    struct dns_query *query;
    char name[2 * DKIM_NAME_MAX + 16];
};

struct dkim_keys_check {
    struct loop *loop;
    struct log *log;
    struct dns *dns;
    struct key_question questions[DKIM_KEYS_CHECK_MAX];
};

static const char *
kind_name(const struct dkim_key *key)
{
    return sign_key_kind(key->key) == SIGN_RSA ? "rsa" : "ed25519";
}

static void
report_record(const struct key_question *q, enum dkim_record found, struct text key)
{
    struct log *log = q->check->log;
    if (found != DKIM_RECORD_FITS)
        log_say(log, LOG_LEVEL_WARNING, "smtp", NULL,
                "dkim_keys: %s %s: receivers cannot verify mail signed for %s; "
                "publish this TXT record there, and no other: v=DKIM1; k=%s; p=%.*s",
                q->name, dkim_record_words(found), q->key->domain, kind_name(q->key),
                TEXT_ARGS(key));
    else if (q->key->record != DKIM_RECORD_FITS)
        log_say(log, LOG_LEVEL_INFO, "smtp", NULL,
                "dkim_keys: %s now has the record of its key", q->name);
    q->key->record = found;
}

static void
on_record(void *context, const struct dns_answer *answer)
{
    struct key_question *q = context;
    struct buffer key;
    bool known = answer->status != DNS_TRY_AGAIN;
    buffer_init(&key, SIGN_PUBLIC_MAX);
    q->query = NULL;
    if (known && sign_key_public(q->key->key, &key))
        report_record(q,
                      dkim_record_judge(answer->texts,
                                        answer->status == DNS_FOUND ? answer->count : 0,
                                        text_from(kind_name(q->key)),
                                        buffer_text(&key)),
                      buffer_text(&key));
    buffer_free(&key);
    q->key->check_due_ms =
        loop_monotonic_ms(q->check->loop) + (known && q->key->record == DKIM_RECORD_FITS
                                                 ? DKIM_KEYS_CHECK_GOOD_MS
                                                 : DKIM_KEYS_CHECK_BAD_MS);
    q->key = NULL;
}

struct dkim_keys_check *
dkim_keys_check_new(struct loop *loop, struct log *log, struct dns *dns)
{
    struct dkim_keys_check *c = memory_new(sizeof(*c));
    c->loop = loop;
    c->log = log;
    c->dns = dns;
    for (size_t i = 0; i < DKIM_KEYS_CHECK_MAX; i++)
        c->questions[i].check = c;
    return c;
}

/* NULL: it is being asked for, or all are in use. */
static struct key_question *
find_free_question(struct dkim_keys_check *c, const struct dkim_key *key)
{
    struct key_question *found = NULL;
    for (size_t i = 0; i < DKIM_KEYS_CHECK_MAX; i++) {
        if (c->questions[i].key == key)
            return NULL;
        if (c->questions[i].key == NULL)
            found = &c->questions[i];
    }
    return found;
}

void
dkim_keys_check_used(struct dkim_keys_check *c, struct dkim_key *key)
{
    if (key->check_due_ms > loop_monotonic_ms(c->loop))
        return;
    struct key_question *q = find_free_question(c, key);
    if (q == NULL)
        return;
    q->key = key;
    int length = snprintf(q->name, sizeof(q->name), "%s._domainkey.%s", key->selector,
                          key->domain);
    assert(length > 0 && (size_t)length < sizeof(q->name)); /* dkim_is_name() */
    q->query = dns_find_texts(c->dns, q->name, on_record, q);
}

void
dkim_keys_check_stop(struct dkim_keys_check *c)
{
    for (size_t i = 0; i < DKIM_KEYS_CHECK_MAX; i++) {
        if (c->questions[i].key != NULL)
            dns_cancel(&c->questions[i].query);
        c->questions[i].key = NULL;
    }
}

void
dkim_keys_check_free(struct dkim_keys_check **c)
{
    if (*c == NULL)
        return;
    dkim_keys_check_stop(*c);
    free(*c);
    *c = NULL;
}
