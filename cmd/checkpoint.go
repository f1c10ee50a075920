package teacmd

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/checkpoints"
)

type checkpointCmd struct {
	List runsListCmd       `cmd:"" help:"List the runs that have a checkpoint."`
	Show checkpointShowCmd `cmd:"" help:"Print the records of a run."`
	Diff checkpointDiffCmd `cmd:"" help:"Show how the state differs between two steps or two runs."`
	GC   checkpointGCCmd   `cmd:"" name:"gc" help:"Remove old runs."`
}

type checkpointShowCmd struct {
	RunID string `arg:"" name:"run" help:"Id of the run or the beginning of it, or the file of its checkpoint."`
	JSON  bool   `name:"json" help:"Print JSON."`
	keepFlags
}

// recordOutput is the JSON form of a record.
type recordOutput struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	Path string    `json:"path,omitempty"`
	Body any       `json:"body,omitempty"`
}

func (c *checkpointShowCmd) Run(a *app) error {
	runs, _, id, err := c.open(a, c.RunID)
	if err != nil {
		return err
	}
	contents, err := runs.Show(id)
	if err != nil {
		return err
	}
	records := make([]recordOutput, len(contents.Records))
	for i, rec := range contents.Records {
		body, err := checkpoints.Value(rec)
		if err != nil {
			return err
		}
		records[i] = recordOutput{rec.Seq, rec.Time, rec.Kind, rec.Path, body}
	}
	if c.JSON {
		return writeJSON(a.stdout, map[string]any{"header": contents.Header, "records": records, "notes": contents.Notes})
	}
	h := contents.Header
	fmt.Fprintf(a.out, "run %s of %s, format %d, %d records\n", h.RunID, h.Workflow, h.Format, len(records))
	for _, note := range contents.Notes {
		fmt.Fprintf(a.out, "note: %s\n", note)
	}
	rows := make([][]string, len(records))
	for i, rec := range records {
		rows[i] = []string{strconv.FormatUint(rec.Seq, 10), rec.Time.Local().Format("15:04:05.000"), rec.Kind, rec.Path, clip(shown(rec.Body))}
	}
	return a.table([]string{"STEP", "TIME", "KIND", "PATH", "BODY"}, rows)
}

// clip shortens a text to one line; --json prints all of it.
func clip(text string) string {
	const most = 100
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}

type checkpointGCCmd struct {
	Keep               *int  `placeholder:"N" help:"Keep this many runs that are done. Default: 100."`
	MaxAge             *age  `placeholder:"30d" help:"Remove runs that are done and older than this. Default: 30d."`
	MaxBytes           *size `placeholder:"256MB" help:"Remove the oldest runs that are done beyond this size. Default: 256MB."`
	KeepUnfinished     *int  `placeholder:"N" help:"Keep this many runs that failed or were stopped. Default: 1000."`
	MaxUnfinishedAge   *age  `placeholder:"90d" help:"Remove runs that wait, failed or were stopped and are older than this. Default: 90d."`
	MaxUnfinishedBytes *size `placeholder:"256MB" help:"Remove the oldest runs that failed or were stopped beyond this size. Default: 256MB."`
	DryRun             bool  `help:"Print what would be removed, without removing it."`
	keepFlags
}

// Run removes old runs and prints their ids.
func (c *checkpointGCCmd) Run(a *app) error {
	runs, err := c.openDir(a)
	if err != nil || runs == nil {
		return err
	}
	remove := runs.Prune
	if c.DryRun {
		remove = runs.Prunable
	}
	ids, err := remove(c.policy())
	for _, id := range ids {
		fmt.Fprintln(a.out, id)
	}
	return err
}

// policy applies the flags to the default policy. A limit of 0 becomes the host's
// smallest limit, because 0 means no limit there.
func (c *checkpointGCCmd) policy() checkpoints.Policy {
	p := checkpoints.DefaultPolicy()
	for limit, flag := range map[*int]*int{&p.MaxCount: c.Keep, &p.MaxUnfinished: c.KeepUnfinished} {
		if flag != nil {
			*limit = cmp.Or(max(*flag, 0), -1)
		}
	}
	for limit, flag := range map[*time.Duration]*age{&p.MaxAge: c.MaxAge, &p.MaxUnfinishedAge: c.MaxUnfinishedAge} {
		if flag != nil {
			*limit = max(1, time.Duration(*flag))
		}
	}
	for limit, flag := range map[*int64]*size{&p.MaxBytes: c.MaxBytes, &p.MaxUnfinishedBytes: c.MaxUnfinishedBytes} {
		if flag != nil {
			*limit = max(1, int64(*flag))
		}
	}
	return p
}

// age is a duration on the command line; it supports days (30d).
type age time.Duration

// UnmarshalText reads 90m, 12h or 30d.
func (d *age) UnmarshalText(text []byte) error {
	if days, ok := strings.CutSuffix(string(text), "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err == nil && n >= 0 {
			*d = age(n * 24 * float64(time.Hour))
			return nil
		}
	}
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a valid age; use 90m, 12h or 30d", text)
	}
	*d = age(v)
	return nil
}

// size is a number of bytes on the command line; it supports KB, MB and GB.
type size int64

// UnmarshalText reads 1000, 64KB, 256MB or 2GB.
func (s *size) UnmarshalText(text []byte) error {
	digits, unit := strings.TrimSuffix(strings.ToUpper(string(text)), "B"), int64(1)
	for i, suffix := range []string{"K", "M", "G"} {
		if cut, ok := strings.CutSuffix(digits, suffix); ok {
			digits, unit = cut, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q is not a valid size; use 1000, 64KB, 256MB or 2GB", text)
	}
	*s = size(n * unit)
	return nil
}
