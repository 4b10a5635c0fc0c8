"""Services of the operating system: aligned memory, files and folders, file ownership, memory mapping, limits, fair
locks, progress lines.

What differs between systems is here, one file for each subject. Nothing else asks which system it runs on.
"""
