"""Runs a command as a job of a shell in a pseudo-terminal of 40 x 132, and prints how it ended as JSON.

usage: terminal.py none|ctrl-c|ctrl-z|type|yes|q COMMAND...
The key is pressed once the command has said `ready`, `quits`, or `[y/N]`. A negative exit is the signal that ended it. A job that stops is
brought back to the foreground after half a second.
"""
import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time


def run_as_shell(command, result):
    """A shell's job control: a process group of its own in the foreground, and `fg` when it stops."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        for number in (signal.SIGTTOU, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.close(result)
        os.execvp(command[0], command)
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            break
        os.tcsetpgrp(0, os.getpid())
        print("stopped", flush=True)
        time.sleep(0.5)
        os.tcsetpgrp(0, job)
        os.killpg(job, signal.SIGCONT)
    os.tcsetpgrp(0, os.getpid())
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    os.write(result, str(code).encode())
    os._exit(0)


key, command = sys.argv[1], sys.argv[2:]
readable, writable = os.pipe()
pid, terminal = pty.fork()
if pid == 0:
    os.close(readable)
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 132, 0, 0))
    run_as_shell(command, writable)
os.close(writable)

output = b""
is_pressed = key == "none"
signs = (b"ready", b"quits", b"[y/N]")
while True:
    if not select.select([terminal], [], [], 25)[0]:
        os.kill(pid, signal.SIGKILL)
        sys.exit("the command did not end")
    try:
        more = os.read(terminal, 65536)
    except OSError:
        break
    if not more:
        break
    output += more
    if not is_pressed and any(sign in output for sign in signs):
        is_pressed = True
        os.write(terminal, {"ctrl-c": b"\x03", "ctrl-z": b"\x1a", "type": b"typed\n", "yes": b"yes\n", "q": b"q"}[key])
os.waitpid(pid, 0)
print(json.dumps({"exit": int(os.read(readable, 16)), "output": output.decode(errors="replace")}))
