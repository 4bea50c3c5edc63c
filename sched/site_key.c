/* Sites by mail exchangers: canonical sets and providers.
 *
 * A key must be the same for all domains with the same servers, for any order, case and
 * final dots of the DNS answer: so hosts are sorted, in lower case and without dots.
 * The key is bounded, so a hash of the whole set replaces the hosts that do not fit. */
#include "sched/site_key.h"

#include "base/memory.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct pattern {
    size_t provider; /* which name */
    bool is_suffix;  /* "*.x": the text is ".x" */
    struct text text;
};

struct site_keys {
    char *list; /* the texts point into it */
    size_t name_count, pattern_count;
    struct text *names;
    struct pattern *patterns;
};

static struct text
without_dot(struct text name)
{
    if (name.length > 0 && name.at[name.length - 1] == '.')
        name.length--;
    return name;
}

/* A suffix keeps its dot: "*.example.org" must not match badexample.org. A '*' in any
 * other place is refused, so no pattern matches all hosts. */
static bool
pattern_add(struct site_keys *p, struct text word)
{
    struct pattern pattern = {.provider = p->name_count - 1, .text = without_dot(word)};
    if (text_starts_nocase(word, TEXT("*."))) {
        pattern.is_suffix = true;
        pattern.text = text_after(pattern.text, 1);
    }
    bool is_name = pattern.text.length > 1 && text_find(pattern.text, '*') == TEXT_NONE;
    if (!is_name || p->pattern_count == SITE_KEYS_MAX)
        return false;
    p->patterns =
        memory_resize(p->patterns, (p->pattern_count + 1) * sizeof(*p->patterns));
    p->patterns[p->pattern_count++] = pattern;
    return true;
}

static bool
provider_add(struct site_keys *p, struct text word, struct buffer *errors)
{
    size_t equals = text_find(word, '=');
    struct text name = equals == TEXT_NONE ? TEXT("") : text_before(word, equals);
    struct text rest = equals == TEXT_NONE ? TEXT("") : text_after(word, equals + 1);
    struct text pattern;
    if (name.length == 0 || rest.length == 0)
        return buffer_add_error(errors, "providers", word,
                                "write NAME=PATTERN,PATTERN");
    p->names = memory_resize(p->names, (p->name_count + 1) * sizeof(*p->names));
    p->names[p->name_count++] = name;
    while (text_word(&rest, ",", &pattern)) {
        if (pattern_add(p, pattern))
            continue;
        if (errors)
            (void)!buffer_format(
                errors,
                "providers: '%.*s': not a pattern: write a host name, or "
                "\"*.\" and a suffix; at most %d\n",
                TEXT_ARGS(pattern), SITE_KEYS_MAX);
        return false;
    }
    return true;
}

struct site_keys *
site_keys_new(struct text list, struct buffer *errors)
{
    struct site_keys *p = memory_new(sizeof(*p));
    p->list = text_string(list);
    struct text rest = text_from(p->list), word;
    bool good = true;
    while (text_word(&rest, " \t\r\n", &word))
        good &= provider_add(p, word, errors);
    if (!good)
        site_keys_free(&p);
    return p;
}

void
site_keys_free(struct site_keys **providers)
{
    struct site_keys *p = *providers;
    *providers = NULL;
    if (!p)
        return;
    free(p->names);
    free(p->patterns);
    free(p->list);
    free(p);
}

static bool
pattern_matches(const struct pattern *p, struct text host)
{
    struct text name = without_dot(host);
    if (!p->is_suffix)
        return text_equal_nocase(name, p->text);
    return name.length > p->text.length &&
           text_equal_nocase(text_after(name, name.length - p->text.length), p->text);
}

static bool
is_host_of(const struct site_keys *p, size_t provider, struct text host)
{
    for (size_t i = 0; i < p->pattern_count; i++)
        if (p->patterns[i].provider == provider &&
            pattern_matches(&p->patterns[i], host))
            return true;
    return false;
}

/* The first provider that matches every host. One foreign host among them is another
 * organisation's server, to which the provider's limits do not apply. */
static bool
find_provider(const struct site_keys *p, const struct exchange_name *hosts,
              size_t count, struct text *name)
{
    for (size_t i = 0; p && i < p->name_count; i++) {
        size_t matching = 0;
        while (matching < count && is_host_of(p, i, hosts[matching].name))
            matching++;
        *name = p->names[i];
        if (matching == count)
            return true;
    }
    return false;
}

/* By preference, then by name: the order that the key has. */
static int
compare_hosts(const void *a, const void *b)
{
    const struct exchange_name *x = a, *y = b;
    if (x->preference != y->preference)
        return x->preference < y->preference ? -1 : 1;
    struct text a_name = without_dot(x->name), b_name = without_dot(y->name);
    size_t shorter = a_name.length < b_name.length ? a_name.length : b_name.length;
    int result = strncasecmp(a_name.at, b_name.at, shorter);
    if (result == 0)
        result = (a_name.length > shorter) - (b_name.length > shorter);
    return result;
}

/* A hash of the whole set: the part that is cut off must still tell sets apart. */
static uint64_t
set_hash(const struct exchange_name *hosts, size_t count)
{
    uint64_t hash = TEXT_HASH;
    for (size_t i = 0; i < count; i++) {
        char preference[16];
        snprintf(preference, sizeof(preference), " %u,", hosts[i].preference);
        hash = text_hash_nocase(hash, without_dot(hosts[i].name));
        hash = text_hash_nocase(hash, text_from(preference));
    }
    return hash;
}

static size_t
write_set(const struct exchange_name *hosts, size_t count, char out[SITE_KEY_KEY_MAX])
{
    enum { TAIL = 18 }; /* "~" and the hash */
    size_t at = (size_t)snprintf(out, SITE_KEY_KEY_MAX, "mx:");
    for (size_t i = 0; i < count; i++) {
        struct text name = without_dot(hosts[i].name);
        char number[12];
        int digits = snprintf(number, sizeof(number), "%u ", hosts[i].preference);
        if (at + 1 + (size_t)digits + name.length + TAIL >= SITE_KEY_KEY_MAX) {
            at += (size_t)snprintf(out + at, SITE_KEY_KEY_MAX - at, "~%016" PRIx64,
                                   set_hash(hosts, count));
            break;
        }
        at += (size_t)snprintf(out + at, SITE_KEY_KEY_MAX - at, "%s%s%.*s",
                               i > 0 ? "," : "", number, TEXT_ARGS(name));
    }
    text_lower(out, at);
    return at;
}

size_t
site_key_key(const struct site_keys *providers, struct exchange_name *hosts,
             size_t count, char out[SITE_KEY_KEY_MAX])
{
    struct text name;
    assert(count > 0);
    count = count < SITE_KEY_MAX ? count : SITE_KEY_MAX;
    if (find_provider(providers, hosts, count, &name))
        return (size_t)snprintf(out, SITE_KEY_KEY_MAX, "provider:%.*s",
                                name.length < 100 ? (int)name.length : 100, name.at);
    /* DNS answers come in random order; the set must have one name. */
    qsort(hosts, count, sizeof(*hosts), compare_hosts);
    return write_set(hosts, count, out);
}
