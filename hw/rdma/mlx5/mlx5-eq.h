/*
 * mlx5 event queues and asynchronous events
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_EQ_H
#define HW_RDMA_MLX5_EQ_H

#include "mlx5-core.h"

/* Event types (mlx5 driver: device.h, enum mlx5_event). */
enum Mlx5Event {
    MLX5_EVENT_COMP             = 0x00,
    MLX5_EVENT_PATH_MIG         = 0x01,
    MLX5_EVENT_COMM_EST         = 0x02,
    MLX5_EVENT_SQ_DRAINED       = 0x03,
    MLX5_EVENT_SRQ_LAST_WQE     = 0x13,
    MLX5_EVENT_SRQ_RQ_LIMIT     = 0x14,
    MLX5_EVENT_CQ_ERROR         = 0x04,
    MLX5_EVENT_WQ_CATAS_ERROR   = 0x05,
    MLX5_EVENT_PATH_MIG_FAILED  = 0x07,
    MLX5_EVENT_WQ_INVAL_REQ     = 0x10,
    MLX5_EVENT_WQ_ACCESS_ERROR  = 0x11,
    MLX5_EVENT_SRQ_CATAS_ERROR  = 0x12,
    MLX5_EVENT_INTERNAL_ERROR   = 0x08,
    MLX5_EVENT_PORT_CHANGE      = 0x09,
    MLX5_EVENT_CMD              = 0x0a,
    MLX5_EVENT_PAGE_REQUEST     = 0x0b,
    MLX5_EVENT_PAGE_FAULT       = 0x0c,
    MLX5_EVENT_GENERAL          = 0x22,
    MLX5_EVENT_DCT_DRAINED      = 0x1c,
    MLX5_EVENT_DCT_KEY_VIOLATION = 0x1d,
};

void mlx5_eq_init(Mlx5Hca *h);
void mlx5_eq_fini(Mlx5Hca *h);
void mlx5_eq_destroy_all(Mlx5Hca *h);

/*
 * Posts an event to the EQ that asked for @type (its event bitmask), raising
 * its interrupt when armed. @data is the 28-byte event data at offset 0x20,
 * zero-padded. false: nobody asked, or the EQ is full (then the EQ is in
 * overflow and the event is lost, as LOG_GUEST_ERROR says).
 */
bool mlx5_event(Mlx5Hca *h, uint8_t type, uint8_t sub_type,
                const void *data, uint32_t len);
/* Room left in the EQ that hears @type; 0 when none does. */
uint32_t mlx5_event_room(Mlx5Hca *h, uint8_t type);
/* true: some EQ hears @type, full or not. */
bool mlx5_event_heard(Mlx5Hca *h, uint8_t type);
/*
 * mlx5-odp.c asks to be called when room appears in the page-fault EQ
 * (consumer index moved).
 */
void mlx5_odp_eq_room(Mlx5Hca *h);

/* Completion event for CQ @cqn on EQ number @eqn. */
void mlx5_eq_comp(Mlx5Hca *h, uint32_t eqn, uint32_t cqn);
/* true: @eqn exists, so a CQ may name it. */
bool mlx5_eq_valid(Mlx5Hca *h, uint32_t eqn);

/*
 * EQ doorbell in UAR page @uar: @arm (offset 0x40) or not (0x48). An EQ hears
 * only the UAR page that its context names, so that a process cannot consume
 * the kernel's events.
 */
void mlx5_eq_doorbell(Mlx5Hca *h, uint32_t uar, uint32_t value, bool arm);

extern const VMStateDescription vmstate_mlx5_eqs;  /* of Mlx5Hca */

/* Asynchronous events about objects, data laid out as the driver expects. */
void mlx5_event_qp(Mlx5Hca *h, uint8_t type, uint32_t qpn, uint8_t wq_type);
void mlx5_event_srq(Mlx5Hca *h, uint8_t type, uint32_t srqn);
/* Port 1; sub types of MLX5_EVENT_PORT_CHANGE as in the driver's device.h. */
enum {
    MLX5_PORT_DOWN = 1,
    MLX5_PORT_ACTIVE = 4,
    MLX5_PORT_INITIALIZED = 5,
    MLX5_PORT_LID = 6,
    MLX5_PORT_PKEY = 7,
    MLX5_PORT_GUID = 8,
    MLX5_PORT_CLIENT_REREG = 9,
};
void mlx5_event_port(Mlx5Hca *h, uint8_t sub_type);
void mlx5_event_cq_error(Mlx5Hca *h, uint32_t cqn, uint8_t syndrome);

#endif
