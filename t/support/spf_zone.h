/* A zone of text lines for mime/auth/spf.h: "NAME TYPE VALUE" each, TYPE one of TXT, A, AAAA,
 * MX (value: the host), CNAME, and DEAD for a name whose servers do not answer for the
 * types that no other line has. Names and TXT values may have \xx for octets. */
#ifndef T_SUPPORT_SPF_ZONE_H
#define T_SUPPORT_SPF_ZONE_H

#include "base/arena.h"
#include "mime/auth/spf.h"

enum { SPF_ZONE_LINES = 4000, SPF_ZONE_ANSWER = 64 };

struct spf_zone_line {
    struct text name, rest;
};
struct spf_zone {
    struct spf_zone_line lines[SPF_ZONE_LINES];
    size_t count;
    struct arena arena;
    unsigned asked; /* look-ups of names that were not known before */
    bool is_slow;   /* the first question for a name has no answer yet */
    char seen[200][SPF_NAME_MAX + 16];
    size_t seen_count;
};

void spf_zone_init(struct spf_zone *zone);
void spf_zone_add(struct spf_zone *zone, struct text line);
/* In the arena of the zone. */
struct text spf_zone_unescape(struct spf_zone *zone, struct text t);
void spf_zone_free(struct spf_zone *zone);
/* A spf_look_up(). context: the zone. */
const struct spf_answer *spf_zone_look_up(void *context, enum spf_type type,
                                          const char *name);

#endif
