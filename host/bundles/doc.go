// Package bundles packs plugins into bundle files, signs and verifies them,
// installs them into a user's store and pins them in a lock file. It needs no
// network and starts no plugins.
//
// Start with [Pack], [Installer] and [LoadPolicy]; the policy's Verify is the
// Verify of subproc.Options.
package bundles
