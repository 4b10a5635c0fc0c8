"""Processors: a module per architecture with its targets, the names of its instructions and the form of its code.

Planners and emitters ask a target's capabilities, never its name. ``docs/targets.md`` says how to add a processor.
"""
