import net from "node:net";

/**
 * Ends the process, and the processes that it has started, when the host has
 * ended. Only the host has the other end of the pipe open; nothing is ever
 * written to it.
 */
export function endWithHost() {
  const fd = Number(process.env.TEA_PARENT_FD);
  if (fd > 2) {
    const pipe = new net.Socket({ fd, readable: true, writable: false });
    pipe.on("error", () => {});
    pipe.on("close", end);
    pipe.resume();
  } else {
    const parent = process.ppid;
    setInterval(() => process.ppid === parent || end(), 500);
  }
}

function end() {
  try {
    process.kill(-process.pid, "SIGKILL"); // the host has made this process the leader of a group
  } catch {
    process.exit(1);
  }
}
