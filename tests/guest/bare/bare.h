/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs that run on the virt machine without a system, and without a stack:
 * x28 is the serial port. What serial.S has changes x0 to x4 and x30.
 */
#define UART 0x09000000

        .macro  uart
        ldr     x28, =UART
        .endm

/* Prints a word and a space */
        .macro  say name
        adr     x0, 8f
        bl      print
        b       9f
8:      .asciz  "\name "
        .balign 4
9:
        .endm
