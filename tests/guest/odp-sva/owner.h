/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SVA_OWNER_H
#define SVA_OWNER_H

#include <sys/types.h>

#include "sva.h"

/*
 * A child process that owns a portal and has a key made in a protection
 * domain of ours: we use its memory, and it can go at any time.
 */
struct owner {
    pid_t pid;
    int ask, answer;            /* pipes */
    uint32_t pasid, key, status;
    uint8_t *mem;               /* in the child: fresh, or what was given */
    size_t len;
};

/*
 * mem: NULL for fresh memory at an address that only the child has. fill: it
 * holds pattern `fill`, 0: untouched.
 */
void owner_start(struct owner *o, const char *pci, struct ibv_pd *pd,
                 void *mem, size_t len, uint64_t fill);
/* Whether bytes [off, off + len) are those of pattern `seed`. */
bool owner_check(struct owner *o, uint64_t seed, size_t off, size_t len);
/* RESET and latch and make a key; 0, or what RESULT said. */
uint32_t owner_relatch(struct owner *o, uint32_t pasid);
/* Another key of the present PASID, in o->key. */
void owner_new_key(struct owner *o);
void owner_destroy_key(struct owner *o);
void owner_counters(struct owner *o, struct sva_counters *c);
void owner_reset(struct owner *o);
/* Close in good order and exit; or die at once. */
void owner_exit(struct owner *o);
void owner_kill(struct owner *o);
/* Wait for the end of the process and of the binding. */
void owner_reap(struct owner *o);

#endif
