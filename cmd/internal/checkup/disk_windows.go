package checkup

import "golang.org/x/sys/windows"

// CheckWritable checks nothing: this system has no such call. The first write
// fails instead.
func CheckWritable(string) error { return nil }

// CheckFile checks nothing, see [CheckWritable].
func CheckFile(string) error { return nil }

// freeSpace returns the bytes that are free on the disk of a directory.
func freeSpace(dir string) (free uint64, err error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return free, err
}
