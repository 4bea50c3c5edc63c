/* Asking base/dns/dns.h and waiting for the answer, for its tests. */
#include "t/support/dns_ask.h"

int64_t
ask_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now); /* which no test stops */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void
asked_answered(void *context, const struct dns_answer *answer)
{
    struct asked *a = context;
    a->answer = *answer;
    a->query = NULL;
    a->times++;
}

void
ask_start(struct dns *dns, dns_find *find, const char *name, struct asked *a)
{
    memset(a, 0, sizeof(*a));
    a->query = find(dns, name, asked_answered, a);
    if (a->times != 0)
        ok_named(false, "answered before the start returned");
}

void
ask_wait(struct loop *loop, const int *done, int wanted)
{
    int64_t end_ms = ask_clock_ms() + ASK_LIMIT_MS;
    while (*done < wanted && ask_clock_ms() < end_ms)
        loop_turn(loop, 100);
    if (*done < wanted)
        ok_named(false, "an answer came in time");
}

struct dns_answer
ask(struct loop *loop, struct dns *dns, dns_find *find, const char *name)
{
    struct asked a;
    ask_start(dns, find, name, &a);
    ask_wait(loop, &a.times, 1);
    return a.answer;
}

const char *
answer_text(const struct dns_answer *answer, dns_find *find)
{
    static const char *const status[] = {"", "no data", "no name", "try again"};
    static char out[DNS_MX_MAX * (DNS_NAME_MAX + 8)];
    size_t length = 0;
    if (answer->status != DNS_FOUND)
        return status[answer->status];
    out[0] = '\0';
    for (size_t i = 0; i < answer->count; i++) {
        char ip[NET_ADDRESS_TEXT_MAX];
        const char *comma = i > 0 ? ", " : "";
        if (find == dns_find_mx) {
            length += (size_t)sprintf(out + length, "%s%u %s", comma,
                                      answer->mx[i].preference, answer->mx[i].host);
        } else {
            net_address_ip(&answer->addresses[i], ip);
            length += (size_t)sprintf(out + length, "%s%s", comma, ip);
        }
    }
    return out;
}

bool
reason_fits(const struct dns_answer *answer)
{
    return (answer->reason[0] == '\0') == (answer->status == DNS_FOUND) &&
           (answer->count > 0) == (answer->status == DNS_FOUND) &&
           strlen(answer->reason) < sizeof(answer->reason) &&
           !text_has_control(text_from(answer->reason));
}
