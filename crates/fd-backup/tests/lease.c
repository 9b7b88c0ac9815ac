// Holds a write lease on the file that it is given. When somebody wants to read the file, puts a fifo in its place, gives
// the lease back and leaves.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int count, char **words)
{
    sigset_t wanted;
    int found, file;
    if (count != 2)
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
    if (unlink(words[1]) < 0 || mkfifo(words[1], 0666) < 0) {
        perror(words[1]);
        return 1;
    }
    return fcntl(file, F_SETLEASE, F_UNLCK) < 0;
}
