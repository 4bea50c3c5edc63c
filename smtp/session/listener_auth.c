/* Reads users and sender rules for a listener; warns of unwise settings. */
#include "smtp/session/listener_auth.h"

#include "base/log/log.h"
#include "base/loop/loop.h"
#include "smtp/access/users.h"

#include <stdlib.h>
#include <string.h>

static const char secret_path[] = "lock/decoys", secret_draft[] = "lock/decoys.new";

static bool
read_secret(struct disk *disk, unsigned char secret[DIGEST_SIZE])
{
    char bytes[DIGEST_SIZE + 1]; /* one byte more detects a longer file */
    int file = disk_open_file(disk, secret_path, false);
    if (file < 0)
        return false;
    bool whole = disk_read(disk, file, 0, bytes, sizeof(bytes)) == DIGEST_SIZE;
    disk_close_file(disk, file);
    if (whole)
        memcpy(secret, bytes, DIGEST_SIZE);
    return whole;
}

/* A synced draft that is renamed: a crash leaves no part of a secret. After an
 * error the secret is valid for this process only. */
static void
write_secret(struct disk *disk, const unsigned char secret[DIGEST_SIZE])
{
    disk_unlink(disk, secret_draft);
    int file = disk_create(disk, secret_draft, 0600);
    if (file < 0)
        return;
    /* Listening begins as root, but files in the spool belong to its user. */
    struct disk_info top;
    if (disk_inspect(disk, ".", &top) == 0 && top.owner != 0)
        (void)!disk_give(disk, secret_draft, top.owner, (unsigned)-1);
    int result = disk_write(disk, file, text_of(secret, DIGEST_SIZE));
    if (result == 0)
        result = disk_sync(disk, file);
    disk_close_file(disk, file);
    if (result == 0)
        (void)disk_rename(disk, secret_draft, secret_path);
}

void
listener_auth_secret(struct loop *loop, struct disk *disk,
                     unsigned char secret[DIGEST_SIZE])
{
    if (read_secret(disk, secret))
        return;
    for (size_t i = 0; i < DIGEST_SIZE; i += sizeof(uint64_t)) {
        uint64_t random = loop_random(loop);
        memcpy(secret + i, &random, sizeof(random));
    }
    write_secret(disk, secret);
}

static bool
listener_auth_complain(struct buffer *errors, const char *what)
{
    /* Beyond the limit of the buffer, enough errors are reported. */
    (void)!buffer_format(errors, "%s\n", what);
    return false;
}

static bool
read_clear_text(struct text word, bool *clear, struct buffer *errors)
{
    word = text_trim(word);
    *clear = text_equal(word, TEXT("loopback"));
    return *clear || word.length == 0 || text_equal(word, TEXT("no")) ||
           listener_auth_complain(errors, "auth_cleartext: say no or loopback");
}

bool
listener_auth_read(const struct listener_settings *settings,
                   const unsigned char secret[DIGEST_SIZE], struct session_rules *rules,
                   struct buffer *errors)
{
    char *path = text_string(text_trim(settings->auth_users));
    bool set = path[0] != '\0';
    if (set)
        rules->accounts = users_read(path, secret, errors);
    free(path);
    rules->server.users = rules->accounts;
    rules->senders =
        senders_new(settings->sender_login, settings->sender_domains, errors);
    if (settings->sender_login.length > 0 || settings->sender_domains.length > 0)
        rules->server.senders = rules->senders;
    rules->tls_session_limit = (size_t)settings->server_tls_session_limit;
    bool good =
        read_clear_text(settings->auth_cleartext, &rules->auth_cleartext, errors);
    return good && rules->senders != NULL && (!set || rules->accounts != NULL);
}

/* A client may use AUTH at this address. */
static bool
can_log_in(const struct session_rules *rules, const struct endpoint *e)
{
    bool clear = e->address.family == NET_UNIX || e->legacy || rules->auth_cleartext;
    return clear || (rules->tls != NULL && (e->tls || !e->no_starttls));
}

/* By default AUTH is offered where it is possible: that is no promise. */
static bool
wants_auth(const struct endpoint *e)
{
    return e->auth == ENDPOINT_AUTH_OFFERED || e->auth == ENDPOINT_AUTH_REQUIRED;
}

/* At an address that requires AUTH where no client can log in, all mail would be
 * refused. A reload without a usable certificate therefore keeps the old settings. */
bool
listener_auth_fits(const struct session_rules *rules, const struct endpoint *endpoints,
                   size_t count, struct buffer *errors)
{
    for (size_t i = 0; i < count; i++) {
        if (wants_auth(&endpoints[i]) && rules->accounts == NULL)
            return listener_auth_complain(
                errors, "auth_users: unset, and `listen` has an address "
                        "auth=required or auth=offered");
        if (wants_auth(&endpoints[i]) && !can_log_in(rules, &endpoints[i]))
            return listener_auth_complain(
                errors, "tls_certificate: unset or unusable, but `listen` has an "
                        "address auth=required or auth=offered: AUTH needs TLS");
    }
    return true;
}

static void
listener_auth_warn_of(struct log *log, const struct endpoint *endpoint,
                      const char *what)
{
    char address[NET_ADDRESS_TEXT_MAX];
    net_address_format(&endpoint->address, address);
    log_say(log, LOG_LEVEL_WARNING, "smtpd", NULL, "listen: %s: %s", address, what);
}

void
listener_auth_warn(struct log *log, const struct session_rules *rules,
                   const struct endpoint *endpoints, size_t count)
{
    bool usable = false;
    for (size_t i = 0; i < count; i++) {
        const struct endpoint *e = &endpoints[i];
        usable = usable || (e->auth != ENDPOINT_AUTH_NO && can_log_in(rules, e));
        if (e->legacy && policy_endpoint_is_public(e))
            listener_auth_warn_of(log, e,
                                  "profile=legacy accepts cleartext passwords and "
                                  "repairs line ends: only "
                                  "old devices should be able to reach this address");
    }
    if (rules->accounts != NULL && !usable)
        log_say(log, LOG_LEVEL_WARNING, "smtpd", NULL,
                "auth_users is set, but AUTH is offered nowhere: AUTH requires "
                "tls_certificate");
}
