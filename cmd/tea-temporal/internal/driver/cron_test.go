package driver

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
)

// The table of the guide has the differences between the times of `tea serve` and those
// of this server. All times are in UTC.
func TestGuideHasTheDifferencesOfCron(t *testing.T) {
	t.Parallel()
	rows := map[string]bool{}
	for _, tt := range []struct {
		row             string // the first cell
		cron, zone      string
		from, to        string
		serve, temporal []string
	}{
		{
			"a fixed time that the clock skips", "30 2 * * *", "Europe/Berlin", "2027-03-27 12:00", "2027-03-29 12:00",
			[]string{"03-28 01:00", "03-29 00:30"},
			[]string{"03-29 00:30"},
		},
		{
			"a fixed time that the clock skips", "0 0 * * *", "Africa/Cairo", "2027-04-29 12:00", "2027-05-01 12:00",
			[]string{"04-29 22:00", "04-30 21:00"},
			[]string{"04-30 21:00"},
		},
		{
			"a fixed time that the clock repeats", "30 2 * * *", "Europe/Berlin", "2027-10-30 12:00", "2027-11-01 12:00",
			[]string{"10-31 00:30", "11-01 01:30"},
			[]string{"10-31 01:30", "11-01 01:30"},
		},
		{
			"`*` or a step in the minutes or hours, while the clock repeats an hour", "0 * * * *", "Europe/Berlin", "2027-10-30 23:30", "2027-10-31 03:30",
			[]string{"10-31 00:00", "10-31 01:00", "10-31 02:00", "10-31 03:00"},
			[]string{"10-31 00:00", "10-31 02:00", "10-31 03:00"},
		},
		{
			"`*` or a step in the minutes or hours, while the clock repeats an hour", "*/30 2 * * *", "Europe/Berlin", "2027-10-30 23:30", "2027-10-31 03:30",
			[]string{"10-31 00:00", "10-31 00:30", "10-31 01:00", "10-31 01:30"},
			[]string{"10-31 01:00", "10-31 02:30"},
		},
		{
			"both day fields set (`0 6 13 * 5`)", "0 6 13 * 5", "UTC", "2027-08-05 12:00", "2027-09-14 12:00",
			[]string{"08-06 06:00", "08-13 06:00", "08-20 06:00", "08-27 06:00", "09-03 06:00", "09-10 06:00", "09-13 06:00"},
			[]string{"08-13 06:00"},
		},
	} {
		rows[tt.row] = true
		t.Run(tt.cron+" "+tt.zone, func(t *testing.T) {
			t.Parallel()
			h, _ := newHost(t)
			s := newClient(t, h, nil)
			from, to := minute(t, tt.from), minute(t, tt.to)
			wf := s.load(fmt.Sprintf("serve: {triggers: [{cron: %q, timezone: %s}]}\nnodes: [{name: any}]\n", tt.cron, tt.zone))
			if diff := cmp.Diff(tt.serve, servedAt(t, wf, tt.zone, from, to)); diff != "" {
				t.Errorf("tea serve (-want +got):\n%s", diff)
			}
			id := "cron-" + host.NewRunID() + s.flags.Queue
			if err := (Engine{}).Schedule(t.Context(), s.flags, id, []string{"CRON_TZ=" + tt.zone + " " + tt.cron}, teacmd.Job{Workflow: wf}); err != nil {
				t.Fatal(err)
			}
			res, err := s.client.WorkflowService().ListScheduleMatchingTimes(t.Context(), &workflowservice.ListScheduleMatchingTimesRequest{
				Namespace: s.namespace, ScheduleId: id, StartTime: timestamppb.New(from), EndTime: timestamppb.New(to),
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, at := range res.GetStartTime() {
				got = append(got, at.AsTime().Format(shortTime))
			}
			if diff := cmp.Diff(tt.temporal, got); diff != "" {
				t.Errorf("Temporal (-want +got):\n%s", diff)
			}
		})
	}
	guide, err := os.ReadFile("../../../../docs/guide/temporal.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(guide), "| | `tea serve` | Temporal |\n| --- | --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	inGuide := map[string]bool{}
	for line := range strings.Lines(table) {
		inGuide[strings.TrimSpace(strings.Split(line, "|")[1])] = true
	}
	if diff := cmp.Diff(rows, inGuide); diff != "" {
		t.Errorf("the rows of the table are not those of this test (-test +guide):\n%s", diff)
	}
}

const shortTime = "01-02 15:04"

func minute(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// servedAt returns the times of the first trigger.
func servedAt(t *testing.T, wf *host.Workflow, zone string, from, to time.Time) (times []string) {
	t.Helper()
	where, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	schedule := wf.Serving().Config().Triggers[0].Timer.Schedule
	for at := schedule.Next(from.In(where)); !at.After(to); at = schedule.Next(at) {
		times = append(times, at.UTC().Format(shortTime))
	}
	return times
}
