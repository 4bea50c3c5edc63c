/* The state of an account as JSON. */
#include "smtp/oauth/oauth_state.h"

#include "base/crypto/digest.h"

#include <jansson.h>

#include <stdlib.h>
#include <string.h>

static void
oauth_forget(struct buffer *secret)
{
    if (secret->at != NULL)
        digest_forget(secret->at, secret->capacity);
    buffer_free(secret);
}

void
oauth_state_init(struct oauth_state *state)
{
    memset(state, 0, sizeof(*state));
    buffer_init(&state->access, OAUTH_TOKEN_MAX);
    buffer_init(&state->refresh, OAUTH_TOKEN_MAX);
}

void
oauth_state_free(struct oauth_state *state)
{
    oauth_forget(&state->access);
    oauth_forget(&state->refresh);
}

static bool
oauth_state_token(struct buffer *out, const json_t *json, const char *name)
{
    const json_t *value = json_object_get(json, name);
    struct text token = text_of(json_string_value(value), json_string_length(value));
    for (size_t i = 0; i < token.length; i++)
        if (token.at[i] <= ' ' || token.at[i] > '~')
            return false;
    return json_is_string(value) && buffer_reserve(out, OAUTH_TOKEN_MAX) != NULL &&
           buffer_add(out, token);
}

static bool
oauth_state_is(const json_t *json, const char *name, const char *wanted)
{
    const char *value = json_string_value(json_object_get(json, name));
    return value != NULL && strcmp(value, wanted) == 0;
}

static int64_t
oauth_state_time(const json_t *json, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(json, name));
    return value > 0 ? value : 0;
}

static bool
oauth_state_take(const json_t *json, const struct oauth_account *account,
                 struct oauth_state *state)
{
    struct text error = text_from(json_string_value(json_object_get(json, "error")));
    state->expires_ms = oauth_state_time(json, "expires");
    state->updated_ms = oauth_state_time(json, "updated");
    if (text_is_ascii(error) && !text_has_control(error))
        text_copy(state->error, sizeof(state->error), error);
    return oauth_state_is(json, "host", account->host) &&
           oauth_state_is(json, "user", account->user) &&
           oauth_state_is(json, "client", account->client) &&
           oauth_state_token(&state->access, json, "access") &&
           oauth_state_token(&state->refresh, json, "refresh");
}

bool
oauth_state_read(struct text content, const struct oauth_account *account,
                 struct oauth_state *state)
{
    json_t *json =
        json_loadb(content.at != NULL ? content.at : "", content.length, 0, NULL);
    bool good = oauth_state_take(json, account, state);
    json_decref(json);
    if (!good) {
        oauth_state_free(state);
        oauth_state_init(state);
    }
    return good;
}

bool
oauth_state_write(struct buffer *out, const struct oauth_account *account,
                  const struct oauth_state *state)
{
    struct text access = buffer_text(&state->access);
    struct text refresh = buffer_text(&state->refresh);
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:s%, s:I, s:s%, s:I, s:s}", "host", account->host, "user",
        account->user, "client", account->client, "access", access.at, access.length,
        "expires", (json_int_t)state->expires_ms, "refresh", refresh.at, refresh.length,
        "updated", (json_int_t)state->updated_ms, "error", state->error);
    char *text = json != NULL ? json_dumps(json, JSON_INDENT(1)) : NULL;
    bool good = text != NULL && buffer_reserve(out, OAUTH_STATE_MAX) != NULL &&
                buffer_add(out, text_from(text)) && buffer_add_byte(out, '\n');
    if (text != NULL)
        digest_forget(text, strlen(text));
    free(text);
    json_decref(json);
    return good;
}
