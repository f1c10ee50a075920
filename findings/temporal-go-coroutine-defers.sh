#!/usr/bin/env bash
# Temporal Go SDK v1.51.0 (go.temporal.io/sdk): deferred functions of a workflow run
# after it has ended.
#
# When a run ends, or the worker evicts it from its cache, the SDK ends the coroutines
# that still wait. Their deferred functions then run in goroutines that nothing waits
# for. The worker may already replay the run, with the same workflow.Info, so a deferred
# function that calls workflow.GetInfo has a data race with the replay.
#
# A good guess: a workflow runs one coroutine at a time, deferred functions included.
#
# Seen on 29 November 2026:
#   the workflow has ended, its deferred function has not
#   the deferred function runs: 0 events in the history
#
# Exits with 1 if the behaviour changed.
set -euo pipefail
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding >/dev/null 2>&1
go get go.temporal.io/sdk@v1.51.0 >/dev/null 2>&1
cat >main.go <<'GO'
package main

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

func main() {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	env := suite.NewTestWorkflowEnvironment()
	ended, done := make(chan struct{}), make(chan string)
	env.ExecuteWorkflow(func(w workflow.Context) error {
		workflow.Go(w, func(w workflow.Context) {
			defer func() {
				<-ended
				done <- fmt.Sprintf("the deferred function runs: %d events in the history", workflow.GetInfo(w).GetCurrentHistoryLength())
			}()
			workflow.GetSignalChannel(w, "never").Receive(w, nil)
		})
		return workflow.Sleep(w, time.Second)
	})
	if env.IsWorkflowCompleted() {
		fmt.Println("the workflow has ended, its deferred function has not")
	}
	close(ended)
	select {
	case text := <-done:
		fmt.Println(text)
	case <-time.After(10 * time.Second):
		fmt.Println("the deferred function did not run")
	}
}
GO
go get . >/dev/null 2>&1
go run . | tee seen
diff seen - <<'WANT'
the workflow has ended, its deferred function has not
the deferred function runs: 0 events in the history
WANT
