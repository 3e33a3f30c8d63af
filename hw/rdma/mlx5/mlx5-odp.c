/*
 * mlx5 on-demand paging: page-fault events and their resumption
 *
 * A fault is pending from the event to PAGE_FAULT_RESUME. Operations wait
 * for it by its token; in the memory scheme those that miss the same page
 * share one. While the event queue is full, faults wait in order for room.
 * A fault outlives its waiters: the driver answers it in any case, and an
 * answer that nobody waits for is fine.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qapi/error.h"
#include "hw/qdev-core.h"
#include "migration/vmstate.h"
#include "mlx5-caps.h"
#include "mlx5-cmd.h"
#include "mlx5-eq.h"
#include "mlx5-odp.h"
#include "trace.h"

enum {
    MLX5_PF_SUBTYPE_WQE = 0,
    MLX5_PF_SUBTYPE_RDMA = 1,
    MLX5_PF_SUBTYPE_MEMORY = 2,
    MLX5_PF_FLAG_LAST = 0x80,     /* the driver resumes only after this one */
    MLX5_PF_PAGE_BITS = 12,       /* unit of the page counts */
    /*
     * Pages after the one needed that the driver may map in passing, as far
     * as the operation goes. It falls back to the one page if it cannot.
     */
    MLX5_PF_MAX_AHEAD = 512,
    MLX5_PF_DATA = 28,            /* bytes of event data */
};

typedef struct Mlx5Fault {
    uint64_t token;
    Mlx5FaultInfo info;
    bool memory;                  /* scheme */
    bool posted;                  /* the driver has heard of it */
    QLIST_HEAD(, Mlx5Waiter) waiters;
    QTAILQ_ENTRY(Mlx5Fault) next; /* all, in order of creation */
    QTAILQ_ENTRY(Mlx5Fault) unposted;
} Mlx5Fault;

typedef struct Mlx5OdpState {
    uint64_t last_token;
    QTAILQ_HEAD(, Mlx5Fault) all;
    QTAILQ_HEAD(, Mlx5Fault) unposted;
    GHashTable *by_token;
    GHashTable *by_page;          /* memory scheme: key, page and intent */
    Mlx5OdpStats stats;
} Mlx5OdpState;

/* Faults by page */

static guint mlx5_fault_page_hash(gconstpointer p)
{
    const Mlx5Fault *f = p;
    uint64_t x = (f->info.va >> MLX5_PF_PAGE_BITS) * 0x9e3779b97f4a7c15ull;

    return (x >> 32) ^ f->info.key ^ f->info.is_write;
}

static gboolean mlx5_fault_page_equal(gconstpointer a, gconstpointer b)
{
    const Mlx5Fault *x = a, *y = b;

    return x->info.key == y->info.key &&
           x->info.is_write == y->info.is_write &&
           x->info.va >> MLX5_PF_PAGE_BITS == y->info.va >> MLX5_PF_PAGE_BITS;
}

/* A pending fault whose answer serves @info too. */
static Mlx5Fault *mlx5_odp_same_page(Mlx5OdpState *s, const Mlx5FaultInfo *info)
{
    Mlx5Fault probe = { .info = *info };
    Mlx5Fault *f;

    probe.info.is_write = true;
    f = g_hash_table_lookup(s->by_page, &probe);
    if (!f && !info->is_write) {
        probe.info.is_write = false;
        f = g_hash_table_lookup(s->by_page, &probe);
    }
    return f;
}

/* Enters @f, which is on the list of all, wherever it is looked for. */
static void mlx5_fault_index(Mlx5OdpState *s, Mlx5Fault *f)
{
    g_hash_table_insert(s->by_token, &f->token, f);
    if (f->memory) {
        g_hash_table_insert(s->by_page, f, f);
    }
    if (!f->posted) {
        QTAILQ_INSERT_TAIL(&s->unposted, f, unposted);
    }
    s->stats.pending++;
    s->stats.max_pending = MAX(s->stats.max_pending, s->stats.pending);
}

/* Takes @f out; its waiters are the caller's business. */
static void mlx5_fault_remove(Mlx5OdpState *s, Mlx5Fault *f)
{
    QTAILQ_REMOVE(&s->all, f, next);
    g_hash_table_remove(s->by_token, &f->token);
    if (f->memory && g_hash_table_lookup(s->by_page, f) == f) {
        g_hash_table_remove(s->by_page, f);
    }
    if (!f->posted) {
        QTAILQ_REMOVE(&s->unposted, f, unposted);
    }
    s->stats.pending--;
}

static uint64_t mlx5_odp_new_token(Mlx5OdpState *s, bool memory)
{
    uint64_t mask = memory ? (1ull << 48) - 1 : (1ull << 24) - 1;

    do {
        s->last_token = (s->last_token + 1) & ((1ull << 48) - 1);
    } while (!(s->last_token & mask) ||
             g_hash_table_contains(s->by_token,
                                   &(uint64_t) { s->last_token & mask }));
    return s->last_token & mask;
}

/* Events */

static uint8_t mlx5_fault_event(const Mlx5Fault *f, uint8_t d[MLX5_PF_DATA])
{
    const Mlx5FaultInfo *i = &f->info;

    memset(d, 0, MLX5_PF_DATA);
    if (f->memory) {
        uint64_t page = 1ull << MLX5_PF_PAGE_BITS;
        uint64_t in_page = page - (i->va & (page - 1));
        uint64_t ahead = i->len > in_page
                         ? DIV_ROUND_UP(i->len - in_page, page) : 0;

        d[0] = MLX5_PF_FLAG_LAST;
        stw_be_p(d + 2, MIN(ahead, MLX5_PF_MAX_AHEAD));
        stw_be_p(d + 6, f->token >> 32);
        stl_be_p(d + 8, f->token);
        stl_be_p(d + 12, 1 << MLX5_PF_PAGE_BITS);
        stl_be_p(d + 16, i->key);
        stq_be_p(d + 20, i->va);
        return MLX5_PF_SUBTYPE_MEMORY;
    }
    stl_be_p(d, i->bytes_committed);
    stw_be_p(d + 10, MIN(i->packet_len, UINT16_MAX));
    if (i->rdma) {
        stl_be_p(d + 4, i->rdma_key);
        stl_be_p(d + 12, i->rdma_op_len);
        stq_be_p(d + 16, i->rdma_va);
        stl_be_p(d + 24, i->wq_type << 24 | (uint32_t)f->token);
        return MLX5_PF_SUBTYPE_RDMA;
    }
    stw_be_p(d + 6, i->wqe_index);
    stl_be_p(d + 12, f->token);
    stl_be_p(d + 24, i->wq_type << 24 | i->wqn);
    return MLX5_PF_SUBTYPE_WQE;
}

static void mlx5_odp_post(Mlx5Hca *h)
{
    Mlx5OdpState *s = h->odp;
    Mlx5Fault *f;

    while ((f = QTAILQ_FIRST(&s->unposted)) &&
           mlx5_event_room(h, MLX5_EVENT_PAGE_FAULT)) {
        uint8_t d[MLX5_PF_DATA];
        uint8_t sub_type = mlx5_fault_event(f, d);

        QTAILQ_REMOVE(&s->unposted, f, unposted);
        f->posted = true;
        s->stats.faults++;
        trace_mlx5_odp_fault(h->name, f->token, sub_type, f->info.key,
                             f->info.va, f->info.len, f->info.is_write);
        mlx5_event(h, MLX5_EVENT_PAGE_FAULT, sub_type, d, sizeof(d));
    }
}

void mlx5_odp_eq_room(Mlx5Hca *h)
{
    if (!QTAILQ_EMPTY(&h->odp->unposted)) {
        mlx5_odp_post(h);
    }
}

/* Faults */

bool mlx5_odp_fault(Mlx5Hca *h, const Mlx5FaultInfo *info, Mlx5Waiter *w)
{
    Mlx5OdpState *s = h->odp;
    bool memory = mlx5_caps_mem_page_fault(h);
    Mlx5Fault *f;

    if (!mlx5_event_heard(h, MLX5_EVENT_PAGE_FAULT)) {
        return false;
    }
    f = memory ? mlx5_odp_same_page(s, info) : NULL;
    if (f) {
        s->stats.joined++;
        trace_mlx5_odp_join(h->name, f->token, info->key, info->va);
    } else {
        if (s->stats.pending >= MLX5_MAX_FAULTS) {
            mlx5_guest_error(h, "more than %d page faults pending",
                             MLX5_MAX_FAULTS);
            return false;
        }
        f = g_new0(Mlx5Fault, 1);
        f->token = mlx5_odp_new_token(s, memory);
        f->info = *info;
        f->memory = memory;
        QLIST_INIT(&f->waiters);
        QTAILQ_INSERT_TAIL(&s->all, f, next);
        mlx5_fault_index(s, f);
    }
    w->token = f->token;
    QLIST_INSERT_HEAD(&f->waiters, w, next);
    mlx5_odp_post(h);
    return true;
}

void mlx5_odp_cancel(Mlx5Hca *h, Mlx5Waiter *w)
{
    Mlx5Fault *f;

    if (!w->token) {
        return;
    }
    f = g_hash_table_lookup(h->odp->by_token, &w->token);
    QLIST_REMOVE(w, next);
    w->token = 0;
    if (f && !f->posted && QLIST_EMPTY(&f->waiters)) {
        mlx5_fault_remove(h->odp, f);   /* the driver need not hear of it */
        g_free(f);
    }
}

bool mlx5_odp_reattach(Mlx5Hca *h, Mlx5Waiter *w)
{
    Mlx5Fault *f = g_hash_table_lookup(h->odp->by_token, &w->token);

    if (!f) {
        w->token = 0;
        return false;
    }
    QLIST_INSERT_HEAD(&f->waiters, w, next);
    return true;
}

const Mlx5OdpStats *mlx5_odp_stats(Mlx5Hca *h)
{
    return &h->odp->stats;
}

static enum Mlx5CmdStatus mlx5_odp_resume(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5OdpState *s = h->odp;
    const uint8_t *info = MLX5_ADDR(c->in, page_fault_resume_in,
                                    page_fault_info);
    bool error = MLX5_GET(info, mem_page_fault_info, error);
    uint64_t token;
    Mlx5Fault *f;
    Mlx5Waiter *w;

    if (mlx5_caps_mem_page_fault(h)) {
        token = (uint64_t)MLX5_GET(info, mem_page_fault_info,
                                   fault_token_47_32) << 32 |
                MLX5_GET(info, mem_page_fault_info, fault_token_31_0);
    } else {
        token = MLX5_GET(info, trans_page_fault_info, fault_token);
    }
    f = g_hash_table_lookup(s->by_token, &token);
    trace_mlx5_odp_resume(h->name, token, error, !f || !f->posted);
    if (!f || !f->posted) {
        return MLX5_CMD_OK;       /* answered before, or nobody's */
    }
    if (error) {
        s->stats.failed++;
    } else {
        s->stats.resumed++;
    }
    mlx5_fault_remove(s, f);
    /* A waiter that wakes may fault again or cancel others. */
    while ((w = QLIST_FIRST(&f->waiters))) {
        QLIST_REMOVE(w, next);
        w->token = 0;
        w->wake(w, error);
    }
    g_free(f);
    return MLX5_CMD_OK;
}

const Mlx5CmdDesc mlx5_odp_cmds[] = {
    { 0x204, "PAGE_FAULT_RESUME", MLX5_BYTES(page_fault_resume_in),
      MLX5_BYTES(page_fault_resume_out), mlx5_odp_resume },
    { }
};

/* Life */

/* Counters that a user reads with qom-get. */
static void mlx5_odp_add_properties(Mlx5Hca *h)
{
    Mlx5OdpStats *st = &h->odp->stats;
    Object *o = OBJECT(h->dev);

    object_property_add_uint64_ptr(o, "odp-faults", &st->faults,
                                   OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(o, "odp-joined", &st->joined,
                                   OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(o, "odp-resumed", &st->resumed,
                                   OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(o, "odp-failed", &st->failed,
                                   OBJ_PROP_FLAG_READ);
    object_property_add_uint32_ptr(o, "odp-pending", &st->pending,
                                   OBJ_PROP_FLAG_READ);
    object_property_add_uint32_ptr(o, "odp-max-pending", &st->max_pending,
                                   OBJ_PROP_FLAG_READ);
}

static void mlx5_odp_del_properties(Mlx5Hca *h)
{
    static const char *const names[] = {
        "odp-faults", "odp-joined", "odp-resumed", "odp-failed",
        "odp-pending", "odp-max-pending",
    };

    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        object_property_del(OBJECT(h->dev), names[i]);
    }
}

void mlx5_odp_init(Mlx5Hca *h)
{
    Mlx5OdpState *s = g_new0(Mlx5OdpState, 1);

    QTAILQ_INIT(&s->all);
    QTAILQ_INIT(&s->unposted);
    s->by_token = g_hash_table_new(g_int64_hash, g_int64_equal);
    s->by_page = g_hash_table_new(mlx5_fault_page_hash, mlx5_fault_page_equal);
    h->odp = s;
    mlx5_odp_add_properties(h);
}

void mlx5_odp_destroy_all(Mlx5Hca *h)
{
    Mlx5OdpState *s = h->odp;
    Mlx5Fault *f;
    Mlx5Waiter *w;

    while ((f = QTAILQ_FIRST(&s->all))) {
        mlx5_fault_remove(s, f);
        while ((w = QLIST_FIRST(&f->waiters))) {
            QLIST_REMOVE(w, next);
            w->token = 0;
        }
        g_free(f);
    }
}

void mlx5_odp_fini(Mlx5Hca *h)
{
    mlx5_odp_destroy_all(h);
    mlx5_odp_del_properties(h);
    g_hash_table_destroy(h->odp->by_token);
    g_hash_table_destroy(h->odp->by_page);
    g_free(h->odp);
    h->odp = NULL;
}

/* Migration */

/* Elements are allocated as they come, and not zeroed. */
static int mlx5_fault_pre_load(void *opaque)
{
    memset(opaque, 0, sizeof(Mlx5Fault));
    return 0;
}

static const VMStateDescription vmstate_mlx5_fault = {
    .name = "mlx5-fault",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = mlx5_fault_pre_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(token, Mlx5Fault),
        VMSTATE_BOOL(memory, Mlx5Fault),
        VMSTATE_BOOL(posted, Mlx5Fault),
        VMSTATE_UINT32(info.key, Mlx5Fault),
        VMSTATE_UINT64(info.va, Mlx5Fault),
        VMSTATE_UINT64(info.len, Mlx5Fault),
        VMSTATE_BOOL(info.is_write, Mlx5Fault),
        VMSTATE_BOOL(info.rdma, Mlx5Fault),
        VMSTATE_UINT8(info.wq_type, Mlx5Fault),
        VMSTATE_UINT32(info.wqn, Mlx5Fault),
        VMSTATE_UINT16(info.wqe_index, Mlx5Fault),
        VMSTATE_UINT32(info.bytes_committed, Mlx5Fault),
        VMSTATE_UINT32(info.packet_len, Mlx5Fault),
        VMSTATE_UINT32(info.rdma_key, Mlx5Fault),
        VMSTATE_UINT64(info.rdma_va, Mlx5Fault),
        VMSTATE_UINT32(info.rdma_op_len, Mlx5Fault),
        VMSTATE_END_OF_LIST()
    }
};

static bool mlx5_odp_post_load(void *opaque, int version_id, Error **errp)
{
    Mlx5OdpState *s = opaque;
    Mlx5Fault *f;

    s->stats.pending = 0;
    QTAILQ_FOREACH(f, &s->all, next) {
        QLIST_INIT(&f->waiters);
        if (!f->token || f->token >> 48 ||
            s->stats.pending >= MLX5_MAX_FAULTS ||
            g_hash_table_contains(s->by_token, &f->token)) {
            error_setg(errp, "mlx5: a pending page fault is malformed");
            return false;
        }
        mlx5_fault_index(s, f);
    }
    return true;
}

static const VMStateDescription vmstate_mlx5_odp_state = {
    .name = "mlx5-odp-state",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load_errp = mlx5_odp_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(last_token, Mlx5OdpState),
        VMSTATE_QTAILQ_V(all, Mlx5OdpState, 1, vmstate_mlx5_fault, Mlx5Fault,
                         next),
        VMSTATE_UINT64(stats.faults, Mlx5OdpState),
        VMSTATE_UINT64(stats.joined, Mlx5OdpState),
        VMSTATE_UINT64(stats.resumed, Mlx5OdpState),
        VMSTATE_UINT64(stats.failed, Mlx5OdpState),
        VMSTATE_UINT32(stats.max_pending, Mlx5OdpState),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_mlx5_odp = {
    .name = "mlx5-odp",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(odp, Mlx5Hca, vmstate_mlx5_odp_state,
                               struct Mlx5OdpState),
        VMSTATE_END_OF_LIST()
    }
};
