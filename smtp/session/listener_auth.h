/* Makes the rules of a listener from the settings of AUTH and senders. */
#ifndef SMTP_SESSION_LISTENER_AUTH_H
#define SMTP_SESSION_LISTENER_AUTH_H

#include "base/crypto/digest.h"
#include "smtp/session/listener.h"

/* The secret for users_read(), read from the spool; created there at the first start. It
 * is kept, because the salts of unknown names must not change at a restart: those of
 * users do not. After a disk error the secret is valid for this process only. */
void listener_auth_secret(struct loop *loop, struct disk *disk,
                          unsigned char secret[DIGEST_SIZE]);

/* Sets users, senders and the like in rules. False with one line per error. */
bool listener_auth_read(const struct listener_settings *settings,
                        const unsigned char secret[DIGEST_SIZE],
                        struct session_rules *rules, struct buffer *errors)
    __attribute__((warn_unused_result));

/* AUTH is offered at each address that requires it. False with one line per error. */
bool listener_auth_fits(const struct session_rules *rules,
                        const struct endpoint *endpoints, size_t count,
                        struct buffer *errors) __attribute__((warn_unused_result));

/* Logs one warning for each setting that is valid but dangerous or without effect. */
void listener_auth_warn(struct log *log, const struct session_rules *rules,
                        const struct endpoint *endpoints, size_t count);

#endif
