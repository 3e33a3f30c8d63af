/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena.h"

/* Let some traffic pass between two acts, and while one lasts. */
static void let_pass(struct arena *a, unsigned ops)
{
    unsigned long until = atomic_load(&a->totals.done) + ops;
    double limit = now() + 0.5;

    while (atomic_load(&a->totals.done) < until && now() < limit &&
           !atomic_load(&a->stop)) {
        usleep(100);
    }
}

static struct region *pick(struct arena *a, struct rng *rng, enum act act)
{
    struct region **sets[] = { a->local_src, a->remote_src, a->local_dst,
                               a->remote_dst };

    for (unsigned tries = 0; tries < 100; tries++) {
        bool source = act == ACT_FLIP;
        struct region **set = sets[rng_below(rng, source ? 2 : 4)];
        struct region *r = set[rng_below(rng, a->kinds)];

        if (act != ACT_FORK && rng_one_in(rng, 16)) {
            r = a->counter;
        }
        if (r->reg != REG_PINNED && (!source || r->source) &&
            r->mem == (act == ACT_FORK ? MEM_ANON : MEM_FILE)) {
            return r;
        }
    }
    return NULL;
}

/*
 * The child owns a copy of the memory as it was: nothing that the device
 * writes from now on may be seen in it.
 */
static int child_is_stable(struct region *r)
{
    uint64_t before = checksum(r->dev, r->len);

    usleep(20000);
    return checksum(r->dev, r->len) == before ? 0 : 1;
}

static void act_fork(struct arena *a, struct region *r)
{
    pid_t pid = fork();
    int status;

    if (pid < 0) {
        die_errno("fork");
    }
    if (!pid) {
        _exit(child_is_stable(r));
    }
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
        die("a forked child ended with status 0x%x", status);
    }
    if (WEXITSTATUS(status)) {
        die("wrong byte: the device wrote into the pages of a forked child "
            "(%s)", r->name);
    }
}

void disturb(struct arena *a, const unsigned *acts, unsigned n_acts)
{
    struct rng rng = { a->opt->seed ^ 0xd15b };
    size_t page = sysconf(_SC_PAGESIZE);

    for (unsigned i = 0; i < a->opt->iters && !atomic_load(&a->stop); i++) {
        enum act act = acts[rng_below(&rng, n_acts)];
        struct region *r = pick(a, &rng, act);
        size_t pages, first, n;

        if (!r) {
            die("no memory fits the disturbance %d", act);
        }
        pages = r->len / page;
        first = rng_below(&rng, pages);
        n = 1 + rng_below(&rng, pages - first < 64 ? pages - first : 64);
        switch (act) {
        case ACT_DROP:
            region_drop(r, first * page, n * page);
            break;
        case ACT_REMAP:
            region_remap(r, first * page, n * page);
            break;
        case ACT_FLIP:
            region_flip(r, first * page, n * page, true);
            let_pass(a, 8);
            region_flip(r, first * page, n * page, false);
            break;
        default:
            act_fork(a, r);
            break;
        }
        atomic_fetch_add(&a->totals.acts[act], 1);
        let_pass(a, 4);
    }
}
