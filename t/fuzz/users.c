/* Fuzz target: the files of users and of passwords; behind a first line, what is asked
 * of them. */
#include "sched/route/secrets.h"
#include "smtp/sasl.h"
#include "smtp/access/tables_internal.h"
#include "smtp/access/users.h"

#include "t/support/must.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_users(struct text file, struct text name)
{
    static const unsigned char secret[DIGEST_SIZE] = "a secret";
    struct buffer mistakes;
    struct verifier keys, again;
    buffer_init(&mistakes, 64 * 1024);
    struct users *users = users_new(file, "users", secret, &mistakes);
    must((users == NULL) == (mistakes.length > 0));
    if (users != NULL) {
        bool known = users_scram(users, name, &keys);
        must(known || !users_have_scram(users) || !users_have(users, name));
        must(keys.salt_length >= VERIFIER_SALT_MIN &&
             keys.salt_length <= VERIFIER_SALT_MAX);
        must(keys.iterations >= VERIFIER_ITERATIONS_MIN &&
             keys.iterations <= VERIFIER_ITERATIONS_MAX);
        must(users_scram(users, name, &again) == known &&
             memcmp(&keys, &again, sizeof(keys)) == 0);
    }
    users_free(&users);
    must(users == NULL);
    buffer_free(&mistakes);
}

static void
check_passwords(struct text file, struct text name)
{
    struct buffer mistakes;
    buffer_init(&mistakes, 64 * 1024);
    struct secrets *secrets = secrets_new(file, &mistakes);
    must((secrets == NULL) == (mistakes.length > 0));
    if (secrets != NULL) {
        const struct secret *found =
            secrets_find(secrets, TEXT("mail.example.net"), 587, name);
        must(found == NULL || found->is_token || secrets_error(found->value) == NULL);
    }
    secrets_free(&secrets);
    buffer_free(&mistakes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text name, rest = text_of(data, size);
    /* A verifier of {PLAIN} costs milliseconds: not what is looked for here. */
    if (!text_cut(&rest, '\n', &name) || memmem(data, size, "PLAIN", 5) != NULL ||
        memmem(data, size, "plain", 5) != NULL)
        return 0;
    check_users(rest, name);
    check_passwords(rest, name);
    return 0;
}
