// Package killtest kills the memory plugin with SIGKILL while it writes, again
// and again, and looks each time at what the next start finds: everything that
// was acknowledged, nothing by half, and no blob that nothing names.
//
// TEA_KILLS sets how often each engine is killed; TEA_MEMORY_PLUGIN names a
// built plugin to be used instead of the test binary, which is one too.
package killtest
