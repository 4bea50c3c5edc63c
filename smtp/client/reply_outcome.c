/* Turns replies and failures of the next hop into outcomes. */
#include "smtp/client/reply_outcome.h"

#include "sched/limits/refusal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static struct outcome
with_remote(struct outcome outcome, const struct reply_outcome_peer *peer)
{
    text_copy(outcome.remote, sizeof(outcome.remote), text_from(peer->remote));
    return outcome;
}

/* head, the reply and tail; the reply is cut so that the tail is always there. */
static void
write_text(struct outcome *o, const struct reply *reply, const char *head,
           const char *tail)
{
    char code[] = {(char)('0' + reply->code / 100), (char)('0' + reply->code / 10 % 10),
                   (char)('0' + reply->code % 10), ' ', '\0'};
    size_t fixed = strlen(head) + sizeof(code) + strlen(reply->enhanced) + strlen(tail);
    size_t space = fixed < sizeof(o->text) - 1 ? sizeof(o->text) - 1 - fixed : 0;
    struct text said = text_trim(text_before(reply_text(reply), space));
    bool enhanced = reply->enhanced[0] != '\0';
    code[3] = enhanced || said.length > 0 ? ' ' : '\0';
    struct text parts[] = {text_from(head),
                           text_from(code),
                           text_from(reply->enhanced),
                           text_from(enhanced && said.length > 0 ? " " : ""),
                           said,
                           text_from(tail)};
    size_t length = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        text_copy(o->text + length, sizeof(o->text) - length, parts[i]);
        length += strlen(o->text + length);
    }
}

/* 4yz replies that mean "slow down": they are about the site, not about this mail. */
static bool
is_about_site(const struct reply *reply)
{
    return reply->code == 421 || (reply->code >= 450 && reply->code <= 452 &&
                                  strncmp(reply->enhanced, "4.7.", 4) == 0);
}

/* The class of the enhanced code follows the verdict: a 5yz that only defers must not
 * look like a failure in logs and reports. A reply without a code gets that of its
 * class. */
static struct outcome
reply_outcome_judge(const struct reply_outcome_peer *peer, const struct reply *reply,
                    enum verdict verdict, enum blame blame, const char *answered)
{
    char head[OUTCOME_REMOTE_MAX + 16], tail[96];
    char enhanced[REPLY_ENHANCED_MAX] = "2.0.0";
    assert(reply->code / 100 != 3);
    enhanced[0] = (char)('0' + reply->code / 100);
    if (reply->enhanced[0] != '\0')
        text_copy(enhanced, sizeof(enhanced), text_from(reply->enhanced));
    if (verdict == VERDICT_DEFERRED)
        enhanced[0] = '4';
    struct outcome o = outcome_make(verdict, blame, reply->code, enhanced, "%s", "");
    if (verdict == VERDICT_DELIVERED) {
        write_text(&o, reply, "", "");
        return with_remote(o, peer);
    }
    snprintf(head, sizeof(head), "host %s said: ", peer->where);
    snprintf(tail, sizeof(tail), " (%s)", answered);
    write_text(&o, reply, head, tail);
    return with_remote(o, peer);
}

struct outcome
reply_outcome_reply(const struct reply_outcome_peer *peer, const struct reply *reply,
                    const char *answered)
{
    switch (reply->code / 100) {
    case 2:
        return reply_outcome_judge(peer, reply, VERDICT_DELIVERED, BLAME_NONE,
                                   answered);
    case 4:
        return reply_outcome_judge(peer, reply, VERDICT_DEFERRED,
                                   is_about_site(reply) ? BLAME_SITE : BLAME_MESSAGE,
                                   answered);
    default:
        assert(reply->code / 100 == 5);
        return reply_outcome_judge(peer, reply, VERDICT_FAILED, BLAME_MESSAGE,
                                   answered);
    }
}

struct outcome
reply_outcome_rcpt(const struct reply_outcome_peer *peer, const struct reply *reply,
                   const char *answered)
{
    if (reply->code == 552)
        return reply_outcome_judge(peer, reply, VERDICT_DEFERRED, BLAME_MESSAGE,
                                   answered);
    return reply_outcome_reply(peer, reply, answered);
}

struct outcome
reply_outcome_handshake(const struct reply_outcome_peer *peer,
                        const struct reply *reply, const char *answered)
{
    return reply_outcome_judge(peer, reply, VERDICT_DEFERRED, BLAME_SITE, answered);
}

struct outcome
reply_outcome_by_account(struct outcome o)
{
    enum refusal_class class = REFUSAL_OTHER;
    if (o.verdict == VERDICT_FAILED)
        class = refusal_classify(o.text);
    if (class != REFUSAL_LOGIN && class != REFUSAL_SENDER && class != REFUSAL_QUOTA)
        return o;
    o.verdict = VERDICT_DEFERRED;
    o.blame = class == REFUSAL_LOGIN ? BLAME_SITE : BLAME_MESSAGE;
    o.enhanced[0] = '4';
    return o;
}

struct outcome
reply_outcome_lost(const struct reply_outcome_peer *peer, const char *doing)
{
    return with_remote(outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.2",
                                    "lost connection with %s while %s", peer->where,
                                    doing),
                       peer);
}

struct outcome
reply_outcome_timed_out(const struct reply_outcome_peer *peer, const char *doing)
{
    return with_remote(outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.2",
                                    "conversation with %s timed out while %s",
                                    peer->where, doing),
                       peer);
}

struct outcome
reply_outcome_protocol(const struct reply_outcome_peer *peer, const char *doing,
                       const char *what)
{
    return with_remote(outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.5.0",
                                    "protocol error from %s while %s: %s", peer->where,
                                    doing, what),
                       peer);
}

struct outcome
reply_outcome_insecure(const struct reply_outcome_peer *peer, const char *enhanced,
                       const char *why)
{
    return with_remote(
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, enhanced, "%s", why), peer);
}

struct outcome
reply_outcome_unfit(const struct reply_outcome_peer *peer, const char *enhanced,
                    const char *why)
{
    return with_remote(
        outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 0, enhanced, "%s", why), peer);
}
