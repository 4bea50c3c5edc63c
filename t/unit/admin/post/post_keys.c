/* The file of submission keys: what is a key, what is refused and where. */
#include "admin/post/post_keys.h"

#include "smtp/access/senders.h"
#include "t/support/tap.h"

/* SHA-256 of "one" and of "two". */
#define ONE "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
#define TWO "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"

static struct post_keys *
read_keys(const char *content, struct buffer *errors)
{
    buffer_init(errors, 10000);
    return post_keys_new(text_from(content), "FILE", TEXT("ours.example"), errors);
}

static bool
permits(const struct post_keys *keys, const char *user, const char *sender)
{
    struct outcome refusal;
    return senders_permit(keys->senders, user, true, text_from(sender), &refusal);
}

TEST(keys)
{
    struct buffer errors;
    struct post_keys *keys = read_keys("# comment\n\n a-1 " ONE " a@ours.example\r\nB_2 " TWO " ours.example,*", &errors);
    ok(keys != NULL && keys->count == 2 && errors.length == 0);
    const struct post_key *key = post_keys_find(keys, TEXT("one"));
    ok(key != NULL);
    is_string(key->name, "a-1", "its name");
    is_string(post_keys_find(keys, TEXT("two"))->name, "B_2", "the other");
    ok(post_keys_find(keys, TEXT("three")) == NULL && post_keys_find(keys, TEXT("")) == NULL);
    ok(post_keys_find(keys, TEXT(ONE)) == NULL);
    ok_named(permits(keys, "key:a-1", "a@ours.example"), "its sender");
    ok_named(!permits(keys, "key:a-1", "b@ours.example"), "no other");
    ok_named(permits(keys, "key:B_2", "b@ours.example"), "a domain");
    ok_named(!permits(keys, "key:B_2", "b@other.example"), "sender_domains holds for keys, too");
    ok_named(!permits(keys, "a-1", "a@ours.example"), "a user of that name is another");
    keys->users++;
    struct post_keys *other = keys;
    post_keys_release(&other);
    ok_named(other == NULL && keys->count == 2, "one of two users has left");
    post_keys_release(&keys);
    keys = read_keys("", &errors);
    ok_named(keys != NULL && keys->count == 0, "no keys yet");
    post_keys_release(&keys);
}

TEST(refused_lines)
{
    static const struct {
        const char *content, *error;
    } rows[] = {
        {"a/b " ONE " *", "line 1: no name of a key"},
        {".a " ONE " *", "no name"},
        {"x", "line 1: no digest"},
        {"\nx secret-key *", "line 2: no digest"},
        {"x " ONE "0 *", "no digest"},
        {"x " ONE, "senders follow the digest"},
        {"x " ONE " @", "senders follow the digest"},
        {"x " ONE " *\nx " TWO " *", "line 2: the name is in an earlier line"},
    };
    struct buffer errors;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct post_keys *keys = read_keys(rows[i].content, &errors);
        ok_named(keys == NULL, rows[i].content);
        ok_named(memmem(errors.at, errors.length, rows[i].error, strlen(rows[i].error)) != NULL, rows[i].error);
        ok_named(memmem(errors.at, errors.length, "secret", 6) == NULL, "no value is shown");
        buffer_free(&errors);
    }
    buffer_init(&errors, 1000);
    ok(post_keys_read("/nonexistent/keys", TEXT(""), &errors) == NULL && errors.length > 0);
    buffer_free(&errors);
}

TEST(tokens)
{
    unsigned char bytes[DIGEST_SIZE];
    char token[POST_KEY_TOKEN_SIZE];
    memset(bytes, 0xff, sizeof(bytes));
    post_key_write(bytes, token);
    is_string(token, "petrel___________________________________________8", "all bits");
    is_number(strlen(token), POST_KEY_TOKEN_SIZE - 1, "no padding");
}
