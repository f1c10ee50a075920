use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::os::unix::process::parent_id;
use std::thread;
use std::time::Duration;

/// Ends the process, and those that it has started, when the host has ended.
/// Only the host has the other end of the pipe open; nothing is ever written to
/// it.
pub(crate) fn end_with_host() {
    let pipe = std::env::var("TEA_PARENT_FD")
        .ok()
        .and_then(|fd| fd.parse().ok());
    let parent = parent_id(); // now: when the thread runs, the host may have ended
    thread::spawn(move || {
        match pipe {
            Some(fd) => {
                // SAFETY: the host has opened the descriptor for this purpose.
                let mut pipe = unsafe {
                    libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
                    File::from_raw_fd(fd)
                };
                while matches!(pipe.read(&mut [0]), Ok(1..)) {}
            }
            None => {
                while parent_id() == parent {
                    thread::sleep(Duration::from_millis(500));
                }
            }
        }
        // SAFETY: neither function has preconditions. The host has made this
        // process the leader of a group.
        unsafe {
            if libc::getpgrp() == libc::getpid() {
                libc::kill(0, libc::SIGKILL);
            }
        }
        std::process::exit(1);
    });
}
