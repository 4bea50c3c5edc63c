/* For tests of AUTH: users, base64, RFC 7677's dialogue. */
#include "t/support/sasl_kit.h"
#include "smtp/access/tables_internal.h"

const unsigned char kit_secret[DIGEST_SIZE] = "thirty-two bytes of a secret...";

struct users *
kit_users(const char *content)
{
    struct buffer mistakes;
    buffer_init(&mistakes, 4096);
    struct users *users = users_new(text_from(content), "users", kit_secret, &mistakes);
    is_text(buffer_text(&mistakes), TEXT(""), "users without mistake");
    buffer_free(&mistakes);
    return users;
}

bool
sasl_kit_check(const struct users *users, struct text name, struct text password)
{
    struct users_check c;
    enum verifier_finding finding = users_check_start(users, name, password, &c);
    while (finding == VERIFIER_UNFINISHED)
        finding = users_check_go(&c);
    return finding == VERIFIER_RIGHT;
}

struct text
kit_coded(struct text t)
{
    static char memory[16384];
    struct buffer out;
    buffer_init(&out, sizeof(memory) - 1);
    if (!base64_encode(t, &out))
        abort();
    memcpy(memory, out.at, out.length);
    struct text coded = text_of(memory, out.length);
    buffer_free(&out);
    return coded;
}

struct text
kit_decoded(struct text t)
{
    static char memory[16384];
    size_t length;
    if (!base64_decode(t, memory, sizeof(memory), &length))
        abort();
    return text_of(memory, length);
}
