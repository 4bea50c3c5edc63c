/* Common parts of the tests of notifications: one that is composed from a real queue,
 * and its parts. */
#ifndef T_SUPPORT_DSN_KIT_H
#define T_SUPPORT_DSN_KIT_H

#include "queue/manager/dsn.h"
#include "base/event/event.h"
#include "t/support/queue_kit.h"

extern const struct dsn_settings dsn_kit_settings;
extern struct dsn *dsn_kit_under_way;
extern const struct text dsn_kit_mail;

/* The result: the envelope of the notification and all its bytes. */
struct told {
    enum dsn_result result;
    struct envelope *notice;
    char *bytes; /* "" when there is none */
    size_t length;
};

struct envelope *dsn_kit_accept(struct kit *k, const char *sender, struct text content);
void dsn_kit_fail(struct kit *k, struct envelope *e, unsigned index, bool expired);
struct dsn_settings dsn_kit_settings_in(const struct kit *k,
                                        const struct dsn_settings *with);
/* Reads the result, once it is committed. */
void dsn_kit_take(struct kit *k, struct told *t);
struct told dsn_kit_tell(struct kit *k, const struct envelope *e,
                         const struct dsn_settings *with);
void dsn_kit_forget(struct kit *k, struct told *t, struct envelope **e);
bool told_has(const struct told *t, const char *words);
void told_shows(const struct told *t, const char *words);
/* The value of a field in the header of the notification, unfolded. */
void told_field(const struct told *t, const char *name, char *out, size_t size);
void told_field_is(const struct told *t, const char *name, const char *want);
/* Part number which (from 0) of the multipart, without its line end. */
struct text told_part(const struct told *t, int which);
/* Lines of CRLF only, none longer than 998. */
bool told_is_mail(const struct told *t);

#endif
