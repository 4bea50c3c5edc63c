/* Conversion, and messages that must not be converted: each message with its verdict
 * and result, cut at every byte, decoded again; both ways, from binary and to 8
 * bits. */
#include "mime/parts/downgrade.h"

#include "t/support/tap.h"

#include "t/support/downgrade_kit.h"

#define LINE_100 "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
#define LINE_900 LINE_100 LINE_100 LINE_100 LINE_100 LINE_100 LINE_100 LINE_100 LINE_100 LINE_100
#define MIXED    "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
#define UTF8     "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n"
#define QP       "Content-Transfer-Encoding: quoted-printable\r\n"
#define BASE64   "Content-Transfer-Encoding: base64\r\n"

/* out: NULL when it needs none or reason forbids. */
/* clang-format off */
static const struct sample {
    const char *name, *content, *out;
    enum downgrade_reason reason;
} samples[] = {
    {"nothing", "", NULL, 0},
    {"seven bits", "Subject: x\r\n\r\nplain\r\n", NULL, 0},
    {"seven bits, whatever the label", "Content-Transfer-Encoding: 8bit\r\n\r\nplain\r\n", NULL, 0},
    {"seven bits, signed", "Content-Type: multipart/signed; boundary=b\r\n\r\n--b\r\n\r\nx\r\n--b--\r\n", NULL, 0},
    {"a line as long as may be", "X: y\r\n\r\n" LINE_900 "01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567\r\n", NULL, 0},
    {"labelled text", "MIME-Version: 1.0\r\n" UTF8 "Subject: x\r\n\r\nGr\xc3\xbc\xc3\x9f" "e aus der schoenen Stadt\r\n",
     "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n" QP "Subject: x\r\n\r\nGr=C3=BC=C3=9Fe aus der schoenen Stadt\r\n", 0},
    {"unlabelled text", "Subject: x\r\n\r\n\xe9 - a word in Latin 1\r\n",
     "Subject: x\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=unknown-8bit\r\n" QP "\r\n=E9 - a word in Latin 1\r\n", 0},
    {"text in another script", "MIME-Version: 1.0\r\n" UTF8 "\r\n\xd0\xb4\xd0\xb0\r\n",
     "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n" BASE64 "\r\n0LTQsA0K\r\n", 0},
    {"no label, not in need of one", "MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n<p>caf\xe9</p>\r\n",
     "MIME-Version: 1.0\r\nContent-Type: text/html\r\n" QP "\r\n<p>caf=E9</p>\r\n", 0},
    {"not text", "MIME-Version: 1.0\r\nContent-Type: image/png\r\n\r\n\x89PNG 1 2 3 4 5 6 7\r\n",
     "MIME-Version: 1.0\r\nContent-Type: image/png\r\n" BASE64 "\r\niVBORyAxIDIgMyA0IDUgNiA3DQo=\r\n", 0},
    {"a header without its empty line", "Subject: x\r\nodd \xe9 line, long enough\r\n",
     "Subject: x\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=unknown-8bit\r\n" QP "\r\nodd =E9 line, long enough\r\n", 0},
    {"no header at all", "odd \xe9 line, long enough\r\n",
     "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=unknown-8bit\r\n" QP "\r\nodd =E9 line, long enough\r\n", 0},
    {"a body without a last line end", "MIME-Version: 1.0\r\n" UTF8 "\r\nlong enough: \xc3\xa9",
     "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n" QP "\r\nlong enough: =C3=A9=\r\n", 0},
    {"not text, without a last line end", "MIME-Version: 1.0\r\nContent-Type: a/b\r\n\r\n\xff", "MIME-Version: 1.0\r\nContent-Type: a/b\r\n" BASE64 "\r\n/w==\r\n", 0},
    {"two labels alike", "MIME-Version: 1.0\r\nContent-Transfer-Encoding: 8bit\r\nX: y\r\nContent-transfer-encoding:8BIT\r\n\r\n\xe9 and enough text\r\n",
     "MIME-Version: 1.0\r\n" QP "X: y\r\nContent-Type: text/plain; charset=unknown-8bit\r\n\r\n=E9 and enough text\r\n", 0},
    {"only the parts that need it",
     "MIME-Version: 1.0\r\nContent-Transfer-Encoding: 8bit\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\npr\xc3\xa9\r\n--b\r\n" UTF8 "\r\nenough text: \xc3\xa9\r\n--b\r\n" UTF8 "\r\nplain\r\n"
     "--b\r\nContent-Type: a/b\r\n" BASE64 "\r\n/w==\r\n--b--\r\n\xff\r\n",
     "MIME-Version: 1.0\r\nContent-Transfer-Encoding: 7bit\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\npr??\r\n--b\r\nContent-Type: text/plain; charset=utf-8\r\n" QP "\r\nenough text: =C3=A9\r\n"
     "--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\nplain\r\n--b\r\nContent-Type: a/b\r\n" BASE64 "\r\n/w==\r\n--b--\r\n?\r\n", 0},
    {"a part without a type", MIXED "--b\r\n\r\nenough text: \xc3\xa9\r\n--b--\r\n",
     MIXED "--b\r\nContent-Type: text/plain; charset=unknown-8bit\r\n" QP "\r\nenough text: =C3=A9\r\n--b--\r\n", 0},
    {"white space before a delimiter", MIXED "--b\r\n\r\nenough text: \xc3\xa9 \r\n\r\n--b--\r\n",
     MIXED "--b\r\nContent-Type: text/plain; charset=unknown-8bit\r\n" QP "\r\nenough text: =C3=A9=20\r\n\r\n--b--\r\n", 0},
    {"a message in a message", MIXED "--b\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: 8bit\r\n\r\nSubject: in\r\n\r\nenough text: \xc3\xa9\r\n--b--\r\n",
     MIXED "--b\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: 7bit\r\n\r\nSubject: in\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=unknown-8bit\r\n" QP "\r\nenough text: =C3=A9\r\n--b--\r\n", 0},
    {"messages of a digest", "Content-Type: multipart/digest; boundary=b\r\n\r\n--b\r\n\r\nSubject: in\r\n\r\nenough text: \xc3\xa9\r\n--b--\r\n",
     "Content-Type: multipart/digest; boundary=b\r\n\r\n--b\r\n\r\nSubject: in\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=unknown-8bit\r\n" QP "\r\nenough text: =C3=A9\r\n--b--\r\n", 0},
    {"MIME without its version", "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nenough text: \xc3\xa9\r\n--b--\r\n",
     "Content-Type: multipart/mixed; boundary=b\r\nMIME-Version: 1.0\r\n\r\n--b\r\nContent-Type: text/plain; charset=unknown-8bit\r\n" QP "\r\nenough text: =C3=A9\r\n--b--\r\n", 0},
    {"message/global as a whole", MIXED "--b\r\nContent-Type: message/global\r\n\r\nSubject: \xc3\xa9\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\xc3\xa9\r\n--b--\r\n",
     MIXED "--b\r\nContent-Type: message/global\r\n" BASE64 "\r\nU3ViamVjdDogw6kNCkNvbnRlbnQtVHlwZTogdGV4dC9wbGFpbg0KQ29udGVudC1UcmFuc2Zlci1F\r\nbmNvZGluZzogOGJpdA0KDQrDqQ==\r\n--b--\r\n", 0},
    {"message/global of a header only", MIXED "--b\r\nContent-Type: message/global\r\n\r\nSubject: \xc3\xa9\r\n--b--\r\n",
     MIXED "--b\r\nContent-Type: message/global\r\n" BASE64 "\r\nU3ViamVjdDogw6kNCg==\r\n--b--\r\n", 0},
    {"a delivery status in UTF-8", MIXED "--b\r\nContent-Type: message/global-delivery-status\r\n\r\nX: \xc3\xa9\r\n--b--\r\n",
     MIXED "--b\r\nContent-Type: message/global-delivery-status\r\n" BASE64 "\r\nWDogw6k=\r\n--b--\r\n", 0},
    {"S/MIME in one part is a leaf as any", "MIME-Version: 1.0\r\nContent-Type: application/pkcs7-mime; smime-type=signed-data\r\nContent-Transfer-Encoding: binary\r\n\r\n\x30\x80\r\n",
     "MIME-Version: 1.0\r\nContent-Type: application/pkcs7-mime; smime-type=signed-data\r\n" BASE64 "\r\nMIANCg==\r\n", 0},
    {"what is signed keeps its bytes beside what is converted",
     MIXED "--b\r\nContent-Type: multipart/signed; boundary=s\r\n\r\n--s\r\nContent-Transfer-Encoding: 8bit\r\n\r\nx \r\n--s--\r\n--b\r\n\r\nenough text: \xc3\xa9\r\n--b--\r\n",
     MIXED "--b\r\nContent-Type: multipart/signed; boundary=s\r\n\r\n--s\r\nContent-Transfer-Encoding: 8bit\r\n\r\nx \r\n--s--\r\n--b\r\nContent-Type: text/plain; charset=unknown-8bit\r\n" QP "\r\nenough text: =C3=A9\r\n--b--\r\n", 0},
    {"long lines of text", "MIME-Version: 1.0\r\nContent-Type: text/plain\r\n\r\n" LINE_900 LINE_100 "\r\n", "?", 0},
    {"a long header line", "X: " LINE_900 " " LINE_900 "\r\n\r\nx\r\n", "X: " LINE_900 "\r\n " LINE_900 "\r\n\r\nx\r\n", 0},
    {"bare line feeds", "Subject: x\nX: y\r\n\nplain\r\ntext\n", "Subject: x\r\nX: y\r\n\r\nplain\r\ntext\r\n", 0},
    {"bare line feeds in what is encoded", "MIME-Version: 1.0\nContent-Type: text/plain\n\nenough text \xe9\nmore\n\n",
     "MIME-Version: 1.0\r\nContent-Type: text/plain\r\n" QP "\r\nenough text =E9\r\nmore\r\n\r\n", 0},
    {"a lone CR and a NUL", "MIME-Version: 1.0\r\nContent-Type: text/plain\r\n\r\nenough text, with \r inside and\r\n", "MIME-Version: 1.0\r\nContent-Type: text/plain\r\n" QP "\r\nenough text, with=20=0D inside and\r\n", 0},
    {"a lone CR in a preamble", MIXED "a\rb\r\n--b\r\n\r\nx\r\n--b--\r\n", MIXED "a?b\r\n--b\r\n\r\nx\r\n--b--\r\n", 0},
    {"a lone CR at the end of a preamble", MIXED "a\xe9\r\r\n--b\r\n\r\nx\r\n--b--\r\n", MIXED "a??\r\n--b\r\n\r\nx\r\n--b--\r\n", 0},
    {"nothing else in it", MIXED "\r\r\n--b\r\n\r\nx\r\n--b--\r\n", MIXED "?\r\n--b\r\n\r\nx\r\n--b--\r\n", 0},
    {"a lone CR at the end of an epilogue", MIXED "--b\r\n\r\nx\r\n--b--\r\n\xe9\r", MIXED "--b\r\n\r\nx\r\n--b--\r\n??\r\n", 0},
    {"lone CRs of an inner epilogue", MIXED "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\nx\r\n--c--\r\n\r\r\r\n--b--\r\n",
     MIXED "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\nx\r\n--c--\r\n??\r\n--b--\r\n", 0},
    {"bytes that look like a delimiter once encoded", MIXED "--b\r\n" UTF8 "\r\nenough text: \xc3\xa9\r\n--c\r\n--b--\r\n",
     MIXED "--b\r\nContent-Type: text/plain; charset=utf-8\r\n" QP "\r\nenough text: =C3=A9\r\n-=2Dc\r\n--b--\r\n", 0},
    /* Forbidden. */
    {"a header field", "Subject: \xc3\xa9\r\n\r\nx\r\n", NULL, DOWNGRADE_HEADER},
    {"a header field of a part", MIXED "--b\r\nContent-Type: a/b; name=\"\xc3\xa9\"\r\n\r\nx\r\n--b--\r\n", NULL, DOWNGRADE_HEADER},
    {"a lone CR in a header", "Subject: a\rb\r\n\r\nx\r\n", NULL, DOWNGRADE_HEADER},
    {"a header line without white space", "Subject:" LINE_900 LINE_900 "\r\n\r\nx\r\n", NULL, DOWNGRADE_HEADER},
    {"signed", "Content-Type: multipart/signed; boundary=b\r\n\r\n--b\r\n\r\n\xe9\r\n--b--\r\n", NULL, DOWNGRADE_SIGNED},
    {"signed deep inside", MIXED "--b\r\n\r\n\xe9\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nContent-Type: Multipart/Signed; boundary=s\r\n\r\n--s\r\nX: \xe9\r\n\r\n--s--\r\n--b--\r\n", NULL, DOWNGRADE_SIGNED},
    {"signed, without boundary", "Content-Type: multipart/signed\r\n\r\n\xe9\r\n", NULL, DOWNGRADE_SIGNED},
    {"a long line in what is signed", "Content-Type: multipart/signed; boundary=b\r\n\r\n--b\r\n\r\n" LINE_900 LINE_900 "\r\n--b--\r\n", NULL, DOWNGRADE_SIGNED},
    {"encrypted", "Content-Type: multipart/encrypted; boundary=b\r\n\r\n--b\r\n\r\n\xe9\r\n--b--\r\n", NULL, DOWNGRADE_ENCRYPTED},
    {"a fragment", "Content-Type: message/partial; id=x; number=1\r\nContent-Transfer-Encoding: 8bit\r\n\r\nSubject: x\r\n\r\n\xe9\r\n", NULL, DOWNGRADE_PARTIAL},
    {"a fragment in a part", MIXED "--b\r\nContent-Type: message/partial\r\n\r\n\xe9\r\n--b--\r\n", NULL, DOWNGRADE_PARTIAL},
    {"external", "Content-Type: message/external-body\r\n\r\n\xe9\r\n", NULL, DOWNGRADE_EXTERNAL},
    {"another message type", "Content-Type: message/delivery-status\r\n\r\nX: \xe9\r\n", NULL, DOWNGRADE_COMPOSITE},
    {"a multipart without boundary", "Content-Type: multipart/mixed\r\n\r\n\xe9\r\n", NULL, DOWNGRADE_COMPOSITE},
    {"base64 that is none", "Content-Type: text/plain\r\n" BASE64 "\r\n\xe9\r\n", NULL, DOWNGRADE_ENCODED},
    {"quoted-printable that is none", "Content-Type: text/plain\r\n" QP "\r\n\xe9\r\n", NULL, DOWNGRADE_ENCODED},
    {"an unknown encoding", "Content-Transfer-Encoding: x-uu\r\n\r\n\xe9\r\n", NULL, DOWNGRADE_ENCODED},
    {"an encoded multipart", "Content-Type: multipart/mixed; boundary=b\r\n" BASE64 "\r\n--b\r\n\r\n\xe9\r\n--b--\r\n", NULL, DOWNGRADE_ENCODED},
    {"two types", "Content-Type: text/plain\r\nContent-Type: text/html\r\n\r\n\xe9\r\n", NULL, DOWNGRADE_BROKEN},
    {"two encodings", "Content-Transfer-Encoding: 7bit\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\xe9\r\n", NULL, DOWNGRADE_BROKEN},
    {"a boundary that never comes", MIXED "\xe9\r\n", NULL, DOWNGRADE_BROKEN},
    {"a preamble that would become a field", "Content-Type: multipart/x; boundary=b\r\nX\xe9: y\r\n\r\n--b--\r\n", NULL, DOWNGRADE_BROKEN},
    {"a delimiter of 8 bits", "Content-Type: multipart/x; boundary*=''%ff\r\n\r\n--\xff--\r\n", NULL, DOWNGRADE_BROKEN},
    {"an inner message that begins without an empty line", "Content-Type: message/rfc822\r\nodd\r\n\xe9\r\n", NULL, DOWNGRADE_BROKEN},
};
/* clang-format on */

static enum downgrade_verdict
verdict_of(const struct sample *s)
{
    if (text_starts(text_from(s->content), TEXT("Content-Type: message/partial")))
        return DOWNGRADE_FRAGMENT;
    if (s->reason != DOWNGRADE_NO_REASON)
        return DOWNGRADE_FORBIDDEN;
    return s->out == NULL ? DOWNGRADE_NOT_NEEDED : DOWNGRADE_CONVERTIBLE;
}

/* Once converted, the content keeps every promise and needs nothing more. */
static size_t
count_broken_promises(struct text content, const struct downgrade_way *way,
                      const struct conversion *c)
{
    struct text out = buffer_text(&c->out);
    struct conversion again = kit_convert(out, way, 0, SIZE_MAX);
    size_t wrong = 0;
    wrong += again.verdict != DOWNGRADE_NOT_NEEDED;
    wrong += out.length > c->size_max;
    wrong += !kit_is_clean(out, way->to_8bit);
    wrong += out.at[out.length - 1] != '\n';
    wrong += !kit_is_same_reading(content, out, way->from_binary);
    buffer_free(&again.out);
    return wrong;
}

static void
test_sample(const struct sample *s)
{
    struct text content = text_from(s->content);
    struct downgrade_way way = {.to_8bit = false};
    struct conversion whole = kit_convert(content, &way, 0, SIZE_MAX);
    size_t wrong = 0, step = content.length > 500 ? 37 : 1;
    is_number(whole.verdict, verdict_of(s), s->name);
    is_number(whole.reason, s->reason, "the reason");
    if (s->out != NULL && strcmp(s->out, "?") != 0)
        is_text(buffer_text(&whole.out), text_from(s->out), "the result");
    if (whole.verdict == DOWNGRADE_CONVERTIBLE)
        is_number(count_broken_promises(content, &way, &whole), 0, "the promises");
    for (size_t first = 0; first <= content.length; first += step)
        for (size_t piece = 1; piece <= 40; piece += step) {
            struct conversion cut = kit_convert(content, &way, first, piece);
            wrong += cut.verdict != whole.verdict || cut.reason != whole.reason ||
                     cut.size_max != whole.size_max ||
                     !text_equal(buffer_text(&cut.out), buffer_text(&whole.out));
            buffer_free(&cut.out);
        }
    is_number(wrong, 0, "the same however it is cut");
    buffer_free(&whole.out);
}

/* --- Other ways */

/* With their NULs, so with lengths. */
#define SAMPLE(literal) literal, sizeof(literal) - 1

/* clang-format off */
static const struct other {
    const char *name;
    struct downgrade_way way;
    const char *content;
    size_t length;
    const char *out; /* NULL: not needed */
    enum downgrade_reason reason;
} others[] = {
    {"8 bits to a hop that takes them", {false, true}, SAMPLE(UTF8 "Subject: \xc3\xa9\r\n\r\n\xc3\xa9\r\n"), NULL, 0},
    {"a NUL is for nobody", {true, true}, SAMPLE(MIXED "--b\r\nContent-Type: a/b\r\nContent-Transfer-Encoding: binary\r\n\r\nx\0y\r\n--b\r\n" UTF8 "\r\n\xc3\xa9\r\n--b--\r\n"),
     MIXED "--b\r\nContent-Type: a/b\r\n" BASE64 "\r\neAB5\r\n--b\r\n" UTF8 "\r\n\xc3\xa9\r\n--b--\r\n", 0},
    {"binary labels become what is true", {true, true}, SAMPLE("MIME-Version: 1.0\r\nContent-Type: multipart/x; boundary=b\r\nContent-Transfer-Encoding: binary\r\n\r\n--b\r\nContent-Transfer-Encoding: binary\r\n\r\n\xe9\r\n"
     "--b\r\nContent-Transfer-Encoding: binary\r\n\r\nx\r\n--b\r\nContent-Type: a/b\r\n\r\n\n\r\n--b--\r\n"),
     "MIME-Version: 1.0\r\nContent-Type: multipart/x; boundary=b\r\nContent-Transfer-Encoding: 8bit\r\n\r\n--b\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\xe9\r\n"
     "--b\r\nContent-Transfer-Encoding: 7bit\r\n\r\nx\r\n--b\r\nContent-Type: a/b\r\n" BASE64 "\r\nCg==\r\n--b--\r\n", 0},
    {"line ends of binary content are data", {true, false}, SAMPLE("MIME-Version: 1.0\r\nContent-Type: a/b\r\n\r\na\nb\rc\r\n\r\r\n\n"),
     "MIME-Version: 1.0\r\nContent-Type: a/b\r\n" BASE64 "\r\nYQpiDWMNCg0NCgo=\r\n", 0},
    {"also in text", {true, false}, SAMPLE("MIME-Version: 1.0\r\nContent-Type: text/plain\r\n\r\nenough text for it\nto be read\r\n"),
     "MIME-Version: 1.0\r\nContent-Type: text/plain\r\n" QP "\r\nenough text for it=0Ato be read\r\n", 0},
    {"a boundary with line feeds", {true, false}, SAMPLE("MIME-Version: 1.0\nContent-Type: multipart/x; boundary=b\n\npre\n--b\n\nx\n--b--\npost\n"),
     "MIME-Version: 1.0\r\nContent-Type: multipart/x; boundary=b\r\n\r\npre\r\n--b\r\n\r\nx\r\n--b--\r\npost\r\n", 0},
    {"what is signed and binary", {true, false}, SAMPLE("Content-Type: multipart/signed; boundary=b\r\n\r\n--b\r\n\r\na\nb\r\n--b--\r\n"), NULL, DOWNGRADE_SIGNED},
    {"a NUL in a header", {true, true}, SAMPLE("Subject: \0\r\n\r\nx\r\n"), NULL, DOWNGRADE_HEADER},
    {"a NUL in a preamble", {true, true}, SAMPLE(MIXED "a\0b\xe9\r\n--b\r\n\r\nx\r\n--b--\r\n"), MIXED "a?b\xe9\r\n--b\r\n\r\nx\r\n--b--\r\n", 0},
    {"binary content that ends without a line end", {true, false}, SAMPLE("X: y\r\n\r\nplain"), NULL, 0},
};
/* clang-format on */

TEST(others)
{
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        const struct other *o = &others[i];
        struct text content = text_of(o->content, o->length);
        struct conversion c = kit_convert(content, &o->way, 0, SIZE_MAX);
        is_number(c.reason, o->reason, o->name);
        is_number(c.verdict == DOWNGRADE_CONVERTIBLE, o->out != NULL, "the verdict");
        if (o->out != NULL) {
            is_text(buffer_text(&c.out), text_from(o->out), "the result");
            is_number(count_broken_promises(content, &o->way, &c), 0, "the promises");
        }
        for (size_t piece = 1; piece < 80; piece++) {
            struct conversion cut = kit_convert(content, &o->way, 0, piece);
            if (!text_equal(buffer_text(&cut.out), buffer_text(&c.out)) ||
                cut.reason != c.reason)
                ok_named(false, "the same however it is cut");
            buffer_free(&cut.out);
        }
        buffer_free(&c.out);
    }
}

/* --- Other facts */

TEST(facts)
{
    struct downgrade_way way = {.to_8bit = false};
    struct conversion c = kit_convert(TEXT("DKIM-Signature: x\r\n\r\n\xe9\r\n"), &way, 0, 9);
    ok_named(c.dkim, "a signature at the top");
    buffer_free(&c.out);
    c = kit_convert(TEXT("Content-Type: message/rfc822\r\n\r\nDKIM-Signature: x\r\n\r\n\xe9\r\n"),
                    &way, 0, 9);
    ok_named(!c.dkim, "one inside breaks nothing that is checked");
    buffer_free(&c.out);
    struct downgrade *d = downgrade_new(&way);
    downgrade_scan(d, TEXT("Content-Type: multipart/signed; boundary=b\r\n\r\n\xe9\r\n"));
    ok(downgrade_scan_end(d) == DOWNGRADE_FORBIDDEN);
    is_string(downgrade_reason_text(d), "the message is signed", "a sentence says why");
    downgrade_free(&d);
    ok(d == NULL);
    downgrade_free(&d);
}

/* Started again in the midst, and left in the midst. */
TEST(restart)
{
    static const char content[] = "MIME-Version: 1.0\r\nContent-Type: a/b\r\n\r\n\xff\xfe\xfd\r\n";
    struct downgrade_way way = {.to_8bit = false};
    struct text t = TEXT(content);
    struct buffer out, again;
    struct downgrade *d = downgrade_new(&way);
    buffer_init(&out, KIT_SIZE_MAX);
    buffer_init(&again, KIT_SIZE_MAX);
    downgrade_scan(d, t);
    ok(downgrade_scan_end(d) == DOWNGRADE_CONVERTIBLE);
    downgrade_start(d, kit_write, &out);
    downgrade_add(d, text_before(t, t.length - 3));
    buffer_clear(&out);
    downgrade_start(d, kit_write, &out);
    downgrade_add(d, t);
    downgrade_end(d);
    downgrade_start(d, kit_write, &again);
    downgrade_add(d, t);
    downgrade_end(d);
    is_text(buffer_text(&out), buffer_text(&again), "the same each time");
    downgrade_start(d, kit_write, &out);
    downgrade_add(d, text_before(t, t.length - 3));
    downgrade_free(&d);
    buffer_free(&out);
    buffer_free(&again);
}

/* Content that is not what was scanned harms nobody. */
TEST(changed)
{
    struct downgrade_way way = {.to_8bit = false};
    struct downgrade *d = downgrade_new(&way);
    FIXTURE(buffer, out, buffer_init, buffer_free, KIT_SIZE_MAX);
    downgrade_scan(d, TEXT("X: y\r\n\r\n\xff\r\n"));
    ok(downgrade_scan_end(d) == DOWNGRADE_CONVERTIBLE);
    downgrade_start(d, kit_write, &out);
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
        downgrade_add(d, text_from(samples[i].content));
    downgrade_end(d);
    downgrade_start(d, kit_write, &out);
    downgrade_add(d, TEXT("Content-Type: multipart/x; boundary=b\r\n\r\n--b\r\n\r\n\xff\r\n"));
    downgrade_end(d);
    ok(out.length > 0 && out.at[out.length - 1] == '\n');
    downgrade_free(&d);
}

int
main(void)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
        test_sample(&samples[i]);
    tap_tests("");
    return done();
}
