#include <bits/stdc++.h>
#include <unistd.h>
namespace truegold_driver {
// Replies have a separate file descriptor; the program's own output goes to stderr.
static int reply_descriptor = -1;
__attribute__((constructor(101))) static void keep_stdout() {
    reply_descriptor = dup(1);
    dup2(2, 1);
}
}
