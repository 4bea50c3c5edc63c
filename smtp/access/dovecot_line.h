/* Lines of Dovecot's protocol for clients of its authentication server, version 1: read from
 * the server, and values escaped for it. Pure.
 *
 * A line is a command and fields with TABs between them. */
#ifndef SMTP_ACCESS_DOVECOT_LINE_H
#define SMTP_ACCESS_DOVECOT_LINE_H

#include "base/buffer.h"
#include "smtp/sasl.h"

enum {
    DOVECOT_LINE_MAX = 8000 /* either way; Dovecot cuts off a client that sends more */
};

enum dovecot_verb {
    DOVECOT_OTHER,  /* to be ignored: SPID, CUID, COOKIE, and those of later versions */
    DOVECOT_BROKEN, /* a known command without its fields */
    DOVECOT_VERSION, /* number: the major version */
    DOVECOT_MECH,    /* data: its name */
    DOVECOT_DONE,
    DOVECOT_OK,       /* number, user */
    DOVECOT_CONTINUE, /* number; data: a challenge in Base64 */
    DOVECOT_FAIL      /* number; temporary */
};

struct dovecot_line {
    enum dovecot_verb verb;
    uint32_t number;
    struct text data; /* borrowed from the line */
    char user[SASL_NAME_MAX + 1];
    bool temporary;
};
/* line: without its end. An answer OK without a valid user= is BROKEN. */
void dovecot_line_read(struct text line, struct dovecot_line *out);

/* Adds "\tKEY=VALUE", so that no byte of value ends the field or the line. False: no
 * space. */
bool dovecot_line_add(struct buffer *line, const char *key, struct text value)
    __attribute__((warn_unused_result));

#endif
