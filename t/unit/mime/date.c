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

int
main(void)
{
    setenv("TZ", "America/St_Johns", 1);
    setlocale(LC_ALL, "de_DE.UTF-8");
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
