// Package checkpoints reads the runs that a checkpoint directory holds, prunes them and
// compares them. It runs nothing: package host starts and resumes runs.
//
// Start with [Open], [Dir.List] and [Dir.Show]. [Pending], [FailureOf] and [UsageAt]
// interpret the contents of a checkpoint. Secrets in results are replaced by ***.
package checkpoints
