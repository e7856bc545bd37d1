"""Members that a shell cannot make. Each is bounded: nobody lives for more than a minute."""

import ctypes
import os
import platform
import sys
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)

CLONE = {"x86_64": 56, "aarch64": 220}[platform.machine()]
CLONE_PARENT = 0x8000
SIGCHLD = 17
PR_SET_CHILD_SUBREAPER = 36


def sleeper():
    if os.fork() == 0:
        os.setsid()
        time.sleep(60)
        os._exit(0)


def sibling():
    """A child of our parent: who made it is not to be seen."""
    if libc.syscall(CLONE, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0:
        os.setsid()
        time.sleep(60)
        os._exit(0)


def threads():
    """Children of threads, some of which are over while the children live."""
    makers = [threading.Thread(target=sleeper) for _ in range(3)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    time.sleep(60)


def reaper():
    """A subreaper in the tree that adopts orphans and never reaps them; one below it does, too."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if os.fork() == 0:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for _ in range(3):
            if os.fork() == 0:
                sleeper()
                os._exit(0)
        time.sleep(60)
        os._exit(0)
    for _ in range(3):
        if os.fork() == 0:
            sleeper()
            os._exit(0)
    time.sleep(60)


def headless():
    """The first thread is over and looks like a zombie; another one runs on."""
    runner = threading.Thread(target=time.sleep, args=(60,))
    runner.start()
    # exit, not exit_group
    libc.syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)


{"sibling": sibling, "threads": threads, "reaper": reaper, "headless": headless}[sys.argv[1]]()
