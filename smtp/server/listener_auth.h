/* What the settings about AUTH and senders make of a listener's rules. */
#ifndef SMTP_SERVER_LISTENER_AUTH_H
#define SMTP_SERVER_LISTENER_AUTH_H

#include "base/crypto/digest.h"
#include "smtp/server/listener.h"

/* For users_new(): that of the spool, made at the first start. The salts of names that
 * do not exist must not change at a restart while those of users stay. Where the disk
 * refuses it is one for this run. */
void listener_auth_secret(struct loop *loop, struct disk *disk,
                          unsigned char secret[DIGEST_SIZE]);

/* Fills users, senders and the like in. False with one line per error. */
bool listener_auth_read(const struct listener_settings *settings,
                        const unsigned char secret[DIGEST_SIZE],
                        struct session_rules *rules, struct buffer *errors)
    __attribute__((warn_unused_result));

/* Clients that must log in must be able to. False with one line per error. */
bool listener_auth_fits(const struct session_rules *rules,
                        const struct endpoint *endpoints, size_t count,
                        struct buffer *errors) __attribute__((warn_unused_result));

/* One line for each thing that may be meant but is dangerous or of no use. */
void listener_auth_warn(struct log *log, const struct session_rules *rules,
                        const struct endpoint *endpoints, size_t count);

#endif
