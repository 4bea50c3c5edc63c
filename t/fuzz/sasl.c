/* Fuzz target: AUTH, both sides, and the file of users. The first byte chooses
 * mechanism, side, and whether the lines that follow are put in Base64 first. Nobody
 * logs in without the password; the client believes no impostor. */
#include "base/crypto/base64.h"
#include "smtp/client/sasl_client.h"
#include "smtp/access/tables_internal.h"
#include "smtp/server/sasl_server.h"
#include "smtp/access/users.h"

#include "t/support/must.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned char secret[DIGEST_SIZE] = "secret";
static const char nonce[] = "the-nonce";

static struct users *
read_users(struct text content)
{
    struct buffer mistakes;
    buffer_init(&mistakes, 1024);
    struct users *users = users_new(content, "f", secret, &mistakes);
    must((users == NULL) == (mistakes.length > 0));
    must(users != NULL || mistakes.at[mistakes.length - 1] == '\n');
    buffer_free(&mistakes);
    return users;
}

/* Borrows from line or from coded. */
static struct text
as_sent(struct text line, bool code, struct buffer *coded)
{
    buffer_clear(coded);
    return code && base64_encode(line, coded) ? buffer_text(coded) : line;
}

static void
serve(enum sasl_mechanism mechanism, bool code, struct text input)
{
    /* Keys of no password. */
    struct users *users =
        read_users(TEXT("user:SCRAM-SHA-256$4096:AAAAAAAAAAAAAAAAAAAAAA==$"
                        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"
                        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"));
    struct sasl_server s;
    struct buffer coded;
    struct text line = {NULL, 0};
    char decoded[SASL_SERVER_OUT_MAX];
    size_t length;
    buffer_init(&coded, 64 * 1024);
    enum sasl_result result = sasl_server_start(&s, mechanism, users, nonce, line);
    while (result == SASL_CHALLENGE && text_cut(&input, '\n', &line)) {
        must(base64_decode(sasl_server_challenge(&s), decoded, sizeof(decoded),
                           &length));
        result = sasl_server_feed(&s, as_sent(line, code, &coded));
        if (result == SASL_UNFINISHED)
            result = sasl_server_work(&s);
    }
    must(result != SASL_DONE);
    must(result == SASL_CHALLENGE || sasl_server_challenge(&s).length == 0);
    must(strlen(sasl_server_user(&s)) <= SASL_NAME_MAX);
    sasl_server_end(&s);
    buffer_free(&coded);
    users_free(&users);
}

static void
ask(enum sasl_mechanism mechanism, bool code, struct text input)
{
    struct sasl_credentials credentials = {TEXT("user"), TEXT("password"), TEXT("")};
    struct sasl_client c;
    struct buffer coded;
    struct text line;
    bool good = true;
    if (mechanism == SASL_XOAUTH2)
        credentials.token = TEXT("token");
    buffer_init(&coded, 64 * 1024);
    sasl_client_start(&c, mechanism, &credentials, nonce);
    while (good && text_cut(&input, '\n', &line)) {
        enum sasl_client_result result =
            sasl_client_feed(&c, as_sent(line, code, &coded));
        while (result == SASL_WORK)
            result = sasl_client_work(&c);
        must(sasl_client_line(&c).length <= SASL_LINE_MAX);
        good = result == SASL_SEND;
        must(good == (c.problem == NULL));
    }
    must(mechanism != SASL_SCRAM_SHA_256 || !sasl_client_accepted(&c));
    must(memchr(c.detail, '\0', sizeof(c.detail)) != NULL);
    sasl_client_end(&c);
    buffer_free(&coded);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct text input = text_of(data + 1, size - 1);
    bool code = (data[0] & 8) != 0;
    switch (data[0] & 7) {
    case 0: {
        struct users *users = read_users(input);
        users_free(&users);
        break;
    }
    case 1:
    case 2:
    case 3:
        serve((enum sasl_mechanism)(data[0] & 7), code, input);
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        ask((enum sasl_mechanism)((data[0] & 7) - 3), code, input);
        break;
    }
    return 0;
}
