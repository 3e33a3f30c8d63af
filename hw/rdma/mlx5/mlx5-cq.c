/*
 * mlx5 completion queues
 *
 * The owner bit of a CQE changes with every lap of the ring, so software
 * tells a new CQE from an old one without a word from us. We learn the
 * consumer counter from the doorbell record, and only when what we know of
 * it says that the ring is full.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qapi/error.h"
#include "migration/vmstate.h"
#include "mlx5-caps.h"
#include "mlx5-cmd.h"
#include "mlx5-cq.h"
#include "mlx5-devx.h"
#include "mlx5-eq.h"
#include "mlx5-res.h"
#include "trace.h"

enum {
    MLX5_CQ_COUNTER = 0xffffff,   /* counters are 24 bits in guest memory */
    MLX5_CQ_DB_SOLICITED = 1 << 24,
    /* MODIFY_CQ field select, op_mod 0 and 1 */
    MLX5_CQ_MODIFY_PERIOD = 1 << 0,
    MLX5_CQ_MODIFY_COUNT = 1 << 1,
    MLX5_CQ_MODIFY_OVERRUN = 1 << 2,
    MLX5_CQ_MODIFY_PERIOD_MODE = 1 << 4,
    MLX5_CQ_RESIZE_LOG_SIZE = 1 << 0,
};

static uint32_t mlx5_cq_stride(const Mlx5Cq *cq)
{
    return cq->cqe_sz ? 128 : 64;
}

Mlx5Cq *mlx5_cq_find(Mlx5Hca *h, uint32_t cqn)
{
    return (Mlx5Cq *)mlx5_table_get(&h->cqs, cqn);
}

/* Completion events */

static void mlx5_cq_fire(Mlx5Cq *cq)
{
    cq->armed = 0;
    cq->event_due = false;
    cq->notified_pi = cq->pi;
    if (cq->timer) {
        timer_del(cq->timer);
    }
    trace_mlx5_cq_event(cq->hca->name, cq->obj.id, cq->pi);
    mlx5_eq_comp(cq->hca, cq->eqn, cq->obj.id);
}

static void mlx5_cq_timer(void *opaque)
{
    Mlx5Cq *cq = opaque;

    if (cq->event_due) {
        mlx5_cq_fire(cq);
    }
}

/* An armed CQ has a completion to tell of: now, or when moderation says. */
static void mlx5_cq_notify(Mlx5Cq *cq)
{
    uint32_t pending = (cq->pi - cq->notified_pi) & MLX5_CQ_COUNTER;

    if (!cq->period || cq->max_count <= 1 || pending >= cq->max_count) {
        mlx5_cq_fire(cq);
        return;
    }
    if (!cq->event_due) {
        if (!cq->timer) {
            cq->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, mlx5_cq_timer, cq);
        }
        cq->event_due = true;
        timer_mod(cq->timer, mlx5_timestamp() + cq->period * SCALE_US);
    }
}

void mlx5_cq_doorbell(Mlx5Hca *h, uint64_t value)
{
    uint32_t cmd = value >> 32, ci = cmd & MLX5_CQ_COUNTER;
    Mlx5Cq *cq = mlx5_cq_find(h, value & MLX5_CQ_COUNTER);

    if (!cq) {
        mlx5_guest_error(h, "doorbell for CQ 0x%06x, which does not exist",
                         (uint32_t)value & MLX5_CQ_COUNTER);
        return;
    }
    if (((cq->pi - ci) & MLX5_CQ_COUNTER) <= 1u << cq->log_size) {
        cq->ci = cq->pi - ((cq->pi - ci) & MLX5_CQ_COUNTER);
    }
    cq->arm_sn = (cmd >> 28) & 3;
    cq->armed = cmd & MLX5_CQ_DB_SOLICITED ? 2 : 1;
    trace_mlx5_cq_arm(h->name, cq->obj.id, ci, cq->arm_sn, cq->armed);
    /* What came between the poll and the doorbell counts. */
    if (cq->armed == 1 ? ci != (cq->pi & MLX5_CQ_COUNTER)
                       : (int32_t)(cq->solicited_pi - cq->ci) > 0) {
        mlx5_cq_notify(cq);
    }
}

/* Posting */

void mlx5_cq_fail(Mlx5Cq *cq, uint8_t status, uint8_t syndrome)
{
    cq->status = status;
    trace_mlx5_cq_error(cq->hca->name, cq->obj.id, status);
    mlx5_guest_error(cq->hca, "CQ 0x%06x %s", cq->obj.id,
                     status == MLX5_CQ_STATUS_OVERFLOW ? "has overrun"
                     : "cannot be written");
    mlx5_event_cq_error(cq->hca, cq->obj.id, syndrome);
}

/* CQEs that software has not taken yet; the whole ring when it says nonsense */
static uint32_t mlx5_cq_used(Mlx5Cq *cq)
{
    uint32_t size = 1u << cq->log_size, used;
    uint8_t rec[4];

    if (mlx5_dma_read(cq->hca, cq->dbr_addr, rec, 4) != MLX5_DMA_OK) {
        return size;
    }
    used = (cq->pi - ldl_be_p(rec)) & MLX5_CQ_COUNTER;
    if (used > size) {
        return size;
    }
    cq->ci = cq->pi - used;
    return used;
}

static bool mlx5_cq_full(Mlx5Cq *cq)
{
    uint32_t size = 1u << cq->log_size;

    uint32_t more = mlx5_mini_pending(cq);

    return cq->pi + more - cq->ci >= size && mlx5_cq_used(cq) + more >= size;
}

bool mlx5_cq_write(Mlx5Cq *cq, uint32_t index, const uint8_t b[64], bool cqe)
{
    uint32_t stride = mlx5_cq_stride(cq), size = 1u << cq->log_size;
    uint64_t contig;
    uint64_t addr = mlx5_buf_addr(&cq->buf, (uint64_t)(index & (size - 1)) *
                                  stride + stride - 64, &contig);
    uint64_t last = ldq_he_p(b + 56);
    uint8_t *owner = (uint8_t *)&last + 7;
    Mlx5Hold hold;

    if (cqe) {
        *owner = (*owner & ~1) | !!(index & size);
    }
    if (contig < 64 ||
        mlx5_dma_hold(cq->hca, addr, 64, true, &hold) != MLX5_DMA_OK) {
        return false;
    }
    if (hold.len == 64) {
        memcpy(hold.ptr, b, 56);
        smp_wmb();                /* the owner bit gives the CQE away */
        qatomic_set__nocheck((uint64_t *)((uint8_t *)hold.ptr + 56), last);
        mlx5_dma_release(cq->hca, &hold, 64);
        return true;
    }
    mlx5_dma_release(cq->hca, &hold, 0);
    return mlx5_dma_write(cq->hca, addr, b, 56) == MLX5_DMA_OK &&
           mlx5_dma_write(cq->hca, addr + 56, &last, 8) == MLX5_DMA_OK;
}

void mlx5_cq_advance(Mlx5Cq *cq, uint32_t n, bool solicited)
{
    cq->pi += n;
    if (solicited) {
        cq->solicited_pi = cq->pi;
    }
    if (cq->armed == 1 || (cq->armed == 2 && solicited)) {
        mlx5_cq_notify(cq);
    }
}

bool mlx5_cq_post(Mlx5Hca *h, Mlx5Cq *cq, const uint8_t cqe[64],
                  bool solicited)
{
    uint8_t opcode = cqe[63] >> 4;

    if (cq->status != MLX5_CQ_STATUS_OK) {
        return false;
    }
    if (!cq->oi && mlx5_cq_full(cq)) {
        mlx5_mini_flush(cq);
        mlx5_cq_fail(cq, MLX5_CQ_STATUS_OVERFLOW, MLX5_CQ_ERR_OVERRUN);
        return false;
    }
    if (mlx5_mini_take(cq, cqe, solicited)) {
        return true;
    }
    if (!mlx5_mini_flush(cq) || cq->status != MLX5_CQ_STATUS_OK) {
        return false;
    }
    if (!mlx5_cq_write(cq, cq->pi, cqe, true)) {
        mlx5_cq_fail(cq, MLX5_CQ_STATUS_WRITE, MLX5_CQ_ERR_ACCESS);
        return false;
    }
    trace_mlx5_cq_post(h->name, cq->obj.id, cq->pi, opcode, solicited);
    solicited |= opcode == MLX5_CQE_REQ_ERR || opcode == MLX5_CQE_RESP_ERR;
    mlx5_cq_advance(cq, 1, solicited);
    return true;
}

/* Commands */

static void mlx5_cq_free(Mlx5Hca *h, Mlx5Cq *cq)
{
    mlx5_obj_ref(mlx5_table_get(&h->eqs, cq->eqn), -1);
    mlx5_uar_ref(h, cq->uar_page, -1);
    mlx5_table_del(&h->cqs, &cq->obj);
    if (cq->timer) {
        timer_free(cq->timer);
    }
    mlx5_umem_put(h, &cq->umems);
    mlx5_buf_fini(&cq->buf);
    mlx5_mini_free(cq);
    g_free(cq);
}

/* The queue's memory: a list of pages @pas, or a part of a UMEM. */
static bool mlx5_cq_buf(Mlx5Hca *h, Mlx5Cmd *c, bool umem, const uint8_t *cqc,
                        const uint8_t *pas, uint64_t size, Mlx5Buf *buf,
                        Mlx5UmemRefs *umems)
{
    if (umem) {
        return mlx5_umem_buf(h, c, mlx5_umem_get32(c->in, MLX5_UMEM_CQ_ID),
                             mlx5_umem_get64(c->in, MLX5_UMEM_CQ_OFFSET),
                             size, true, buf, umems);
    }
    return mlx5_buf_init(buf, pas, c->in_len - (pas - c->in),
                         MLX5_GET(cqc, cqc, log_page_size),
                         MLX5_GET(cqc, cqc, page_offset), size);
}

/* As the context says. */
static void mlx5_cq_compress(Mlx5Cq *cq)
{
    cq->mini_format = MLX5_GET(cq->raw, cqc, mini_cqe_res_format);
    if (MLX5_GET(cq->raw, cqc, cqe_comp_en) && !cq->mini) {
        mlx5_mini_new(cq);
    }
}

static enum Mlx5CmdStatus mlx5_cq_create(Mlx5Hca *h, Mlx5Cmd *c)
{
    const uint8_t *cqc = MLX5_ADDR(c->in, create_cq_in, cq_context);
    const uint8_t *pas = MLX5_ADDR(c->in, create_cq_in, pas);
    uint32_t log_size = MLX5_GET(cqc, cqc, log_cq_size);
    uint32_t eqn = MLX5_GET(cqc, cqc, c_eqn_or_apu_element);
    uint32_t cqe_sz = MLX5_GET(cqc, cqc, cqe_sz);
    uint64_t dbr = MLX5_GET64(cqc, cqc, dbr_addr);
    Mlx5UmemRefs umems = { 0 };
    Mlx5Cq *cq;

    if (log_size > MLX5_LOG_MAX_CQ_SZ || cqe_sz > 2 || dbr & 7 ||
        (MLX5_GET(cqc, cqc, cqe_comp_en) &&
         (MLX5_GET(cqc, cqc, mini_cqe_res_format) == 2 ||
          MLX5_GET(cqc, cqc, cqe_compression_layout)))) {
        return MLX5_CMD_BAD_PARAM;
    }
    if (!mlx5_res_get_shared(c, &h->eqs, eqn) ||
        !mlx5_uar_owned(h, c, MLX5_GET(cqc, cqc, uar_page)) ||
        (MLX5_GET(cqc, cqc, dbr_umem_valid) &&
         !mlx5_umem_dbr(h, c, mlx5_umem_get32(cqc, MLX5_UMEM_CQC_DBR_ID), &dbr,
                        &umems))) {
        return MLX5_CMD_BAD_RES;
    }
    cq = g_new0(Mlx5Cq, 1);
    cq->hca = h;
    cq->obj.uid = c->uid;
    cq->eqn = eqn;
    cq->uar_page = MLX5_GET(cqc, cqc, uar_page);
    cq->log_size = log_size;
    cq->cqe_sz = cqe_sz ? 1 : 0;
    cq->oi = MLX5_GET(cqc, cqc, oi);
    cq->period = MLX5_GET(cqc, cqc, cq_period);
    cq->max_count = MLX5_GET(cqc, cqc, cq_max_count);
    cq->dbr_addr = dbr;
    memcpy(cq->raw, cqc, sizeof(cq->raw));
    if (!mlx5_cq_buf(h, c, MLX5_GET(c->in, create_cq_in, cq_umem_valid), cqc,
                     pas, (uint64_t)mlx5_cq_stride(cq) << log_size,
                     &cq->buf, &umems)) {
        mlx5_umem_put(h, &umems);
        g_free(cq);
        return MLX5_CMD_BAD_PARAM;
    }
    cq->umems = umems;
    mlx5_cq_compress(cq);
    if (!mlx5_table_add(&h->cqs, &cq->obj)) {
        mlx5_umem_put(h, &umems);
        mlx5_buf_fini(&cq->buf);
        mlx5_mini_free(cq);
        g_free(cq);
        return MLX5_CMD_NO_RES;
    }
    mlx5_obj_ref(mlx5_table_get(&h->eqs, eqn), 1);
    mlx5_uar_ref(h, cq->uar_page, 1);
    MLX5_SET(c->out, create_cq_out, cqn, cq->obj.id);
    trace_mlx5_cq_create(h->name, cq->obj.id, 1u << log_size,
                         mlx5_cq_stride(cq), eqn);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus mlx5_cq_destroy(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Cq *cq = mlx5_cq_find(h, MLX5_GET(c->in, destroy_cq_in, cqn));

    if (!cq || cq->obj.uid != c->uid) {
        return MLX5_CMD_BAD_RES;
    }
    if (cq->obj.refs) {
        return MLX5_CMD_BAD_RES_STATE;
    }
    trace_mlx5_cq_destroy(h->name, cq->obj.id);
    mlx5_cq_free(h, cq);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus mlx5_cq_query(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Cq *cq = (Mlx5Cq *)mlx5_res_get(c, &h->cqs, MLX5_GET(c->in,
                                                    query_cq_in, cqn));
    uint8_t *cqc = MLX5_ADDR(c->out, query_cq_out, cq_context);

    if (!cq) {
        return MLX5_CMD_BAD_RES;
    }
    memcpy(cqc, cq->raw, sizeof(cq->raw));
    MLX5_SET(cqc, cqc, status, cq->status);
    MLX5_SET(cqc, cqc, st, cq->armed ? (cq->armed == 2 ? 6 : 9) : 0xa);
    MLX5_SET(cqc, cqc, oi, cq->oi);
    MLX5_SET(cqc, cqc, log_cq_size, cq->log_size);
    MLX5_SET(cqc, cqc, cq_period, cq->period);
    MLX5_SET(cqc, cqc, cq_max_count, cq->max_count);
    MLX5_SET(cqc, cqc, last_notified_index, cq->notified_pi & MLX5_CQ_COUNTER);
    MLX5_SET(cqc, cqc, last_solicit_index, cq->solicited_pi & MLX5_CQ_COUNTER);
    MLX5_SET(cqc, cqc, consumer_counter, cq->ci & MLX5_CQ_COUNTER);
    MLX5_SET(cqc, cqc, producer_counter, cq->pi & MLX5_CQ_COUNTER);
    return MLX5_CMD_OK;
}

/*
 * The last CQE in the old ring says that the rest comes in the new one; it
 * takes one producer index, as software counts on.
 */
static enum Mlx5CmdStatus mlx5_cq_resize(Mlx5Hca *h, Mlx5Cmd *c, Mlx5Cq *cq)
{
    const uint8_t *cqc = MLX5_ADDR(c->in, modify_cq_in, cq_context);
    const uint8_t *pas = MLX5_ADDR(c->in, modify_cq_in, pas);
    uint32_t log_size = MLX5_GET(cqc, cqc, log_cq_size);
    uint8_t cqe[64] = { [63] = MLX5_CQE_RESIZE_CQ << 4 };
    Mlx5UmemRefs umems = { 0 }, old = { 0 };
    uint32_t used;
    Mlx5Buf buf;

    if (cq->status != MLX5_CQ_STATUS_OK) {
        return MLX5_CMD_BAD_RES_STATE;
    }
    if (log_size > MLX5_LOG_MAX_CQ_SZ ||
        !!MLX5_GET(cqc, cqc, cqe_sz) != cq->cqe_sz ||
        !mlx5_cq_buf(h, c, MLX5_GET(c->in, modify_cq_in, cq_umem_valid), cqc,
                     pas, (uint64_t)mlx5_cq_stride(cq) << log_size, &buf,
                     &umems)) {
        return MLX5_CMD_BAD_PARAM;
    }
    used = mlx5_cq_used(cq);
    if (used >= 1u << log_size || used >= 1u << cq->log_size ||
        !mlx5_cq_write(cq, cq->pi, cqe, true)) {
        mlx5_buf_fini(&buf);
        mlx5_umem_put(h, &umems);
        return MLX5_CMD_BAD_SIZE_OUTS_CQES;
    }
    cq->pi++;
    mlx5_buf_fini(&cq->buf);
    cq->buf = buf;
    old.mem = cq->umems.mem;
    cq->umems.mem = umems.mem;
    mlx5_umem_put(h, &old);
    cq->log_size = log_size;
    MLX5_SET(cq->raw, cqc, log_page_size, MLX5_GET(cqc, cqc, log_page_size));
    MLX5_SET(cq->raw, cqc, page_offset, MLX5_GET(cqc, cqc, page_offset));
    trace_mlx5_cq_resize(h->name, cq->obj.id, 1u << log_size);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus mlx5_cq_modify(Mlx5Hca *h, Mlx5Cmd *c)
{
    const uint8_t *cqc = MLX5_ADDR(c->in, modify_cq_in, cq_context);
    Mlx5Cq *cq = mlx5_cq_find(h, MLX5_GET(c->in, modify_cq_in, cqn));
    uint32_t select = ldl_be_p(
        MLX5_ADDR(c->in, modify_cq_in,
                  modify_field_select_resize_field_select));

    if (!cq || cq->obj.uid != c->uid) {
        return MLX5_CMD_BAD_RES;
    }
    if (c->op_mod == 1) {
        return select & MLX5_CQ_RESIZE_LOG_SIZE ? mlx5_cq_resize(h, c, cq)
                                                : MLX5_CMD_BAD_PARAM;
    }
    if (c->op_mod) {
        return MLX5_CMD_BAD_PARAM;
    }
    if (select & MLX5_CQ_MODIFY_PERIOD) {
        cq->period = MLX5_GET(cqc, cqc, cq_period);
    }
    if (select & MLX5_CQ_MODIFY_COUNT) {
        cq->max_count = MLX5_GET(cqc, cqc, cq_max_count);
    }
    if (select & MLX5_CQ_MODIFY_OVERRUN) {
        cq->oi = MLX5_GET(cqc, cqc, oi);
    }
    if (select & MLX5_CQ_MODIFY_PERIOD_MODE) {
        MLX5_SET(cq->raw, cqc, cq_period_mode,
                 MLX5_GET(cqc, cqc, cq_period_mode));
    }
    if (cq->event_due) {
        mlx5_cq_fire(cq);         /* under the old rules, never lost */
    }
    return MLX5_CMD_OK;
}

const Mlx5CmdDesc mlx5_cq_cmds[] = {
    { 0x400, "CREATE_CQ", MLX5_BYTES(create_cq_in), MLX5_BYTES(create_cq_out),
      mlx5_cq_create },
    { 0x401, "DESTROY_CQ", MLX5_BYTES(destroy_cq_in),
      MLX5_BYTES(destroy_cq_out), mlx5_cq_destroy },
    { 0x402, "QUERY_CQ", MLX5_BYTES(query_cq_in), MLX5_BYTES(query_cq_out),
      mlx5_cq_query },
    { 0x403, "MODIFY_CQ", MLX5_BYTES(modify_cq_in), MLX5_BYTES(modify_cq_out),
      mlx5_cq_modify },
    { }
};

void mlx5_cq_init(Mlx5Hca *h)
{
    mlx5_table_init(h, &h->cqs, "cq", 1, (1u << MLX5_LOG_MAX_CQ) - 1);
}

void mlx5_cq_fini(Mlx5Hca *h)
{
    mlx5_cq_destroy_all(h);
    mlx5_table_fini(&h->cqs);
}

void mlx5_cq_destroy_all(Mlx5Hca *h)
{
    Mlx5Obj *o, *next;

    QTAILQ_FOREACH_SAFE(o, &h->cqs.all, next, next) {
        mlx5_cq_free(h, (Mlx5Cq *)o);
    }
}

/* Migration */

static int mlx5_cq_pre_load(void *opaque)
{
    memset(opaque, 0, sizeof(Mlx5Cq));
    return 0;
}

static bool mlx5_cq_post_load(void *opaque, int version_id, Error **errp)
{
    Mlx5Cq *cq = opaque;

    if (cq->log_size > MLX5_LOG_MAX_CQ_SZ || cq->cqe_sz > 1 ||
        cq->buf.size != (uint64_t)mlx5_cq_stride(cq) << cq->log_size) {
        error_setg(errp, "mlx5: CQ 0x%06x does not fit its memory",
                   cq->obj.id);
        return false;
    }
    return true;
}

static const VMStateDescription vmstate_mlx5_cq = {
    .name = "mlx5-cq",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = mlx5_cq_pre_load,
    .post_load_errp = mlx5_cq_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5Cq),
        VMSTATE_STRUCT(buf, Mlx5Cq, 1, vmstate_mlx5_buf, Mlx5Buf),
        VMSTATE_MLX5_UMEM_REFS(umems, Mlx5Cq),
        VMSTATE_UINT64(dbr_addr, Mlx5Cq),
        VMSTATE_UINT32(eqn, Mlx5Cq),
        VMSTATE_UINT32(uar_page, Mlx5Cq),
        VMSTATE_UINT8(log_size, Mlx5Cq),
        VMSTATE_UINT8(cqe_sz, Mlx5Cq),
        VMSTATE_BOOL(oi, Mlx5Cq),
        VMSTATE_UINT8(status, Mlx5Cq),
        VMSTATE_UINT32(pi, Mlx5Cq),
        VMSTATE_UINT32(ci, Mlx5Cq),
        VMSTATE_UINT32(solicited_pi, Mlx5Cq),
        VMSTATE_UINT32(notified_pi, Mlx5Cq),
        VMSTATE_UINT8(armed, Mlx5Cq),
        VMSTATE_UINT32(arm_sn, Mlx5Cq),
        VMSTATE_UINT16(period, Mlx5Cq),
        VMSTATE_UINT16(max_count, Mlx5Cq),
        VMSTATE_BOOL(event_due, Mlx5Cq),
        VMSTATE_BUFFER(raw, Mlx5Cq),
        VMSTATE_END_OF_LIST()
    }
};

static bool mlx5_cqs_post_load(void *opaque, int version_id, Error **errp)
{
    Mlx5Hca *h = opaque;
    Mlx5Obj *o;

    if (!mlx5_table_post_load(&h->cqs)) {
        error_setg(errp, "mlx5: CQ numbers are not unique");
        return false;
    }
    QTAILQ_FOREACH(o, &h->cqs.all, next) {
        Mlx5Cq *cq = (Mlx5Cq *)o;

        cq->hca = h;
        mlx5_cq_compress(cq);
        if (cq->event_due) {      /* moderation starts its period anew */
            cq->event_due = false;
            mlx5_cq_notify(cq);
        }
    }
    return true;
}

const VMStateDescription vmstate_mlx5_cqs = {
    .name = "mlx5-cqs",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load_errp = mlx5_cqs_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_TABLE(cqs, Mlx5Hca, vmstate_mlx5_cq, Mlx5Cq),
        VMSTATE_END_OF_LIST()
    }
};
