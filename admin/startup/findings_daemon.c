/* Collects the facts about the process, its certificates and its fragments. */
#include "admin/startup/findings_daemon.h"

static bool
findings_daemon_grows(struct findings_growth *growth, uint64_t count, int64_t now_ms)
{
    if (count > growth->count)
        growth->until_ms = now_ms + FINDINGS_RECENT_MS;
    growth->count = count;
    return now_ms < growth->until_ms;
}

static void
findings_daemon_see_certificates(struct findings_daemon *d,
                                 const struct tls_server *tls,
                                 struct finding_facts *facts)
{
    struct tls_certificate one;
    for (size_t i = 0; tls != NULL && tls_server_certificate(tls, i, &one); i++)
        if (facts->certificate == NULL || one.until_ms < d->certificate.until_ms) {
            d->certificate = one;
            facts->certificate = d->certificate.name;
            facts->certificate_ms = one.until_ms - loop_now_ms(d->loop);
        }
}

static void
findings_daemon_see_loop(const struct findings_daemon *d, struct finding_facts *facts)
{
    const struct loop_pace *pace = loop_pace(d->loop);
    int64_t now_ms = loop_monotonic_ms(d->loop);
    if (pace->slow_us > 0 && now_ms - pace->slow_ms < FINDINGS_RECENT_MS) {
        facts->slow_us = pace->slow_us;
        facts->slow_part = pace->slow_part;
    }
    if (pace->jump_by_ms != 0 && now_ms - pace->jump_ms < FINDINGS_JUMP_MS)
        facts->jump_ms = pace->jump_by_ms;
}

void
findings_daemon_collect(struct findings_daemon *d, const struct tls_server *tls,
                        const struct manager_fragments *fragments,
                        struct finding_facts *facts)
{
    int64_t now_ms = loop_monotonic_ms(d->loop);
    uint64_t lost = log_counts(d->log)->lost;
    facts->log_lost = findings_daemon_grows(&d->lost, lost, now_ms) ? lost : 0;
    facts->namesake =
        findings_daemon_grows(&d->namesakes, fragments->namesakes, now_ms);
    facts->fragments = fragments->messages;
    if (fragments->oldest_ms > 0)
        facts->fragments_ms = loop_now_ms(d->loop) - fragments->oldest_ms;
    findings_daemon_see_certificates(d, tls, facts);
    findings_daemon_see_loop(d, facts);
}
