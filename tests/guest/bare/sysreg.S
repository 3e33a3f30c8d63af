/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an access to a system register does, said on the serial port: alone on
 * the virt machine, at EL1, without an MMU. A line a case: the exception class
 * of what it caused (-- for nothing), and what was read, both in hexadecimal.
 */
#include "bare.h"

#define SPSR_EL0T 0x000
#define SPSR_EL1H 0x3c5
#define EC_SVC    0x15
#define SCTLR_UMA 0x200
#define ROUNDS    1000

/* One access, in a way (here, on SP_EL0 or at EL0), with x0 = arg. */
        .macro  try name, how, insn, arg
        say     "\name"
        str     xzr, [x27]
        mov     x0, \arg
        adr     x1, \insn
        bl      \how
        bl      report
        .endm

        .globl  _start
_start: adr     x0, vectors
        msr     vbar_el1, x0
        isb
        ldr     x27, =caught
        uart

        try     "spx-write", here, write_sp, 0x1230
        try     "spx-read", here, read_sp, 0
        try     "sp0-read", on_sp0, read_sp, 0
        try     "sp0-write", on_sp0, write_sp, 0x4560
        try     "spx-read-again", here, read_sp, 0
        try     "el0-read", at_el0, read_sp, 0
        try     "daif", here, read_daif, 0
        try     "el0-daif-read", at_el0, read_daif, 0
        try     "el0-daif-write", at_el0, write_daif, 0x3c0
        mrs     x0, sctlr_el1
        orr     x0, x0, SCTLR_UMA
        msr     sctlr_el1, x0
        isb
        try     "uma-daif-read", at_el0, read_daif, 0
        try     "uma-daif-write", at_el0, write_daif, 0x3c0

        /* The same code, in turns with and without the right to it. */
        mov     x20, ROUNDS
        mov     x21, 0
        mov     x22, 0
1:      str     xzr, [x27]
        adr     x1, read_sp
        bl      here
        ldr     x0, [x27]
        cmp     x0, 0
        cinc    x21, x21, ne
        str     xzr, [x27]
        adr     x1, read_sp
        bl      on_sp0
        ldr     x0, [x27]
        cmp     x0, 0
        cinc    x22, x22, ne
        subs    x20, x20, 1
        b.ne    1b
        say     "turns-spx"
        str     xzr, [x27]
        mov     x0, x21
        bl      report
        say     "turns-sp0"
        mov     x0, x22
        bl      report

        /* A device's register, read in the middle of what else there is. */
        mov     x20, ROUNDS
        mov     x21, 0
        mov     x22, 0
2:      add     x1, x28, 0x18
        add     x21, x21, 1
        ldr     w2, [x1], 4
        add     x22, x22, 1
        sub     x3, x1, x28
        cmp     x3, 0x1c
        cinc    x22, x22, eq
        subs    x20, x20, 1
        b.ne    2b
        say     "device"
        add     x0, x21, x22
        bl      report

        b       power_off

read_sp:
        mrs     x0, sp_el0
        ret
write_sp:
        msr     sp_el0, x0
        ret
read_daif:
        mrs     x0, daif
        ret
write_daif:
        msr     daif, x0
        ret

here:   br      x1

on_sp0: mov     x9, x30
        msr     spsel, 0
        blr     x1
        msr     spsel, 1
        ret     x9

at_el0: mov     x9, x30
        adr     x2, 1f
        msr     elr_el1, x2
        mov     x2, SPSR_EL0T
        msr     spsr_el1, x2
        eret
1:      blr     x1
        svc     0

/* Notes the class plus one, steps over what caused it. An SVC ends at_el0. */
catch:  mrs     x16, esr_el1
        lsr     x16, x16, 26
        cmp     x16, EC_SVC
        b.eq    1f
        add     x16, x16, 1
        str     x16, [x27]
        mrs     x16, elr_el1
        add     x16, x16, 4
        msr     elr_el1, x16
        eret
1:      msr     elr_el1, x9
        mov     x16, SPSR_EL1H
        msr     spsr_el1, x16
        eret

/* The class of what was caught, and x0, and the end of the line. */
report: mov     x10, x30
        mov     x11, x0
        ldr     x0, [x27]
        cbz     x0, 1f
        sub     x0, x0, 1
        bl      hex
        b       2f
1:      mov     w0, '-'
        strb    w0, [x28]
        strb    w0, [x28]
2:      mov     w0, ' '
        strb    w0, [x28]
        mov     x0, x11
        bl      hex
        bl      end_line
        ret     x10

        .balign 0x800
vectors:
        .rept   16
        b       catch
        .balign 0x80
        .endr

        .ltorg
        .balign 8
caught: .quad   0
