/* Reads the file of submission keys, and compares keys. */
#include "admin/post/post_keys.h"

#include "base/crypto/base64.h"
#include "base/disk/disk.h"
#include "base/memory.h"
#include "smtp/access/senders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_ROOM = 16 * 1024 };

static const char separators[] = ", \t";

struct post_keys_reading {
    struct post_keys *keys;
    const char *file;
    struct buffer *errors;
    struct buffer senders; /* lines of senders_new() */
    size_t line;
};

bool
post_key_is_name(struct text name)
{
    for (size_t i = 0; i < name.length; i++) {
        char c = name.at[i];
        if (!text_is_digit(c) && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
            (i == 0 || strchr("._-", c) == NULL || c == '\0'))
            return false;
    }
    return name.length > 0 && name.length <= POST_KEY_NAME_MAX;
}

/* The digest is no secret, but it may be a key that was pasted instead: never a value. */
static void
post_keys_refuse(struct post_keys_reading *r, const char *why)
{
    (void)!buffer_format(r->errors, "http_keys: %s: line %zu: %s\n", r->file, r->line,
                         why);
}

/* Adds "USER PATTERN..." to the lines, if the patterns are good. */
static const char *
post_keys_read_senders(struct post_keys_reading *r, struct text name, struct text rest)
{
    struct buffer line, errors;
    buffer_init(&line, LINE_ROOM);
    buffer_init(&errors, LINE_ROOM);
    bool fits = buffer_format(&line, POST_KEY_USER "%.*s ", TEXT_ARGS(name)) &&
                buffer_add(&line, rest) && buffer_add_byte(&line, '\n') &&
                buffer_add(&r->senders, buffer_text(&line));
    struct senders *tried =
        fits ? senders_new(buffer_text(&line), TEXT(""), &errors) : NULL;
    bool good = tried != NULL;
    senders_free(&tried);
    buffer_free(&errors);
    buffer_free(&line);
    return good ? NULL
                : "senders follow the digest: user@domain, domain, .domain "
                  "(subdomains), *";
}

static const char *
post_keys_judge(struct post_keys_reading *r, struct text line, struct post_key *key)
{
    struct text name, digest;
    const struct post_keys *k = r->keys;
    if (!text_word(&line, separators, &name) || !post_key_is_name(name))
        return "no name of a key: letters, digits, '.', '_' and '-'";
    if (!text_word(&line, separators, &digest) ||
        !text_unhex(digest, key->digest, DIGEST_SIZE))
        return "no digest behind the name: `petrel key add` makes the line";
    if (k->count == POST_KEYS_MAX)
        return "more than 1000 keys";
    for (size_t i = 0; i < k->count; i++)
        if (text_equal(text_from(k->list[i].name), name))
            return "the name is in an earlier line, too";
    (void)!text_copy(key->name, sizeof(key->name), name);
    return post_keys_read_senders(r, name, line);
}

static void
post_keys_read_lines(struct post_keys_reading *r, struct text rest)
{
    struct text line;
    while (text_cut(&rest, '\n', &line)) {
        struct post_key key = {.name = ""};
        r->line++;
        line = text_trim(line);
        if (line.length == 0 || line.at[0] == '#')
            continue;
        const char *why = post_keys_judge(r, line, &key);
        if (why != NULL) {
            post_keys_refuse(r, why);
            continue;
        }
        r->keys = memory_resize(r->keys,
                                sizeof(*r->keys) + (r->keys->count + 1) * sizeof(key));
        r->keys->list[r->keys->count++] = key;
    }
}

struct post_keys *
post_keys_new(struct text content, const char *file, struct text domains,
              struct buffer *errors)
{
    struct post_keys_reading r = {
        .keys = memory_new(sizeof(*r.keys)), .file = file, .errors = errors};
    size_t before = errors->length;
    r.keys->users = 1;
    buffer_init(&r.senders, 2 * POST_KEY_FILE_MAX);
    post_keys_read_lines(&r, content);
    /* Without a line nobody may use anything: there is no key. */
    r.keys->senders = errors->length == before
                          ? senders_new(buffer_text(&r.senders), domains, errors)
                          : NULL;
    buffer_free(&r.senders);
    if (r.keys->senders == NULL)
        post_keys_release(&r.keys);
    return r.keys;
}

struct post_keys *
post_keys_read(const char *file, struct text domains, struct buffer *errors)
{
    char *content, why[DISK_REASON_MAX];
    size_t length;
    int error = disk_read_regular(file, POST_KEY_FILE_MAX, &content, &length);
    if (error != 0) {
        (void)!buffer_format(errors, "http_keys: cannot read %s: %s\n", file,
                             disk_explain_file(file, error, why));
        return NULL;
    }
    struct post_keys *keys =
        post_keys_new(text_of(content, length), file, domains, errors);
    free(content);
    return keys;
}

void
post_keys_release(struct post_keys **keys)
{
    struct post_keys *k = *keys;
    *keys = NULL;
    if (k == NULL || --k->users > 0)
        return;
    senders_free(&k->senders);
    free(k);
}

const struct post_key *
post_keys_find(const struct post_keys *keys, struct text token)
{
    unsigned char digest[DIGEST_SIZE];
    const struct post_key *found = NULL;
    digest_plain(token, digest);
    for (size_t i = 0; i < keys->count; i++)
        if (digest_same(keys->list[i].digest, digest, DIGEST_SIZE))
            found = &keys->list[i];
    return found;
}

void
post_key_write(const unsigned char random[DIGEST_SIZE], char token[POST_KEY_TOKEN_SIZE])
{
    (void)!text_copy(token, POST_KEY_TOKEN_SIZE, TEXT("petrel_"));
    base64_write_url(random, DIGEST_SIZE, token + strlen(token));
}
