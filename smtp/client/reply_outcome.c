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

/* "550 5.1.1 words"; the words are cut to fit. */
static struct text
reply_outcome_say(const struct reply *reply, char out[OUTCOME_TEXT_MAX])
{
    struct text words = text_trim(text_before(reply_text(reply), OUTCOME_TEXT_MAX));
    snprintf(out, OUTCOME_TEXT_MAX, "%03d%s%s%s%.*s", reply->code,
             reply->enhanced[0] != '\0' ? " " : "", reply->enhanced,
             words.length > 0 ? " " : "", TEXT_ARGS(words));
    return text_from(out);
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
    char said[OUTCOME_TEXT_MAX];
    char enhanced[REPLY_ENHANCED_MAX] = "2.0.0";
    assert(reply->code / 100 != 3);
    enhanced[0] = (char)('0' + reply->code / 100);
    if (reply->enhanced[0] != '\0')
        text_copy(enhanced, sizeof(enhanced), text_from(reply->enhanced));
    if (verdict == VERDICT_DEFERRED)
        enhanced[0] = '4';
    struct text words = reply_outcome_say(reply, said);
    struct outcome o = outcome_make(verdict, blame, reply->code, enhanced, "%s", said);
    if (verdict != VERDICT_DELIVERED)
        outcome_say_reply(&o, peer->where, words, answered);
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
reply_outcome_waits(struct outcome o)
{
    o.verdict = VERDICT_DEFERRED;
    o.enhanced[0] = '4';
    return o;
}

struct outcome
reply_outcome_by_account(struct outcome o)
{
    enum refusal_class class = REFUSAL_OTHER;
    if (o.verdict == VERDICT_FAILED)
        class = refusal_classify(&o);
    if (class != REFUSAL_LOGIN && class != REFUSAL_SENDER && class != REFUSAL_QUOTA)
        return o;
    o.blame = class == REFUSAL_LOGIN ? BLAME_SITE : BLAME_MESSAGE;
    return reply_outcome_waits(o);
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
