package engine

import (
	"testing"
	"time"
)

func TestWorkClockPausesDuringQuestions(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	over := false
	c := workClock{now: func() time.Time { return now }, limit: time.Hour, over: func() { over = true }, used: time.Minute}
	c.start()
	defer c.stop()
	tests := []struct {
		pass time.Duration
		then func()
		want time.Duration
	}{
		{time.Second, c.pause, time.Minute + time.Second},
		{time.Hour, c.pause, time.Minute + time.Second},
		{time.Hour, c.resume, time.Minute + time.Second},
		{time.Hour, c.resume, time.Minute + time.Second},
		{time.Second, func() {}, time.Minute + 2*time.Second},
		{time.Hour, c.pause, time.Hour + time.Minute + 2*time.Second},
	}
	for i, test := range tests {
		now = now.Add(test.pass)
		test.then()
		if got := c.total(); got != test.want || over {
			t.Fatalf("step %d: %s, over = %t; want %s", i, got, over, test.want)
		}
	}
	if c.resume(); !over {
		t.Error("the time is used up without a notification")
	}
}
