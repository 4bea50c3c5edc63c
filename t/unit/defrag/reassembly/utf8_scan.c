/* defrag/reassembly/utf8_scan.c: UTF-8 in the headers of a message at any level, in any pieces. */
#include "defrag/reassembly/utf8_scan.h"

#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

/* 8 = a byte above 127, u = in a header, ? = unsure */
static const struct {
    const char *facts, *message, *name;
} rows[] = {
    {"",   "Subject: x\r\n\r\nbody\r\n",                                                "plain"                },
    {"8",
     "Subject: x\r\n\r\nb\xc3\xb6"
     "dy\r\n",                                                                          "in the body"          },
    {"8u", "Subject: \xc3\xb6\r\n\r\nbody\r\n",                                         "in the header"        },
    {"8u", "Subject: x\r\n \xc3\xb6\r\n\r\nbody\r\n",                                   "in a fold of it"      },
    {"8",  "Content-Type: text/plain\r\n\r\nSubject: \xc3\xb6\r\n\r\n",
     "what looks like one"                                                                                     },
    {"8u",
     "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nx\r\n--b\r\n"
     "Content-Disposition: attachment; filename=\"\xc3\xb6\"\r\n\r\ny\r\n--b--\r\n",    "of a part"            },
    {"8",
     "Content-Type: multipart/mixed; boundary=b\r\n\r\n\xc3\xb6: y\r\n--b\r\n\r\nX: "
     "\xc3\xb6\r\n"
     "--b--\r\nX: \xc3\xb6\r\n",                                                        "around parts"         },
    {"8u", "Content-Type: message/rfc822\r\n\r\nSubject: \xc3\xb6\r\n\r\nx\r\n",
     "within"                                                                                                  },
    {"8u",
     "Content-Type: message/rfc822\r\n\r\n"
     "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n"
     "Content-Type: message/rfc822\r\n\r\nX: \xff\r\n\r\n--b--\r\n",                    "at the fourth level"  },
    {"8",
     "Content-Type: message/rfc822\r\n\r\nContent-Type: text/plain\r\n\r\nX: \xff\r\n", "but not in its body"  },
    {"8",  "Content-Type: message/partial; id=x; number=1\r\n\r\nX: \xff\r\n",
     "a fragment is not looked into"                                                                           },
    {"8",  "no header \xff\r\n",                                                        "no header"            },
    {"8u", "X: \xff",                                                                   "no more than a header"},
    {"",   "",                                                                          "nothing"              },
};

static bool
has(const char *facts, char fact)
{
    return strchr(facts, fact) != NULL;
}

static void
inspect(struct inspection *i, struct text message, size_t step)
{
    utf8_scan_start(i);
    for (size_t at = 0; at < message.length; at += step)
        utf8_scan_add(i, text_before(text_after(message, at), step));
    utf8_scan_end(i);
}

TEST(levels)
{
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct text message = text_from(rows[r].message);
        size_t wrong = 0;
        for (size_t step = 1; step <= message.length + 1; step++) {
            struct inspection i;
            inspect(&i, message, step);
            wrong += i.eight_bit != has(rows[r].facts, '8') ||
                     i.utf8 != has(rows[r].facts, 'u') ||
                     i.unsure != has(rows[r].facts, '?');
        }
        is_number((long long)wrong, 0, rows[r].name);
    }
}

/* More levels than are looked into. */
TEST(deep)
{
    struct inspection i;
    FIXTURE(buffer, b, buffer_init, buffer_free, 100 * 1000);
    bool fits = true;
    for (int level = 0; level < 200; level++)
        fits = fits && buffer_add(&b, TEXT("Content-Type: message/rfc822\r\n\r\n"));
    fits = fits && buffer_add(&b, TEXT("X: \xff\r\n\r\n"));
    ok(fits);
    inspect(&i, buffer_text(&b), 1000);
    ok_named(i.eight_bit && i.unsure && !i.utf8, "beyond all levels it is not sure");
}

/* Dropped half way. */
TEST(dropped)
{
    struct inspection i;
    utf8_scan_start(&i);
    utf8_scan_add(&i,
                TEXT("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nX: "));
    utf8_scan_end(&i);
    utf8_scan_end(&i);
    ok(!i.eight_bit && !i.utf8);
}
