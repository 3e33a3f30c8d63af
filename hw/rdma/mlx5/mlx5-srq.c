/*
 * mlx5 shared receive queues: RMP (a verbs SRQ with ISSI 1), XRC SRQ, SRQ,
 * XRQ
 *
 * Their WQEs form a list through next_wqe_index, which starts at 0.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-caps.h"
#include "mlx5-cmd.h"
#include "mlx5-core.h"
#include "mlx5-cq.h"
#include "mlx5-devx.h"
#include "mlx5-qp.h"
#include "mlx5-res.h"
#include "mlx5-tm.h"
#include "trace.h"

enum { MLX5_SRQ_MAX_LOG = 15 };

static void mlx5_srq_hold_refs(Mlx5Hca *h, Mlx5Srq *srq, int n)
{
    Mlx5Obj *pd = mlx5_table_get(&h->pds, srq->pd);
    Mlx5Obj *cq = mlx5_srq_has_cq(srq->kind)
                  ? mlx5_table_get(&h->cqs, srq->cqn) : NULL;

    mlx5_obj_ref(pd, n);
    if (srq->kind == MLX5_SRQK_XRC) {
        mlx5_obj_ref(mlx5_table_get(&h->xrcds, srq->xrcd), n);
    }
    mlx5_obj_ref(cq, n);
}

static void mlx5_srq_free(Mlx5Hca *h, Mlx5Srq *srq)
{
    mlx5_srq_hold_refs(h, srq, -1);
    mlx5_table_del(&h->srqs, &srq->obj);
    mlx5_umem_put(h, &srq->umems);
    mlx5_buf_fini(&srq->buf);
    mlx5_tm_free(srq);
    g_free(srq);
}

void mlx5_srq_destroy_all(Mlx5Hca *h)
{
    Mlx5Obj *o;

    while ((o = QTAILQ_FIRST(&h->srqs.all))) {
        mlx5_srq_free(h, (Mlx5Srq *)o);
    }
}

/* Where a context of each kind has what all of them have. */
typedef struct Mlx5SrqShape {
    uint32_t log_size, log_stride, log_page, page_offset;
    bool umem;                    /* queue memory in a UMEM: */
    uint32_t umem_id;
    uint64_t umem_offset;
} Mlx5SrqShape;

/*
 * Checks @srq (pd, cqn and doorbell record set), takes the page list behind
 * @head bytes of the command and gives it a number.
 */
static enum Mlx5CmdStatus mlx5_srq_add(Mlx5Hca *h, Mlx5Cmd *c, Mlx5Srq *srq,
                                       const Mlx5SrqShape *shape,
                                       uint32_t head)
{
    enum Mlx5CmdStatus status = MLX5_CMD_OK;

    srq->obj.uid = c->uid;
    srq->entries = 1u << shape->log_size;
    srq->stride = 16u << shape->log_stride;
    if (shape->log_size > MLX5_SRQ_MAX_LOG || srq->stride < 32 ||
        srq->dbr_addr & 3) {
        status = MLX5_CMD_BAD_PARAM;
    } else if (!mlx5_res_get(c, &h->pds, srq->pd) ||
               (mlx5_srq_has_cq(srq->kind) &&
                !mlx5_res_get_shared(c, &h->cqs, srq->cqn))) {
        status = MLX5_CMD_BAD_RES;
    } else if (shape->umem &&
               !mlx5_umem_buf(h, c, shape->umem_id, shape->umem_offset,
                              (uint64_t)srq->entries * srq->stride, true,
                              &srq->buf, &srq->umems)) {
        status = MLX5_CMD_BAD_RES;
    } else if (!shape->umem &&
               !mlx5_buf_init(&srq->buf, c->in + head, c->in_len - head,
                              shape->log_page, shape->page_offset,
                              (uint64_t)srq->entries * srq->stride)) {
        status = MLX5_CMD_BAD_INP_LEN;
    } else if (!mlx5_table_add(&h->srqs, &srq->obj)) {
        mlx5_buf_fini(&srq->buf);
        status = MLX5_CMD_NO_RES;
    }
    if (status != MLX5_CMD_OK) {
        mlx5_umem_put(h, &srq->umems);
        mlx5_tm_free(srq);
        g_free(srq);
        return status;
    }
    mlx5_srq_hold_refs(h, srq, 1);
    trace_mlx5_srq_create(h->name, srq->obj.id, srq->kind, srq->pd,
                          srq->entries, srq->stride);
    return MLX5_CMD_OK;
}

/* A queue whose context has a work queue: @srq has what is not in it. */
static enum Mlx5CmdStatus mlx5_srq_add_wq(Mlx5Hca *h, Mlx5Cmd *c,
                                          Mlx5Srq *srq, const void *wq,
                                          uint32_t head)
{
    uint32_t log_stride = MLX5_GET(wq, wq, log_wq_stride);
    Mlx5SrqShape shape = {
        .log_size = MLX5_GET(wq, wq, log_wq_sz),
        .log_stride = log_stride < 4 ? 0 : log_stride - 4,
        .log_page = MLX5_GET(wq, wq, log_wq_pg_sz),
        .page_offset = MLX5_GET(wq, wq, page_offset),
        .umem = MLX5_GET(wq, wq, wq_umem_valid),
        .umem_id = MLX5_GET(wq, wq, wq_umem_id),
        .umem_offset = MLX5_GET64(wq, wq, wq_umem_offset),
    };

    srq->pd = MLX5_GET(wq, wq, pd);
    srq->lwm = MLX5_GET(wq, wq, lwm);
    srq->dbr_addr = MLX5_GET64(wq, wq, dbr_addr);
    if (MLX5_GET(wq, wq, dbr_umem_valid) &&
        !mlx5_umem_dbr(h, c, MLX5_GET(wq, wq, dbr_umem_id), &srq->dbr_addr,
                       &srq->umems)) {
        mlx5_tm_free(srq);
        g_free(srq);
        return MLX5_CMD_BAD_RES;
    }
    memcpy(srq->raw, wq, sizeof(srq->raw));
    return mlx5_srq_add(h, c, srq, &shape, head);
}

static enum Mlx5CmdStatus mlx5_create_rmp(Mlx5Hca *h, Mlx5Cmd *c)
{
    const void *ctx = MLX5_ADDR(c->in, create_rmp_in, ctx);
    Mlx5Srq *srq = g_new0(Mlx5Srq, 1);
    enum Mlx5CmdStatus status;

    srq->kind = MLX5_SRQK_RMP;
    status = mlx5_srq_add_wq(h, c, srq, MLX5_ADDR(ctx, rmpc, wq),
                             MLX5_BYTES(create_rmp_in));
    if (status == MLX5_CMD_OK) {
        MLX5_SET(c->out, create_rmp_out, rmpn, srq->obj.id);
    }
    return status;
}

enum { XRQ_TAG_MATCHING = 1, XRQ_OFFLOAD_RNDV = 1 };

static enum Mlx5CmdStatus mlx5_create_xrq(Mlx5Hca *h, Mlx5Cmd *c)
{
    const void *ctx = MLX5_ADDR(c->in, create_xrq_in, xrq_context);
    const void *tm = MLX5_ADDR(ctx, xrqc, tag_matching_topology_context);
    uint32_t topology = MLX5_GET(ctx, xrqc, topology);
    uint32_t log = MLX5_GET(tm, tag_matching_topology_context,
                            log_matching_list_sz);
    uint32_t offload = MLX5_GET(ctx, xrqc, offload);
    enum Mlx5CmdStatus status;
    Mlx5Srq *srq;

    if (topology > XRQ_TAG_MATCHING || offload > XRQ_OFFLOAD_RNDV ||
        (topology ? !log || log > MLX5_LOG_MAX_TM_LIST : offload)) {
        return MLX5_CMD_BAD_PARAM;
    }
    srq = g_new0(Mlx5Srq, 1);
    srq->kind = MLX5_SRQK_XRQ;
    srq->cqn = MLX5_GET(ctx, xrqc, cqn);
    srq->user_index = MLX5_GET(ctx, xrqc, user_index);
    if (topology) {
        srq->tm = g_new0(Mlx5Tm, 1);
        srq->tm->rndv = offload;
        srq->tm->n = 1 << log;
        srq->tm->e = g_new0(Mlx5TmEntry, srq->tm->n);
    }
    status = mlx5_srq_add_wq(h, c, srq, MLX5_ADDR(ctx, xrqc, wq),
                             MLX5_BYTES(create_xrq_in));
    if (status == MLX5_CMD_OK) {
        MLX5_SET(c->out, create_xrq_out, xrqn, srq->obj.id);
    }
    return status;
}

static void mlx5_query_xrq(const Mlx5Srq *srq, uint8_t *ctx)
{
    void *tm = MLX5_ADDR(ctx, xrqc, tag_matching_topology_context);

    memcpy(MLX5_ADDR(ctx, xrqc, wq), srq->raw, sizeof(srq->raw));
    MLX5_SET(MLX5_ADDR(ctx, xrqc, wq), wq, lwm, srq->lwm);
    MLX5_SET(ctx, xrqc, state, srq->state);
    MLX5_SET(ctx, xrqc, user_index, srq->user_index);
    MLX5_SET(ctx, xrqc, cqn, srq->cqn);
    if (srq->tm) {
        MLX5_SET(ctx, xrqc, topology, XRQ_TAG_MATCHING);
        MLX5_SET(ctx, xrqc, offload, srq->tm->rndv ? XRQ_OFFLOAD_RNDV : 0);
        MLX5_SET(tm, tag_matching_topology_context, log_matching_list_sz,
                 ctz32(srq->tm->n));
        MLX5_SET(tm, tag_matching_topology_context, append_next_index,
                 srq->tm->next);
        MLX5_SET(tm, tag_matching_topology_context, sw_phase_cnt,
                 srq->tm->sw_cnt);
        MLX5_SET(tm, tag_matching_topology_context, hw_phase_cnt,
                 srq->tm->hw_cnt);
    }
}

/* SRQ and XRC SRQ contexts are alike but for cqn and user_index. */
static enum Mlx5CmdStatus mlx5_create_srq(Mlx5Hca *h, Mlx5Cmd *c)
{
    bool xrc = c->opcode == 0x705;
    const void *ctx = MLX5_ADDR(c->in, create_xrc_srq_in,
                                xrc_srq_context_entry);
    Mlx5Srq *srq;
    Mlx5SrqShape shape = {
        .log_size = MLX5_GET(ctx, xrc_srqc, log_xrc_srq_size),
        .log_stride = MLX5_GET(ctx, xrc_srqc, log_rq_stride),
        .log_page = MLX5_GET(ctx, xrc_srqc, log_page_size),
        .page_offset = MLX5_GET(ctx, xrc_srqc, page_offset),
    };
    enum Mlx5CmdStatus status;

    if (xrc && MLX5_GET(c->in, create_xrc_srq_in, xrc_srq_umem_valid)) {
        mlx5_unimp(h, "XRC SRQ in a UMEM");
        return MLX5_CMD_BAD_PARAM;
    }
    srq = g_new0(Mlx5Srq, 1);

    srq->kind = xrc ? MLX5_SRQK_XRC : MLX5_SRQK_SRQ;
    srq->pd = MLX5_GET(ctx, xrc_srqc, pd);
    srq->lwm = MLX5_GET(ctx, xrc_srqc, lwm);
    srq->dbr_addr = MLX5_GET64(ctx, srqc, dbr_addr);
    if (xrc) {
        srq->xrcd = MLX5_GET(ctx, xrc_srqc, xrcd);
        srq->cqn = MLX5_GET(ctx, xrc_srqc, cqn);
        srq->user_index = MLX5_GET(ctx, xrc_srqc, user_index);
        if (!mlx5_res_get_shared(c, &h->xrcds, srq->xrcd)) {
            g_free(srq);
            return MLX5_CMD_BAD_RES;
        }
    }
    memcpy(srq->raw, ctx, sizeof(srq->raw));
    status = mlx5_srq_add(h, c, srq, &shape, MLX5_BYTES(create_xrc_srq_in));
    if (status == MLX5_CMD_OK) {
        MLX5_SET(c->out, create_xrc_srq_out, xrc_srqn, srq->obj.id);
    }
    return status;
}

/* Every command names its queue by 24 bits at the same place. */
static Mlx5Srq *mlx5_srq_of_cmd(Mlx5Hca *h, Mlx5Cmd *c, uint8_t kind)
{
    Mlx5Srq *srq = mlx5_srq_find(h, MLX5_GET(c->in, arm_xrc_srq_in, xrc_srqn));

    return srq && srq->kind == kind && (!c->uid || srq->obj.uid == c->uid) ?
           srq : NULL;
}

static uint8_t mlx5_srq_kind_of_op(uint16_t opcode)
{
    return opcode >= 0x90c ? MLX5_SRQK_RMP
         : opcode >= 0x717 ? MLX5_SRQK_XRQ
         : opcode >= 0x705 ? MLX5_SRQK_XRC : MLX5_SRQK_SRQ;
}

static enum Mlx5CmdStatus mlx5_destroy_srq(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Srq *srq = mlx5_srq_of_cmd(h, c, mlx5_srq_kind_of_op(c->opcode));

    if (!srq) {
        return MLX5_CMD_BAD_RES;
    }
    if (srq->obj.refs) {
        return MLX5_CMD_BAD_RES_STATE;
    }
    trace_mlx5_srq_destroy(h->name, srq->obj.id);
    mlx5_srq_free(h, srq);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus mlx5_query_srq(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Srq *srq = mlx5_srq_of_cmd(h, c, mlx5_srq_kind_of_op(c->opcode));
    uint8_t *ctx;

    if (!srq) {
        return MLX5_CMD_BAD_RES;
    }
    if (srq->kind == MLX5_SRQK_RMP) {
        void *wq;

        ctx = MLX5_ADDR(c->out, query_rmp_out, rmp_context);
        wq = MLX5_ADDR(ctx, rmpc, wq);
        memcpy(wq, srq->raw, sizeof(srq->raw));
        MLX5_SET(ctx, rmpc, state, srq->state ? 3 : 1);
        MLX5_SET(wq, wq, lwm, srq->lwm);
        return MLX5_CMD_OK;
    }
    if (srq->kind == MLX5_SRQK_XRQ) {
        mlx5_query_xrq(srq, MLX5_ADDR(c->out, query_xrq_out, xrq_context));
        return MLX5_CMD_OK;
    }
    ctx = MLX5_ADDR(c->out, query_xrc_srq_out, xrc_srq_context_entry);
    memcpy(ctx, srq->raw, sizeof(srq->raw));
    MLX5_SET(ctx, xrc_srqc, state, srq->state);
    MLX5_SET(ctx, xrc_srqc, lwm, srq->lwm);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus mlx5_srq_set_limit(Mlx5Hca *h, Mlx5Srq *srq,
                                             uint32_t lwm)
{
    if (!srq) {
        return MLX5_CMD_BAD_RES;
    }
    if (lwm > srq->entries) {
        return MLX5_CMD_BAD_PARAM;
    }
    srq->lwm = lwm;
    trace_mlx5_srq_limit(h->name, srq->obj.id, lwm);
    return MLX5_CMD_OK;
}

/* ARM_RQ (op_mod 1: an SRQ, 2: an XRQ) and ARM_XRC_SRQ. */
static enum Mlx5CmdStatus mlx5_arm_srq(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint8_t kind = c->opcode == 0x708 ? MLX5_SRQK_XRC
                 : c->op_mod == 1 ? MLX5_SRQK_SRQ : MLX5_SRQK_XRQ;

    if (c->op_mod != 1 && (c->op_mod != 2 || kind != MLX5_SRQK_XRQ)) {
        return MLX5_CMD_BAD_PARAM;
    }
    return mlx5_srq_set_limit(h, mlx5_srq_of_cmd(h, c, kind),
                              MLX5_GET(c->in, arm_xrc_srq_in, lwm));
}

static enum Mlx5CmdStatus mlx5_modify_rmp(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Srq *srq = mlx5_srq_of_cmd(h, c, MLX5_SRQK_RMP);
    const void *ctx = MLX5_ADDR(c->in, modify_rmp_in, ctx);

    if (!MLX5_GET(MLX5_ADDR(c->in, modify_rmp_in, bitmask), rmp_bitmask,
                  lwm)) {
        return srq ? MLX5_CMD_OK : MLX5_CMD_BAD_RES;
    }
    return mlx5_srq_set_limit(h, srq, MLX5_GET(MLX5_ADDR(ctx, rmpc, wq), wq,
                                               lwm));
}

#define XRC_OUT (MLX5_OFF_query_xrc_srq_out_xrc_srq_context_entry / 8 + \
                 MLX5_BYTES(xrc_srqc))

const Mlx5CmdDesc mlx5_srq_cmds[] = {
    { 0x700, "CREATE_SRQ", MLX5_BYTES(create_xrc_srq_in), 16, mlx5_create_srq },
    { 0x701, "DESTROY_SRQ", 16, 16, mlx5_destroy_srq },
    { 0x702, "QUERY_SRQ", 16, XRC_OUT, mlx5_query_srq },
    { 0x703, "ARM_RQ", 16, 16, mlx5_arm_srq },
    { 0x705, "CREATE_XRC_SRQ", MLX5_BYTES(create_xrc_srq_in), 16,
      mlx5_create_srq },
    { 0x706, "DESTROY_XRC_SRQ", 16, 16, mlx5_destroy_srq },
    { 0x707, "QUERY_XRC_SRQ", 16, XRC_OUT, mlx5_query_srq },
    { 0x708, "ARM_XRC_SRQ", 16, 16, mlx5_arm_srq },
    { 0x717, "CREATE_XRQ", MLX5_BYTES(create_xrq_in), 16, mlx5_create_xrq },
    { 0x718, "DESTROY_XRQ", 16, 16, mlx5_destroy_srq },
    { 0x719, "QUERY_XRQ", 16, MLX5_BYTES(query_xrq_out), mlx5_query_srq },
    { 0x90c, "CREATE_RMP", MLX5_BYTES(create_rmp_in), 16, mlx5_create_rmp },
    { 0x90d, "MODIFY_RMP", MLX5_BYTES(modify_rmp_in), 16, mlx5_modify_rmp },
    { 0x90e, "DESTROY_RMP", 16, 16, mlx5_destroy_srq },
    { 0x90f, "QUERY_RMP", 16, MLX5_BYTES(query_rmp_out), mlx5_query_srq },
    { }
};

static int mlx5_srq_post_load(void *opaque, int version_id)
{
    Mlx5Srq *srq = opaque;

    return is_power_of_2(srq->entries) && srq->entries <= 0x8000 &&
           srq->head < srq->entries && srq->stride >= 32 &&
           srq->stride <= 16u << 15 ? 0 : -EINVAL;
}

/* Elements are allocated as they come, and not zeroed. */
static int mlx5_srq_pre_load(void *opaque)
{
    memset(opaque, 0, sizeof(Mlx5Srq));
    return 0;
}

static bool mlx5_srq_tm_needed(void *opaque)
{
    return ((Mlx5Srq *)opaque)->tm;
}

static int mlx5_srq_tm_pre_load(void *opaque)
{
    ((Mlx5Srq *)opaque)->tm = g_new0(Mlx5Tm, 1);
    return 0;
}

static const VMStateDescription vmstate_mlx5_srq_tm = {
    .name = "mlx5/srq/tm",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = mlx5_srq_tm_needed,
    .pre_load = mlx5_srq_tm_pre_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(tm, Mlx5Srq, vmstate_mlx5_tm, Mlx5Tm),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_mlx5_srq = {
    .name = "mlx5/srq",
    .version_id = 1,
    .pre_load = mlx5_srq_pre_load,
    .post_load = mlx5_srq_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5Srq),
        VMSTATE_UINT8(kind, Mlx5Srq),
        VMSTATE_UINT8(state, Mlx5Srq),
        VMSTATE_UINT32(pd, Mlx5Srq),
        VMSTATE_UINT32(xrcd, Mlx5Srq),
        VMSTATE_UINT32(cqn, Mlx5Srq),
        VMSTATE_UINT32(user_index, Mlx5Srq),
        VMSTATE_STRUCT(buf, Mlx5Srq, 1, vmstate_mlx5_buf, Mlx5Buf),
        VMSTATE_MLX5_UMEM_REFS(umems, Mlx5Srq),
        VMSTATE_UINT32(entries, Mlx5Srq),
        VMSTATE_UINT32(stride, Mlx5Srq),
        VMSTATE_UINT64(dbr_addr, Mlx5Srq),
        VMSTATE_UINT16(pi, Mlx5Srq),
        VMSTATE_UINT16(ci, Mlx5Srq),
        VMSTATE_UINT16(head, Mlx5Srq),
        VMSTATE_UINT16(lwm, Mlx5Srq),
        VMSTATE_UINT8_ARRAY(raw, Mlx5Srq, MLX5_BYTES(srqc)),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_mlx5_srq_tm,
        NULL
    }
};

static int mlx5_srqs_pre_load(void *opaque)
{
    mlx5_srq_destroy_all(opaque);
    return 0;
}

static int mlx5_srqs_post_load(void *opaque, int version_id)
{
    Mlx5Hca *h = opaque;

    return mlx5_table_post_load(&h->srqs) ? 0 : -EINVAL;
}

const VMStateDescription vmstate_mlx5_srqs = {
    .name = "mlx5/srqs",
    .version_id = 1,
    .pre_load = mlx5_srqs_pre_load,
    .post_load = mlx5_srqs_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_TABLE(srqs, Mlx5Hca, vmstate_mlx5_srq, Mlx5Srq),
        VMSTATE_END_OF_LIST()
    }
};
