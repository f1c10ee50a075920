// Package cron parses cron expressions and computes their times as Debian's cron does.
// Start with [Parse].
//
// A time that the clock skips, such as 2:30 when clocks go forward from 2 to 3, runs
// once, directly after the gap. A time that the clock repeats runs once, the first time.
// Expressions whose minutes or hours begin with * have no fixed times: they match
// whatever the clock shows, so * * * * * runs every minute of a repeated hour.
package cron
