/*
 * mlx5 event queues and asynchronous events
 *
 * A ring of 64-byte entries in guest memory. The owner bit of an entry tells
 * which pass over the ring wrote it, so it is written last. The consumer
 * index and the request for an interrupt come by doorbell. (Linux:
 * drivers/net/ethernet/mellanox/mlx5/core/eq.c)
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-caps.h"
#include "mlx5-cmd.h"
#include "mlx5-dma.h"
#include "mlx5-eq.h"
#include "mlx5-res.h"
#include "trace.h"

enum {
    EQE_SIZE = 64,
    EQE_TYPE = 1,
    EQE_SUB_TYPE = 3,
    EQE_DATA = 0x20,
    EQE_DATA_SIZE = 28,
    EQE_TAIL = 60,                /* last dword: signature and owner bit */
    EQ_CI_MASK = 0xffffff,
    EVENT_TYPES = 256,
};

/* eqc.status and eqc.st. */
enum {
    EQ_STATUS_OK = 0x0,
    EQ_STATUS_OVERFLOW = 0x9,
    EQ_STATUS_WRITE_FAILURE = 0xa,
    EQ_ARMED = 0x9,
    EQ_FIRED = 0xa,
};

/* Syndromes of this file. */
enum {
    SYND_EQ_SIZE = 0x530001,
    SYND_EQ_VECTOR,
    SYND_EQ_UAR,
    SYND_EQ_PAGES,
    SYND_EQ_FULL,
    SYND_EQ_UNKNOWN,
    SYND_EQ_IN_USE,
};

struct Mlx5Eq {
    Mlx5Obj obj;                  /* id: EQ number; refs: CQs that name it */
    Mlx5Buf buf;
    uint8_t log_size;             /* log2 of the entries */
    uint16_t vector;              /* MSI-X */
    uint32_t uar_page;            /* the one whose doorbells it hears */
    bool oi;                      /* overruns are not looked for */
    bool armed;
    uint8_t status;
    uint32_t pi, ci;              /* free running */
    uint64_t mask[4];             /* event types that it asked for */
};

struct Mlx5EqState {
    Mlx5Eq *hears[EVENT_TYPES];   /* rebuilt from the masks */
    uint64_t lost;                /* events that no ring had room for */
};

static Mlx5Eq *eq_find(Mlx5Hca *h, uint32_t eqn)
{
    return (Mlx5Eq *)mlx5_table_get(&h->eqs, eqn);
}

bool mlx5_eq_valid(Mlx5Hca *h, uint32_t eqn)
{
    return eq_find(h, eqn) != NULL;
}

static bool eq_asked(const Mlx5Eq *eq, unsigned type)
{
    return eq->mask[type / 64] >> (type % 64) & 1;
}

/* The kernel's newest EQ that asked for a type hears it. */
static void eq_map_events(Mlx5Hca *h)
{
    Mlx5Obj *o;
    unsigned type;

    memset(h->eq->hears, 0, sizeof(h->eq->hears));
    QTAILQ_FOREACH(o, &h->eqs.all, next) {
        if (o->uid) {
            continue;
        }
        for (type = 1; type < EVENT_TYPES; type++) {
            if (eq_asked((Mlx5Eq *)o, type)) {
                h->eq->hears[type] = (Mlx5Eq *)o;
            }
        }
    }
}

static uint32_t eq_room(const Mlx5Eq *eq)
{
    uint32_t used = eq->pi - eq->ci, size = 1u << eq->log_size;

    return used < size ? size - used : 0;
}

static void eq_interrupt(Mlx5Hca *h, Mlx5Eq *eq)
{
    if (eq->armed && eq->pi != eq->ci) {
        eq->armed = false;
        trace_mlx5_eq_irq(h->name, eq->obj.id, eq->vector);
        h->raise_irq(h, eq->vector);
    }
}

static bool eq_post(Mlx5Hca *h, Mlx5Eq *eq, const uint8_t *eqe)
{
    uint64_t at = (uint64_t)(eq->pi & ((1u << eq->log_size) - 1)) * EQE_SIZE;
    uint8_t tail[4] = { 0, 0, 0, eq->pi >> eq->log_size & 1 };

    if (!eq->oi && !eq_room(eq)) {
        if (eq->status == EQ_STATUS_OK) {
            mlx5_guest_error(h, "EQ 0x%x is full: event 0x%x is lost",
                             eq->obj.id, eqe[EQE_TYPE]);
            eq->status = EQ_STATUS_OVERFLOW;
        }
        h->eq->lost++;
        trace_mlx5_eq_overflow(h->name, eq->obj.id, eqe[EQE_TYPE]);
        return false;
    }
    if (mlx5_buf_write(h, &eq->buf, at, eqe, EQE_TAIL) != MLX5_DMA_OK) {
        mlx5_guest_error(h, "EQ 0x%x: entry %u is not writable", eq->obj.id,
                         eq->pi);
        eq->status = EQ_STATUS_WRITE_FAILURE;
        return false;
    }
    smp_wmb(); /* the owner bit makes the rest visible */
    if (mlx5_buf_write(h, &eq->buf, at + EQE_TAIL, tail, sizeof(tail)) !=
        MLX5_DMA_OK) {
        eq->status = EQ_STATUS_WRITE_FAILURE;
        return false;
    }
    eq->pi++;
    eq_interrupt(h, eq);
    return true;
}

bool mlx5_event(Mlx5Hca *h, uint8_t type, uint8_t sub_type,
                const void *data, uint32_t len)
{
    Mlx5Eq *eq = h->eq->hears[type];
    uint8_t eqe[EQE_SIZE] = { };

    trace_mlx5_event(h->name, eq ? eq->obj.id : 0, type, sub_type);
    if (!eq) {
        return false;
    }
    eqe[EQE_TYPE] = type;
    eqe[EQE_SUB_TYPE] = sub_type;
    memcpy(eqe + EQE_DATA, data, MIN(len, EQE_DATA_SIZE));
    return eq_post(h, eq, eqe);
}

bool mlx5_event_heard(Mlx5Hca *h, uint8_t type)
{
    return h->eq->hears[type] != NULL;
}

uint32_t mlx5_event_room(Mlx5Hca *h, uint8_t type)
{
    Mlx5Eq *eq = h->eq->hears[type];

    return eq ? eq_room(eq) : 0;
}

void mlx5_eq_comp(Mlx5Hca *h, uint32_t eqn, uint32_t cqn)
{
    Mlx5Eq *eq = eq_find(h, eqn);
    uint8_t eqe[EQE_SIZE] = { };

    if (eq) {
        eqe[EQE_TYPE] = MLX5_EVENT_COMP;
        stl_be_p(eqe + EQE_DATA + 24, cqn);
        eq_post(h, eq, eqe);
    }
}

void mlx5_eq_doorbell(Mlx5Hca *h, uint32_t uar, uint32_t value, bool arm)
{
    Mlx5Eq *eq = eq_find(h, value >> 24);
    bool was_full;

    if (!eq || eq->uar_page != uar) {
        mlx5_guest_error(h, "doorbell for EQ 0x%x in UAR 0x%x, which is not "
                         "its own", value >> 24, uar);
        return;
    }
    was_full = !eq_room(eq);
    eq->ci = eq->pi - ((eq->pi - value) & EQ_CI_MASK);
    if (eq->status == EQ_STATUS_OVERFLOW && eq_room(eq)) {
        eq->status = EQ_STATUS_OK;
    }
    trace_mlx5_eq_doorbell(h->name, eq->obj.id, eq->ci, eq->pi, arm);
    if (arm) {
        eq->armed = true;
        eq_interrupt(h, eq);
    }
    if (eq == h->eq->hears[MLX5_EVENT_PAGE_FAULT] &&
        (was_full || eq->pi != eq->ci || arm)) {
        mlx5_odp_eq_room(h);
    }
}

void mlx5_event_qp(Mlx5Hca *h, uint8_t type, uint32_t qpn, uint8_t wq_type)
{
    uint8_t data[EQE_DATA_SIZE] = { };

    data[20] = wq_type;
    stl_be_p(data + 24, qpn);
    mlx5_event(h, type, 0, data, sizeof(data));
}

void mlx5_event_srq(Mlx5Hca *h, uint8_t type, uint32_t srqn)
{
    mlx5_event_qp(h, type, srqn, 0);
}

void mlx5_event_cq_error(Mlx5Hca *h, uint32_t cqn, uint8_t syndrome)
{
    uint8_t data[EQE_DATA_SIZE] = { };

    stl_be_p(data, cqn);
    data[11] = syndrome;
    mlx5_event(h, MLX5_EVENT_CQ_ERROR, 0, data, sizeof(data));
}

void mlx5_event_port(Mlx5Hca *h, uint8_t sub_type)
{
    uint8_t data[EQE_DATA_SIZE] = { };

    data[8] = 1 << 4;             /* port number */
    mlx5_event(h, MLX5_EVENT_PORT_CHANGE, sub_type, data, sizeof(data));
}

static enum Mlx5CmdStatus cmd_create_eq(Mlx5Hca *h, Mlx5Cmd *c)
{
    const uint8_t *eqc = MLX5_ADDR(c->in, create_eq_in, eq_context_entry);
    const uint8_t *mask = MLX5_ADDR(c->in, create_eq_in, event_bitmask);
    uint32_t log_size = MLX5_GET(eqc, eqc, log_eq_size);
    uint32_t vector = MLX5_GET(eqc, eqc, intr);
    uint32_t uar = MLX5_GET(eqc, eqc, uar_page);
    g_autofree Mlx5Eq *eq = NULL;
    int i;

    if (log_size > MLX5_LOG_MAX_EQ_SZ) {
        c->syndrome = SYND_EQ_SIZE;
        return MLX5_CMD_BAD_PARAM;
    }
    if (vector >= h->num_vectors) {
        c->syndrome = SYND_EQ_VECTOR;
        return MLX5_CMD_BAD_PARAM;
    }
    if (!mlx5_uar_owned(h, c, uar)) {
        c->syndrome = SYND_EQ_UAR;
        return MLX5_CMD_BAD_RES;
    }
    eq = g_new0(Mlx5Eq, 1);
    if (!mlx5_buf_init(&eq->buf, MLX5_ADDR(c->in, create_eq_in, pas),
                       c->in_len - MLX5_AT(create_eq_in, pas),
                       MLX5_GET(eqc, eqc, log_page_size),
                       MLX5_GET(eqc, eqc, page_offset),
                       (uint64_t)EQE_SIZE << log_size)) {
        c->syndrome = SYND_EQ_PAGES;
        return MLX5_CMD_BAD_PARAM;
    }
    eq->obj.uid = c->uid;
    eq->log_size = log_size;
    eq->vector = vector;
    eq->uar_page = uar;
    eq->oi = MLX5_GET(eqc, eqc, oi);
    eq->armed = MLX5_GET(eqc, eqc, st) == EQ_ARMED;
    for (i = 0; i < ARRAY_SIZE(eq->mask); i++) {
        eq->mask[i] = ldq_be_p(mask + 8 * i);
    }
    if (!mlx5_table_add(&h->eqs, &eq->obj)) {
        mlx5_buf_fini(&eq->buf);
        c->syndrome = SYND_EQ_FULL;
        return MLX5_CMD_NO_RES;
    }
    trace_mlx5_eq_create(h->name, eq->obj.id, 1u << log_size, vector,
                         eq->mask[0]);
    mlx5_uar_ref(h, uar, 1);
    MLX5_SET(c->out, create_eq_out, eq_number, eq->obj.id);
    g_steal_pointer(&eq);
    eq_map_events(h);
    return MLX5_CMD_OK;
}

static void eq_destroy(Mlx5Hca *h, Mlx5Eq *eq)
{
    trace_mlx5_eq_destroy(h->name, eq->obj.id);
    mlx5_uar_ref(h, eq->uar_page, -1);
    mlx5_table_del(&h->eqs, &eq->obj);
    mlx5_buf_fini(&eq->buf);
    g_free(eq);
}

static enum Mlx5CmdStatus cmd_destroy_eq(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Obj *o = mlx5_res_get(c, &h->eqs,
                              MLX5_GET(c->in, destroy_eq_in, eq_number));

    if (!o) {
        c->syndrome = SYND_EQ_UNKNOWN;
        return MLX5_CMD_BAD_RES;
    }
    if (o->refs) {
        c->syndrome = SYND_EQ_IN_USE;
        return MLX5_CMD_BAD_RES_STATE;
    }
    eq_destroy(h, (Mlx5Eq *)o);
    eq_map_events(h);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_query_eq(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint8_t *eqc = MLX5_ADDR(c->out, query_eq_out, eq_context_entry);
    Mlx5Eq *eq = (Mlx5Eq *)mlx5_res_get(c, &h->eqs,
                     MLX5_GET(c->in, query_eq_in, eq_number));

    if (!eq) {
        c->syndrome = SYND_EQ_UNKNOWN;
        return MLX5_CMD_BAD_RES;
    }
    MLX5_SET(eqc, eqc, status, eq->status);
    MLX5_SET(eqc, eqc, oi, eq->oi);
    MLX5_SET(eqc, eqc, st, eq->armed ? EQ_ARMED : EQ_FIRED);
    MLX5_SET(eqc, eqc, log_eq_size, eq->log_size);
    MLX5_SET(eqc, eqc, uar_page, eq->uar_page);
    MLX5_SET(eqc, eqc, intr, eq->vector);
    MLX5_SET(eqc, eqc, log_page_size, eq->buf.log_page - 12);
    MLX5_SET(eqc, eqc, consumer_counter, eq->ci & EQ_CI_MASK);
    MLX5_SET(eqc, eqc, producer_counter, eq->pi & EQ_CI_MASK);
    MLX5_SET64(c->out, query_eq_out, event_bitmask, eq->mask[0]);
    return MLX5_CMD_OK;
}

/* The driver posts an event of its own making to one EQ. */
static enum Mlx5CmdStatus cmd_gen_eqe(Mlx5Hca *h, Mlx5Cmd *c)
{
    const uint8_t *eqe = c->in + MLX5_AT(gen_eqe_in, eqe);
    Mlx5Eq *eq = (Mlx5Eq *)mlx5_res_get(c, &h->eqs,
                     MLX5_GET(c->in, gen_eqe_in, eq_number));

    if (!eq) {
        c->syndrome = SYND_EQ_UNKNOWN;
        return MLX5_CMD_BAD_RES;
    }
    return eq_post(h, eq, eqe) ? MLX5_CMD_OK : MLX5_CMD_NO_RES;
}

const Mlx5CmdDesc mlx5_eq_cmds[] = {
    { 0x301, "CREATE_EQ", MLX5_AT(create_eq_in, pas), 16, cmd_create_eq },
    { 0x302, "DESTROY_EQ", 16, 8, cmd_destroy_eq },
    { 0x303, "QUERY_EQ", 16, MLX5_AT(query_eq_out, pas), cmd_query_eq },
    { 0x304, "GEN_EQE", MLX5_BYTES(gen_eqe_in), 8, cmd_gen_eqe },
    { }
};

void mlx5_eq_init(Mlx5Hca *h)
{
    h->eq = g_new0(struct Mlx5EqState, 1);
    mlx5_table_init(h, &h->eqs, "eq", 1, MLX5_MAX_EQS - 1);
}

void mlx5_eq_destroy_all(Mlx5Hca *h)
{
    Mlx5Obj *o;

    while ((o = QTAILQ_FIRST(&h->eqs.all))) {
        eq_destroy(h, (Mlx5Eq *)o);
    }
    eq_map_events(h);
}

void mlx5_eq_fini(Mlx5Hca *h)
{
    mlx5_eq_destroy_all(h);
    mlx5_table_fini(&h->eqs);
    g_free(h->eq);
    h->eq = NULL;
}

static int eq_post_load(void *opaque, int version_id)
{
    Mlx5Eq *eq = opaque;

    return eq->log_size <= MLX5_LOG_MAX_EQ_SZ ? 0 : -EINVAL;
}

/* Elements are allocated as they come, and not zeroed. */
static int mlx5_eq_pre_load(void *opaque)
{
    memset(opaque, 0, sizeof(Mlx5Eq));
    return 0;
}

static const VMStateDescription vmstate_mlx5_eq = {
    .name = "mlx5-hca/eq",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = mlx5_eq_pre_load,
    .post_load = eq_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5Eq),
        VMSTATE_STRUCT(buf, Mlx5Eq, 1, vmstate_mlx5_buf, Mlx5Buf),
        VMSTATE_UINT8(log_size, Mlx5Eq),
        VMSTATE_UINT16(vector, Mlx5Eq),
        VMSTATE_UINT32(uar_page, Mlx5Eq),
        VMSTATE_BOOL(oi, Mlx5Eq),
        VMSTATE_BOOL(armed, Mlx5Eq),
        VMSTATE_UINT8(status, Mlx5Eq),
        VMSTATE_UINT32(pi, Mlx5Eq),
        VMSTATE_UINT32(ci, Mlx5Eq),
        VMSTATE_UINT64_ARRAY(mask, Mlx5Eq, 4),
        VMSTATE_END_OF_LIST()
    },
};

static int eqs_pre_load(void *opaque)
{
    mlx5_eq_destroy_all(opaque);
    return 0;
}

static int eqs_post_load(void *opaque, int version_id)
{
    Mlx5Hca *h = opaque;
    Mlx5Obj *o;

    if (!mlx5_table_post_load(&h->eqs)) {
        return -EINVAL;
    }
    QTAILQ_FOREACH(o, &h->eqs.all, next) {
        if (((Mlx5Eq *)o)->vector >= h->num_vectors) {
            return -EINVAL;
        }
    }
    eq_map_events(h);
    return 0;
}

const VMStateDescription vmstate_mlx5_eqs = {
    .name = "mlx5-hca/eqs",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = eqs_pre_load,
    .post_load = eqs_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_TABLE(eqs, Mlx5Hca, vmstate_mlx5_eq, Mlx5Eq),
        VMSTATE_END_OF_LIST()
    },
};
