package subproc

import (
	"os"
	"os/exec"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is the job object of a plugin. The system ends its processes when the host has
// ended.
type group struct {
	process *os.Process
	job     windows.Handle // 0 without a job
}

// newGroup puts a process into a new job. The job does not include child processes that
// it has already started. Without a job only the process itself is killed.
func newGroup(p *os.Process) *group {
	g := &group{process: p}
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return g
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		err = assign(job, p.Pid)
	}
	if err != nil {
		_ = windows.CloseHandle(job) // it has no processes
		return g
	}
	g.job = job
	return g
}

func assign(job windows.Handle, pid int) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(process) }()
	return windows.AssignProcessToJobObject(job, process)
}

// kill kills all processes of the group. They may have ended already.
func (g *group) kill() {
	if g.job != 0 {
		_ = windows.TerminateJobObject(g.job, 1)
	}
	_ = g.process.Kill()
}

// close must be called after the last kill.
func (g *group) close() {
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
	}
}

// awaitExit returns false: the caller waits for the process itself. Its job cannot be
// mistaken for another.
func awaitExit(int) bool { return false }

// programSuffix is the suffix of the names of programs.
const programSuffix = ".exe"

func isExecutable(info os.FileInfo) bool {
	return strings.HasSuffix(strings.ToLower(info.Name()), programSuffix)
}

// activity is not known on this system: for a plugin that does not answer, the deadlines
// of its calls apply.
func (*runner) activity() (used time.Duration, stopped, known bool) { return 0, false, false }

// resident is not known on this system.
func resident(int) (all, own int64) { return 0, 0 }

// wrap does nothing.
func (Limits) wrap(*exec.Cmd) {}
