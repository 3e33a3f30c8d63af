/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SVA_LINK_H
#define SVA_LINK_H

#include "verbs.h"

/*
 * Two connected RC queue pairs, of one device or of two. Requests go from end
 * 0 to end 1.
 */
struct link {
    struct vdev *v[2];
    struct ibv_cq *cq[2];
    struct ibv_qp *qp[2];
};

/* One request, waited for. */
struct request {
    enum ibv_wr_opcode opcode;
    void *local;
    uint32_t lkey;
    void *remote;               /* SEND: the receive buffer */
    uint32_t rkey;              /* SEND: its lkey */
    uint32_t len;
    uint64_t compare_add, swap;
};

enum { LINK_DEPTH = 64 };

void link_open(struct link *l, struct vdev *from, struct vdev *to);
void link_close(struct link *l);
/* New queue pairs, after an error. */
void link_again(struct link *l);

void link_post(struct link *l, const struct request *r);
/* The next completion of a request. */
enum ibv_wc_status link_wait(struct link *l);
/*
 * Post, wait. recv: the receive's status, for SEND. After an error the link
 * has new queue pairs.
 */
enum ibv_wc_status link_do(struct link *l, const struct request *r,
                           enum ibv_wc_status *recv);

#endif
