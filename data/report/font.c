/* font.c — letters for pictures of pixels: 5 columns, 9 rows, of which the last two hang below the line. A row is a
 * digit of base 32, the column on the left being its highest bit: "ehhhvhh" is an A. */
#include "data/report/pixels.h"

#include <string.h>

static const char ascii[95][10] = {
    "000000000", "444440400", "aaa000000", "aavavaa00", "4fke5u400", "op248j300", "8kk8lid00", "440000000", /*   to ' */
    "248884200", "842224800", "04lel4000", "044v44000", "00000cc48", "000v00000", "00000cc00", "01248g000", /* ( to / */
    "ehjlphe00", "4c4444e00", "eh1248v00", "v2421he00", "26aiv2200", "vgu11he00", "68guhhe00", "v12488800", /* 0 to 7 */
    "ehhehhe00", "ehhf12c00", "0cc0cc000", "0cc0cc480", "248g84200", "00v0v0000", "842124800", "eh1240400", /* 8 to ? */
    "eh1dlle00", "ehhhvhh00", "uhhuhhu00", "ehggghe00", "sihhhis00", "vgguggv00", "vgguggg00", "ehgnhhf00", /* @ to G */
    "hhhvhhh00", "e44444e00", "72222ic00", "hikokih00", "ggggggv00", "hrllhhh00", "hhpljhh00", "ehhhhhe00", /* H to O */
    "uhhuggg00", "ehhhlid00", "uhhukih00", "fgge11u00", "v44444400", "hhhhhhe00", "hhhhha400", "hhhllla00", /* P to W */
    "hha4ahh00", "hhha44400", "v1248gv00", "e88888e00", "0g8421000", "e22222e00", "4ah000000", "0000000v0", /* X to _ */
    "840000000", "00e1fhf00", "ggmphhu00", "00egghe00", "11djhhf00", "00ehvge00", "698s88800", "00fhhhf1e", /* ` to g */
    "ggmphhh00", "40c444e00", "2062222ic", "ggikoki00", "c44444e00", "00qllhh00", "00mphhh00", "00ehhhe00", /* h to o */
    "00uhhhugg", "00fhhhf11", "00mpggg00", "00fge1u00", "88s889600", "00hhhjd00", "00hhha400", "00hhlla00", /* p to w */
    "00ha4ah00", "00hhhhf1e", "00v248v00", "244844200", "444444400", "844244800", "008l20000",              /* x to ~ */
};
/* What else stands in pictures: German's letters, some of French, and signs for blanks. */
static const struct {
    uint32_t point;
    char     rows[10];
} others[] = {
    {0xc4, "a0ehvhh00"},   {0xd6, "aehhhhe00"},   {0xdc, "a0hhhhe00"},   {0xdf, "ciimhhm00"},   {0xe4, "a0e1fhf00"},
    {0xf6, "a0ehhhe00"},   {0xfc, "a0hhhjd00"},   {0xe0, "84e1fhf00"},   {0xe1, "24e1fhf00"},   {0xe2, "4ae1fhf00"},
    {0xe7, "00egghe4c"},   {0xe8, "84ehvge00"},   {0xe9, "24ehvge00"},   {0xea, "4aehvge00"},   {0xee, "4ac444e00"},
    {0xf1, "fumphhh00"},   {0xf4, "4aehhhe00"},   {0xfb, "4ahhhjd00"},   {0xb7, "000400000"},   {0x2013, "000v00000"},
    {0x2014, "000v00000"}, {0x2019, "440000000"}, {0x2026, "000000l00"}, {0x2423, "00000hv00"}, {0x2581, "0000000v0"},
};
static const char unknown[] = "vhhhhhv00";

const char *tn__glyph(uint32_t point)
{
    if (point >= ' ' && point < 127) return ascii[point - ' '];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].point == point) return others[i].rows;
    return unknown;
}
