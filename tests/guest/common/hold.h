/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ODP_HOLD_H
#define ODP_HOLD_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Memory whose pages stay missing until told: a mapping of a file that a
 * little FUSE server of ours (a process of its own) serves. A fault on a page,
 * the processor's or a device's, waits in the kernel until hold_release().
 *
 * Page n of the file holds the bytes [n * page, (n + 1) * page) of the message
 * `seed` of the generator.
 */
struct hold {
    uint8_t *mem;       /* the mapping, shared, read and write */
    size_t len;
    int ctl;            /* to the server */
    int pid;            /* of the server; 0: by userfaultfd */
    pthread_t keeper;
    volatile struct hold_counts {
        uint32_t waiting;       /* pages asked for and not given yet */
        uint32_t given;
    } *counts;
};

/* Call it before there are threads or RDMA objects: it forks. */
void hold_open(struct hold *h, size_t len, uint64_t seed);
/*
 * The same by userfaultfd and a thread, on memory of the process's own. What
 * waits is let go when the process dies. Before Linux 7.3 the kernel does not
 * let an RDMA device's fault wait for it, and fails it.
 */
void hold_open_uffd(struct hold *h, size_t len, uint64_t seed);
/* Give all pages that are asked for, from now on at once. */
void hold_release(struct hold *h);
void hold_close(struct hold *h);
/* Called by hold_close(). */
void hold_close_uffd(struct hold *h);

#endif
