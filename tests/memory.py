"""The largest memory of a process, as Python that it runs itself.

`ru_maxrss` will not do: a new process inherits it from the one that began it, and a process of tests grows to gigabytes.
"""

PEAK_KILOBYTES = 'int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))'
