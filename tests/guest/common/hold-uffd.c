/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hold.h"
#include "util.h"

struct keeper {
    struct hold *h;
    int uffd, ctl;
    size_t page;
    uint64_t seed;
    uint8_t *data;              /* a page */
    bool *asked;                /* for each page */
};

static void give(struct keeper *k, size_t n)
{
    struct uffdio_copy copy = {
        .dst = (uintptr_t)k->h->mem + n * k->page,
        .src = (uintptr_t)k->data,
        .len = k->page,
    };

    pattern_fill(k->data, k->seed, n * k->page, k->page);
    if (ioctl(k->uffd, UFFDIO_COPY, &copy)) {
        die_errno("UFFDIO_COPY");
    }
    k->h->counts->given++;
}

static void *keep(void *opaque)
{
    struct keeper *k = opaque;
    size_t pages = k->h->len / k->page;
    bool released = false;

    for (;;) {
        struct pollfd fds[2] = { { k->uffd, POLLIN, 0 },
                                 { k->ctl, POLLIN, 0 } };
        struct uffd_msg msg;
        char c;

        if (poll(fds, 2, -1) < 0) {
            continue;
        }
        if (fds[1].revents) {
            if (read(k->ctl, &c, 1) != 1) {
                break;
            }
            released = true;
            k->h->counts->waiting = 0;
            for (size_t n = 0; n < pages; n++) {
                if (k->asked[n]) {
                    give(k, n);
                }
            }
        }
        if (fds[0].revents && read(k->uffd, &msg, sizeof(msg)) == sizeof(msg)
            && msg.event == UFFD_EVENT_PAGEFAULT) {
            size_t n = (msg.arg.pagefault.address - (uintptr_t)k->h->mem) /
                       k->page;

            if (n < pages && !k->asked[n]) {
                k->asked[n] = true;
                if (!released) {
                    k->h->counts->waiting++;
                } else {
                    give(k, n);
                }
            }
        }
    }
    close(k->uffd);
    close(k->ctl);
    free(k->data);
    free(k->asked);
    free(k);
    return NULL;
}

void hold_open_uffd(struct hold *h, size_t len, uint64_t seed)
{
    struct keeper *k = calloc(1, sizeof(*k));
    struct uffdio_api api = { .api = UFFD_API };
    struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
    int sock[2];

    *h = (struct hold) { .len = len };
    h->counts = calloc(1, sizeof(*h->counts));
    h->mem = mmap(NULL, len, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (h->mem == MAP_FAILED) {
        die_errno("mmap");
    }
    madvise(h->mem, len, MADV_NOHUGEPAGE);
    k->uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (k->uffd < 0 || ioctl(k->uffd, UFFDIO_API, &api)) {
        die_errno("userfaultfd");
    }
    reg.range.start = (uintptr_t)h->mem;
    reg.range.len = len;
    if (ioctl(k->uffd, UFFDIO_REGISTER, &reg)) {
        die_errno("UFFDIO_REGISTER");
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock)) {
        die_errno("socketpair");
    }
    h->ctl = sock[0];
    k->ctl = sock[1];
    k->h = h;
    k->seed = seed;
    k->page = page_size();
    k->data = malloc(k->page);
    k->asked = calloc(len / k->page, sizeof(bool));
    if (pthread_create(&h->keeper, NULL, keep, k)) {
        die("pthread_create");
    }
}

void hold_close_uffd(struct hold *h)
{
    close(h->ctl);
    pthread_join(h->keeper, NULL);
    munmap(h->mem, h->len);
    free((void *)h->counts);
}
