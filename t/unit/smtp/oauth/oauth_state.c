/* Proves that the state of an account is read as it was written, or not at all. */
#include "smtp/oauth/oauth_file.h"

#include "base/memory.h"
#include "t/support/tap.h"

static struct oauth_account
account(const char *row)
{
    struct oauth_account a;
    char why[OAUTH_REASON_MAX];
    ok(oauth_parse_account(text_from(row), &a, why));
    return a;
}

#define ROW "smtp.gmail.com u@gmail.com google client=c"

TEST(round)
{
    struct oauth_account a = account(ROW), other = account("smtp.gmail.com v google client=c");
    struct oauth_state state, read;
    struct buffer out;
    oauth_state_init(&state);
    buffer_init(&out, OAUTH_STATE_MAX);
    ok_named(oauth_state_write(&out, &a, &state), "an empty state");
    oauth_state_init(&read);
    ok(oauth_state_read(buffer_text(&out), &a, &read) && read.access.length == 0);
    oauth_state_free(&read);
    ok(buffer_add(&state.access, TEXT("access")) && buffer_add(&state.refresh, TEXT("r/1")));
    state.expires_ms = 1766000000123;
    state.updated_ms = 1766000000000;
    snprintf(state.error, sizeof(state.error), "status 503");
    buffer_clear(&out);
    ok(oauth_state_write(&out, &a, &state));
    oauth_state_init(&read);
    ok_named(oauth_state_read(buffer_text(&out), &a, &read), "read as it was written");
    is_text(buffer_text(&read.access), TEXT("access"), "the token");
    is_text(buffer_text(&read.refresh), TEXT("r/1"), "the other");
    ok(read.expires_ms == state.expires_ms && read.updated_ms == state.updated_ms);
    is_string(read.error, "status 503", "the error");
    ok_named(!oauth_state_read(buffer_text(&out), &other, &read), "another user's");
    ok_named(read.access.length == 0 && read.expires_ms == 0, "  leaves nothing");
    int wrong = 0;
    for (size_t length = 0; length + 2 < out.length; length++)
        wrong += oauth_state_read(text_before(buffer_text(&out), length), &a, &read);
    is_number(wrong, 0, "a file that is cut is not read");
    buffer_free(&out);
    buffer_init(&out, 20);
    ok_named(!oauth_state_write(&out, &a, &state), "no space");
    buffer_free(&out);
    oauth_state_free(&state);
    oauth_state_free(&read);
}

TEST(foreign)
{
    static const char *const contents[] = {
        "", "null", "[]", "{}", "7",
        "{\"host\":\"smtp.gmail.com\",\"user\":\"u@gmail.com\",\"client\":\"c\"}",
        "{\"host\":\"smtp.gmail.com\",\"user\":\"u@gmail.com\",\"client\":\"c\","
        "\"access\":\"a\\r\\nb\",\"refresh\":\"\"}",
        "{\"host\":\"smtp.gmail.com\",\"user\":\"u@gmail.com\",\"client\":\"c\","
        "\"access\":\"\",\"refresh\":7}",
        "{\"host\":\"smtp.gmail.com\",\"user\":\"u@gmail.com\",\"client\":\"d\","
        "\"access\":\"\",\"refresh\":\"\"}",
    };
    struct oauth_account a = account(ROW);
    for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
        FIXTURE(oauth_state, state, oauth_state_init, oauth_state_free);
        ok_named(!oauth_state_read(text_from(contents[i]), &a, &state), contents[i]);
        ok(state.access.length == 0 && state.refresh.length == 0);
    }
}

/* Text of another program does no harm: a time that is before all times, an error that a
 * terminal would obey, or one that could not be written again. */
TEST(odd)
{
    struct oauth_account a = account(ROW);
    struct oauth_state state;
    struct buffer out;
    char content[1600], error[1000];
    buffer_init(&out, OAUTH_STATE_MAX);
    for (size_t i = 0; i + 1 < sizeof(error); i += 2)
        memcpy(error + i, "\xc2\x9b", 2);
    error[801] = '\0';
    error[800] = 'x';
    snprintf(content, sizeof(content),
             "{\"host\":\"smtp.gmail.com\",\"user\":\"u@gmail.com\",\"client\":\"c\","
             "\"access\":\"a\",\"refresh\":\"\",\"expires\":-9223372036854775808,"
             "\"updated\":-1,\"error\":\"%s\"}",
             error);
    oauth_state_init(&state);
    ok(oauth_state_read(text_from(content), &a, &state));
    ok_named(state.expires_ms == 0 && state.updated_ms == 0, "no time before 1970");
    is_string(state.error, "", "no control characters beyond ASCII");
    ok_named(oauth_state_write(&out, &a, &state), "it can be written");
    buffer_free(&out);
    oauth_state_free(&state);
}

/* The longest tokens fit. */
TEST(long)
{
    struct oauth_account a = account(ROW);
    struct oauth_state state, read;
    struct buffer out;
    char *token = memory_new(OAUTH_TOKEN_MAX);
    memset(token, '"', OAUTH_TOKEN_MAX); /* twice as long in JSON */
    oauth_state_init(&state);
    oauth_state_init(&read);
    ok(buffer_add(&state.access, text_of(token, OAUTH_TOKEN_MAX)) &&
       buffer_add(&state.refresh, text_of(token, OAUTH_TOKEN_MAX)));
    buffer_init(&out, OAUTH_STATE_MAX);
    memset(state.error, '"', sizeof(state.error) - 1);
    ok_named(oauth_state_write(&out, &a, &state), "the longest there are");
    memset(state.access.at, 'x', OAUTH_TOKEN_MAX);
    memset(state.refresh.at, 'y', OAUTH_TOKEN_MAX);
    buffer_clear(&out);
    ok(oauth_state_write(&out, &a, &state) && out.length <= OAUTH_STATE_MAX);
    ok(oauth_state_read(buffer_text(&out), &a, &read));
    is_number(read.access.length + read.refresh.length, 2 * OAUTH_TOKEN_MAX, "8 KiB each");
    buffer_free(&out);
    oauth_state_free(&state);
    oauth_state_free(&read);
    free(token);
}
