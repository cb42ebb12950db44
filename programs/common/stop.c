/* stop.c — see stop.h. The signal handler only calls functions that are safe in one: it sets a flag, writes the message
 * and restores the default actions. */
#include "core/system/system.h"

#include "stop.h"
#include "options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

volatile sig_atomic_t stop_flag;
static char           message[128];
static size_t         length;

static void came(int which)
{
    const int keep = errno;
    stop_flag = which;
    tn__sys_default_interrupt();                               /* the next one ends the program */
    if (write(STDERR_FILENO, message, (unsigned)length) < 0) { /* an error has no consequence */
    }
    errno = keep;
}

void stop_begin(const char *says)
{
    /* starts a new line after a progress bar */
    const int n = snprintf(message, sizeof message, "%s%s\n", isatty(STDERR_FILENO) ? "\n" : "", says ? says : "");
    length = !says || settings.quiet || n < 0 ? 0 : (size_t)n < sizeof message ? (size_t)n : sizeof message - 1;
    stop_flag = 0;
    tn__sys_on_interrupt(came);
}

int stop_exit_code(void) { return stop_flag ? 128 + (int)stop_flag : 0; }
