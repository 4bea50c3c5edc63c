/* The messages of SCRAM: RFC 7677's, and everything that is not of that form. */
#include "smtp/sasl.h"

#include "t/support/sasl_kit.h"

TEST(good)
{
    struct scram_first first;
    struct scram_challenge challenge;
    struct scram_final final;
    struct verifier v;
    unsigned char signature[DIGEST_SIZE], own[DIGEST_SIZE];
    struct text auth = TEXT("n=user,r=" KIT_CLIENT_NONCE "," KIT_CHALLENGE "," KIT_UNPROVEN);
    ok(sasl_scram_read_first(TEXT(KIT_FIRST), &first));
    is_text(first.header, TEXT("n,,"), "header");
    is_text(first.bare, TEXT("n=user,r=" KIT_CLIENT_NONCE), "bare");
    is_string(first.name, "user", "name");
    is_text(first.nonce, TEXT(KIT_CLIENT_NONCE), "nonce");
    ok(sasl_scram_read_challenge(TEXT(KIT_CHALLENGE), &challenge));
    is_number(challenge.iterations, 4096, "iterations");
    is_number(challenge.salt_length, 16, "salt");
    ok(sasl_scram_read_final(TEXT(KIT_FINAL), &final));
    is_text(final.unproven, TEXT(KIT_UNPROVEN), "what is proven");
    is_text(final.header, TEXT("biws"), "header again");
    ok(verifier_parse(&v, TEXT(KIT_KEYS)) == NULL);
    ok(sasl_scram_is_proven(final.proof, v.stored_key, auth));
    final.proof[31] ^= 1;
    ok(!sasl_scram_is_proven(final.proof, v.stored_key, auth));
    final.proof[31] ^= 1;
    ok(!sasl_scram_is_proven(final.proof, v.server_key, auth));
    ok(!sasl_scram_is_proven(final.proof, v.stored_key, text_before(auth, auth.length - 1)));
    ok(sasl_scram_read_verdict(TEXT(KIT_VERDICT), signature));
    digest_keyed(text_of(v.server_key, DIGEST_SIZE), auth, own);
    ok(digest_same(signature, own, DIGEST_SIZE));
}

TEST(first)
{
    static const char *const good[] = {"y,,n=a,r=b", "n,a=x,n=a,r=b", "n,,n=a,r=b,x=y",
                                       "n,,n=a=2Cb=3Dc,r=b", "n,,n=\xc3\xa4,r=!"};
    static const char *const bad[] = {
        "", "n", "n,", "n,,", "n,,n=a", "n,,n=,r=b", "n,,n=a,r=", "n,,r=b,n=a",
        "p=tls-unique,,n=a,r=b", "p=,,n=a,r=b", "x,,n=a,r=b", "N,,n=a,r=b",
        "n,x,n=a,r=b", "n,a=,n=a,r=b", "n,,m=x,n=a,r=b", "n,,n=a,r=b,m=x",
        "n,,n=a,r=b,", "n,,n=a,r=b,,", "n,,n=a,r=b,x", "n,,n=a,r=b,x=", "n,,n=a,r=b,1=x",
        "n,,n=a=,r=b", "n,,n=a=2,r=b", "n,,n=a=2c,r=b", "n,,n==,r=b", "n,,n=a=3E,r=b",
        "n,,n=a\tb,r=b", "n,,n=\xff,r=b", "n,,n=a,r=b c", "n,,n=a,r=\xc3\xa4",
        "n,,n=a,r=b\x7f", " n,,n=a,r=b"};
    struct scram_first first;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        ok_named(sasl_scram_read_first(text_from(good[i]), &first), good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ok_named(!sasl_scram_read_first(text_from(bad[i]), &first), bad[i]);
    ok(!sasl_scram_read_first(TEXT("n,,n=a\0b,r=b"), &first));
    ok(sasl_scram_read_first(TEXT("n,a=b=2C,n=a=2Cb=3Dc,r=b,x=y"), &first));
    is_string(first.name, "a,b=c", "escapes are undone");
    is_string(first.authzid, "b,", "for whom, too");
    is_text(first.header, TEXT("n,a=b=2C,"), "header with it");
    is_text(first.nonce, TEXT("b"), "nonce before an extension");
}

TEST(limits)
{
    char t[2 * SASL_MESSAGE_MAX];
    struct scram_first first;
    size_t name = SASL_NAME_MAX;
    memset(t, 'x', sizeof(t));
    memcpy(t, "n,,n=", 5);
    memcpy(t + 5 + name, ",r=", 3);
    ok(sasl_scram_read_first(text_of(t, SASL_MESSAGE_MAX), &first));
    is_number(strlen(first.name), name, "the longest name");
    ok_named(!sasl_scram_read_first(text_of(t, SASL_MESSAGE_MAX + 1), &first), "a long message");
    t[5 + name] = 'x';
    memcpy(t + 6 + name, ",r=", 3);
    ok_named(!sasl_scram_read_first(text_of(t, SASL_MESSAGE_MAX), &first), "a long name");
}

TEST(others)
{
    static const char *const challenges[] = {
        "", "r=a", "r=a,s=AAAA", "r=a,s=,i=1", "r=a,s=AAA,i=1", "r=a,s=AAAA,i=0",
        "r=a,s=AAAA,i=-1", "r=a,s=AAAA,i=", "r=a,s=AAAA,i=4294967296", "r=,s=AAAA,i=1",
        "s=AAAA,r=a,i=1", "m=x,r=a,s=AAAA,i=1", "r=a,s=AAAA,i=1,m=x", "e=other-error"};
    static const char *const finals[] = {
        "", "c=biws", "c=biws,r=a", "c=biws,r=a,p=", "c=biws,r=a,p=AAAA",
        "r=a,c=biws,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "c=biws,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=,r=a",
        "c=biws,r=a,m=x,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "c=biws,r=,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "c=biws,r=a,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=,x=y",
        "c=biws,r=a,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ"};
    static const char *const verdicts[] = {"", "v=", "v=AAAA", "e=invalid-proof",
                                           KIT_VERDICT ",", KIT_VERDICT "=", "V" };
    struct scram_challenge challenge;
    struct scram_final final;
    unsigned char signature[DIGEST_SIZE];
    for (size_t i = 0; i < sizeof(challenges) / sizeof(*challenges); i++)
        ok_named(!sasl_scram_read_challenge(text_from(challenges[i]), &challenge), challenges[i]);
    for (size_t i = 0; i < sizeof(finals) / sizeof(*finals); i++)
        ok_named(!sasl_scram_read_final(text_from(finals[i]), &final), finals[i]);
    for (size_t i = 0; i < sizeof(verdicts) / sizeof(*verdicts); i++)
        ok_named(!sasl_scram_read_verdict(text_from(verdicts[i]), signature), verdicts[i]);
    ok(sasl_scram_read_challenge(TEXT("r=a,s=AAAA,i=1,x=y"), &challenge));
    ok(sasl_scram_read_verdict(TEXT(KIT_VERDICT ",x=y"), signature));
}

TEST(written)
{
    FIXTURE(buffer, out, buffer_init, buffer_free, 10);
    ok(sasl_scram_write_name(TEXT("a,=b"), &out));
    is_text(buffer_text(&out), TEXT("a=2C=3Db"), "escaped");
    ok(!sasl_scram_write_name(TEXT("ab,"), &out));
    is_text(buffer_text(&out), TEXT("a=2C=3Db"), "unchanged at the limit");
}
