/* dates.c — writes a date as "Friday, 3rd of May 2019", "le 3 mai 2019", "3. Mai 2019" or "05/03/19 (US)". */
#include "dates.h"

#include <stdio.h>
#include <tenon/extras.h>

static const char *const months[5][12] = {{"January", "February", "March", "April", "May", "June", "July", "August",
                                           "September", "October", "November", "December"},
                                          {"Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August",
                                           "September", "Oktober", "November", "Dezember"},
                                          {"janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août",
                                           "septembre", "octobre", "novembre", "décembre"},
                                          {"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto",
                                           "septiembre", "octubre", "noviembre", "diciembre"},
                                          {"gennaio", "febbraio", "marzo", "aprile", "maggio", "giugno", "luglio",
                                           "agosto", "settembre", "ottobre", "novembre", "dicembre"}};
static const char *const days[5][7] = {
    {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"},
    {"Sonntag", "Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag"},
    {"dimanche", "lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi"},
    {"domingo", "lunes", "martes", "miércoles", "jueves", "viernes", "sábado"},
    {"domenica", "lunedì", "martedì", "mercoledì", "giovedì", "venerdì", "sabato"}};

static const char *ordinal(int d)
{
    if (d / 10 == 1) return "th";
    return d % 10 == 1 ? "st" : d % 10 == 2 ? "nd" : d % 10 == 3 ? "rd" : "th";
}

/* The civil date of a day, counted from 1970-01-01; the first supported day is 1900-01-01. */
static void civil(int day, int *y, int *m, int *d)
{
    int left = day + 25567; /* from 1900-01-01 */
    for (*y = 1900;; ++*y) {
        const int n = *y % 4 == 0 && (*y % 100 || *y % 400 == 0) ? 366 : 365;
        if (left < n) break;
        left -= n;
    }
    const bool leap = *y % 4 == 0 && (*y % 100 || *y % 400 == 0);
    for (*m = 0;; ++*m) {
        static const int length[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
        const int        n = length[*m] + (*m == 1 && leap);
        if (left < n) break;
        left -= n;
    }
    *d = left + 1;
}

void date_pair(uint64_t seed, uint64_t number, bool held_out, char text[DATE_TEXT], char iso[DATE_TEXT])
{
    enum { FIRST = -7305, DAYS = 36525 }; /* 1950 to 2049 */
    tn_generator g = {seed, number << 8};
    int          day, y, m, d;
    do day = (int)tn_random_below(&g, DAYS);
    while (((uint32_t)day * 2654435761u >> 16) % 10 == 0 ? !held_out : held_out);
    civil(FIRST + day, &y, &m, &d);
    const int   week = (4 + (FIRST + day) % 7 + 7) % 7, two = y % 100;
    const int   in = (int)tn_random_below(&g, 5), how = (int)tn_random_below(&g, 5);
    const char *month = months[in][m], *name = days[in][week];
    snprintf(iso, DATE_TEXT, "%04d-%02d-%02d", y, m + 1, d);
    switch (5 * in + how) {
    case 0: snprintf(text, DATE_TEXT, "%s, %d%s of %s %d", name, d, ordinal(d), month, y); break;
    case 1: snprintf(text, DATE_TEXT, "%s %d, %d", month, d, y); break;
    case 2: snprintf(text, DATE_TEXT, "%d %s %d", d, month, y); break;
    case 3: snprintf(text, DATE_TEXT, "%02d/%02d/%02d (US)", m + 1, d, two); break;
    case 4: snprintf(text, DATE_TEXT, "the %d%s of %s, %d", d, ordinal(d), month, y); break;
    case 5: snprintf(text, DATE_TEXT, "%s, den %d. %s %d", name, d, month, y); break;
    case 6: snprintf(text, DATE_TEXT, "%d. %s %d", d, month, y); break;
    case 7: snprintf(text, DATE_TEXT, "%02d.%02d.%d", d, m + 1, y); break;
    case 8: snprintf(text, DATE_TEXT, "%d.%d.%02d", d, m + 1, two); break;
    case 9: snprintf(text, DATE_TEXT, "am %d. %s %d", d, month, y); break;
    case 10: snprintf(text, DATE_TEXT, "le %d%s %s %d", d, d == 1 ? "er" : "", month, y); break;
    case 11: snprintf(text, DATE_TEXT, "%s %d %s %d", name, d, month, y); break;
    case 12: snprintf(text, DATE_TEXT, "le %s %d %s %d", name, d, month, y); break;
    case 13: snprintf(text, DATE_TEXT, "%02d/%02d/%d (FR)", d, m + 1, y); break;
    case 15: snprintf(text, DATE_TEXT, "%s, %d de %s de %d", name, d, month, y); break;
    case 16: snprintf(text, DATE_TEXT, "el %d de %s de %d", d, month, y); break;
    case 17: snprintf(text, DATE_TEXT, "%d-%d-%d (ES)", d, m + 1, y); break;
    case 20: snprintf(text, DATE_TEXT, "%s %d %s %d", name, d, month, y); break;
    case 21: snprintf(text, DATE_TEXT, "il %d %s %d", d, month, y); break;
    default: snprintf(text, DATE_TEXT, in == 3 ? "%d de %s de %d" : "%d %s %d", d, month, y); break;
    }
}
