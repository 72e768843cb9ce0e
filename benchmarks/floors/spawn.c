/* What the kernel allows: the least that starts a command with a time limit and captures its output.
 *
 *     spawn COUNT PROGRAM [ARG...]
 *
 * For each line on standard input it starts PROGRAM COUNT times at once, each as the leader of a new session with
 * the null device for input and both streams in one pipe, reads what they write until each has exited, and prints
 * "NANOSECONDS BYTES". It answers one measurement at a time so that a benchmark can call it in turns with others
 * and its own start is never part of a figure.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CHILDREN = 256, LIMIT_MS = 120000 };

extern char **environ;

static struct pollfd watched[2 * MOST_CHILDREN]; /* of child i: 2i is its pipe, 2i + 1 its pidfd */
static pid_t children[MOST_CHILDREN];
static char block[64 * 1024];

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void start(int i, char **argv)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        die("pipe2");
    /* Only our end: O_NONBLOCK in pipe2 would reach the command's end too, and break it. */
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    errno = posix_spawnp(&children[i], argv[0], &actions, &attributes, argv, environ);
    if (errno)
        die(argv[0]);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    watched[2 * i] = (struct pollfd){.fd = ends[0], .events = POLLIN};
    watched[2 * i + 1] = (struct pollfd){.fd = (int)syscall(SYS_pidfd_open, children[i], 0), .events = POLLIN};
    if (watched[2 * i + 1].fd < 0)
        die("pidfd_open");
}

/* One block. 0: end of the pipe; -1: nothing there now. */
static ssize_t take(int i, size_t *bytes)
{
    ssize_t n = read(watched[2 * i].fd, block, sizeof block);

    if (n > 0)
        *bytes += (size_t)n;
    else if (n < 0 && errno != EAGAIN)
        die("read");
    return n;
}

static void forget(struct pollfd *one)
{
    if (one->fd >= 0)
        close(one->fd);
    one->fd = -1; /* poll passes over it */
}

/* The child has exited: take what is still in the pipe, but never wait for its end, which a survivor may hold. */
static void finish(int i, size_t *bytes)
{
    int status;

    if (waitpid(children[i], &status, 0) < 0 || status != 0) {
        fprintf(stderr, "the command failed with wait status %d\n", status);
        exit(1);
    }
    while (watched[2 * i].fd >= 0 && take(i, bytes) > 0)
        ;
    forget(&watched[2 * i]);
    forget(&watched[2 * i + 1]);
}

static long long now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[1]) : 0;
    char line[16];

    if (count < 1 || count > MOST_CHILDREN) {
        fprintf(stderr, "usage: spawn COUNT PROGRAM [ARG...]\n");
        return 2;
    }
    while (fgets(line, sizeof line, stdin)) {
        size_t bytes = 0;
        int running = count;
        long long began = now();

        for (int i = 0; i < count; i++)
            start(i, argv + 2);
        while (running > 0) {
            if (poll(watched, 2 * (nfds_t)count, LIMIT_MS) <= 0)
                die("poll");
            for (int i = 0; i < count; i++) {
                if (watched[2 * i].fd >= 0 && watched[2 * i].revents && take(i, &bytes) == 0)
                    forget(&watched[2 * i]);
                if (watched[2 * i + 1].fd >= 0 && watched[2 * i + 1].revents) {
                    finish(i, &bytes);
                    running--;
                }
            }
        }
        printf("%lld %zu\n", now() - began, bytes);
        fflush(stdout);
        /* Off the clock: what a command left in its session. A group's number is not given away while it lives. */
        for (int i = 0; i < count; i++)
            kill(-children[i], SIGKILL);
    }
    return 0;
}
