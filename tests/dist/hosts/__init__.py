"""Hosts as network namespaces of this machine, and a cluster on them that is started as docs/dist.md says."""
