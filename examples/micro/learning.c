/* 300 steps of training on an emulated Cortex-M7: batches from in.bin, losses to out.bin. */
#include "board.h"
#include "learner.h"

#define STEPS 300
static struct {
  float points[16];
  int32_t labels[8];
} batch[STEPS];
static float losses[STEPS];

int main(void) {
  if (board_file("in.bin", batch, sizeof batch, 0)) return 1;
  for (int i = 0; i < STEPS; i++) {
    int error = learner_run(batch[i].points, batch[i].labels, &losses[i]);
    if (error) return error;
  }
  board_number("steps on the board: ", STEPS);
  return board_file("out.bin", losses, sizeof losses, 1);
}
