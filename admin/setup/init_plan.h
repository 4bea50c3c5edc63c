/* The answers to `petrel init`, and the settings made of them. No I/O. */
#ifndef ADMIN_SETUP_INIT_PLAN_H
#define ADMIN_SETUP_INIT_PLAN_H

#include "base/buffer.h"
#include "sched/route/provider_facts.h"
#include "sched/route/route.h"

enum init_question {
    INIT_HOSTNAME,
    INIT_RELAY,
    INIT_USER, /* only of a smarthost whose URL has none */
    INIT_LISTEN,
    INIT_ROOT,
    INIT_HTTP,
    INIT_SENDER, /* only with a smarthost whose user is no address */
    INIT_QUESTIONS
};

enum {
    INIT_ANSWER_MAX = 1000, /* bytes */
    INIT_VALUE_MAX = 4096,
    INIT_WHY_MAX = 640,
    INIT_PASSWORD_MAX = 1024, /* sched/route/secrets.h */
    INIT_SETTINGS_MAX = 10,
    INIT_FILE_MAX = 32 * 1024
};

enum init_way { INIT_DIRECT, INIT_HOLD, INIT_SMARTHOST };

struct init_plan {
    /* Set before the first answer: */
    bool is_root;
    const char *found;       /* the host name of the system */
    const char *daemon_user; /* NULL: the daemon keeps its user */
    /* Private: */
    enum init_way way;
    const struct provider_facts *facts; /* NULL: not a known provider */
    char hostname[INIT_VALUE_MAX], relay[INIT_VALUE_MAX], user[INIT_VALUE_MAX];
    /* The first host of relay, its user, and whether any has one; "": none, or an error
     * that `petrel check` will name. */
    char host[TARGET_HOST_MAX], url_user[INIT_VALUE_MAX];
    bool has_user;
    char listen[INIT_VALUE_MAX], relay_from[INIT_VALUE_MAX];
    char root[INIT_VALUE_MAX], http[INIT_VALUE_MAX];
    char proposed[INIT_VALUE_MAX]; /* the last preset that was put together */
    char sender[INIT_VALUE_MAX]; /* of mail of this host's programs; "": as it comes */
    bool has_oauth;              /* no password: the settings wait for a client id */
};

struct init_setting {
    const char *key;
    char value[INIT_VALUE_MAX];
};

/* Whether the question has a meaning after the answers before it. */
bool init_plan_asks(const struct init_plan *plan, enum init_question question);
/* The answer when none is given, borrowed from the plan; NULL: one is needed. */
const char *init_plan_preset(struct init_plan *plan, enum init_question question);
/* False: why is a sentence that gives the right form. The plan is as before then. */
bool init_plan_take(struct init_plan *plan, enum init_question question,
                    struct text answer, char why[INIT_WHY_MAX])
    __attribute__((warn_unused_result));

/* Whether the preset follows from the answers before it, so that nobody is asked. */
bool init_plan_derives(const struct init_plan *plan, enum init_question question);

/* Whether somebody logs in at the smarthost. */
bool init_plan_needs_password(const struct init_plan *plan);
/* "microsoft", "google"; NULL: the provider has no OAuth2 that is known here. */
const char *init_plan_oauth(const struct init_plan *plan);

/* Those that differ from the defaults; password_file is where it will be. */
size_t init_plan_settings(const struct init_plan *plan, const char *password_file,
                          struct init_setting out[INIT_SETTINGS_MAX]);
/* petrel.conf, each setting with its help. */
void init_plan_write(const struct init_plan *plan, const char *password_file,
                     struct buffer *out);
/* An empty line, and the help of a setting as comments; also of key_file. */
void init_plan_write_help(const char *key, struct buffer *out);
/* A user as it is written in a URL. At the limit of out a part is missing. */
void init_plan_encode(struct text user, struct buffer *out);
/* The names of the providers, for people: "gmail, ..." */
void init_plan_providers(struct buffer *out);

#endif
