/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SVA_H
#define SVA_H

#include "link.h"
#include "portal.h"
#include "util.h"

/* The command line. */
struct options {
    const char *device;         /* whose portals these are */
    const char *peer;           /* another HCA, or NULL: loopback */
    const char *portal[2];
    unsigned iters;
    unsigned threads;
    unsigned kib;               /* sizes of buffers */
    unsigned stalls;            /* that one fault causes */
    uint64_t seed;
    bool disturb;
    bool huge;
    const char *release;        /* a file, or NULL */
    const char *list;
};

#define SVA_ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
                 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* Open a portal or exit. */
void portal_or_die(struct sva_portal *p, const char *pci);
uint32_t key_or_die(struct sva_portal *p, struct ibv_pd *pd, unsigned access);
/* Fresh private anonymous memory, untouched. */
void *fresh(size_t len);
/* The same at a multiple of a power of two, as huge pages want it. */
void *fresh_aligned(size_t len, size_t align);

/* Modes: 0 when all was right. */
int mode_traffic(const struct options *opt);
int mode_count(const struct options *opt);
int mode_perm(const struct options *opt);
int mode_owner(const struct options *opt);
int mode_isolate(const struct options *opt);
int mode_kill(const struct options *opt);
int mode_unbind(const struct options *opt);
int mode_pending(const struct options *opt);
int mode_denied(const struct options *opt);
int mode_bench(const struct options *opt);
int mode_dmabuf(const struct options *opt);
int mode_giant(const struct options *opt);
int mode_limit(const struct options *opt);

#endif
