/* Reads numbers by a format: hours of a time zone, "2:30:00", and its rules, "M3.5.0".
 */
#include "base/zone_scan.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>

int
zone_scan(const char *text, const char *format, ...)
{
    const char *at = text;
    int count = 0;
    va_list out;
    va_start(out, format);
    for (; *format != '\0'; format++) {
        if (*format != '%') {
            if (*at != *format)
                break;
            at++;
        } else if (format[1] == 'n') {
            *va_arg(out, int *) = (int)(at - text);
            format++;
        } else {
            char *end;
            if (format[1] != 'h' || format[2] != 'u' || !isdigit((unsigned char)*at))
                break;
            *va_arg(out, unsigned short *) = (unsigned short)strtoul(at, &end, 10);
            at = end;
            count++;
            format += 2;
        }
    }
    va_end(out);
    return count;
}
