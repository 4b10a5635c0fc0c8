/* What a program on the emulated board may use. */
#ifndef BOARD_H
#define BOARD_H
#include <stdint.h>

extern uint8_t __stack_low[];
void board_print(const char *text);
void board_number(const char *name, uint32_t value);
int board_file(const char *name, void *bytes, uint32_t count, int writes);
#endif
