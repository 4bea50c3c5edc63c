/* One question a key, its answer judged by dkim_record_judge(). */
#include "smtp/trust/dkim_check.h"

#include "base/memory.h"
#include "mime/auth/dkim.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct key_question {
    struct dkim_check *check;
    struct dkim_key *key; /* NULL: free */
    struct dns_query *query;
    char name[2 * DKIM_NAME_MAX + 16];
};

struct dkim_check {
    struct loop *loop;
    struct log *log;
    struct dns *dns;
    struct key_question questions[DKIM_CHECKS_MAX];
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
                                                 ? DKIM_CHECK_GOOD_MS
                                                 : DKIM_CHECK_BAD_MS);
    q->key = NULL;
}

struct dkim_check *
dkim_check_new(struct loop *loop, struct log *log, struct dns *dns)
{
    struct dkim_check *c = memory_new(sizeof(*c));
    c->loop = loop;
    c->log = log;
    c->dns = dns;
    for (size_t i = 0; i < DKIM_CHECKS_MAX; i++)
        c->questions[i].check = c;
    return c;
}

/* NULL: it is being asked for, or all are in use. */
static struct key_question *
find_free_question(struct dkim_check *c, const struct dkim_key *key)
{
    struct key_question *found = NULL;
    for (size_t i = 0; i < DKIM_CHECKS_MAX; i++) {
        if (c->questions[i].key == key)
            return NULL;
        if (c->questions[i].key == NULL)
            found = &c->questions[i];
    }
    return found;
}

void
dkim_check_used(struct dkim_check *c, struct dkim_key *key)
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
dkim_check_stop(struct dkim_check *c)
{
    for (size_t i = 0; i < DKIM_CHECKS_MAX; i++) {
        if (c->questions[i].key != NULL)
            dns_cancel(&c->questions[i].query);
        c->questions[i].key = NULL;
    }
}

void
dkim_check_free(struct dkim_check **c)
{
    if (*c == NULL)
        return;
    dkim_check_stop(*c);
    free(*c);
    *c = NULL;
}
