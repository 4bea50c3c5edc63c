/* Decides level, names and fall-back of TLS for a host. */
#include "smtp/trust/security.h"

#include <assert.h>
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
    bool may = t->tls == TARGET_TLS_MAY && !question->needs_tls && !demanded;
    assert(!t->tls_implicit || t->tls >= TARGET_TLS_ENCRYPT);
    memset(out, 0, sizeof(*out));
    out->fallen_back = may && question->has_failed;
    out->level = out->fallen_back ? TARGET_TLS_NONE : t->tls;
    if (demanded)
        out->level = security_raise(t->tls, question->demand->proof);
    out->implicit = t->tls_implicit;
    out->may_fall_back = may && !out->fallen_back;
    if (out->level == TARGET_TLS_NONE)
        return;
    /* A name in the settings is never replaced by one from DNS. */
    bool by_mx = t->kind == TARGET_MX || t->look_up_mx;
    bool of_list = t->kind == TARGET_SMTP && t->more_count > 0; /* each has its own */
    out->host = by_mx || of_list ? bare(question->host) : text_from(t->host);
    security_add_name(out, out->host);
    if (t->kind == TARGET_SMTP && by_mx && !of_list)
        security_add_name(out, text_from(t->host));
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
        break;
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
                                       .dane_name_count = security->dane_name_count};
}

/* A server that expects TLS from the first byte sends no greeting: each side waits for
 * the other one to begin. */
const char *
security_other_scheme(const struct security *security, unsigned port,
                      enum activity_kind kind, int64_t waited_ms)
{
    if (!security->implicit && kind == ACTIVITY_GREETING &&
        (port == PORT_SMTPS || waited_ms >= SILENCE_MS))
        return "smtps";
    if (!security->implicit || kind != ACTIVITY_HANDSHAKE)
        return NULL;
    return port == PORT_SUBMISSION ? "submission" : port == PORT_SMTP ? "smtp" : NULL;
}
