// Holds a write lease on the first file that it is given. When somebody wants to read the file, puts the second one, a
// fifo, in its place in one step, gives the lease back and leaves.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words)
{
    sigset_t wanted;
    int found, file;
    if (count != 3)
        return 2;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGIO);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    file = open(words[1], O_RDWR);
    if (file < 0 || fcntl(file, F_SETLEASE, F_WRLCK) < 0) {
        perror(words[1]);
        return 1;
    }
    puts("ready");
    fflush(stdout);
    if (sigwait(&wanted, &found) != 0)
        return 1;
    if (rename(words[2], words[1]) < 0) {
        perror(words[1]);
        return 1;
    }
    return fcntl(file, F_SETLEASE, F_UNLCK) < 0;
}
