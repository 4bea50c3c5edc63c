/* Proves which counter each event moves. */
#include "admin/metrics/metrics_counters.h"

#include "sched/limits/refusal.h"
#include "t/support/tap.h"

static struct metrics_counters m;

static void
count(struct event event)
{
    ok_named(metrics_events() & EVENT_BIT(event.kind), "the kind is read");
    metrics_count(&m, &event);
}

TEST(intake)
{
    struct event_client smtp = {.protocol = "ESMTPS"}, lmtp = {.protocol = "LMTP"};
    count((struct event){.kind = EVENT_ACCEPTED, .client = &smtp, .recipients = 3, .size = 100,
                         .text = TEXT("queued")});
    count((struct event){.kind = EVENT_ACCEPTED, .client = &lmtp, .recipients = 1, .size = -1});
    count((struct event){.kind = EVENT_ACCEPTED, .client = &smtp, .recipients = 1, .size = 5,
                         .text = TEXT("queued, fragment from a peer host")});
    count((struct event){.kind = EVENT_ACCEPTED});
    count((struct event){.kind = EVENT_SUBMITTED, .recipients = 2, .size = 7});
    count((struct event){.kind = EVENT_MADE, .reason = "notification", .recipients = 1});
    count((struct event){.kind = EVENT_MADE, .reason = "reassembled", .recipients = 4});
    is_number(m.messages[METRICS_SMTP], 2, "by SMTP");
    is_number(m.recipients[METRICS_SMTP], 3, "their recipients");
    is_number(m.bytes[METRICS_SMTP], 100, "their size");
    is_number(m.messages[METRICS_LMTP], 1, "by LMTP");
    is_number(m.bytes[METRICS_LMTP], 0, "no size is no size");
    is_number(m.messages[METRICS_PEER], 1, "of a peer");
    is_number(m.recipients[METRICS_SENDMAIL], 2, "by sendmail");
    is_number(m.messages[METRICS_NOTIFICATION], 1, "a notification");
    is_number(m.recipients[METRICS_REASSEMBLED], 4, "a reassembled message");
}

TEST(refusals)
{
    struct outcome temporary = {.code = 450}, permanent = {.code = 554}, strange = {.code = 0};
    count((struct event){.kind = EVENT_REFUSED, .outcome = &temporary, .reason = "rate"});
    count((struct event){.kind = EVENT_REFUSED, .outcome = &permanent, .reason = "relay",
                         .is_quiet = true});
    count((struct event){.kind = EVENT_REFUSED, .outcome = &permanent, .reason = "new word"});
    count((struct event){.kind = EVENT_REFUSED, .outcome = &permanent});
    count((struct event){.kind = EVENT_REFUSED, .outcome = &strange, .reason = "relay"});
    count((struct event){.kind = EVENT_REFUSED});
    uint64_t sum = 0;
    for (size_t i = 0; i < METRICS_REASONS; i++) {
        sum += m.refusals[0][i] + m.refusals[1][i];
        if (strcmp(metrics_reasons[i], "rate") == 0)
            is_number(m.refusals[0][i], 1, "4yz");
        if (strcmp(metrics_reasons[i], "relay") == 0)
            is_number(m.refusals[1][i], 1, "5yz, though it is not logged");
    }
    is_number(m.refusals[1][METRICS_REASONS - 1], 2, "a reason without a name is other");
    is_number(sum, 4, "no more");
    count((struct event){.kind = EVENT_DENIED});
    count((struct event){.kind = EVENT_LOCKED});
    ok(m.denied == 1 && m.locked == 1);
}

TEST(deliveries)
{
    struct outcome none = {.code = 0, .text = "no route to host"},
                   full = {.code = 452,
                           .text = "host mx.test[192.0.2.1] said: 452 4.2.2 mailbox full"};
    count((struct event){.kind = EVENT_DELIVERED, .program = "smtp",
                         .tls = TEXT("TLSv1.3/TLS_AES/verified"), .delay_ms = {5, 50, 500, 5000}});
    count((struct event){.kind = EVENT_DELIVERED, .program = "lmtp",
                         .tls = TEXT("TLSv1.2/X/unverified")});
    count((struct event){.kind = EVENT_DELIVERED, .program = "local"});
    count((struct event){.kind = EVENT_DELIVERED, .program = "defrag"});
    count((struct event){.kind = EVENT_DEFERRED, .program = "smtp", .outcome = &full});
    count((struct event){.kind = EVENT_BOUNCED, .program = "smtp", .outcome = &none});
    count((struct event){.kind = EVENT_EXPIRED, .outcome = &none});
    ok(m.deliveries[0][0] == 1 && m.deliveries[0][1] == 1 && m.deliveries[0][2] == 1 &&
       m.deliveries[0][3] == 1);
    ok(m.deliveries[1][0] == 1 && m.deliveries[2][0] == 1 && m.deliveries[3][3] == 1);
    ok(m.delivered[2][1] == 1 && m.delivered[1][0] == 1 && m.delivered[0][0] == 0);
    is_number(m.replies[REFUSAL_CLASSES], 2, "without a reply");
    is_number(m.replies[REFUSAL_FULL], 1, "a full mailbox");
    is_number(m.delays[0].counts[0], 4, "5 ms, and three of none");
    is_number(m.delays[1].counts[1], 1, "50 ms");
    is_number(m.delays[3].counts[3], 1, "5 s");
    ok(m.delays[3].sum == 5.0);
}

TEST(notifications)
{
    count((struct event){.kind = EVENT_NOTIFIED, .reason = "delay"});
    count((struct event){.kind = EVENT_NOTIFIED, .reason = "postmaster"});
    ok(m.notifications[1] == 1 && m.notifications[3] == 1 && m.notifications[0] == 0);
}

/* Each label value is there once. */
TEST(words)
{
    is_number(METRICS_CLASSES, REFUSAL_CLASSES + 1, "all classes of replies, and none");
    for (size_t i = 0; i < METRICS_CLASSES; i++)
        for (size_t k = 0; k < i; k++)
            ok(strcmp(metrics_class(i), metrics_class(k)) != 0);
    is_string(metrics_class(REFUSAL_OTHER), "other", "the class without a name");
    is_string(metrics_class(REFUSAL_CLASSES), "none", "no reply");
    is_string(metrics_reasons[METRICS_REASONS - 1], "other", "the last reason");
}
