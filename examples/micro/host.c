/* Reads numbers, eight at a time, and prints their exponential mean. */
#include "smooth.h"
#include <stdio.h>

int main(void) {
  float x[8], smoothed[8];
  for (;;) {
    for (int i = 0; i < 8; i++)
      if (scanf("%f", &x[i]) != 1) return 0;
    int error = smooth_run(x, smoothed);
    if (error) return error;
    for (int i = 0; i < 8; i++) printf("%s%.3f", i ? " " : "", smoothed[i]);
    printf("\n");
  }
}
