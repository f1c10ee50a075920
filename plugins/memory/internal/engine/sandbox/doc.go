// Package sandbox holds what the drivers share where they run a SELECT that
// came from outside: the checks of its text, the words for a refusal, and the
// [Answer], which bounds what comes back.
package sandbox
