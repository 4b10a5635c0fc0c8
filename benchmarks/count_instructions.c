/* A QEMU plugin (interface 1): the number of instructions that a program executed, in the file $INSTRUCTIONS. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint64_t plugin;
struct qemu_plugin_tb;
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin, void (*)(plugin, struct qemu_plugin_tb *));
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int, void *, uint64_t);
extern void qemu_plugin_register_atexit_cb(plugin, void (*)(plugin, void *), void *);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;
static uint64_t count;

static void translated(plugin id, struct qemu_plugin_tb *block) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &count, qemu_plugin_tb_n_insns(block));
}

static void ended(plugin id, void *nothing) {
  (void)id, (void)nothing;
  FILE *file = fopen(getenv("INSTRUCTIONS") ? getenv("INSTRUCTIONS") : "instructions.txt", "w");
  if (!file) return;
  fprintf(file, "%llu\n", (unsigned long long)count);
  fclose(file);
}

__attribute__((visibility("default"))) int qemu_plugin_install(plugin id, const void *info, int argc, char **argv) {
  (void)info, (void)argc, (void)argv;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_atexit_cb(id, ended, NULL);
  return 0;
}
