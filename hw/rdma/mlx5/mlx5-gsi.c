/*
 * mlx5: replies of the device's own management agents to a queue pair
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-core.h"
#include "mlx5-cq.h"
#include "mlx5-dma.h"
#include "mlx5-mkey.h"
#include "mlx5-qp.h"
#include "trace.h"

enum { MLX5_MAD_LEN = 256 };

/* Writes @len bytes of @p into the receive WQE, after the room for a GRH. */
static bool mlx5_mad_scatter(Mlx5Qp *qp, Mlx5Op *op, const uint8_t *p,
                             uint32_t len)
{
    uint32_t skip = MLX5_GRH_LEN;
    unsigned i;

    for (i = 0; i < op->dst_nrecv && len; i++) {
        Mlx5Sge *sge = &op->remote[i];
        uint32_t off = MIN(skip, sge->len);

        skip -= off;
        while (len && off < sge->len) {
            Mlx5MkeyReq req = {
                .key = sge->key,
                .pd = op->remote_pd,
                .qpn = qp->obj.id,
                .access = MLX5_ACC_LW,
                .va = sge->va + off,
                .len = MIN(len, sge->len - off),
            };
            Mlx5MkeyRun run;
            uint32_t n;

            if (mlx5_mkey_translate(qp->hca, &req, &run) != MLX5_MKEY_OK) {
                return false;
            }
            n = MIN(run.len, req.len);
            if (!n || mlx5_dma_write_via(qp->hca, &run.via, run.addr, p, n) !=
                      MLX5_DMA_OK) {
                return false;
            }
            p += n;
            len -= n;
            off += n;
        }
    }
    return !len;
}

void mlx5_mad_deliver(Mlx5Hca *h, uint16_t slid, uint32_t src_qpn,
                      uint32_t dst_qpn, const uint8_t mad[256])
{
    Mlx5Qp *qp = mlx5_qp_find(h, dst_qpn == 0 ? h->qp->qp0 :
                                 dst_qpn == 1 ? h->qp->qp1 : dst_qpn);
    Mlx5Op *op;

    if (!qp || !mlx5_qp_can_receive(qp) || qp->rx_busy) {
        trace_mlx5_mad_lost(h->name, slid, src_qpn, dst_qpn);
        return;
    }
    op = mlx5_op_new(qp);
    op->src_lid = slid;
    op->src_qpn = src_qpn;
    op->len = MLX5_MAD_LEN;
    if (mlx5_rq_take(qp, op) != MLX5_RQ_OK) {
        trace_mlx5_mad_lost(h->name, slid, src_qpn, dst_qpn);
    } else if (mlx5_mad_scatter(qp, op, mad, MLX5_MAD_LEN)) {
        mlx5_rq_complete(qp, op, MLX5_CQE_RESP_SEND, 0);
    } else {
        mlx5_rq_complete(qp, op, 0, MLX5_SYN_LOCAL_PROT);
        mlx5_qp_to_error(qp, 0);
    }
    mlx5_op_free(op);
}
