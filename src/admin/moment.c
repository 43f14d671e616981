#include "admin/moment.h"

#include <time.h>

#include "util/units.h"

/* Walks over the text; `good` stays false from the first thing that is not as expected. */
struct walk {
    const char *at, *end;
    bool good;
};

static int number(struct walk *w, int digits, int least, int most)
{
    int n = 0;
    for (int i = 0; i < digits; i++) {
        if (w->at == w->end || *w->at < '0' || *w->at > '9') {
            w->good = false;
            return least;
        }
        n = n * 10 + (*w->at++ - '0');
    }
    if (n < least || n > most)
        w->good = false;
    return n;
}

static bool take(struct walk *w, const char *any_of)
{
    if (w->at == w->end || !*w->at || !strchr(any_of, *w->at))
        return false;
    w->at++;
    return true;
}

static void expect(struct walk *w, const char *any_of)
{
    if (!take(w, any_of))
        w->good = false;
}

/* ".123456": as many digits as there are; what is finer than a millisecond is dropped. */
static int fraction_ms(struct walk *w)
{
    int ms = 0, weight = 100, digits = 0;
    while (w->at < w->end && *w->at >= '0' && *w->at <= '9') {
        ms += (*w->at++ - '0') * weight;
        weight /= 10;
        digits++;
    }
    if (digits == 0 || digits > 9)
        w->good = false;
    return ms;
}

static int offset_s(struct walk *w)
{
    if (take(w, "Zz"))
        return 0;
    char sign = w->at < w->end ? *w->at : 0;
    expect(w, "+- ");
    int hours = number(w, 2, 0, 23);
    expect(w, ":");
    int minutes = number(w, 2, 0, 59);
    int s = (hours * 60 + minutes) * 60;
    return sign == '-' ? -s : s;
}

bool moment_parse(struct bytes text, int64_t *unix_ms)
{
    if (units_parse_u63(text, unix_ms))
        return *unix_ms > 0;
    if (!text.len)
        return false;

    struct walk w = {text.at, text.at + text.len, true};
    int year = number(&w, 4, 1970, 9999);
    expect(&w, "-");
    int month = number(&w, 2, 1, 12);
    expect(&w, "-");
    int day = number(&w, 2, 1, 31);
    expect(&w, "Tt ");
    int hour = number(&w, 2, 0, 23);
    expect(&w, ":");
    int minute = number(&w, 2, 0, 59);
    expect(&w, ":");
    int second = number(&w, 2, 0, 60); /* 60: a leap second */
    int ms = take(&w, ".") ? fraction_ms(&w) : 0;
    int offset = offset_s(&w);
    if (!w.good || w.at != w.end)
        return false;

    struct tm date = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    int64_t s = timegm(&date);
    if (date.tm_mday != day) /* a 31st of April was made the 1st of May */
        return false;
    s += (hour * 60 + minute) * 60 + second - offset;
    *unix_ms = s * 1000 + ms;
    return *unix_ms > 0;
}
