/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys outlive their owners in a peer's hands; they must be worth nothing. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hold.h"
#include "owner.h"

enum { BYTES = 1 << 20, BURST = 16, PIECE = BYTES / BURST };

struct lives {
    const struct options *opt;
    struct vdev v;
    struct link l;
    uint8_t *src;
    struct ibv_mr *mr;
    unsigned through, refused, flushed;
    bool bad;
};

static void lives_open(struct lives *t, const struct options *opt)
{
    t->opt = opt;
    vdev_open(&t->v, opt->device, -1);
    link_open(&t->l, &t->v, &t->v);
    t->src = fresh(BYTES);
    pattern_fill(t->src, 11, 0, BYTES);
    t->mr = mr_reg(&t->v, t->src, BYTES, IBV_ACCESS_LOCAL_WRITE);
}

static void say_wrong(struct lives *t, const char *what)
{
    printf("FAIL: %s\n", what);
    t->bad = true;
}

static struct request to_owner(struct lives *t, const struct owner *o,
                               size_t off, size_t len)
{
    return (struct request) { IBV_WR_RDMA_WRITE, t->src + off, t->mr->lkey,
                              o->mem + off, o->key, len, 0, 0 };
}

static void works(struct lives *t, struct owner *o)
{
    struct request r = to_owner(t, o, 0, BYTES);

    if (link_do(&t->l, &r, NULL) != IBV_WC_SUCCESS) {
        say_wrong(t, "a good key was refused");
    } else if (!owner_check(o, 11, 0, BYTES)) {
        say_wrong(t, "wrong data");
    }
}

static void denied(struct lives *t, const struct owner *o, const char *what)
{
    struct request r = to_owner(t, o, 0, 64);
    enum ibv_wc_status got = link_do(&t->l, &r, NULL);

    if (got != IBV_WC_REM_ACCESS_ERR) {
        printf("%s\n", ibv_wc_status_str(got));
        say_wrong(t, what);
    }
}

static void burst(struct lives *t, const struct owner *o)
{
    for (unsigned i = 0; i < BURST; i++) {
        struct request r = to_owner(t, o, i * PIECE, PIECE);

        link_post(&t->l, &r);
    }
}

/* All end, first some well, then one refused, then the rest flushed. */
static void burst_wait(struct lives *t)
{
    unsigned refused = 0;

    for (unsigned i = 0; i < BURST; i++) {
        enum ibv_wc_status got = link_wait(&t->l);

        if (got == IBV_WC_SUCCESS && !refused) {
            t->through++;
        } else if (got == IBV_WC_REM_ACCESS_ERR && !refused) {
            refused++;
            t->refused++;
        } else if (got == IBV_WC_WR_FLUSH_ERR && refused) {
            t->flushed++;
        } else {
            printf("%s\n", ibv_wc_status_str(got));
            say_wrong(t, "an unexpected completion");
        }
    }
    if (refused) {
        link_again(&t->l);
    }
}

static void end(struct owner *o, bool by_force)
{
    if (by_force) {
        owner_kill(o);
    } else {
        owner_exit(o);
    }
    owner_reap(o);
}

int mode_owner(const struct options *opt)
{
    struct lives t = { 0 };
    struct owner o, next;
    struct hold h;
    unsigned reused = 0, pairs = 0;

    /* Before there are RDMA objects, and inherited by the owners. */
    hold_open(&h, 64 << 10, 5);
    lives_open(&t, opt);

    owner_start(&o, opt->portal[0], t.v.pd, NULL, BYTES, 0);
    printf("PASID %u, key 0x%x, status 0x%x\n", o.pasid, o.key, o.status);
    works(&t, &o);
    burst(&t, &o);
    owner_reset(&o);
    burst_wait(&t);
    denied(&t, &o, "a key was good after RESET");
    end(&o, false);

    /* Now and then the kernel has another PASID for the next one. */
    for (unsigned i = 0; reused < opt->iters && i < 2 * opt->iters && !t.bad;
         i++) {
        pairs++;
        owner_start(&o, opt->portal[0], t.v.pd, NULL, BYTES, 0);
        works(&t, &o);
        end(&o, i & 1);
        denied(&t, &o, i & 1 ? "a killed owner's key was good" :
               "an owner's key was good after its exit");
        owner_start(&next, opt->portal[0], t.v.pd, NULL, BYTES, 9);
        reused += next.pasid == o.pasid;
        denied(&t, &o, "an old key was good under the next owner");
        /* The old key, the new owner's address. */
        o.mem = next.mem;
        denied(&t, &o, "an old key reached the next owner's memory");
        if (!owner_check(&next, 9, 0, BYTES)) {
            say_wrong(&t, "the next owner's memory changed");
        }
        works(&t, &next);
        end(&next, i & 2);
    }
    printf("PASIDs reused: %u of %u\n", reused, pairs);

    /* Killed while the kernel is in the middle of its page. */
    owner_start(&o, opt->portal[0], t.v.pd, h.mem, h.len, 0);
    {
        struct request r = { IBV_WR_RDMA_READ, t.src, t.mr->lkey, o.mem, o.key,
                             4096, 0, 0 };
        struct sva_counters c;
        enum ibv_wc_status got;
        double limit = now() + 30;

        link_post(&t.l, &r);
        while (!h.counts->waiting) {
            if (now() > limit) {
                die("no fault came");
            }
            usleep(1000);
        }
        owner_counters(&o, &c);
        if (c.pending != 1) {
            say_wrong(&t, "the counters show no pending access");
        }
        owner_kill(&o);
        usleep(200000);
        hold_release(&h);
        got = link_wait(&t.l);
        printf("killed in mid-fault: %s\n", ibv_wc_status_str(got));
        if (got != IBV_WC_SUCCESS && got != IBV_WC_REM_ACCESS_ERR) {
            say_wrong(&t, "an unexpected completion");
        }
        if (got != IBV_WC_SUCCESS) {
            link_again(&t.l);
        }
        owner_reap(&o);
        denied(&t, &o, "a killed owner's key was good");
    }
    owner_start(&o, opt->portal[0], t.v.pd, NULL, BYTES, 0);
    works(&t, &o);
    end(&o, false);
    printf("bursts: %u through, %u refused, %u flushed\n", t.through,
           t.refused, t.flushed);
    hold_close(&h);
    link_close(&t.l);
    return t.bad;
}

int mode_kill(const struct options *opt)
{
    struct lives t = { 0 };
    struct rng rng = { opt->seed };
    struct owner o, before = { 0 };

    lives_open(&t, opt);
    for (unsigned i = 0; i < opt->iters && !t.bad; i++) {
        owner_start(&o, opt->portal[0], t.v.pd, NULL, BYTES, 0);
        if (i) {
            denied(&t, &before, "an old key was good under the next owner");
        }
        burst(&t, &o);
        if (!rng_one_in(&rng, 8)) {
            usleep(rng_below(&rng, 40000));
        }
        owner_kill(&o);
        burst_wait(&t);
        owner_reap(&o);
        denied(&t, &o, "a killed owner's key was good");
        before = o;
        printf("kill %u\n", i + 1);
    }
    printf("%u kills: writes through %u, refused %u, flushed %u\n",
           opt->iters, t.through, t.refused, t.flushed);
    link_close(&t.l);
    return t.bad;
}

static void sysfs(const char *file, const char *word)
{
    char path[160];
    int fd;

    snprintf(path, sizeof(path), "/sys/bus/pci/%s", file);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, word, strlen(word)) < 0) {
        die_errno(path);
    }
    close(fd);
}

/*
 * The driver is unbound under an open device node, so the kernel keeps the
 * address space attached and gives the function to no driver: it has to be
 * found anew.
 */
static void bind_again(const char *pci)
{
    char file[96];

    snprintf(file, sizeof(file), "devices/%s/remove", pci);
    sysfs(file, "1");
    sysfs("rescan", "1");
    snprintf(file, sizeof(file), "devices/%s/driver_override", pci);
    sysfs(file, "uio_pci_sva");
    sysfs("drivers/uio_pci_sva/bind", pci);
}

int mode_unbind(const struct options *opt)
{
    struct lives t = { 0 };
    struct rng rng = { opt->seed };
    struct owner o;

    lives_open(&t, opt);
    for (unsigned i = 0; i < opt->iters && !t.bad; i++) {
        owner_start(&o, opt->portal[0], t.v.pd, NULL, BYTES, 0);
        burst(&t, &o);
        if (!rng_one_in(&rng, 8)) {
            usleep(rng_below(&rng, 40000));
        }
        sysfs("drivers/uio_pci_sva/unbind", opt->portal[0]);
        burst_wait(&t);
        denied(&t, &o, "a key was good after the unbind");
        end(&o, rng_one_in(&rng, 2));
        bind_again(opt->portal[0]);
        printf("unbind %u\n", i + 1);
    }
    printf("%u unbinds: writes through %u, refused %u, flushed %u\n",
           opt->iters, t.through, t.refused, t.flushed);
    owner_start(&o, opt->portal[0], t.v.pd, NULL, BYTES, 0);
    works(&t, &o);
    end(&o, false);
    link_close(&t.l);
    return t.bad;
}
