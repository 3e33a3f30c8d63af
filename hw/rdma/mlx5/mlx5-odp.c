/*
 * mlx5 on-demand paging: page-fault events and their resumption
 *
 * A fault is pending from the event to PAGE_FAULT_RESUME. Operations wait
 * for it by its token. In the memory scheme those that miss the same page
 * share one. Others that miss the same piece are held until it is answered
 * and then try again: the driver would do the same work once for each, and
 * the work can be large (a missing piece of an implicit MR is a whole child
 * key: 32 MiB of table when addresses have 52 bits, and all but one of the
 * children made at the same time are thrown away).
 *
 * While the event queue is full, faults wait in order for room. In the memory
 * scheme a fault outlives its waiters: the driver answers it in any case. In
 * the transport scheme it does not answer once the queue is gone, so the
 * fault goes with its operation; a late answer is fine.
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
    /*
     * Pages after the one needed that the driver may map in passing, as far
     * as the operation goes. It falls back to the one page if it cannot.
     */
    MLX5_PF_MAX_AHEAD = 512,
    MLX5_PF_DATA = 28,            /* bytes of event data */
};

typedef struct Mlx5Fault Mlx5Fault;

/* What a pending fault brings: others that miss it wait for the answer. */
typedef struct Mlx5Piece {
    Mlx5Fault *fault;
    uint32_t key;
    uint8_t log;                  /* log2 bytes */
    bool is_write;                /* for writing, too */
    uint64_t index;               /* address >> log */
} Mlx5Piece;

struct Mlx5Fault {
    uint64_t token;
    Mlx5FaultInfo info;
    bool memory;                  /* scheme */
    bool posted;                  /* the driver has heard of it */
    unsigned n_pieces;
    Mlx5Piece *piece;
    QLIST_HEAD(, Mlx5Waiter) waiters;
    QTAILQ_ENTRY(Mlx5Fault) next; /* all, in order of creation */
    QTAILQ_ENTRY(Mlx5Fault) unposted;
};

typedef struct Mlx5OdpState {
    uint64_t last_token;
    QTAILQ_HEAD(, Mlx5Fault) all;
    QTAILQ_HEAD(, Mlx5Fault) unposted;
    GHashTable *by_token;
    GHashTable *by_piece;         /* a set of Mlx5Piece */
    Mlx5OdpStats stats;
} Mlx5OdpState;

/* Faults by piece */

static Mlx5Piece mlx5_piece(uint32_t key, uint64_t va, uint8_t log,
                            bool is_write)
{
    log = CLAMP(log, MLX5_PF_PAGE_BITS, 63);
    return (Mlx5Piece) {
        .key = key,
        .log = log,
        .index = va >> log,
        /* The intent does not matter to what is absent altogether. */
        .is_write = is_write || log > MLX5_PF_PAGE_BITS,
    };
}

static guint mlx5_piece_hash(gconstpointer p)
{
    const Mlx5Piece *x = p;

    return (x->index * 0x9e3779b97f4a7c15ull >> 32) ^ x->key ^ x->is_write;
}

static gboolean mlx5_piece_equal(gconstpointer a, gconstpointer b)
{
    const Mlx5Piece *x = a, *y = b;

    return x->key == y->key && x->log == y->log && x->index == y->index &&
           x->is_write == y->is_write;
}

/* The pending fault that brings @p. */
static Mlx5Fault *mlx5_odp_bringing(Mlx5OdpState *s, const Mlx5Piece *p)
{
    Mlx5Piece probe = *p, *found;

    probe.is_write = true;
    found = g_hash_table_lookup(s->by_piece, &probe);
    if (!found && !p->is_write) {
        found = g_hash_table_lookup(s->by_piece, p);
    }
    return found ? found->fault : NULL;
}

/* The one page, of which in the memory scheme the answer is for all. */
static bool mlx5_fault_same_page(const Mlx5FaultInfo *a, const Mlx5FaultInfo *b)
{
    return a->key == b->key && a->is_write >= b->is_write &&
           a->va >> MLX5_PF_PAGE_BITS == b->va >> MLX5_PF_PAGE_BITS;
}

/* Enters @f, which is on the list of all, wherever it is looked for. */
static void mlx5_fault_index(Mlx5OdpState *s, Mlx5Fault *f)
{
    g_hash_table_insert(s->by_token, &f->token, f);
    for (unsigned i = 0; i < f->n_pieces; i++) {
        f->piece[i].fault = f;
        if (!g_hash_table_contains(s->by_piece, &f->piece[i])) {
            g_hash_table_add(s->by_piece, &f->piece[i]);
        }
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
    for (unsigned i = 0; i < f->n_pieces; i++) {
        if (g_hash_table_lookup(s->by_piece, &f->piece[i]) == &f->piece[i]) {
            g_hash_table_remove(s->by_piece, &f->piece[i]);
        }
    }
    if (!f->posted) {
        QTAILQ_REMOVE(&s->unposted, f, unposted);
    }
    s->stats.pending--;
}

static void mlx5_fault_free(Mlx5Fault *f)
{
    g_free(f->piece);
    g_free(f);
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
    Mlx5Piece piece[1 + MLX5_PF_MAX_ALSO];
    bool memory = mlx5_caps_mem_page_fault(h);
    Mlx5Fault *f = NULL;
    unsigned n;

    if (!mlx5_event_heard(h, MLX5_EVENT_PAGE_FAULT)) {
        return false;
    }
    piece[0] = mlx5_piece(info->key, info->va, info->log_piece,
                          info->is_write);
    for (n = 1; n <= info->n_also; n++) {
        const Mlx5FaultAlso *also = &info->also[n - 1];

        piece[n] = mlx5_piece(also->key, also->va, also->log_piece, true);
    }
    for (unsigned i = 0; i < n && !f; i++) {
        f = mlx5_odp_bringing(s, &piece[i]);
    }
    w->held = f && !(f->memory && mlx5_fault_same_page(&f->info, info));
    if (f) {
        s->stats.joined++;
        trace_mlx5_odp_join(h->name, f->token, info->key, info->va, w->held);
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
        f->n_pieces = n;
        f->piece = g_memdup2(piece, n * sizeof(*piece));
        QLIST_INIT(&f->waiters);
        QTAILQ_INSERT_TAIL(&s->all, f, next);
        mlx5_fault_index(s, f);
    }
    if (!w->counted) {
        w->counted = true;
        s->stats.operations++;
    }
    w->token = f->token;
    QLIST_INSERT_HEAD(&f->waiters, w, next);
    mlx5_odp_post(h);
    return true;
}

/*
 * @f is answered. A waiter that wakes may fault again or cancel others, which
 * then must not find it.
 */
static void mlx5_fault_end(Mlx5OdpState *s, Mlx5Fault *f, bool error)
{
    Mlx5Waiter *w;

    mlx5_fault_remove(s, f);
    while ((w = QLIST_FIRST(&f->waiters))) {
        QLIST_REMOVE(w, next);
        w->token = 0;
        w->wake(w, error && !w->held);
    }
    mlx5_fault_free(f);
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
    if (!f) {
        return;
    }
    if (f->memory ? !f->posted && QLIST_EMPTY(&f->waiters) : !w->held) {
        mlx5_fault_end(h->odp, f, false);
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
    mlx5_fault_end(s, f, error);
    return MLX5_CMD_OK;
}

const Mlx5CmdDesc mlx5_odp_cmds[] = {
    { 0x204, "PAGE_FAULT_RESUME", MLX5_BYTES(page_fault_resume_in),
      MLX5_BYTES(page_fault_resume_out), mlx5_odp_resume },
    { }
};

/* Life */

/* Counters that a user reads with qom-get. */
static const struct {
    const char *name;
    size_t at;                    /* in Mlx5OdpStats */
    size_t size;
} odp_counters[] = {
#define ODP_COUNTER(_name, _field) \
    { _name, offsetof(Mlx5OdpStats, _field), \
      sizeof_field(Mlx5OdpStats, _field) }
    ODP_COUNTER("odp-operations", operations),
    ODP_COUNTER("odp-faults", faults),
    ODP_COUNTER("odp-joined", joined),
    ODP_COUNTER("odp-resumed", resumed),
    ODP_COUNTER("odp-failed", failed),
    ODP_COUNTER("odp-pending", pending),
    ODP_COUNTER("odp-max-pending", max_pending),
#undef ODP_COUNTER
};

static void mlx5_odp_add_properties(Mlx5Hca *h)
{
    for (unsigned i = 0; i < ARRAY_SIZE(odp_counters); i++) {
        const char *name = odp_counters[i].name;
        void *p = (uint8_t *)&h->odp->stats + odp_counters[i].at;

        if (odp_counters[i].size == 8) {
            object_property_add_uint64_ptr(OBJECT(h->dev), name, p,
                                           OBJ_PROP_FLAG_READ);
        } else {
            object_property_add_uint32_ptr(OBJECT(h->dev), name, p,
                                           OBJ_PROP_FLAG_READ);
        }
    }
}

static void mlx5_odp_del_properties(Mlx5Hca *h)
{
    for (unsigned i = 0; i < ARRAY_SIZE(odp_counters); i++) {
        object_property_del(OBJECT(h->dev), odp_counters[i].name);
    }
}

void mlx5_odp_init(Mlx5Hca *h)
{
    Mlx5OdpState *s = g_new0(Mlx5OdpState, 1);

    QTAILQ_INIT(&s->all);
    QTAILQ_INIT(&s->unposted);
    s->by_token = g_hash_table_new(g_int64_hash, g_int64_equal);
    s->by_piece = g_hash_table_new(mlx5_piece_hash, mlx5_piece_equal);
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
        mlx5_fault_free(f);
    }
}

void mlx5_odp_fini(Mlx5Hca *h)
{
    mlx5_odp_destroy_all(h);
    mlx5_odp_del_properties(h);
    g_hash_table_destroy(h->odp->by_token);
    g_hash_table_destroy(h->odp->by_piece);
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
        VMSTATE_UINT8(info.log_piece, Mlx5Fault),
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
        f->n_pieces = 1;
        f->piece = g_new(Mlx5Piece, 1);
        f->piece[0] = mlx5_piece(f->info.key, f->info.va, f->info.log_piece,
                                 f->info.is_write);
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
        VMSTATE_UINT64(stats.operations, Mlx5OdpState),
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
