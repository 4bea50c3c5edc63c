/* sscanf() as the C library's time zones call it: of the static program, where the
 * library's own would bring 85 KB of code for formats that nothing else uses. */
#ifndef BASE_ZONE_SCAN_H
#define BASE_ZONE_SCAN_H

/* Knows the directives %hu and %n alone, into unsigned short and int. Plain characters
 * match themselves, white space, too. Returns the number of values that were read. */
int zone_scan(const char *text, const char *format, ...);

#endif
