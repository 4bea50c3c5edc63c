/* defrag/reassembly/fragment.c: what is a fragment, what is malformed, and whose set it is. The
 * numbers are those of the checks in the specification. */
#include "defrag/reassembly/fragment.h"

#include "t/support/tap.h"

static const struct fragment_envelope ordinary = {.sender = TEXT("s@o.example"),
                                                  .parts_max = 1000};

static struct fragment_reading
read_message(const char *message)
{
    struct fragment_reading r;
    fragment_read(text_from(message), &ordinary, &r);
    return r;
}

/* A message whose Content-Type is this. */
static struct fragment_reading
read_type(const char *value)
{
    char message[4096];
    snprintf(
        message, sizeof(message),
        "From: s@o.example\r\nMIME-Version: 1.0\r\nContent-Type: %s\r\n\r\nbody\r\n",
        value);
    return read_message(message);
}

/* "id number/total", "malformed: why", "not: why" or "not". */
static const char *
told(const struct fragment_reading *r)
{
    static char out[1024];
    if (r->kind == FRAGMENT_GOOD)
        snprintf(out, sizeof(out), "%.*s %u/%u", TEXT_ARGS(fragment_id(r)), r->number,
                 r->total);
    else
        snprintf(out, sizeof(out), "%s%s%s",
                 r->kind == FRAGMENT_NOT ? "not" : "malformed",
                 r->why == NULL ? "" : ": ", r->why == NULL ? "" : r->why);
    return out;
}

struct example {
    const char *value, *told, *name;
};

static const struct example types[] = {
    {"message/partial; id=\"x@h\"; number=1; total=3",                                 "x@h 1/3",                                   "plain"                                   },
    {"message/partial; total=3; id=\"x@h\"; number=3",                                 "x@h 3/3",                                   "any order"                               },
    {"message/partial; id=\"x@h\"; number=2",                                          "x@h 2/0",                                   "no total"                                },
    {"MESSAGE/Partial; ID=\"X@h\"; NUMBER=1; Total=3",                                 "X@h 1/3",                                   "check 1: any case"                       },
    {"(a) message (b(c)\\)) / (d) partial (e)\r\n\t;\r\n id (f) = (g)\r\n \"x@h\" (h);"
     "(i)number(j)=(k)1(l);total=(m;\"n)3(o",                                     "x@h 1/3",                                   "check 2: comments and folds everywhere"  },
    {"message/partial; id=abc.def; number=\"1\"; total=\" 3 \"",                       "abc.def 1/3",
     "check 3: unquoted id, quoted numbers"                                                                                                                                   },
    {"message/partial; id=\"a\\\"b\\\\c\"; number=1",                                  "a\"b\\c 1/0",
     "check 3: quoted pairs"                                                                                                                                                  },
    {"message/partial; id=a@b/c[1]; number=1",                                         "a@b/c[1] 1/0",
     "check 3: unquoted id with specials"                                                                                                                                     },
    {"message/partial; id*=us-ascii'en'a%40b; number=1",                               "a@b 1/0",
     "check 3: RFC 2231"                                                                                                                                                      },
    {"message/partial; number=2; id*1=\"host\"; id*0=\"abc@\"; total=(two) 2",
     "abc@host 2/2",                                                                                                                "check 3: E9: continued parameters"       },
    {"message/partial; number=2; id*1*=%68ost; id*0*=''abc%40; id*2=\"%41\"; total=2",
     "abc@host%41 2/2",                                                                                                             "check 3: continued, some of them encoded"},
    {"message/partial; id*=''other; id=plain; number=1",                               "plain 1/0",
     "check 3: plain before encoded"                                                                                                                                          },
    {"message/partial; id*0=oth; id*1=er; number=1; id=plain",                         "plain 1/0",
     "check 3: plain before continued"                                                                                                                                        },
    {"message/partial; id=\"=?utf-8?q?a?=\"; number=1",                                "=?utf-8?q?a?= 1/0",
     "check 3: encoded words are plain text"                                                                                                                                  },
    {"message/partial; id=\"<20160114.0012@host>\"; number=1",
     "<20160114.0012@host> 1/0",                                                                                                    "check 4: angle brackets stay"            },
    {"message/partial;;id=\"x\"; number=1;;",                                          "x 1/0",                                     "empty parameters"                        },
    {"message/partial;id=x;number=01;total=00000003",                                  "x 1/3",                                     "leading zeros"                           },
    {"message/partial; id=x; number=0",                                                "malformed: numbering begins with 1, not 0",
     "check 5: 0"                                                                                                                                                             },
    {"message/partial; id=x; number=-1",                                               "malformed: number or total is no number",
     "check 5: -1"                                                                                                                                                            },
    {"message/partial; id=x; number=+1",                                               "malformed: number or total is no number",
     "check 5: +1"                                                                                                                                                            },
    {"message/partial; id=x; number=1.5",                                              "malformed: number or total is no number",
     "check 5: 1.5"                                                                                                                                                           },
    {"message/partial; id=x; number=0x1",                                              "malformed: number or total is no number",
     "check 5: 0x1"                                                                                                                                                           },
    {"message/partial; id=x; number=99999999999",
     "malformed: number or total is no number",                                                                                     "check 5: 99999999999"                    },
    {"message/partial; id=x; number=4294967297",
     "malformed: number or total is no number",                                                                                     "check 5: 2^32 + 1"                       },
    {"message/partial; id=x; number=\"\"",                                             "malformed: number or total is no number",
     "check 5: empty"                                                                                                                                                         },
    {"message/partial; id=x; number=\"1 2\"",                                          "malformed: number or total is no number",
     "check 5: two numbers"                                                                                                                                                   },
    {"message/partial; id=x; number=1; total=0",
     "malformed: numbering begins with 1, not 0",                                                                                   "check 5: total 0"                        },
    {"message/partial; id=x; number=1; total=",
     "malformed: number or total is no number",                                                                                     "check 5: empty total"                    },
    {"message/partial; id=x; number=4; total=3",
     "malformed: its number is above its total",                                                                                    "check 6: total below number"             },
    {"message/partial; number=1",                                                      "malformed: it has no id",                   "check 7: no id"                          },
    {"message/partial; id=\"\"; number=1",                                             "malformed: it has no id",
     "check 7: empty id"                                                                                                                                                      },
    {"message/partial; id=x",                                                          "malformed: it has no number",               "no number"                               },
    {"message/partial",                                                                "malformed: it has no id",                   "nothing"                                 },
    {"message/partial; id=x; id=y; number=1",
     "malformed: a parameter is given twice with different values",                                                                 "check 8: two ids"                        },
    {"message/partial; id=x; id=x; number=1",                                          "x 1/0",                                     "check 8: the same id twice"              },
    {"message/partial; id=x; number=1; number=2",
     "malformed: a parameter is given twice with different values",                                                                 "check 8: two numbers"                    },
    {"message/partial; id=x; number=1; total=2; total=3",
     "malformed: a parameter is given twice with different values",                                                                 "check 8: two totals"                     },
    {"message/partial; id=x; number=1; total=1",                                       "x 1/1",                                     "check 13: a set of one"                  },
    {"message/partial; id=x; number=1; total=1000",                                    "x 1/1000",                                  "check 30: 1000 parts"                    },
    {"message/partial; id=x; number=1; total=1001",                                    "not: its set has too many parts",
     "check 31: 1001 parts"                                                                                                                                                   },
    {"message/partial; id=x; number=1001",                                             "not: its set has too many parts",
     "check 31: part 1001"                                                                                                                                                    },
    {"message/partial; id=x; number=999999999",                                        "not: its set has too many parts",
     "check 31: part 999999999"                                                                                                                                               },
    {"message/rfc822",                                                                 "not",                                       "another type"                            },
    {"message/partially; id=x; number=1",                                              "not",                                       "another subtype"                         },
    {"text/plain; name=\"message/partial\"; id=x; number=1",                           "not",                                       "a name"                                  },
    {"",                                                                               "not",                                       "no type at all"                          },
};

TEST(types)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct fragment_reading r = read_type(types[i].value);
        is_string(told(&r), types[i].told, types[i].name);
    }
}

#define PARTIAL "Content-Type: message/partial; id=x; number=1\r\n"

static const struct example messages[] = {
    {PARTIAL PARTIAL "\r\n",                                                              "malformed: it has two Content-Type fields",
     "check 9: the same type twice"                                                                                                                                                                     },
    {"Content-Type: text/plain\r\n" PARTIAL "\r\n",
     "malformed: it has two Content-Type fields",                                                                                                        "check 9: the second of two"                   },
    {PARTIAL "content-TYPE : text/plain\r\n\r\n",
     "malformed: it has two Content-Type fields",                                                                                                        "check 9: the first of two"                    },
    {"Content-Type: text/plain\r\nContent-Type: text/html\r\n\r\n",                       "not",
     "check 9: two types that are none of ours"                                                                                                                                                         },
    {PARTIAL "Content-Transfer-Encoding: base64\r\n\r\n",
     "malformed: it is encoded, which message/partial must not be",                                                                                      "check 10: base64"                             },
    {"Content-Transfer-Encoding: (c) Quoted-Printable\r\n" PARTIAL "\r\n",
     "malformed: it is encoded, which message/partial must not be",                                                                                      "check 10: quoted-printable"                   },
    {PARTIAL "Content-Transfer-Encoding: x-own\r\n\r\n",
     "malformed: it is encoded, which message/partial must not be",                                                                                      "check 10: unknown"                            },
    {PARTIAL "Content-Transfer-Encoding: ;\r\n\r\n",
     "malformed: it is encoded, which message/partial must not be",                                                                                      "check 10: no word"                            },
    {PARTIAL
     "Content-Transfer-Encoding: 7bit\r\nContent-Transfer-Encoding: base64\r\n\r\n", "malformed: it is encoded, which message/partial must not be",
     "check 10: one of two"                                                                                                                                                                             },
    {PARTIAL "Content-Transfer-Encoding: 7BIT\r\n\r\n",                                   "x 1/0",                                                       "7bit"                                         },
    {PARTIAL "Content-Transfer-Encoding: 8bit\r\n\r\n",                                   "x 1/0",                                                       "8bit"                                         },
    {PARTIAL "Content-Transfer-Encoding: binary (no)\r\n\r\n",                            "x 1/0",                                                       "binary"                                       },
    {PARTIAL "Content-Transfer-Encoding:  \r\n\r\n",                                      "x 1/0",                                                       "an empty encoding"                            },
    {"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
     "--b\r\n\r\ntext\r\n--b\r\nContent-Type: Message/Partial; number=1; total=5; "
     "id=x\r\n"
     "\r\npart\r\n--b--\r\n",                                                        "not",                                                         "check 11: E11: within a multipart"            },
    {"Subject: x\r\n\r\n" PARTIAL "\r\n",                                                 "not",                                                         "check 11: in the body"                        },
    {"From s@o.example Sat Nov 21\r\n" PARTIAL "\r\n",                                    "x 1/0",
     "behind a line of a mailbox"},
    {"no field\r\n" PARTIAL "\r\n", "not", "behind a line that is no field"                                                                                                                                                                   },
    {PARTIAL "no field\r\n\r\n",
     "malformed: its header ends with a line that is no field",                                                                                          "a header that does not end with an empty line"},
    {PARTIAL,                                                                             "x 1/0",                                                       "no body and no empty line"                    },
    {PARTIAL "\r\n",                                                                      "x 1/0",                                                       "an empty body"                                },
    {"",                                                                                  "not",                                                         "nothing"                                      },
    {"\r\n",                                                                              "not",                                                         "an empty line"                                },
};

TEST(messages)
{
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        struct fragment_reading r = read_message(messages[i].value);
        is_string(told(&r), messages[i].told, messages[i].name);
    }
}

TEST(body)
{
    struct fragment_reading r = read_message(PARTIAL "\r\n\r\nbody");
    is_number(r.body, strlen(PARTIAL) + 2, "the body begins behind the empty line");
    is_string(r.why, "it has no MIME-Version", "check 12: no MIME-Version is only odd");
    r = read_message("MIME-Version: 1.0\n"
                     "Content-Type: message/partial;\n id=x;number=1\n\nb");
    is_number(r.body, 65, "... so with line feeds alone");
    ok_named(r.why == NULL, "nothing is odd about that");
    r = read_message(PARTIAL "\r\n");
    is_number(r.body, strlen(PARTIAL) + 2, "the body may be empty");
    r = read_message(PARTIAL);
    is_number(r.body, strlen(PARTIAL), "... or missing");
    r = read_type("message/partial; id=x; id*=''y; number=1");
    ok_named(r.kind == FRAGMENT_GOOD && strstr(r.why, "2231") != NULL,
             "two forms of an id are told");
}

TEST(envelope)
{
    struct fragment_envelope e = ordinary;
    struct fragment_reading r;
    struct text message = TEXT(PARTIAL "\r\n");
    e.sender = TEXT("");
    fragment_read(message, &e, &r);
    is_string(told(&r), "not: its sender is the null sender",
              "check 41: the null sender");
    ok_named(r.number == 0 && r.id_length == 0 && r.body == 0, "nothing more is told");
    e = ordinary;
    e.binary = true;
    fragment_read(message, &e, &r);
    is_string(told(&r), "not: its body is binary", "BODY=BINARYMIME");
    e = ordinary;
    e.parts_max = 10;
    fragment_read(TEXT("Content-Type: message/partial; id=x; number=11\r\n\r\n"), &e,
                  &r);
    is_string(told(&r), "not: its set has too many parts", "a limit of ten");
    e.sender = TEXT("");
    fragment_read(TEXT("Content-Type: message/partial; id=x\r\n\r\n"), &e, &r);
    is_string(told(&r), "malformed: it has no number",
              "malformed stays malformed, whoever sends it");
}

TEST(long_ids)
{
    char id[FRAGMENT_ID_MAX + 2], value[1024];
    memset(id, 'i', sizeof(id));
    id[FRAGMENT_ID_MAX] = '\0';
    snprintf(value, sizeof(value), "message/partial; number=1; id=%s", id);
    struct fragment_reading r = read_type(value);
    ok(r.kind == FRAGMENT_GOOD);
    is_text(fragment_id(&r), text_from(id), "an id of 512 bytes");
    id[FRAGMENT_ID_MAX] = 'i';
    id[FRAGMENT_ID_MAX + 1] = '\0';
    snprintf(value, sizeof(value), "message/partial; number=1; id=%s", id);
    r = read_type(value);
    is_string(told(&r), "not: its id is too long", "an id of 513");
    r = read_type("message/partial; number=1; id*=''..%2F..%00%FFx");
    is_text(fragment_id(&r), TEXT("../..\0\377x"), "an id is any bytes");
}

/* filler bytes of another field, and the type before or behind them. */
static struct fragment_reading
read_long(size_t filler, bool type_first, const char *tail)
{
    size_t size = filler + 4096;
    char *message = malloc(size);
    struct fragment_reading r;
    size_t length = (size_t)snprintf(message, size, "%sX: ", type_first ? PARTIAL : "");
    memset(message + length, 'x', filler);
    length += filler;
    length += (size_t)snprintf(message + length, size - length, "\r\n%s%s",
                               type_first ? "" : PARTIAL, tail);
    fragment_read(text_of(message, length), &ordinary, &r);
    free(message);
    return r;
}

TEST(long_headers)
{
    size_t most = FRAGMENT_HEADER_MAX - strlen(PARTIAL "X: \r\n\r\n");
    struct fragment_reading r = read_long(most, true, "\r\nbody");
    is_string(told(&r), "x 1/0", "a header as long as may be");
    is_number(r.body, FRAGMENT_HEADER_MAX, "... and where its body begins");
    r = read_long(most + 1, true, "\r\nbody");
    ok_named(r.kind == FRAGMENT_NOT, "one byte more");
    is_string(told(&r), "not: its header is too long", "... is too long");
    r = read_long(most - 5, true, "Subject: cut in the name\r\n\r\nbody");
    is_string(told(&r), "not: its header is too long",
              "a field cut off is no odd line");
    r = read_long(most - 100, true, "no field\r\n\r\nbody");
    ok_named(r.kind == FRAGMENT_MALFORMED, "an odd line below the limit is one");
    r = read_long(most + 100, false, "\r\nbody");
    is_string(told(&r), "not", "a type beyond the limit is not seen");
}

static const char *
key_of(enum fragment_trust trust, const char *login, const char *sender, const char *id)
{
    static char out[16][2 * DIGEST_SIZE + 1];
    static unsigned turn;
    unsigned char key[DIGEST_SIZE];
    char *to = out[turn++ % 16];
    fragment_key(trust, text_from(login), text_from(sender), text_from(id), key);
    for (size_t i = 0; i < DIGEST_SIZE; i++)
        snprintf(to + 2 * i, 3, "%02x", key[i]);
    return to;
}

static bool
same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

TEST(keys)
{
    const char *key = key_of(FRAGMENT_EXTERNAL, "", "s@o.example", "x@h");
    /* printf '\1\0\0\0\3ext\0\0\0\13s@o.example\0\0\0\3x@h' | sha256sum */
    is_string(key, "c98e707af2724edf930a3c0ccd832e295310dbea7f9f3775be5b46df3504b8e8",
              "the key is the same on every host and in every release");
    ok_named(same(key, key_of(FRAGMENT_EXTERNAL, "login", "s@O.EXAMPLE", "x@h")),
             "domain in any case, and no login");
    ok_named(!same(key, key_of(FRAGMENT_EXTERNAL, "", "S@o.example", "x@h")),
             "local part as it is");
    ok_named(!same(key, key_of(FRAGMENT_EXTERNAL, "", "t@o.example", "x@h")),
             "check 36: another sender");
    ok_named(!same(key, key_of(FRAGMENT_EXTERNAL, "", "s@o.example", "X@h")),
             "id as it is");
    ok_named(!same(key, key_of(FRAGMENT_INTERNAL, "", "s@o.example", "x@h")),
             "check 37: from inside");
    const char *login = key_of(FRAGMENT_LOGIN, "u", "s@o.example", "x@h");
    ok_named(!same(key, login), "check 37: authenticated");
    ok_named(!same(login, key_of(FRAGMENT_LOGIN, "v", "s@o.example", "x@h")),
             "check 37: as another");
    ok_named(!same(key_of(FRAGMENT_LOGIN, "", "s", "x"),
                   key_of(FRAGMENT_LOGIN, "s", "", "x")),
             "nothing moves from one field to the next");
    ok_named(same(key_of(FRAGMENT_EXTERNAL, "", "local", "x"),
                  key_of(FRAGMENT_EXTERNAL, "", "local", "x")) &&
                 !same(key_of(FRAGMENT_EXTERNAL, "", "local", "x"),
                       key_of(FRAGMENT_EXTERNAL, "", "Local", "x")),
             "a sender without a domain");
}
