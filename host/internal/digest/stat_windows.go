package digest

import (
	"fmt"
	"io/fs"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// nonBlock is empty: a pipe is not a file here.
const nonBlock = 0

// basicInfo is FILE_BASIC_INFO. Its times count units of 100 ns from 1601.
type basicInfo struct {
	created, accessed, modified, changed int64
	attributes                           uint32
	_                                    uint32
}

func basicInfoOf(f *os.File) (info basicInfo, err error) {
	err = windows.GetFileInformationByHandleEx(windows.Handle(f.Fd()), windows.FileBasicInfo, (*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return info, err
}

func timeOf(ticks int64) time.Time {
	t := windows.Filetime{LowDateTime: uint32(ticks), HighDateTime: uint32(ticks >> 32)}
	return time.Unix(0, t.Nanoseconds())
}

// Times returns a file's modification time and its status change time.
func Times(path string) (modified, changed time.Time, err error) {
	f, err := os.Open(path)
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	defer f.Close()
	info, err := basicInfoOf(f)
	return timeOf(info.modified), timeOf(info.changed), err
}

func stateAt(path string) (string, time.Time) {
	f, err := os.Open(path)
	if err != nil {
		return "missing", time.Time{}
	}
	defer f.Close()
	state, err := StateOf(f)
	if err != nil {
		return "missing", time.Time{}
	}
	info, err := basicInfoOf(f)
	if err != nil {
		return "missing", time.Time{}
	}
	return state, timeOf(info.changed)
}

// StateOf is [State] for an open file.
func StateOf(f *os.File) (string, error) {
	var file windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &file); err != nil {
		return "", err
	}
	info, err := basicInfoOf(f)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(uint64(file.FileSizeHigh)<<32|uint64(file.FileSizeLow), " ", info.modified, " ", info.changed, " ",
		file.VolumeSerialNumber, " ", uint64(file.FileIndexHigh)<<32|uint64(file.FileIndexLow)), nil
}

// Owner returns 0 for every file: owners and access lists are not examined on
// this system.
func Owner(fs.FileInfo) uint32 { return 0 }

// IsOurs is true for every file, see [Owner].
func IsOurs(fs.FileInfo) bool { return true }

// OthersCanWrite is false for every file: this system has no such bits.
func OthersCanWrite(fs.FileInfo, fs.FileMode) bool { return false }
