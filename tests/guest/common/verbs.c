/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util.h"
#include "verbs.h"

static struct ibv_device *find_device(struct ibv_device **list, const char *name)
{
    for (int i = 0; list[i]; i++) {
        if (!name || !strcmp(ibv_get_device_name(list[i]), name)) {
            return list[i];
        }
    }
    return NULL;
}

/* The last RoCE v2 GID with an IPv4 address, else the first that is there. */
static int choose_gid(struct vdev *v)
{
    int choice = 0;

    for (int i = v->port.gid_tbl_len - 1; i >= 0; i--) {
        struct ibv_gid_entry entry;

        if (ibv_query_gid_ex(v->ctx, v->port_num, i, &entry, 0)) {
            continue;
        }
        if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
            entry.gid.raw[10] == 0xff && entry.gid.raw[11] == 0xff) {
            return i;
        }
        choice = i;
    }
    return choice;
}

void vdev_open(struct vdev *v, const char *name, int gid_index)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_device *dev = list ? find_device(list, name) : NULL;
    double limit = now() + 20;

    if (!dev) {
        die("there is no RDMA device%s%s", name ? " " : "", name ? name : "");
    }
    memset(v, 0, sizeof(*v));
    v->port_num = 1;
    v->ctx = ibv_open_device(dev);
    if (!v->ctx) {
        die_errno("cannot open %s", ibv_get_device_name(dev));
    }
    ibv_free_device_list(list);
    if (ibv_query_device_ex(v->ctx, NULL, &v->attr)) {
        die_errno("ibv_query_device_ex");
    }
    while (!ibv_query_port(v->ctx, v->port_num, &v->port) &&
           v->port.state != IBV_PORT_ACTIVE) {
        if (now() > limit) {
            die("port 1 of %s stays in state %d", v->ctx->device->name,
                v->port.state);
        }
        usleep(100000);
    }
    v->gid_index = gid_index >= 0 ? gid_index : choose_gid(v);
    if (ibv_query_gid(v->ctx, v->port_num, v->gid_index, &v->gid)) {
        die_errno("GID %d", v->gid_index);
    }
    v->pd = ibv_alloc_pd(v->ctx);
    if (!v->pd) {
        die_errno("ibv_alloc_pd");
    }
}

void vdev_close(struct vdev *v)
{
    if (ibv_dealloc_pd(v->pd)) {
        die_errno("ibv_dealloc_pd");
    }
    if (ibv_close_device(v->ctx)) {
        die_errno("ibv_close_device");
    }
}

uint32_t vdev_odp_caps(const struct vdev *v, enum ibv_qp_type type)
{
    const struct ibv_odp_caps *caps = &v->attr.odp_caps;

    switch (type) {
    case IBV_QPT_RC:
        return caps->per_transport_caps.rc_odp_caps;
    case IBV_QPT_UC:
        return caps->per_transport_caps.uc_odp_caps;
    case IBV_QPT_UD:
        return caps->per_transport_caps.ud_odp_caps;
    default:
        return 0;
    }
}

bool vdev_has_odp(const struct vdev *v)
{
    return v->attr.odp_caps.general_caps & IBV_ODP_SUPPORT;
}

bool vdev_has_implicit(const struct vdev *v)
{
    return v->attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT;
}

struct ibv_qp *qp_create(struct vdev *v, const struct qp_conf *conf)
{
    struct ibv_qp_init_attr init = {
        .qp_type = conf->type,
        .send_cq = conf->send_cq,
        .recv_cq = conf->recv_cq,
        .srq = conf->srq,
        .sq_sig_all = conf->all_signaled,
        .cap = {
            .max_send_wr = conf->depth,
            .max_recv_wr = conf->srq ? 0 : conf->depth,
            .max_send_sge = conf->sge,
            .max_recv_sge = conf->srq ? 0 : conf->sge,
            .max_inline_data = conf->inline_bytes,
        },
    };
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = v->port_num,
    };
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    struct ibv_qp *qp = ibv_create_qp(v->pd, &init);
    int err;

    if (!qp) {
        die_errno("ibv_create_qp");
    }
    if (conf->type == IBV_QPT_UD) {
        attr.qkey = UD_QKEY;
        mask |= IBV_QP_QKEY;
    } else {
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
        if (conf->type == IBV_QPT_RC) {
            attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ |
                                    IBV_ACCESS_REMOTE_ATOMIC;
        }
        mask |= IBV_QP_ACCESS_FLAGS;
    }
    err = ibv_modify_qp(qp, &attr, mask);
    if (err) {
        die("QP to INIT: %s", strerror(err));
    }
    return qp;
}

static void ah_fill(struct vdev *v, struct ibv_ah_attr *ah)
{
    ah->dlid = v->port.lid;
    ah->port_num = v->port_num;
    if (v->port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        ah->is_global = 1;
        ah->grh.dgid = v->gid;
        ah->grh.sgid_index = v->gid_index;
        ah->grh.hop_limit = 64;
    }
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                   const char *state)
{
    int err = ibv_modify_qp(qp, attr, mask);

    if (err) {
        die("QP 0x%x to %s: %s", qp->qp_num, state, strerror(err));
    }
}

void qp_connect(struct vdev *v, struct ibv_qp *qp, uint32_t dest)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
    bool rc = qp->qp_type == IBV_QPT_RC;
    int mask = IBV_QP_STATE;

    if (qp->qp_type != IBV_QPT_UD) {
        ah_fill(v, &attr.ah_attr);
        attr.path_mtu = v->port.active_mtu;
        attr.dest_qp_num = dest;
        attr.rq_psn = 100;
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (rc) {
        attr.max_dest_rd_atomic = v->attr.orig_attr.max_qp_rd_atom < 8 ?
                                  v->attr.orig_attr.max_qp_rd_atom : 8;
        attr.min_rnr_timer = 1;
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    modify(qp, &attr, mask, "RTR");

    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = 100;
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (rc) {
        attr.timeout = 18;
        attr.retry_cnt = 7;
        attr.rnr_retry = 7;
        attr.max_rd_atomic = v->attr.orig_attr.max_qp_init_rd_atom < 8 ?
                             v->attr.orig_attr.max_qp_init_rd_atom : 8;
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                IBV_QP_MAX_QP_RD_ATOMIC;
    }
    modify(qp, &attr, mask, "RTS");
}

void qp_pair(struct vdev *v, const struct qp_conf *conf, struct ibv_qp *qp[2])
{
    qp[0] = qp_create(v, conf);
    qp[1] = qp_create(v, conf);
    qp_connect(v, qp[0], qp[1]->qp_num);
    qp_connect(v, qp[1], qp[0]->qp_num);
}

struct ibv_ah *ah_self(struct vdev *v)
{
    struct ibv_ah_attr attr = { 0 };
    struct ibv_ah *ah;

    ah_fill(v, &attr);
    ah = ibv_create_ah(v->pd, &attr);
    if (!ah) {
        die_errno("ibv_create_ah");
    }
    return ah;
}

enum ibv_qp_state qp_state(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    int err = ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);

    if (err) {
        die("ibv_query_qp: %s", strerror(err));
    }
    return attr.qp_state;
}

struct ibv_mr *mr_reg(struct vdev *v, void *addr, size_t len, int access)
{
    struct ibv_mr *mr = ibv_reg_mr(v->pd, addr, len, access);

    if (!mr) {
        die_errno("ibv_reg_mr %zu bytes, access 0x%x", len, access);
    }
    return mr;
}

struct ibv_mr *mr_implicit(struct vdev *v, int access)
{
    return mr_reg(v, NULL, SIZE_MAX, access | IBV_ACCESS_ON_DEMAND);
}

void relax(unsigned idle)
{
    if (idle < 200) {
        sched_yield();
    } else {
        usleep(20);
    }
}

bool cq_wait(struct ibv_cq *cq, struct ibv_wc *wc, double seconds)
{
    double limit = now() + seconds;

    for (unsigned idle = 0; ; idle++) {
        int n = ibv_poll_cq(cq, 1, wc);

        if (n < 0) {
            die("ibv_poll_cq failed");
        }
        if (n) {
            return true;
        }
        if (now() > limit) {
            return false;
        }
        relax(idle);
    }
}
