/* Published records beside a key: those that fit, and each way in which one does
 * not. */
#include "mime/auth/dkim.h"

#include "t/support/tap.h"

static const struct {
    const char *text;
    enum dkim_record want;
} records[] = {
    {"v=DKIM1; k=rsa; p=AbCd/+==",                                  DKIM_RECORD_FITS      },
    {"p=AbCd/+==",                                                  DKIM_RECORD_FITS      },
    {" v = DKIM1 ;\tk = RSA ; p = AbC d/\r\n\t+== ; ",              DKIM_RECORD_FITS      },
    {"v=DKIM1; h=sha1:sha256; s=email; t=y; n=a note; p=AbCd/+==;", DKIM_RECORD_FITS      },
    {"v=DKIM1; s=other:*; x=y; p=AbCd/+==",                         DKIM_RECORD_FITS      },
    {"v=DKIM1; k=rsa; p=",                                          DKIM_RECORD_REVOKED   },
    {"v=DKIM1; k=ed25519; p=",                                      DKIM_RECORD_REVOKED   },
    {"v=DKIM1; k=ed25519; p=AbCd/+==",                              DKIM_RECORD_OTHER_KIND},
    {"v=DKIM1; k=; p=AbCd/+==",                                     DKIM_RECORD_OTHER_KIND},
    {"v=DKIM1; k=rsa; p=AbCd/+=",                                   DKIM_RECORD_OTHER_KEY },
    {"v=DKIM1; k=rsa; p=AbCd/+==x",                                 DKIM_RECORD_OTHER_KEY },
    {"v=DKIM1; k=rsa; p=abcd/+==",                                  DKIM_RECORD_OTHER_KEY },
    {"v=DKIM1; h=sha1; p=AbCd/+==",                                 DKIM_RECORD_OTHER_USE },
    {"v=DKIM1; s=other; p=AbCd/+==",                                DKIM_RECORD_OTHER_USE },
    {"v=DKIM1; s=; p=AbCd/+==",                                     DKIM_RECORD_OTHER_USE },
    {"v=DKIM1; k=rsa",                                              DKIM_RECORD_MALFORMED },
    {"v=DKIM2; p=AbCd/+==",                                         DKIM_RECORD_MALFORMED },
    {"v=dkim1; p=AbCd/+==",                                         DKIM_RECORD_MALFORMED },
    {"V=DKIM1; P=AbCd/+==",                                         DKIM_RECORD_MALFORMED },
    {"p=AbCd/+==; v=DKIM1",                                         DKIM_RECORD_MALFORMED },
    {"v=DKIM1; p=AbCd/+==; p=AbCd/+==",                             DKIM_RECORD_MALFORMED },
    {"v=DKIM1;; p=AbCd/+==",                                        DKIM_RECORD_MALFORMED },
    {"v=DKIM1; =x; p=AbCd/+==",                                     DKIM_RECORD_MALFORMED },
    {"v=spf1 include:x.test ~all",                                  DKIM_RECORD_MALFORMED },
    {"AbCd/+==",                                                    DKIM_RECORD_MALFORMED },
    {"",                                                            DKIM_RECORD_MALFORMED },
    {";",                                                           DKIM_RECORD_MALFORMED },
};

int
main(void)
{
    struct text two[2] = {TEXT("p=AbCd/+=="), TEXT("p=AbCd/+==")};
    struct text key = TEXT("AbCd/+==");
    for (size_t i = 0; i < sizeof(records) / sizeof(*records); i++) {
        struct text text = text_from(records[i].text);
        is_number(dkim_record_judge(&text, 1, TEXT("rsa"), key), records[i].want,
                  records[i].text);
        ok(dkim_record_words(records[i].want)[0] != '\0');
    }
    is_number(dkim_record_judge(two, 2, TEXT("rsa"), key), DKIM_RECORD_SEVERAL,
              "two records, even if they are the same");
    is_number(dkim_record_judge(NULL, 0, TEXT("rsa"), key), DKIM_RECORD_NONE, "none");
    struct text nul = text_of("v=DKIM1; p=Ab\0Cd/+==", 21);
    is_number(dkim_record_judge(&nul, 1, TEXT("rsa"), key), DKIM_RECORD_OTHER_KEY,
              "with a NUL");
    return done();
}
