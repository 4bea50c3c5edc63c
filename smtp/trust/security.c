/* Decides level, names and fall-back of TLS for a host. */
#include "smtp/trust/security.h"

#include "base/log/log.h"
#include "base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT_SMTP = 25, PORT_SMTPS = 465, PORT_SUBMISSION = 587, SILENCE_MS = 10000 };

/* An address without its brackets; a name without its last dot. */
static struct text
bare(const char *host)
{
    struct text t = text_from(host);
    if (t.length > 1 && t.at[0] == '[' && t.at[t.length - 1] == ']') {
        t = text_after(text_before(t, t.length - 1), 1);
        return text_starts_nocase(t, TEXT("IPv6:")) ? text_after(t, 5) : t;
    }
    if (t.length > 1 && t.at[t.length - 1] == '.')
        t.length--;
    return t;
}

static void
security_add_name(struct security *s, struct text name)
{
    assert(s->name_count < SECURITY_NAMES_MAX);
    s->names[s->name_count++] = name;
}

/* RFC 7672 §3.2.2: below a trust anchor the name of the records or the domain's own. */
static void
security_add_demand(struct security *s, const struct security_question *question)
{
    const struct security_demand *demand = question->demand;
    s->proof = demand->proof;
    if (demand->proof != SECURITY_PROOF_DANE)
        return;
    s->records = demand->records;
    s->record_count = demand->record_count;
    s->host = demand->base;
    s->dane_names[s->dane_name_count++] = demand->base;
    s->dane_names[s->dane_name_count++] = text_from(question->domain);
}

static enum target_tls
security_raise(enum target_tls level, enum security_proof proof)
{
    if (proof == SECURITY_PROOF_STS)
        return TARGET_TLS_VERIFY;
    return level < TARGET_TLS_ENCRYPT ? TARGET_TLS_ENCRYPT : level;
}

static bool
security_is_demanded(const struct security_question *question)
{
    return question->demand != NULL && question->target->kind == TARGET_MX &&
           question->target->tls != TARGET_TLS_NONE &&
           question->demand->proof != SECURITY_PROOF_NONE;
}

void
security_decide(const struct security_question *question, struct security *out)
{
    const struct target *t = question->target;
    /* Without TLS we could not log in. */
    bool demanded = security_is_demanded(question);
    bool required = t->asks == TARGET_REQUIRES_TLS;
    bool may =
        t->tls == TARGET_TLS_MAY && !question->needs_tls && !demanded && !required;
    assert(!t->tls_implicit || t->tls >= TARGET_TLS_ENCRYPT);
    memset(out, 0, sizeof(*out));
    out->fallen_back = may && question->has_failed;
    out->level = out->fallen_back ? TARGET_TLS_NONE : t->tls;
    if (demanded)
        out->level = security_raise(t->tls, question->demand->proof);
    else if (required)
        out->level = TARGET_TLS_VERIFY;
    out->is_required = required;
    out->implicit = t->tls_implicit;
    out->may_fall_back = may && !out->fallen_back;
    if (out->level == TARGET_TLS_NONE)
        return;
    /* A name in the settings is never replaced by one from DNS. */
    struct text own = t->kind == TARGET_SMTP ? target_host(t, question->place).host
                                             : text_from(t->host);
    bool by_mx = t->kind == TARGET_MX || t->look_up_mx;
    out->host = by_mx ? bare(question->host) : own;
    bool by_host = t->kind == TARGET_SMTP && by_mx; /* its MX records prove nothing */
    if (!required || !by_host)
        security_add_name(out, out->host);
    if (by_host)
        security_add_name(out, own);
    out->is_certain = demanded
                          ? question->demand->proof != SECURITY_PROOF_ENCRYPT
                          : t->kind != TARGET_MX && out->level == TARGET_TLS_VERIFY;
    (void)target_certificate(t, &out->own.certificate, &out->own.key);
    if (demanded)
        security_add_demand(out, question);
    if (question->demand != NULL && t->kind == TARGET_MX) {
        out->is_tested = question->demand->is_tested;
        out->is_foreign = question->demand->is_foreign;
    }
}

const char *
security_demander(const struct security *security)
{
    switch (security->proof) {
    case SECURITY_PROOF_NONE:
        return security->is_required ? "REQUIRETLS" : NULL;
    case SECURITY_PROOF_ENCRYPT:
    case SECURITY_PROOF_DANE:
        return "DANE";
    case SECURITY_PROOF_STS:
        return "MTA-STS";
    }
    return NULL;
}

struct tls_client_options
security_tls_options(const struct security *security)
{
    assert(security->level != TARGET_TLS_NONE && security->name_count > 0);
    return (struct tls_client_options){.level = security->level == TARGET_TLS_VERIFY
                                                    ? TLS_LEVEL_VERIFY
                                                    : TLS_LEVEL_NONE,
                                       .host = security->host,
                                       .names = security->names,
                                       .name_count = security->name_count,
                                       .dane = security->records,
                                       .dane_count = security->record_count,
                                       .dane_names = security->dane_names,
                                       .dane_name_count = security->dane_name_count,
                                       .own = security->own};
}

/* A server that expects TLS from the first byte sends no greeting: each side waits for
 * the other one to begin. Ports of four digits are what providers offer where the others
 * are blocked. */
const char *
security_other_scheme(const struct security *security, unsigned port,
                      enum activity_kind kind, int64_t waited_ms)
{
    if (!security->implicit && kind == ACTIVITY_GREETING &&
        (port == PORT_SMTPS || port == 2465 || waited_ms >= SILENCE_MS))
        return "smtps";
    if (!security->implicit || kind != ACTIVITY_HANDSHAKE)
        return NULL;
    return port == PORT_SUBMISSION || port == 2525 || port == 2587 ? "submission"
           : port == PORT_SMTP                                     ? "smtp"
                                                                   : NULL;
}

/* --- Trust anchors ---------------------------------------------------------------- */

static const char *const usual[] = {
    "/etc/ssl/certs/ca-certificates.crt", /* Debian, Alpine, Arch, Gentoo */
    "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, RHEL */
    "/etc/ssl/ca-bundle.pem",             /* SUSE */
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs", /* a directory of them */
};

static struct tls_client *
read_usual(struct tls *tls, char place[TRUST_ANCHORS_PLACE_MAX], char *error,
           size_t error_size)
{
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        struct tls_client *client = tls_client_new(tls, usual[i], error, error_size);
        if (client != NULL) {
            text_copy(place, TRUST_ANCHORS_PLACE_MAX, text_from(usual[i]));
            return client;
        }
    }
    return NULL;
}

static struct tls_client *
trust_anchors_read_place(struct tls *tls, const char *place, char *error,
                         size_t error_size)
{
    char why[TLS_ERROR_MAX] = "";
    struct tls_client *client = tls_client_new(tls, place, why, sizeof(why));
    if (client == NULL)
        snprintf(error, error_size, "tls_ca: %s", why);
    return client;
}

struct tls_client *
trust_anchors_read(struct text tls_ca, bool needed, char place[TRUST_ANCHORS_PLACE_MAX],
                   char *error, size_t error_size)
{
    struct tls *tls = tls_new(error, error_size);
    struct tls_client *client = NULL;
    if (tls == NULL)
        return NULL;
    place[0] = '\0';
    if (tls_ca.length >= TRUST_ANCHORS_PLACE_MAX) {
        snprintf(error, error_size, "tls_ca: the path is too long");
    } else if (tls_ca.length > 0) {
        text_copy(place, TRUST_ANCHORS_PLACE_MAX, tls_ca);
        client = trust_anchors_read_place(tls, place, error, error_size);
    } else {
        client = read_usual(tls, place, error, error_size);
        if (client == NULL && needed)
            snprintf(
                error, error_size,
                "tls_ca: unset, the system has no CA bundle (%s and others; Debian: "
                "apt-get install ca-certificates), and a route demands tls=verify",
                usual[0]);
        else if (client == NULL)
            /* Levels below verify encrypt without anchors. */
            client = tls_client_new(tls, NULL, error, error_size);
    }
    tls_free(&tls);
    return client;
}

void
trust_anchors_say(const char *place, struct log *log)
{
    if (place[0] != '\0')
        log_say(log, LOG_LEVEL_DEBUG, "main", NULL, "tls_ca: %s", place);
    else
        log_say(log, LOG_LEVEL_INFO, "main", NULL,
                "tls_ca is unset and the system has no CA bundle: certificates of next "
                "hops are not verified");
}

/* --- Hosts whose TLS failed ------------------------------------------------------- */

/* A ring: the oldest makes space. A hash of the address is enough, since all that depends
 * on it is a line in the log. */
bool
security_failures_add(struct security_failures *l, const struct net_address *address,
                      int64_t now_ms)
{
    char text[NET_ADDRESS_TEXT_MAX];
    net_address_format(address, text);
    uint64_t hash = text_hash_nocase(TEXT_HASH, text_from(text));
    for (size_t i = 0; i < SECURITY_FAILURES_MAX; i++) {
        if (l->list[i].address != hash || l->list[i].until_ms == 0)
            continue;
        if (now_ms < l->list[i].until_ms)
            return false;
        l->list[i].until_ms = 0;
    }
    l->list[l->next].address = hash;
    l->list[l->next].until_ms = now_ms + SECURITY_FAILURES_QUIET_MS;
    l->next = (l->next + 1) % SECURITY_FAILURES_MAX;
    return true;
}
