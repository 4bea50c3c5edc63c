/* The table `copy_to`: addresses that get a copy of mail. Pure.
 *
 * Entries "[WHOSE] ADDRESS", one a line or with commas between; # begins a comment line.
 * WHOSE: sender:PATTERN, recipient:PATTERN or * (all mail, also without it). PATTERN:
 * user@domain, domain, .domain (its sub-domains). Every entry that matches counts, and each
 * address once. */
#ifndef SCHED_ROUTE_COPIES_H
#define SCHED_ROUTE_COPIES_H

#include "base/buffer.h"

enum {
    COPIES_ROWS_MAX = 10000,
    COPIES_ADDRESSES_MAX = 16 /* a bit of struct copies_match each */
};

struct copies;

/* NULL with one line per error ("copy_to: 'ENTRY': ..."), unless errors is NULL. Without an
 * entry it is empty. */
struct copies *copies_new(struct text table, struct buffer *errors);
void copies_free(struct copies **copies);
bool copies_are_empty(const struct copies *copies);

/* The message, of which sender and recipients are named one by one, in normal form.
 * Zeroed before. */
struct copies_match {
    unsigned wanted; /* by addresses */
    unsigned given;  /* these are recipients */
    bool others;     /* there are recipients that are not such an address */
};
void copies_add_sender(const struct copies *copies, struct copies_match *match,
                       struct text address);
void copies_add_recipient(const struct copies *copies, struct copies_match *match,
                          struct text address);
/* The addresses that get a copy, in the order of the table; from 0 on, *at counts. False:
 * there is none left. Mail to such addresses alone is a copy itself, and has none. */
bool copies_next(const struct copies *copies, const struct copies_match *match,
                 unsigned *at, struct text *address);
/* The addresses of the table. False: there are no more than that. */
bool copies_address(const struct copies *copies, unsigned index, struct text *address);

#endif
