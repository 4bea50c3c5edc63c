/* STARTTLS, mail without it, and its failures. */
#include "smtp/client/client_internal.h"
#include "sched/route/target.h"

#include <assert.h>
#include <stdio.h>

static void
end_insecure(struct client *c, const char *enhanced, const char *what, bool polite)
{
    const struct client_settings *s = &c->settings;
    char why[OUTCOME_TEXT_MAX], demand[64] = "";
    if (s->demander != NULL)
        snprintf(demand, sizeof(demand), "TLS is demanded by %s but ", s->demander);
    else if (s->tls >= TARGET_TLS_ENCRYPT)
        snprintf(demand, sizeof(demand), "TLS is demanded by the route (tls=%s) but ",
                 target_tls_word(s->tls));
    snprintf(why, sizeof(why), "%shost %s %s", demand, s->peer->where, what);
    struct outcome outcome = reply_outcome_insecure(s->peer, enhanced, why);
    if (s->demander != NULL)
        outcome.blame = BLAME_DEMAND;
    if (s->tls_implicit)
        client_wonder(c, &outcome);
    if (polite)
        client_end_politely(c, outcome);
    else
        client_end(c, outcome);
}

/* Called after the cleartext EHLO and again after the one under TLS. With tls=may a
 * host without STARTTLS gets mail in cleartext; stricter levels defer it. */
void
client_introduced(struct client *c)
{
    if (c->secured || c->settings.tls == TARGET_TLS_NONE)
        client_log_in(c);
    else if (c->extensions & EXTENSION_STARTTLS)
        c->next = STEP_STARTTLS;
    else if (c->settings.tls == TARGET_TLS_MAY)
        client_log_in(c);
    else
        end_insecure(c, "4.7.4", "does not offer STARTTLS", true);
}

void
client_ask_tls(struct client *c)
{
    client_command(c, "STARTTLS", TEXT(""));
    client_put(c, STEP_STARTTLS, 0);
    c->next = STEP_NONE;
}

/* After another 2yz it is open whether the host now reads TLS or commands. A host that
 * refuses STARTTLS gets mail in cleartext if the route permits it; if it
 * then demands TLS with 530, lacks_tls makes that a deferral. */
void
client_heard_tls(struct client *c, const struct awaited_reply *w,
                 const struct reply *reply)
{
    char what[REPLY_TEXT_MAX + 64];
    (void)w;
    if (reply->code == 220) {
        client_put(c, STEP_HANDSHAKE, 0);
        c->secure_due = true;
    } else if (reply->code / 100 == 2) {
        client_protocol_error(c, client_steps[STEP_STARTTLS].doing,
                              "only 220 means that TLS begins");
    } else if (c->settings.tls == TARGET_TLS_MAY) {
        c->lacks_tls = true;
        client_log_in(c);
    } else {
        struct text said = reply_text(reply);
        snprintf(what, sizeof(what), "refused STARTTLS: %d %s%s%.*s", reply->code,
                 reply->enhanced, reply->enhanced[0] ? " " : "", TEXT_ARGS(said));
        end_insecure(c, "4.7.4", what, true);
    }
}

void
client_injected(struct client *c, size_t count)
{
    char what[160];
    snprintf(what, sizeof(what),
             "sent %zu bytes in cleartext where TLS should begin, as an attacker on "
             "the path would",
             count);
    end_insecure(c, "4.7.5", what, false);
}

/* A host that closes between STARTTLS and its first reply under TLS has no usable TLS.
 * In TLS 1.3 our handshake ends before the host has checked it, so that its error comes
 * only in place of that reply. */
bool
client_is_securing(const struct client *c)
{
    enum step_name step = c->in_flight > 0 ? c->waiting[c->first].step : STEP_NONE;
    return !c->over && !c->greeted && !c->auth.begun &&
           (c->secured || step == STEP_HANDSHAKE || step == STEP_STARTTLS);
}

void
client_secured(struct client *c)
{
    assert(!c->over && !c->secured && !c->secure_due);
    assert(c->in_flight == 1 && c->waiting[c->first].step == STEP_HANDSHAKE);
    client_take(c);
    c->secured = true;
    /* RFC 3207 §4.2: an attacker on the path may have changed the first EHLO reply. */
    c->extensions = 0;
    c->size_max = 0;
    c->limits = (struct client_limits){0};
    c->auth.offered[0] = '\0';
    if (c->settings.tls_implicit)
        client_put(c, STEP_GREETING, 0);
    else
        c->next = c->settings.lmtp ? STEP_LHLO : STEP_EHLO;
}

void
client_insecure(struct client *c, const char *why)
{
    char what[OUTCOME_TEXT_MAX];
    struct text reason = text_from(why);
    if (c->over)
        return;
    /* The sentence around it names TLS already. */
    if (text_starts(reason, TEXT("TLS: ")))
        reason = text_after(reason, 5);
    assert(c->in_flight == 1 && c->waiting[c->first].step == STEP_HANDSHAKE);
    c->broken = true;
    snprintf(what, sizeof(what), "failed in the TLS handshake: %.*s",
             TEXT_ARGS(reason));
    end_insecure(c, "4.7.5", what, false);
}

bool
client_tls_failed(const struct client *c)
{
    return c->over && c->broken;
}
