/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ODP_VERBS_H
#define ODP_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* An open device with a protection domain; the peer is the device itself. */
struct vdev {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_device_attr_ex attr;
    struct ibv_port_attr port;
    union ibv_gid gid;
    int gid_index;
    uint8_t port_num;
};

/*
 * Open the device `name`, the first one when NULL, and wait until its port is
 * active. gid_index: -1 for a good choice. Exits with a message on failure.
 */
void vdev_open(struct vdev *v, const char *name, int gid_index);
void vdev_close(struct vdev *v);

/* Capability bits (IBV_ODP_SUPPORT_*) of a transport. */
uint32_t vdev_odp_caps(const struct vdev *v, enum ibv_qp_type type);
bool vdev_has_odp(const struct vdev *v);
bool vdev_has_implicit(const struct vdev *v);

/* What a queue pair is made of. */
struct qp_conf {
    enum ibv_qp_type type;
    struct ibv_cq *send_cq;
    struct ibv_cq *recv_cq;
    struct ibv_srq *srq;        /* NULL: a receive queue of its own */
    unsigned depth;
    unsigned sge;
    unsigned inline_bytes;
    bool all_signaled;
};

struct ibv_qp *qp_create(struct vdev *v, const struct qp_conf *conf);
/* INIT, RTR, RTS; the peer is queue pair `dest` of the same port. */
void qp_connect(struct vdev *v, struct ibv_qp *qp, uint32_t dest);
/* Two queue pairs of the same kind connected to each other. */
void qp_pair(struct vdev *v, const struct qp_conf *conf, struct ibv_qp *qp[2]);
/* Address handle of our own port, for UD. */
struct ibv_ah *ah_self(struct vdev *v);
enum ibv_qp_state qp_state(struct ibv_qp *qp);

enum { UD_QKEY = 0x11111111, GRH_BYTES = 40 };

/* ibv_reg_mr or exit with a message. */
struct ibv_mr *mr_reg(struct vdev *v, void *addr, size_t len, int access);
/* An implicit MR: all of the address space. */
struct ibv_mr *mr_implicit(struct vdev *v, int access);

/*
 * Between two polls that found nothing, the idle-th time: yield, later sleep,
 * so that an emulated machine's other processors get on.
 */
void relax(unsigned idle);
/*
 * Wait for one completion, for `seconds` at most. False when there was none.
 */
bool cq_wait(struct ibv_cq *cq, struct ibv_wc *wc, double seconds);

#endif
