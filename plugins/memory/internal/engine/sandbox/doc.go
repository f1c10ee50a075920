// Package sandbox has the shared parts of the drivers for untrusted SELECT
// statements: the checks of the text, the errors for a refusal, and the [Answer],
// which bounds the result.
package sandbox
