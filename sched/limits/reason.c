/* Shared, compact outcomes. */
#include "sched/limits/reason.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Peers that vary each reply must not make every look-up long. */
enum { REASON_LOOK_MAX = 8 };

struct reason {
    struct reason *prev, *next;
    unsigned holders;
    enum verdict verdict;
    enum blame blame;
    int code;
    char enhanced[sizeof((struct outcome *)0)->enhanced];
    unsigned short text_length, remote_length;
    char bytes[]; /* text, then remote */
};

static bool
reason_is(const struct reason *r, const struct outcome *o)
{
    return r->verdict == o->verdict && r->blame == o->blame && r->code == o->code &&
           strcmp(r->enhanced, o->enhanced) == 0 &&
           text_equal(text_of(r->bytes, r->text_length), text_from(o->text)) &&
           text_equal(text_of(r->bytes + r->text_length, r->remote_length),
                      text_from(o->remote));
}

struct reason *
reason_open(struct reason **list, const struct outcome *outcome)
{
    int looked = 0;
    struct reason *r;
    DL_FOREACH (*list, r) {
        if (looked++ == REASON_LOOK_MAX)
            break;
        if (reason_is(r, outcome))
            return reason_share(r);
    }
    struct text text = text_from(outcome->text), remote = text_from(outcome->remote);
    r = memory_new(sizeof(*r) + text.length + remote.length);
    r->holders = 1;
    r->verdict = outcome->verdict;
    r->blame = outcome->blame;
    r->code = outcome->code;
    memcpy(r->enhanced, outcome->enhanced, sizeof(r->enhanced));
    r->text_length = (unsigned short)text.length;
    r->remote_length = (unsigned short)remote.length;
    memcpy(r->bytes, text.at, text.length);
    memcpy(r->bytes + text.length, remote.at, remote.length);
    DL_PREPEND(*list, r);
    return r;
}

struct reason *
reason_share(struct reason *reason)
{
    assert(reason->holders > 0);
    reason->holders++;
    return reason;
}

void
reason_close(struct reason **list, struct reason **reason)
{
    struct reason *r = *reason;
    *reason = NULL;
    if (!r)
        return;
    assert(r->holders > 0);
    if (--r->holders > 0)
        return;
    DL_DELETE(*list, r);
    free(r);
}

void
reason_read(const struct reason *reason, struct outcome *outcome)
{
    *outcome = (struct outcome){
        .verdict = reason->verdict, .blame = reason->blame, .code = reason->code};
    memcpy(outcome->enhanced, reason->enhanced, sizeof(outcome->enhanced));
    memcpy(outcome->text, reason->bytes, reason->text_length);
    memcpy(outcome->remote, reason->bytes + reason->text_length, reason->remote_length);
}

enum verdict
reason_verdict(const struct reason *reason)
{
    return reason->verdict;
}
