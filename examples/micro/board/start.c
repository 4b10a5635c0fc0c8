/* Start of a Cortex-M under QEMU: vectors, memory, floating point, and semihosting in place of a system. */
#include "board.h"

extern uint32_t __stack_top, __data_from, __data_start, __data_end, __bss_start, __bss_end;
int main(void);

static int call(int operation, const void *argument) {
  register int r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void board_print(const char *text) { call(0x04, text); }

void board_number(const char *name, uint32_t value) {
  char text[12];
  int i = 11;
  text[i] = 0;
  do {
    text[--i] = (char)('0' + value % 10);
    value /= 10;
  } while (value);
  board_print(name);
  board_print(text + i);
  board_print("\n");
}

static int file(const char *name, int mode) {
  uint32_t words[3] = {(uint32_t)name, (uint32_t)mode, 0};
  while (name[words[2]]) words[2]++;
  return call(0x01, words);
}

/* Read or write a whole file on the host; 0 is success. */
int board_file(const char *name, void *bytes, uint32_t count, int writes) {
  int handle = file(name, writes ? 5 : 1);
  if (handle < 0) return 1;
  uint32_t words[3] = {(uint32_t)handle, (uint32_t)bytes, count};
  int rest = count ? call(writes ? 0x05 : 0x06, words) : 0;
  uint32_t last[1] = {(uint32_t)handle};
  call(0x02, last);
  return rest != 0;
}

static void leave(int code) {
  uint32_t words[2] = {0x20026, (uint32_t)code};
  call(0x20, words);
  for (;;) {}
}

void reset(void) {
  *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* floating point and vectors */
  __asm__ volatile("dsb\n isb");
  for (uint32_t *to = &__data_start, *from = &__data_from; to < &__data_end;) *to++ = *from++;
  for (uint32_t *to = &__bss_start; to < &__bss_end;) *to++ = 0;
  leave(main());
}

static void fault(void) {
  board_print("fault\n");
  leave(99);
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &__stack_top, reset, fault, fault, fault, fault, fault};

/* What a compiler may call where there is no C library. */
void *memcpy(void *to, const void *from, __SIZE_TYPE__ count) {
  uint8_t *a = to;
  const uint8_t *b = from;
  while (count--) *a++ = *b++;
  return to;
}

void *memmove(void *to, const void *from, __SIZE_TYPE__ count) {
  uint8_t *a = to;
  const uint8_t *b = from;
  if (a < b) return memcpy(to, from, count);
  while (count--) a[count] = b[count];
  return to;
}

void *memset(void *to, int value, __SIZE_TYPE__ count) {
  uint8_t *a = to;
  while (count--) *a++ = (uint8_t)value;
  return to;
}

void __aeabi_idiv0(void) { fault(); }
void __aeabi_ldiv0(void) { fault(); }
void __aeabi_unwind_cpp_pr0(void) {}
void __aeabi_unwind_cpp_pr1(void) {}
