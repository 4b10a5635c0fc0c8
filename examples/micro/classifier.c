/* The best class of each of 100 pictures: in.bin to out.bin, on an emulated Cortex-M7. */
#include "board.h"
#include "digits.h"

#define PICTURES 100
static float pictures[PICTURES][64];
static int32_t answers[PICTURES];

int main(void) {
  if (board_file("in.bin", pictures, sizeof pictures, 0)) return 1;
  for (int i = 0; i < PICTURES; i++) {
    float scores[10];
    int error = digits_run(pictures[i], scores);
    if (error) return error;
    for (int k = 1; k < 10; k++)
      if (scores[k] > scores[answers[i]]) answers[i] = k;
  }
  board_number("arena bytes: ", DIGITS_ARENA_BYTES);
  return board_file("out.bin", answers, sizeof answers, 1);
}
