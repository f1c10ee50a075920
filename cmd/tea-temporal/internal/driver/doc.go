// Package driver runs workflows of tea on Temporal: the engine runs inside of a
// Temporal workflow function, each call of an action is an activity, branches are
// coroutines, and the waits of retries are durable timers. Start with [Worker],
// which executes runs, and [Engine], which starts and follows them.
//
// Design note 021 explains the mapping.
package driver
