/* Asking base/dns/dns.h and waiting for the answer, for its tests. */
#ifndef T_SUPPORT_DNS_ASK_H
#define T_SUPPORT_DNS_ASK_H

#include "base/dns/dns.h"
#include "base/loop/loop.h"

#include "t/support/tap.h"

#include <time.h>

enum { ASK_LIMIT_MS = 60000 };

struct asked {
    struct dns_query *query;
    struct dns_answer answer;
    int times; /* answered */
};
typedef struct dns_query *dns_find(struct dns *, const char *, dns_answered *, void *);

int64_t ask_clock_ms(void);

void asked_answered(void *context, const struct dns_answer *answer);

void ask_start(struct dns *dns, dns_find *find, const char *name, struct asked *a);

void ask_wait(struct loop *loop, const int *done, int wanted);

struct dns_answer ask(struct loop *loop, struct dns *dns, dns_find *find, const char *name);

/* "10 a.test, 20 b.test" or "::1, 127.0.0.1" or the status. */
const char * answer_text(const struct dns_answer *answer, dns_find *find);

/* Why is there exactly when something is wrong, and fit to print. */
bool reason_fits(const struct dns_answer *answer);

#endif
