/* SPF (RFC 7208): evaluates the record of a domain for an address that sends for it.
 * Pure: the caller looks names up.
 *
 * Evaluation begins anew with every answer: a look-up that has no answer yet ends it with
 * SPF_ASKS, and the caller evaluates again when it has one. So nothing is kept in
 * between, and the limits of look-ups bound how often that is. `ptr` never matches
 * (§5.5: not to be used), and %{p} is "unknown". */
#ifndef MIME_AUTH_SPF_H
#define MIME_AUTH_SPF_H

#include "base/net_address.h"

enum {
    SPF_LOOK_UPS_MAX = 10, /* terms that ask (§4.6.4); more: SPF_PERMERROR */
    SPF_VOIDS_MAX = 2,     /* look-ups without data; likewise */
    SPF_EXCHANGERS_MAX = 10,
    SPF_NAME_MAX = 256, /* with its NUL */
    SPF_WHY_MAX = 480
};

enum spf_result {
    SPF_NONE, /* no record */
    SPF_NEUTRAL,
    SPF_PASS,
    SPF_FAIL,
    SPF_SOFTFAIL,
    SPF_TEMPERROR,
    SPF_PERMERROR,
    SPF_ASKS /* an answer is missing: evaluate again */
};

enum spf_type { SPF_TEXTS, SPF_ADDRESSES, SPF_EXCHANGERS };
enum spf_found {
    SPF_RECORDS,
    SPF_VOID,   /* no such name, or no such record */
    SPF_UNKNOWN /* the name servers do not say */
};
struct spf_answer {
    enum spf_found found;
    size_t count;
    const struct text *texts;            /* strings of a record joined */
    const struct net_address *addresses; /* of both families */
    const struct text *hosts;            /* of MX records */
};
/* NULL: not known yet. The data it points to live until spf_check() returns. */
typedef const struct spf_answer *spf_look_up(void *context, enum spf_type type,
                                             const char *name);

struct spf_query {
    struct net_address client;
    struct text helo;
    struct text local, domain; /* of MAIL FROM; local may be empty: postmaster */
    /* No mechanism but include matches, so that all of the record is evaluated: with
     * all the look-ups that any other sender costs a receiver. */
    bool is_survey;
    spf_look_up *look_up;
    void *context;
};

struct spf_report {
    enum spf_result result;
    unsigned look_ups, voids; /* until the result was clear */
    bool passes_all;          /* +all has been met */
    bool uses_ptr;
    char why[SPF_WHY_MAX]; /* of an error: a sentence, which may have any octets */
};

/* Also fills report, if not NULL. */
enum spf_result spf_check(const struct spf_query *query, struct spf_report *report);

/* Whether a TXT record is one of SPF (§4.5). */
bool spf_is_record(struct text text);
/* Calls each with the terms of a record, in order, that are mechanisms or modifiers of
 * that name ("include", "redirect"), and the text after its colon or equals sign. */
typedef void spf_term_met(void *context, struct text value);
void spf_each(struct text record, const char *name, spf_term_met *each, void *context);

/* "pass". */
const char *spf_word(enum spf_result result);

#endif
