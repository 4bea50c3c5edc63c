/* The part of a report that people read. */
#ifndef MIME_REPORT_TEXT_H
#define MIME_REPORT_TEXT_H

#include "mime/emitter.h"
#include "mime/report.h"

/* Told to somebody else than the sender of the original: to postmaster. */
bool report_is_double(const struct report *r);
bool report_has(const struct report *r, enum report_action action);
/* Without line end. */
const char *report_subject(const struct report *r);
/* The reply as the next hop gave it, "550 5.1.1 No such user"; empty when outcome holds
 * none: what we said about it ("host x said: ... (in reply to ...)") is taken off. */
struct text report_reply(const struct outcome *outcome);
/* Body of the first part, CRLF ended: the introduction, for each action a heading (if
 * anybody has it) and the words about those recipients, and the closing. */
void report_write_introduction(const struct report *r, struct emitter *e);
void report_write_heading(const struct report *r, enum report_action action,
                          struct emitter *e);
void report_write_words(const struct report *r,
                        const struct report_recipient *recipient, struct emitter *e);
void report_write_closing(const struct report *r, struct emitter *e);

#endif
