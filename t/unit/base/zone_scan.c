/* Time zones are read as sscanf() reads them. */
#include "base/zone_scan.h"

#include "t/support/tap.h"

/* The formats of glibc, which reads signs by itself. */
TEST(like_sscanf)
{
    static const char *const texts[] = {"",           "2",     "02:30",  "2:30:15",
                                        "2:30:15,M3", "2:",    "2:x",    "24:0:0",
                                        "167",        "99999", "M3.5.0", "M10.5.0/3",
                                        "M3.5",       "M",     "M3..0",  "J60",
                                        "x"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        unsigned short want[3] = {7, 8, 9}, got[3] = {7, 8, 9};
        int want_end = -1, got_end = -1;
        int wanted = sscanf(texts[i], "%hu%n:%hu%n:%hu%n", &want[0], &want_end,
                            &want[1], &want_end, &want[2], &want_end);
        int count = zone_scan(texts[i], "%hu%n:%hu%n:%hu%n", &got[0], &got_end, &got[1],
                              &got_end, &got[2], &got_end);
        if (wanted > 0 || count > 0) {
            is_number(count, wanted, texts[i]);
            is_number(got_end, want_end, "as far");
            ok(memcmp(got, want, sizeof(got)) == 0);
        }
        wanted =
            sscanf(texts[i], "M%hu.%hu.%hu%n", &want[0], &want[1], &want[2], &want_end);
        count =
            zone_scan(texts[i], "M%hu.%hu.%hu%n", &got[0], &got[1], &got[2], &got_end);
        ok((wanted == 3) == (count == 3));
        is_number(got_end, want_end, "a rule, as far");
        ok(memcmp(got, want, sizeof(got)) == 0);
    }
}

TEST(other_formats)
{
    int end = -1;
    is_number(zone_scan("12", "%d%n", &end, &end), 0,
              "of another directive nothing is read");
    is_number(end, -1, "nor anything behind it");
}
