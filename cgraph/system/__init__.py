"""Services of the operating system: aligned memory, files and folders, file ownership, memory mapping, limits, fair
locks, progress lines.

Code that differs between systems, in one file for each subject. No other code tests on which system it runs.
"""
