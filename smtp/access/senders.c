/* Maps sender addresses to their users; checks the permitted sender domains. */
#include "smtp/access/senders.h"

#include "base/memory.h"
#include "mime/address.h"
#include "smtp/sasl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* "user NUL pattern", a pattern or a domain; patterns in lower case. */
struct entry {
    UT_hash_handle hh;
    size_t length;
    char key[];
};

enum { KEY_MAX = SASL_NAME_MAX + 1 + 2 * ADDRESS_MAX, NORMAL_MAX = 512 };

struct senders {
    bool logins; /* sender_login is set */
    struct entry *pairs, *owned, *domains;
};

struct key {
    char at[KEY_MAX];
    size_t length;
};

static bool
senders_has(struct entry *table, struct text key)
{
    struct entry *found;
    HASH_FIND(hh, table, key.at, key.length, found);
    return found != NULL;
}

static void
senders_add(struct entry **table, struct text key)
{
    if (senders_has(*table, key))
        return;
    struct entry *entry = memory_new(sizeof(*entry) + key.length);
    entry->length = key.length;
    memcpy(entry->key, key.at, key.length);
    HASH_ADD_KEYPTR(hh, *table, entry->key, entry->length, entry);
}

static void
free_table(struct entry **table)
{
    while (*table != NULL) {
        struct entry *entry = *table;
        HASH_DEL(*table, entry);
        free(entry);
    }
}

/* False: too long, which values within their limits never are. A NUL stands in no name
 * and in no pattern, so no two pairs have the same key. */
static bool
make_pair(struct key *key, struct text user, struct text pattern)
{
    key->length = user.length + 1 + pattern.length;
    if (key->length > sizeof(key->at))
        return false;
    memcpy(key->at, user.at, user.length);
    key->at[user.length] = '\0';
    memcpy(key->at + user.length + 1, pattern.at, pattern.length);
    return true;
}

/* Writes the pattern in the form of the keys. False: not a pattern. */
static bool
read_pattern(struct text word, struct buffer *normal)
{
    struct address address;
    buffer_clear(normal);
    bool good = false;
    if (text_equal(word, TEXT("*")))
        good = buffer_add(normal, word);
    else if (text_find(word, '@') != TEXT_NONE)
        good = address_parse(word, &address) && address_write(&address, normal);
    else if (address_is_domain(text_after(word, text_starts(word, TEXT(".")) ? 1 : 0)))
        good = buffer_add(normal, word);
    if (good)
        text_lower(normal->at, normal->length);
    return good;
}

/* NULL, or the error. `*` gives a user all addresses and takes none from others: it is
 * not owned. */
static const char *
add_pattern(struct senders *s, struct text user, struct text word)
{
    struct buffer normal;
    struct key key = {.length = 0};
    const char *why = NULL;
    buffer_init(&normal, NORMAL_MAX);
    if (!read_pattern(word, &normal))
        why = "not one of user@domain, domain, .domain (subdomains), *";
    else if (HASH_COUNT(s->pairs) == SENDERS_MAX)
        why = "too many addresses";
    else if (!make_pair(&key, user, buffer_text(&normal)))
        why = "is too long";
    if (why == NULL) {
        senders_add(&s->pairs, text_of(key.at, key.length));
        if (!text_equal(word, TEXT("*")))
            senders_add(&s->owned, buffer_text(&normal));
    }
    buffer_free(&normal);
    return why;
}

/* A user without addresses could silently use none. */
static void
senders_read_line(struct senders *s, struct text line, struct buffer *errors)
{
    static const char separators[] = ", \t";
    struct text user, word, rest = line;
    unsigned count = 0;
    if (!text_word(&rest, separators, &user))
        return;
    if (!sasl_is_name(user)) {
        buffer_add_error(errors, "sender_login", user, "not a valid user name");
        return;
    }
    for (; text_word(&rest, separators, &word); count++) {
        const char *why = add_pattern(s, user, word);
        if (why != NULL)
            buffer_add_error(errors, "sender_login", word, why);
    }
    if (count == 0)
        buffer_add_error(errors, "sender_login", user,
                         "no addresses follow; lines are `user address...`");
}

static void
read_domains(struct senders *s, struct text domains, struct buffer *errors)
{
    struct text word;
    struct buffer normal;
    buffer_init(&normal, NORMAL_MAX);
    while (text_word(&domains, ", \t\r\n", &word)) {
        if (text_equal(word, TEXT("*")) || text_find(word, '@') != TEXT_NONE ||
            !read_pattern(word, &normal))
            buffer_add_error(errors, "sender_domains", word,
                             "neither a domain nor .domain (subdomains)");
        else if (HASH_COUNT(s->domains) == SENDERS_DOMAINS_MAX)
            buffer_add_error(errors, "sender_domains", word, "too many domains");
        else
            senders_add(&s->domains, buffer_text(&normal));
    }
    buffer_free(&normal);
}

struct senders *
senders_new(struct text login, struct text domains, struct buffer *errors)
{
    struct senders *s = memory_new(sizeof(*s));
    size_t before = errors->length;
    struct text line;
    while (text_cut(&login, '\n', &line)) {
        line = text_trim(line);
        if (line.length == 0 || line.at[0] == '#')
            continue;
        s->logins = true;
        senders_read_line(s, line, errors);
    }
    read_domains(s, domains, errors);
    if (errors->length > before)
        senders_free(&s);
    return s;
}

void
senders_free(struct senders **senders)
{
    struct senders *s = *senders;
    *senders = NULL;
    if (s == NULL)
        return;
    free_table(&s->pairs);
    free_table(&s->owned);
    free_table(&s->domains);
    free(s);
}

/* The state of the check of one sender. */
struct question {
    const struct senders *senders;
    struct text user; /* at == NULL: no login */
    bool allowed, owned;
};

static void
senders_look(struct question *q, struct text pattern)
{
    struct key key;
    q->owned = q->owned || senders_has(q->senders->owned, pattern);
    if (q->user.at != NULL && make_pair(&key, q->user, pattern))
        q->allowed =
            q->allowed || senders_has(q->senders->pairs, text_of(key.at, key.length));
}

/* Goes to the next parent of a domain: ".example.org", ".org". False at the end. */
static bool
next_parent(struct text *domain)
{
    size_t dot = text_find(text_after(*domain, 1), '.');
    if (domain->length == 0 || dot == TEXT_NONE)
        return false;
    *domain = text_after(*domain, dot + 1);
    return true;
}

static bool
is_listed(const struct senders *s, struct text domain)
{
    bool listed = senders_has(s->domains, domain);
    while (!listed && next_parent(&domain))
        listed = senders_has(s->domains, domain);
    return listed;
}

static bool
senders_refuse(struct outcome *refusal, int code, const char *text)
{
    *refusal = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, code, "5.7.1", "%s", text);
    return false;
}

/* An address belongs to a user if any line names it, its domain or a parent. Without a
 * login such an address is refused, and all others pass: sender_login protects names,
 * it does not close the host. */
static bool
permit_login(struct question *q, struct text sender, struct text domain, bool trusted,
             struct outcome *refusal)
{
    senders_look(q, sender);
    senders_look(q, domain);
    while (next_parent(&domain))
        senders_look(q, domain);
    if (q->user.at == NULL)
        return trusted || !q->owned ||
               senders_refuse(refusal, 553,
                              "sender address belongs to a user: log in first");
    senders_look(q, TEXT("*"));
    return q->allowed ||
           senders_refuse(refusal, 553, "sender address not owned by user");
}

/* The null sender belongs to nobody: bounces must always be possible. Case does not
 * count, or a forger would change it. */
bool
senders_permit(const struct senders *s, const char *user, bool trusted,
               struct text sender, struct outcome *refusal)
{
    char folded[NORMAL_MAX];
    struct question q = {.senders = s,
                         .user = user ? text_from(user) : text_of(NULL, 0)};
    if (sender.length == 0)
        return true;
    bool whole = text_copy(folded, sizeof(folded), sender);
    assert(whole);
    text_lower(folded, sender.length);
    sender = text_of(folded, sender.length);
    struct text domain = text_after(sender, text_find_last(sender, '@') + 1);
    if (s->logins && !permit_login(&q, sender, domain, trusted, refusal))
        return false;
    return s->domains == NULL || (user == NULL && !trusted) || is_listed(s, domain) ||
           senders_refuse(refusal, 550, "sender domain not allowed here");
}
