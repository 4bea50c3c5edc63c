/* Dates in every month, before 1970, at the ends of the range; always English, always
 * UTC. */
#include "mime/date.h"

#include "t/support/tap.h"

#include <locale.h>

static void
is_date(int64_t ms, const char *want)
{
    char out[DATE_TEXT_MAX];
    memset(out, 'x', sizeof(out));
    date_format(ms, out);
    is_string(out, want, want);
}

static void
is_read(const char *t, int64_t want)
{
    int64_t ms = -1;
    bool good = date_read_utc(text_from(t), &ms);
    ok_named(good == (want >= 0) && (want < 0 || ms == want), t);
}

/* RFC 3339 §5.6 */
static void
reads(void)
{
    static const char *const bad[] = {
        "", "2030", "2030-01-31", "2030-01-31T08:00:00", "2030-01-31 08:00:00Z", "2030-1-31T08:00:00Z", "2030-02-30T08:00:00Z", "2029-02-29T08:00:00Z",
        "2030-13-01T08:00:00Z", "2030-00-01T08:00:00Z", "2030-01-00T08:00:00Z", "2030-01-31T24:00:00Z", "2030-01-31T08:60:00Z", "2030-01-31T08:00:61Z",
        "2030-01-31T08:00:00.Z", "2030-01-31T08:00:00ZZ", "2030-01-31T08:00:00+1:00", "2030-01-31T08:00:00+01:60", "2030-01-31T08:00:00+24:00",
        "2030-01-31T08:00:00+0100", "2030-01-31T08:00:00*01:00", "1969-12-31T23:59:59Z", "+030-01-31T08:00:00Z", "2030-01-31T08:00:-1Z"};
    is_read("1970-01-01T00:00:00Z", 0);
    is_read("2026-11-21T03:05:08Z", 1795230308000);
    is_read("2026-11-21t03:05:08z", 1795230308000);
    is_read("2026-11-21T03:05:08.2Z", 1795230308200);
    is_read("2026-11-21T03:05:08.123456789Z", 1795230308123);
    is_read("2026-11-21T04:05:08+01:00", 1795230308000);
    is_read("2026-11-20T22:35:08-04:30", 1795230308000);
    is_read("2024-02-29T23:59:59Z", 1709251199000);
    is_read("2016-12-31T23:59:60Z", 1483228800000);
    is_read("9999-12-31T23:59:59Z", 253402300799000);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        is_read(bad[i], -1);
    for (int64_t day = 0; day < 60000; day += 59) {
        char out[DATE_TEXT_MAX];
        int64_t ms = -1, want = day * INT64_C(86461000);
        date_format_utc(want, out);
        if (!date_read_utc(text_from(out), &ms) || ms != want)
            ok_named(false, out);
    }
}

int
main(void)
{
    setenv("TZ", "America/St_Johns", 1);
    setlocale(LC_ALL, "de_DE.UTF-8");
    reads();
    is_date(0, "Thu, 1 Jan 1970 00:00:00 +0000");
    is_date(999, "Thu, 1 Jan 1970 00:00:00 +0000");
    is_date(1000, "Thu, 1 Jan 1970 00:00:01 +0000");
    is_date(-1, "Wed, 31 Dec 1969 23:59:59 +0000");
    is_date(-1000, "Wed, 31 Dec 1969 23:59:59 +0000");
    is_date(-1001, "Wed, 31 Dec 1969 23:59:58 +0000");
    is_date(1795230308000, "Sat, 21 Nov 2026 03:05:08 +0000");
    is_date(1795230308999, "Sat, 21 Nov 2026 03:05:08 +0000");
    is_date(951782400000, "Tue, 29 Feb 2000 00:00:00 +0000");
    is_date(951868800000, "Wed, 1 Mar 2000 00:00:00 +0000");
    is_date(1709164799000, "Wed, 28 Feb 2024 23:59:59 +0000");
    is_date(1709251199000, "Thu, 29 Feb 2024 23:59:59 +0000");
    is_date(4107542399000, "Sun, 28 Feb 2100 23:59:59 +0000");
    is_date(4107542400000, "Mon, 1 Mar 2100 00:00:00 +0000");
    is_date(2147483648000, "Tue, 19 Jan 2038 03:14:08 +0000");
    is_date(253402300799000, "Fri, 31 Dec 9999 23:59:59 +0000");
    is_date(-62135596800000, "Mon, 1 Jan 0001 00:00:00 +0000");
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t ms = 1609459200000; /* 1 January 2021 */
    for (int month = 0; month < 12; month++) {
        char out[DATE_TEXT_MAX], want[40];
        date_format(ms, out);
        snprintf(want, sizeof(want), "1 %s 2021 00:00:00 +0000", months[month]);
        is_string(out + 5, want, "the first of each month");
        ms += (int64_t)days[month] * 86400000;
    }
    char out[DATE_TEXT_MAX];
    date_format(INT64_MAX, out);
    ok(strlen(out) < DATE_TEXT_MAX && text_ends_nocase(text_from(out), TEXT(" +0000")));
    date_format(INT64_MIN, out);
    ok(strlen(out) < DATE_TEXT_MAX && text_ends_nocase(text_from(out), TEXT(" +0000")));
    return done();
}
