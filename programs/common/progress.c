/* progress.c — see progress.h. The rate is smoothed as in tqdm: each time the bar is drawn, the newest rate has weight
 * 0.3. */
#include "core/system/system.h"

#include "progress.h"

#include "files.h"
#include "messages.h"
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY = 10, PLAIN = 100, NARROW = 10 }; /* seconds between plain lines; their width; the narrowest full bar */
static const double at_least = 0.1, smoothing = 0.3;

static int columns(FILE *to)
{
    const int n = tn__sys_columns(to);
    return n > 20 ? n : 80;
}

progress progress_begin(const char *title, int64_t total, const char *unit)
{
    const char *term = getenv("TERM");
    progress    p = {.title = title, .unit = unit, .total = total, .to = stderr, .began = seconds_now()};
    p.silent = settings.quiet || settings.no_progress;
    p.live = isatty(fileno(p.to)) && !(term && !strcmp(term, "dumb"));
    p.blocks = tn__sys_utf8();
    p.last = p.drawn = p.began;
    return p;
}

/* ---- one line ---------------------------------------------------------------------------------------------------- */

const char *progress_time(double seconds, char to[16])
{
    if (!(seconds >= 0 && seconds < 3.6e8)) {
        snprintf(to, 16, "?");
        return to;
    }
    const long s = (long)seconds;
    if (s >= 3600) snprintf(to, 16, "%ld:%02ld:%02ld", s / 3600 % 100000, s / 60 % 60, s % 60);
    else snprintf(to, 16, "%02ld:%02ld", s / 60 % 60, s % 60);
    return to;
}

/* The number of characters of a UTF-8 string. */
static int width(const char *s)
{
    int n = 0;
    for (; *s; s++) n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static void bar(const progress *p, double part, int cells, char *to)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const int                fine = p->blocks ? 8 : 10, n = (int)(part * cells * fine);
    for (int i = 0; i < n / fine; i++) to += sprintf(to, "%s", p->blocks ? "█" : "#");
    int left = cells - n / fine;
    if (left && n % fine) {
        if (p->blocks) to += sprintf(to, "%s", eighths[n % fine]);
        else *to++ = (char)('0' + n % fine);
        left--;
    }
    memset(to, ' ', (size_t)left), to[left] = 0;
}

/* Only a fraction is known, which has no rate. */
static bool in_parts(const progress *p) { return !strcmp(p->unit, "%") || !strcmp(p->unit, "‰"); }

/* Removes the last ", x=1" of a note. False: there is nothing left to remove. */
static bool shorten(char *note)
{
    char *last = NULL;
    if (!*note) return false;
    for (char *at = note; (at = strstr(at, ", ")); at++) last = at;
    *(last ? last : note) = 0;
    return true;
}

/* Cuts a UTF-8 string to this number of characters. */
static void cut(char *s, int wide)
{
    for (; *s; s++)
        if (((unsigned char)*s & 0xc0) != 0x80 && wide-- == 0) *s-- = 0;
}

/* What does not fit is left out: first the note, from its end; then the bar becomes shorter, and the rest is cut. */
int progress_line(const progress *p, double seconds, double rate, int wide, char *to, size_t size)
{
    char       left[160], right[320], elapsed[16], rest[16], speed[64], count[64] = "", cells[4 * 256 + 1], note[80];
    const bool known = p->total > 0, parts = in_parts(p);
    int        room;
    progress_time(seconds, elapsed);
    progress_time(rate > 0 ? (double)(p->total - p->done) / rate : INFINITY, rest);
    if (parts) speed[0] = 0;
    else if (!(rate > 0)) snprintf(speed, sizeof speed, ", ?%.20s/s", p->unit);
    else if (rate >= 1) snprintf(speed, sizeof speed, ", %5.2f%.20s/s", rate, p->unit);
    else snprintf(speed, sizeof speed, ", %5.2fs/%.20s", 1 / rate, p->unit);
    if (!parts) snprintf(count, sizeof count, " %lld/%lld", (long long)p->done, (long long)p->total);
    const double part = p->done < p->total ? (double)p->done / (double)p->total : 1;
    if (known) snprintf(left, sizeof left, "%.100s: %3.0f%%|", p->title, 100 * part);
    else snprintf(left, sizeof left, "%.100s: %lld%.20s", p->title, (long long)p->done, p->unit);
    memcpy(note, p->note, sizeof note);
    do {
        const char *comma = *note ? ", " : "";
        if (known) snprintf(right, sizeof right, "|%s [%s<%s%s%s%s]", count, elapsed, rest, speed, comma, note);
        else snprintf(right, sizeof right, " [%s%s%s%s]", elapsed, speed, comma, note);
        room = wide - width(left) - width(right);
    } while (room < (known ? NARROW : 0) && shorten(note));
    cells[0] = 0;
    if (known) bar(p, part, room < 0 ? 0 : room > 255 ? 255 : room, cells);
    const int n = snprintf(to, size, "%s%s%s", left, cells, right);
    cut(to, wide);
    return n;
}

/* ---- on the screen ----------------------------------------------------------------------------------------------- */

static void wipe(progress *p)
{
    if (p->on_screen) fputs("\r\033[K", p->to);
    p->on_screen = false;
}

static void draw(progress *p, double at, int wide)
{
    char         line[1600];
    const double total = at - p->began, rate = p->time > 0 ? p->steps / p->time
                                               : total > 0 ? (double)(p->done - p->from) / total
                                                           : 0;
    progress_line(p, p->before + total, rate, wide - 1, line, sizeof line);
    if (p->live) {
        wipe(p);
        fputs(line, p->to);
        p->on_screen = true;
    } else {
        fprintf(p->to, "%s\n", line);
    }
    fflush(p->to);
    p->drawn = at;
}

void progress_show(progress *p, int64_t done, const char *note, double at, int wide)
{
    p->done = done;
    if (note) snprintf(p->note, sizeof p->note, "%s", note);
    if (p->silent || at - p->drawn < (p->live ? at_least : EVERY)) return;
    const double dt = at - p->last, dn = (double)(done - p->last_done), k = p->time > 0 ? smoothing : 1;
    p->time += k * (dt - p->time), p->steps += k * (dn - p->steps);
    p->last = at, p->last_done = done;
    draw(p, at, wide);
}

void progress_at(progress *p, int64_t done, const char *note)
{
    progress_show(p, done, note, seconds_now(), p->live ? columns(p->to) : PLAIN);
}

void progress_say(progress *p, const char *fmt, ...)
{
    char    text[2048];
    va_list ap;
    if (settings.quiet) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    wipe(p);
    message_write(p->to, text), message_write(p->to, "\n");
    fflush(p->to);
}

void progress_part(const char *what, double part, void *bar) { progress_at(bar, (int64_t)(100 * part), what); }

/* The last line shows the total, and the mean rate. After an error, a bar that is not complete disappears. */
void progress_end(progress *p)
{
    if (p->silent) return;
    if (tn_error() != TN_OK && p->done < p->total) {
        wipe(p);
        p->silent = true;
        return;
    }
    if (in_parts(p)) p->done = p->total; /* the last report may be below */
    p->time = p->steps = 0;
    draw(p, seconds_now(), p->live ? columns(p->to) : PLAIN);
    if (p->live) fputc('\n', p->to);
    p->on_screen = false, p->silent = true;
}

/* ---- a training run ---------------------------------------------------------------------------------------------- */

const char *progress_score(const char *name, double value, char to[80])
{
    const bool percent = !strcmp(name, "accuracy") || !strcmp(name, "f1") || !strcmp(name, "em");
    if (*name == '%') snprintf(to, 80, "%.0f %.60s", value, name);
    else snprintf(to, 80, percent ? "%.50s %.2f %%" : "%.50s %.4f", name, value);
    return to;
}

void progress_fit(const tn_fit_event *e, void *user)
{
    progress *p = user;
    char      note[80], time[16], loss[40] = "", score[80];
    switch (e->what) {
    case TN_FIT_START:
        p->total = e->steps, p->from = p->done = p->last_done = e->step;
        if (e->step && !(p->before > 0)) progress_say(p, "resuming from step %lld", (long long)e->step);
        break;
    case TN_FIT_STEP:
        snprintf(note, sizeof note, "loss=%.4g, lr=%.3g", e->loss, e->lr);
        progress_at(p, e->step, note);
        break;
    case TN_FIT_VALID:
        if (p->score && isfinite(e->measured)) snprintf(loss, sizeof loss, ", loss %.4f", e->measured);
        progress_say(p, "step %lld: %s%s%s", (long long)e->step,
                     progress_score(p->score ? p->score : "validation", e->value, score), loss,
                     e->improved ? ", the best yet" : "");
        break;
    case TN_FIT_SAVED:
        if (settings.verbose) progress_say(p, "saved %s", e->text);
        break;
    case TN_FIT_NOTE: progress_say(p, "note: %s", e->text); break;
    case TN_FIT_END:
        progress_end(p);
        progress_say(p, "%s after %lld steps, %s", e->text, (long long)e->step,
                     progress_time(p->before + e->seconds, time));
        break;
    }
}
