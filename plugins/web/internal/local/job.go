package local

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	// jobSuffix marks the files of jobs.
	jobSuffix = ".steps"
	// jobAge is how long a job can be continued.
	jobAge = 7 * 24 * time.Hour
)

// jobName matches the identifier of a job.
var jobName = regexp.MustCompile(`^[0-9a-f]{16}$`)

// job is a file next to the cache with the steps of a crawl, so that another run can
// continue it. The file has a line with a jobHeader and a line per step. If it cannot
// be written, the job cannot be continued. Methods accept a nil receiver.
type job struct{ file *os.File }

type jobHeader struct {
	URL string `json:"url"`
}

func (c *cache) jobFile(id string) string { return filepath.Join(c.dir, "crawls", id+jobSuffix) }

// newJob creates the file of a job; nil if the cache is off. It removes old jobs,
// except keep.
func (c *cache) newJob(id, url, keep string) *job {
	if c == nil {
		return nil
	}
	name := c.jobFile(id)
	if os.MkdirAll(filepath.Dir(name), 0o700) != nil {
		return nil
	}
	c.sweepJobs(keep)
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil
	}
	j := &job{file}
	j.add(jobHeader{URL: url})
	return j
}

// add writes a line. After a failure it writes nothing, because a step would be
// missing.
func (j *job) add(line any) {
	if j == nil || j.file == nil {
		return
	}
	data, err := json.Marshal(line)
	if err == nil {
		_, err = j.file.Write(append(data, '\n'))
	}
	if err != nil {
		j.close()
	}
}

func (j *job) close() {
	if j != nil && j.file != nil {
		j.file.Close()
		j.file = nil
	}
}

// readJob calls use for each step of a job, starting at a number. A broken line ends
// the job: the crawl continues there. The error is not_found if the job is not stored
// here, or a validation_error if it belongs to another address.
func (c *cache) readJob(id, url string, from int, use func(*step) error) error {
	missing := tea.Errorf(tea.NotFound, "the crawl %s is not stored on this machine; crawls are kept in settings.web.cache_dir for %d days, unless cache_max_bytes is 0", id, int(jobAge.Hours()/24))
	if c == nil || !jobName.MatchString(id) {
		return missing
	}
	file, err := os.Open(c.jobFile(id))
	if err != nil {
		return missing
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, 64<<10)
	var header jobHeader
	if !readLine(lines, &header) {
		return missing
	}
	if header.URL != url {
		return tea.Errorf(tea.ValidationError, "the crawl %s began at %s, not at %s", id, header.URL, url)
	}
	for i := 0; ; i++ {
		s := new(step)
		if !readLine(lines, s) {
			return nil
		}
		if i < from {
			continue
		}
		if err := use(s); err != nil {
			return err
		}
	}
}

// readLine decodes the next line. It reports whether the line was complete.
func readLine(lines *bufio.Reader, into any) bool {
	line, err := lines.ReadBytes('\n')
	return err == nil && json.Unmarshal(line, into) == nil
}

// sweepJobs removes old jobs, and the oldest ones while all jobs exceed the size of
// the cache.
func (c *cache) sweepJobs(keep string) {
	entries, err := os.ReadDir(filepath.Dir(c.jobFile("")))
	if err != nil {
		return
	}
	var files []os.FileInfo
	total := int64(0)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && strings.HasSuffix(info.Name(), jobSuffix) && info.Name() != keep+jobSuffix {
			files = append(files, info)
			total += info.Size()
		}
	}
	sort.Slice(files, func(i, j int) bool { return files[i].ModTime().Before(files[j].ModTime()) })
	for _, info := range files {
		if total <= c.max && time.Since(info.ModTime()) < jobAge {
			return
		}
		if os.Remove(c.jobFile(strings.TrimSuffix(info.Name(), jobSuffix))) == nil {
			total -= info.Size()
		}
	}
}
