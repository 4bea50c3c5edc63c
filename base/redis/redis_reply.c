/* Judges replies of Redis. */
#include "base/redis/redis.h"

#include <stdio.h>
#include <string.h>

enum { EXPLAINED_MAX = 200 }; /* bytes of an error */

void
redis_reply_explain(const struct redis_reply *reply, const char *command,
                    char out[REDIS_ERROR_MAX])
{
    if (reply->kind == REDIS_ERROR)
        snprintf(out, REDIS_ERROR_MAX, "%s: %.*s", command,
                 TEXT_ARGS(text_before(reply->text, EXPLAINED_MAX)));
    else
        snprintf(out, REDIS_ERROR_MAX, "an odd reply to %s", command);
}

bool
redis_is_misplaced(const struct redis_reply *reply)
{
    static const char *const words[] = {"READONLY", "MASTERDOWN", "LOADING",
                                        "NOAUTH",   "NOREPLICAS", "OOM"};
    if (reply->kind != REDIS_ERROR)
        return false;
    /* Before version 7 a script's error only contains the word. */
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (memmem(reply->text.at, reply->text.length, words[i], strlen(words[i])))
            return true;
    return false;
}
