/*
 * mlx5 queue pair: migration
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-core.h"
#include "mlx5-devx.h"
#include "mlx5-faults.h"
#include "mlx5-qp.h"
#include "mlx5-tm.h"

static int mlx5_qp_post_load(void *opaque, int version_id)
{
    Mlx5Qp *qp = opaque;

    QLIST_INIT(&qp->rx_ops);
    QTAILQ_INIT(&qp->turn);
    /* An operation of the device's own belongs to the first rendezvous. */
    return mlx5_qp_setup(qp) && qp->dci_nfailed <= ARRAY_SIZE(qp->dci_failed) &&
           !(qp->op && qp->op->tm_own && QTAILQ_EMPTY(&qp->tm_reads))
           ? 0 : -EINVAL;
}

static int mlx5_qp_pre_save(void *opaque)
{
    Mlx5Qp *qp = opaque;

    qp->nops = qp->op ? 1 : 0;
    MLX5_SET64(qp->qpc, qpc, dbr_addr, qp->dbr_addr);
    return 0;
}

/* Elements are allocated as they come, and not zeroed. */
static int mlx5_qp_pre_load(void *opaque)
{
    Mlx5Qp *qp = opaque;

    memset(qp, 0, sizeof(*qp));
    QTAILQ_INIT(&qp->tm_reads);
    return 0;
}

static bool mlx5_qp_faults_needed(void *opaque)
{
    return ((Mlx5Qp *)opaque)->faults;
}

static int mlx5_qp_faults_pre_load(void *opaque)
{
    ((Mlx5Qp *)opaque)->faults = g_new0(Mlx5FaultStats, 1);
    return 0;
}

static const VMStateDescription vmstate_mlx5_qp_faults = {
    .name = "mlx5/qp/faults",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = mlx5_qp_faults_needed,
    .pre_load = mlx5_qp_faults_pre_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(faults, Mlx5Qp, vmstate_mlx5_faults,
                               Mlx5FaultStats),
        VMSTATE_END_OF_LIST()
    }
};

static bool mlx5_qp_tm_needed(void *opaque)
{
    return !QTAILQ_EMPTY(&((Mlx5Qp *)opaque)->tm_reads);
}

static const VMStateDescription vmstate_mlx5_qp_tm = {
    .name = "mlx5/qp/tm",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = mlx5_qp_tm_needed,
    .fields = (const VMStateField[]) {
        VMSTATE_QTAILQ_V(tm_reads, Mlx5Qp, 1, vmstate_mlx5_tm_read,
                         Mlx5TmRead, next),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_mlx5_qp = {
    .name = "mlx5/qp",
    .version_id = 1,
    .pre_load = mlx5_qp_pre_load,
    .pre_save = mlx5_qp_pre_save,
    .post_load = mlx5_qp_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5Qp),
        VMSTATE_UINT8_ARRAY(qpc, Mlx5Qp, MLX5_BYTES(qpc)),
        VMSTATE_UINT8(state, Mlx5Qp),
        VMSTATE_STRUCT(buf, Mlx5Qp, 1, vmstate_mlx5_buf, Mlx5Buf),
        VMSTATE_MLX5_UMEM_REFS(umems, Mlx5Qp),
        VMSTATE_UINT16(sq_pi, Mlx5Qp),
        VMSTATE_UINT16(sq_ci, Mlx5Qp),
        VMSTATE_UINT16(rq_pi, Mlx5Qp),
        VMSTATE_UINT16(rq_ci, Mlx5Qp),
        VMSTATE_BOOL(orphan, Mlx5Qp),
        VMSTATE_UINT16(orphan_index, Mlx5Qp),
        VMSTATE_UINT32(orphan_cqn, Mlx5Qp),
        VMSTATE_UINT32(orphan_user_index, Mlx5Qp),
        VMSTATE_UINT8_ARRAY(dctc, Mlx5Qp, MLX5_BYTES(dctc)),
        VMSTATE_UINT32(dc_violations, Mlx5Qp),
        VMSTATE_BOOL(dc_armed, Mlx5Qp),
        VMSTATE_UINT16_ARRAY(dci_failed, Mlx5Qp, 1 << MLX5_LOG_MAX_DCI_ERRORED),
        VMSTATE_UINT16(dci_nfailed, Mlx5Qp),
        VMSTATE_UINT32(qos_req, Mlx5Qp),
        VMSTATE_UINT32(qos_resp, Mlx5Qp),
        VMSTATE_UINT32(rate_index, Mlx5Qp),
        VMSTATE_UINT8_ARRAY(sqc, Mlx5Qp, MLX5_AT(sqc, wq)),
        VMSTATE_BOOL(bf_mode, Mlx5Qp),
        VMSTATE_INT32(nops, Mlx5Qp),
        VMSTATE_STRUCT_VARRAY_ALLOC(op, Mlx5Qp, nops, 1, vmstate_mlx5_op,
                                    Mlx5Op),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_mlx5_qp_faults,
        &vmstate_mlx5_qp_tm,
        NULL
    }
};

static int mlx5_qps_post_load(void *opaque, int version_id)
{
    Mlx5Hca *h = opaque;
    Mlx5Obj *o;

    if (!mlx5_table_post_load(&h->qps)) {
        return -EINVAL;
    }
    QTAILQ_FOREACH(o, &h->qps.all, next) {
        Mlx5Qp *qp = (Mlx5Qp *)o;

        qp->hca = h;
        mlx5_qp_refresh(qp);
        if (qp->op) {
            qp->op->qp = qp;
        }
    }
    h->qp->relink = true;
    return 0;
}

static int mlx5_qps_pre_load(void *opaque)
{
    Mlx5Hca *h = opaque;

    mlx5_qp_destroy_all(h);
    return 0;
}

static bool mlx5_qp_special_needed(void *opaque)
{
    Mlx5Hca *h = opaque;

    return h->qp->qp0 || h->qp->qp1;
}

static int mlx5_qp_special_pre_save(void *opaque)
{
    Mlx5Hca *h = opaque;

    h->special_qpn[0] = h->qp->qp0;
    h->special_qpn[1] = h->qp->qp1;
    return 0;
}

static int mlx5_qp_special_post_load(void *opaque, int version_id)
{
    Mlx5Hca *h = opaque;

    h->qp->qp0 = h->special_qpn[0];
    h->qp->qp1 = h->special_qpn[1];
    return 0;
}

static const VMStateDescription vmstate_mlx5_qp_special = {
    .name = "mlx5/qps/special",
    .version_id = 1,
    .needed = mlx5_qp_special_needed,
    .pre_save = mlx5_qp_special_pre_save,
    .post_load = mlx5_qp_special_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32_ARRAY(special_qpn, Mlx5Hca, 2),
        VMSTATE_END_OF_LIST()
    }
};

static bool mlx5_qp_bf_needed(void *opaque)
{
    Mlx5Hca *h = opaque;

    return h->qp->bf_wait;
}

static int mlx5_qp_bf_pre_save(void *opaque)
{
    Mlx5Hca *h = opaque;

    h->bf_qpn = (uint32_t)ldl_be_p(h->qp->bf_bytes + 4) >> 8;
    return 0;
}

static const VMStateDescription vmstate_mlx5_qp_bf = {
    .name = "mlx5/qps/bf",
    .version_id = 1,
    .needed = mlx5_qp_bf_needed,
    .pre_save = mlx5_qp_bf_pre_save,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(bf_qpn, Mlx5Hca),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_mlx5_qps = {
    .name = "mlx5/qps",
    .version_id = 1,
    .pre_load = mlx5_qps_pre_load,
    .post_load = mlx5_qps_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_TABLE(qps, Mlx5Hca, vmstate_mlx5_qp, Mlx5Qp),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_mlx5_qp_special,
        &vmstate_mlx5_qp_bf,
        NULL
    }
};
