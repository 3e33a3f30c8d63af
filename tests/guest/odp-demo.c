/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * odp-demo: the same data through pinned and on-demand memory, with checksums
 * and the driver's fault counters, in a few lines.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "counters.h"
#include "util.h"
#include "verbs.h"

enum { BYTES = 16 << 20, PIECE = 256 << 10, DEPTH = 16, DROPS = 400 };

struct demo {
    struct vdev v;
    struct ibv_cq *cq;
    struct ibv_qp *qp[2];
    uint8_t *src;
    struct ibv_mr *src_mr;
    uint64_t sum;
    bool bad;
};

/* Memory that the device sees at dev and we at cpu. */
struct target {
    uint8_t *dev, *cpu;
    int fd;
};

static struct target target_new(void)
{
    struct target t = { .fd = memfd_create("target", MFD_CLOEXEC) };

    if (t.fd < 0 || ftruncate(t.fd, BYTES)) {
        die_errno("memfd");
    }
    t.dev = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, t.fd, 0);
    t.cpu = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, t.fd, 0);
    if (t.dev == MAP_FAILED || t.cpu == MAP_FAILED) {
        die_errno("mmap");
    }
    return t;
}

static void target_free(struct target *t)
{
    munmap(t->dev, BYTES);
    munmap(t->cpu, BYTES);
    close(t->fd);
}

static void post(struct demo *d, struct target *t, uint32_t rkey, size_t off)
{
    struct ibv_sge sge = { (uintptr_t)d->src + off, PIECE, d->src_mr->lkey };
    struct ibv_send_wr *bad, wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = { .remote_addr = (uintptr_t)t->dev + off, .rkey = rkey },
    };

    if (ibv_post_send(d->qp[0], &wr, &bad)) {
        die("posting a send failed");
    }
}

/* Write the source to the target; seconds that it took. */
static double transfer(struct demo *d, struct target *t, uint32_t rkey)
{
    unsigned posted = 0, done = 0, all = BYTES / PIECE;
    double start = now();
    struct ibv_wc wc;

    while (done < all) {
        while (posted < all && posted - done < DEPTH) {
            post(d, t, rkey, (size_t)posted++ * PIECE);
        }
        if (!cq_wait(d->cq, &wc, 60)) {
            die("no completion in 60 s");
        }
        if (wc.status != IBV_WC_SUCCESS) {
            die("WRITE: %s", ibv_wc_status_str(wc.status));
        }
        done++;
    }
    return now() - start;
}

static void row(struct demo *d, const char *what, struct target *t,
                double seconds, unsigned times, struct odp_counters before)
{
    struct odp_counters after = odp_counters_read(d->v.ctx->device->name);
    uint64_t sum = checksum(t->cpu, BYTES);

    printf("%-36s %6.0f MB/s  %016llx %s %7llu %8llu\n", what,
           times * (BYTES / 1e6) / seconds, (unsigned long long)sum,
           sum == d->sum ? "ok   " : "WRONG",
           (unsigned long long)(after.faults - before.faults),
           (unsigned long long)(after.invalidations - before.invalidations));
    d->bad |= sum != d->sum;
}

struct dropper {
    struct target *t;
    atomic_bool done;
};

static void *drop(void *arg)
{
    struct dropper *dr = arg;
    struct rng rng = { 1 };

    for (unsigned i = 0; i < DROPS; i++) {
        size_t at = rng_below(&rng, BYTES / PIECE) * PIECE;

        if (madvise(dr->t->dev + at, PIECE, MADV_DONTNEED)) {
            die_errno("MADV_DONTNEED");
        }
        usleep(500);
    }
    atomic_store(&dr->done, true);
    return NULL;
}

static void drop_under_traffic(struct demo *d, struct target *t, uint32_t rkey)
{
    struct odp_counters before = odp_counters_read(d->v.ctx->device->name);
    struct dropper dr = { .t = t };
    pthread_t thread;
    char what[64];
    double seconds = 0;
    unsigned times = 0;

    memset(t->cpu, 0, BYTES);
    if (pthread_create(&thread, NULL, drop, &dr)) {
        die("pthread_create failed");
    }
    do {
        seconds += transfer(d, t, rkey);
        times++;
    } while (!atomic_load(&dr.done));
    pthread_join(thread, NULL);
    snprintf(what, sizeof(what), "  under %u MADV_DONTNEED, %u times", DROPS,
             times);
    row(d, what, t, seconds, times, before);
}

static void pinned(struct demo *d)
{
    struct odp_counters before = odp_counters_read(d->v.ctx->device->name);
    struct target t = target_new();
    struct ibv_mr *mr = mr_reg(&d->v, t.dev, BYTES, IBV_ACCESS_LOCAL_WRITE |
                               IBV_ACCESS_REMOTE_WRITE);

    row(d, "pinned", &t, transfer(d, &t, mr->rkey), 1, before);
    ibv_dereg_mr(mr);
    target_free(&t);
}

static void on_demand(struct demo *d, bool implicit)
{
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                 IBV_ACCESS_ON_DEMAND;
    struct odp_counters before;
    struct target t = target_new();
    struct ibv_mr *mr = implicit ? mr_implicit(&d->v, access) :
                        mr_reg(&d->v, t.dev, BYTES, access);

    before = odp_counters_read(d->v.ctx->device->name);
    row(d, implicit ? "implicit ODP, nothing present" :
        "ODP, nothing present", &t, transfer(d, &t, mr->rkey), 1, before);
    memset(t.cpu, 0, BYTES);
    before = odp_counters_read(d->v.ctx->device->name);
    row(d, "  once more, all present", &t, transfer(d, &t, mr->rkey), 1,
        before);
    drop_under_traffic(d, &t, mr->rkey);
    ibv_dereg_mr(mr);
    target_free(&t);
}

static void print_caps(const char *name, uint32_t caps)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } bits[] = {
        { IBV_ODP_SUPPORT_SEND, "SEND" }, { IBV_ODP_SUPPORT_RECV, "RECV" },
        { IBV_ODP_SUPPORT_SRQ_RECV, "SRQ" },
        { IBV_ODP_SUPPORT_WRITE, "WRITE" }, { IBV_ODP_SUPPORT_READ, "READ" },
        { IBV_ODP_SUPPORT_ATOMIC, "ATOMIC" },
    };

    printf(" %s:", name);
    for (unsigned i = 0; i < ARRAY_SIZE(bits); i++) {
        if (caps & bits[i].bit) {
            printf(" %s", bits[i].name);
        }
    }
    printf("%s", caps ? "" : " none");
}

static void describe(struct demo *d)
{
    const char *name = d->v.ctx->device->name;
    char path[256], driver[256] = "";
    struct utsname u;
    ssize_t n;

    uname(&u);
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/driver",
             name);
    n = readlink(path, driver, sizeof(driver) - 1);
    driver[n < 0 ? 0 : n] = 0;
    printf("kernel  %s %s %s\n", u.sysname, u.release, u.machine);
    printf("device  %s, driver %s, firmware %s, port %s, %s\n", name,
           strrchr(driver, '/') ? strrchr(driver, '/') + 1 : "none",
           d->v.attr.orig_attr.fw_ver, ibv_port_state_str(d->v.port.state),
           d->v.port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" :
           "InfiniBand");
    printf("ODP     %s%s\n       ", vdev_has_odp(&d->v) ? "yes" : "no",
           vdev_has_implicit(&d->v) ? ", implicit too" : "");
    print_caps("RC", vdev_odp_caps(&d->v, IBV_QPT_RC));
    print_caps("| UC", vdev_odp_caps(&d->v, IBV_QPT_UC));
    print_caps("| UD", vdev_odp_caps(&d->v, IBV_QPT_UD));
    printf("\n");
}

int main(int argc, char **argv)
{
    struct demo d = { 0 };
    struct qp_conf conf = { .type = IBV_QPT_RC, .depth = DEPTH, .sge = 1 };

    vdev_open(&d.v, argc > 1 ? argv[1] : NULL, -1);
    describe(&d);
    d.cq = ibv_create_cq(d.v.ctx, 2 * DEPTH, NULL, NULL, 0);
    if (!d.cq) {
        die_errno("ibv_create_cq");
    }
    conf.send_cq = conf.recv_cq = d.cq;
    qp_pair(&d.v, &conf, d.qp);
    d.src = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (d.src == MAP_FAILED) {
        die_errno("mmap");
    }
    pattern_fill(d.src, 2026, 0, BYTES);
    d.sum = checksum(d.src, BYTES);
    d.src_mr = mr_reg(&d.v, d.src, BYTES, 0);
    printf("\n%-36s %11s  checksum, source       pages    inval-\n",
           "RDMA WRITE of 16 MiB to memory that is", "");
    printf("%-36s %11s  %016llx     faulted    idated\n", "", "",
           (unsigned long long)d.sum);
    pinned(&d);
    if (vdev_has_odp(&d.v)) {
        on_demand(&d, false);
    }
    if (vdev_has_implicit(&d.v)) {
        on_demand(&d, true);
    }
    if (d.bad || qp_state(d.qp[0]) != IBV_QPS_RTS) {
        printf("FAIL\n");
        return 1;
    }
    return 0;
}
