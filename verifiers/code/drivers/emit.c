
#include <stdio.h>
#include <stdlib.h>
static void truegold_text(const char* text) {
    printf("\n\x01{\"r\":");
    if (!text) printf("null");
    else {
        putchar('"');
        for (; *text; text++) printf("\\u%04x", (unsigned char)*text);
        putchar('"');
    }
    printf("}\n");
}
static void truegold_whole(long long value) { printf("\n\x01{\"r\":%lld}\n", value); }
static void truegold_natural(unsigned long long value) { printf("\n\x01{\"r\":%llu}\n", value); }
static void truegold_real(double value) {
    if (value - value == 0) printf("\n\x01{\"r\":%.17g}\n", value);
    else printf("\n\x01{\"r\":{\"$\":\"float\",\"v\":\"%s\"}}\n", value != value ? "nan" : value < 0 ? "-inf" : "inf");
}
#define truegold_emit(value) \
    _Generic((value), char*: truegold_text, const char*: truegold_text, float: truegold_real, double: truegold_real, \
        long double: truegold_real, unsigned long: truegold_natural, unsigned long long: truegold_natural, \
        default: truegold_whole)(value)
