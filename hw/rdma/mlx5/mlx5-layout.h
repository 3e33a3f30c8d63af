/*
 * Where the fields of mlx5 commands, contexts and capabilities are
 *
 * All of these structures are big endian and laid out in bits from their
 * first byte's most significant bit. A field of at most 32 bits lies in one
 * aligned dword. Names are those of the Linux driver's interface description
 * (include/linux/mlx5/mlx5_ifc.h), which scripts/mlx5-layout.py reads to
 * write and to check the table below; only what our sources use is listed.
 * A field of a structure within a structure is named outer__inner. The width
 * of an array without a size is given as 0.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_LAYOUT_H
#define HW_RDMA_MLX5_LAYOUT_H

#include "qemu/bswap.h"

/* BEGIN TABLE (scripts/mlx5-layout.py --write) */
#define MLX5_FIELDS(X) \
    X(access_register_in, register_data, 0x80, 0) \
    X(access_register_in, register_id, 0x50, 16) \
    X(access_register_out, register_data, 0x80, 0) \
    X(ads, ack_timeout, 0x40, 5) \
    X(ads, pkey_index, 0x10, 16) \
    X(ads, rlid, 0x30, 16) \
    X(ads, sl, 0x124, 4) \
    X(ads, vhca_port_num, 0x128, 8) \
    X(alloc_flow_counter_in, flow_counter_bulk, 0x78, 8) \
    X(alloc_flow_counter_out, flow_counter_id, 0x40, 32) \
    X(alloc_memic_in, log_memic_addr_alignment, 0x78, 8) \
    X(alloc_memic_in, memic_size, 0xe0, 32) \
    X(alloc_memic_in, range_size, 0xc0, 32) \
    X(alloc_memic_in, range_start_addr, 0x80, 64) \
    X(alloc_memic_out, memic_start_addr, 0x40, 64) \
    X(alloc_pd_out, pd, 0x48, 24) \
    X(alloc_q_counter_out, counter_set_id, 0x58, 8) \
    X(alloc_transport_domain_out, transport_domain, 0x48, 24) \
    X(alloc_uar_out, uar, 0x48, 24) \
    X(alloc_xrcd_out, xrcd, 0x48, 24) \
    X(arm_xrc_srq_in, lwm, 0x70, 16) \
    X(arm_xrc_srq_in, xrc_srqn, 0x48, 24) \
    X(atomic_caps, atomic_operations, 0x90, 16) \
    X(atomic_caps, atomic_req_8B_endianness_mode, 0x40, 2) \
    X(atomic_caps, atomic_size_qp, 0xb0, 16) \
    X(atomic_caps, supported_atomic_req_8B_endianness_mode_1, 0x46, 1) \
    X(attach_to_mcg_in, multicast_gid, 0x80, 128) \
    X(attach_to_mcg_in, qpn, 0x48, 24) \
    X(cmd_hca_cap, atomic, 0x21e, 1) \
    X(cmd_hca_cap, ats, 0x461, 1) \
    X(cmd_hca_cap, bf, 0x260, 1) \
    X(cmd_hca_cap, block_lb_mc, 0x228, 1) \
    X(cmd_hca_cap, cmdif_checksum, 0x210, 2) \
    X(cmd_hca_cap, cq_moderation, 0x222, 1) \
    X(cmd_hca_cap, cq_oi, 0x220, 1) \
    X(cmd_hca_cap, cq_resize, 0x221, 1) \
    X(cmd_hca_cap, cqe_128_always, 0x5bd, 1) \
    X(cmd_hca_cap, cqe_compression, 0x5bf, 1) \
    X(cmd_hca_cap, cqe_compression_128, 0x5be, 1) \
    X(cmd_hca_cap, cqe_compression_max_num, 0x5d0, 16) \
    X(cmd_hca_cap, cqe_version, 0x1fc, 4) \
    X(cmd_hca_cap, dct, 0x21a, 1) \
    X(cmd_hca_cap, device_frequency_khz, 0x4e0, 32) \
    X(cmd_hca_cap, device_frequency_mhz, 0x4c0, 32) \
    X(cmd_hca_cap, device_memory, 0x1a8, 1) \
    X(cmd_hca_cap, drain_sigerr, 0x20f, 1) \
    X(cmd_hca_cap, driver_version, 0x261, 1) \
    X(cmd_hca_cap, enhanced_error_q_counters, 0x1b1, 1) \
    X(cmd_hca_cap, fixed_buffer_size, 0x108, 1) \
    X(cmd_hca_cap, force_teardown, 0x110, 1) \
    X(cmd_hca_cap, general_obj_types, 0x400, 64) \
    X(cmd_hca_cap, gid_table_size, 0x170, 16) \
    X(cmd_hca_cap, hca_cap_2, 0x20, 1) \
    X(cmd_hca_cap, ib_virt, 0x1a2, 1) \
    X(cmd_hca_cap, imaicl, 0x231, 1) \
    X(cmd_hca_cap, local_ca_ack_delay, 0x1ab, 5) \
    X(cmd_hca_cap, log_bf_reg_size, 0x26b, 5) \
    X(cmd_hca_cap, log_max_cq, 0xdb, 5) \
    X(cmd_hca_cap, log_max_cq_sz, 0xc8, 8) \
    X(cmd_hca_cap, log_max_dci_errored_streams, 0x593, 5) \
    X(cmd_hca_cap, log_max_dci_stream_channels, 0x58b, 5) \
    X(cmd_hca_cap, log_max_eq, 0xfc, 4) \
    X(cmd_hca_cap, log_max_eq_sz, 0xe0, 8) \
    X(cmd_hca_cap, log_max_klm_list_size, 0x11a, 6) \
    X(cmd_hca_cap, log_max_mcg, 0x318, 8) \
    X(cmd_hca_cap, log_max_mkey, 0xea, 6) \
    X(cmd_hca_cap, log_max_mrw_sz, 0x109, 7) \
    X(cmd_hca_cap, log_max_msg, 0x1c3, 5) \
    X(cmd_hca_cap, log_max_pd, 0x32b, 5) \
    X(cmd_hca_cap, log_max_qp, 0x9b, 5) \
    X(cmd_hca_cap, log_max_qp_sz, 0x88, 8) \
    X(cmd_hca_cap, log_max_ra_req_dc, 0x12a, 6) \
    X(cmd_hca_cap, log_max_ra_req_qp, 0x14a, 6) \
    X(cmd_hca_cap, log_max_ra_res_dc, 0x13a, 6) \
    X(cmd_hca_cap, log_max_ra_res_qp, 0x15a, 6) \
    X(cmd_hca_cap, log_max_rmp, 0x383, 5) \
    X(cmd_hca_cap, log_max_sq, 0x36b, 5) \
    X(cmd_hca_cap, log_max_srq, 0xab, 5) \
    X(cmd_hca_cap, log_max_srq_sz, 0x80, 8) \
    X(cmd_hca_cap, log_max_transport_domain, 0x323, 5) \
    X(cmd_hca_cap, log_max_uctx, 0x463, 5) \
    X(cmd_hca_cap, log_max_umem, 0x46b, 5) \
    X(cmd_hca_cap, log_max_xrcd, 0x33b, 5) \
    X(cmd_hca_cap, log_max_xrq, 0x5fb, 5) \
    X(cmd_hca_cap, log_pg_sz, 0x258, 8) \
    X(cmd_hca_cap, log_tag_matching_list_sz, 0x5f3, 5) \
    X(cmd_hca_cap, log_uar_page_sz, 0x490, 16) \
    X(cmd_hca_cap, max_indirection, 0x100, 8) \
    X(cmd_hca_cap, max_qp_cnt, 0x186, 10) \
    X(cmd_hca_cap, max_qp_mcg, 0x2e7, 25) \
    X(cmd_hca_cap, max_wqe_sz_rq, 0x2b0, 16) \
    X(cmd_hca_cap, max_wqe_sz_sq, 0x290, 16) \
    X(cmd_hca_cap, mcam_reg, 0x1a9, 1) \
    X(cmd_hca_cap, mini_cqe_resp_stride_index, 0x5bc, 1) \
    X(cmd_hca_cap, native_port_num, 0x608, 8) \
    X(cmd_hca_cap, nic_flow_table, 0x1a6, 1) \
    X(cmd_hca_cap, null_mkey, 0x119, 1) \
    X(cmd_hca_cap, num_of_uars_per_page, 0x520, 32) \
    X(cmd_hca_cap, num_ports, 0x1b8, 8) \
    X(cmd_hca_cap, out_of_seq_cnt, 0x180, 1) \
    X(cmd_hca_cap, pg, 0x227, 1) \
    X(cmd_hca_cap, pkey_table_size, 0x190, 16) \
    X(cmd_hca_cap, port_type, 0x1b6, 2) \
    X(cmd_hca_cap, qos, 0x21b, 1) \
    X(cmd_hca_cap, qpc_extension, 0x122, 1) \
    X(cmd_hca_cap, rc, 0x23f, 1) \
    X(cmd_hca_cap, retransmission_q_counters, 0x182, 1) \
    X(cmd_hca_cap, rndv_offload_rc, 0x5f1, 1) \
    X(cmd_hca_cap, rts2rts_qp_counters_set_id, 0x169, 1) \
    X(cmd_hca_cap, set_deth_sqpn, 0x238, 1) \
    X(cmd_hca_cap, sho, 0x217, 1) \
    X(cmd_hca_cap, sigerr_cqe, 0x212, 1) \
    X(cmd_hca_cap, tag_matching, 0x5f0, 1) \
    X(cmd_hca_cap, terminate_scatter_list_mkey, 0xf6, 1) \
    X(cmd_hca_cap, uar_4k, 0x240, 1) \
    X(cmd_hca_cap, uar_sz, 0x24a, 6) \
    X(cmd_hca_cap, uc, 0x23e, 1) \
    X(cmd_hca_cap, ud, 0x23d, 1) \
    X(cmd_hca_cap, umr_extended_translation_offset, 0x118, 1) \
    X(cmd_hca_cap, vhca_id, 0x30, 16) \
    X(cmd_hca_cap, vport_counters, 0x181, 1) \
    X(cmd_hca_cap, xrc, 0x23c, 1) \
    X(cmd_hca_cap_2, max_mkey_log_entity_size_fixed_buffer, 0x3a2, 6) \
    X(cmd_hca_cap_2, max_mkey_log_entity_size_mtt, 0x3aa, 6) \
    X(cmd_hca_cap_2, umr_log_entity_size_5, 0x98, 1) \
    X(cqc, c_eqn_or_apu_element, 0xa0, 32) \
    X(cqc, consumer_counter, 0x148, 24) \
    X(cqc, cq_max_count, 0x90, 16) \
    X(cqc, cq_period, 0x84, 12) \
    X(cqc, cq_period_mode, 0xf, 2) \
    X(cqc, cqe_comp_en, 0x11, 1) \
    X(cqc, cqe_compression_layout, 0x1e, 2) \
    X(cqc, cqe_sz, 0x8, 3) \
    X(cqc, dbr_addr, 0x1c0, 64) \
    X(cqc, dbr_umem_valid, 0x6, 1) \
    X(cqc, last_notified_index, 0x108, 24) \
    X(cqc, last_solicit_index, 0x128, 24) \
    X(cqc, log_cq_size, 0x63, 5) \
    X(cqc, log_page_size, 0xc3, 5) \
    X(cqc, mini_cqe_res_format, 0x12, 2) \
    X(cqc, oi, 0xe, 1) \
    X(cqc, page_offset, 0x54, 6) \
    X(cqc, producer_counter, 0x168, 24) \
    X(cqc, st, 0x14, 4) \
    X(cqc, status, 0x0, 4) \
    X(cqc, uar_page, 0x68, 24) \
    X(create_cq_in, cq_context, 0x80, 512) \
    X(create_cq_in, cq_umem_valid, 0x2e0, 1) \
    X(create_cq_in, pas, 0x880, 0) \
    X(create_cq_out, cqn, 0x48, 24) \
    X(create_dct_in, dct_context_entry, 0x80, 512) \
    X(create_dct_out, dctn, 0x48, 24) \
    X(create_eq_in, eq_context_entry, 0x80, 512) \
    X(create_eq_in, event_bitmask, 0x2c0, 256) \
    X(create_eq_in, pas, 0x880, 0) \
    X(create_eq_out, eq_number, 0x58, 8) \
    X(create_flow_group_in, end_flow_index, 0x120, 32) \
    X(create_flow_group_in, group_type, 0x8c, 4) \
    X(create_flow_group_in, match_criteria, 0x200, 4096) \
    X(create_flow_group_in, match_criteria_enable, 0x1f8, 8) \
    X(create_flow_group_in, start_flow_index, 0xe0, 32) \
    X(create_flow_group_out, group_id, 0x48, 24) \
    X(create_flow_table_in, flow_table_context, 0xc0, 320) \
    X(create_flow_table_in, table_type, 0x80, 8) \
    X(create_flow_table_out, table_id, 0x48, 24) \
    X(create_mkey_in, klm_pas_mtt, 0x880, 0) \
    X(create_mkey_in, memory_key_mkey_entry, 0x80, 512) \
    X(create_mkey_in, mkey_umem_valid, 0x61, 1) \
    X(create_mkey_in, pg_access, 0x60, 1) \
    X(create_mkey_in, translations_octword_actual_size, 0x300, 32) \
    X(create_mkey_out, mkey_index, 0x48, 24) \
    X(create_psv_in, num_psv, 0x40, 4) \
    X(create_psv_in, pd, 0x48, 24) \
    X(create_psv_out, reserved_at_80, 0x80, 8) \
    X(create_qp_in, qpc, 0xc0, 1856) \
    X(create_qp_in, wq_umem_id, 0x840, 32) \
    X(create_qp_in, wq_umem_offset, 0x800, 64) \
    X(create_qp_in, wq_umem_valid, 0x860, 1) \
    X(create_qp_out, qpn, 0x48, 24) \
    X(create_rmp_in, ctx, 0x100, 1920) \
    X(create_rmp_in, ctx__wq, 0x280, 1536) \
    X(create_rmp_out, rmpn, 0x48, 24) \
    X(create_scheduling_element_in, scheduling_context, 0x100, 512) \
    X(create_scheduling_element_in, scheduling_hierarchy, 0x40, 8) \
    X(create_scheduling_element_out, scheduling_element_id, 0x80, 32) \
    X(create_sq_in, ctx, 0x100, 1920) \
    X(create_sq_out, sqn, 0x48, 24) \
    X(create_uctx_out, uid, 0x50, 16) \
    X(create_umem_in, umem, 0x80, 256) \
    X(create_umem_out, umem_id, 0x48, 24) \
    X(create_xrc_srq_in, xrc_srq_context_entry, 0x80, 512) \
    X(create_xrc_srq_in, xrc_srq_umem_valid, 0x2e0, 1) \
    X(create_xrc_srq_out, xrc_srqn, 0x48, 24) \
    X(create_xrq_in, xrq_context, 0x80, 2560) \
    X(create_xrq_out, xrqn, 0x48, 24) \
    X(dctc, counter_set_id, 0x60, 8) \
    X(dctc, cqn, 0x48, 24) \
    X(dctc, dc_access_key, 0x100, 64) \
    X(dctc, dc_access_key_violation_count, 0x180, 32) \
    X(dctc, min_rnr_nak, 0x93, 5) \
    X(dctc, mtu, 0x145, 3) \
    X(dctc, pd, 0xc8, 24) \
    X(dctc, port, 0x148, 8) \
    X(dctc, rae, 0x6e, 1) \
    X(dctc, rre, 0x6c, 1) \
    X(dctc, rwe, 0x6d, 1) \
    X(dctc, srqn_xrqn, 0xa8, 24) \
    X(dctc, state, 0x4, 4) \
    X(dctc, user_index, 0x28, 24) \
    X(dealloc_flow_counter_in, flow_counter_id, 0x40, 32) \
    X(dealloc_memic_in, memic_size, 0xc0, 32) \
    X(dealloc_memic_in, memic_start_addr, 0x80, 64) \
    X(dealloc_pd_in, pd, 0x48, 24) \
    X(dealloc_q_counter_in, counter_set_id, 0x58, 8) \
    X(dealloc_transport_domain_in, transport_domain, 0x48, 24) \
    X(dealloc_uar_in, uar, 0x48, 24) \
    X(dealloc_xrcd_in, xrcd, 0x48, 24) \
    X(delete_fte_in, flow_index, 0x100, 32) \
    X(destroy_cq_in, cqn, 0x48, 24) \
    X(destroy_eq_in, eq_number, 0x58, 8) \
    X(destroy_flow_group_in, group_id, 0xc0, 32) \
    X(destroy_flow_table_in, other_eswitch, 0x41, 1) \
    X(destroy_flow_table_in, other_vport, 0x40, 1) \
    X(destroy_flow_table_in, table_id, 0xa8, 24) \
    X(destroy_flow_table_in, table_type, 0x80, 8) \
    X(destroy_mkey_in, mkey_index, 0x48, 24) \
    X(destroy_psv_in, psvn, 0x48, 24) \
    X(destroy_scheduling_element_in, scheduling_element_id, 0x60, 32) \
    X(destroy_uctx_in, uid, 0x50, 16) \
    X(destroy_umem_in, umem_id, 0x48, 24) \
    X(detach_from_mcg_in, multicast_gid, 0x80, 128) \
    X(detach_from_mcg_in, qpn, 0x48, 24) \
    X(device_mem_cap, log_max_memic_addr_alignment, 0x38, 8) \
    X(device_mem_cap, log_min_memic_alloc_size, 0x2b, 5) \
    X(device_mem_cap, max_memic_size, 0xa0, 32) \
    X(device_mem_cap, memic, 0x0, 1) \
    X(device_mem_cap, memic_bar_size, 0x80, 32) \
    X(device_mem_cap, memic_bar_start_addr, 0x40, 64) \
    X(device_mem_cap, memic_operations, 0x200, 32) \
    X(disable_hca_in, function_id, 0x50, 16) \
    X(enable_hca_in, function_id, 0x50, 16) \
    X(eqc, consumer_counter, 0x148, 24) \
    X(eqc, intr, 0xb4, 12) \
    X(eqc, log_eq_size, 0x63, 5) \
    X(eqc, log_page_size, 0xc3, 5) \
    X(eqc, oi, 0xe, 1) \
    X(eqc, page_offset, 0x54, 6) \
    X(eqc, producer_counter, 0x168, 24) \
    X(eqc, st, 0x14, 4) \
    X(eqc, status, 0x0, 4) \
    X(eqc, uar_page, 0x68, 24) \
    X(flow_context, action, 0x70, 16) \
    X(flow_context, destination, 0x1800, 0) \
    X(flow_context, destination_list_size, 0x88, 24) \
    X(flow_context, extended_destination, 0x80, 1) \
    X(flow_context, flow_counter_list_size, 0xa8, 24) \
    X(flow_context, flow_tag, 0x48, 24) \
    X(flow_context, group_id, 0x20, 32) \
    X(flow_context, match_value, 0x200, 4096) \
    X(flow_table_context, decap_en, 0x1, 1) \
    X(flow_table_context, level, 0x8, 8) \
    X(flow_table_context, log_size, 0x18, 8) \
    X(flow_table_context, reformat_en, 0x0, 1) \
    X(flow_table_context, rtc_valid, 0x10, 1) \
    X(flow_table_context, sw_owner, 0x2, 1) \
    X(flow_table_context, table_miss_action, 0x4, 4) \
    X(flow_table_context, table_miss_id, 0x28, 24) \
    X(flow_table_context, termination_table, 0x3, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive__flow_modify_en, 0x203, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive__flow_table_modify, 0x206, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive__identified_miss_table_mode, 0x205, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive__max_ft_level, 0x238, 8) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive__modify_root, 0x204, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive_rdma__flow_counter, 0x402, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive_rdma__flow_modify_en, 0x403, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive_rdma__flow_table_modify, 0x406, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive_rdma__ft_field_bitmask_support__bth_dst_qp, 0x5da, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive_rdma__ft_field_support__bth_dst_qp, 0x55a, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive_rdma__ft_support, 0x400, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive_rdma__identified_miss_table_mode, 0x405, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive_rdma__log_max_flow, 0x4b8, 8) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive_rdma__log_max_ft_num, 0x478, 8) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive_rdma__log_max_ft_size, 0x422, 6) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive_rdma__max_ft_level, 0x438, 8) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive_rdma__modify_root, 0x404, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_receive_rdma__reset_root_to_default, 0x409, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_transmit_rdma__flow_counter, 0xa02, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_transmit_rdma__flow_modify_en, 0xa03, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_transmit_rdma__flow_table_modify, 0xa06, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_transmit_rdma__ft_field_bitmask_support__bth_dst_qp, 0xbda, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_transmit_rdma__ft_field_support__bth_dst_qp, 0xb5a, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_transmit_rdma__ft_support, 0xa00, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_transmit_rdma__identified_miss_table_mode, 0xa05, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_transmit_rdma__log_max_flow, 0xab8, 8) \
    X(flow_table_nic_cap, flow_table_properties_nic_transmit_rdma__log_max_ft_num, 0xa78, 8) \
    X(flow_table_nic_cap, flow_table_properties_nic_transmit_rdma__log_max_ft_size, 0xa22, 6) \
    X(flow_table_nic_cap, flow_table_properties_nic_transmit_rdma__max_ft_level, 0xa38, 8) \
    X(flow_table_nic_cap, flow_table_properties_nic_transmit_rdma__modify_root, 0xa04, 1) \
    X(flow_table_nic_cap, flow_table_properties_nic_transmit_rdma__reset_root_to_default, 0xa09, 1) \
    X(fte_match_param, misc_parameters__bth_dst_qp, 0x348, 24) \
    X(gen_eqe_in, eq_number, 0x58, 8) \
    X(gen_eqe_in, eqe, 0x80, 512) \
    X(general_obj_in_cmd_hdr, obj_id, 0x40, 32) \
    X(general_obj_in_cmd_hdr, op_param__create__alias_object, 0x60, 1) \
    X(general_obj_in_cmd_hdr, op_param__create__log_obj_range, 0x63, 5) \
    X(general_obj_out_cmd_hdr, obj_id, 0x40, 32) \
    X(hca_vport_context, cap_mask1, 0x200, 32) \
    X(hca_vport_context, cap_mask1_field_select, 0x220, 32) \
    X(hca_vport_context, field_select, 0x0, 32) \
    X(hca_vport_context, has_smi, 0x101, 1) \
    X(hca_vport_context, lid, 0x300, 16) \
    X(hca_vport_context, lmc, 0x318, 3) \
    X(hca_vport_context, node_guid, 0x1c0, 64) \
    X(hca_vport_context, pkey_violation_counter, 0x350, 16) \
    X(hca_vport_context, port_guid, 0x180, 64) \
    X(hca_vport_context, port_physical_state, 0x110, 4) \
    X(hca_vport_context, port_state, 0x118, 4) \
    X(hca_vport_context, qkey_violation_counter, 0x340, 16) \
    X(hca_vport_context, sm_lid, 0x320, 16) \
    X(hca_vport_context, sm_sl, 0x330, 4) \
    X(hca_vport_context, subnet_timeout, 0x31b, 5) \
    X(hca_vport_context, system_image_guid, 0x140, 64) \
    X(hca_vport_context, vport_state, 0x11c, 4) \
    X(hca_vport_context, vport_state_policy, 0x114, 4) \
    X(mad_ifc_in, mad, 0x80, 2048) \
    X(mad_ifc_in, port, 0x58, 8) \
    X(mad_ifc_in, remote_lid, 0x40, 16) \
    X(mad_ifc_out, response_mad_packet, 0x80, 2048) \
    X(manage_pages_in, function_id, 0x50, 16) \
    X(manage_pages_in, input_num_entries, 0x60, 32) \
    X(manage_pages_in, pas, 0x80, 0) \
    X(manage_pages_out, output_num_entries, 0x40, 32) \
    X(manage_pages_out, pas, 0x80, 0) \
    X(mcam_reg, access_reg_group, 0x18, 8) \
    X(mcam_reg, feature_group, 0x8, 8) \
    X(mcam_reg, mng_access_reg_cap_mask__access_regs__mcqi, 0x5e, 1) \
    X(mcam_reg, mng_access_reg_cap_mask__access_regs__mcqs, 0x5f, 1) \
    X(mcqi_reg, component_index, 0x10, 16) \
    X(mcqi_reg, data_size, 0xb0, 16) \
    X(mcqi_reg, info_size, 0x60, 32) \
    X(mcqi_reg, info_type, 0x5b, 5) \
    X(mcqi_reg, offset, 0x80, 32) \
    X(mcqi_reg, read_pending_component, 0x0, 1) \
    X(mcqi_version, version, 0x20, 32) \
    X(mcqs_reg, component_index, 0x10, 16) \
    X(mcqs_reg, component_status, 0x57, 5) \
    X(mcqs_reg, component_update_state, 0x5c, 4) \
    X(mcqs_reg, identifier, 0x30, 16) \
    X(mcqs_reg, last_index_flag, 0x0, 1) \
    X(mem_page_fault_info, error, 0x0, 1) \
    X(mem_page_fault_info, fault_token_31_0, 0x20, 32) \
    X(mem_page_fault_info, fault_token_47_32, 0x10, 16) \
    X(mkc, a, 0x11, 1) \
    X(mkc, access_mode_1_0, 0x16, 2) \
    X(mkc, access_mode_4_2, 0x3, 3) \
    X(mkc, bsf_en, 0x61, 1) \
    X(mkc, bsf_octword_size, 0x100, 32) \
    X(mkc, en_rinval, 0x67, 1) \
    X(mkc, expected_sigerr_count, 0x65, 1) \
    X(mkc, free, 0x1, 1) \
    X(mkc, len, 0xc0, 64) \
    X(mkc, length64, 0x60, 1) \
    X(mkc, log_page_size, 0x1da, 6) \
    X(mkc, lr, 0x15, 1) \
    X(mkc, lw, 0x14, 1) \
    X(mkc, ma_translation_mode, 0x1a, 2) \
    X(mkc, mkey_7_0, 0x38, 8) \
    X(mkc, pd, 0x68, 24) \
    X(mkc, qpn, 0x20, 24) \
    X(mkc, rr, 0x13, 1) \
    X(mkc, rw, 0x12, 1) \
    X(mkc, start_addr, 0x80, 64) \
    X(mkc, translations_octword_size, 0x1a0, 32) \
    X(mkc, umr_en, 0x10, 1) \
    X(modify_cq_in, cq_context, 0x80, 512) \
    X(modify_cq_in, cq_umem_valid, 0x2e0, 1) \
    X(modify_cq_in, cqn, 0x48, 24) \
    X(modify_cq_in, modify_field_select_resize_field_select, 0x60, 32) \
    X(modify_cq_in, pas, 0x880, 0) \
    X(modify_flow_table_in, flow_table_context, 0xc0, 320) \
    X(modify_flow_table_in, modify_field_select, 0x70, 16) \
    X(modify_hca_vport_context_in, hca_vport_context, 0x80, 4096) \
    X(modify_memic_in, memic_operation_type, 0x78, 8) \
    X(modify_memic_in, memic_start_addr, 0x80, 64) \
    X(modify_memic_out, memic_operation_addr, 0x80, 64) \
    X(modify_rmp_in, bitmask, 0x80, 64) \
    X(modify_rmp_in, ctx, 0x100, 1920) \
    X(modify_scheduling_element_in, modify_bitmask, 0xa0, 32) \
    X(modify_scheduling_element_in, scheduling_context, 0x100, 512) \
    X(modify_scheduling_element_in, scheduling_element_id, 0x60, 32) \
    X(modify_scheduling_element_in, scheduling_hierarchy, 0x40, 8) \
    X(modify_sq_in, ctx, 0x100, 1920) \
    X(modify_sq_in, modify_bitmask, 0x80, 64) \
    X(modify_sq_in, sq_state, 0x40, 4) \
    X(modify_sq_in, sqn, 0x48, 24) \
    X(odp_cap, mem_page_fault, 0x600, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__dc_odp_caps__atomic, 0x304, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__dc_odp_caps__read, 0x303, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__dc_odp_caps__send, 0x300, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__dc_odp_caps__srq_receive, 0x305, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__dc_odp_caps__write, 0x302, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__page_prefetch, 0x245, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__rc_odp_caps__atomic, 0x284, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__rc_odp_caps__read, 0x283, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__rc_odp_caps__receive, 0x281, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__rc_odp_caps__send, 0x280, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__rc_odp_caps__srq_receive, 0x285, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__rc_odp_caps__write, 0x282, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__ud_odp_caps__send, 0x2c0, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__ud_odp_caps__srq_receive, 0x2c5, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__xrc_odp_caps__atomic, 0x2e4, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__xrc_odp_caps__read, 0x2e3, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__xrc_odp_caps__send, 0x2e0, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__xrc_odp_caps__srq_receive, 0x2e5, 1) \
    X(odp_cap, memory_page_fault_scheme_cap__xrc_odp_caps__write, 0x2e2, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__dc_odp_caps__atomic, 0x104, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__dc_odp_caps__read, 0x103, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__dc_odp_caps__send, 0x100, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__dc_odp_caps__srq_receive, 0x105, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__dc_odp_caps__write, 0x102, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__rc_odp_caps__atomic, 0x84, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__rc_odp_caps__read, 0x83, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__rc_odp_caps__receive, 0x81, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__rc_odp_caps__send, 0x80, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__rc_odp_caps__srq_receive, 0x85, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__rc_odp_caps__write, 0x82, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__ud_odp_caps__send, 0xc0, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__ud_odp_caps__srq_receive, 0xc5, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__xrc_odp_caps__atomic, 0xe4, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__xrc_odp_caps__read, 0xe3, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__xrc_odp_caps__send, 0xe0, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__xrc_odp_caps__srq_receive, 0xe5, 1) \
    X(odp_cap, transport_page_fault_scheme_cap__xrc_odp_caps__write, 0xe2, 1) \
    X(page_fault_resume_in, page_fault_info, 0x40, 64) \
    X(paos_reg, admin_status, 0x14, 4) \
    X(paos_reg, ase, 0x20, 1) \
    X(paos_reg, oper_status, 0x1c, 4) \
    X(pmtu_reg, admin_mtu, 0x40, 16) \
    X(pmtu_reg, max_mtu, 0x20, 16) \
    X(pmtu_reg, oper_mtu, 0x60, 16) \
    X(ppcnt_reg, counter_set, 0x40, 1984) \
    X(ptys_reg, ib_link_width_admin, 0xe0, 16) \
    X(ptys_reg, ib_link_width_capability, 0x80, 16) \
    X(ptys_reg, ib_link_width_oper, 0x140, 16) \
    X(ptys_reg, ib_proto_admin, 0xf0, 16) \
    X(ptys_reg, ib_proto_capability, 0x90, 16) \
    X(ptys_reg, ib_proto_oper, 0x150, 16) \
    X(pvlc_reg, vl_admin, 0x5c, 4) \
    X(pvlc_reg, vl_hw_cap, 0x3c, 4) \
    X(pvlc_reg, vl_operational, 0x7c, 4) \
    X(qos_cap, max_tsar_bw_share, 0xe0, 32) \
    X(qos_cap, nic_bw_share, 0x9, 1) \
    X(qos_cap, nic_element_type, 0x100, 16) \
    X(qos_cap, nic_rate_limit, 0xa, 1) \
    X(qos_cap, nic_sq_scheduling, 0x8, 1) \
    X(qos_cap, nic_tsar_type, 0x110, 16) \
    X(qos_cap, packet_pacing, 0x0, 1) \
    X(qos_cap, packet_pacing_max_rate, 0x40, 32) \
    X(qos_cap, packet_pacing_min_rate, 0x60, 32) \
    X(qos_cap, packet_pacing_rate_table_size, 0x90, 16) \
    X(qos_cap, packet_pacing_uid, 0xb, 1) \
    X(qpc, atomic_mode, 0x48c, 4) \
    X(qpc, block_lb_mc, 0x21, 1) \
    X(qpc, counter_set_id, 0x60, 8) \
    X(qpc, cqn_rcv, 0x4e8, 24) \
    X(qpc, cqn_snd, 0x3e8, 24) \
    X(qpc, dbr_addr, 0x500, 64) \
    X(qpc, dbr_umem_valid, 0x683, 1) \
    X(qpc, dc_access_key, 0x640, 64) \
    X(qpc, deth_sqpn, 0x408, 24) \
    X(qpc, drain_sigerr, 0x25, 1) \
    X(qpc, fre, 0x394, 1) \
    X(qpc, hw_rq_counter, 0x5c0, 32) \
    X(qpc, hw_sq_wqebb_counter, 0x5a0, 16) \
    X(qpc, log_ack_req_freq, 0x380, 4) \
    X(qpc, log_msg_max, 0x43, 5) \
    X(qpc, log_num_dci_errored_streams, 0x403, 5) \
    X(qpc, log_num_dci_stream_channels, 0x3e3, 5) \
    X(qpc, log_page_size, 0xa3, 5) \
    X(qpc, log_rq_size, 0x49, 4) \
    X(qpc, log_rq_stride, 0x4d, 3) \
    X(qpc, log_rra_max, 0x488, 3) \
    X(qpc, log_sq_size, 0x51, 4) \
    X(qpc, log_sra_max, 0x388, 3) \
    X(qpc, min_rnr_nak, 0x4a3, 5) \
    X(qpc, mtu, 0x40, 3) \
    X(qpc, next_rcv_psn, 0x4a8, 24) \
    X(qpc, next_send_psn, 0x3c8, 24) \
    X(qpc, no_sq, 0x50, 1) \
    X(qpc, page_offset, 0x494, 6) \
    X(qpc, pd, 0x28, 24) \
    X(qpc, pm_state, 0x13, 2) \
    X(qpc, primary_address_path, 0xc0, 352) \
    X(qpc, q_key, 0x540, 32) \
    X(qpc, rae, 0x492, 1) \
    X(qpc, remote_qpn, 0xa8, 24) \
    X(qpc, retry_count, 0x38d, 3) \
    X(qpc, rlky, 0x5b, 1) \
    X(qpc, rnr_retry, 0x390, 3) \
    X(qpc, rq_type, 0x565, 3) \
    X(qpc, rre, 0x490, 1) \
    X(qpc, rwe, 0x491, 1) \
    X(qpc, srqn_rmpn_xrqn, 0x568, 24) \
    X(qpc, st, 0x8, 8) \
    X(qpc, state, 0x0, 4) \
    X(qpc, sw_rq_counter, 0x5e0, 32) \
    X(qpc, sw_sq_wqebb_counter, 0x5b0, 16) \
    X(qpc, uar_page, 0x68, 24) \
    X(qpc, user_index, 0x88, 24) \
    X(qpc, xrcd, 0x4c8, 24) \
    X(query_adapter_out, query_adapter_struct, 0x80, 2048) \
    X(query_adapter_param_block, ieee_vendor_id, 0xc8, 24) \
    X(query_adapter_param_block, vsd_contd_psid, 0x780, 128) \
    X(query_adapter_param_block, vsd_vendor_id, 0xf0, 16) \
    X(query_cq_in, cqn, 0x48, 24) \
    X(query_cq_out, cq_context, 0x80, 512) \
    X(query_dct_in, dctn, 0x48, 24) \
    X(query_dct_out, dct_context_entry, 0x80, 512) \
    X(query_eq_in, eq_number, 0x58, 8) \
    X(query_eq_out, eq_context_entry, 0x80, 512) \
    X(query_eq_out, event_bitmask, 0x2c0, 64) \
    X(query_eq_out, pas, 0x880, 0) \
    X(query_flow_counter_in, clear, 0xc0, 1) \
    X(query_flow_counter_in, flow_counter_id, 0xe0, 32) \
    X(query_flow_counter_in, num_of_counters, 0xd0, 16) \
    X(query_flow_counter_out, flow_statistics, 0x80, 0) \
    X(query_flow_group_out, end_flow_index, 0x120, 32) \
    X(query_flow_group_out, match_criteria, 0x200, 4096) \
    X(query_flow_group_out, match_criteria_enable, 0x1f8, 8) \
    X(query_flow_group_out, start_flow_index, 0xe0, 32) \
    X(query_flow_table_out, flow_table_context, 0xc0, 320) \
    X(query_fte_out, flow_context, 0x200, 6144) \
    X(query_hca_cap_in, function_id, 0x50, 16) \
    X(query_hca_cap_in, other_function, 0x40, 1) \
    X(query_hca_cap_out, capability, 0x80, 32768) \
    X(query_hca_vport_context_in, other_vport, 0x40, 1) \
    X(query_hca_vport_context_in, port_num, 0x4c, 4) \
    X(query_hca_vport_context_in, vport_number, 0x50, 16) \
    X(query_hca_vport_context_out, hca_vport_context, 0x80, 4096) \
    X(query_hca_vport_gid_in, gid_index, 0x70, 16) \
    X(query_hca_vport_gid_out, gid, 0x80, 0) \
    X(query_hca_vport_gid_out, gids_num, 0x60, 16) \
    X(query_hca_vport_pkey_in, pkey_index, 0x70, 16) \
    X(query_hca_vport_pkey_out, pkey, 0x80, 0) \
    X(query_issi_out, current_issi, 0x50, 16) \
    X(query_issi_out, supported_issi_dw0, 0x360, 32) \
    X(query_mkey_in, mkey_index, 0x48, 24) \
    X(query_mkey_out, bsf0_klm0_pas_mtt0_1, 0x880, 128) \
    X(query_mkey_out, memory_key_mkey_entry, 0x80, 512) \
    X(query_pages_out, num_pages, 0x60, 32) \
    X(query_q_counter_in, clear, 0xc0, 1) \
    X(query_q_counter_in, counter_set_id, 0xf8, 8) \
    X(query_q_counter_in, other_vport, 0x40, 1) \
    X(query_q_counter_out, duplicate_request, 0x200, 32) \
    X(query_q_counter_out, implied_nak_seq_err, 0x2c0, 32) \
    X(query_q_counter_out, local_ack_timeout_err, 0x300, 32) \
    X(query_q_counter_out, out_of_buffer, 0x180, 32) \
    X(query_q_counter_out, out_of_sequence, 0x1c0, 32) \
    X(query_q_counter_out, packet_seq_err, 0x280, 32) \
    X(query_q_counter_out, req_cqe_error, 0x4a0, 32) \
    X(query_q_counter_out, req_cqe_flush_error, 0x600, 32) \
    X(query_q_counter_out, req_remote_access_errors, 0x540, 32) \
    X(query_q_counter_out, req_remote_invalid_request, 0x500, 32) \
    X(query_q_counter_out, req_rnr_retries_exceeded, 0x380, 32) \
    X(query_q_counter_out, req_transport_retries_exceeded, 0x5a0, 32) \
    X(query_q_counter_out, resp_cqe_error, 0x480, 32) \
    X(query_q_counter_out, resp_cqe_flush_error, 0x5e0, 32) \
    X(query_q_counter_out, resp_local_length_error, 0x3c0, 32) \
    X(query_q_counter_out, resp_remote_access_errors, 0x560, 32) \
    X(query_q_counter_out, rnr_nak_retry_err, 0x240, 32) \
    X(query_q_counter_out, rx_atomic_requests, 0x100, 32) \
    X(query_q_counter_out, rx_read_requests, 0xc0, 32) \
    X(query_q_counter_out, rx_write_requests, 0x80, 32) \
    X(query_qp_out, qpc, 0xc0, 1856) \
    X(query_rmp_out, rmp_context, 0x100, 1920) \
    X(query_scheduling_element_in, scheduling_element_id, 0x60, 32) \
    X(query_scheduling_element_out, scheduling_context, 0x100, 512) \
    X(query_special_contexts_out, dump_fill_mkey, 0x40, 32) \
    X(query_special_contexts_out, null_mkey, 0x80, 32) \
    X(query_special_contexts_out, resd_lkey, 0x60, 32) \
    X(query_special_contexts_out, terminate_scatter_list_mkey, 0xa0, 32) \
    X(query_sq_out, sq_context, 0x100, 1920) \
    X(query_vport_counter_in, clear, 0xc0, 1) \
    X(query_vport_counter_out, received_ib_unicast__octets, 0x1c0, 64) \
    X(query_vport_counter_out, received_ib_unicast__packets, 0x180, 64) \
    X(query_vport_counter_out, transmitted_ib_unicast__octets, 0x240, 64) \
    X(query_vport_counter_out, transmitted_ib_unicast__packets, 0x200, 64) \
    X(query_vport_state_in, other_vport, 0x40, 1) \
    X(query_vport_state_out, admin_state, 0x78, 4) \
    X(query_vport_state_out, state, 0x7c, 4) \
    X(query_xrc_srq_out, xrc_srq_context_entry, 0x80, 512) \
    X(query_xrq_out, xrq_context, 0x80, 2560) \
    X(rmp_bitmask, lwm, 0x3f, 1) \
    X(rmpc, state, 0x8, 4) \
    X(rmpc, wq, 0x180, 1536) \
    X(rst2init_qp_in, opt_param_mask, 0x80, 32) \
    X(rst2init_qp_in, qpc, 0xc0, 1856) \
    X(rst2init_qp_in, qpn, 0x48, 24) \
    X(scheduling_context, bw_share, 0xa0, 32) \
    X(scheduling_context, element_attributes__tsar__tsar_type, 0x28, 8) \
    X(scheduling_context, element_type, 0x0, 8) \
    X(scheduling_context, max_average_bw, 0xc0, 32) \
    X(scheduling_context, parent_element_id, 0x40, 32) \
    X(set_driver_version_in, driver_version, 0x80, 512) \
    X(set_flow_table_root_in, underlay_qpn, 0xc8, 24) \
    X(set_fte_in, flow_context, 0x200, 6144) \
    X(set_fte_in, flow_index, 0x100, 32) \
    X(set_fte_in, modify_enable_mask, 0xd8, 8) \
    X(set_hca_cap_in, capability, 0x80, 32768) \
    X(set_hca_cap_in, function_id, 0x50, 16) \
    X(set_hca_cap_in, other_function, 0x40, 1) \
    X(set_issi_in, current_issi, 0x50, 16) \
    X(set_pp_rate_limit_context, burst_upper_bound, 0x20, 32) \
    X(set_pp_rate_limit_context, rate_limit, 0x0, 32) \
    X(set_pp_rate_limit_context, typical_packet_size, 0x50, 16) \
    X(set_pp_rate_limit_in, ctx, 0x80, 384) \
    X(set_pp_rate_limit_in, rate_limit_index, 0x50, 16) \
    X(sqc, cqn, 0x48, 24) \
    X(sqc, flush_in_error_en, 0x3, 1) \
    X(sqc, fre, 0x2, 1) \
    X(sqc, hairpin, 0xe, 1) \
    X(sqc, packet_pacing_rate_limit_index, 0xf0, 16) \
    X(sqc, qos_queue_group_id, 0x110, 16) \
    X(sqc, reg_umr, 0xc, 1) \
    X(sqc, state, 0x8, 4) \
    X(sqc, tis_lst_sz, 0x100, 16) \
    X(sqc, ts_format, 0x1a, 2) \
    X(sqc, user_index, 0x28, 24) \
    X(sqc, wq, 0x180, 1536) \
    X(srqc, dbr_addr, 0x140, 64) \
    X(tag_matching_topology_context, append_next_index, 0x10, 16) \
    X(tag_matching_topology_context, hw_phase_cnt, 0x30, 16) \
    X(tag_matching_topology_context, log_matching_list_sz, 0x0, 4) \
    X(tag_matching_topology_context, sw_phase_cnt, 0x20, 16) \
    X(teardown_hca_in, profile, 0x50, 16) \
    X(traffic_counter, octets, 0x40, 64) \
    X(traffic_counter, packets, 0x0, 64) \
    X(trans_page_fault_info, fault_token, 0x28, 24) \
    X(umem, log_page_size, 0x9b, 5) \
    X(umem, mtt, 0x100, 0) \
    X(umem, num_of_mtt, 0xc0, 64) \
    X(umem, page_offset, 0xa0, 32) \
    X(wq, dbr_addr, 0x80, 64) \
    X(wq, dbr_umem_id, 0x140, 32) \
    X(wq, dbr_umem_valid, 0x120, 1) \
    X(wq, log_wq_pg_sz, 0x113, 5) \
    X(wq, log_wq_stride, 0x10c, 4) \
    X(wq, log_wq_sz, 0x11b, 5) \
    X(wq, lwm, 0x30, 16) \
    X(wq, page_offset, 0x2b, 5) \
    X(wq, pas, 0x600, 0) \
    X(wq, pd, 0x48, 24) \
    X(wq, uar_page, 0x68, 24) \
    X(wq, wq_type, 0x0, 4) \
    X(wq, wq_umem_id, 0x160, 32) \
    X(wq, wq_umem_offset, 0x180, 64) \
    X(wq, wq_umem_valid, 0x121, 1) \
    X(xrc_srqc, cqn, 0x48, 24) \
    X(xrc_srqc, log_page_size, 0x82, 6) \
    X(xrc_srqc, log_rq_stride, 0x25, 3) \
    X(xrc_srqc, log_xrc_srq_size, 0x4, 4) \
    X(xrc_srqc, lwm, 0xe0, 16) \
    X(xrc_srqc, page_offset, 0x40, 6) \
    X(xrc_srqc, pd, 0xc8, 24) \
    X(xrc_srqc, state, 0x0, 4) \
    X(xrc_srqc, user_index, 0x88, 24) \
    X(xrc_srqc, xrcd, 0x28, 24) \
    X(xrqc, cqn, 0x48, 24) \
    X(xrqc, offload, 0x1c, 4) \
    X(xrqc, state, 0x0, 4) \
    X(xrqc, tag_matching_topology_context, 0x100, 128) \
    X(xrqc, topology, 0x14, 4) \
    X(xrqc, user_index, 0x28, 24) \
    X(xrqc, wq, 0x400, 1536) \
    /* end */

#define MLX5_STRUCTS(S) \
    S(ads, 44) \
    S(alloc_memic_in, 32) \
    S(alloc_memic_out, 16) \
    S(attach_to_mcg_in, 32) \
    S(cqc, 64) \
    S(create_cq_in, 272) \
    S(create_cq_out, 16) \
    S(create_dct_in, 128) \
    S(create_flow_table_in, 64) \
    S(create_mkey_in, 272) \
    S(create_mkey_out, 16) \
    S(create_psv_in, 16) \
    S(create_psv_out, 32) \
    S(create_qp_in, 272) \
    S(create_rmp_in, 272) \
    S(create_scheduling_element_in, 128) \
    S(create_scheduling_element_out, 64) \
    S(create_umem_in, 48) \
    S(create_xrc_srq_in, 272) \
    S(create_xrq_in, 336) \
    S(dctc, 64) \
    S(dealloc_memic_in, 32) \
    S(dealloc_memic_out, 16) \
    S(delete_fte_in, 64) \
    S(destroy_cq_in, 16) \
    S(destroy_cq_out, 16) \
    S(destroy_flow_group_in, 64) \
    S(destroy_flow_table_in, 64) \
    S(destroy_mkey_in, 16) \
    S(destroy_mkey_out, 16) \
    S(destroy_psv_in, 16) \
    S(destroy_psv_out, 16) \
    S(destroy_scheduling_element_in, 64) \
    S(detach_from_mcg_in, 32) \
    S(eqc, 64) \
    S(fte_match_param, 512) \
    S(gen_eqe_in, 80) \
    S(hca_vport_context, 512) \
    S(mad_ifc_in, 272) \
    S(mad_ifc_out, 272) \
    S(mcam_reg, 72) \
    S(mcqi_reg, 24) \
    S(mcqi_version, 124) \
    S(mcqs_reg, 16) \
    S(mkc, 64) \
    S(modify_cq_in, 272) \
    S(modify_cq_out, 16) \
    S(modify_flow_table_in, 64) \
    S(modify_hca_vport_context_in, 528) \
    S(modify_memic_in, 64) \
    S(modify_memic_out, 64) \
    S(modify_rmp_in, 272) \
    S(modify_scheduling_element_in, 128) \
    S(modify_sq_in, 272) \
    S(page_fault_resume_in, 16) \
    S(page_fault_resume_out, 16) \
    S(paos_reg, 16) \
    S(pmtu_reg, 16) \
    S(ppcnt_reg, 256) \
    S(ptys_reg, 64) \
    S(pvlc_reg, 16) \
    S(qp_2rst_in, 16) \
    S(qpc, 232) \
    S(query_adapter_out, 272) \
    S(query_cq_in, 16) \
    S(query_cq_out, 272) \
    S(query_dct_out, 128) \
    S(query_eq_out, 272) \
    S(query_flow_counter_in, 32) \
    S(query_flow_group_in, 64) \
    S(query_flow_table_in, 64) \
    S(query_flow_table_out, 64) \
    S(query_fte_in, 64) \
    S(query_hca_cap_out, 4112) \
    S(query_hca_vport_context_out, 528) \
    S(query_issi_out, 112) \
    S(query_mkey_in, 16) \
    S(query_q_counter_out, 256) \
    S(query_qp_out, 464) \
    S(query_rmp_out, 272) \
    S(query_scheduling_element_in, 64) \
    S(query_scheduling_element_out, 128) \
    S(query_special_contexts_out, 32) \
    S(query_vport_counter_out, 528) \
    S(query_xrq_out, 336) \
    S(rst2init_qp_in, 272) \
    S(set_driver_version_in, 80) \
    S(set_flow_table_root_in, 64) \
    S(set_hca_cap_in, 4112) \
    S(set_pp_rate_limit_in, 64) \
    S(srqc, 64) \
    S(traffic_counter, 16) \
    S(xrc_srqc, 64) \
    /* end */
/* END TABLE */

#define MLX5_LAYOUT_FIELD_(s, f, off, width) \
    MLX5_OFF_##s##_##f = (off), MLX5_WIDTH_##s##_##f = (width),
#define MLX5_LAYOUT_SIZE_(s, bytes) MLX5_BYTES_##s = (bytes),
enum { MLX5_FIELDS(MLX5_LAYOUT_FIELD_) MLX5_STRUCTS(MLX5_LAYOUT_SIZE_) };

/* Bytes that a structure takes. */
#define MLX5_BYTES(s) MLX5_BYTES_##s

/* Address of a field that is a structure or an array of bytes. */
#define MLX5_ADDR(p, s, f) \
    ((void *)((uintptr_t)(p) + MLX5_OFF_##s##_##f / 8))

/* Byte offset of a field that starts at a byte. */
#define MLX5_AT(s, f) (MLX5_OFF_##s##_##f / 8)

/* A field as data: bit offset, width. */
#define MLX5_FLD(s, f) MLX5_OFF_##s##_##f, MLX5_WIDTH_##s##_##f

/* A field of at most 32 bits. */
#define MLX5_GET(p, s, f) \
    mlx5_field_get((p), MLX5_OFF_##s##_##f, MLX5_WIDTH_##s##_##f)
#define MLX5_SET(p, s, f, v) \
    mlx5_field_set((p), MLX5_OFF_##s##_##f, MLX5_WIDTH_##s##_##f, (v))

/* A field of 64 bits, which need not be aligned to more than 4 bytes. */
#define MLX5_GET64(p, s, f) \
    (QEMU_BUILD_BUG_ON_ZERO(MLX5_WIDTH_##s##_##f != 64) + \
     ldq_be_p((const uint8_t *)(p) + MLX5_OFF_##s##_##f / 8))
#define MLX5_SET64(p, s, f, v) do { \
        QEMU_BUILD_BUG_ON(MLX5_WIDTH_##s##_##f != 64); \
        stq_be_p((uint8_t *)(p) + MLX5_OFF_##s##_##f / 8, (v)); \
    } while (0)

static inline uint32_t mlx5_field_get(const void *p, uint32_t off,
                                      uint32_t width)
{
    uint32_t dword = ldl_be_p((const uint8_t *)p + off / 32 * 4);

    return width == 32 ? dword
                       : (dword >> (32 - off % 32 - width)) &
                         ((1u << width) - 1);
}

static inline void mlx5_field_set(void *p, uint32_t off, uint32_t width,
                                  uint32_t v)
{
    uint8_t *at = (uint8_t *)p + off / 32 * 4;
    uint32_t shift = 32 - off % 32 - width;
    uint32_t mask = (width == 32 ? 0xffffffff : (1u << width) - 1) << shift;

    stl_be_p(at, (ldl_be_p(at) & ~mask) | ((v << shift) & mask));
}

#endif
