/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory of another driver, as a dma-buf. mlx5_ib makes its key one that asks
 * the IOMMU by ATS where relaxed ordering is allowed.
 */
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sva.h"

enum { BYTES = 1 << 20 };

struct dmabuf {
    struct vdev v;
    struct link l;
    uint8_t *mem;               /* the exporter's view */
    int fd;
    uint8_t *src;
    struct ibv_mr *src_mr;
};

static void export_memory(struct dmabuf *t)
{
    struct udmabuf_create create = { .size = BYTES };
    int memfd = memfd_create("dmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);

    if (memfd < 0 || dev < 0 || ftruncate(memfd, BYTES) ||
        fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK)) {
        die_errno("udmabuf");
    }
    t->mem = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
    if (t->mem == MAP_FAILED) {
        die_errno("mmap");
    }
    create.memfd = memfd;
    t->fd = ioctl(dev, UDMABUF_CREATE, &create);
    if (t->fd < 0) {
        die_errno("UDMABUF_CREATE");
    }
    close(memfd);
    close(dev);
}

static bool use(struct dmabuf *t, const char *how, int access)
{
    uint64_t iova = 0x700000001000;
    struct ibv_mr *mr = ibv_reg_dmabuf_mr(t->v.pd, 0, BYTES, iova, t->fd,
                                          access);
    struct request r = { IBV_WR_RDMA_WRITE, t->src, t->src_mr->lkey,
                         (void *)iova, 0, BYTES, 5, 0 };
    bool ok;

    if (!mr) {
        die_errno("ibv_reg_dmabuf_mr");
    }
    r.rkey = mr->rkey;
    memset(t->mem, 0, BYTES);
    ok = link_do(&t->l, &r, NULL) == IBV_WC_SUCCESS &&
         pattern_check(t->mem, 3, 0, BYTES) < 0;
    pattern_fill(t->mem, 4, 0, BYTES);
    r.opcode = IBV_WR_RDMA_READ;
    ok = ok && link_do(&t->l, &r, NULL) == IBV_WC_SUCCESS &&
         pattern_check(t->src, 4, 0, BYTES) < 0;
    pattern_fill(t->src, 3, 0, BYTES);
    *(uint64_t *)(t->mem + 4096) = 37;
    r.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    r.remote = (void *)(iova + 4096);
    r.len = 8;
    ok = ok && link_do(&t->l, &r, NULL) == IBV_WC_SUCCESS &&
         *(uint64_t *)(t->mem + 4096) == 42;
    pattern_fill(t->src, 3, 0, BYTES);
    if (ibv_dereg_mr(mr)) {
        die_errno("ibv_dereg_mr");
    }
    r.opcode = IBV_WR_RDMA_WRITE;
    ok = ok && link_do(&t->l, &r, NULL) == IBV_WC_REM_ACCESS_ERR;
    printf("%s: %s\n", how, ok ? "ok" : "FAIL");
    return ok;
}

int mode_dmabuf(const struct options *opt)
{
    struct dmabuf t;
    bool ok = true;

    vdev_open(&t.v, opt->device, -1);
    link_open(&t.l, &t.v, &t.v);
    export_memory(&t);
    t.src = fresh(BYTES);
    pattern_fill(t.src, 3, 0, BYTES);
    t.src_mr = mr_reg(&t.v, t.src, BYTES, SVA_ALL);
    for (unsigned i = 0; i < opt->iters && ok; i++) {
        ok = use(&t, "strict", SVA_ALL) &&
             use(&t, "relaxed", SVA_ALL | IBV_ACCESS_RELAXED_ORDERING);
    }
    close(t.fd);
    munmap(t.mem, BYTES);
    link_close(&t.l);
    return !ok;
}
