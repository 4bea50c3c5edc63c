/* The table `rewrite`: new forms for the addresses of submitted mail as it leaves. Pure.
 *
 * Entries "PATTERN REPLACEMENT", one a line or with commas between; # begins a comment
 * line; the first pattern that matches counts. PATTERN: user@domain, domain, .domain
 * (its sub-domains), *, local. REPLACEMENT: user@domain; @domain (keeps the local part);
 * = (keeps the address).
 *
 * `local` matches an address that means nothing elsewhere: without a domain, with a
 * domain of one label, localhost.localdomain, in .local, .localdomain, .lan, .internal
 * or .home.arpa, and at our own hostname, unless it is one of local_domains. */
#ifndef SCHED_ROUTE_REWRITES_H
#define SCHED_ROUTE_REWRITES_H

#include "base/buffer.h"

enum { REWRITES_MAX = 10000, REWRITES_ADDRESS_MAX = 512 };

struct rewrites;

struct rewrites_settings {
    struct text table;
    const char *hostname;
    struct text local_domains; /* as set; empty: unset */
};

/* NULL with one line per error ("rewrite: 'ENTRY': ..."). */
struct rewrites *rewrites_new(const struct rewrites_settings *settings,
                              struct buffer *errors);
void rewrites_free(struct rewrites **rewrites);
/* True: there is no entry. rewrites may be NULL. */
bool rewrites_are_empty(const struct rewrites *rewrites);

struct rewrites_answer {
    bool by_local; /* the pattern that matched is `local` */
    bool local;    /* the address means nothing elsewhere, whichever pattern matched */
    char address[REWRITES_ADDRESS_MAX]; /* the new one; "": it stays */
};
/* address: in normal form, or a local part alone. */
void rewrites_find(const struct rewrites *rewrites, struct text address,
                   struct rewrites_answer *answer);

/* Calls each with the domains of the new addresses. */
void rewrites_each_domain(const struct rewrites *rewrites,
                          void (*each)(void *context, struct text domain),
                          void *context);

/* Entries that can never match, for a warning. */
typedef void rewrites_hidden(void *context, const char *pattern, const char *by);
void rewrites_each_hidden(const struct rewrites *rewrites, rewrites_hidden *each,
                          void *context);

#endif
