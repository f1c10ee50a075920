// Package bundles packs plugins into bundle files, signs and verifies them,
// installs them into a user's store and pins them in a lock file. It needs no
// network and starts no plugins.
//
// A bundle has one plugin for several platforms, with its manifest, licence, bill of
// materials and documentation; its signature is the file next to it. It is a tar
// archive. Its first entry is the [Index], which names every file with its digest.
// Each content follows once, compressed, as blobs/SHA256.gz in the order of the index.
// The last entry is a digest of all preceding bytes, so that any change is detected
// before the contents are interpreted.
//
// A [Store] has each installed bundle in a read-only directory named after the digest
// of its record, and a link for each plugin to its active version:
//
//	tea/plugins/tea-plugin-NAME      link to ../store/DIGEST/tea-plugin-NAME
//	tea/store/DIGEST/record.json     what the entry contains; its SHA-256 is DIGEST
//	tea/store/DIGEST/...             the plugin's files, bundle.json, documents
//	tea/store/history/NAME.json      the versions that were active, for rollback
//
// Every change is atomic and durable: after a crash at any instant a plugin has
// its old or its new version. Changes by several processes are serialized.
//
// A [Lock], tea.lock, pins the plugins of a project: name, version, and the SHA-256 of
// the binary and of each further file for every platform. With a lock no other plugin
// runs. The file is JSON in one canonical form with a checksum, so that any changed
// byte is detected.
//
// Start with [Pack], [Open], [Installer] and [LoadPolicy]; the policy's Verify is the
// Verify of subproc.Options.
package bundles
