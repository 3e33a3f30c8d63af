/*
 * mlx5 user contexts (DEVX) and the memory that they register for objects
 *
 * A process that talks to the device through the kernel (Linux:
 * drivers/infiniband/hw/mlx5/devx.c) has a uid, which the kernel writes into
 * each of its commands. Objects belong to the uid that made them. Memory for
 * their queues is a UMEM: the kernel fills the page list in, and a queue
 * names it instead of pages.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-caps.h"
#include "mlx5-devx.h"
#include "mlx5-res.h"
#include "trace.h"

/* Syndromes of this file. */
enum {
    SYND_UCTX_FULL = 0x570001,
    SYND_UCTX_UNKNOWN,
    SYND_UCTX_IN_USE,
    SYND_UMEM_PAGES,
    SYND_UMEM_FULL,
    SYND_UMEM_UNKNOWN,
    SYND_UMEM_IN_USE,
};

static enum Mlx5CmdStatus cmd_create_uctx(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Res *r = g_new0(Mlx5Res, 1);

    if (!mlx5_table_add(&h->uctxs, &r->obj)) {
        g_free(r);
        c->syndrome = SYND_UCTX_FULL;
        return MLX5_CMD_NO_RES;
    }
    trace_mlx5_res_alloc(h->name, "uctx", r->obj.id, 0);
    MLX5_SET(c->out, create_uctx_out, uid, r->obj.id);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_destroy_uctx(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t uid = MLX5_GET(c->in, destroy_uctx_in, uid);
    Mlx5Obj *o = mlx5_table_get(&h->uctxs, uid);

    if (!o || c->uid) {
        c->syndrome = SYND_UCTX_UNKNOWN;
        return MLX5_CMD_BAD_RES;
    }
    /* The next context with this number must not inherit anything. */
    if (o->refs) {
        c->syndrome = SYND_UCTX_IN_USE;
        return MLX5_CMD_BAD_RES_STATE;
    }
    trace_mlx5_res_dealloc(h->name, "uctx", uid);
    mlx5_table_del(&h->uctxs, o);
    g_free(o);
    return MLX5_CMD_OK;
}

static void umem_free(Mlx5Hca *h, Mlx5Umem *m)
{
    mlx5_table_del(&h->umems, &m->obj);
    mlx5_buf_fini(&m->buf);
    g_free(m);
}

static enum Mlx5CmdStatus cmd_create_umem(Mlx5Hca *h, Mlx5Cmd *c)
{
    const uint8_t *u = MLX5_ADDR(c->in, create_umem_in, umem);
    uint32_t log_page = MLX5_GET(u, umem, log_page_size);
    uint32_t offset = MLX5_GET(u, umem, page_offset);
    uint64_t n = MLX5_GET64(u, umem, num_of_mtt);
    const uint8_t *mtt = MLX5_ADDR(u, umem, mtt);
    uint32_t have = (c->in_len - MLX5_AT(create_umem_in, umem) -
                     MLX5_AT(umem, mtt)) / 8;
    Mlx5Umem *m;

    if (!n || n > have || offset >> (log_page + 12)) {
        c->syndrome = SYND_UMEM_PAGES;
        return MLX5_CMD_BAD_PARAM;
    }
    m = g_new0(Mlx5Umem, 1);
    if (!mlx5_buf_init(&m->buf, mtt, n * 8, log_page, 0,
                       n << (log_page + 12))) {
        g_free(m);
        c->syndrome = SYND_UMEM_PAGES;
        return MLX5_CMD_BAD_PARAM;
    }
    m->writable = true;
    for (uint64_t i = 0; i < n; i++) {
        m->writable &= mtt[i * 8 + 7] >> 1 & 1;   /* low bits: the rights */
    }
    m->buf.offset = offset;
    m->buf.size -= offset;
    m->obj.uid = c->uid;
    if (!mlx5_table_add(&h->umems, &m->obj)) {
        mlx5_buf_fini(&m->buf);
        g_free(m);
        c->syndrome = SYND_UMEM_FULL;
        return MLX5_CMD_NO_RES;
    }
    trace_mlx5_umem_create(h->name, m->obj.id, c->uid, n, log_page + 12);
    MLX5_SET(c->out, create_umem_out, umem_id, m->obj.id);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_destroy_umem(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Obj *o = mlx5_res_get(c, &h->umems,
                              MLX5_GET(c->in, destroy_umem_in, umem_id));

    if (!o) {
        c->syndrome = SYND_UMEM_UNKNOWN;
        return MLX5_CMD_BAD_RES;
    }
    if (o->refs) {
        c->syndrome = SYND_UMEM_IN_USE;
        return MLX5_CMD_BAD_RES_STATE;
    }
    trace_mlx5_umem_destroy(h->name, o->id);
    umem_free(h, (Mlx5Umem *)o);
    return MLX5_CMD_OK;
}

bool mlx5_umem_buf(Mlx5Hca *h, const Mlx5Cmd *c, uint32_t id, uint64_t offset,
                   uint64_t size, bool write, Mlx5Buf *b, Mlx5UmemRefs *r)
{
    Mlx5Umem *m = (Mlx5Umem *)mlx5_res_get(c, &h->umems, id);
    uint64_t at, first, last;

    if (!m || !size || (write && !m->writable) || offset > m->buf.size ||
        size > m->buf.size - offset) {
        return false;
    }
    at = m->buf.offset + offset;
    first = at >> m->buf.log_page;
    last = (at + size - 1) >> m->buf.log_page;
    *b = (Mlx5Buf) {
        .npages = last - first + 1,
        .log_page = m->buf.log_page,
        .offset = at & ((1ull << m->buf.log_page) - 1),
        .size = size,
    };
    b->page = g_memdup2(m->buf.page + first, b->npages * sizeof(*b->page));
    m->obj.refs++;
    r->mem = id;
    return true;
}

bool mlx5_umem_dbr(Mlx5Hca *h, const Mlx5Cmd *c, uint32_t id, uint64_t *addr,
                   Mlx5UmemRefs *r)
{
    Mlx5Umem *m = (Mlx5Umem *)mlx5_res_get(c, &h->umems, id);
    uint64_t at, page;

    if (!m || !m->writable || *addr > m->buf.size ||
        8 > m->buf.size - *addr) {
        return false;
    }
    at = m->buf.offset + *addr;
    page = at & ((1ull << m->buf.log_page) - 1);
    if (page + 8 > 1ull << m->buf.log_page) {
        return false;
    }
    *addr = m->buf.page[at >> m->buf.log_page] + page;
    m->obj.refs++;
    r->dbr = id;
    return true;
}

static void umem_put(Mlx5Hca *h, uint32_t *id)
{
    Mlx5Obj *o = mlx5_table_get(&h->umems, *id);

    if (o && o->refs) {
        o->refs--;
    }
    *id = 0;
}

void mlx5_umem_put(Mlx5Hca *h, Mlx5UmemRefs *r)
{
    umem_put(h, &r->mem);
    umem_put(h, &r->dbr);
}

const Mlx5CmdDesc mlx5_devx_cmds[] = {
    { 0xa04, "CREATE_UCTX", 16, 16, cmd_create_uctx },
    { 0xa06, "DESTROY_UCTX", 16, 8, cmd_destroy_uctx },
    { 0xa08, "CREATE_UMEM", MLX5_AT(create_umem_in, umem) + MLX5_AT(umem, mtt),
      16, cmd_create_umem },
    { 0xa0a, "DESTROY_UMEM", 16, 8, cmd_destroy_umem },
    { }
};

void mlx5_devx_init(Mlx5Hca *h)
{
    mlx5_table_init(h, &h->uctxs, "uctx", 1, (1u << MLX5_LOG_MAX_UCTX) - 1);
    mlx5_table_init(h, &h->umems, "umem", 1, (1u << MLX5_LOG_MAX_UMEM) - 1);
}

void mlx5_devx_destroy_all(Mlx5Hca *h)
{
    Mlx5Obj *o;

    while ((o = QTAILQ_FIRST(&h->umems.all))) {
        umem_free(h, (Mlx5Umem *)o);
    }
    mlx5_table_free_all(&h->uctxs);
}

void mlx5_devx_fini(Mlx5Hca *h)
{
    mlx5_devx_destroy_all(h);
    mlx5_table_fini(&h->umems);
    mlx5_table_fini(&h->uctxs);
}

static const VMStateDescription vmstate_mlx5_umem = {
    .name = "mlx5-hca/umem",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5Umem),
        VMSTATE_STRUCT(buf, Mlx5Umem, 1, vmstate_mlx5_buf, Mlx5Buf),
        VMSTATE_BOOL(writable, Mlx5Umem),
        VMSTATE_END_OF_LIST()
    },
};

static int devx_pre_load(void *opaque)
{
    mlx5_devx_destroy_all(opaque);
    return 0;
}

static int devx_post_load(void *opaque, int version_id)
{
    Mlx5Hca *h = opaque;

    return mlx5_table_post_load(&h->uctxs) &&
           mlx5_table_post_load(&h->umems) ? 0 : -EINVAL;
}

const VMStateDescription vmstate_mlx5_devx = {
    .name = "mlx5-hca/devx",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = devx_pre_load,
    .post_load = devx_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_TABLE(uctxs, Mlx5Hca, vmstate_mlx5_res, Mlx5Res),
        VMSTATE_MLX5_TABLE(umems, Mlx5Hca, vmstate_mlx5_umem, Mlx5Umem),
        VMSTATE_END_OF_LIST()
    },
};
