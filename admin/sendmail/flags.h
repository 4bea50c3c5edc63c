/* The flags of sendmail(1), as programs have given them for forty years. */
#ifndef ADMIN_SENDMAIL_FLAGS_H
#define ADMIN_SENDMAIL_FLAGS_H

#include "queue/envelope/envelope.h"

/* The requests of the flags. */
struct flags {
    char mode; /* m message, p list, s SMTP, i aliases, v verify, q retry all */
    bool from_header, ignore_dots, verbose;
    const char *sender, *full_name, *envelope_id;
    /* -qR, -qS, -qI: with mode q; else NULL */
    const char *queue_to, *queue_from, *queue_id;
    unsigned notify;
    enum envelope_return ret;
    char **recipients;
    int recipient_count;
};

/* Reads the arguments, without the program's name; glued and separate values, clusters,
 * "--". Flags end at the first recipient. Flags of sendmail(1) that Petrel does not
 * need have no effect; an unknown flag is reported and ignored, an unknown "--word" an
 * error. The strings are borrowed. Returns 0, or EX_USAGE when a line was written to
 * standard error. */
int flags_parse(struct flags *f, int count, char **arguments);

#endif
